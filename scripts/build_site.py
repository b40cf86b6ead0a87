"""Build the documentation site: ``python scripts/build_site.py [FOLDER]``, by default into ``site/``.

The pages are those of ``docs/`` and a few of the project's root.  They are copied, adapted to the generator and built
from the copy, so that the files in the repository read well without a generator too.  No network is used.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
SETTINGS = ROOT / "mkdocs.yml"
# Pages and pictures outside docs/ that the site has too, at the same path below its root.
BESIDES = ("CONTRIBUTING.md", "CHANGELOG.md", "bench/results/temporal.md", "bench/results/temporal.svg")
Nav = list[dict[str, Any]]

_HEADING = re.compile(r"^# (?P<title>.+)$", re.MULTILINE)
_LINK = re.compile(r"(?P<before>\]\()(?P<path>[^)\s#:]+)(?P<after>(?:#[^)\s]*)?\))")
_MARKED_FENCE = re.compile(r"^(?P<fence>`{3,}\w+) (?:raises W\d{4}|(?P<tool>[\w./-]+))$", re.MULTILINE)
_FENCED = re.compile(r"^(?P<fence>`{3,}).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)


def read_settings() -> dict[str, Any]:
    """Return the settings of the site, as ``mkdocs.yml`` has them."""
    settings: dict[str, Any] = YAML(typ="safe").load(SETTINGS)
    return settings


def source(page: str) -> Path:
    """Return the file of a page: below docs/, or one of those beside it."""
    return ROOT / page if page in BESIDES else ROOT / "docs" / page


def pages() -> list[str]:
    """Return every page of the site, as a path below its root."""
    docs = ROOT / "docs"
    own = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    return sorted([*own, *(name for name in BESIDES if name.endswith(".md"))])


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
    names = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.md"))
    if "index.md" in names:
        text = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
        linked = ["index.md", *(m["path"] for m in _LINK.finditer(text))]
        names.sort(key=lambda name: linked.index(name) if name in linked else len(linked))
    return [folder + name for name in names]


def title_of(page: str) -> str:
    """Return the first heading of a page."""
    found = _HEADING.search(source(page).read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f"{source(page)} has no heading: start it with `# Title`")
    return found["title"].replace("`", "")


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
    text = _MARKED_FENCE.sub(lambda m: m["fence"] + (f' title="{m["tool"]}"' if m["tool"] else ""), text)
    parts = []
    end = 0
    for block in _FENCED.finditer(text):
        parts += [_move_links(page, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, _move_links(page, text[end:])])


def _move_links(page: str, text: str) -> str:
    folder = source(page).parent

    def move(link: re.Match[str]) -> str:
        target = (folder / link["path"]).resolve()
        if not target.is_relative_to(ROOT):
            return link[0]
        name = target.relative_to(ROOT).as_posix().removeprefix("docs/")
        return link["before"] + os.path.relpath(name, Path(page).parent) + link["after"]

    return _LINK.sub(move, text)


def write_sources(folder: Path) -> Path:
    """Write the pages and the settings of the site into a folder; return the file with the settings."""
    docs = folder / "docs"
    shutil.copytree(ROOT / "docs", docs)
    for name in BESIDES:
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, docs / name)
    for page in pages():
        (docs / page).write_text(adapt(page, source(page).read_text(encoding="utf-8")), encoding="utf-8")
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
