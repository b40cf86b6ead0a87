"""Relations in notebooks: an HTML table of the columns, and of rows that are here already; no job runs."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.types import Schema

SHOWN = 10
_CELL = 80  # characters; a cell may be a whole document
_STYLE = (
    ".weft-relation table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".weft-relation th,.weft-relation td{padding:.2em .8em;text-align:left;border-bottom:1px solid #8884}"
    ".weft-relation th small,.weft-relation p{opacity:.7;font-weight:normal}"
)


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of a local table, and how many it has."""

    rows: tuple[tuple[Any, ...], ...]
    count: int


def render_relation(schema: Schema, ordering: Sequence[tuple[str, bool]], preview: Preview | None) -> str:
    """Return a relation as HTML: its columns with their types, and the rows of a preview."""
    head = "".join(
        f"<th>{html.escape(field.name)}<br><small>{html.escape(str(field.dtype))}</small></th>" for field in schema
    )
    rows = "" if preview is None else "".join(_render_row(row) for row in preview.rows)
    notes = [f"{len(schema)} column{'' if len(schema) == 1 else 's'}"]
    if ordering:
        notes.append("ordered by " + ", ".join(f"{name}{'' if up else ' descending'}" for name, up in ordering))
    if preview is None:
        notes.append("no job has run; show() prints rows, to_pandas() returns them")
    else:
        notes.insert(
            0,
            f"{len(preview.rows)} of {preview.count:,} rows"
            if preview.count > len(preview.rows)
            else f"{preview.count:,} row{'' if preview.count == 1 else 's'}",
        )
    return (
        f"<div class='weft-relation'><style>{_STYLE}</style><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table><p>{html.escape('; '.join(notes))}</p></div>"
    )


def _render_row(row: Sequence[Any]) -> str:
    return "<tr>" + "".join(f"<td>{_render_value(value)}</td>" for value in row) + "</tr>"


def _render_value(value: Any) -> str:
    if value is None:
        return "<i>NULL</i>"
    text = str(value)
    return html.escape(text if len(text) <= _CELL else text[: _CELL - 1] + "…")
