"""A workspace full of planted mistakes: each is reported at its exact location, and nothing else is.

A mistake is marked in its line: ``#! W1002 selecter`` is a finding with that code whose caret run
is under that text; ``#!+2 W0207 amout`` marks one that is two lines further down.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine_data import DATA
from weft.core.source import Source
from weft.errors import Diagnostic
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.check import check_workspace

PLANTED = DATA / "planted"
FILES = tuple(sorted(path for path in PLANTED.rglob("*.yml")))
_MARK = re.compile(r"#!(?:\+(\d))? (W\d{4})(?: (.*?))?\s*(?=#!|$)")


def marks(path: Path) -> Iterator[tuple[str, int, str, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for mark in _MARK.finditer(line):
            yield path.relative_to(PLANTED).as_posix(), number + int(mark[1] or 0), mark[2], mark[3] or ""


def found() -> tuple[Diagnostic, ...]:
    loaded = load_workspace(PLANTED)
    catalog = replace(Catalog.of(loaded.readable), unread=loaded.unread)
    return loaded.merge_findings(check_workspace(catalog))


def spot(finding: Diagnostic) -> tuple[str | None, int, str, str]:
    assert isinstance(finding.at, Source), finding
    return finding.at.file, finding.at.line, finding.code, finding.at.text[finding.at.start : finding.at.end]


FOUND = found()


def test_every_planted_mistake_is_found_at_its_place_and_nothing_else_is() -> None:
    wanted = Counter(mark for path in FILES for mark in marks(path))
    assert wanted.total() >= 100
    assert Counter(spot(f) for f in FOUND) == wanted


def test_every_finding_says_the_next_step() -> None:
    ours = [f for f in FOUND if f.code >= "W1000"]
    assert len(ours) >= 90
    assert [f for f in ours if not f.help] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_mistakes_of_a_file_are_explained(path: Path, golden: Callable[[str, str], None]) -> None:
    name = path.relative_to(PLANTED).as_posix()
    reported = sorted((f for f in FOUND if f.at is not None and f.at.file == name), key=lambda f: spot(f)[1:3])
    golden(f"validate/{name.removesuffix('.yml').replace('/', '.')}.txt", "\n".join(map(str, reported)) + "\n")
