"""The FX workspace as its users have it: validated, run, run again, tested, through the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import Ran, weft
from engine_data import GL_ID, RATES_ID, sample_workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPECTED = {
    ("JE-001", 1): "15000.00",
    ("JE-001", 2): "15000.00",
    ("JE-002", 1): "9282.00",
    ("JE-002", 2): "-9282.00",
    ("JE-003", 1): "27962.00",
    ("JE-003", 2): "27962.00",
    ("JE-004", 1): "3200.00",
    ("JE-004", 2): "-3200.00",
    ("JE-005", 1): "16800.00",
    ("JE-005", 2): "16800.00",
}
OUTPUT = "out/processed_gl/period=2026-01"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_workspace(tmp_path_factory.mktemp("acceptance"))


@pytest.fixture(scope="module")
def first(root: Path, spark: SparkSession) -> Ran:
    assert weft("validate", root=root).code == 0
    return weft("run", "fx_reporting", "-p", "2026-01", "--json", root=root, spark=spark)


def rows(root: Path, spark: SparkSession) -> dict[tuple[str, int], Decimal]:
    found = spark.read.parquet(str(root / OUTPUT)).collect()
    assert len(found) == 10
    return {(row.journal_id, row.line_number): row.amount_reporting for row in found}


def test_the_run_says_what_it_did(first: Ran) -> None:
    assert first.code == 0
    document: Any = first.document
    assert (document["schema"], document["ok"], document["diagnostics"]) == ("weft/run/1", True, [])
    data = document["data"]
    assert (data["status"], data["period"], data["sandbox"]) == ("completed", "2026-01", False)
    assert data["known_at"].endswith("Z")
    shown = [{key: op[key] for key in op if key != "status"} for op in data["operations"]]
    assert shown == [
        {
            "seq": 10,
            "name": "Convert to USD",
            "type": "update",
            "rows_in": 10,
            "rows_out": 10,
            "rows_changed": 10,
            "joins": [{"alias": "fx", "matched": 10, "unmatched": 0, "multiple": 0}],
        },
        {
            "seq": 20,
            "name": "Write",
            "type": "output",
            "rows_in": 10,
            "rows_out": 10,
            "rows_changed": 10,
            "joins": [],
        },
    ]
    assert data["outputs"] == [
        {
            "seq": 20,
            "location": OUTPUT,
            "format": "parquet",
            "rows": 10,
            "columns": ["journal_id", "line_number", "currency", "amount_local", "amount_reporting"],
            "dataset": "gl_usd",
            "dataset_version": 1,
        }
    ]
    assert data["resolver_snapshot"] == {
        "input_dataset_id": GL_ID,
        "input_dataset_version": 1,
        "join_datasets": [
            {
                "alias": "fx",
                "dataset_id": RATES_ID,
                "dataset_version": 1,
                "resolver_source": "dataset_resolver",
            }
        ],
    }


def test_the_rows_are_exact(first: Ran, root: Path, spark: SparkSession) -> None:
    assert first.code == 0
    assert rows(root, spark) == {key: Decimal(value) for key, value in EXPECTED.items()}


def test_people_read_how_it_went(
    first: Ran, root: Path, spark: SparkSession, golden: Callable[[str, str], None]
) -> None:
    ran = weft("run", "-p", "2026-01", root=root, spark=spark)
    assert (first.code, ran.code) == (0, 0)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}", "RUN", ran.err + ran.out)
    text = re.sub(r"snapshot [0-9a-f]{8}", "snapshot HASH", text)
    golden("cli/run.txt", re.sub(r"in \d+:\d\d", "in TIME", text))
    assert rows(root, spark) == {key: Decimal(value) for key, value in EXPECTED.items()}


def test_a_rerun_is_identical_and_changed_inputs_are_refused(first: Ran, root: Path, spark: SparkSession) -> None:
    run_id = first.data["run_id"]
    again = weft("rerun", run_id, "--json", root=root, spark=spark)
    assert (again.code, again.data["rerun_of"], again.data["identical"]) == (0, run_id, True)
    rates = root / "data" / "exchange_rates.csv"
    before = rates.read_text()
    try:
        rates.write_text(before + "\n")
        ran = weft("rerun", run_id, "--json", root=root, spark=spark)
    finally:
        rates.write_text(before)
    assert (ran.code, ran.codes) == (8, ["W1510"])


def test_runs_are_listed_and_shown(first: Ran, root: Path) -> None:
    run_id = first.data["run_id"]
    listed = weft("runs", "--project", "fx_reporting", "--json", root=root).data["runs"]
    assert run_id in [run["run_id"] for run in listed]
    shown = weft("runs", "show", run_id, "--snapshot", "--json", root=root).data
    assert shown["outputs"][0]["location"] == OUTPUT
    assert shown["snapshot_body"]["schema"] == "weft/snapshot/1"
    ran = weft("plan", "-p", "2026-01", "--detailed-exitcode", "--json", root=root)
    assert (ran.code, ran.data["changes"]) == (0, [])
    ran = weft("plan", "-p", "2026-02", "--detailed-exitcode", "--json", root=root)
    assert (ran.code, [change["part"] for change in ran.data["changes"]]) == (4, ["period"])


def test_the_scenario_holds_and_a_wrong_one_ends_with_5(
    root: Path, spark: SparkSession, golden: Callable[[str, str], None]
) -> None:
    scenario = root / "scenarios" / "ts03_fx.yml"
    wrong = scenario.read_text().replace("FX conversion", "Wrong FX").replace('"9282.00"', '"9282.01"')
    (root / "scenarios" / "wrong.yml").write_text(wrong)
    try:
        ran = weft("test", root=root, spark=spark)
        right = weft("test", "FX conversion by runtime join", "--json", root=root, spark=spark)
    finally:
        (root / "scenarios" / "wrong.yml").unlink()
    assert (right.code, right.data["passed"]) == (0, 1)
    assert ran.code == 5
    golden("cli/test.txt", re.sub(r" +\d+\.\d s", "  TIME", ran.out))


def test_an_operation_is_previewed(root: Path, spark: SparkSession) -> None:
    ran = weft(
        "preview", "fx_reporting", "10", "-p", "2026-01", "--where", "journal_id = 'JE-002'", "--json",
        root=root, spark=spark,
    )  # fmt: skip
    assert ran.code == 0
    assert [row["amount_reporting"] for row in ran.data["after"]] == ["9282.00", "-9282.00"]
    assert ran.data["changed"] == [["amount_reporting"], ["amount_reporting"]]


def test_a_run_that_fails_says_where(root: Path, spark: SparkSession) -> None:
    data = root / "data" / "transactions.csv"
    before = data.read_text()
    try:
        data.write_text(before.replace("2026-01", "2026-01", 1).replace("JE-001,1", "JE-001,one", 1))
        ran = weft("run", "-p", "2026-01", "--json", root=root, spark=spark)
    finally:
        data.write_text(before)
    assert ran.code == 1
    assert (ran.document["ok"], ran.data["status"], ran.data["outputs"]) == (False, "failed", [])
    assert ran.data["error"]["code"] == "W1317"
    assert rows(root, spark) == {key: Decimal(value) for key, value in EXPECTED.items()}
