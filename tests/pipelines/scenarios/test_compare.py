"""Two snapshots: which part of a run is not what it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from engine_data import sample_workspace
from staged_runs import TWO_OUTPUTS, opened, staged_run
from weft.pipelines.plan.compare import diff_snapshot

Edit = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = sample_workspace(tmp_path_factory.mktemp("w"), {"projects/fx_reporting.yml": TWO_OUTPUTS})
    with opened(root) as store:
        return dict(store.snapshot(staged_run(root, store).run_id))


def changed(snapshot: dict[str, Any], edit: Edit) -> list[str]:
    after: dict[str, Any] = copy.deepcopy(snapshot)
    edit(after)
    return [str(change) for change in diff_snapshot(snapshot, after)]


def test_equal_snapshots_have_no_changes(snapshot: dict[str, Any]) -> None:
    assert diff_snapshot(snapshot, copy.deepcopy(snapshot)) == ()


def test_an_expression_is_named_with_its_operation_and_path(snapshot: dict[str, Any]) -> None:
    def edit(s: dict[str, Any]) -> None:
        s["operations"][0]["arguments"]["assignments"][0]["expression"] = "1"

    (reported,) = changed(snapshot, edit)
    assert reported == ("operations: 10 arguments.assignments.0.expression transactions.amount_local * fx.rate -> 1")


def test_operations_that_come_and_go(snapshot: dict[str, Any]) -> None:
    def edit(s: dict[str, Any]) -> None:
        s["operations"] = [s["operations"][0], {"seq": 40, "type": "delete"}]

    reported = changed(snapshot, edit)
    assert reported == [
        "operations: operation 20 is gone",
        "operations: operation 30 is gone",
        "operations: operation 40 is new",
    ]


def test_pins_files_selectors_and_the_rest(snapshot: dict[str, Any]) -> None:
    def edit(s: dict[str, Any]) -> None:
        s["pins"][1]["dataset_version"] = 2
        s["inputs"]["input"]["files"][0]["sha256"] = "00"
        s["selectors"]["NEW"] = "1 = 1"
        s["session"]["timeZone"] = "Europe/Berlin"
        s["engine"] = "9.9"
        s["today"] = "1999-12-31"

    reported = changed(snapshot, edit)
    assert "pins: join fx of 10 dataset_version 1 -> 2" in reported
    assert any(t.startswith("inputs: data/transactions.csv") and t.endswith("-> 00") for t in reported)
    assert "selectors: NEW is new" in reported
    assert "session: timeZone UTC -> Europe/Berlin" in reported
    assert "engine: engine test -> 9.9" in reported
    assert len(reported) == 6


@pytest.mark.parametrize(
    "name", ["dataset_id", "dataset_version", "resolver_id", "resolver_version", "resolver_source"]
)
def test_whatever_a_pin_says_is_compared(snapshot: dict[str, Any], name: str) -> None:
    def edit(s: dict[str, Any]) -> None:
        s["pins"][1][name] = "other"

    before = snapshot["pins"][1][name]
    assert changed(snapshot, edit) == [f"pins: join fx of 10 {name} {before} -> other"]


def test_a_change_has_a_form_for_documents(snapshot: dict[str, Any]) -> None:
    after = copy.deepcopy(snapshot) | {"engine": "2"}
    (change,) = diff_snapshot(snapshot, after)
    assert change.to_dict() == {
        "part": "engine", "what": "engine", "seq": None, "before": "test", "after": "2",
    }  # fmt: skip
