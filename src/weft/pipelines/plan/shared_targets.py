"""Outputs that would silently overwrite rows: two that share a target, or one that overwrites an input.

::

    20 -> out/gl        30 -> ./out/gl/              W1418  the second replaces the rows of the first
    project a -> pg:gl  project b -> pg:gl           W1419  the last run wins, unless both only add rows
    data/gl.csv -> ...  20 -> data/gl.csv            W1420  a rerun would read its own output

Without a period, one sample period of each calendar level is used, so that rendered templates are compared:
``{{YYYY}}-{{MM}}`` and ``{{period}}`` are the same folder for a month.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from weft.core.calendar import GREGORIAN, Calendar, Period
from weft.core.findings import ErrorCollector
from weft.core.source import Source
from weft.errors import Diagnostic, Severity, WeftError
from weft.io.datasource import WriteMode
from weft.pipelines.model.operation import Operation, Output
from weft.pipelines.model.project import Project
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.destination import resolve_target
from weft.pipelines.plan.operations.places import Place, read_places, written
from weft.pipelines.plan.operations.resolved import ResolvedOperation, ResolvedOutput, Target
from weft.pipelines.plan.reads import Read
from weft.pipelines.plan.resolver.locate import locate

_DAY = dt.date(2026, 1, 1)
"""The date of the sample periods when a project is checked without a period."""

_ADDING: tuple[WriteMode, ...] = ("append", "merge", "fail_if_exists")
"""Modes in which projects can share a table: none of them removes rows with another key."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """An output with the place that it writes to in one period."""

    project: Project
    op: Operation
    mode: WriteMode
    target: Target
    place: Place
    location: str
    """The destination for display, with the tokens of the period."""

    @property
    def at(self) -> Source | None:
        return self.op.at.of("arguments.destination")

    @property
    def where(self) -> str:
        """File, line and column of the destination, or the name of the project when it has no file."""
        at = self.at
        if at is None or at.file is None:
            return f"project {self.project.name!r}"
        return f"{at.file}:{at.line}:{at.column}"

    def __str__(self) -> str:
        return f"{self.op.seq} {self.op.name!r}"


def list_sample_periods(calendar: Calendar) -> tuple[Period, ...]:
    """Return one period of each level, to check projects without one."""
    samples: list[Period] = []
    for level in calendar.levels:
        period = calendar.at(_DAY, level.name)
        candidates = () if period else calendar.within(dt.date.min, dt.date.max, level.name)
        samples += [period] if period else candidates[:1]
    return tuple(samples)


def find_output_failures(
    project: Project, catalog: Catalog, reads: Sequence[Read], periods: Iterable[Period]
) -> tuple[Failure, ...]:
    """Return outputs of one project that share a target or overwrite what the project reads."""
    failures: dict[tuple[object, ...], Failure] = {}
    for period in periods:
        claims = _claims(project, catalog, period)
        for first, second in combinations(claims, 2):
            if first.place.overlaps(second.place):
                failures.setdefault(
                    (first.op.seq, second.op.seq), Failure.of(_same_target(first, second), second.op.seq)
                )
        for claim in claims:
            for read in reads:
                if any(claim.place.is_read_by(place) for place in _read(read, project, catalog, period)):
                    failure = Failure.of(_own_input(claim, read), claim.op.seq)
                    failures.setdefault((claim.op.seq, read.name), failure)
    for one, other in _registered_twice(project):
        failures[one.seq, other.seq, "registered"] = Failure.of(_same_dataset(one, other), other.seq)
    return tuple(failures.values())


def _same_dataset(first: Operation, second: Operation) -> Diagnostic:
    return Diagnostic(
        "W1418",
        f"operations {first} and {second} both register dataset {_name(second)!r}: only one of them could be read",
        help="register one of them under another name",
        at=second.at.of("arguments.register_as_dataset"),
    )


def _registered_twice(project: Project) -> Iterator[tuple[Operation, Operation]]:
    named = [op for op in project.operations if _name(op)]
    return ((a, b) for a, b in combinations(named, 2) if _name(a) == _name(b))


def _name(op: Operation) -> str:
    return (op.arguments.register_as_dataset or "").strip() if isinstance(op.arguments, Output) else ""


def _claims(project: Project, catalog: Catalog, period: Period) -> tuple[_Claim, ...]:
    """Return the places that outputs write to; an invalid output is skipped here and reported with its operation."""
    context = PlanContext(
        catalog=catalog,
        project=project,
        period=period,
        calendar=GREGORIAN,  # places depend on the period alone
        known_at=None,
        errors=ErrorCollector(),
        selectors={},
    )
    claims = []
    for op in project.operations:
        if isinstance(op.arguments, Output):
            target = resolve_target(op, op.arguments, context)
            # Without a period, for messages: they hold for every period, not for the sample.
            template = resolve_target(op, op.arguments, replace(context, period=None))
            if target is not None and template is not None:
                place = written(target, catalog)
                claims.append(_Claim(project, op, op.arguments.mode, target, place, template.location))
    return tuple(claims)


def _read(read: Read, project: Project, catalog: Catalog, period: Period) -> tuple[Place, ...]:
    """Return the places of a read; one planned without a period is located for the sample period."""
    locations = read.locations
    if not locations:
        try:
            calendar = catalog.calendar(project.calendar)
            locations = locate(read.dataset, read.table, project, catalog, period, calendar).locations
        except WeftError:  # reported with the read, or the sample period has no data
            return ()
    return tuple(place for location in locations for place in read_places(location, catalog))


def _same_target(first: _Claim, second: _Claim) -> Diagnostic:
    if first.place == second.place:
        what = f"operations {first} and {second} both write to {second.location}"
        why = "the rows of one would replace those of the other"
    else:
        what = f"operations {first} and {second} write into each other: {first.location} and {second.location}"
        why = "replacing the outer folder would remove the inner one"
    return Diagnostic(
        "W1418",
        f"{what}; {why}",
        help=f"give one of them another destination; the other is at {first.where}",
        at=second.at,
    )


def _own_input(claim: _Claim, read: Read) -> Diagnostic:
    what = "its input" if read.name == "input" else f"what {read.name!r} reads"
    return Diagnostic(
        "W1420",
        f"operation {claim} writes to {claim.location}, which is {what} ({read.dataset})",
        help="write to another place: a run that changes what it reads cannot be repeated",
        at=claim.at,
    )


def find_shared_targets(catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Return findings about projects that write to the same place, reported at the later of the two."""
    findings: dict[tuple[str, str], Diagnostic] = {}
    projects = [p for p in catalog.workspace.projects if p.status != "inactive"]
    for period in _all_samples(projects, catalog):
        claims = [claim for project in projects for claim in _claims(project, catalog, period)]
        for first, second in _overlapping(claims):
            findings.setdefault((first.where, second.where), _shared(first, second))
    return tuple(findings.values())


