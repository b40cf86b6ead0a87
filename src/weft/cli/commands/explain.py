"""``weft explain``: the page of an error code."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.envelope import Envelope
from weft.core.names import near
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
        close = near(said, [*titles, *RULES], most=1)
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
    """Return the section of a code in ``docs/errors.md``."""
    found = re.search(rf"^## {code}: .*?(?=^## |\Z)", errors_page(), re.MULTILINE | re.DOTALL)
    return found[0].rstrip() if found else f"## {code}"


def errors_page() -> str:
    """Return the text of ``docs/errors.md``: of the package, or of the source tree it runs from."""
    shipped = files("weft.cli") / "errors.md"
    if shipped.is_file():
        return shipped.read_text(encoding="utf-8")
    tree = Path(__file__).parents[4] / "docs" / "errors.md"
    return tree.read_text(encoding="utf-8") if tree.is_file() else ""
