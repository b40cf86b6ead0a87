"""The pages below ``docs/reference``, written from the code: functions, options, commands, settings and the Python API."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import typer

import weft
import weft.streams
import weft.testing
from reference_keys import describe
from weft.cli.main import app
from weft.core.spec import Spec
from weft.core.types import Schema
from weft.errors import WeftError
from weft.expr import FUNCTIONS, TableScope, Typed, check, evaluate, evaluate_aggregate, parse
from weft.expr.functions import Function, in_fragments
from weft.joins.relation import Relation
from weft.pipelines.model.build import SPECS
from weft.pipelines.model.normalize import Kind
from weft.pipelines.model.schemas import json_schema
from weft.streams.sql.options import OPTIONS, Owner, option_table, options_of

NOTE = "<!-- `make golden` writes this page from the code. -->"


def page(title: str, intro: str, *parts: str) -> str:
    """Return a page of Markdown."""
    return "\n\n".join([f"# {title}", NOTE, intro, *parts]) + "\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown; a bar in a cell would end it."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


# Functions of the expression language.
GROUPS = {
    "IF": "Conditions and NULL",
    "ABS": "Numbers",
    "CONCAT": "Strings",
    "DATE": "Dates and times",
    "LABEL_SET": "Maps",
    "SUM": "Aggregates",
}
"""The title of each group by its first function."""

_NULLS = next(field.default for field in dataclasses.fields(Function) if field.name == "nulls")
_TYPES = "boolean integer long decimal(10,2) double string date timestamp map<string,integer>".split()
_COLUMNS = Schema.of(**{f"c{i}": dtype for i, dtype in enumerate(_TYPES)})
# Arguments that must be constants, and stand for themselves when the types of the others are tried.
_CONSTANTS = {("DATE_TRUNC", 0): "'month'", ("ROUND", 1): "1"}

# An example for each function over the columns below.
ROW: dict[str, tuple[str, object]] = {
    "amount": ("decimal(10,2)", decimal.Decimal("12.50")),
    "quantity": ("integer", 7),
    "name": ("string", " Ada Lovelace "),
    "note": ("string", None),
    "day": ("date", dt.date(2026, 1, 31)),
    "at": ("timestamp_ntz", dt.datetime(2026, 1, 31, 14, 45)),  # noqa: DTZ001
    "labels": ("map<string,string>", {"region": "EU"}),
}
AMOUNTS = (3, None, 5)
EXAMPLES = {
    "IF": "IF(quantity > 5, 'many', 'few')",
    "AND": "AND(quantity > 5, amount < 10)",
    "OR": "OR(quantity > 5, amount < 10)",
    "NOT": "NOT(quantity > 5)",
    "ISNULL": "ISNULL(note)",
    "COALESCE": "COALESCE(note, 'none')",
    "NULLIF": "NULLIF(quantity, 7)",
    "ABS": "ABS(-2.5)",
    "FLOOR": "FLOOR(-2.5)",
    "CEIL": "CEIL(2.1)",
    "ROUND": "ROUND(2.345, 2)",
    "MOD": "MOD(-7, 3)",
    "MIN": "MIN(quantity, 10)",
    "MAX": "MAX(quantity, 10)",
    "CONCAT": "CONCAT('W', '-', '01')",
    "UPPER": "UPPER('weft')",
    "LOWER": "LOWER('WEFT')",
    "TRIM": "TRIM(name)",
    "LEN": "LEN('weft')",
    "LEFT": "LEFT('temporal', 4)",
    "RIGHT": "RIGHT('temporal', 4)",
    "SUBSTRING": "SUBSTRING('temporal', 5, 3)",
    "CONTAINS": "CONTAINS(name, 'Ada')",
    "REPLACE": "REPLACE('2026/01', '/', '-')",
    "DATE": "DATE('2026-01-31')",
    "TODAY": "TODAY()",
    "YEAR": "YEAR(day)",
    "MONTH": "MONTH(day)",
    "DAY": "DAY(at)",
    "DATEDIFF": "DATEDIFF(DATE '2026-02-02', day)",
    "DATEADD": "DATEADD(day, 1)",
    "DATE_TRUNC": "DATE_TRUNC('hour', at)",
    "LABEL_SET": "LABEL_SET(labels, 'tier', 'gold')",
    "LABEL_GET": "LABEL_GET(labels, 'region')",
    "LABEL_REMOVE": "LABEL_REMOVE(labels, 'region')",
    "SUM": "SUM(n)",
    "AVG": "AVG(n)",
    "COUNT": "COUNT(n)",
    "COUNT_ALL": "COUNT_ALL()",
    "MIN_AGG": "MIN_AGG(n)",
    "MAX_AGG": "MAX_AGG(n)",
}


def functions() -> str:
    """Return the page of the functions."""
    parts = []
    for name, function in FUNCTIONS.items():
        if name in GROUPS:
            parts.append(f"## {GROUPS[name]}")
        parts.append(describe_function(function))
    columns = table(["column", "type", "value"], ([f"`{n}`", f"`{t}`", f"`{show(v)}`"] for n, (t, v) in ROW.items()))
    return page(
        "Functions of expressions",
        f"The {len(FUNCTIONS)} functions of expressions in pipelines, in predicates of joins and in streaming SQL. Names are not\n"
        "case-sensitive. The types are those that an argument may have and that the result has then. An argument that is NULL\n"
        "makes the result NULL unless the function says otherwise. Operators such as `+`, `=`, `BETWEEN`, `IN`, `LIKE`, `CASE` and\n"
        "`CAST(x AS type)` complete the language; [the rules of names](../operations.md#names) apply to columns.",
        "The examples use this row, and `TODAY()` is 2026-02-01:",
        columns,
        "Aggregates are allowed in the aggregations of an operation only. Their examples use a column `n` with the values\n"
        f"{', '.join(f'`{show(v)}`' for v in AMOUNTS)}.",
        *parts,
    )


def describe_function(function: Function) -> str:
    """Return the section of a function."""
    accepted, result = try_types(function)
    names = [part.strip(" .[]") for part in re.split(r"[,\[]", function.takes) if part.strip(" .[]")]
    names += ["..."] * (len(accepted) - len(names))
    rows = [[f"`{name}`", types] for name, types in zip(names, accepted, strict=False)]
    known = [f"The result is {result}."]
    if function.nulls != _NULLS:
        known.append(f"NULL: {function.nulls}.")
    if not function.aggregate and not in_fragments(function):
        known.append("Predicates of joins and streaming SQL do not have it.")
    if function.aliases:
        known.append(f"Other names: `{'`, `'.join(function.aliases)}`.")
    value, dtype = run_example(function.name)
    parts = [
        f"### {function.name}",
        f"`{function.name}({function.takes})`: {function.doc}.",
        *([table(["argument", "types"], rows)] if rows else []),
        " ".join(known),
        fenced("text", f"{EXAMPLES[function.name]}\n= {show(value)}  ({dtype})"),
    ]
    return "\n\n".join(parts)


def run_example(name: str) -> tuple[object, str]:
    """Return the value of the example of a function and its type."""
    if FUNCTIONS[name].aggregate:
        rows: list[Any] = [{("t", 0): n}.get for n in AMOUNTS]
        typed = check(parse(EXAMPLES[name]), TableScope({"t": Schema.of(n="integer")}), aggregates=True)
        return evaluate_aggregate(typed, rows), str(typed.dtype)
    scope = TableScope({"t": Schema.of(**{column: dtype for column, (dtype, _) in ROW.items()})})
    typed = check(parse(EXAMPLES[name]), scope)
    row: dict[Any, object] = {("t", i): value for i, (_, value) in enumerate(ROW.values())}
    return evaluate(typed, row.get, today=dt.date(2026, 2, 1)), str(typed.dtype)


def show(value: object) -> str:
    """Return a value as expressions write it."""
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{show(k)}: {show(v)}" for k, v in value.items()) + "}"
    return f"'{value}'" if isinstance(value, str) else str(value)


def try_types(function: Function) -> tuple[list[str], str]:
    """Return the types that each argument may have, and what the type of the result is: found by asking the checker."""
    most = function.most if function.most is not None else max(function.least, 2)
    results: dict[tuple[str, ...], str] = {}
    choices = [[_CONSTANTS[function.name, i]] if (function.name, i) in _CONSTANTS else _TYPES for i in range(most)]
    for types in itertools.product(*choices):
        if (typed := _type_of(function, types)) is not None:
            results[types] = str(typed.dtype)
    accepted = [
        "a constant" if (function.name, i) in _CONSTANTS else _name_types({types[i] for types in results})
        for i in range(most)
    ]
    return accepted, _describe_result(results)


def _name_types(accepted: set[str]) -> str:
    missing = [t for t in _TYPES if t not in accepted]
    if len(missing) <= 1:
        return " but ".join(["any", *(f"`{t}`" for t in missing)])
    return ", ".join(f"`{t}`" for t in _TYPES if t in accepted)


def _type_of(function: Function, types: Iterable[str]) -> Typed | None:
    args = [f"c{_TYPES.index(t)}" if t in _TYPES else t for t in types]
    try:
        tree = parse(f"{function.name}({', '.join(args)})")
        return check(tree, TableScope({"t": _COLUMNS}), aggregates=function.aggregate)
    except WeftError:
        return None


def _describe_result(results: dict[tuple[str, ...], str]) -> str:
    found = dict.fromkeys(results.values())
    if len(found) == 1:
        return f"`{next(iter(found))}`"
    width = len(next(iter(results)))
    for i in range(width):
        by_type: dict[str, set[str]] = {}
        for types, result in results.items():
            by_type.setdefault(types[i], set()).add(result)
        if all(len(r) == 1 for r in by_type.values()):
            pairs = {t: next(iter(r)) for t, r in by_type.items()}
            if all(t == r for t, r in pairs.items()):
                return "of the type of the argument" if width == 1 else "of the type of the first argument"
            return ", ".join(f"`{r}` for `{t}`" for t, r in pairs.items())
    return "of the common type of the arguments"


# Options of streaming SQL.
_OWNERS: dict[Owner, tuple[str, str]] = {
    "stream": ("Input streams", "In the `WITH` of `CREATE STREAM name (columns)`."),
    "table": ("Tables", "In the `WITH` of `CREATE TABLE name (columns)`."),
    "sink": ("Sinks", "In the `WITH` of `CREATE STREAM name WITH (...) AS SELECT` and of the sink of `INSERT INTO`."),
    "join": ("Joins", "In the `WITH` after a query, or beside the options of the sink."),
    "job": ("Jobs", "With `SET 'option' = 'value';` before the first statement."),
}


def stream_options() -> str:
    """Return the page of the options of streaming SQL."""
    parts = []
    cells: dict[Any, list[str]] = {}
    for option, line in zip(OPTIONS, option_table().splitlines()[2:], strict=True):
        cells[option] = [cell.strip() for cell in line.strip("|").split(" | ")]
    for owner, (title, intro) in _OWNERS.items():
        rows = []
        for option in options_of(owner):
            name, _, value, default, doc = cells[option]
            rows.append([name, value, default, doc, ", ".join(option.needs)])
        parts += [f"## {title}", intro, table(["option", "value", "default", "description", "only for"], rows)]
    return page(
        "Options of streaming SQL",
        "Every option of a streaming job, by the statement that takes it. An unknown option or value is an error that names the nearest\n"
        "valid one. [Streaming SQL](../streams.md) describes the statements.",
        *parts,
    )


# Commands.
def commands() -> str:
    """Return the page of the commands and their options."""
    root = typer.main.get_command(app)
    parts = []
    for path, command in _walk(root, ()):
        parts.append(f"## {' '.join(('weft', *path))}")
        parts.append(" ".join((command.help or "").split()))
        given = [p for p in command.params if p.param_type_name == "argument"]
        names = [p.metavar or p.name.upper() for p in given]
        usage = [n if p.required else f"[{n}]" for p, n in zip(given, names, strict=True)]
        parts.append(fenced("text", " ".join(("weft", *path, *usage))))
        parts += _describe_parameters(command)
    return page(
        "Commands and options",
        "Every command of `weft` with its arguments and options, as `weft COMMAND --help` prints them.\n"
        "[The command line](../cli.md) describes documents, exit codes and how commands work together.",
        "## Options of every command",
        "They may be before or after the name of the command.",
        *_describe_parameters(root),
        *parts,
    )


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, below in inner.items():
        if not below.hidden:
            yield from _walk(below, (*path, name))


def _describe_parameters(command: Any) -> Iterator[str]:
    shown = [p for p in command.params if not getattr(p, "hidden", False) and p.name != "help"]
    rows = []
    for parameter in shown:
        metavar = parameter.metavar or parameter.name.upper()
        is_argument = parameter.param_type_name == "argument"
        names = [metavar] if is_argument else [*parameter.opts, *parameter.secondary_opts]
        value = "" if is_argument or parameter.is_flag else f" {metavar}"
        default = parameter.default
        is_plain = not callable(default) and default not in (None, False, (), [], "", ...)
        notes = "required" if parameter.required else f"`{default}`" if is_plain else ""
        written = ", ".join(f"`{name}{value}`" for name in names)
        rows.append([written, notes, " ".join((parameter.help or "").split())])
    if rows:
        yield table(["argument or option", "default", "description"], rows)


# Settings and entities.
_KINDS: dict[Kind, tuple[str, str]] = {
    "settings": ("weft.yml", "workspace.md#weftyml"),
    "calendar": ("Calendars", "workspace.md#resolvers-calendars-scenarios"),
    "datasource": ("Datasources", "workspace.md#datasources"),
    "resolver": ("Resolvers", "resolvers.md"),
    "dataset": ("Datasets", "workspace.md#datasets"),
    "project": ("Projects", "operations.md"),
    "scenario": ("Scenarios", "scenarios.md"),
}


_MORE = {
    "workspace": "the workspace",
    "resolvers": "resolvers and data",
    "operations": "operations",
    "scenarios": "scenarios",
}


def settings() -> str:
    """Return the page of the keys of workspace files."""
    parts = []
    specs = {spec.__name__: spec for spec in _below(Spec)}
    for kind, (title, link) in _KINDS.items():
        schema: dict[str, Any] = json_schema(kind)
        definitions = dict(schema["$defs"])
        entity = definitions.pop("Entity", schema)
        definitions.pop("Named", None)
        parts += [
            f"## {title}",
            _sentence(entity, f"More on it: [{_MORE[link.partition('.')[0]]}](../{link})."),
            _keys(title, entity, kind, SPECS[kind]),
        ]
        for name, definition in definitions.items():
            first = definition.get("anyOf", [definition])[0]
            if "properties" in first:
                section = f"{title}: {_words(name)}"
                parts += [f"### {section}", _sentence(first, ""), _keys(section, first, kind, specs.get(name))]
    return page(
        "Keys of workspace files",
        "Every key of the YAML files of a workspace with its type and default. An unknown key is an error that names the nearest one.\n"
        "`weft schema export` writes the same as JSON Schemas for editors.",
        *filter(None, parts),
    )


def _sentence(definition: dict[str, Any], more: str) -> str:
    return f"{definition.get('description', '')} {more}".strip()


def _words(name: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return words.removeprefix("written ").replace(" def", "")


def _below(spec: type[Spec]) -> Iterator[type[Spec]]:
    for inner in spec.__subclasses__():
        yield inner
        yield from _below(inner)


def _keys(section: str, definition: dict[str, Any], kind: Kind, spec: type[Spec] | None) -> str:
    required = definition.get("required", ())
    own = dataclasses.fields(spec) if spec is not None else ()  # type: ignore[arg-type]
    defaults = {field.metadata.get("key", field.name): field.default for field in own}
    rows = []
    for key, value in definition["properties"].items():
        default = defaults.get(key)
        is_plain = isinstance(default, str | int | float) and default != ""
        told = "required" if key in required else f"`{_plain(default)}`" if is_plain else ""
        rows.append([f"`{key}`", _type(value, kind), told, describe(section, key)])
    return table(["key", "value", "default", "meaning"], rows) if rows else "It has no keys."


def _plain(value: object) -> str:
    return show(value) if isinstance(value, bool) else str(value)


def _type(schema: dict[str, Any], kind: Kind) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = f"{_KINDS[kind][0]}: {_words(name)}"
        return f"[{_words(name)}](#{_anchor(target)})"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{v}`" for v in schema.get("enum", [schema.get("const")]) if v is not None)
    if "description" in schema:
        return "an expression" if "expression" in schema["description"] else "name or id"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            found = dict.fromkeys(_type(s, kind) for s in schema[several] if s.get("type") != "null")
            return " or ".join(found)
    of = schema.get("type")
    if of == "array":
        items = schema.get("items") or {}
        return f"list of {_type(items, kind)}" if items else "list"
    if of == "object":
        values = schema.get("additionalProperties")
        return f"mapping to {_type(values, kind)}" if isinstance(values, dict) and values else "mapping"
    names = [of] if isinstance(of, str) else list(of or ["value"])
    return " or ".join(names)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


# The Python API.
@dataclass(frozen=True)
class Doc:
    """A docstring, taken apart: the text above its sections, and each section."""

    text: str
    sections: dict[str, str]

    @classmethod
    def of(cls, thing: Any) -> Doc:
        found = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(thing) or "", flags=re.MULTILINE)
        return cls(found[0].strip(), {n: t.strip("\n") for n, t in zip(found[1::2], found[2::2], strict=True)})


NATURAL = "natural_inner natural_left natural_right natural_full natural_semi natural_anti".split()
DIRECTED = "inner_join left_outer right_outer full_outer semi_join anti_join cross_join outer_join left_inner left_right".split()
TEMPORAL = "natural_asof asof_join asof_join_all interval_join window_join".split()
DEPRECATED = "join left_join join_on join_asof".split()
SPEC_NAMES = (
    "AsofSpec AsofOrder IntervalSpec WindowSpec JoinSpec ColumnPredicate ExpressionPredicate JoinProjection".split()
)


# The slots of a relation, which Python gives no docstring.
_ATTRIBUTES = {
    "df": "The DataFrame.",
    "lineage": "The join that made the relation, or None.",
    "ordering": "The order marker that `order_by` sets, or None.",
    "schema": "The names and types of the columns.",
    "session": "The Spark session of the DataFrame.",
}


def python() -> str:
    """Return the page of the Python API."""
    joins = {*NATURAL, *DIRECTED, *TEMPORAL, *DEPRECATED}
    members = dict(inspect.getmembers(Relation))
    own = [n for n in members if not n.startswith("_") and n not in joins]
    values = [n for n in own if not callable(members[n])]
    errors = [n for n in weft.__all__ if _is_exception(getattr(weft, n))]
    functions = [n for n in weft.__all__ if inspect.isfunction(getattr(weft, n))]
    rest = [
        n for n in weft.__all__ if n not in {*errors, *functions, *SPEC_NAMES, "Relation", "streams", "JoinPredicate"}
    ]
    methods: Callable[[Iterable[str]], list[str]] = lambda names: list(_describe_all("Relation.", members, names))  # noqa: E731
    return page(
        "Python API",
        "Every public name of `weft` with its parameters. [Joins by key](../joins.md) and [temporal joins](../temporal_joins.md) describe\n"
        "the joins with examples that print their rows, [streaming SQL](../streams.md#python-api) the functions for streams.",
        "## Relations",
        *_describe_all("weft.", vars_of(weft), ["relation"]),
        "### weft.Relation",
        render(Doc.of(Relation).text),
        *(
            [
                table(
                    ["attribute", "what it is"],
                    ([f"`{n}`", _ATTRIBUTES.get(n) or _first_line(members[n])] for n in values),
                )
            ]
            if values
            else []
        ),
        *methods(n for n in own if n not in values),
        "## Temporal joins",
        *methods(TEMPORAL),
        "## Natural joins",
        *methods(NATURAL),
        "## Directed joins",
        *methods(DIRECTED),
        "## Specs",
        *_describe_all("weft.", vars_of(weft), SPEC_NAMES),
        "`JoinPredicate` is the type of either, a `ColumnPredicate` or an `ExpressionPredicate`.",
        "## Explanations, counts and other functions",
        *_describe_all("weft.", vars_of(weft), [n for n in functions if n != "relation"]),
        *_describe_all("weft.", vars_of(weft), rest),
        "## Streams",
        *_describe_all("weft.streams.", vars_of(weft.streams), sorted(weft.streams.__all__, key=str.swapcase)),
        "## Errors and warnings",
        "Each error is also the built-in exception in the second column. [Errors](../errors/index.md) lists the codes.",
        table(["class", "also", "meaning"], (_exception_row(n) for n in errors)),
        "## Tools for tests",
        "Names of `weft.testing`.",
        *_describe_all(
            "weft.testing.", vars_of(weft.testing), [n for n in weft.testing.__all__ if n.islower() or n[1:2].islower()]
        ),
        "## Deprecated methods",
        "They call the method that replaces them and warn; see [what replaces the old methods](../joins.md#what-replaces-the-old-methods).",
        table(["method", "what it does"], ([f"`Relation.{n}`", _first_line(members[n])] for n in DEPRECATED)),
    )


def vars_of(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


def _is_exception(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


def _first_line(thing: Any) -> str:
    text = inspect.getdoc(thing) or ""
    return _inline(" ".join(text.split("\n\n")[0].split()))


def _exception_row(name: str) -> list[str]:
    found = getattr(weft, name)
    also = [
        c.__name__
        for c in found.__mro__[1:]
        if c.__module__ == "builtins" and c not in (Exception, BaseException, object)
    ]
    return [f"`{name}`", ", ".join(f"`{n}`" for n in also[:1]), _first_line(found)]


def _describe_all(prefix: str, members: dict[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Yield a section for each name; names with one signature and one list of parameters share theirs."""
    shared: dict[tuple[str, str], list[str]] = {}
    for name in names:
        key = (_signature(name, members[name]), Doc.of(members[name]).sections.get("Parameters", ""))
        shared.setdefault((key[0].partition("(")[2], key[1]) if key[1] else (name, ""), []).append(name)
    for together in shared.values():
        for name in together:
            yield f"### {prefix}{name}"
            yield fenced("py", _signature(name, members[name]))
            doc = Doc.of(members[name])
            yield render(doc.text)
            last = name == together[-1]
            if not last:
                yield f"The parameters are those of [{together[-1]}](#{_anchor(prefix + together[-1])})."
            yield from _sections(doc, with_parameters=last)


