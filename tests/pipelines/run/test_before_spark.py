"""Errors of a run are reported before a session is opened and before anything is written."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from engine_data import CONVERT, RATES_ID, WRITE, project_text, sample_workspace
from weft.core.calendar import Period, Status
from weft.errors import ActivationError, RunError
from weft.io.spark.session import Session
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.run.execute import run_project
from weft.pipelines.run.prepare import RunOptions, check_open, check_targets, prepare
from weft.pipelines.run.preview import preview
from weft.pipelines.store.open import open_store
from weft.pipelines.store.snapshot import plan_fingerprint

RATES = "datasets/exchange_rates.v1.yml"


def never(**_: object) -> Session:
    raise AssertionError("nobody may start Spark")


@pytest.mark.parametrize(
    ("before", "after", "code", "message"),
    [
        (RATES_ID, "nothing", "W1201", "Dataset nothing not found in MetadataStore"),
        (
            f"dataset_id: {RATES_ID}",
            f"dataset_id: {RATES_ID}\n        dataset_version: 4",
            "W1203",
            f"Dataset {RATES_ID} version 4 not found",
        ),
        (
            "fx.from_currency",
            "fx.from_curency",
            "W1207",
            "Unknown column 'fx.from_curency' in join condition",
        ),
        ("fx.rate", "fx.rat", "W1208", "Unknown column 'fx.rat' in assignment expression"),
        ("AND fx.to", "AND AND fx.to", "W1206", None),
    ],
)
def test_a_join_that_is_wrong_stops_a_run_before_it_begins(
    tmp_path: Path, before: str, after: str, code: str, message: str | None
) -> None:
    operation = CONVERT.replace("fx.rate_type", "fx.RATE_TYPE")  # keeps the other names apart
    wrong = operation.replace(before, after).replace("fx.RATE_TYPE", "fx.rate_type")
    root = sample_workspace(tmp_path, projects__fx_reporting=project_text(wrong + WRITE))
    workspace = load_workspace(root).workspace
    with open_store(workspace.settings.store, root) as store:
        with pytest.raises(ActivationError) as caught:
            run_project(workspace, workspace.projects[0], "2026-01", store=store, session=never)
        assert store.runs() == ()
    reported = {d.code: d.message for d in caught.value.diagnostics}
    assert code in reported
    assert message in (None, reported[code])


class _StartError(Exception):
    """Raised where Spark would be started."""


@pytest.mark.parametrize(
    ("limit", "output", "expected"),
    [
        (16_000_000, WRITE, True),
        (1_000, WRITE, False),
        # A merge reads its target too, of whatever size.
        (16_000_000, WRITE.replace("register_as_dataset: gl_usd", "mode: merge"), False),
    ],
    ids=["small", "large", "merge"],
)
def test_a_session_for_little_data_is_one_that_starts_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, output: str, *, expected: bool
) -> None:
    monkeypatch.setattr("weft.pipelines.run.prepare._SMALL_BYTES", limit)
    asked: list[bool] = []

    def opener(*, is_small: bool = False) -> Session:
        asked.append(is_small)
        raise _StartError

    root = sample_workspace(tmp_path, projects__fx_reporting=project_text(CONVERT + output))
    workspace = load_workspace(root).workspace
    with open_store(workspace.settings.store, root) as store, pytest.raises(_StartError):
        run_project(workspace, workspace.projects[0], "2026-01", store=store, session=opener)
    with pytest.raises(_StartError):
        preview(workspace, workspace.projects[0], 10, "2026-01", reader=None, session=opener)
    assert asked == [expected, expected]


def test_a_disabled_dataset_stops_a_run_before_it_begins(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    file = root / RATES
    file.write_text(file.read_text().replace("status: active", "status: disabled"))
    workspace = load_workspace(root).workspace
    with (
        open_store(workspace.settings.store, root) as store,
        pytest.raises(ActivationError, match=f"W1202.*Dataset {RATES_ID} is disabled and cannot be used in joins"),
    ):
        run_project(workspace, workspace.projects[0], "2026-01", store=store, session=never)
    assert not (root / "out").exists()


@pytest.mark.parametrize(
    ("status", "correction", "code"),
    [
        ("open", False, None),
        ("closed", False, "W1505"),
        ("closed", True, None),
        ("locked", False, "W1506"),
        ("locked", True, "W1506"),
    ],
)
def test_a_correction_opens_a_closed_period_and_no_locked_one(
    status: Status, code: str | None, *, correction: bool
) -> None:
    period = Period("2026-01", "month", dt.date(2026, 1, 1), dt.date(2026, 2, 1), status=status)
    with nullcontext() if code is None else pytest.raises(RunError, match=code):
        check_open(period, correction=correction)


@pytest.mark.parametrize("form", ["weft plan --out", "weft plan --json"])
def test_a_saved_plan_is_compared_before_spark_starts(tmp_path: Path, form: str) -> None:
    root = sample_workspace(tmp_path)
    workspace = load_workspace(root).workspace
    saved = RunOptions(plan=root / "plan.json")
    with open_store(workspace.settings.store, root) as store:
        first = prepare(workspace, workspace.projects[0], "2026-01", store=store)
        document = {"fingerprint": plan_fingerprint(first.plan, first.catalog)}
        (root / "plan.json").write_text(json.dumps(document if form.endswith("--out") else {"data": document}))
        again = prepare(workspace, workspace.projects[0], "2026-01", store=store, options=saved)
        assert again.plan.period == first.plan.period
        with pytest.raises(RunError, match=r"W1514.*is stale"):
            prepare(workspace, workspace.projects[0], "2026-02", store=store, options=saved)


@pytest.mark.parametrize("kind", ["files", "file"])
def test_a_target_that_must_not_exist_yet_is_reported_before_spark_starts(
    tmp_path: Path, kind: Literal["files", "file"]
) -> None:
    root = sample_workspace(tmp_path)
    workspace = load_workspace(root).workspace
    with open_store(workspace.settings.store, root) as store:
        plan = prepare(workspace, workspace.projects[0], "2026-01", store=store).plan
    output = next(op for op in plan.operations if isinstance(op, ResolvedOutput))
    target = replace(output.target, kind=kind)
    changed = replace(plan, operations=(replace(output, mode="fail_if_exists", target=target),))
    check_targets(changed, root)
    (root / target.location).parent.mkdir(parents=True)
    (root / target.location).touch()
    with pytest.raises(RunError, match="already exists") as caught:
        check_targets(changed, root)
    assert caught.value.code == "W1507"
