"""Checks of all files of a workspace against each other, without a period and without data, and of the outputs of a run.

::

    a.yml   output 20: register_as_dataset: gl_usd     writes journal_id, amount_reporting
    b.yml   input: gl_usd                              reads amount_reporting

In a fresh clone nothing has run and `gl_usd` is not in the store, but the files define its columns, so `b` can be checked
against them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weft.core.names import quote_for_shell, suggest
from weft.core.source import Source
from weft.core.types import Schema, common_type
from weft.errors import ActivationError, Diagnostic, ResolutionError
from weft.io.connectors import check_datasource
from weft.io.datasource import PERIOD
from weft.io.location import PUBLISHED
from weft.pipelines.model.dataset import ColumnDef, Dataset, DatasetRef, LookupDef, TableDef
from weft.pipelines.model.entries import build_entity_id
from weft.pipelines.model.operation import Append, Update
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import PathStrategy, Resolver, Rule, TableStrategy
from weft.pipelines.model.values import PERIOD_FROM, TemporalMode
from weft.pipelines.plan.catalog import Catalog, MissingDataset
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.operations.resolved import OWN_NAMES, ResolvedOutput, Target
from weft.pipelines.plan.project import ProjectPlan, examine_project
from weft.pipelines.plan.resolver.conditions import check_condition
from weft.pipelines.plan.resolver.templates import check_template
from weft.pipelines.plan.shared_targets import (
    find_other_writers,
    find_output_failures,
    find_shared_targets,
    list_sample_periods,
)


def check_resolver(resolver: Resolver) -> tuple[Diagnostic, ...]:
    """Return every finding about the rules of a resolver, errors and warnings.

    >>> from weft.pipelines.model.values import LocatedText
    >>> path = PathStrategy(datasource="files", path="{{YYY}}.csv")
    >>> rules = (Rule(name="all", strategy=path), Rule(name="old", strategy=path, when=LocatedText("period < '2025'")))
    >>> for finding in check_resolver(Resolver(id="r", name="r", version=1, status="active", rules=rules)):
    ...     print(finding.severity, finding.code, finding.message)
    error W1310 unknown token 'YYY'
    warning W1306 rule 'old' is never reached: rule 'all' before it has no condition
    error W1312 period identifiers have no order: as a string, '2024-01' is not part of '2024-Q1'
    error W1310 unknown token 'YYY'
    """
    findings: list[Diagnostic] = []
    open_rule: Rule | None = None
    for rule in resolver.rules:
        if open_rule is not None:
            findings.append(_never_reached(rule, open_rule))
        elif rule.when is None:
            open_rule = rule  # every later rule is checked too, since the order may be what is wrong
        try:
            check_condition(rule)
        except ResolutionError as failure:
            findings.extend(failure.diagnostics)
        for template, at in _templates(rule):
            findings.extend(check_template(template, at))
    return tuple(findings)


def _never_reached(rule: Rule, before: Rule) -> Diagnostic:
    return Diagnostic(
        "W1306",
        f"rule {rule.name!r} is never reached: rule {before.name!r} before it has no condition",
        help=f"move {before.name!r} to the end, or give it a `when`",
        severity="warning",
        at=rule.at.of("name"),
    )


def _templates(rule: Rule) -> Iterator[tuple[str, Source | None]]:
    strategy = rule.strategy
    if isinstance(strategy, PathStrategy):
        yield strategy.path, strategy.at.of("path")
    elif isinstance(strategy, TableStrategy):
        yield strategy.table, strategy.at.of("table")
        yield strategy.schema, strategy.at.of("schema")
    else:
        yield strategy.endpoint, strategy.at.of("endpoint")
        for key in ("params", "headers"):
            for name, text in getattr(strategy, key).items():
                yield str(text), strategy.at.of(f"{key}.{name}")


def check_catalog(catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Return the findings about entities that the check of a project does not cover.

    These are datasources, rules of resolvers, lookups into datasets, and the datasets whose resolver a project overrides.
    """
    workspace = catalog.workspace
    return (
        *(finding for source in workspace.datasources for finding in check_datasource(source)),
        *(finding for resolver in workspace.resolvers for finding in check_resolver(resolver)),
        *_lookups(catalog),
        *_overrides(catalog),
    )


