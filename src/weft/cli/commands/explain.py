"""``weft explain``: the page of an error code."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

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
"""Rules of the runtime join and of activation, each with the code whose page tells of it."""


def explain(
    code: Annotated[str, typer.Argument(help="As in W0207, VR-007 or VAL-002; `all` lists them.")],
) -> Envelope:
    """Print what a code means and what to do about it."""
    if code.lower() == "all":
        text = "\n".join(f"{c}  {title}" for c, title in CODES.items())
        return Envelope(command="explain", data={"codes": dict(CODES)}, text=text)
    said = code.upper()
    wanted = RULES.get(said, said)
    titles = {str(known): title for known, title in CODES.items()}
    if wanted not in titles:
        close = find_similar(said, [*titles, *RULES], most=1)
        raise WorkspaceError(
            f"there is no code {code!r}",
            code="W1806",
            help=f"did you mean {close[0]}?" if close else "`weft explain all` lists them",
        )
    text = page(wanted)
    data = {"code": wanted, "title": titles[wanted], "text": text}
    if said != wanted:
        data["rule"] = said
    return Envelope(command="explain", data=data, text=text)


def page(code: str) -> str:
    """Return the section of a code."""
    section = re.search(rf"^## {code}: .*?(?=^## |\Z)", _family(code), re.MULTILINE | re.DOTALL)
    return section[0].rstrip() if section else f"## {code}"


def _family(code: str) -> str:
    """Return the page of ``docs/errors`` that holds a code: of the package, or of the source tree it runs from."""
    for folder in (files("weft.cli") / "errors", Path(__file__).parents[4] / "docs" / "errors"):
        if folder.is_dir():
            pages = (p for p in folder.iterdir() if p.name.startswith(code[:3]))
            return "".join(p.read_text(encoding="utf-8") for p in pages)
    return ""
