"""Plans a job: its statements become plans that every engine runs; all checks are made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from weft.core.findings import Findings
from weft.core.names import fold
from weft.core.paths import escapes_folder, has_scheme, resolve_outside
from weft.core.source import Source
from weft.core.types import TIMESTAMP, DType, Field, Schema, common_type
from weft.errors import Diagnostic, ExpressionError, StreamPlanError, StreamSqlError
from weft.expr import Ref, Typed, check
from weft.expr.checking import convert
from weft.streams.plan.bounds import convert_times, locate
from weft.streams.plan.chain import Chain
from weft.streams.plan.joining import check_condition, combine_all, rejects_nulls
from weft.streams.plan.kernel_spec import find_read_columns
from weft.streams.plan.resolved import (
    Input,
    JobPlan,
    KernelStep,
    OutputColumn,
    StatementPlan,
    TableInput,
    column_slot,
)
from weft.streams.plan.scope import FromSource, StatementScope, find_padded, read_sources
from weft.streams.plan.shared_paths import check_shared_paths
from weft.streams.sql.job import sort_findings
from weft.streams.sql.lower import PartialJob, read_partial
from weft.streams.sql.spec import ItemSpec, JobSpec, SinkSpec, StatementSpec, StreamSpec, TableSpec


class SelectList:
    """Resolves the items of a SELECT one by one and collects the output columns."""

    def __init__(self, scope: StatementScope, findings: Findings) -> None:
        self.scope = scope
        self.findings = findings
        self.columns: list[OutputColumn] = []
        self.keys: list[str] = []
        self.event_time: Typed | None = None
        self._taken: dict[str, Source | None] = {}

    def add(self, item: ItemSpec) -> None:
        """Resolve one item."""
        if item.is_star or item.star_of is not None:
            self._add_star(item)
        elif item.expr is not None:
            self._add_expression(item)

    def _add_star(self, item: ItemSpec) -> None:
        if item.star_of is not None and self.scope.find(item.star_of) is None:
            self.findings.extend([replace(self.scope.unknown_alias(item.star_of), at=item.at)])
            return
        renamed: list[tuple[str, str]] = []
        for source, index, field in self.scope.star(item.star_of):
            name = field.name
            if fold(name) in self._taken:  # usual for keys, which both sides have
                name = f"{source.alias}_{field.name}"
                renamed.append((f"{source.alias}.{field.name}", name))
            expr = Ref(source.alias, field.name)
            nullable = field.nullable or source.padded
            typed = Typed("ref", field.dtype, nullable, slot=column_slot(source.number, index), expr=expr)
            self._add_column(name, typed, item)
        if renamed:
            names = ", ".join(f"{column} is named {name}" for column, name in renamed)
            message = f"in the result {names}, because the name{'s are' if len(renamed) > 1 else ' is'} already used"
            help = f"write {renamed[0][0]} AS <name> to choose a name"
            self.findings.add("W2116", message, item.at, help, severity="note")

    def _add_expression(self, item: ItemSpec) -> None:
        assert item.expr is not None  # noqa: S101  # checked by the caller
        try:
            typed = check(item.expr, self.scope, today=False)
        except ExpressionError as cause:
            self.findings.add_error(cause, item.at)
            return
        if item.is_event_time:
            self._set_event_time(item, typed)
            return
        name = item.alias or (item.expr.name if isinstance(item.expr, Ref) else f"column_{len(self.columns) + 1}")
        self._add_column(name, typed, item)

    def _set_event_time(self, item: ItemSpec, typed: Typed) -> None:
        if typed.dtype != TIMESTAMP and not typed.dtype.is_integer:
            message = f"_EVENT_TIME must be a timestamp or an integer in milliseconds, not {typed.dtype}"
            self.findings.add("W2014", message, item.at, "write a TIMESTAMP column or CAST(... AS timestamp)")
        elif self.event_time is not None:
            self.findings.add("W2103", "duplicate _EVENT_TIME", item.at, "remove one of them")
        else:
            self.event_time = typed

    def _add_column(self, name: str, typed: Typed, item: ItemSpec) -> None:
        if fold(name) in self._taken:
            first = self._taken[fold(name)]
            where = f"; the first is in line {first.line}, column {first.column}" if first else ""
            self.findings.add(
                "W2103", f"duplicate column {name!r} in the result", item.at, f"rename one of them with AS{where}"
            )
            return
        self._taken[fold(name)] = item.at
        self.columns.append(OutputColumn(name=name, typed=typed, dtype=typed.dtype, nullable=typed.nullable))
        if item.is_key:
            self.keys.append(name)


def convert_to_sink(columns: tuple[OutputColumn, ...], sink: SinkSpec, findings: Findings) -> tuple[OutputColumn, ...]:
    """Return the columns converted to the declared types of the sink; differences are reported."""
    if sink.columns is None:
        return columns
    declared: Schema = sink.columns
    # By name and in order: two columns that are swapped are reported even if their types are equal.
    names, expected = [c.name for c in columns], list(declared.names)
    if [fold(n) for n in names] != [fold(n) for n in expected]:
        message = f"sink {sink.name!r} declares {', '.join(expected)} but the SELECT returns {', '.join(names)}"
        help = "rename the columns of the SELECT with AS, in the order of the declaration"
        findings.add("W2120", message, sink.at, help)
        return columns
    converted = []
    for column, field in zip(columns, declared, strict=True):
        typed = column.typed
        if not _widens(typed.dtype, field.dtype):
            findings.add(
                "W2120",
                f"column {field.name!r} of sink {sink.name!r} is declared {field.dtype}"
                f" but the SELECT returns {typed.dtype}",
                sink.at,
                f"write CAST(... AS {field.dtype}) AS {field.name}, or declare it {typed.dtype}",
            )
        elif typed.nullable and not field.nullable:
            message = f"column {field.name!r} of sink {sink.name!r} is NOT NULL but the SELECT may return NULL"
            findings.add("W2120", message, sink.at, f"remove NOT NULL, or write COALESCE(..., <value>) AS {field.name}")
        typed = convert(typed, field.dtype)
        converted.append(OutputColumn(name=field.name, typed=typed, dtype=field.dtype, nullable=typed.nullable))
    return tuple(converted)


def _widens(source: DType, target: DType) -> bool:
    return source == target or common_type(source, target) == target


KERNEL = "kernel"
LOOKUP = "lookup"
PASS = "pass"  # noqa: S105  # the name of an executor, not a secret


def plan_job(spec: JobSpec, root: Path) -> JobPlan:
    """Return the plan of a job, or raise `StreamPlanError` with all findings.

    Relative paths of the job start at `root`.  Nothing is read or started.
    """
    findings = Findings()
    statements = [_plan_statement(spec, statement, findings) for statement in spec.statements]
    explains = [_plan_statement(spec, statement, findings) for statement in spec.explains]
    _check_paths(spec, root, findings)
    read = {name for statement in spec.statements for name in statement.sources}
    inputs: list[StreamSpec | TableSpec] = [*spec.streams.values(), *spec.tables.values()]
    sinks = (statement.sink for statement in spec.statements)
    check_shared_paths((i for i in inputs if i.name in read), sinks, root, findings)
    if findings.errors:
        raise StreamPlanError(findings.diagnostics)
    return JobPlan(
        name=spec.name,
        root=root,
        statements=tuple(s for s in statements if s is not None),
        explains=tuple(s for s in explains if s is not None),
        settings=spec.settings,
        warnings=findings.warnings,
    )


def _check_paths(job: JobSpec, root: Path, findings: Findings) -> None:
    """Report relative paths that leave the workspace through a link; ``..`` is reported by the SQL layer."""
    specs: list[StreamSpec | TableSpec | SinkSpec] = [
        *job.streams.values(),
        *job.tables.values(),
        *(s.sink for s in job.statements),
    ]
    paths = [(str(spec.connector.get("path") or ""), spec.at) for spec in specs]
    folder = str(job.settings.get("checkpoint") or "")
    if folder != f".weft/streams/{job.name}":  # the default, which may be a link on purpose
        paths.append((folder, None))
    for path, at in paths:
        if path and not has_scheme(path) and not Path(path).is_absolute() and not escapes_folder(path):
            target = resolve_outside(root, root / path)
            if target is not None:
                message = f"the path {path!r} is outside the workspace, at {str(target)!r}"
                findings.add("W2017", message, at, "write the absolute path to allow it")


def _plan_statement(job: JobSpec, statement: StatementSpec, findings: Findings) -> StatementPlan | None:
    # Findings of its own: warnings belong to the statement, and errors of another must not prevent its plan.
    own = Findings()
    plan = _build_plan(job, statement, own)
    findings.extend(own.diagnostics)
    return None if plan is None or own.errors else replace(plan, warnings=own.warnings)


def _build_plan(job: JobSpec, statement: StatementSpec, findings: Findings) -> StatementPlan | None:
    sources = read_sources(job, statement, findings)
    if sources is None:
        return None
    chain = Chain(job, statement, sources, findings)
    # WHERE comes first, because its conditions on one join become part of that join.
    where = () if statement.where is None else check_condition(statement.where, chain.scope(), findings)
    steps = chain.build_steps(where)
    # By identity: the same condition may be written twice and only one of the two have moved.
    kept = tuple(w for w in where or () if not any(w is moved for moved in chain.moved))
    _check_outer_joins(statement, sources, kept, findings)
    selected = SelectList(chain.scope(), findings)
    for item in statement.items:
        selected.add(item)
    if steps is None or where is None:
        return None
    output = convert_to_sink(tuple(selected.columns), statement.sink, findings)
    kernel = [s for s in steps if isinstance(s, KernelStep)]
    _check_dedup(sources, kernel, findings)
    if findings.errors:
        return None
    executor = KERNEL if kernel else LOOKUP if steps else PASS
    condition = convert_times(combine_all(kept))
    read = find_read_columns(sources, steps, condition, (*(c.typed for c in output), selected.event_time))
    inputs = tuple(
        Input(number=s.number, alias=s.alias, stream=s.spec, columns=read[s.number], time=s.time)
        for s in sources
        if isinstance(s.spec, StreamSpec)
    )
    tables = tuple(
        TableInput(number=s.number, alias=s.alias, table=s.spec, columns=read[s.number])
        for s in sources
        if isinstance(s.spec, TableSpec)
    )
    emits = [s.emit for s in kernel if s.axis is not None]
    return StatementPlan(
        name=statement.name,
        inputs=inputs,
        tables=tables,
        steps=steps,
        where=condition,
        output=output,
        key_columns=tuple(selected.keys),
        event_time=selected.event_time,
        emit=emits[-1] if emits else "changes",
        sink=replace(statement.sink, columns=Schema(tuple(Field(c.name, c.dtype, c.nullable) for c in output))),
        executor=executor,
        reason=_REASONS[executor] if emits or executor != KERNEL else _KEPT_TABLE,
        spec=statement,
    )


_REASONS = {
    KERNEL: "exact lateness per side, match flags and a final flush, which the native join does not have",
    LOOKUP: "each row is looked up in static tables; no state is kept between batches",
    PASS: "one stream without a join; no state is kept between batches",
}
_KEPT_TABLE = "match flags of the table rows and a final flush; Spark does not support RIGHT and FULL JOIN of a stream with a table"


def _check_outer_joins(
    statement: StatementSpec, sources: Sequence[FromSource], where: Sequence[Typed], findings: Findings
) -> None:
    """Report conditions of WHERE that reject every padded row of an outer join."""
    for place, join in enumerate(statement.joins, start=1):
        alias = sources[place].alias
        for part in where:
            for group in find_padded(join.how, place):
                if rejects_nulls(part, group):
                    names = ", ".join(sources[n].alias for n in sorted(group))
                    findings.add(
                        "W2109",
                        f"this condition drops every row without {names}, so the {join.how.upper()} JOIN of"
                        f" {alias} has no effect",
                        locate(part),
                        f"move it into the ON of {alias}, or write {_simplify_how(join.how, group, place)}",
                    )


def _check_dedup(sources: Sequence[FromSource], kernel: Sequence[KernelStep], findings: Findings) -> None:
    for source in sources:
        if not kernel and isinstance(source.spec, StreamSpec) and source.spec.dedup:
            findings.add(
                "W2119",
                f"{source.alias} has the dedup.keys {', '.join(source.spec.dedup)}, but no join of this"
                " statement keeps rows to compare",
                source.at,
                "remove 'dedup.keys', or join two streams",
            )


def _simplify_how(how: str, rejected: frozenset[int], place: int) -> str:
    if how != "full":
        return "INNER JOIN"
    return "LEFT JOIN" if place not in rejected else "RIGHT JOIN"


_OF_COLUMNS = ("W02", "W2102", "W2103", "W2121")
"""Findings that depend on columns only: they remain true however the options of a statement are corrected."""


def plan_text(text: str, root: Path, *, file: str | None = None, env: Mapping[str, str] = {}) -> JobPlan:
    """Return the plan of the text of a job, or raise with all errors of all statements."""
    job = read_partial(text, file=file, env=env)
    if not job.findings:
        return plan_job(job.spec, root)
    raise StreamSqlError(sort_findings([*job.findings, *_plan_valid_statements(job, root)]))


def _plan_valid_statements(job: PartialJob, root: Path) -> list[Diagnostic]:
    """Return the planning errors of the valid statements of a job."""
    errors: list[Diagnostic] = []
    # One by one, so that the errors of each can be kept or dropped as a whole.
    for statement in job.spec.statements:
        try:
            plan_job(replace(job.spec, statements=(statement,)), root)
        except StreamPlanError as cause:
            # Other findings may be consequences of an error that is already reported.
            is_affected = statement.name in job.affected
            errors += [
                d
                for d in cause.diagnostics
                if d.severity == "error" and (not is_affected or d.code.startswith(_OF_COLUMNS))
            ]
    return errors
