"""What became of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from weft.core.documents import Document, round_seconds
from weft.errors import Diagnostic
from weft.pipelines.scenarios.compare import Mismatch

Status = Literal["pass", "fail", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult(Document):
    """One scenario after it ran: ``pass``, ``fail`` with mismatches, ``error`` with diagnostics.

    `key` are the columns by which reports name a row; `actual` the rows that came out.
    """

    DOCUMENT: ClassVar = (
        "name",
        "file",
        "status",
        "seconds",
        "mismatches",
        "error",
        "diagnostics",
        "snapshot",
    )

    name: str
    file: Path | None
    status: Status
    seconds: Annotated[float, round_seconds]
    mismatches: tuple[Mismatch, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    actual: tuple[Mapping[str, Any], ...] | None = None
    snapshot: Path | None = None
    key: tuple[str, ...] = ()

    @property
    def error(self) -> Diagnostic | None:
        """The first finding of a scenario that did not run."""
        return self.diagnostics[0] if self.diagnostics else None


def counted(results: Sequence[ScenarioResult]) -> dict[str, int]:
    """Return how many scenarios passed, failed, or could not be judged."""
    status = [r.status for r in results]
    return {"passed": status.count("pass"), "failed": status.count("fail"), "errors": status.count("error")}
