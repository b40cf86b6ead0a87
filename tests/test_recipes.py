"""Every function, strategy and operation has the entries that CONTRIBUTING lists for a new one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import weft
from weft.expr.functions import FUNCTIONS
from weft.pipelines.model.values import OperationType

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| `(?P<file>[^`]+)` \| (?P<entries>.+) \|$", re.MULTILINE)
_ENTRY = re.compile(r"`(?P<text>[^`]*\{[Nn]ame\}[^`]*|[^`]*\{NAME\}[^`]*|def [a-z_]+\()`")
_PATH = re.compile(r"`((?:src|tests|docs)/[^`{}*]+)`")
REWRITTEN = {"IF", "AND", "OR", "NOT", "ISNULL", "NULLIF", "MOD", "DATE", "DATEADD", "COUNT_ALL"}
"""Functions that are read as operators or as another function."""
RECIPES = {
    "A function of the expression language": tuple(name for name in FUNCTIONS if name not in REWRITTEN),
    "A join strategy": tuple(name for name in weft.asof_strategies() if name != "auto"),
    "An operation": get_args(OperationType),
}


def entries(title: str) -> list[tuple[str, str]]:
    """Return the files of a recipe, each with a text that it must contain."""
    recipe = PAGE[PAGE.index(f"**{title}.**") :].partition("\n\n**")[0]
    rows = [(m["file"], m["entries"]) for m in _ROW.finditer(recipe)]
    return [(file, entry["text"]) for file, text in rows for entry in _ENTRY.finditer(text)]


def missing(title: str, name: str) -> list[tuple[str, str]]:
    """Return the entries that something of a name lacks."""

    def fill(template: str) -> str:
        return template.replace("{name}", name).replace("{Name}", name.title()).replace("{NAME}", name)

    def text(file: str) -> str:
        path = ROOT / fill(file)
        if path.is_dir():
            return "".join(module.read_text(encoding="utf-8") for module in sorted(path.glob("*.py")))
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    return [(fill(file), fill(entry)) for file, entry in entries(title) if fill(entry) not in text(file)]


@pytest.mark.parametrize(("title", "name"), [(t, n) for t, names in RECIPES.items() for n in names])
def test_what_is_there_has_every_entry_of_its_recipe(title: str, name: str) -> None:
    assert missing(title, name) == []


@pytest.mark.parametrize(("title", "files"), list(zip(RECIPES, (3, 3, 8), strict=True)))
def test_what_is_new_lacks_every_entry(title: str, files: int) -> None:
    assert len(missing(title, "pivot")) == len(entries(title)) >= files


def test_every_path_of_the_page_exists() -> None:
    paths = set(_PATH.findall(PAGE)) - {"src/weft/io/spark/orc.py"}  # the file of the example
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
