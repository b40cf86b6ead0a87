"""``weft preview``: a few rows before and after one operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.call import call_of, period_of, reading, sessions
from weft.cli.commands.run import KnownAt
from weft.cli.envelope import Envelope
from weft.cli.said import Period, a_moment
from weft.cli.terminal import table

if TYPE_CHECKING:
    from weft.pipelines.run.preview import Preview


def preview(
    context: typer.Context,
    project: Annotated[str, typer.Argument(help="Name or id.")],
    seq: Annotated[int, typer.Argument(help="The operation.")],
    *,
    period: Period = None,
    rows: Annotated[int, typer.Option("--rows", min=1, max=10_000, help="How many at most.")] = 20,
    where: Annotated[
        str | None, typer.Option("--where", metavar="EXPRESSION", help="On the columns after the operation.")
    ] = None,
    known_at: KnownAt = None,
) -> Envelope:
    """Show rows that an operation changes, before and after it, or that an output writes."""
    call = call_of(context)
    moment = a_moment(known_at, "--known-at")
    workspace, wanted = call.project(project)
    from weft.pipelines.plan.catalog import Catalog

    chosen = period_of(period, wanted, Catalog.of(workspace))
    from weft.pipelines.run.execute import RunOptions
    from weft.pipelines.run.preview import preview as previewed

    with reading(workspace.settings, workspace.root) as reader, sessions(call, workspace) as opener:
        seen = previewed(
            workspace,
            wanted,
            seq,
            chosen,
            reader=reader,
            session=opener,
            rows=rows,
            where=where,
            options=RunOptions(known_at=moment),
        )
    return Envelope(
        command="preview",
        data=_data(seen),
        diagnostics=seen.warnings,
        text=_text(seen),
        next=(),
        shows_rows=True,
    )


def _plain(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    from weft.pipelines.scenarios.values import plain

    return None if row is None else {name: plain(value) for name, value in row.items()}


def _data(seen: Preview) -> dict[str, Any]:
    return {
        "seq": seen.seq,
        "name": seen.name,
        "type": seen.type,
        "columns": list(seen.columns),
        "before": [_plain(row) for row in seen.before],
        "after": [_plain(row) for row in seen.after],
        "changed": [list(names) for names in seen.changed],
    }


def _text(seen: Preview) -> str:
    columns = [c for c in seen.columns if not c.startswith("_")] or list(seen.columns)
    rows = [
        [_cell(name, before, after, changed) for name in columns]
        for before, after, changed in zip(seen.before, seen.after, seen.changed, strict=True)
    ]
    head = f"{seen.seq} {seen.name} ({seen.type}): {len(rows)} rows"
    return f"{head}\n{table(columns, rows)}" if rows else f"{head}, nothing changes"


def _cell(
    name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any], changed: Sequence[str]
) -> str:
    new = _shown(after.get(name))
    if before is None or name not in changed or name not in before:
        return new
    return f"{_shown(before[name])} -> {new}"


def _shown(value: Any) -> str:
    from weft.pipelines.scenarios.values import plain

    simple = plain(value)
    return "NULL" if simple is None else str(simple)
