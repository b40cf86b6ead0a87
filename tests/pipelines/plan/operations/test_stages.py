"""What a run does, stage by stage, and how a plan is described."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from engine_data import CONVERT, WRITE
from pipelines import join, site, update
from weft.pipelines.plan.explain import describe_plan
from weft.pipelines.plan.stages import list_stages


def out(seq: int) -> str:
    return f"- {{seq: {seq}, name: Out {seq}, type: output, arguments: {{destination: {{path: out/{seq}}}}}}}"


def kinds(folder: Path, *operations: str, **keys: object) -> list[tuple[str, int | None]]:
    done = list_stages(site(folder, operations, **keys).plan())  # type: ignore[arg-type]  # as site takes them
    return [(stage.kind, stage.seq) for stage in done if stage.kind not in ("read", "join")]


def test_a_project_with_one_output_is_never_written_down_in_between(tmp_path: Path) -> None:
    assert kinds(tmp_path, update(x="1"), update(20, y="1"), out(30)) == [
        ("update", 10),
        ("update", 20),
        ("output", 30),
        ("publish", None),
    ]


def test_the_working_set_is_written_down_before_an_output_that_another_follows(tmp_path: Path) -> None:
    assert kinds(tmp_path, update(x="1"), out(20), update(30, y="1"), out(40)) == [
        ("update", 10),
        ("checkpoint", 10),
        ("output", 20),
        ("update", 30),
        ("output", 40),
        ("publish", None),
    ]


def test_outputs_of_one_working_set_share_a_checkpoint(tmp_path: Path) -> None:
    assert kinds(tmp_path, out(5), update(x="1"), out(20), out(30), out(40)) == [
        ("output", 5),
        ("update", 10),
        ("checkpoint", 10),
        ("output", 20),
        ("output", 30),
        ("output", 40),
        ("publish", None),
    ]


def test_an_operation_can_ask_for_a_checkpoint(tmp_path: Path) -> None:
    asking = update(x="1").replace("  type: update", "  type: update\n  checkpoint: true")
    assert kinds(tmp_path, asking, update(20, y="1"), out(30))[:2] == [("update", 10), ("checkpoint", 10)]


def test_long_projects_are_written_down_in_between(tmp_path: Path) -> None:
    many = [update(seq, x="1") for seq in range(10, 60, 10)]
    assert [seq for kind, seq in kinds(tmp_path, *many, out(60), checkpoint_every=2) if kind == "checkpoint"] == [
        20,
        40,
    ]


def test_a_plan_reads_joins_updates_checkpoints_writes_and_publishes(tmp_path: Path) -> None:
    done = list_stages(site(tmp_path, [update(x="accounts.type"), out(20), update(30, y="1"), out(40)]).plan())
    assert {stage.kind for stage in done} == {"read", "join", "update", "checkpoint", "output", "publish"}


def test_each_table_is_opened_where_it_is_first_needed(tmp_path: Path) -> None:
    fx = join("fx", "exchange_rates", "currency = fx.from_currency")
    done = list_stages(
        site(
            tmp_path,
            [update(t="accounts.type"), update(20, joins=fx, r="fx.rate", n="accounts.name"), out(30)],
        ).plan()
    )
    assert [(stage.seq, stage.inputs) for stage in done if stage.kind == "read"] == [
        (None, ("input",)),
        (10, ("lookup.accounts",)),
        (20, ("20.fx",)),
    ]


def test_a_plan_is_printed_as_text(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    found = site(
        tmp_path,
        [
            CONVERT,
            WRITE,
            update(30, selector="accounts.type = 'asset'", tagged="TRUE"),
            "- {seq: 40, name: Totals, type: aggregate, arguments: {group_by: [currency], aggregations: [{column: total, expression: SUM(amount_local)}]}}",
            "- {seq: 50, name: Budgets, type: append, arguments: {source: {dataset_id: budgets}, columns: {amount_local: amount}}}",
            "- {seq: 60, name: Drop, type: delete, selector: 'amount_local = 0'}",
            out(70),
        ],
    )
    document = describe_plan(found.plan(), catalog=found.catalog, sizes={"10.fx": 422})
    golden("plan/pipeline.txt", document.text)


def test_a_plan_is_available_as_data(tmp_path: Path) -> None:
    found = site(tmp_path, [CONVERT, WRITE])
    data = describe_plan(found.plan(), catalog=found.catalog, sizes={"10.fx": 422}).report.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["joins"][0]["alias"] == "fx"
    assert (data["joins"][0]["broadcast"], data["joins"][0]["as_of"]) == (True, "as of 2026-01-01")
    assert data["writes"][0]["dataset_version"] == 1
    assert [pin["role"] for pin in data["pins"]] == ["input", "join"]
