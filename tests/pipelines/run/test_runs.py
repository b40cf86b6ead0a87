"""Runs from the files of a workspace to published outputs, and runs that fail on the way."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine_data import CONVERT, GL_ID, WRITE, project_text, sample_workspace
from engine_runs import loaded, opened, ran, rows
from weft.errors import ActivationError, RunError
from weft.pipelines.plan.project import resolve_project
from weft.pipelines.run.moving import staged_runs
from weft.pipelines.run.progress import Silent
from weft.pipelines.spark.counts import OperationCounts
from weft.pipelines.spark.stage import stage as stage_output
from weft.pipelines.store.lifecycle import build_catalog
from weft.pipelines.store.snapshot import plan_fingerprint
from weft.pipelines.store.writer import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUT = "out/processed_gl/period=2026-01"
PROJECT = "projects/fx_reporting.yml"
CALENDAR = """\
calendar:
  name: fiscal
  levels: [{name: month}]
  periods:
    - {identifier: 2026-01, level: month, start_date: 2026-01-01, end_date: 2026-01-31, status: closed}
    - {identifier: 2026-02, level: month, start_date: 2026-02-01, end_date: 2026-02-28, status: locked}
"""
DOWNSTREAM = """\
project:
  name: downstream
  version: 1
  status: active
  input: gl_usd
  operations:
    - {seq: 10, name: Write, type: output, arguments: {destination: {path: out/downstream}}}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sample_workspace(tmp_path)


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with opened(root) as found:
        yield found


def rewrite(root: Path, text: str, file: str = PROJECT) -> None:
    (root / file).write_text(text, encoding="utf-8")


def test_a_run_publishes_registers_and_counts(root: Path, store: Store, spark: SparkSession) -> None:
    report = ran(root, store, spark)
    document = report.to_dict()
    assert (document["status"], document["sandbox"], report.diagnostics) == ("completed", False, ())
    assert document["operations"][0] == {
        "seq": 10, "name": "Convert to USD", "type": "update", "status": "completed",
        "rows_in": 10, "rows_out": 10, "rows_changed": 10,
        "joins": [{"alias": "fx", "matched": 10, "unmatched": 0, "multiple": 0}],
    }  # fmt: skip
    assert document["outputs"] == [
        {
            "seq": 20, "location": OUT, "format": "parquet", "rows": 10, "dataset": "gl_usd",
            "dataset_version": 1,
            "columns": ["journal_id", "line_number", "currency", "amount_local", "amount_reporting"],
        }
    ]  # fmt: skip
    assert document["resolver_snapshot"]["join_datasets"][0]["resolver_source"] == "dataset_resolver"
    found = rows(spark, root / OUT, "journal_id", "line_number", "amount_reporting")
    assert found[2:5] == [
        ("JE-002", 1, Decimal("9282.00")), ("JE-002", 2, Decimal("-9282.00")), ("JE-003", 1, Decimal("27962.00")),
    ]  # fmt: skip
    assert staged_runs(root) == ()

    # The same period again: its rows are there once, and the dataset has a version more under its id.
    second = ran(root, store, spark)
    assert (second.outputs[0].dataset_version, len(rows(spark, root / OUT))) == (2, 10)
    assert len({d.id for d in store.dataset_versions("gl_usd")}) == 1

    # Another project reads what was registered.
    rewrite(root, DOWNSTREAM, "projects/downstream.yml")
    third = ran(root, store, spark, project="downstream")
    assert (third.status, third.outputs[0].rows) == ("completed", 10), third.diagnostics
    assert third.resolver_snapshot["input_dataset_version"] == 2
    with pytest.raises(ActivationError, match=r"W1309.*no run has published gl_usd v2 for 2026-02"):
        ran(root, store, spark, period="2026-02", project="downstream")


