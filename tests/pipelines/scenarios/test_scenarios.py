"""Scenarios that do not hold, cannot be judged, or are recorded from a run."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine_data import DATA, sample_workspace
from weft.errors import Code, RuntimeJoinError, ScenarioError
from weft.io.spark.session import Session
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.model.scenario import Expect
from weft.pipelines.model.values import LocatedText
from weft.pipelines.run.execute import run_project
from weft.pipelines.scenarios.execute import run_scenario, run_scenarios
from weft.pipelines.scenarios.planning import missing_codes
from weft.pipelines.scenarios.record import record
from weft.pipelines.scenarios.reports import (
    ScenarioResult,
    format_junit,
    format_results,
    to_json,
    write_snapshot,
)
from weft.pipelines.store.open import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = """\
scenario:
  name: Case
  period: 2026-01
  project:
    name: copy
    version: 1
    status: draft
    input_dataset_id: orders
    operations:
      - {seq: 10, name: Twice, type: update, selector: id < 3, arguments: {assignments: [{column: amount, expression: amount * 2}]}}
      - {seq: 20, name: Write, type: output, arguments: {destination: {path: out/orders}}}
"""
GIVEN = "given: {orders: [{id: 1, amount: 10}, {id: 2, amount: 20}, {id: 3, amount: 30}]}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = sample_workspace(tmp_path)
    for file in (DATA / "scenarios" / "datasets").glob("*.yml"):
        shutil.copy(file, found / "datasets" / file.name)
    return found


@pytest.fixture
def session(spark: SparkSession) -> Session:
    return Session(spark)


def ran(root: Path, session: Session, text: str) -> ScenarioResult:
    (root / "scenarios" / "case.yml").write_text(HEAD + textwrap.indent(text, "  "), encoding="utf-8")
    loaded = load_workspace(root)
    assert loaded.errors == ()
    (scenario,) = (s for s in loaded.workspace.scenarios if s.name == "Case")
    return run_scenario(scenario, loaded.workspace, reader=None, session=session)


def kinds(result: ScenarioResult) -> list[str]:
    return [m.kind for m in result.mismatches]


def test_an_exact_expectation_counts_every_row(root: Path, session: Session) -> None:
    result = ran(root, session, GIVEN + "expect: {rows: [{id: 1, amount: 20}, {id: 2, amount: 40}]}\n")
    assert (result.status, kinds(result)) == ("fail", ["extra_row"])
    result = ran(root, session, GIVEN + "expect: {match: subset, rows: [{id: 1, amount: 20}, {id: 2, amount: 40}]}\n")
    assert (result.status, kinds(result)) == ("pass", [])


def test_a_failed_scenario_says_which_values_differ_and_keeps_what_came_out(root: Path, session: Session) -> None:
    result = ran(
        root,
        session,
        GIVEN + "expect: {count: 4, rows: [{id: 1, amount: 21}, {id: 2, amount: 40}, {id: 3, amount: 30}]}\n",
    )
    assert kinds(result) == ["row_count", "value_mismatch"]
    assert (result.mismatches[1].columns, result.key) == (("amount",), ("id",))
    text = format_results([result])
    assert "amount   expected 21   actual 20.00" in text
    assert "1 failed" in text
    assert '<failure message="row_count">' in format_junit([result])
    assert to_json([result])["failed"] == 1
    file = write_snapshot(result, root)
    assert file is not None
    assert '"amount": ' not in (root / file).read_text(encoding="utf-8")
    assert "id: 1, " in (root / file).read_text(encoding="utf-8")


def test_errors_columns_pins_and_traces_that_do_not_come(root: Path, session: Session) -> None:
    expect = """\
expect:
  errors: [W1209]
  pins: {input: 7}
  columns: exact
  rows: [{id: 1, amout: 1}]
  trace_match: exact
  trace:
    - {operation: 10, change: updated, match: {id: 1}, diff: {amount: [10, 21]}}
    - {operation: 10, change: updated, match: {id: 3}}
