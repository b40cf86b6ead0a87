"""All files of a workspace checked against each other, without a period and without data."""

from __future__ import annotations

from weft.errors import Diagnostic
from weft.plan.catalog import Catalog
from weft.plan.project import examined
from weft.plan.references import catalog_findings
from weft.plan.registered import promised_notes, with_promised
from weft.plan.shared_targets import shared_targets


def check_workspace(catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Return everything that is wrong with the projects of a catalog and with what they name."""
    catalog = with_promised(catalog)
    found = [*catalog_findings(catalog)]
    for project in catalog.workspace.projects:
        checked = examined(project, catalog)
        found += [failure.diagnostic for failure in checked.failures]
        found += [*checked.warnings, *promised_notes(project, catalog)]
    return (*found, *shared_targets(catalog))
