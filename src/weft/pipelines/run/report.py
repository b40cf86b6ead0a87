"""RunReport: what a run did, as users and ``--json`` see it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.errors import Diagnostic
from weft.pipelines.model.words import RunStatus
from weft.pipelines.store.records import OperationRecord, OutputRecord, RunFailure, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputReport:
    """An output that was published."""

    seq: int
    location: str
    format: str
    rows: int
    columns: tuple[str, ...]
    dataset: str | None = None
    dataset_version: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the form of the document."""
        return {
            "seq": self.seq,
            "location": self.location,
            "format": self.format,
            "rows": self.rows,
            "columns": list(self.columns),
            "dataset": self.dataset,
            "dataset_version": self.dataset_version,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A run that has ended.

    `diagnostics` are what it failed with; `identical` says of a rerun whether it read the same inputs.
    """

    run_id: str
    status: RunStatus
    project: str
    project_version: int
    period: str
    known_at: dt.datetime
    sandbox: bool
    snapshot: str
    seconds: float
    operations: tuple[OperationRecord, ...]
    outputs: tuple[OutputReport, ...]
    resolver_snapshot: Mapping[str, Any]
    warnings: tuple[Diagnostic, ...] = ()
    failure: RunFailure | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    attempt: int = 1
    rerun_of: str | None = None
    identical: bool | None = None
    note: str = field(default="")

    @property
    def ok(self) -> bool:
        """Whether everything was published."""
        return self.status == "completed"

    def to_json(self) -> dict[str, Any]:
        """Return the `data` of the document that ``weft run --json`` prints."""
        document: dict[str, Any] = {
            "run_id": self.run_id,
            "status": self.status,
            "project": self.project,
            "project_version": self.project_version,
            "period": self.period,
            "known_at": self.known_at.astimezone(dt.UTC).isoformat().replace("+00:00", "Z"),
            "sandbox": self.sandbox,
            "snapshot": self.snapshot,
            "seconds": round(self.seconds, 3),
            "attempt": self.attempt,
            "operations": [operation_json(op) for op in self.operations],
            "outputs": [output.to_json() for output in self.outputs],
            "resolver_snapshot": dict(self.resolver_snapshot),
        }
        if self.rerun_of is not None:
            document |= {"rerun_of": self.rerun_of, "identical": self.identical}
        if self.failure is not None:
            document["error"] = self.failure.to_dict()
        return document


def operation_json(op: OperationRecord) -> dict[str, Any]:
    """Return an operation as documents have it; counts of one that did not run are None."""
    return {
        "seq": op.seq,
        "name": op.name,
        "type": op.type,
        "status": op.status,
        "rows_in": op.rows_in,
        "rows_out": op.rows_out,
        "rows_changed": op.rows_changed,
        "joins": [
            {"alias": j.alias, "matched": j.matched, "unmatched": j.unmatched, "multiple": j.multiple}
            for j in op.joins
        ],
    }


def output_reports(
    outputs: tuple[OutputRecord, ...], locations: Mapping[int, str]
) -> tuple[OutputReport, ...]:
    """Return the outputs that are published; `locations` gives each its place as users see it."""
    return tuple(
        OutputReport(
            seq=output.seq,
            location=locations.get(output.seq, output.target),
            format=output.format,
            rows=output.rows,
            columns=output.columns,
            dataset=output.register_as if output.dataset_version is not None else None,
            dataset_version=output.dataset_version,
        )
        for output in outputs
        if output.state == "published"
    )


def report_of(
    run: RunRecord,
    operations: tuple[OperationRecord, ...],
    outputs: tuple[OutputRecord, ...],
    snapshot: Mapping[str, Any],
    *,
    locations: Mapping[int, str],
    warnings: tuple[Diagnostic, ...] = (),
    diagnostics: tuple[Diagnostic, ...] = (),
    identical: bool | None = None,
) -> RunReport:
    """Return the report of a run from what the store holds of it."""
    return RunReport(
        run_id=run.id,
        status=run.status,
        project=run.project_name,
        project_version=run.project_version,
        period=run.period,
        known_at=run.known_at,
        sandbox=run.sandbox,
        snapshot=run.snapshot_sha,
        seconds=run.seconds or 0.0,
        operations=operations,
        outputs=output_reports(outputs, locations),
        resolver_snapshot=snapshot["resolver_snapshot"],
        warnings=warnings,
        failure=run.failure,
        diagnostics=diagnostics,
        attempt=run.attempt,
        rerun_of=run.rerun_of,
        identical=identical,
    )
