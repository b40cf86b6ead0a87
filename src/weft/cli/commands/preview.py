"""``weft preview``: a few rows before and after one operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from weft.cli.call import KnownAtOption, PeriodOption, get_call, lazy_session, parse_period, parse_time, read_store
from weft.cli.envelope import Envelope
from weft.cli.terminal import format_count
from weft.core.names import format_cell, format_table

if TYPE_CHECKING:
    from weft.pipelines.run.preview import Preview


def preview(
    context: Context,
    project: Annotated[str, Argument(metavar="PROJECT", help="Project name or id.")],
    seq: Annotated[int, Argument(metavar="SEQ", help="Number (seq) of the operation.")],
    *,
    period: PeriodOption = None,
    rows: Annotated[int, Option("--rows", metavar="N", min=1, max=10_000, help="Maximum number of rows.")] = 20,
    where: Annotated[
        str | None,
        Option("--where", metavar="EXPRESSION", help="Filter on the columns that the operation returns."),
    ] = None,
    known_at: KnownAtOption = None,
) -> Envelope:
    """Show rows before and after an operation. For an output, shows the rows that it writes."""
    call = get_call(context)
    time = parse_time(known_at, "--known-at")
    workspace, chosen = call.project(project)
    from weft.pipelines.plan.catalog import Catalog

    parsed = parse_period(period, chosen, Catalog.of(workspace))
    from weft.pipelines.run.execute import RunOptions
    from weft.pipelines.run.preview import preview as preview_operation

    with read_store(workspace) as reader, lazy_session(call, workspace) as session:
        result = preview_operation(
            workspace,
            chosen,
            seq,
            parsed,
            reader=reader,
            session=session,
            rows=rows,
            where=where,
            options=RunOptions(known_at=time),
        )
    return Envelope(
        command="preview", data=_to_dict(result), diagnostics=result.warnings, text=_describe(result), shows_rows=True
    )


def _plain_row(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    from weft.pipelines.scenarios.values import plain

    return None if row is None else {name: plain(value) for name, value in row.items()}


def _to_dict(result: Preview) -> dict[str, Any]:
    return {
        "seq": result.seq,
        "name": result.name,
        "type": result.type,
        "columns": list(result.columns),
        "before": [_plain_row(row) for row in result.before],
        "after": [_plain_row(row) for row in result.after],
        "changed": [list(names) for names in result.changed],
    }


def _describe(result: Preview) -> str:
    columns = [c for c in result.columns if not c.startswith("_")] or list(result.columns)
    rows = [
        [_format_cell(name, before, after, changed) for name in columns]
        for before, after, changed in zip(result.before, result.after, result.changed, strict=True)
    ]
    head = f"{result.seq} {result.name} ({result.type}): {format_count(len(rows), 'row')}"
    return f"{head}\n{format_table(columns, rows)}" if rows else f"{head}, no changes"


def _format_cell(name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any], changed: Sequence[str]) -> str:
    new = _format_value(after.get(name))
    if before is None or name not in changed or name not in before:
        return new
    return f"{_format_value(before[name])} -> {new}"


def _format_value(value: Any) -> str:
    from weft.pipelines.scenarios.values import plain

    return format_cell(plain(value))