def test_a_draft_goes_to_the_sandbox_and_registers_nothing(root: Path, store: Store, spark: SparkSession) -> None:
    rewrite(root, project_text(status="draft"))
    report = ran(root, store, spark)
    assert (report.status, report.sandbox) == ("completed", True)
    assert report.outputs[0].location == ".weft/sandbox/fx_reporting/processed_gl/period=2026-01"
    assert not (root / "out").exists()
    assert (store.registered(), report.outputs[0].dataset) == ((), None)


def test_an_output_in_the_middle_sees_the_rows_as_they_are_there(root: Path, store: Store, spark: SparkSession) -> None:
    middle = """\
- {seq: 15, name: Middle, type: output, arguments: {destination: {path: out/middle}, columns: [journal_id, amount_reporting, _row_id]}}
- {seq: 17, name: Drop, type: delete, selector: currency = 'USD'}
"""
    rewrite(root, project_text([CONVERT, middle, WRITE]))
    report = ran(root, store, spark)
    assert report.ok, report.diagnostics
    assert [(o.seq, o.rows) for o in report.outputs] == [(15, 10), (20, 6)]
    numbers = [(o.seq, o.rows_in, o.rows_out, o.rows_changed) for o in report.operations]
    assert numbers == [(10, 10, 10, 10), (15, 10, 10, 10), (17, 10, 6, 4), (20, 6, 6, 6)]
    assert staged_runs(root) == ()


def test_periods_that_are_closed_or_locked(root: Path, store: Store, spark: SparkSession) -> None:
    (root / "calendars").mkdir()
    rewrite(root, CALENDAR, "calendars/fiscal.yml")
    rewrite(root, project_text(calendar="fiscal"))
    with pytest.raises(RunError, match=r"W1505.*closed"):
        ran(root, store, spark)
    with pytest.raises(RunError, match=r"W1506.*locked"):
        ran(root, store, spark, period="2026-02", correction=True)
    assert store.runs() == ()
    assert ran(root, store, spark, correction=True).ok


def test_a_saved_plan_must_still_fit(root: Path, store: Store, spark: SparkSession) -> None:
    workspace = loaded(root)
    catalog = build_catalog(workspace, store)
    calendar = catalog.calendar("gregorian")
    plan = resolve_project(workspace.projects[0], catalog, period=calendar.parse("2026-01"), calendar=calendar)
    saved = root / "plan.json"
    saved.write_text(json.dumps({"data": {"fingerprint": plan_fingerprint(plan, catalog)}}), encoding="utf-8")
    assert ran(root, store, spark, plan=saved).ok
    rewrite(root, project_text(version=2, selectors={"NEW": "1 = 1"}))
    with pytest.raises(RunError, match=r"W1514.*is stale"):
        ran(root, store, spark, plan=saved)
    saved.write_text("[]", encoding="utf-8")
    with pytest.raises(RunError, match=r"W1514.*cannot read"):
        ran(root, store, spark, plan=saved)


def failed(root: Path, store: Store, spark: SparkSession) -> tuple[str, int | None, str]:
    report = ran(root, store, spark)
    assert report.status == "failed"
    assert report.failure is not None
    assert (report.outputs, (root / OUT).exists(), store.locks()) == ((), False, ())
    assert store.run(report.run_id).failure == report.failure
    assert report.to_dict()["error"] == report.failure.to_dict()
    return report.failure.code, report.failure.operation_order, report.failure.message


def test_a_value_that_overflows_fails_the_run(root: Path, store: Store, spark: SparkSession) -> None:
    rewrite(root, project_text([CONVERT.replace("* fx.rate", "* 10000000000000000"), WRITE]))
    code, seq, message = failed(root, store, spark)
    assert (code, seq) == ("W1513", 20)
    assert "NUMERIC_VALUE_OUT_OF_RANGE" in message


def test_a_second_match_names_the_join_and_the_key(root: Path, store: Store, spark: SparkSession) -> None:
    rewrite(root, project_text([CONVERT.replace(' AND fx.rate_type = \\"closing\\"', ""), WRITE]))
    code, seq, message = failed(root, store, spark)
    assert (code, seq) == ("W1209", 10)
    assert message.startswith("Join 'fx' matches more than one row: from_currency = 'EUR'")


