"""plan_job and plan_text: the statements of a job become plans that every engine runs; all strictness is applied here."""

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
from weft.streams.plan.bounds import in_microseconds, place_of
from weft.streams.plan.chain import Chain
from weft.streams.plan.joining import all_of, checked, null_rejects
from weft.streams.plan.kernel_spec import find_read_columns
from weft.streams.plan.resolved import (
    Input,
    JobPlan,
    KernelStep,
    OutputColumn,
    StatementPlan,
    Step,
    TableInput,
    column_slot,
)
from weft.streams.plan.scope import FromSource, StatementScope, read_sources
from weft.streams.sql.job import sort_findings
from weft.streams.sql.lower import PartialJob, read_partial
from weft.streams.sql.spec import ItemSpec, JobSpec, SinkSpec, StatementSpec, StreamSpec, TableSpec


class SelectList:
    """Reads the items of a SELECT one after another and keeps what they give."""

    def __init__(self, scope: StatementScope, findings: Findings) -> None:
        self.scope = scope
        self.findings = findings
        self.columns: list[OutputColumn] = []
        self.keys: list[str] = []
        self.event_time: Typed | None = None
        self._taken: dict[str, Source | None] = {}

    def read(self, item: ItemSpec) -> None:
        """Take one item."""
        if item.is_star or item.star_of is not None:
            self._star(item)
        elif item.expr is not None:
            self._expression(item)

    def _star(self, item: ItemSpec) -> None:
        if item.star_of is not None and self.scope.find(item.star_of) is None:
            self.findings.extend([replace(self.scope.unknown_alias(item.star_of), at=item.at)])
            return
        renamed: list[tuple[str, str]] = []
        for source, index, field in self.scope.star(item.star_of):
            name = field.name
            if fold(name) in self._taken:
                name = f"{source.alias}_{field.name}"
                renamed.append((f"{source.alias}.{field.name}", name))
            expr = Ref(source.alias, field.name)
            nullable = field.nullable or source.padded
            typed = Typed("ref", field.dtype, nullable, slot=column_slot(source.number, index), expr=expr)
            self._take(name, typed, item)
        if renamed:
            told = ", ".join(f"{column} is called {name}" for column, name in renamed)
            self.findings.add(
                "W2116",
                f"in the result {told}: the name{'s are' if len(renamed) > 1 else ' is'} taken",
                item.at,
                f"write {renamed[0][0]} AS <name> to choose a name",
                severity="note",
            )

    def _expression(self, item: ItemSpec) -> None:
        assert item.expr is not None  # noqa: S101  # the caller's own branch
        try:
            typed = check(item.expr, self.scope, today=False)
        except ExpressionError as cause:
            self.findings.add_error(cause, item.at)
            return
        if item.is_event_time:
            self._time(item, typed)
            return
        name = item.alias or (item.expr.name if isinstance(item.expr, Ref) else f"column_{self._count()}")
        self._take(name, typed, item)

    def _count(self) -> int:
        return len(self.columns) + 1

    def _time(self, item: ItemSpec, typed: Typed) -> None:
        if typed.dtype != TIMESTAMP and not typed.dtype.is_integer:
            self.findings.add(
                "W2014",
                f"_EVENT_TIME is {typed.dtype}, a timestamp or whole milliseconds are wanted",
                item.at,
                "write a TIMESTAMP column or CAST(... AS timestamp)",
            )
        elif self.event_time is not None:
            self.findings.add("W2103", "_EVENT_TIME is given twice", item.at, "leave one of them out")
        else:
            self.event_time = typed

    def _take(self, name: str, typed: Typed, item: ItemSpec) -> None:
        if fold(name) in self._taken:
            first = self._taken[fold(name)]
            where = f"; the first is in line {first.line}, column {first.column}" if first else ""
            self.findings.add(
                "W2103",
                f"two columns of the result are called {name!r}",
                item.at,
                f"give one of them another name with AS{where}",
            )
            return
        self._taken[fold(name)] = item.at
        self.columns.append(OutputColumn(name=name, typed=typed, dtype=typed.dtype, nullable=typed.nullable))
        if item.is_key:
            self.keys.append(name)