def find_other_writers(
    project: Project, catalog: Catalog, periods: Iterable[Period] | None = None, others: Catalog | None = None
) -> tuple[Diagnostic, ...]:
    """Return findings about active projects that write to the places of a project.

    `catalog` tells where the project writes.  `others` has the other projects, where that is another one.
    """
    others = others or catalog
    if periods is None:
        periods = _all_samples([project], catalog)
    findings: dict[tuple[str, str], Diagnostic] = {}
    # As if it were active already, so that the finding is an error before it is activated.
    active = replace(project, status="active")
    beside = [p for p in others.workspace.projects if p.id != project.id and p.status == "active"]
    for period in periods if beside else ():
        own = _claims(active, catalog, period)
        for other in (claim for p in beside for claim in _claims(p, others, period)):
            for claim in own:
                if claim.place.overlaps(other.place):
                    findings.setdefault((other.where, claim.where), _shared(other, claim))
    return tuple(finding for finding in findings.values() if finding.severity == "error")


def _all_samples(projects: Iterable[Project], catalog: Catalog) -> tuple[Period, ...]:
    samples_by_key: dict[tuple[str, str], Period] = {}
    for name in dict.fromkeys(project.calendar for project in projects):
        try:
            samples = list_sample_periods(catalog.calendar(name))
        except WeftError:  # reported with the project that names it
            continue
        samples_by_key |= {(p.identifier, p.level): p for p in samples}
    return tuple(samples_by_key.values())


def _overlapping(claims: Sequence[_Claim]) -> Iterator[tuple[_Claim, _Claim]]:
    """Yield pairs of claims of different projects that overlap."""
    # By place and parent folders: comparing all pairs takes too long for hundreds of projects.
    by_place: dict[Place, list[_Claim]] = {}
    for claim in claims:
        by_place.setdefault(claim.place, []).append(claim)
    for claim in claims:
        parts = claim.place.parts
        around = [claim.place]
        if claim.place.kind == "files":
            around += [Place("files", parts[:n]) for n in range(1, len(parts))]
        for place in around:
            for other in by_place.get(place, ()):
                first, second = sorted((other, claim), key=claims.index)
                if first.project.id != second.project.id:
                    yield first, second


def _shared(first: _Claim, second: _Claim) -> Diagnostic:
    severity: Severity = "error"
    why = "a run of one replaces the rows of the other"
    help = f"give one of them another destination, or let both add rows with `mode: append` or `mode: merge`; the other is at {first.where}"
    if first.place != second.place:
        why = "replacing the outer folder removes the inner one"
        help = f"give one of them another destination; the other is at {first.where}"
    elif first.mode in _ADDING and second.mode in _ADDING and first.target.kind != "file":
        severity, why = "note", "both only add rows or replace those with the same key"
        help = f"the other is at {first.where}"
    elif first.project.status != "active" or second.project.status != "active":
        severity, why = "warning", f"they cannot both be active, because {why}"
    return Diagnostic(
        "W1419",
        f"projects {first.project.name!r} and {second.project.name!r} both write to {second.location}: {why}",
        help=help,
        severity=severity,
        at=second.at,
    )


def separate_outputs(operations: tuple[ResolvedOperation, ...], sandbox: str) -> tuple[ResolvedOperation, ...]:
    """Return the operations of a draft with separate folders for outputs that would share one in the sandbox.

    Tables of two databases, or an absolute and a relative path, can have the same name below the sandbox.
    """
    outputs = [op for op in operations if isinstance(op, ResolvedOutput)]
    crowded = {
        op.seq for a, b in combinations(outputs, 2) if _folder(a.target).overlaps(_folder(b.target)) for op in (a, b)
    }
    return tuple(
        replace(op, target=replace(op.target, location=_inserted(op.target.location, sandbox, str(op.seq))))
        if isinstance(op, ResolvedOutput) and op.seq in crowded
        else op
        for op in operations
    )


def _folder(target: Target) -> Place:
    return Place("files", tuple(target.location.strip("/").split("/")))


def _inserted(location: str, sandbox: str, seq: str) -> str:
    return f"{sandbox}/{seq}/{location.removeprefix(sandbox).lstrip('/')}"
