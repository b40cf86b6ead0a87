"""Runs that go on after a failure, and runs that are done again from their snapshot."""

from __future__ import annotations

import datetime as dt
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine_data import CONVERT, project_text, sample_workspace
from engine_runs import loaded, opened, ran, rows
from weft.errors import RunError
from weft.io.spark.session import Session
from weft.pipelines.run.execute import RunOptions
from weft.pipelines.run.moving import staged_runs, steps_folder
from weft.pipelines.run.report import RunReport
from weft.pipelines.run.resume import rerun, resume
from weft.pipelines.spark.read import read_table
from weft.pipelines.spark.stage import stage as stage_output
from weft.pipelines.store.writer import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWO = """\
- {seq: 20, name: First, type: output, arguments: {destination: {path: out/first}}}
- {seq: 30, name: Double, type: update, arguments: {assignments: [{column: amount_reporting, expression: amount_reporting * 2}]}}
- {seq: 40, name: Second, type: output, arguments: {destination: {path: out/second}}}
"""
FIRST, SECOND = "out/first/period=2026-01", "out/second/period=2026-01"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text([CONVERT, TWO])})


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with opened(root) as found:
        yield found


def resumed(root: Path, store: Store, spark: SparkSession, run: str, **given: Any) -> RunReport:
    return resume(run, root=root, store=store, session=Session(spark), **given)


def failing_output(monkeypatch: pytest.MonkeyPatch, seq: int, number: int) -> Callable[[], None]:
    """Make the writing of an output fail with an error of the disk; return a function that repairs it."""
    real = stage_output

    def stage(df: Any, op: Any, folder: Path, **given: Any) -> Any:
        if op.seq == seq:
            raise OSError(number, os.strerror(number))
        return real(df, op, folder, **given)

    monkeypatch.setattr("weft.pipelines.run.engine.stage_output", stage)
    return lambda: monkeypatch.setattr("weft.pipelines.run.engine.stage_output", real)


