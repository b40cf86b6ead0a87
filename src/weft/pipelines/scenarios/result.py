"""What became of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from weft.errors import Diagnostic
from weft.pipelines.scenarios.compare import Mismatch

Status = Literal["pass", "fail", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """One scenario after it ran: ``pass``, ``fail`` with mismatches, ``error`` with diagnostics.

    `key` are the columns by which reports name a row; `actual` the rows that came out.
    """

    name: str
    file: Path | None
    status: Status
    seconds: float
    mismatches: tuple[Mismatch, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    actual: tuple[Mapping[str, Any], ...] | None = None
    snapshot: Path | None = None
    key: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the form that documents have."""
        return {
            "name": self.name,
            "file": None if self.file is None else self.file.as_posix(),
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "mismatches": [m.to_json() for m in self.mismatches],
            "error": None if not self.diagnostics else self.diagnostics[0].to_dict(),
            "diagnostics": [d.to_dict() for d in self.diagnostics],
            "snapshot": None if self.snapshot is None else self.snapshot.as_posix(),
        }


def counted(results: Sequence[ScenarioResult]) -> dict[str, int]:
    """Return how many scenarios passed, failed, or could not be judged."""
    status = [r.status for r in results]
    return {"passed": status.count("pass"), "failed": status.count("fail"), "errors": status.count("error")}
