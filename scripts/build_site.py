"""Build the documentation site: ``python scripts/build_site.py [FOLDER]``, by default into ``site/``.

The pages are those of ``docs/``, its notebooks, and a few of the project's root.  They are copied, adapted to the generator and built
from the copy, so that the files in the repository read well without a generator too.  No network is used.
"""

from __future__ import annotations

import graphlib
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from notebooks import page_of, write_page
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
SETTINGS = ROOT / "mkdocs.yml"
# Pages outside docs/ that the site has too, at the same path below its root.
BESIDES = ("CONTRIBUTING.md", "CHANGELOG.md", "bench/results/temporal.md")
Nav = list[dict[str, Any]]

_HEADING = re.compile(r"^# (?P<title>.+)$", re.MULTILINE)
_LINK = re.compile(r"(?P<before>\]\()(?P<path>[^)\s#:]+)(?P<after>(?:#[^)\s]*)?\))")
_MARKED_FENCE = re.compile(r"^(?P<fence>`{3,}\w+) (?:raises W\d{4}|(?P<tool>[\w./-]+))$", re.MULTILINE)
_CODE_WITH_BAR = re.compile(r"`([^`\n]*\\\|[^`\n]*)`")
_FENCED = re.compile(r"^(?P<fence>`{3,}).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)


def read_settings() -> dict[str, Any]:
    """Return the settings of the site, as ``mkdocs.yml`` has them."""
    settings: dict[str, Any] = YAML(typ="safe").load(SETTINGS)
    return settings


def source(page: str) -> Path:
    """Return the file of a page: Markdown or a notebook below docs/, or one of those beside it."""
    if page in BESIDES:
        return ROOT / page
    notebook = (ROOT / "docs" / page).with_suffix(".ipynb")
    return notebook if notebook.exists() else ROOT / "docs" / page


def read_page(page: str) -> str:
    """Return the text of a page; that of a notebook has the outputs that are stored in it."""
    file = source(page)
    return write_page(file) if file.suffix == ".ipynb" else file.read_text(encoding="utf-8")


def pages() -> list[str]:
    """Return every page of the site, as a path below its root."""
    docs = ROOT / "docs"
    own = [page_of(path.relative_to(docs).as_posix()) for path in docs.rglob("*") if path.suffix in (".md", ".ipynb")]
    return sorted([*own, *BESIDES])


def expand_nav(entries: list[Any]) -> Nav:
    """Return the nav with a title for each page, and with the pages of each folder; sections without a page are left out."""
    found: Nav = []
    for entry in entries:
        if isinstance(entry, str):
            inside = list_folder(entry) if entry.endswith("/") else [entry]
            found += [{title_of(page): page} for page in inside if source(page).exists()]
            continue
        ((title, below),) = entry.items()
        if isinstance(below, str):
            found.append({title: below})
        elif inner := expand_nav(below):
            found.append({title: inner})
    return found


def list_folder(folder: str) -> list[str]:
    """Return the pages of a folder: its index, the pages that the index links to, in that order, then the others."""
    paths = (ROOT / "docs" / folder).glob("*")
    names = sorted(page_of(path.name) for path in paths if path.suffix in (".md", ".ipynb"))
    if "index.md" in names:
        text = read_page(folder + "index.md")
        linked = ["index.md", *(page_of(m["path"]) for m in _LINK.finditer(text))]
        names.sort(key=lambda name: linked.index(name) if name in linked else len(linked))
    return [folder + name for name in names]


def title_of(page: str) -> str:
    """Return the first heading of a page."""
    found = _HEADING.search(read_page(page))
    if found is None:
        raise SystemExit(f"{source(page)} has no heading: start it with `# Title`")
    return found["title"].replace("`", "").replace("..:", ":")


def in_nav(nav: Nav) -> Iterator[str]:
    """Yield the pages of an expanded nav."""
    for entry in nav:
        for below in entry.values():
            if isinstance(below, str):
                yield below
            else:
                yield from in_nav(below)


def adapt(page: str, text: str) -> str:
    """Return a page as the generator reads it: links lead to where the copies are, and the mark of a fence is its title."""
    text = _GRAPH.sub(lambda found: f'<div class="graph">{draw_graph(found["arrows"])}</div>\n', text)
    text = _MARKED_FENCE.sub(lambda m: m["fence"] + (f' title="{m["tool"]}"' if m["tool"] else ""), text)
    parts = []
    end = 0
    for block in _FENCED.finditer(text):
        parts += [_adapt_text(page, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, _adapt_text(page, text[end:])])


def _adapt_text(page: str, text: str) -> str:
    # In a table a bar of code is written `\|`, of which the generator would show the backslash.
    bars = _CODE_WITH_BAR.sub(lambda m: f"<code>{html.escape(m[1]).replace(chr(92) + '|', '&#124;')}</code>", text)
    return _move_links(page, bars)


def _move_links(page: str, text: str) -> str:
    folder = source(page).parent

    def move(link: re.Match[str]) -> str:
        target = (folder / link["path"]).resolve()
        if not target.is_relative_to(ROOT):
            return link[0]
        name = target.relative_to(ROOT).as_posix().removeprefix("docs/")
        if target.suffix == ".ipynb":
            name = page_of(name)
        return link["before"] + os.path.relpath(name, Path(page).parent) + link["after"]

    return _LINK.sub(move, text)


# The graph of imports, which GitHub draws from its text; a page that fetches nothing has no program that could.
_GRAPH = re.compile(r"^```mermaid\ngraph BT\n(?P<arrows>.*?)^```$", re.MULTILINE | re.DOTALL)
_ARROW = re.compile(r"(\w+)\[\"(.+?)\"\] --> (\w+)\[\"(.+?)\"\]")
_ROW_HEIGHT, _BOX_HEIGHT, _LETTER, _GAP = 70, 30, 8.2, 26


def draw_graph(text: str) -> str:
    """Return the arrows of a graph as an SVG picture: each box is in the row below all boxes that it points to."""
    arrows = [(found[1], found[3]) for found in _ARROW.finditer(text)]
    names = {name: label for found in _ARROW.finditer(text) for name, label in (found.group(1, 2), found.group(3, 4))}
    row: dict[str, int] = {}
    for name in graphlib.TopologicalSorter({n: [b for a, b in arrows if a == n] for n in names}).static_order():
        row[name] = max((row[b] + 1 for a, b in arrows if a == name), default=0)
    wide = {name: len(label) * _LETTER + 20 for name, label in names.items()}
    middle: dict[str, float] = {}
    for r in range(max(row.values()) + 1):
        inside = [name for name in names if row[name] == r]
        above = {name: [middle[b] for a, b in arrows if a == name] for name in inside}
        inside.sort(key=lambda name: sum(above[name]) / len(above[name]) if above[name] else 0)
        left = -(sum(wide[name] + _GAP for name in inside) - _GAP) / 2
        for name in inside:
            middle[name] = left + wide[name] / 2
            left += wide[name] + _GAP
    edge = min(middle[n] - wide[n] / 2 for n in names) - 4
    width = max(middle[n] + wide[n] / 2 for n in names) + 4 - edge
    parts = []
    for a, b in arrows:
        x, y, u, v = middle[a], row[a] * _ROW_HEIGHT + 4, middle[b], row[b] * _ROW_HEIGHT + _BOX_HEIGHT + 8
        parts.append(f'<path d="M{x:.0f} {y}C{x:.0f} {y - 24} {u:.0f} {v + 24} {u:.0f} {v}"/>')
    for n, label in names.items():
        x, y = middle[n] - wide[n] / 2, row[n] * _ROW_HEIGHT + 4
        parts.append(f'<rect x="{x:.0f}" y="{y}" width="{wide[n]:.0f}" height="{_BOX_HEIGHT}" rx="5"/>')
        parts.append(f'<text x="{middle[n]:.0f}" y="{y + 20}">{label}</text>')
    height = max(row.values()) * _ROW_HEIGHT + _BOX_HEIGHT + 8
    head = f'<svg class="graph" viewBox="{edge:.0f} 0 {width:.0f} {height}" role="img" aria-label="Graph of imports">'
    marker = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>'
    return f"{head}<defs>{marker}</defs>{''.join(parts)}</svg>"


def linked_files() -> set[str]:
    """Return the files outside docs/ that pages link to or show, which are no pages: pictures, a Dockerfile."""
    found = set()
    for page in pages():
        for link in _LINK.finditer(read_page(page)):
            target = (source(page).parent / link["path"]).resolve()
            if target.is_file() and target.is_relative_to(ROOT) and target.suffix != ".md":
                found.add(target.relative_to(ROOT).as_posix())
    return {name for name in found if not name.startswith("docs/")}


def write_sources(folder: Path) -> Path:
    """Write the pages and the settings of the site into a folder; return the file with the settings."""
    docs = folder / "docs"
    shutil.copytree(ROOT / "docs", docs)
    for name in (*BESIDES, *linked_files()):
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, docs / name)
    for page in pages():
        (docs / page).write_text(adapt(page, read_page(page)), encoding="utf-8")
    settings = read_settings()
    settings["nav"] = expand_nav(settings["nav"])
    file = folder / SETTINGS.name
    YAML().dump(settings, file)
    return file


def build(into: Path) -> None:
    """Build the site into a folder, which is replaced; a link that leads nowhere is an error."""
    with tempfile.TemporaryDirectory(prefix="weft-site-") as temporary:
        settings = write_sources(Path(temporary))
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(settings)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if ended.returncode:
            raise SystemExit(f"{ended.stdout}{ended.stderr}\nthe site was not built")
        # Its links only work at the root of a server.
        (Path(temporary) / "site" / "404.html").unlink()
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(Path(temporary) / "site", into)


def main() -> None:
    """Build the site into the folder that the command line names."""
    into = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site")
    build(into)
    sys.stdout.write(f"the site is ready: open {into / 'index.html'} in a browser\n")


if __name__ == "__main__":
    main()
