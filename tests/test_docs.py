"""The documents hold: every code has its page, every example runs, every link leads somewhere.

A block marked ``python`` is run; a ``text`` block right below it is what it prints.  A block marked
``python raises W0101`` must end in an error with that code, and the ``text`` block below is its message.
The blocks of a file share their names, except that each section of the pages in ``docs/errors`` is on its own, below
the first block of its page when it uses names from there.  A block that uses ``spark`` gets a session.  A block marked ``py`` is shown and not run.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from test_layers import MODULES
from weft.errors import CODES, WeftError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
ERRORS = ROOT / "docs" / "errors"
FAMILIES = sorted(ERRORS.glob("W*.md"))
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
_BLOCK = re.compile(
    r"^```python(?: raises (?P<code>W\d{4}))?\n(?P<body>.*?)^```\n(?:\n?```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]\n]+\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A block of code in a page: its location, what it must print or raise."""

    line: int
    body: str
    code: str | None
    shown: str | None


@dataclass(frozen=True)
class Example:
    """Blocks that share their names."""

    page: Path
    name: str
    blocks: tuple[Block, ...]

    @property
    def uses_spark(self) -> bool:
        return any(re.search(r"\bspark\b", block.body) for block in self.blocks)


def blocks(text: str) -> list[Block]:
    return [
        Block(text.count("\n", 0, m.start("body")), m["body"], m["code"], m["shown"]) for m in _BLOCK.finditer(text)
    ]


def examples(page: Path, text: str) -> Iterator[Example]:
    found = blocks(text)
    name = str(page.relative_to(ROOT))
    if page not in FAMILIES:
        if found:
            yield Example(page, name, tuple(found))
        return
    titles = [(text.count("\n", 0, m.start()), m["title"]) for m in _SECTION.finditer(text)]
    first = titles[0][0] if titles else 0
    common = [b for b in found if b.line < first]
    shared = {n for b in common for n in _names(b.body, ast.Store)}
    for i, (line, title) in enumerate(titles):
        end = titles[i + 1][0] if i + 1 < len(titles) else len(text)
        own = [b for b in found if line < b.line < end]
        used = {n for b in own for n in _names(b.body, ast.Load)}
        if own:
            yield Example(page, f"{name} {title[:5]}", (*(common if used & shared else ()), *own))


def _names(body: str, context: type[ast.expr_context]) -> Iterator[str]:
    for node in ast.walk(ast.parse(body)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, context):
            yield node.id


def run(example: Example, names: dict[str, Any]) -> Iterator[tuple[Block, str]]:
    """Run the blocks one after another and yield what each printed or raised."""
    for block in example.blocks:
        # Blank lines before the code make line numbers in a traceback those of the page.
        code = compile("\n" * block.line + block.body, str(example.page), "exec", dont_inherit=True)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if block.code is None:
                exec(code, names)  # noqa: S102
            else:
                with pytest.raises(WeftError) as caught:
                    exec(code, names)  # noqa: S102
                assert block.code in {d.code for d in caught.value.diagnostics}, str(caught.value)
                print(caught.value)  # noqa: T201
        yield block, "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())


def check(example: Example, names: dict[str, Any], *, rewrite: bool = False) -> None:
    for block, printed in run(example, names):
        if block.shown is None or printed == block.shown:
            continue
        assert rewrite, f"{example.page}:{block.line} prints\n{printed}\nand the page shows\n{block.shown}"
        text = example.page.read_text(encoding="utf-8")
        body = re.escape(block.body) + r"```\n\n?```text\n"
        at = re.search(body, text)
        assert at is not None
        rest = text[at.end() :].removeprefix(block.shown)
        example.page.write_text(text[: at.end()] + printed + rest, encoding="utf-8")