def _sections(doc: Doc, *, with_parameters: bool) -> Iterator[str]:
    for title, body in doc.sections.items():
        if title == "Examples":
            yield render(body)
        elif title in ("Parameters", "Attributes") and with_parameters:
            yield _list_parameters(body)
        elif title not in ("Parameters", "Attributes") and with_parameters:
            first, _, text = body.partition("\n")
            text = textwrap.dedent(text)
            yield f"**{title}** `{first}`: {render(text)}" if text else f"**{title}** {render(body)}"


def _list_parameters(body: str) -> str:
    rows = []
    for found in re.finditer(r"^(?P<names>\S.*)\n(?P<text>(?:(?: .*)?(?:\n|\Z))*)", body, re.MULTILINE):
        names = ", ".join(f"`{n.strip()}`" for n in found["names"].split(","))
        rows.append([names, _inline(" ".join(found["text"].split()))])
    return table(["parameter", "meaning"], rows)


def _inline(text: str) -> str:
    return (
        re.sub(r"(?<!`)`{1,2}([^`\n]+)`{1,2}(?!`)", r"`\1`", text).replace("<", "&lt;")
        if "`" not in text
        else _code(text)
    )


def _code(text: str) -> str:
    return re.sub(r"`{1,2}([^`]+)`{1,2}", r"`\1`", text)


