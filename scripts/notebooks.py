"""Notebooks as pages of the site: their text, their code, and the outputs that are stored in them; nothing is run."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LANGUAGES = {"%%sh": "sh"}
# pandas styles its tables for the page of a notebook; here they look like the other tables of the site.
_PANDAS_STYLE = re.compile(
    r"<style scoped>.*?</style>| border=\"1\" class=\"dataframe\"| style=\"text-align: right;\"", re.DOTALL
)


def write_page(file: Path) -> str:
    """Return a notebook as a Markdown page, with a link to the notebook below its first cell."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in _write_cell(cell)]
    parts.insert(1, f'<p><a href="{html.escape(file.name)}" download>Download this notebook</a></p>')
    return "\n\n".join(parts) + "\n"


def _write_cell(cell: dict[str, Any]) -> Iterator[str]:
    text = _join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    first, _, rest = text.partition("\n")
    magic = first.split(" ", 1)[0]
    yield _fence(_LANGUAGES.get(magic, "python"), rest if magic in _LANGUAGES else text)
    for output in cell["outputs"]:
        yield _write_output(output)


def _write_output(output: dict[str, Any]) -> str:
    """Return an output as HTML if it has that, else as text; other kinds are an error, as a page would not show them."""
    if output["output_type"] == "stream":
        return _fence("text", _join(output["text"]))
    if output["output_type"] == "error":
        return _fence("text", _COLOUR.sub("", "\n".join(output["traceback"])))
    shown = output["data"]
    if "text/html" in shown:
        # A blank line would end the block of HTML.
        return f'<div class="output">{_PANDAS_STYLE.sub("", _join(shown["text/html"])).replace(chr(10), " ")}</div>'
    return _fence("text", _join(shown["text/plain"]))


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def _join(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def page_of(notebook: str) -> str:
    """Return the path of the page that a notebook becomes."""
    return PurePosixPath(notebook).with_suffix(".md").as_posix()
