"""ConflictReport: what a new version of a dataset breaks in a project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from weft.core.documents import WORD, Document

ChangeType = Literal["removed", "renamed", "type_changed"]
Resolution = Literal["adapted", "pinned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakingChange(Document):
    """A column that operations of the project read and that is not what it was."""

    UNLISTED: ClassVar = ("resolution",)

    column: str
    change_type: Annotated[ChangeType, WORD]
    affected_operations: tuple[int, ...]
    resolution: Resolution | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictReport(Document):
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
