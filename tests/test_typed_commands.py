"""Commands in messages can be typed as they are: every name and path in them is one word of a shell."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft
from command_line import weft as run_weft

SOURCE = Path(weft.__file__).parent
DATA = Path(__file__).parents[0] / "data" / "streams" / "orders_shipments"
_COMMAND = re.compile(r"(?:^|`|: )weft (?:[a-z-]+\b|$)")
# Parts of ids and numbers that Weft makes itself, and names of its own.
_SAFE = re.compile(
    r"short|short_id\(.*\)|code|workspace_option|new\.version|c\.name|connector\.name|tag|quote_for_shell\(.*\)"
)
NO_COMMANDS = {("cli/main.py", "engine_version()"), ("cli/documents.py", "command")}
"""The version, and the title of a schema."""


def unquoted(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the values that a command in an f-string takes without quoting them."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        inside = False
        for part in node.values:
            if isinstance(part, ast.Constant):
                text = str(part.value)
                opened = list(_COMMAND.finditer(text))
                if opened:
                    inside = "`" not in text[opened[-1].end() :]
                elif "`" in text:
                    inside = False
            elif inside and isinstance(part, ast.FormattedValue):
                value = ast.unparse(part.value)
                if part.conversion != -1 or not _SAFE.fullmatch(value):
                    yield node.lineno, value


def test_values_in_commands_are_quoted_for_a_shell() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    wrong = [(str(f.relative_to(SOURCE)), *one) for f in files for one in unquoted(ast.parse(f.read_text()))]
    assert [one for one in wrong if (one[0], one[2]) not in NO_COMMANDS] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("f'`weft run {name}` runs it'", ["name"]),
        ("f'weft -C {root} validate'", ["root"]),
        ("f'`weft run {quote_for_shell(name)} -p {period}`'", ["period"]),
        ("f'`weft run --resume {short}` goes on with {name}'", []),
        ("f'weft test {name!r}'", ["name"]),
    ],
)
def test_unquoted_values_are_seen(text: str, wrong: list[str]) -> None:
    assert [value for _, value in unquoted(ast.parse(text))] == wrong


def test_what_init_says_to_type_next_works_in_a_folder_with_a_space(tmp_path: Path) -> None:
    made = run_weft("init", tmp_path / "my work $HOME", "--json")
    for step in made.document["next"][:1]:
        program, *words = shlex.split(step)
        assert program == "weft"
        assert run_weft(*words).code == 0


def test_what_a_stream_command_says_to_type_next_works_for_a_file_with_a_space(tmp_path: Path) -> None:
    (tmp_path / "all my jobs").mkdir()
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    (tmp_path / "orders_shipments.sql").rename(tmp_path / "all my jobs" / "it's a job.sql")
    ran = run_weft("stream", "status", "all my jobs/it's a job.sql", "--json", root=tmp_path)
    (help,) = [d["help"] for d in ran.document["diagnostics"]]
    commands = re.findall(r"`(weft [^`]+)`", help)
    assert len(commands) == 2
    for command in commands:
        assert shlex.split(command)[3:] == ["all my jobs/it's a job.sql"]


def test_a_job_is_known_by_its_name_wherever_a_message_names_it(tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    assert run_weft("stream", "check", "orders_shipments", root=tmp_path).code == 0
