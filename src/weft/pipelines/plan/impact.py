"""Breaking changes of a new dataset version for a project that reads an older one.

::

    v1  amount decimal(18,2), currency string       10 Convert reads amount, currency
    v2  amount decimal(18,4), iso_code string
        (previous_name: currency)                   ->  amount type_changed [10], currency renamed [10]

Changes of columns that no operation reads are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from weft.core.documents import OPEN_WORD, Document
from weft.core.names import find_similar, quote_for_shell
from weft.errors import Diagnostic
from weft.pipelines.model.dataset import ColumnDef, Dataset, TableDef
from weft.pipelines.model.project import Project
from weft.pipelines.plan.catalog import Catalog, RegisteredVersion
from weft.pipelines.plan.project import resolve_project
from weft.pipelines.plan.uses import Use, find_column_uses

ChangeType = Literal["removed", "renamed", "type_changed"]
Resolution = Literal["adapted", "pinned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakingChange(Document):
    """A column that operations of the project read and that was removed, renamed or changed its type."""

    UNLISTED: ClassVar = ("resolution",)

    column: str
    change_type: Annotated[ChangeType, OPEN_WORD]
    affected_operations: tuple[int, ...]
    resolution: Resolution | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictReport(Document):
    """Every breaking change between two versions of a dataset, for one project.

    >>> gone = BreakingChange(column="rate", change_type="removed", affected_operations=(10,))
    >>> report = ConflictReport(dataset_id="fx", dataset_version_from=1, dataset_version_to=2, breaking_changes=(gone,))
    >>> ConflictReport.from_dict(report.to_dict()) == report
    True
    """

    dataset_id: str
    dataset_version_from: int
    dataset_version_to: int
    breaking_changes: tuple[BreakingChange, ...]


def find_breaking_changes(old: Dataset, new: Dataset, project: Project, catalog: Catalog) -> ConflictReport | None:
    """Return the breaking changes from `old` to `new` for a project, or None.

    Raises `ActivationError` when the project is invalid with the old version too.
    """
    changed = tuple(_changes(old, new))
    if not changed:
        return None
    uses = _uses(old, project, catalog)
    breaking = []
    for tables, column, label, change in changed:
        seqs = {seq for table in tables for seq in uses.get((old.id, f"{table}.{column}"), ())}
        if seqs:
            breaking.append(BreakingChange(column=label, change_type=change, affected_operations=tuple(sorted(seqs))))
    if not breaking:
        return None
    return ConflictReport(
        dataset_id=old.id,
        dataset_version_from=old.version,
        dataset_version_to=new.version,
        breaking_changes=tuple(breaking),
    )


def _uses(old: Dataset, project: Project, catalog: Catalog) -> Mapping[Use, tuple[int, ...]]:
    """Return the columns that the operations of a project read when `old` is the newest version."""

    def is_newer(dataset: Dataset) -> bool:
        return dataset.id == old.id and dataset.version >= old.version

    # What a project uses is known only from its plan, so it is planned against the catalog of before.
    workspace = catalog.workspace
    before = replace(workspace, datasets=tuple(d for d in workspace.datasets if not is_newer(d)))
    kept = tuple(v for v in catalog.registered if not is_newer(v.dataset))
    then = Catalog.of(before, (*kept, RegisteredVersion(dataset=replace(old, status="active"))))
    calendar = catalog.calendar(project.calendar)
    plan = resolve_project(project, then, period=None, calendar=calendar, draft=True)
    return find_column_uses(plan.input, plan.operations)


def _changes(old: Dataset, new: Dataset) -> Iterator[tuple[tuple[str, ...], str, str, ChangeType]]:
    """Yield the names of the table, the column, its name in the report, and the change."""
    same = old.main_table.name == new.main_table.name
    for column, change in _changed(old.main_table, new.main_table if same else None):
        yield (old.main_table.name,), column, column, change
    after = {lookup.alias: lookup.target for lookup in new.lookups}
    for lookup in old.lookups:
        if not isinstance(lookup.target, TableDef):
            continue  # another dataset, with its own versions
        target = after.get(lookup.alias)
        for column, change in _changed(lookup.target, target if isinstance(target, TableDef) else None):
            yield (lookup.alias, lookup.target.name), column, f"{lookup.alias}.{column}", change


def _changed(old: TableDef, new: TableDef | None) -> Iterator[tuple[str, ChangeType]]:
    now: Mapping[str, ColumnDef] = {} if new is None else {c.name: c for c in new.columns}
    # Only the new version knows of a renaming; without `previous_name` it is a removal and an addition.
    moved = {c.previous_name for c in now.values()}
    for column in old.columns:
        if column.name in now:
            if column.dtype != now[column.name].dtype:
                yield column.name, "type_changed"
        else:
            yield column.name, "renamed" if column.name in moved else "removed"


def describe_conflict(report: ConflictReport, new: Dataset, project: Project) -> tuple[Diagnostic, ...]:
    """Return a report as findings, each with the affected operations and a similar name."""
    return tuple(_describe_change(change, report, new, project) for change in report.breaking_changes)


def _describe_change(change: BreakingChange, report: ConflictReport, new: Dataset, project: Project) -> Diagnostic:
    seqs = ", ".join(map(str, change.affected_operations))
    words = {"removed": "is removed", "renamed": "is renamed", "type_changed": "has another type"}[change.change_type]
    first = project.operation(change.affected_operations[0])
    return Diagnostic(
        "W1105",
        f"column {change.column!r} of {new.name!r} {words} in version {report.dataset_version_to}; "
        f"project {project.name!r} reads it in {'operation' if ',' not in seqs else 'operations'} {seqs}",
        help=_next_step(change, new, project),
        at=None if first is None else first.at.whole,
    )


def _next_step(change: BreakingChange, new: Dataset, project: Project) -> str:
    table, _, column = change.column.rpartition(".")
    names = {lookup.alias for lookup in new.lookups if isinstance(lookup.target, TableDef)}
    table_def = new.table(table) if table in names else new.main_table
    resolve = f"`weft project resolve {quote_for_shell(project.name)} --adapt` or `--pin`"
    after = next((c.name for c in table_def.columns if c.previous_name == column), None)
    if after is not None:
        return f"it is called {after!r} now; {resolve}"
    if change.change_type == "type_changed":
        types = {c.name: c.dtype for c in table_def.columns}
        return f"it is {types[column]} now; {resolve}"
    close = find_similar(column, [c.name for c in table_def.columns], most=1)
    return f"the most similar name is {close[0]!r}; {resolve}" if close else resolve
