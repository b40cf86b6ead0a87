"""The pages of the reference are what the code says, and leave nothing out."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
import typer

import weft
import weft.streams
import weft.testing
from reference_keys import KEYS
from reference_pages import EXAMPLES, GROUPS, PAGES, render, run_example, show, table
from weft.cli.main import app
from weft.expr import FUNCTIONS
from weft.joins.resolve.resolved import SameWindow
from weft.streams.sql.options import OPTIONS

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def headings(name: str) -> list[str]:
    return re.findall(r"^#{2,3} (.+)$", (REFERENCE / name).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.golden
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_what_the_code_says(name: str, request: pytest.FixtureRequest) -> None:
    file, text = REFERENCE / name, PAGES[name]()
    if request.config.getoption("--rewrite-golden"):
        file.write_text(text, encoding="utf-8")
    told = "write it again: .venv/bin/python -m pytest tests/test_reference.py --rewrite-golden"
    assert file.read_text(encoding="utf-8") == text, f"{file} is old; {told}"


def test_every_function_has_a_section_and_an_example_with_a_value() -> None:
    assert [title for title in headings("functions.md") if title in FUNCTIONS] == list(FUNCTIONS)
    assert list(EXAMPLES) == list(FUNCTIONS)
    assert set(GROUPS) <= set(FUNCTIONS)
    assert run_example("FLOOR") == (-3, "decimal(2,0)")
    assert run_example("SUM")[0] == 8
    assert [name for name, text in EXAMPLES.items() if f"{name}(" not in text] == []


def test_every_public_name_has_a_section_or_a_row() -> None:
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    assert [n for n in weft.__all__ if f"### weft.{n}\n" not in text and f"`{n}`" not in text and n != "streams"] == []
    assert [n for n in weft.streams.__all__ if f"### weft.streams.{n}\n" not in text] == []
    methods = [n for n in dir(weft.Relation) if not n.startswith("_")]
    assert [
        n
        for n in methods
        if f"### Relation.{n}\n" not in text and f"| `{n}` |" not in text and f"Relation.{n}`" not in text
    ] == []


def test_every_command_and_option_is_listed() -> None:
    text = (REFERENCE / "commands.md").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        if not command.hidden:
            assert f"## weft {name}" in text
    assert "`--allow-changed-inputs`" in text
    assert "`-p PERIOD`" in text


def test_every_key_of_a_file_has_a_meaning_and_no_other_has_one() -> None:
    text = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", text, re.MULTILINE)
    assert [key for key, meaning in rows if not meaning.strip()] == []
    assert {key.rpartition(".")[2] for key in KEYS} == {key for key, _ in rows}


def test_every_option_of_streaming_sql_is_listed() -> None:
    text = (REFERENCE / "stream_options.md").read_text(encoding="utf-8")
    assert [option.name for option in OPTIONS if f"| `{option.name}` |" not in text] == []


def sessions(name: str) -> list[str]:
    return re.findall(
        r"^```pycon\n(.*?)^```$", (REFERENCE / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize("text", sessions("python.md"), ids=lambda text: text.split("\n")[0][4:])
def test_a_session_of_the_reference_prints_what_it_shows(text: str) -> None:
    modules = (weft.streams, weft.testing, weft)
    names = {n: getattr(module, n) for module in modules for n in module.__all__} | {"SameWindow": SameWindow}
    shown = doctest.DocTestParser().get_doctest(text, names, "python.md", None, None)
    told: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(shown, out=told.append)
    assert not results.failed, "".join(told)


def test_docstrings_become_markdown() -> None:
    text = "Some ``code``::\n\n    a = 1\n\n    b = 2\n\nMore.\n\n>>> 1 + 1\n2\n\n>>> 3\n3"
    assert (
        render(text)
        == "Some `code`:\n\n```text\na = 1\n\nb = 2\n```\n\nMore.\n\n```pycon\n>>> 1 + 1\n2\n\n>>> 3\n3\n```"
    )
    assert table(["a"], [["x|y"]]) == "| a |\n| --- |\n| x\\|y |"
    assert [show(v) for v in (None, True, "a", 1.5, {"a": None})] == ["NULL", "true", "'a'", "1.5", "{'a': NULL}"]
