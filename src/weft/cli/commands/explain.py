"""``weft explain``: the documentation of an error code."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from typer import Argument

from weft.cli.envelope import Envelope
from weft.core.names import find_similar
from weft.errors import CODES, WorkspaceError

RULES = {
    **{f"VR-00{i}": f"W120{i}" for i in range(1, 9)},
    "VAL-001": "W0201",
    "VAL-002": "W0207",
    "VAL-003": "W0209",
    "VAL-004": "W0212",
    "VAL-005": "W0201",
    "VAL-006": "W1301",
    "VAL-007": "W1302",
    "VAL-008": "W1201",
    "VAL-009": "W1009",
}
"""Rules of runtime joins and of activation, each with the code that documents it."""


def explain(
    code: Annotated[str, Argument(metavar="CODE", help="W0207, VR-007 or VAL-002, for example; `all` lists them.")],
) -> Envelope:
    """Explain an error code: what it means and how to fix it."""
    if code.lower() == "all":
        text = "\n".join(f"{c}  {title}" for c, title in CODES.items())
        return Envelope(command="explain", data={"codes": dict(CODES)}, text=text)
    requested = code.upper()
    resolved = RULES.get(requested, requested)
    titles = {str(known): title for known, title in CODES.items()}
    if resolved not in titles:
        close = find_similar(requested, [*titles, *RULES], most=1)
        raise WorkspaceError(
            f"unknown code {code!r}",
            code="W1806",
            help=f"did you mean {close[0]}?" if close else "`weft explain all` lists them",
        )
    text = read_section(resolved)
    data = {"code": resolved, "title": titles[resolved], "text": text}
    if requested != resolved:
        data["rule"] = requested
    return Envelope(command="explain", data=data, text=text)


def read_section(code: str) -> str:
    """Return the section that documents a code."""
    section = re.search(rf"^## {code}: .*?(?=^## |\Z)", _read_page(code), re.MULTILINE | re.DOTALL)
    return section[0].rstrip() if section else f"## {code}"


def _read_page(code: str) -> str:
    """Return the page of ``docs/errors`` with a code, from the installed package or from the source tree."""
    for folder in (files("weft.cli") / "errors", Path(__file__).parents[4] / "docs" / "errors"):
        if folder.is_dir():
            pages = (p for p in folder.iterdir() if p.name.startswith(code[:3]))
            return "".join(p.read_text(encoding="utf-8") for p in pages)
    return ""
