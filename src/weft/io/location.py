"""Location: one place that holds data of one period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from weft.core.documents import Document
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.names import format_list
from weft.errors import ResolutionError

ANY_LEVEL = "any"
"""The data level of a location whose rows are not separated by period."""

PUBLISHED = "weft:published"
"""Id of the built-in resolver of datasets that a run registered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location(Document):
    """One place that holds data of one period.

    `path` is as the rule renders it, below the prefix of the datasource.  `catalog` is the request to a
    service that knows the place; of something a run published it holds the format.  Where `data_level`
    is not ``any``, all rows are of `period_identifier`.
    """

    DOCUMENT: ClassVar = (
        "datasource_id", "path", "table", "schema", "catalog", "period_identifier",
        "data_level", "resolver_id", "resolver_version", "rule_name",
    )  # fmt: skip
    UNLISTED: ClassVar = ("schema", "catalog", "data_level", "resolver_id", "resolver_version", "rule_name")

    datasource_id: str
    path: str | None = None
    table: str | None = None
    schema: str | None = None
    catalog: FrozenMap[str, Any] | None = None
    period_identifier: str
    data_level: str
    resolver_id: str
    resolver_version: int
    rule_name: str
    missing: Literal["fail", "skip"] = "fail"

    def __str__(self) -> str:
        if self.path is not None:
            return self.path
        if self.table is not None:
            return f"{self.schema}.{self.table}" if self.schema else self.table
        return str((self.catalog or EMPTY).get("endpoint", ""))

    @property
    def period(self) -> str | None:
        """The period of every row, None when the data is not separated by period."""
        return None if self.data_level == ANY_LEVEL else self.period_identifier


def missing_data_error(missing: Sequence[tuple[Location, str]]) -> ResolutionError:
    """Return the error for locations, with their whole paths, that have no data."""
    lines = [f"{at.period_identifier}: {path}" for at, path in missing]
    periods = format_list(dict.fromkeys(at.period_identifier for at, _ in missing))
    return ResolutionError(
        f"there is no data for {periods}: {', '.join(path for _, path in missing)}",
        code="W1309",
        help="\n".join(lines)
        + "\nput the data there, or say `missing: skip` in the rule when a period may have none",
    )
