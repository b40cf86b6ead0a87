"""Runs that are ended from outside, and runs that go on: Ctrl-C, cancel, resume, two starters."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import weft
from engine_data import project_text, sample_workspace
from staged_runs import TWO_OUTPUTS, killed, opened, staged_run
from weft.joins.facts import JoinCounts
from weft.pipelines.run.moving import staged_runs as left_behind
from weft.pipelines.spark.counts import OperationCounts
from weft.pipelines.store.records import RunFailure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SRC = Path(__file__).parents[2] / "src"
SMALL = """\
weft: 1
default_resolver: files
spark: {master: "local[1]", conf: {spark.driver.memory: 512m, spark.sql.shuffle.partitions: "1"}}
"""
SLOW = """\
- seq: 10
  name: Multiply
  type: update
  arguments:
    joins: [{alias: o, dataset_id: gl, on: "currency = o.currency", on_multiple: all}]
    assignments: [{column: description, expression: "CONCAT(journal_id, o.journal_id)"}]
- {seq: 20, name: Write, type: output, arguments: {destination: {path: out/slow}}}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sample_workspace(tmp_path, {"projects/fx_reporting.yml": TWO_OUTPUTS})


def many_rows(rows: int) -> str:
    """Return transactions of one currency."""
    head = "journal_id,line_number,posting_date,account_code,cost_center_code,currency,amount_local,amount_reporting,description,source_system,_period"
    line = "1,2026-01-05,4100,CC-100,USD,1.00,,x,ERP,2026-01"
    return "\n".join([head, *(f"J{n},{line}" for n in range(rows))]) + "\n"