def test_a_failed_run_goes_on_from_its_last_step(
    root: Path, store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair = failing_output(monkeypatch, 40, errno.EIO)
    report = ran(root, store, spark)
    assert report.failure is not None
    assert (report.failure.code, report.failure.operation_order) == ("W1513", 40)
    assert not (root / "out").exists()
    run = report.run_id
    assert store.run(run).last_completed_operation == 20
    staged = [o.manifest for o in store.outputs(run)]
    assert (steps_folder(root, run) / "10.json").exists()
    # The project may have changed since: the snapshot decides.
    (root / "projects" / "fx_reporting.yml").unlink()

    repair()
    read: list[str] = []

    def reading(session: Any, what: Any, *given: Any, **named: Any) -> Any:
        read.append(what.name)
        return read_table(session, what, *given, **named)

    monkeypatch.setattr("weft.pipelines.run.engine.read_table", reading)
    again = resumed(root, store, spark, run)
    assert (again.run_id, again.status, again.attempt) == (run, "completed", 2), again.diagnostics
    assert read == []
    assert [o.manifest for o in store.outputs(run) if o.seq == 20] == staged
    assert [(o.seq, o.rows) for o in again.outputs] == [(20, 10), (40, 10)]
    assert [o.status for o in again.operations] == ["completed"] * 4
    first = rows(spark, root / FIRST, "journal_id", "amount_reporting", "_row_id", "_created_at")
    second = rows(spark, root / SECOND, "journal_id", "amount_reporting", "_row_id", "_created_at")
    assert [(r[0], r[1] * 2, r[2]) for r in first] == [r[:3] for r in second]
    assert staged_runs(root) == ()

    # A completed run is left alone.
    third = resumed(root, store, spark, run)
    assert (third.status, third.attempt, third.warnings[0].code) == ("completed", 2, "W1503")


def test_a_step_that_was_damaged_is_made_again(
    root: Path, store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair = failing_output(monkeypatch, 40, errno.EIO)
    run = ran(root, store, spark).run_id
    repair()
    for file in (steps_folder(root, run) / "10").iterdir():
        file.write_bytes(b"damaged")
    again = resumed(root, store, spark, run)
    assert again.ok, again.diagnostics
    assert len(rows(spark, root / SECOND)) == 10


def test_a_full_disk_leaves_nothing_and_says_so(
    root: Path, store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair = failing_output(monkeypatch, 40, errno.ENOSPC)
    report = ran(root, store, spark)
    assert report.failure is not None
    assert report.failure.code == "W1508"
    assert (staged_runs(root), (root / "out").exists()) == ((), False)
    repair()
    assert resumed(root, store, spark, report.run_id).ok


def test_inputs_that_changed_stop_a_resume_and_a_rerun(
    root: Path, store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair = failing_output(monkeypatch, 40, errno.EIO)
    failed = ran(root, store, spark).run_id
    repair()
    rates = root / "data" / "exchange_rates.csv"
    before = rates.read_text(encoding="utf-8")
    rates.write_text(before.replace("1.0920", "1.1000"), encoding="utf-8")
    with pytest.raises(RunError, match=r"W1510.*'10.fx' has changed.*exchange_rates.csv changed"):
        resumed(root, store, spark, failed)
    assert store.run(failed).status == "failed"
    rates.write_text(before, encoding="utf-8")
    assert resumed(root, store, spark, failed).ok


def test_a_rerun_makes_the_same_rows_whatever_the_files_say_now(root: Path, store: Store, spark: SparkSession) -> None:
    first = ran(root, store, spark)
    before = rows(spark, root / FIRST)
    (root / "projects" / "fx_reporting.yml").unlink()
    (root / "scenarios" / "ts03_fx.yml").unlink()
    workspace, session = loaded(root), Session(spark)
    again = rerun(first.run_id, workspace=workspace, store=store, session=session)
    assert (again.status, again.rerun_of, again.identical) == ("completed", first.run_id, True)
    assert rows(spark, root / FIRST) == before
    assert store.run(again.run_id).run_at == store.run(first.run_id).run_at
    third = rerun(again.run_id, workspace=workspace, store=store, session=session)
    assert (third.rerun_of, rows(spark, root / FIRST) == before) == (again.run_id, True)

    rates = root / "data" / "exchange_rates.csv"
    rates.write_text(rates.read_text(encoding="utf-8").replace("1.0920", "1.1000"), encoding="utf-8")
    with pytest.raises(RunError, match="W1510"):
        rerun(first.run_id, workspace=workspace, store=store, session=session)
    other = rerun(first.run_id, workspace=workspace, store=store, session=session, allow_changed_inputs=True)
    assert (other.ok, other.identical, other.warnings[0].code) == (True, False, "W1510")
    assert rows(spark, root / FIRST, "amount_reporting") != [r[7:8] for r in before]
    document = other.to_dict()
    assert (document["rerun_of"], document["identical"]) == (first.run_id, False)


KNOWN = """\
from_currency,to_currency,rate,rate_type,_period_from,_period_to,_known_from,_known_to
EUR,USD,1.0920,closing,2026-01-01,,2026-01-02T00:00:00Z,{eur_until}
GBP,USD,1.2710,closing,2026-01-01,,2026-01-02T00:00:00Z,
JPY,USD,0.00672,closing,2026-01-01,,2026-01-02T00:00:00Z,
USD,USD,1.0000,closing,2020-01-01,,2026-01-02T00:00:00Z,
"""
CORRECTION = "EUR,USD,1.1000,closing,2026-01-01,,{known},\n"


def test_a_correction_that_is_known_later_does_not_block_older_runs(
    root: Path, store: Store, spark: SparkSession
) -> None:
    rates = root / "data" / "exchange_rates.csv"
    rates.write_text(KNOWN.format(eur_until=""), encoding="utf-8")
    first = ran(root, store, spark)
    before = rows(spark, root / FIRST)
    assert [name for name, seen in store.inputs(first.run_id).items() if "rows" in seen] == ["10.fx"]
    workspace, session = loaded(root), Session(spark)
    # The old rate is closed and the new one begins, both long after the run.
    later = "2099-01-01T00:00:00Z"
    rates.write_text(KNOWN.format(eur_until=later) + CORRECTION.format(known=later), encoding="utf-8")
    again = rerun(first.run_id, workspace=workspace, store=store, session=session)
    assert (again.ok, again.identical, rows(spark, root / FIRST) == before) == (True, True, True)
    third = rerun(again.run_id, workspace=workspace, store=store, session=session)
    assert (third.identical, rows(spark, root / FIRST) == before) == (True, True)
    # Knowledge that the run should have had is a change.
    early = "2026-01-03T00:00:00Z"
    rates.write_text(KNOWN.format(eur_until=early) + CORRECTION.format(known=early), encoding="utf-8")
    with pytest.raises(RunError, match="W1510"):
        rerun(first.run_id, workspace=workspace, store=store, session=session)
    assert rows(spark, root / FIRST) == before


def test_a_cancelled_run_is_resumed_from_its_snapshot(root: Path, store: Store, spark: SparkSession) -> None:
    class Stop:
        def __getattr__(self, name: str) -> Any:
            def tell(*_: Any) -> None:
                if name == "started":
                    raise KeyboardInterrupt

            return tell

    cancelled = ran(root, store, spark, progress=Stop())
    assert (cancelled.status, store.run(cancelled.run_id).host) == ("cancelled", "")
    # The files of the workspace are not asked again.
    (root / "projects" / "fx_reporting.yml").unlink()
    report = resumed(root, store, spark, cancelled.run_id)
    assert (report.ok, report.run_id, report.attempt) == (True, cancelled.run_id, 2)
    assert [op.status for op in report.operations] == ["completed"] * len(report.operations)
    assert len(rows(spark, root / FIRST, "_row_id")) == 10


def test_a_rerun_with_other_knowledge_is_a_run_of_its_own(root: Path, store: Store, spark: SparkSession) -> None:
    first = ran(root, store, spark)
    known = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
    other = rerun(
        first.run_id,
        workspace=loaded(root),
        store=store,
        session=Session(spark),
        options=RunOptions(known_at=known),
    )
    assert (other.ok, other.identical, other.known_at) == (True, False, known)
    ids = rows(spark, root / FIRST, "_row_id")
    assert len(set(ids)) == 10
