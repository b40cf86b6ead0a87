"""output: the rows and columns that are written, the target, and the write mode."""

from __future__ import annotations

from dataclasses import replace

from weft.core.names import find_similar, format_list
from weft.core.source import Source
from weft.core.types import Map
from weft.io.connectors import find_connector
from weft.io.datasource import PERIOD
from weft.pipelines.model.operation import Operation, Output
from weft.pipelines.model.values import DatasetRef, LocatedText
from weft.pipelines.plan.catalog import MissingDataset
from weft.pipelines.plan.operations.context import PlanContext, operation_scope, resolve_selector
from weft.pipelines.plan.operations.destination import check_names, resolve_target
from weft.pipelines.plan.operations.joining import build_lookup_steps
from weft.pipelines.plan.operations.resolved import ResolvedOutput, Target, WorkingSet
from weft.pipelines.plan.scopes import list_slots


def resolve_output(
    op: Operation, working: WorkingSet, context: PlanContext
) -> tuple[ResolvedOutput | None, WorkingSet]:
    """Return the resolved output, None when it has errors, and the unchanged working set."""
    arguments = op.arguments
    assert isinstance(arguments, Output)  # noqa: S101  # the type of an operation decides its arguments
    chosen = resolve_selector(op.selector, operation_scope(op, working, context), context)
    columns = _columns(op, arguments, working, context)
    order = _order(arguments, working, context)
    _check_columns(arguments, columns, context, op.at.of("arguments.columns"))
    target = resolve_target(op, arguments, context)
    register = _registered(op, arguments, context)
    # The checks below need a target and columns; the ones above report all independent errors first.
    if target is None or context.errors:
        return None, working
    target = _check_form(op, arguments, target, context)
    _check_period(op, arguments, columns, target, context)
    key = _merge_key(op, arguments, columns, working, context) if arguments.mode == "merge" else ()
    lookups = build_lookup_steps(list_slots(chosen), working, context)[0]
    if context.errors:
        return None, working
    resolved = ResolvedOutput(
        seq=op.seq,
        name=op.name,
        selector=chosen,
        lookups=lookups,
        columns=columns,
        include_deleted=arguments.include_deleted,
        target=target,
        mode=arguments.mode,
        merge_key=key,
        order_by=order,
        register_as=register,
        before=working,
    )
    return resolved, working


