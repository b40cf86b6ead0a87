"""The documentation site: it is built without a network, every link in it leads somewhere, and a browser can use it.

The site is built once.  The pages are read as HTML; a headless browser then opens some of them from the disk.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import build_site
import pytest
from notebooks import write_page

from browser import Browser, open_browser
from needed import stop_without

ROOT = Path(__file__).parents[1]
# What a browser fetches by itself when it opens a page.
_FETCHED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "object": "data"}
_REMOTE_STYLE = re.compile(r"(?:@import|url\()\s*['\"]?(?:https?:)?//")
_SECTIONS = ["Start", "Tutorials", "How-to", "Reference", "Explanation", "Coming from", "Errors", "Maintainers"]


@dataclass
class Page(HTMLParser):
    """What a page links to, fetches and can be linked to."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._open_paragraph = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _FETCHED and _FETCHED[tag] in values:
            self.fetched.append(values[_FETCHED[tag]])
        if tag == "p":
            self._open_paragraph = True
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        self._open_paragraph = self._open_paragraph and tag != "p"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open_paragraph:
            self.paragraphs[-1] += data


def read_page(text: str) -> Page:
    page = Page()
    page.feed(text)
    return page


def lost_links(pages: dict[str, Page], files: set[str]) -> Iterator[str]:
    """Yield a sentence for each link of a page to a file or an anchor of the site that is not there."""
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = os.path.normpath(Path(name).parent / unquote(parts.path)) if parts.path else name
            if target not in files:
                yield f"{name} links to {link}: there is no {target}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name} links to {link}: {target} has no such anchor"


def remote_parts(name: str, page: Page) -> Iterator[str]:
    """Yield a sentence for each part of a page that a browser would fetch from elsewhere."""
    for address in page.fetched:
        if urlsplit(address).scheme in ("http", "https") or address.startswith("//"):
            yield f"{name} fetches {address}"