def list_dataset_references(project: Project) -> Iterator[tuple[int | None, DatasetRef]]:
    """Yield every dataset that a project refers to, with the seq of the operation; None for the input."""
    yield None, project.input
    for operation in project.operations:
        if isinstance(operation.arguments, Update):
            for join in operation.arguments.joins:
                yield operation.seq, join.dataset
        elif isinstance(operation.arguments, Append):
            yield operation.seq, operation.arguments.source


def _lookups(catalog: Catalog) -> Iterator[Diagnostic]:
    for dataset in catalog.workspace.datasets:
        for lookup in dataset.lookups:
            if not isinstance(lookup.target, DatasetRef):
                continue
            target = catalog.dataset(lookup.target)
            if isinstance(target, MissingDataset):
                if target.kind != "unread":
                    yield _missing(target, lookup.target.at)
            else:
                yield from _conditions(dataset, lookup, target.dataset)


def _conditions(dataset: Dataset, lookup: LookupDef, target: Dataset) -> Iterator[Diagnostic]:
    left, right = dataset.main_table.schema, target.main_table.schema
    for i, (source, other) in enumerate(lookup.join_conditions):
        at = lookup.at.of(f"join_conditions.{i}.target_column")
        if other not in right:
            help = suggest(other, right.names, "its columns are", most=1)
            yield Diagnostic("W1019", f"dataset {target} has no column {other!r}", help=help, at=at)
        elif source in left and common_type(left[source].dtype, right[other].dtype) is None:
            yield Diagnostic(
                "W1019",
                f"{source!r} is {left[source].dtype} and {other!r} is {right[other].dtype}: they cannot be equal",
                help="give both columns one type",
                at=at,
            )


def _overrides(catalog: Catalog) -> Iterator[Diagnostic]:
    for project in catalog.workspace.projects:
        for name in project.resolver_overrides:
            target = catalog.dataset(DatasetRef(name))
            if isinstance(target, MissingDataset) and target.kind == "dataset":
                yield _missing(target, project.at.key(f"resolver_overrides.{name}"))


def _missing(missing: MissingDataset, at: Source | None) -> Diagnostic:
    if missing.kind == "dataset":
        message = f"unknown dataset {missing.name!r}"
    elif missing.kind == "version":
        message = f"dataset {missing.name!r} has no version {missing.version}"
    else:
        message = f"dataset {missing.name!r} is disabled"
    return Diagnostic("W1020", message, help=missing.next_step("add it to datasets/"), at=at)


def build_registered_dataset(op: ResolvedOutput, catalog: Catalog) -> Dataset:
    """Return the dataset that an output registers: the next version of the dataset with that name.

    Weft's own columns are not declared; the natural key is kept when all its columns are written.
    """
    name = str(op.register_as)
    known = catalog.versions(name)
    schema: Schema = op.before.schema
    columns = tuple(
        ColumnDef(column, schema[column].dtype, schema[column].nullable)
        for column in op.columns
        if column not in OWN_NAMES and not column.startswith("_")
    )
    key = known[-1].natural_key_columns if known else op.before.dataset.natural_key_columns
    written = set(op.columns)
    return Dataset(
        id=known[-1].id if known else build_entity_id("dataset", name),
        name=known[-1].name if known else name,
        version=catalog.next_version(name),
        status="active",
        main_table=TableDef(name=op.target.table or name, columns=columns, temporal_mode=_mode(op.target, written)),
        natural_key_columns=key if key and set(key) <= written else (),
        resolver_id=PUBLISHED,
        description=f"written by operation {op.seq} {op.name}",
        origin="registered",
    )