@pytest.mark.parametrize("damage", ["value", "column", "folder", "gone"])
def test_data_that_cannot_be_read_fails_the_run(root: Path, store: Store, spark: SparkSession, damage: str) -> None:
    file = root / "data" / "exchange_rates.csv"
    if damage == "value":
        file.write_text(file.read_text(encoding="utf-8").replace("1.0920", "1.09x"), encoding="utf-8")
    elif damage == "column":
        file.write_text(file.read_text(encoding="utf-8").replace("rate_type", "kind"), encoding="utf-8")
    else:
        file.unlink()
    if damage == "folder":
        file.mkdir()
        (file / "part.csv").write_bytes(b"PAR1 \xff\x00")
    code, seq, message = failed(root, store, spark)
    wanted = {"value": "W1317", "column": "W1316", "folder": "W1318", "gone": "W1309"}
    assert code == wanted[damage], message
    assert seq in (10, 20)


def test_fewer_rows_written_than_counted_fail_the_run(
    root: Path, store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stage(*given: Any, **named: Any) -> Any:
        found = stage_output(*given, **named)
        return replace(found, rows=found.rows - 1)

    monkeypatch.setattr("weft.pipelines.run.engine.stage_output", stage)
    code, seq, message = failed(root, store, spark)
    assert (code, seq) == ("W1512", 20)
    assert "9 rows were written, but 10 were counted" in message


class Watching(Silent):
    """Records every call."""

    def __init__(self) -> None:
        self.reported: list[tuple[int, float, OperationCounts | None]] = []

    def operation(self, seq: int, fraction: float, counts: OperationCounts | None) -> None:
        self.reported.append((seq, fraction, counts))


def test_progress_tells_every_operation_and_its_counts(root: Path, store: Store, spark: SparkSession) -> None:
    watching = Watching()
    assert ran(root, store, spark, progress=watching).ok
    for seq in (10, 20):
        reported = [(f, c) for s, f, c in watching.reported if s == seq]
        assert reported[0] == (0.0, None)
        assert [f for f, _ in reported] == sorted(f for f, _ in reported)
        last = reported[-1][1]
        assert reported[-1][0] == 1.0
        assert last is not None
        assert last.rows_changed == 10


class Stopping(Silent):
    """Does something when the first operation begins."""

    def __init__(self, action: Any) -> None:
        self.action = action

    def started(self, stages: Any) -> None:  # noqa: ARG002
        self.action()


def test_an_interrupted_run_is_cancelled_and_leaves_nothing(root: Path, store: Store, spark: SparkSession) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    report = ran(root, store, spark, progress=Stopping(interrupt))
    assert (report.status, report.failure, (root / OUT).exists()) == ("cancelled", None, False)
    assert (store.locks(), staged_runs(root)) == ((), ())
    assert ran(root, store, spark).ok


def test_a_run_that_somebody_else_cancels_stops(root: Path, store: Store, spark: SparkSession) -> None:
    with opened(root) as other:
        report = ran(root, store, spark, progress=Stopping(lambda: other.cancel("LAST")))
    assert (report.status, report.diagnostics[0].code) == ("cancelled", "W1502")
    assert not (root / OUT).exists()


def test_what_a_user_says_of_a_run_is_in_its_snapshot(root: Path, store: Store, spark: SparkSession) -> None:
    known = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    report = ran(root, store, spark, known_at=known, today=dt.date(2026, 2, 2), triggered_by="ann")
    snapshot = store.snapshot(report.run_id)
    assert (snapshot["known_at"], snapshot["today"]) == ("2026-03-01T00:00:00.000000Z", "2026-02-02")
    assert (store.run(report.run_id).triggered_by, report.known_at) == ("ann", known)
    assert {p["dataset_id"] for p in snapshot["pins"]} >= {GL_ID}
    assert set(snapshot["inputs"]) == {"input", "10.fx"}