def render(text: str) -> str:
    """Return the text of a docstring as Markdown: literal blocks and sessions become code."""
    parts: list[str] = []
    blocks = re.split(r"\n{2,}", text.strip("\n"))
    while blocks:
        block = blocks.pop(0)
        if block.lstrip().startswith(">>>"):
            session = [block]
            while blocks and blocks[0].lstrip().startswith(">>>"):
                session.append(blocks.pop(0))
            parts.append(fenced("pycon", textwrap.dedent("\n\n".join(session))))
        elif block.rstrip().endswith("::"):
            intro = block.rstrip().removesuffix("::").rstrip()
            if intro:
                parts.append(_code(intro) + ":")
            literal = []
            while blocks and blocks[0].startswith(" "):
                literal.append(blocks.pop(0))
            parts.append(fenced("text", textwrap.dedent("\n\n".join(literal))))
        else:
            parts.append(_code(block))
    return "\n\n".join(parts)


def _signature(name: str, thing: Any) -> str:
    """Return a call of something with its parameters, a parameter on each line if one line is too short."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    given = [p for p in signature.parameters.values() if p.name not in ("self", "unexpected")]
    kinds = inspect.Parameter
    written: list[str] = []
    for i, parameter in enumerate(given):
        if parameter.kind is kinds.KEYWORD_ONLY and not any(
            p.kind in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL) for p in given[:i]
        ):
            written.append("*")
        written.append(_parameter(parameter))
        after = given[i + 1 : i + 2]
        if parameter.kind is kinds.POSITIONAL_ONLY and not (after and after[0].kind is kinds.POSITIONAL_ONLY):
            written.append("/")
    returned = signature.return_annotation
    arrow = "" if returned is signature.empty or isinstance(thing, type) else f" -> {_annotation(returned)}"
    line = f"{name}({', '.join(written)}){arrow}"
    return line if len(line) <= 88 else f"{name}(\n" + "".join(f"    {w},\n" for w in written) + f"){arrow}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    annotated = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
    default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
    return f"{stars}{parameter.name}{annotated}{default}"


def _default(value: Any) -> str:
    text = repr(value).replace("'", '"')
    return text if re.fullmatch(r"[\w'\"(), .\[\]{}+-]*", text) else "..."


def _annotation(annotation: Any) -> str:
    return (
        annotation.replace("'", '"')
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", str(annotation))
    )


PAGES: dict[str, Callable[[], str]] = {
    "functions.md": functions,
    "stream_options.md": stream_options,
    "commands.md": commands,
    "settings.md": settings,
    "python.md": python,
}
"""How each page is written, by its name below ``docs/reference``."""
