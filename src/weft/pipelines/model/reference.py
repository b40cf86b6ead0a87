"""Small things that several entities say: an expression, a dataset, a moment."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from weft.core.source import Source
from weft.pipelines.model.words import AsOfKind


@dataclass(frozen=True, slots=True)
class Said:
    """A text of the user, an expression mostly, and where it stands."""

    text: str
    at: Source | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


NOT_SAID = "?"
"""The dataset of a reference that a file leaves out, while the rest of the file is checked."""


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """A dataset by id or name, with its version when one is pinned.

    >>> str(DatasetRef("gl", 3)), str(DatasetRef("gl"))
    ('gl@3', 'gl')
    """

    said: str
    version: int | None = None
    at: Source | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.said if self.version is None else f"{self.said}@{self.version}"

    def to_dict(self, *, dataset: str = "dataset_id", version: str = "dataset_version") -> dict[str, Any]:
        """Return the keys that name the dataset, under the names they have where it stands."""
        return {dataset: self.said} | ({} if self.version is None else {version: self.version})


@dataclass(frozen=True, slots=True)
class AsOfSaid:
    """The day at which a bitemporal table is read.

    >>> str(PERIOD_START), str(AsOfSaid("date", date=dt.date(2026, 1, 31)))
    ('period_start', '2026-01-31')
    """

    kind: AsOfKind
    date: dt.date | None = None
    column: str | None = None

    def __str__(self) -> str:
        if self.date is not None:
            return self.date.isoformat()
        return self.column if self.column is not None else self.kind


PERIOD_START = AsOfSaid("period_start")
PERIOD_END = AsOfSaid("period_end")
