"""The files of a workspace in the documentation read as the pages say.

A block of YAML whose first line is a remark with a path, ``# projects/fx_reporting.yml``, is a file in
a copy of the sample workspace; a block may hold several, each below its remark.  Such a file must read
without an error.  ``yaml raises W1003`` must give a finding with that code, and the ``text`` block
below is all that is found.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine_data import sample_workspace
from weft.errors import Diagnostic
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.check import check_workspace

ROOT = Path(__file__).parents[1]
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
_BLOCK = re.compile(
    r"^```yaml(?: raises (?P<code>W\d{4}))?\n(?P<body># \S+\.ya?ml\n.*?)^```\n"
    r"(?:\n?```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"^# (?P<path>\S+\.ya?ml)$", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """Files of a workspace in a page, and the finding that they must give."""

    page: Path
    line: int
    body: str
    code: str | None
    shown: str | None

    @property
    def files(self) -> dict[str, str | None]:
        starts = [*(m.start() for m in _FILE.finditer(self.body)), len(self.body)]
        parts = [self.body[a:b] for a, b in itertools.pairwise(starts)]
        return {part.split("\n", 1)[0].removeprefix("# "): part for part in parts}


def examples(page: Path, text: str) -> Iterator[Example]:
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Example(page, line, found["body"], found["code"], found["shown"])


def findings(root: Path) -> tuple[Diagnostic, ...]:
    """Return everything that is found in a workspace without running it."""
    loaded = load_workspace(root)
    catalog = replace(Catalog.of(loaded.readable), unread=loaded.unread)
    return loaded.merge_findings(check_workspace(catalog))


def check(example: Example, folder: Path, *, rewrite: bool) -> None:
    root = sample_workspace(folder, example.files)
    reported = findings(root)
    if example.code is None:
        errors = (f for f in reported if f.severity == "error")
        own = [f for f in errors if f.at is not None and f.at.file in example.files]
        assert own == [], "\n".join(map(str, own))
        return
    text = "\n".join(map(str, reported))
    assert example.code in {f.code for f in reported}, f"no {example.code} but\n{text}"
    printed = "".join(line.rstrip() + "\n" for line in text.splitlines())
    if example.shown is None or example.shown == printed:
        return
    assert rewrite, f"{example.page}:{example.line} gives\n{printed}\nand the page shows\n{example.shown}"
    page = example.page.read_text(encoding="utf-8")
    at = re.search(re.escape(example.body) + r"```\n\n?```text\n", page)
    assert at is not None
    rest = page[at.end() :].removeprefix(example.shown)
    example.page.write_text(page[: at.end()] + printed + rest, encoding="utf-8")


EXAMPLES = [
    pytest.param(e, id=f"{e.page.name}:{e.line}")
    for page in PAGES
    for e in examples(page, page.read_text(encoding="utf-8"))
]


@pytest.mark.golden
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_file_in_the_documentation_reads_as_the_page_says(
    example: Example, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    check(example, tmp_path, rewrite=request.config.getoption("--rewrite-golden"))


GOOD = "```yaml\n# projects/x.yml\nproject: x\ninput: gl\noperations: [{seq: 1, name: d, type: delete}]\n```\n"


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("delete", "filter"),
        GOOD.replace("yaml", "yaml raises W1003"),
        GOOD.replace("yaml", "yaml raises W1005").replace("delete", "filter") + "\n```text\nsomething else\n```\n",
    ],
)
def test_a_page_that_is_wrong_fails(text: str, tmp_path: Path) -> None:
    (example,) = examples(ROOT / "x.md", text)
    with pytest.raises(AssertionError):
        check(example, tmp_path, rewrite=False)


def test_a_page_that_is_right_passes(tmp_path: Path) -> None:
    (example,) = examples(ROOT / "x.md", GOOD)
    check(example, tmp_path, rewrite=False)