def unmade_lists(name: str, page: Page) -> Iterator[str]:
    """Yield a sentence for each list that became part of a paragraph: Markdown wants a blank line above a list."""
    for paragraph in page.paragraphs:
        if found := re.search(r"^\s*(?:[-*] |\d+\. ).*", paragraph.partition("\n")[2], re.MULTILINE):
            yield f"{name} has a list in a paragraph: {found[0].strip()}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site; skip where the generator is not installed, which is a failure in CI."""
    if importlib.util.find_spec("zensical") is None:
        stop_without("this test needs the generator of the site: `make setup` installs it")
    folder = tmp_path_factory.mktemp("built") / "site"
    build_site.build(folder)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Return every page of the site by its path."""
    files = sorted(site.rglob("*.html"))
    return {f.relative_to(site).as_posix(): read_page(f.read_text(encoding="utf-8")) for f in files}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_the_nav_has_every_page_once_and_no_other() -> None:
    nav = build_site.expand_nav(build_site.read_settings()["nav"])
    assert sorted(build_site.in_nav(nav)) == build_site.pages()


def test_no_page_has_the_marks_of_a_merge() -> None:
    texts = {page: build_site.source(page).read_text(encoding="utf-8") for page in build_site.pages()}
    mark = re.compile(r"^(?:<{7} .*|={7}|>{7} .*)$", re.MULTILINE)
    assert mark.search("a\n<<<<<<< HEAD\nb\n")
    assert [page for page, text in texts.items() if mark.search(text)] == []


def test_the_sections_of_the_nav_are_these() -> None:
    assert [title for entry in build_site.read_settings()["nav"] for title in entry] == _SECTIONS


def test_a_folder_of_the_nav_lists_its_pages_as_its_index_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "docs" / "howto"
    folder.mkdir(parents=True)
    for name, text in {"a": "# A", "b": "# B", "c": "# `C`", "index": "# How-to\n[C](c.md), [B](b.md#x)"}.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(build_site, "ROOT", tmp_path)
    nav = build_site.expand_nav([{"How-to": ["howto/"]}, {"Tutorials": ["tutorials/"]}, {"Start": "index.md"}])
    listed = [{"How-to": "howto/index.md"}, {"C": "howto/c.md"}, {"B": "howto/b.md"}, {"A": "howto/a.md"}]
    assert nav == [{"How-to": listed}, {"Start": "index.md"}]


def test_a_page_is_adapted_outside_its_code() -> None:
    text = "[a](../CONTRIBUTING.md#x) [b](joins.md)\n```python raises W0101\n[c](../CHANGELOG.md)\n```\n[d](../bench/results/temporal.svg)\n"
    assert build_site.adapt("benchmarks.md", text) == (
        "[a](CONTRIBUTING.md#x) [b](joins.md)\n```python\n[c](../CHANGELOG.md)\n```\n[d](bench/results/temporal.svg)\n"
    )
    assert build_site.adapt("a.md", "```python pandas\n1\n```\n```json a/1.json\n2\n```\n```\n3 4\n```\n") == (
        '```python title="pandas"\n1\n```\n```json title="a/1.json"\n2\n```\n```\n3 4\n```\n'
    )
    assert build_site.adapt("a.md", "| `a\\|<b>` | `c` |\n") == "| <code>a&#124;&lt;b&gt;</code> | `c` |\n"
    assert build_site.adapt("CONTRIBUTING.md", "[a](docs/joins.md) [b](https://x.org/a.md)") == (
        "[a](joins.md) [b](https://x.org/a.md)"
    )


def test_a_notebook_is_a_page_with_its_stored_outputs(tmp_path: Path) -> None:
    def run(source: str, *outputs: dict[str, object]) -> dict[str, object]:
        return {"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": list(outputs)}

    table = '<style scoped>\n  a {}\n</style>\n<table border="1" class="dataframe">\n\n<tr></tr></table>'
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "[b](../b.ipynb)"]},
        run("%%sh\nls", {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]}),
        run("x", {"output_type": "execute_result", "data": {"text/plain": "1"}}),
        run("y", {"output_type": "display_data", "data": {"text/plain": "1", "text/html": table}}),
        run("z", {"output_type": "error", "traceback": ["line 1: z", "\x1b[31mOops\x1b[0m"]}),
    ]
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert write_page(file).split("\n\n") == [
        "# Title\n[b](../b.ipynb)",
        '<p><a href="a.ipynb" download>Download this notebook</a></p>',
        "```sh\nls\n```",
        "```text\na\nb\n```",
        "```python\nx\n```",
        "```text\n1\n```",
        "```python\ny\n```",
        '<div class="output"> <table>  <tr></tr></table></div>',
        "```python\nz\n```",
        "```text\nline 1: z\nOops\n```\n",
    ]
    assert build_site.adapt("index.md", "[a](notebooks/python.ipynb)") == "[a](notebooks/python.md)"


# What newcomers ask, and words of the answer: on the start page, or on a page that its row links to.
QUESTIONS = {
    "install": ["pip install weft", "Java 17"],
    "Spark does it support": ["4.0 to 4.3"],
    "Tempo": ["natural_asof", "asof_join"],
    "YARN": ["pyarrow", "master: yarn", "spark.archives"],
    "Kafka": ["at least once", "exactly once", "weft-row-id"],
    "Airflow": ["--json", "exit"],
    "memory": ["memory", "three"],
    "late rows": ["redrive", "watermark", "side_output"],
    "SCD2": ["until"],
    "Delta": ["weft[delta]", "delta"],
    "twelve months": ["for month in"],
    "functions": ["DATE_TRUNC", "COALESCE", "LABEL_SET"],
}


def questions() -> dict[str, str]:
    """Return the rows of the questions on the start page by their question."""
    section = (
        (ROOT / "docs" / "index.md").read_text(encoding="utf-8").partition("\n## Questions\n")[2].partition("\n## ")[0]
    )
    rows = [line.strip("| ").split(" | ", 1) for line in section.splitlines() if line.startswith("| ")]
    return {question: rest for question, rest in rows if question != "question"}


def read_section(path: str, anchor: str) -> str:
    """Return the text of a page of docs/, or of its section with an anchor, up to the next heading of the same level."""
    text = (ROOT / "docs" / path).read_text(encoding="utf-8")
    if not anchor:
        return text
    for found in re.finditer(r"^(#+) (.*)$", text, re.MULTILINE):
        if re.sub(r"[^\w -]", "", found[2].lower()).replace(" ", "-") == anchor:
            return re.split(rf"^#{{1,{len(found[1])}}} ", text[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    raise AssertionError(f"{path} has no section #{anchor}")


@pytest.mark.parametrize("topic", QUESTIONS)
def test_a_question_of_newcomers_is_answered_one_click_from_the_start_page(topic: str) -> None:
    rows = [(question, rest) for question, rest in questions().items() if topic in question]
    assert len(rows) == 1, f"no question, or several, about {topic}"
    links = re.findall(r"\]\(([^)#]*)#?([^)]*)\)", rows[0][1])
    assert links, f"the answer about {topic} links to no page"
    text = "\n".join([rows[0][1], *(read_section(path, anchor) for path, anchor in links)])
    assert [word for word in QUESTIONS[topic] if word not in text] == []


def test_every_question_of_the_start_page_is_checked() -> None:
    assert len(questions()) == len(QUESTIONS) == 12


def test_a_graph_of_the_pages_is_drawn_with_every_box_below_what_it_points_to() -> None:
    drawn = build_site.draw_graph('  a["a"] --> b["b/c"]\n  d["d"] --> a["a"]\n  d["d"] --> e["e"]\n')
    heights = {label: int(y) for y, label in re.findall(r'y="(\d+)">([^<]+)</text>', drawn)}
    assert heights["b/c"] == heights["e"] < heights["a"] < heights["d"]
    assert drawn.count('<path d="M') == 3 + 1
    page = build_site.adapt("architecture.md", '```mermaid\ngraph BT\n  a["a"] --> b["b"]\n```\n')
    assert page.startswith('<div class="graph"><svg')


@pytest.mark.slow
def test_every_page_is_built(pages: dict[str, Page]) -> None:
    assert set(pages) == {page.removesuffix(".md") + ".html" for page in build_site.pages()}


@pytest.mark.slow
def test_every_link_leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert list(lost_links(pages, files)) == []
    assert sum(len(page.links) for page in pages.values()) > 1000


@pytest.mark.slow
def test_no_page_fetches_anything_from_elsewhere(site: Path, pages: dict[str, Page]) -> None:
    assert [told for name, page in pages.items() for told in remote_parts(name, page)] == []
    for style in site.rglob("*.css"):
        assert not _REMOTE_STYLE.search(style.read_text(encoding="utf-8")), style


@pytest.mark.slow
def test_lists_and_code_of_the_pages_are_lists_and_code(pages: dict[str, Page]) -> None:
    assert [told for name, page in pages.items() for told in unmade_lists(name, page)] == []
    assert [name for name, page in pages.items() if "```" in page.text] == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_the_search_finds_late_rows_without_a_server(site: Path, browser: Browser, width: int) -> None:
    browser.resize(width, 900)
    browser.open((site / "index.html").as_uri())
    found = search(browser, "late rows")
    assert any("streams.html" in address for address in found), found
    assert browser.errors == []
    assert {urlsplit(address).scheme for address in browser.requested} <= {"file", "data", "blob"}


SHADOW = "[...document.querySelectorAll('body > div')].find((e) => e.shadowRoot)?.shadowRoot"


def search(browser: Browser, words: str) -> list[str]:
    """Type words into the search and return the addresses of what it finds, best first."""
    browser.evaluate("document.querySelector('.md-search__button').click()")
    browser.wait(f"!!{SHADOW}?.querySelector('input')?.matches(':focus')")
    browser.type(words)
    browser.wait(f"!!{SHADOW}.querySelector('a[href*=html]')")
    addresses: list[str] = browser.evaluate(f"[...{SHADOW}.querySelectorAll('a[href]')].map((e) => e.href)")
    return addresses


@pytest.mark.slow
def test_the_reference_and_the_first_page_of_each_section_do_not_scroll_sideways_on_a_phone(
    site: Path, pages: dict[str, Page], browser: Browser
) -> None:
    browser.resize(390, 844)
    wide = []
    nav = build_site.expand_nav(build_site.read_settings()["nav"])
    first = {next(build_site.in_nav([section])).removesuffix(".md") + ".html" for section in nav}
    for name in sorted(first | {name for name in pages if name.startswith("reference/")}):
        browser.open((site / name).as_uri())
        if browser.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(name)
    assert wide == []
    assert {urlsplit(address).scheme for address in browser.requested} <= {"file", "data", "blob"}


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_the_outputs_of_notebooks_are_seen(site: Path, browser: Browser, width: int) -> None:
    browser.resize(width, 844)
    names = [page.removesuffix(".md") for page in build_site.pages() if build_site.source(page).suffix == ".ipynb"]
    assert len(names) == 3
    for name in names:
        browser.open((site / f"{name}.html").as_uri())
        assert not browser.evaluate("document.documentElement.scrollWidth > innerWidth"), name
        shown = browser.evaluate(
            "[...document.querySelectorAll('.output')].map((e) => e.getBoundingClientRect().height)"
        )
        assert len(shown) >= 4, name
        assert min(shown) > 40, name
        pictures = browser.evaluate(
            "[...document.querySelectorAll('.output svg')].map((e) => e.getBoundingClientRect().width)"
        )
        assert pictures, name
        assert min(pictures) > 300, name
        border = "getComputedStyle(document.querySelector('.weft-explain table')).borderCollapse"
        assert browser.evaluate(border) == "collapse", name
    assert browser.errors == []
    assert {urlsplit(address).scheme for address in browser.requested} <= {"file", "data", "blob"}


FAULTS: list[tuple[str, Callable[[Page], list[str]]]] = [
    ('<a href="b.html">b</a>', lambda page: list(lost_links({"a.html": page}, {"a.html"}))),
    ('<a href="#b">b</a>', lambda page: list(lost_links({"a.html": page}, {"a.html"}))),
    ('<script src="https://cdn.org/a.js">', lambda page: list(remote_parts("a.html", page))),
    ('<link rel="stylesheet" href="//fonts.org/a.css">', lambda page: list(remote_parts("a.html", page))),
    ("<p>These:\n- one\n- two</p>", lambda page: list(unmade_lists("a.html", page))),
]


@pytest.mark.parametrize(("text", "look"), FAULTS, ids=[text for text, _ in FAULTS])
def test_a_fault_of_a_page_is_found(text: str, look: Callable[[Page], list[str]]) -> None:
    assert len(look(read_page(text))) == 1
