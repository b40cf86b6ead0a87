"""Store: what changes a store; each method is one transaction that may be tried again."""

from __future__ import annotations

import datetime as dt

from weft.io.datasource import EntityStatus
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.values import ProjectStatus
from weft.pipelines.plan.catalog import PublishedLocation
from weft.pipelines.plan.impact import ConflictReport
from weft.pipelines.store import version_rows
from weft.pipelines.store.records import Registration
from weft.pipelines.store.run_writer import RunWriter
from weft.pipelines.store.version_rows import Entity


class Store(RunWriter):
    """A store that can be changed: versions, the state of projects, runs."""

    # versions

    def record(self, entity: Entity, at: dt.datetime | None = None) -> None:
        """Keep a version of a dataset, project or resolver; a known version that differs is refused."""
        self.database.write(lambda c: version_rows.put_version(c, entity, at or self.now(c)))

    def register(self, dataset: Dataset, location: PublishedLocation, run_id: str, seq: int) -> int:
        """Register what an output published as the next version of its dataset; return the version."""
        new = Registration(dataset=dataset, location=location, seq=seq)
        return self.database.write(lambda c: version_rows.add_registered(c, new, run_id, self.now(c)))

    def set_dataset_status(self, id: str, version: int, status: EntityStatus) -> bool:
        """Enable or disable a version that the store keeps; False when it keeps none such."""
        return self.database.write(lambda c: version_rows.set_dataset_status(c, id, version, status))

    # the state of projects

    def set_state(
        self,
        project_id: str,
        status: ProjectStatus,
        *,
        active_version: int | None = None,
        pinned: int | None = None,
    ) -> None:
        """Remember that a project is a draft, active or inactive; an open conflict is forgotten."""
        self.database.write(
            lambda c: version_rows.put_state(
                c, project_id, status, self.now(c), active_version=active_version, pinned=pinned
            )
        )

    def set_conflict(self, project_id: str, report: ConflictReport) -> None:
        """Remember what a new dataset version breaks; the project cannot run until that is resolved."""
        self.database.write(
            lambda c: version_rows.put_state(c, project_id, "conflict", self.now(c), conflict=report)
        )

    def clear_conflict(self, project_id: str) -> None:
        """Forget the conflict of a project, which is a draft then."""
        self.set_state(project_id, "draft")
