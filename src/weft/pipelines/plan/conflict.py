"""ConflictReport: what a new version of a dataset breaks in a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

ChangeType = Literal["removed", "renamed", "type_changed"]
Resolution = Literal["adapted", "pinned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakingChange:
    """A column that operations of the project read and that is not what it was."""

    column: str
    change_type: ChangeType
    affected_operations: tuple[int, ...]
    resolution: Resolution | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictReport:
    """Every breaking change between two versions of a dataset, for one project.

    >>> gone = BreakingChange(column="rate", change_type="removed", affected_operations=(10,))
    >>> report = ConflictReport(
    ...     dataset_id="fx", dataset_version_from=1, dataset_version_to=2, breaking_changes=(gone,)
    ... )
    >>> ConflictReport.from_dict(report.to_dict()) == report
    True
    """

    dataset_id: str
    dataset_version_from: int
    dataset_version_to: int
    breaking_changes: tuple[BreakingChange, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the form that the store and ``--json`` hold."""
        changes = [
            asdict(change) | {"affected_operations": list(change.affected_operations)}
            for change in self.breaking_changes
        ]
        return {
            "dataset_id": self.dataset_id,
            "dataset_version_from": self.dataset_version_from,
            "dataset_version_to": self.dataset_version_to,
            "breaking_changes": changes,
        }

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> ConflictReport:
        """Return the report that `to_dict` wrote."""
        changes = (
            BreakingChange(**{**change, "affected_operations": tuple(change["affected_operations"])})
            for change in said["breaking_changes"]
        )
        return cls(**{**said, "breaking_changes": tuple(changes)})
