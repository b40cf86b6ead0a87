"""The how-to pages work as they are written: each block runs in order, in an empty folder, and prints what is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from installs import ROOT
from typed_pages import InProcess, follow, steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "howto").glob("*.md")) if page.stem != "index"}


@pytest.mark.golden
@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_what_it_shows(
    name: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    follow(PAGES[name], InProcess(tmp_path, spark), rewrite=request.config.getoption("--rewrite-golden"))


def test_the_figures_of_the_sizing_page_are_those_of_the_benchmarks() -> None:
    rows = re.findall(r"^\| \d+M \| (.+) \| (.+) \|$", PAGES["sizing"].read_text(encoding="utf-8"), re.MULTILINE)
    benchmarks = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    seconds = [re.findall(rf"^\| uniform-{n}M: [^|]*\| ([\d.]+) \|", benchmarks, re.MULTILINE) for n in (1, 10, 50)]
    (memory,) = re.findall(r"peak memory of a task [^|]*\| ([^|]*) \|", benchmarks)
    assert [[row[0]] for row in rows] == seconds
    assert [row[1] for row in rows] == memory.split(", ")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_an_answer_that_runs_its_traps_and_links(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert steps(text)
    assert text.split("\n", 1)[0].endswith("?")
    assert "Answer" in titles[:1]
    assert titles[-2:] == ["Traps", "See also"]
