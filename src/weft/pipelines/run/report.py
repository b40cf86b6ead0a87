"""RunReport: the result of a run for users and ``--json``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from weft.core.documents import Document, Key, round_seconds
from weft.errors import Diagnostic
from weft.pipelines.model.values import RunStatus
from weft.pipelines.store.reader import StoreReader
from weft.pipelines.store.records import OperationRecord, OutputRecord, OutputState, ResolverSnapshot, RunFailure

_KEYS = (
    "run_id", "status", "project", "project_version", "period", "known_at", "sandbox", "snapshot",
    "seconds", "attempt", "operations", "outputs", "resolver_snapshot",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputReport(Document):
    """An output that was published."""

    seq: int
    location: str
    format: str
    rows: int
    columns: tuple[str, ...]
    dataset: str | None = None
    dataset_version: int | None = None

    @classmethod
    def of(cls, output: OutputRecord, location: str, **more: Any) -> Self:
        """Return the report of an output with its location as users see it."""
        return cls(
            seq=output.seq,
            location=location,
            format=output.format,
            rows=output.rows,
            columns=output.columns,
            dataset=output.register_as if output.dataset_version is not None else None,
            dataset_version=output.dataset_version,
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOutput(OutputReport):
    """An output of a run and its state between stage and target."""

    DOCUMENT: ClassVar = (
        "seq", "state", "location", "format", "rows", "columns", "dataset", "dataset_version"
    )  # fmt: skip

    state: OutputState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Document):
    """A run that has ended.

    `diagnostics` are its findings; `identical` says for a rerun whether it read the same inputs.
    """

    DOCUMENT: ClassVar[tuple[str, ...]] = (*_KEYS, "failure")
    OPTIONAL: ClassVar = ("failure",)

    run_id: str
    status: RunStatus
    project: str
    project_version: int
    period: str
    known_at: dt.datetime
    sandbox: bool
    snapshot: str
    seconds: Annotated[float, round_seconds]
    operations: tuple[OperationRecord, ...]
    outputs: tuple[OutputReport, ...]
    resolver_snapshot: ResolverSnapshot
    warnings: tuple[Diagnostic, ...] = ()
    failure: Annotated[RunFailure | None, Key("error")] = None
    diagnostics: tuple[Diagnostic, ...] = ()
    attempt: int = 1
    rerun_of: str | None = None
    identical: bool | None = None

    @property
    def ok(self) -> bool:
        """Whether everything was published."""
        return self.status == "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunReport(RunReport):
    """A run that repeated another one; `identical` says whether it read the same inputs."""

    DOCUMENT: ClassVar = (*_KEYS, "rerun_of", "identical", "failure")

    rerun_of: Annotated[str | None, {"type": "string"}] = None


def report_of(
    run_id: str,
    store: StoreReader,
    *,
    locations: Mapping[int, str],
    warnings: tuple[Diagnostic, ...] = (),
    diagnostics: tuple[Diagnostic, ...] = (),
    identical: bool | None = None,
) -> RunReport:
    """Return the report of a run from its records; `locations` are those of its outputs as users see them."""
    run = store.run(run_id)
    kind = RunReport if run.rerun_of is None else RerunReport
    return kind(
        run_id=run.id,
        status=run.status,
        project=run.project_name,
        project_version=run.project_version,
        period=run.period,
        known_at=run.known_at,
        sandbox=run.sandbox,
        snapshot=run.snapshot_sha,
        seconds=run.seconds or 0.0,
        operations=store.operations(run_id),
        outputs=tuple(
            OutputReport.of(output, locations.get(output.seq, output.target))
            for output in store.outputs(run_id)
            if output.state == "published"
        ),
        resolver_snapshot=store.snapshot(run_id)["resolver_snapshot"],
        warnings=warnings,
        failure=run.failure,
        diagnostics=diagnostics,
        attempt=run.attempt,
        rerun_of=run.rerun_of,
        identical=identical,
    )