def _columns(op: Operation, arguments: Output, working: WorkingSet, context: PlanContext) -> tuple[str, ...]:
    """Return the columns that are written, in order; all of them by default."""
    if arguments.columns is None:
        return working.schema.names
    at = op.at.of("arguments.columns")
    if not arguments.columns:
        context.report("W1411", "the output has no columns", "name some, or leave `columns` out for all", at)
    names: list[str] = []
    missing: list[LocatedText] = []
    for column in arguments.columns:
        name = _bare(column.text, working)
        if name is None:
            missing.append(column)
        elif name in names:
            context.report("W1413", f"column {name!r} is written twice", "leave one of them out", column.at)
        else:
            names.append(name)
    available = [f.name for f in working.business]
    for column in missing:
        close = find_similar(column.text.rpartition(".")[2], working.schema.names, most=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        context.report(
            "W1412",
            f"unknown output column {column.text!r}",
            f"{hint}available columns are {format_list(available, most=40)}",
            column.at or at,
        )
    return tuple(names)


def _bare(text: str, working: WorkingSet) -> str | None:
    # Lookups and joins are not written: their columns are assigned to working columns first.
    qualifier, _, name = text.rpartition(".")
    own = qualifier in ("", working.table, working.dataset.name)
    return name if own and name in working.schema else None


def _order(arguments: Output, working: WorkingSet, context: PlanContext) -> tuple[tuple[str, bool], ...]:
    order = []
    for column in arguments.order_by:
        name = _bare(column.text.removeprefix("-"), working)
        if name is None or isinstance(working.schema[name].dtype, Map):
            context.report(
                "W1412",
                f"the output cannot be ordered by {column.text.removeprefix('-')!r}",
                f"available columns are {format_list([f.name for f in working.business], most=40)}",
                column.at,
            )
        else:
            order.append((name, not column.text.startswith("-")))
    return tuple(order)


def _registered(op: Operation, arguments: Output, context: PlanContext) -> str | None:
    """Return the name under which the output is registered; outputs of drafts are not registered."""
    name = arguments.register_as_dataset
    if name is None:
        return None
    if not name.strip():
        context.report(
            "W1416",
            "register_as_dataset is blank",
            "give the dataset a name, or leave the key out",
            op.at.of("arguments.register_as_dataset"),
        )
        return None
    return None if context.draft else name.strip()


def _check_form(op: Operation, arguments: Output, target: Target, context: PlanContext) -> Target:
    """Return the target with the CSV options of the output; report options that the format does not support."""
    site = op.at.of("arguments.destination")
    is_csv = target.format == "csv" and target.kind in ("files", "file")
    if arguments.mode == "append" and target.kind == "file":
        context.report(
            "W1422",
            f"rows cannot be added to {target.location}: a single file is replaced as a whole",
            "name a folder, which gets more files, or leave `mode: append` out",
            op.at.of("arguments.mode"),
        )
    if arguments.escape_formulas and not is_csv:
        context.report(
            "W1422",
            f"`escape_formulas` is for CSV files, and this output writes {target.format}",
            "leave it out, or write CSV",
            op.at.of("arguments.escape_formulas"),
        )
    csv = replace(target.csv, escape_formulas=arguments.escape_formulas or target.csv.escape_formulas)
    again = "registered" if arguments.register_as_dataset is not None else "merged" if arguments.mode == "merge" else ""
    if is_csv and again and not csv.has_header:
        context.report(
            "W1422",
            f"the output is {again}, so its files are read again, and they have no header line",
            "name a datasource with `has_header: true`",
            site,
        )
    if is_csv and again and csv.escape_formulas:
        context.report(
            "W1422",
            f"the output is {again}, so its files are read again, and `escape_formulas` changes strings for a spreadsheet",
            "write a second output for the spreadsheet",
            op.at.of("arguments.escape_formulas") or site,
        )
    return replace(target, csv=csv)


def _check_columns(arguments: Output, columns: tuple[str, ...], context: PlanContext, at: Source | None) -> None:
    """Report columns whose names are too long for the target database, also in a draft."""
    source = context.catalog.datasource(arguments.destination.datasource or "")
    if source is not None and find_connector(source.type).sink == "jdbc":
        check_names(columns, context, at)


def _check_period(
    op: Operation, arguments: Output, columns: tuple[str, ...], target: Target, context: PlanContext
) -> None:
    """Report a table in which a period cannot be replaced because ``_period`` is not written."""
    if target.kind in ("jdbc", "table") and arguments.mode == "replace_period" and PERIOD.name not in columns:
        context.report(
            "W1415",
            f"rows of one period cannot be replaced in table {target.table!r}: _period is not written",
            "add _period to `columns`, or write `mode: append`",
            op.at.of("arguments.columns"),
        )


def _merge_key(
    op: Operation, arguments: Output, columns: tuple[str, ...], working: WorkingSet, context: PlanContext
) -> tuple[str, ...]:
    """Return the merge key: the natural key of the registered dataset, else of the input."""
    # Rows with the same key are replaced, so all its columns must be written.
    candidates = [working.dataset.natural_key_columns]
    if arguments.register_as_dataset is not None:
        known = context.catalog.dataset(DatasetRef(arguments.register_as_dataset.strip()))
        if not isinstance(known, MissingDataset):
            candidates.insert(0, known.dataset.natural_key_columns)
    for key in candidates:
        if key and set(key) <= set(columns):
            return key
    missing_key = ", ".join(next((key for key in candidates if key), ()))
    help = f"write the key columns too: {missing_key}" if missing_key else "give the input dataset natural_key_columns"
    context.report("W1414", "rows cannot be merged without a key", help, op.at.of("arguments.mode"))
    return ()
