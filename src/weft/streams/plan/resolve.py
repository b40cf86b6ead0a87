"""plan_job: a job's specs become statements that every engine reads; all strictness lives here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weft.core.paths import climbs_out, has_scheme, outside
from weft.core.types import Field, Schema
from weft.errors import StreamPlanError
from weft.expr import Typed
from weft.streams.plan.bounds import place_of
from weft.streams.plan.chain import Chain
from weft.streams.plan.conditions import null_rejects
from weft.streams.plan.findings import Found
from weft.streams.plan.joining import all_of, checked
from weft.streams.plan.pruning import read_columns
from weft.streams.plan.resolved import (
    Input,
    JobPlan,
    KernelStep,
    OutputColumn,
    StatementPlan,
    Step,
    TableInput,
)
from weft.streams.plan.select_list import SelectList, fitted
from weft.streams.plan.sources import FromSource, read_sources
from weft.streams.plan.times import in_microseconds
from weft.streams.sql.spec import JobSpec, SinkSpec, StatementSpec, StreamSpec, TableSpec

KERNEL = "kernel"
LOOKUP = "lookup"
PASS = "pass"  # noqa: S105  # a word of explain, no secret


def plan_job(spec: JobSpec, root: Path) -> JobPlan:
    """Return the plan of a job, or raise `StreamPlanError` with everything that is wrong with it.

    `root` is the folder that relative paths of the job begin at.  Nothing is read or started.
    """
    found = Found()
    statements = [_planned(spec, statement, found) for statement in spec.statements]
    explains = [_planned(spec, statement, found) for statement in spec.explains]
    _check_paths(spec, root, found)
    if found.errors:
        raise StreamPlanError(found.said)
    return JobPlan(
        name=spec.name,
        root=root,
        statements=tuple(s for s in statements if s is not None),
        explains=tuple(s for s in explains if s is not None),
        settings=spec.settings,
        warnings=found.warnings,
    )


def _check_paths(job: JobSpec, root: Path, found: Found) -> None:
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
        if path and not has_scheme(path) and not Path(path).is_absolute() and not climbs_out(path):
            led = outside(root, root / path)
            if led is not None:
                message = f"the path {path!r} leads out of the workspace, to {str(led)!r}"
                found.add("W2017", message, at, "write an absolute path where rows may come from or go to")


def _planned(job: JobSpec, statement: StatementSpec, found: Found) -> StatementPlan | None:
    own = Found()
    plan = _plan(job, statement, own)
    found.extend(own.said)
    return None if plan is None or own.errors else replace(plan, warnings=own.warnings)


def _plan(job: JobSpec, statement: StatementSpec, found: Found) -> StatementPlan | None:
    sources = read_sources(job, statement, found)
    if sources is None:
        return None
    chain = Chain(job, statement, sources, found)
    where = _where(statement, chain, found)
    steps = chain.steps(where)
    kept = tuple(w for w in where or () if not any(w is moved for moved in chain.moved))
    _refuse_undone_joins(statement, sources, kept, found)
    selected = _select(statement, chain, found)
    if steps is None or where is None:
        return None
    output = fitted(tuple(selected.columns), statement.sink, found)
    kernel = [s for s in steps if isinstance(s, KernelStep)]
    _refuse_dedup_without_state(sources, kernel, found)
    if found.errors:
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
    read = read_columns(sources, steps, where, (*(c.typed for c in output), selected.event_time))
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


def _where(statement: StatementSpec, chain: Chain, found: Found) -> tuple[Typed, ...] | None:
    return () if statement.where is None else checked(statement.where, chain.scope(), found)


def _select(statement: StatementSpec, chain: Chain, found: Found) -> SelectList:
    selected = SelectList(chain.scope(), found)
    for item in statement.items:
        selected.read(item)
    return selected


def _refuse_undone_joins(
    statement: StatementSpec, sources: Sequence[FromSource], where: Sequence[Typed], found: Found
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
                    found.add(
                        "W2109",
                        f"this condition drops every row without {said}: the {join.how.upper()} JOIN of"
                        f" {alias} keeps them for nothing",
                        place_of(part),
                        f"move it into the ON of {alias}, or write {_amounts_to(join.how, group, place)}",
                    )


def _refuse_dedup_without_state(
    sources: Sequence[FromSource], kernel: Sequence[KernelStep], found: Found
) -> None:
    for source in sources:
        if not kernel and isinstance(source.spec, StreamSpec) and source.spec.dedup:
            found.add(
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