def fitted(columns: tuple[OutputColumn, ...], sink: SinkSpec, findings: Findings) -> tuple[OutputColumn, ...]:
    """Return the columns in the types that the sink declares; notes where the two differ."""
    if sink.columns is None:
        return columns
    declared: Schema = sink.columns
    names, wanted = [c.name for c in columns], list(declared.names)
    if [fold(n) for n in names] != [fold(n) for n in wanted]:
        findings.add(
            "W2120",
            f"sink {sink.name!r} declares {', '.join(wanted)} but the SELECT gives {', '.join(names)}",
            sink.at,
            "name the columns of the SELECT with AS, in the order of the declaration",
        )
        return columns
    fitting = []
    for given, field in zip(columns, declared, strict=True):
        typed = given.typed
        if not _widens(typed.dtype, field.dtype):
            findings.add(
                "W2120",
                f"column {field.name!r} of sink {sink.name!r} is declared {field.dtype}"
                f" but the SELECT gives {typed.dtype}",
                sink.at,
                f"write CAST(... AS {field.dtype}) AS {field.name}, or declare it {typed.dtype}",
            )
        elif typed.nullable and not field.nullable:
            findings.add(
                "W2120",
                f"column {field.name!r} of sink {sink.name!r} is NOT NULL but the SELECT may give NULL",
                sink.at,
                f"leave out NOT NULL, or write COALESCE(..., <value>) AS {field.name}",
            )
        typed = convert(typed, field.dtype)
        fitting.append(OutputColumn(name=field.name, typed=typed, dtype=field.dtype, nullable=typed.nullable))
    return tuple(fitting)


def _widens(given: DType, wanted: DType) -> bool:
    return given == wanted or common_type(given, wanted) == wanted


KERNEL = "kernel"
LOOKUP = "lookup"
PASS = "pass"  # noqa: S105  # a word of explain, no secret


def plan_job(spec: JobSpec, root: Path) -> JobPlan:
    """Return the plan of a job, or raise `StreamPlanError` with everything that is wrong with it.

    `root` is the folder that relative paths of the job begin at.  Nothing is read or started.
    """
    found = Findings()
    statements = [_planned(spec, statement, found) for statement in spec.statements]
    explains = [_planned(spec, statement, found) for statement in spec.explains]
    _check_paths(spec, root, found)
    if found.errors:
        raise StreamPlanError(found.diagnostics)
    return JobPlan(
        name=spec.name,
        root=root,
        statements=tuple(s for s in statements if s is not None),
        explains=tuple(s for s in explains if s is not None),
        settings=spec.settings,
        warnings=found.warnings,
    )


def _check_paths(job: JobSpec, root: Path, findings: Findings) -> None:
    """Note relative paths that leave the workspace through a link; ``..`` is refused where it is written."""
    named: list[StreamSpec | TableSpec | SinkSpec] = [
        *job.streams.values(),
        *job.tables.values(),
        *(s.sink for s in job.statements),
    ]
    said = [(str(spec.connector.get("path") or ""), spec.at) for spec in named]
    folder = str(job.settings.get("checkpoint") or "")
    if folder != f".weft/streams/{job.name}":
        said.append((folder, None))
    for path, at in said:
        if path and not has_scheme(path) and not Path(path).is_absolute() and not escapes_folder(path):
            led = resolve_outside(root, root / path)
            if led is not None:
                message = f"the path {path!r} leads out of the workspace, to {str(led)!r}"
                findings.add("W2017", message, at, "write an absolute path where rows may come from or go to")


def _planned(job: JobSpec, statement: StatementSpec, findings: Findings) -> StatementPlan | None:
    own = Findings()
    plan = _plan(job, statement, own)
    findings.extend(own.diagnostics)
    return None if plan is None or own.errors else replace(plan, warnings=own.warnings)