# `test_coming_from`, `test_tutorials` and `test_howto` run those pages.
OWN = [page for page in PAGES if page.parent.name not in ("coming_from", "tutorials", "howto")]
EXAMPLES = [e for page in OWN for e in examples(page, page.read_text(encoding="utf-8"))]
PURE = [pytest.param(e, id=e.name) for e in EXAMPLES if not e.uses_spark]
SPARK = [pytest.param(e, id=e.name) for e in EXAMPLES if e.uses_spark]


@pytest.mark.golden
@pytest.mark.parametrize("example", PURE)
def test_an_example_runs_as_the_page_says(example: Example, request: pytest.FixtureRequest) -> None:
    check(example, {}, rewrite=request.config.getoption("--rewrite-golden"))


@pytest.mark.golden
@pytest.mark.parametrize("example", SPARK)
def test_an_example_runs_on_spark_as_the_page_says(
    example: Example, spark: object, request: pytest.FixtureRequest
) -> None:
    check(example, {"spark": spark}, rewrite=request.config.getoption("--rewrite-golden"))


def test_every_code_has_its_section_and_there_is_no_other() -> None:
    titles = [title for page in FAMILIES for title in _SECTION.findall(page.read_text(encoding="utf-8"))]
    assert titles == [f"{code}: {title}" for code, title in CODES.items()]
    for page in FAMILIES:
        assert {title[:3] for title in _SECTION.findall(page.read_text(encoding="utf-8"))} == {page.name[:3]}


def list_codes(page: Path) -> str:
    """Return the lines of the index for the codes of a page, each with a link to its section."""
    titles = _SECTION.findall(page.read_text(encoding="utf-8"))
    return "".join(f"- [{t[:5]}]({page.name}#{_anchor(t)}): {t[7:]}\n" for t in titles)


@pytest.mark.golden
def test_the_index_lists_every_code(request: pytest.FixtureRequest) -> None:
    index = ERRORS / "index.md"
    text = index.read_text(encoding="utf-8")
    assert re.findall(r"^## .*\((.*)\)$", text, re.MULTILINE) == [page.name for page in FAMILIES]
    written = text
    for page in FAMILIES:
        heading = re.compile(rf"(^## \[[^\]]+\]\({re.escape(page.name)}\)\n\n)(?:- .*\n)*", re.MULTILINE)
        written = heading.sub(rf"\g<1>{list_codes(page)}", written)
    if request.config.getoption("--rewrite-golden"):
        index.write_text(written, encoding="utf-8")
    assert text == written or request.config.getoption("--rewrite-golden"), f"{index} is old: `make golden` writes it"


def test_every_section_says_what_happened_and_what_to_do() -> None:
    for page in FAMILIES:
        sections = _SECTION.split(page.read_text(encoding="utf-8"))[1:]
        for title, body in zip(sections[::2], sections[1::2], strict=True):
            assert "```" in body, f"{title}: there is no example"
            assert "**What to do:** " in body, f"{title}: there is no next step"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in _anchors(file.read_text(encoding="utf-8")), f"{page.name} links to {target}"


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return set(map(_anchor, headings))


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", [m.name for m in MODULES if m.is_pure or m.name == "weft"])
def test_what_a_docstring_shows_is_what_happens(name: str) -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert not failed, shown.getvalue()


PAGE = """
```python
x = 1
print(x + 1)
```

```text
2
```
```python raises W0304
from weft.core.duration import Duration
Duration.parse("x" * x)
```
"""


def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text, wrong in (
        (PAGE, False),
        (PAGE.replace("\n2\n", "\n3\n"), True),
        (PAGE.replace("04", "01"), True),
    ):
        example = Example(page, "page", tuple(blocks(text)))
        assert len(example.blocks) == 2
        with pytest.raises(AssertionError) if wrong else contextlib.nullcontext():
            check(example, {})


def test_rewriting_puts_what_is_printed_into_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("\n2\n", "\nold\n"), encoding="utf-8")
    check(Example(page, "page", tuple(blocks(page.read_text(encoding="utf-8")))), {}, rewrite=True)
    assert page.read_text(encoding="utf-8") == PAGE