"""
    result = ran(root, session, GIVEN + expect)
    assert kinds(result) == [
        "missing_error", "pin", "schema", "schema", "extra_row", "extra_row",
        "diff_mismatch", "missing_event", "extra_event",
    ]  # fmt: skip
    assert result.mismatches[6].to_dict()["actual"] == {"amount": ["10.00", "20.00"]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("given: {oders: [{id: 1}]}", "does not read a table 'oders'"),
        ("given: {orders: [{id: 1, amonut: 2}]}", "has no column 'amonut'"),
        (
            "given: {orders: [{id: 1, amount: much}]}",
            "row 1 of table 'orders', column 'amount': 'much' is no",
        ),
        ("given: {orders: [{id: 1, amount: 1.005}]}", "does not fit decimal(18,2)"),
        ("given: {orders: [{amount: 1}]}", "row 1 of table 'orders' has no 'id'"),
        ("given: {orders: {file: nowhere.csv}}", "the file 'nowhere.csv' does not exist"),
        ("given: {orders: {file: /etc/passwd.csv}}", "is absolute"),
        ("given: {orders: {file: ../../outside.csv}}", "leads out of the workspace"),
        ("given: {orders: {file: case.yml}}", "ends in '.yml'"),
        ('given: {orders: {csv: "id,amount\\n1\\n"}}', "line 2 of the CSV has 1 fields"),
    ],
)
def test_given_rows_that_do_not_fit_are_errors(root: Path, session: Session, given: str, message: str) -> None:
    (root.parent / "outside.csv").write_text("id\n1\n", encoding="utf-8")
    result = ran(root, session, f"{given}\nexpect: {{count: 1}}\n")
    assert result.status == "error"
    assert message in result.diagnostics[0].message
    assert result.diagnostics[0].at is not None


def test_rows_come_from_files_beside_the_scenario(root: Path, session: Session) -> None:
    (root / "scenarios" / "orders.csv").write_text("id,amount\n1,10.00\n2,\n", encoding="utf-8")
    (root / "scenarios" / "expected.json").write_text('{"id": 1, "amount": 20.00}\n', encoding="utf-8")
    result = ran(root, session, "given: {orders: {file: orders.csv}}\nexpect: {match: subset, file: expected.json}\n")
    assert (result.status, format_results([result], verbose=True).splitlines()[-1]) == ("pass", "1 passed")
    frame = session.spark.createDataFrame([(5, "2026-01")], "id long, _period string")
    frame.coalesce(1).write.parquet(str(root / "parts"))
    (part,) = (root / "parts").glob("*.parquet")
    shutil.copy(part, root / "scenarios" / "orders.parquet")
    result = ran(root, session, "given: {orders: {file: orders.parquet}}\nexpect: {rows: [{id: 5}]}\n")
    assert result.status == "pass"


def test_a_failure_while_it_runs_is_an_error_or_expected(root: Path, session: Session) -> None:
    given = "given: {orders: [{id: 1, amount: 9999999999999999}]}\n"
    result = ran(root, session, given + "expect: {count: 1}\n")
    assert (result.status, result.diagnostics[0].code) == ("error", "W1513")
    result = ran(root, session, given + "expect: {errors: [W1513]}\n")
    assert result.status == "pass"


def test_several_scenarios_share_one_session_that_is_opened_when_needed(root: Path, session: Session) -> None:
    opened: list[Session] = []

    def opener(*, is_small: bool = False) -> Session:
        assert is_small  # rows that are typed into a file
        opened.append(session)
        return session

    workspace = load_workspace(root).workspace
    assert run_scenarios((), workspace, reader=None, session=opener) == ()
    assert opened == []
    results = run_scenarios(workspace.scenarios, workspace, reader=None, session=opener)
    assert [r.status for r in results] == ["pass"]
    assert len(opened) == 1


def test_a_run_is_recorded_as_a_scenario_that_passes(root: Path, session: Session) -> None:
    loaded = load_workspace(root)
    with open_store(loaded.workspace.settings.store, root) as store:
        run = run_project(loaded.workspace, loaded.workspace.projects[0], "2026-01", store=store, session=session)
        assert run.ok, run.diagnostics
        keys = {"journal_id": ["JE-002", "JE-005"]}
        made = record(run.run_id, keys, loaded.workspace, reader=store, session=session, name="Two journals")
        assert (made.file, made.rows, made.result.status) == (Path("scenarios/two-journals.yml"), 4, "pass")
        again = load_workspace(root).workspace
        (scenario,) = (s for s in again.scenarios if s.name == "Two journals")
        assert scenario.given is not None
        rates = scenario.given["exchange_rates"].rows
        assert rates is not None
        assert {r["from_currency"] for r in rates} == {"EUR", "JPY"}
        assert run_scenario(scenario, again, reader=store, session=session).status == "pass"
        with pytest.raises(ScenarioError, match=r"W1704.*already exists"):
            record(run.run_id, keys, loaded.workspace, reader=store, session=session, name="Two journals")
        with pytest.raises(ScenarioError, match=r"W1706.*read no row with journal_id=JE-404"):
            record(run.run_id, {"journal_id": ["JE-404"]}, loaded.workspace, reader=store, session=session)
        with pytest.raises(ScenarioError, match=r"W1706.*no column 'jurnal_id'"):
            record(run.run_id, {"jurnal_id": ["1"]}, loaded.workspace, reader=store, session=session)


@pytest.mark.parametrize(
    ("code", "rule", "missing"), [("W1201", "VR-001", []), ("W1208", "VR-008", []), ("W1209", "VR-009", ["VR-009"])]
)
def test_a_rule_name_means_one_of_eight_codes(code: Code, rule: str, missing: list[str]) -> None:
    expect = Expect(errors=(LocatedText(rule),))
    assert missing_codes(expect, RuntimeJoinError("it broke", code=code))[0] == missing
