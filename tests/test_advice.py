"""Advice that can be followed: every command, option, function and key that a message or a page names exists.

Messages are all string literals of the source that are not docstrings; pages are the documentation.  A part of
a message that is computed is a hole, which fits everything.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

import weft
import weft.streams
import weft.testing
from test_layers import MODULES, Module
from unplugged import unplugged
from weft import AsofOrder, AsofSpec, ColumnCollisionError, IntervalSpec, JoinSpec, expr
from weft.cli.main import app, split_arguments
from weft.codes import CODES
from weft.core.types import Schema
from weft.errors import WeftError
from weft.expr import functions, tokens, words
from weft.io.connectors import connectors
from weft.joins.relation import Relation
from weft.pipelines.model.normalize import KINDS
from weft.pipelines.model.schemas import json_schema
from weft.streams.sql.options import READERS, Owner, describe_foreign, find_option

ROOT = Path(__file__).parents[1]
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
HOLE = "\N{BALLOT BOX}"
COMMAND_LINE: Any = typer.main.get_command(app)
OWNERS: tuple[Owner, ...] = ("stream", "table", "sink", "join", "job")


@dataclass(frozen=True)
class Advice:
    """A text that a user reads, and where it is written; a line of code in a page is run by other tests."""

    where: str
    text: str
    is_code: bool = False


def texts_of(module: Module) -> Iterator[Advice]:
    """Yield the string literals of a module; statements that are only a string are docstrings."""
    docs = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    parts = {id(v) for node in ast.walk(module.tree) if isinstance(node, ast.JoinedStr) for v in node.values}
    for node in ast.walk(module.tree):
        if id(node) in docs or id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(v.value) if isinstance(v, ast.Constant) else HOLE for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        yield Advice(f"{module.name}:{node.lineno}", text)


def lines_of(page: Path) -> Iterator[Advice]:
    fence = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fence = "" if fence else line
        elif not fence.startswith("```py"):
            is_help = line.startswith(" = help:")
            yield Advice(f"{page.relative_to(ROOT)}:{number}", line, is_code=bool(fence) and not is_help)


MESSAGES = tuple(advice for module in MODULES for advice in texts_of(module))
# The changelog speaks of releases that had other names.
DOCUMENTS = tuple(advice for page in PAGES if page.name != "CHANGELOG.md" for advice in lines_of(page))

# Commands: in a sentence they are in backticks, elsewhere they are the whole text.
_TICKED = re.compile(r"`weft ([^`]+)`")
_WHOLE = re.compile(r"\s*(?:\$ )?weft (?=[a-z])([^`#&]+?)(?:(?:&&|\|\|| \| ).*)?")
_INSIDE = re.compile(
    r"(?<![\w`./'-])weft (?:init|validate|plan|runs?|preview|rerun|test|doctor|explain|stream|connectors)\b"
)
_THREADS = frozenset({"weft heartbeat", "weft progress"})
_NUMBERS = frozenset({"N", "SEQ", "VERSION"})


def spelt_out(text: str) -> Iterator[list[str]]:
    """Yield the commands that a synopsis stands for: ``runs [ls|show RUN]`` is ``runs ls RUN`` and ``runs show RUN``.

    >>> list(spelt_out("runs [ls|show] RUN"))
    [['runs', 'ls', 'RUN'], ['runs', 'show', 'RUN']]
    """
    text = text.removesuffix(" ...").replace("\\|", "|").replace("[", "").replace("]", "").replace(HOLE, "1")
    choices = [("1",) if word in _NUMBERS else word.split("|") for word in shlex.split(text)]
    yield from map(list, itertools.product(*choices))


# Flags of `weft` itself, such as --install-completion.
OWN_FLAGS = [[name] for parameter in COMMAND_LINE.params for name in parameter.opts if parameter.is_flag]


def command_problem(given: list[str]) -> str:
    """Return why ``weft GIVEN`` cannot be typed; a command that is only named needs no arguments."""
    try:
        _, rest = split_arguments(given)
    except WeftError as problem:
        return problem.message
    found, path = COMMAND_LINE, []
    rest = rest[rest[:1] in OWN_FLAGS :]
    while rest and hasattr(found, "commands"):
        if rest[0] not in found.commands:
            return f"there is no command {rest[0]!r}: {', '.join(found.commands)}"
        path.append(rest[0])
        found = found.commands[rest.pop(0)]
    if not rest:
        return ""
    try:
        found.make_context(" ".join(path), rest)
    except Exception as problem:  # noqa: BLE001  # the kinds of errors of the parser are many
        reported = getattr(problem, "format_message", problem.__str__)
        return str(reported())
    return ""


def commands(advice: Advice) -> Iterator[str]:
    whole = _WHOLE.fullmatch(advice.text)
    if whole is not None and advice.text not in _THREADS and (advice.is_code or advice.where.startswith("weft.")):
        yield whole[1]
    else:
        yield from (found[1] for found in _TICKED.finditer(advice.text))


def unknown_commands(advice: Advice) -> Iterator[str]:
    if advice.where.startswith("weft.") and _WHOLE.fullmatch(advice.text) is None:
        yield from (f"`{found[0]}` needs backticks" for found in _INSIDE.finditer(advice.text))
    for text in commands(advice):
        for given in spelt_out(text):
            if given[:1] != ["COMMAND"] and (problem := command_problem(given)):
                yield f"`weft {text}`: {problem}"


# Options of commands.
def all_options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))
    for inner in getattr(command, "commands", {}).values():
        yield from all_options(inner)


OPTION_NAMES = frozenset(all_options(COMMAND_LINE)) | {"--help"}
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*(?<!-)(?!-)")
_OTHER_PROGRAMS = re.compile(r"\b(?:pip|pytest|uv|git|mvn|make|bench/\w+\.py|spark-submit|rattler-build|docker)\b")


def unknown_options(advice: Advice) -> Iterator[str]:
    is_prose = " " in advice.text and not advice.is_code and not advice.where.startswith("CONTRIBUTING")
    if is_prose and not _OTHER_PROGRAMS.search(advice.text):
        yield from (f"no command has {o}" for o in _OPTION.findall(advice.text) if o not in OPTION_NAMES)


# Arguments of functions.
def public_callables() -> Iterator[Callable[..., Any]]:
    for module in (weft, weft.streams, weft.testing, expr):
        for name in getattr(module, "__all__", ()):
            found = getattr(module, name)
            if isinstance(found, type) or inspect.isfunction(found):
                yield found
    reports = (getattr(weft.streams, name) for name in weft.streams.__all__)
    for owner in (Relation, *(f for f in reports if isinstance(f, type))):
        yield from (f for name, f in inspect.getmembers(owner, callable) if not name.startswith("_"))


def parameters() -> Iterator[str]:
    for function in public_callables():
        try:
            yield from inspect.signature(function).parameters
        except (TypeError, ValueError):  # exceptions take what they like
            continue


ARGUMENTS = frozenset(parameters()) | {"left_column"}  # the name of a column, which stands for any
_KEYWORD = re.compile(r"(?<![\w'.\"(/{-])([a-z_]{2,})=(?![=~])")
# Where Python is advised; further down texts are SQL, YAML, XML and addresses.
_PYTHON_PLACES = (
    "weft.joins.",
    "weft.expr.",
    "weft.testing.",
    "weft.pipelines.plan.",
    "weft.streams.api",
    "weft.streams.plan.",
    "weft.streams.spark.",
)
_YAML_PLANS = ("weft.pipelines.plan.operations", "weft.pipelines.plan.resolver")


def speaks_python(where: str) -> bool:
    return where.startswith(_PYTHON_PLACES) and not where.startswith(_YAML_PLANS)


def unknown_arguments(advice: Advice) -> Iterator[str]:
    if not advice.where.startswith("weft.") or not speaks_python(advice.where) or "<" in advice.text[:1]:
        return
    if " " in advice.text or advice.text.endswith("="):
        yield from (f"no function has {k}=" for k in _KEYWORD.findall(advice.text) if k not in ARGUMENTS)


# Options of WITH and SET.
_DOTTED = re.compile(
    r"'((?:join|event|watermark|dedup|max|rows|idle|starting|fail|bootstrap|null|timestamp)(?:\.[a-z_]+)+)'"
)
_PAIR = re.compile(r"'([a-z][a-z_.]*)' ?= ?'([^'\n]*)'")
_VARIABLE = ("<", "$", HOLE, "...")


def unknown_with_options(advice: Advice) -> Iterator[str]:
    if not advice.where.startswith(("weft.streams.", "docs/", "README")) or advice.is_code or "\\." in advice.text:
        return
    for name in _DOTTED.findall(advice.text):
        if find_option(name, OWNERS) is None and describe_foreign(name, "1h") is None:
            yield f"there is no option {name!r} of WITH"
    for name, value in _PAIR.findall(advice.text):
        found = [o for owner in OWNERS if (o := find_option(name, (owner,))) is not None]
        if not found:
            if name not in ("key", "option") and describe_foreign(name, value) is None:
                yield f"there is no option {name!r} of WITH"
        elif not any(mark in value for mark in _VARIABLE) and not any(map(accepts(value), found)):
            yield f"option {name!r} does not take {value!r}"


def accepts(value: str) -> Callable[[Any], bool]:
    def check(option: Any) -> bool:
        try:
            READERS[option.kind](value, option.words)
        except WeftError:
            return False
        return True

    return check


# Keys of YAML files.
def keys_and_words(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from (str(word) for word in schema.get("enum", ()))
        yield from [str(schema["const"])] if "const" in schema else []
        for inner in schema.values():
            yield from keys_and_words(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from keys_and_words(inner)


YAML = frozenset(word for kind in KINDS for word in keys_and_words(json_schema(kind)))
# Beside the schemas: options of datasources, names that stand for any, the credentials that `env:NAME` means,
# and the last step of a scenario.
KNOWN_KEYS = YAML | {name for connector in connectors() for name in connector.options}
KNOWN_KEYS |= {
    "true",
    "false",
    "name",
    "value",
    "path",
    "env",
    "file",
    "user",
    "password",
    "working",
    "spark",
}
_KEY = re.compile(r"`([a-z][a-z_]*)(?:: ([a-z_]+)?[^`]*)?`")
_YAML_PLACES = (
    "weft.pipelines.model.",
    "weft.pipelines.plan.operations",
    "weft.pipelines.plan.resolver",
    "weft.pipelines.run.",
    "weft.pipelines.store.",
)


def unknown_keys(advice: Advice) -> Iterator[str]:
    if not advice.where.startswith(_YAML_PLACES):
        return
    for found in _KEY.finditer(advice.text):
        for word in filter(None, found.groups()):
            if word not in KNOWN_KEYS:
                yield f"no file of a workspace has {word!r}"


# Functions of expressions.
_FUNCTION = re.compile(r"(?<![\w.])([A-Z][A-Z_]+)\(")
_WORD = re.compile(r"\b[A-Z][A-Z_]{2,}\b")
_NO_EXPRESSIONS = ("weft.pipelines.store.", "weft.io.", "weft.codes")
# Not functions: a cast, a type, and the windows of streaming SQL.
_CALLED = frozenset({"CAST", "DECIMAL", "SLIDING", "TUMBLING", "SESSION"})


def unknown_functions(advice: Advice) -> Iterator[str]:
    if advice.where.startswith(_NO_EXPRESSIONS) or not advice.where.startswith("weft."):
        return
    for name in _FUNCTION.findall(advice.text):
        if functions.find(name) is None and name not in _CALLED:
            yield f"there is no function {name}"
    if re.fullmatch(r"[A-Z_ ]+", advice.text) is None:  # a list of names is that of the refused ones itself
        yield from (f"{w} is refused" for w in _WORD.findall(advice.text) if w in functions._REFUSED)


_NOBODYS_CODE = "W9999"  # the example of a code that no error has
_CODE = re.compile(r"\bW\d{4}\b")


def unknown_codes(advice: Advice) -> Iterator[str]:
    unknown = set(_CODE.findall(advice.text)) - set(CODES) - {_NOBODYS_CODE}
    yield from (f"there is no code {code}" for code in sorted(unknown))


CHECKS: tuple[Callable[[Advice], Iterator[str]], ...] = (
    unknown_commands,
    unknown_options,
    unknown_arguments,
    unknown_with_options,
    unknown_keys,
    unknown_functions,
    unknown_codes,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_messages_and_pages_name_only_what_exists(check: Callable[[Advice], Iterator[str]]) -> None:
    problems = [f"{a.where}: {problem}" for a in (*MESSAGES, *DOCUMENTS) for problem in check(a)]
    assert not problems, "\n".join(problems)


WRONG: tuple[tuple[Callable[[Advice], Iterator[str]], str, str], ...] = (
    (unknown_commands, "weft.pipelines.run.a", "see `weft stream explode JOB`"),
    (unknown_commands, "weft.pipelines.run.a", "`weft run --resume` goes on"),
    (unknown_commands, "weft.cli.a", f"weft runs shows {HOLE}"),
    (unknown_commands, "weft.cli.a", "weft stream run JOB --anew"),
    (unknown_commands, "docs/cli.md:1", "| `weft runs [ls\\|forget] RUN` | runs |"),
    (unknown_commands, "weft.cli.a", "begin again: weft stream run JOB"),
    (unknown_options, "weft.pipelines.run.a", "begin again with --anew"),
    (unknown_arguments, "weft.joins.resolve.output:1", f"pass sufixes={HOLE}"),
    (unknown_with_options, "weft.streams.sql.a", "write 'join.max_rows' = '10'"),
    (unknown_with_options, "weft.streams.sql.a", "write 'late' = 'keep'"),
    (unknown_with_options, "docs/errors/index.md:1", " = help: write 'event.time.column' in its WITH"),
    (unknown_keys, "weft.pipelines.plan.operations.a", "write `mode: upsert`"),
    (unknown_keys, "weft.pipelines.model.normalize", "write `config_file: path`"),
    (unknown_functions, "weft.pipelines.run.failing", "correct the value, or use TRY_CAST"),
    (unknown_functions, "weft.expr.check", f"write SAFE_DIVIDE({HOLE})"),
    (unknown_codes, "weft.pipelines.run.a", "as W0999 says"),
)


@pytest.mark.parametrize(("check", "where", "text"), WRONG)
def test_advice_that_cannot_be_followed_is_seen(
    check: Callable[[Advice], Iterator[str]], where: str, text: str
) -> None:
    assert len(list(check(Advice(where, text)))) >= 1
    assert {check for check, _, _ in WRONG} == set(CHECKS)


RIGHT = (
    "`weft runs show LAST`, or `weft run --resume RUN`; `weft test record RUN --keys a=1`",
    "leave it out; `weft stream status JOB --rejects` shows them",
    f"weft run {HOLE} -p PERIOD",
    "pip install --upgrade weft",
    "write 'late' = 'side_output', or CAST(x AS date); `mode: merge`; see W0101",
)


@pytest.mark.parametrize("text", RIGHT)
def test_advice_that_can_be_followed_passes(text: str) -> None:
    for where in ("weft.streams.run.a:1", "weft.pipelines.plan.operations.a:1", "docs/cli.md:1"):
        assert [problem for check in CHECKS for problem in check(Advice(where, text))] == []


@pytest.mark.parametrize(
    ("example", "help"),
    [(name, help) for name, (_, help) in (*words.REFUSED_WORDS.items(), *functions._REFUSED.items())]
    + [(str(kind), help) for kind, (_, help) in tokens.REFUSED_TOKENS.items()],
)
def test_what_an_expression_is_to_be_written_as_parses(example: str, help: str) -> None:
    for text in re.findall(r"write (.*?)(?:$|; )", help):
        written = text.replace("AS type", "AS int")
        if re.search(r"[(<>=]", written) and not written.startswith(">="):
            assert expr.parse(written), example


SPEC = JoinSpec([("k", "k")])
JOINS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    **dict.fromkeys(("inner_join", "outer_join", "left_outer", "right_outer", "full_outer"), ((SPEC,), {})),
    "cross_join": ((), {}),
    "natural_asof": ((), {"order": AsofOrder("t", "t"), "exclude_shared": ["v"]}),
    "asof_join": ((AsofSpec([("k", "k")], order=AsofOrder("t", "t")),), {}),
    "interval_join": ((IntervalSpec([("k", "k")], order=AsofOrder("t", "t"), lower=0, upper=1),), {}),
}


@pytest.mark.filterwarnings("ignore")  # an as-of join may warn of the order of its rows
@pytest.mark.parametrize("method", JOINS)
def test_a_join_whose_columns_collide_names_arguments_that_it_takes(method: str) -> None:
    schema = Schema.of(k="long", t="long", v="long")
    sides = unplugged(schema), unplugged(schema)
    cursor, named = JOINS[method]
    with pytest.raises(ColumnCollisionError) as caught:
        getattr(sides[0], method)(sides[1], *cursor, **named)
    advised = set(re.findall(r"(?<![\w(])([a-z_]+)=", caught.value.help))
    assert advised
    assert advised <= set(inspect.signature(getattr(Relation, method)).parameters)