def ended_at_work(tmp_path: Path, end: Callable[[Path, int], None]) -> tuple[Path, int, str, str]:
    """Start a run in a process of its own, end it while Spark writes; return root, exit code and what it printed."""
    # Sixteen million rows: nobody waits for the end.
    changes = {
        "weft.yml": SMALL,
        "projects/fx_reporting.yml": project_text(SLOW),
        "data/transactions.csv": many_rows(4000),
    }
    root = sample_workspace(tmp_path, changes)
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "-C", str(root), "run", "-p", "2026-01", "--json", "--verbose"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SRC)},
        start_new_session=True,  # Ctrl-C goes to all processes of a terminal, as here to those of a group
    )
    try:
        deadline = time.monotonic() + 900
        while process.poll() is None and not list(root.glob(".weft/stage/*/20/_temporary")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        end(root, process.pid)
        out, err = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return root, process.returncode, out, err


@pytest.mark.usefixtures("jvm")
def test_another_command_stops_the_jobs_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cli.commands.runs.STOP_SECONDS", 300)  # a slow machine must not fail the test
    outputs: list[str] = []

    def cancel(root: Path, _pid: int) -> None:
        outputs.append(weft("runs", "cancel", "LAST", root=root).out)

    root, code, out, err = ended_at_work(tmp_path, cancel)
    assert code == 130, err
    # The command has waited for the process, which has removed what it staged.
    assert outputs[0].endswith("is cancelled: nothing is published, its process has stopped\n")
    assert (left_behind(root), (root / "out").exists()) == ((), False)
    document = json.loads(out)
    assert document["data"]["status"] == "cancelled"
    (found,) = document["diagnostics"]
    assert (found["code"], found["severity"]) == ("W1502", "warning")
    assert "was cancelled: its jobs are stopped and nothing is published" in found["message"]
    assert document["next"][0].startswith("weft run --resume ")


@pytest.mark.usefixtures("jvm")
def test_ctrl_c_cancels_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    root, code, out, err = ended_at_work(tmp_path, lambda _, pid: os.killpg(pid, signal.SIGINT))
    assert code == 130, err
    # Neither Spark nor py4j says anything of its own.
    assert re.fullmatch(r"(starting Spark \.\.\.\n)?run \S+  snapshot \S+  pinned gl v1\n", err)
    document = json.loads(out)
    assert (document["ok"], document["data"]["status"], document["data"]["outputs"]) == (
        False,
        "cancelled",
        [],
    )
    assert (left_behind(root), (root / "out").exists()) == ((), False)
    shown = weft("runs", "show", "LAST", "--json", root=root).data
    assert (shown["status"], [op["status"] for op in shown["operations"]]) == ("cancelled", ["pending"] * 2)
    assert (root / ".weft" / "logs" / "spark.log").stat().st_size > 0


def test_a_run_at_work_is_cancelled_by_another_command(root: Path) -> None:
    with opened(root) as store:
        run = staged_run(root, store)
        store.operation_started(run.run_id, 10)
        ended = weft("runs", "cancel", run.run_id, "--json", root=root)
        assert (ended.code, ended.data["status"]) == (0, "cancelled")
        cancelled = weft("runs", "cancel", "LAST", root=root)
        assert cancelled.out == f"run {run.run_id} is cancelled: nothing is published, its process has stopped\n"
        assert "weft run --resume " in cancelled.err
        operations = weft("runs", "show", "LAST", "--json", root=root).data["operations"]
        assert {op["status"] for op in operations} == {"pending"}
        assert (left_behind(root), store.locks()) == ((), ())
    assert weft("runs", "cancel", "0000", "--json", root=root).code == 2


def test_a_run_whose_process_died_is_cancelled_with_what_it_staged(root: Path) -> None:
    killed(root, "before_publish")
    assert len(left_behind(root)) == 1
    assert weft("runs", "cancel", "LAST", root=root).code == 0
    assert left_behind(root) == ()
    again = weft("runs", "cancel", "LAST", "--json", root=root)
    assert (again.code, again.data["status"]) == (0, "cancelled")


def test_a_run_that_failed_is_not_cancelled_but_forgotten(root: Path) -> None:
    killed(root, "before_publish")
    shown = weft("runs", "show", "LAST", "--json", root=root)
    assert (shown.data["status"], shown.data["error"]["code"], shown.codes) == ("failed", "W1502", ["W1502"])
    ran = weft("runs", "cancel", "LAST", "--json", root=root)
    assert (ran.code, ran.codes) == (8, ["W1102"])
    assert weft("runs", "rm", "LAST", root=root).code == 0
    assert left_behind(root) == ()


def test_a_run_that_is_published_cannot_be_cancelled(root: Path) -> None:
    with opened(root) as store:
        staged_run(root, store).publish()
    ran = weft("runs", "cancel", "LAST", "--json", root=root)
    assert (ran.code, ran.codes) == (8, ["W1102"])


def plain(text: str) -> str:
    """Return a text without what differs from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "WHEN", text)
    return re.sub(r"\b\d:\d\d\b", "TIME", re.sub(r"snapshot [0-9a-f]{8}", "snapshot HASH", text))


def test_people_read_what_ran(root: Path, golden: Callable[[str, str], None]) -> None:
    with opened(root) as store:
        first = staged_run(root, store, number=1)
        fx = JoinCounts(alias="fx", matched=1_234_567, unmatched=3, multiple=0)
        counts = OperationCounts(seq=10, rows_in=1_234_570, rows_out=1_234_570, rows_changed=1_234_570, joins=(fx,))
        store.operation_done(first.run_id, counts)
        for seq in (20, 30):
            written = OperationCounts(seq=seq, rows_in=1_234_570, rows_out=1_234_570, rows_changed=1)
            store.operation_done(first.run_id, written)
        first.publish()
        second = staged_run(root, store, number=2)
        store.fail(
            second.run_id,
            RunFailure(
                operation_order=20,
                code="W1513",
                message="it broke",
                detail="error[W1513]: it broke\n = help: correct it",
            ),
        )
    listed = weft("runs", root=root)
    shown = [weft("runs", "show", run.run_id, root=root) for run in (first, second)]
    texts = [listed.out, *(one.out + one.err for one in shown)]
    golden("cli/runs.txt", plain("\n".join(texts)))
    runs = weft("runs", "--json", root=root).data["runs"]
    # Rows that are only staged are not counted.
    assert [(run["status"], run["rows"] > 0) for run in runs] == [("failed", False), ("completed", True)]
    assert weft("runs", "--status", "failed", "-n", "1", root=root).out.count("\n") == 2


def test_one_of_two_starters_has_to_wait(root: Path, spark: SparkSession) -> None:
    with opened(root) as store:
        first = staged_run(root, store)
        ran = weft("run", "-p", "2026-01", "--json", root=root, spark=spark)
        assert (ran.code, ran.codes) == (8, ["W1501"])
        assert first.run_id[:13] in ran.document["diagnostics"][0]["message"]
        first.publish()
    assert [run["run_id"] for run in weft("runs", "--json", root=root).data["runs"]] == [first.run_id]


def test_a_failed_run_goes_on_where_it_failed(tmp_path: Path, spark: SparkSession) -> None:
    root = sample_workspace(tmp_path)
    rates = root / "data" / "exchange_rates.csv"
    text = rates.read_text()
    rates.write_text(text.replace("1.0920", "1.09x"))
    failed = weft("run", "-p", "2026-01", "--json", root=root, spark=spark)
    run_id = failed.data["run_id"]
    assert (failed.code, failed.codes) == (1, ["W1317"])
    assert failed.document["next"][0] == f"weft run --resume {run_id[:13]}"
    rates.write_text(text)
    refused = weft("run", "--resume", run_id, "--json", root=root, spark=spark)
    assert (refused.code, refused.codes) == (8, ["W1510"])
    words = ("run", "--resume", "LAST", "--allow-changed-inputs", "--json")
    again = weft(*words, root=root, spark=spark)
    assert (again.code, again.data["run_id"], again.data["attempt"]) == (0, run_id, 2)
    assert [output["rows"] for output in again.data["outputs"]] == [10]
    # There is nothing to resume any more.
    third = weft(*words, root=root, spark=spark)
    assert (third.code, third.codes, third.data["attempt"]) == (0, ["W1503"], 2)
