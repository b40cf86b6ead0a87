"""All files of a workspace checked against each other, without a period and without data; and the outputs of a run."""

from __future__ import annotations

from weft.errors import ActivationError, Diagnostic
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.project import ProjectPlan, examined
from weft.pipelines.plan.references import catalog_findings
from weft.pipelines.plan.registered import promised_notes, with_promised
from weft.pipelines.plan.shared_targets import other_writers, output_failures, sample_periods, shared_targets


def check_workspace(catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Return everything that is wrong with the projects of a catalog and with what they name."""
    catalog = with_promised(catalog)
    found = [*catalog_findings(catalog)]
    for project in catalog.workspace.projects:
        checked = examined(project, catalog)
        found += [failure.diagnostic for failure in checked.failures]
        found += [*checked.warnings, *promised_notes(project, catalog)]
    return (*found, *shared_targets(catalog))


def check_outputs(plan: ProjectPlan, catalog: Catalog) -> None:
    """Raise `ActivationError` when outputs of a plan share a target or overwrite what it reads.

    Recovery does not ask: it completes what an earlier release has begun.
    """
    periods = sample_periods(catalog.calendar(plan.calendar)) if plan.period is None else (plan.period,)
    found = output_failures(plan.project, catalog, plan.reads, periods)
    if not plan.draft:
        shared = other_writers(plan.project, catalog, periods)
        found = (*found, *(Failure.of(finding, None) for finding in shared))
    if found:
        error = ActivationError([f.diagnostic for f in found])
        error.failures = found
        raise error