def _mode(target: Target, written: set[str]) -> TemporalMode:
    """Return the temporal mode: files belong to one period, rows of a table have a period column or no period."""
    if PERIOD_FROM.name in written:
        return "bitemporal"
    return "period" if PERIOD.name in written or target.kind in ("files", "file") else "snapshot"


def add_promised(catalog: Catalog) -> Catalog:
    """Return the catalog with the datasets that the projects of its workspace will register.

    A project may read what another one registers, so this repeats until there is nothing new.  What a project with errors
    would register is `unread`, so that projects that read it get no further errors.
    """
    # A project is examined only when what it reads is known; projects that read each other stay in `waiting`.
    waiting = {p.id: p for p in catalog.workspace.projects if _new_names(p, catalog)}
    progress = True
    while waiting and progress:
        progress = False
        for id, project in tuple(waiting.items()):
            pending = {name for other in waiting.values() for name in _new_names(other, catalog)}
            if any(ref.name in pending for _, ref in list_dataset_references(project)):
                continue
            names = _new_names(project, catalog)
            # The columns of an open working set are unknown, and so are those of what it would register.
            outputs = {op.register_as: op for op in examine_project(project, catalog).outputs if not op.before.open}
            if set(names) <= outputs.keys():
                new = tuple(build_registered_dataset(outputs[name], catalog) for name in names)
                catalog = replace(catalog, promised=(*catalog.promised, *new))
            else:
                catalog = replace(catalog, unread=(*catalog.unread, *names))
            progress = True
            del waiting[id]
    return catalog


def _new_names(project: Project, catalog: Catalog) -> tuple[str, ...]:
    """Return the names that a project registers and that no dataset has yet."""
    return tuple(name for name in project.registers if not catalog.versions(name))


def list_promised(project: Project, catalog: Catalog) -> Iterator[Diagnostic]:
    """Yield a note for each dataset that a project reads and that is not registered yet."""
    for _, ref in list_dataset_references(project):
        coming = [d for d in catalog.promised if ref.name in (d.name, d.id)]
        if not coming or catalog.versions(ref.name):
            continue
        maker = next(p for p in catalog.workspace.projects if coming[0].name in p.registers)
        first = f"`weft project activate {quote_for_shell(maker.name)}`, then " if maker.status == "draft" else ""
        yield Diagnostic(
            "W1214",
            f"dataset {ref.name!r} is not registered yet: project {maker.name!r} registers it when it runs",
            help=f"{first}`weft run {quote_for_shell(maker.name)} -p PERIOD` before {project.name!r} runs",
            severity="note",
            at=ref.at,
        )


def check_workspace(catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Return all findings about the projects of a catalog and the entities they refer to."""
    catalog = add_promised(catalog)
    findings = [*check_catalog(catalog)]
    for project in catalog.workspace.projects:
        checked = examine_project(project, catalog)
        findings += [failure.diagnostic for failure in checked.failures]
        findings += [*checked.warnings, *list_promised(project, catalog)]
    return (*findings, *find_shared_targets(catalog))


def check_outputs(plan: ProjectPlan, catalog: Catalog, others: Catalog | None = None) -> None:
    """Raise `ActivationError` when outputs of a plan share a target or overwrite what it reads.

    A plan from a snapshot knows only its own project: then `others` is the catalog with the projects of the workspace.
    Recovery skips this check: it completes a run that was started before.
    """
    periods = list_sample_periods(catalog.calendar(plan.calendar)) if plan.period is None else (plan.period,)
    failures = find_output_failures(plan.project, catalog, plan.reads, periods)
    if not plan.draft:
        shared = find_other_writers(plan.project, catalog, periods, others)
        failures = (*failures, *(Failure.of(finding, None) for finding in shared))
    if failures:
        error = ActivationError([f.diagnostic for f in failures])
        error.failures = failures
        raise error