def _plan(job: JobSpec, statement: StatementSpec, findings: Findings) -> StatementPlan | None:
    sources = read_sources(job, statement, findings)
    if sources is None:
        return None
    chain = Chain(job, statement, sources, findings)
    where = _where(statement, chain, findings)
    steps = chain.steps(where)
    kept = tuple(w for w in where or () if not any(w is moved for moved in chain.moved))
    _refuse_undone_joins(statement, sources, kept, findings)
    selected = _select(statement, chain, findings)
    if steps is None or where is None:
        return None
    output = fitted(tuple(selected.columns), statement.sink, findings)
    kernel = [s for s in steps if isinstance(s, KernelStep)]
    _refuse_dedup_without_state(sources, kernel, findings)
    if findings.errors:
        return None
    executor = KERNEL if kernel else LOOKUP if steps else PASS
    return _assembled(statement, sources, steps, in_microseconds(all_of(kept)), output, selected, executor)


def _assembled(
    statement: StatementSpec,
    sources: Sequence[FromSource],
    steps: Sequence[Step],
    where: Typed | None,
    output: tuple[OutputColumn, ...],
    selected: SelectList,
    executor: str,
) -> StatementPlan:
    read = find_read_columns(sources, steps, where, (*(c.typed for c in output), selected.event_time))
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
    emits = [s.emit for s in steps if isinstance(s, KernelStep) and s.axis is not None]
    return StatementPlan(
        name=statement.name,
        inputs=inputs,
        tables=tables,
        steps=tuple(steps),
        where=where,
        output=output,
        key_columns=tuple(selected.keys),
        event_time=selected.event_time,
        emit=emits[-1] if emits else "changes",
        sink=replace(statement.sink, columns=_sink_columns(output)),
        executor=executor,
        reason=_REASONS[executor] if emits or executor != KERNEL else _KEPT_TABLE,
        spec=statement,
    )


def _sink_columns(output: Sequence[OutputColumn]) -> Schema:
    return Schema(tuple(Field(c.name, c.dtype, c.nullable) for c in output))


_REASONS = {
    KERNEL: "exact lateness per side, match flags and flush; the native join has none of them",
    LOOKUP: "each row looks into tables that do not change; nothing is kept between batches",
    PASS: "one stream without a join; nothing is kept between batches",
}


_KEPT_TABLE = (
    "match flags of the table's rows and flush; Spark refuses RIGHT and FULL JOIN of a stream with a table"
)


def _where(statement: StatementSpec, chain: Chain, findings: Findings) -> tuple[Typed, ...] | None:
    return () if statement.where is None else checked(statement.where, chain.scope(), findings)


def _select(statement: StatementSpec, chain: Chain, findings: Findings) -> SelectList:
    selected = SelectList(chain.scope(), findings)
    for item in statement.items:
        selected.read(item)
    return selected


def _refuse_undone_joins(
    statement: StatementSpec, sources: Sequence[FromSource], where: Sequence[Typed], findings: Findings
) -> None:
    """Note conditions of WHERE that no padded row of an outer join can pass."""
    for place, join in enumerate(statement.joins, start=1):
        alias = sources[place].alias
        padded = []
        if join.how in ("left", "full"):
            padded.append((frozenset({place}), alias))
        if join.how in ("right", "full"):
            earlier = ", ".join(s.alias for s in sources[:place])
            padded.append((frozenset(range(place)), earlier))
        for part in where:
            for group, said in padded:
                if null_rejects(part, group):
                    findings.add(
                        "W2109",
                        f"this condition drops every row without {said}: the {join.how.upper()} JOIN of"
                        f" {alias} keeps them for nothing",
                        place_of(part),
                        f"move it into the ON of {alias}, or write {_amounts_to(join.how, group, place)}",
                    )


def _refuse_dedup_without_state(
    sources: Sequence[FromSource], kernel: Sequence[KernelStep], findings: Findings
) -> None:
    for source in sources:
        if not kernel and isinstance(source.spec, StreamSpec) and source.spec.dedup:
            findings.add(
                "W2119",
                f"{source.alias} tells duplicates by {', '.join(source.spec.dedup)}, but no join of this"
                " statement keeps rows to compare them with",
                source.at,
                "leave out 'dedup.keys', or join two streams",
            )


def _amounts_to(how: str, rejected: frozenset[int], place: int) -> str:
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
