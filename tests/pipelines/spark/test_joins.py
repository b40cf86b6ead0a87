"""Runtime joins on Spark: what matches, what does not, and what is reported."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import weft
from engine_data import GL_ID, project_text, sample_workspace
from engine_runs import opened, ran
from pipelines import (
    WRITE_ALL,
    env_of,
    join,
    rate,
    rates,
    run,
    sample,
    site,
    transaction,
    transactions,
    update,
)
from weft.joins.spark import lowering
from weft.pipelines.plan.operations.resolved import LookupStep, ResolvedJoinStep, ResolvedUpdate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON = "transactions.currency = fx.from_currency AND fx.to_currency = 'USD' AND fx.rate_type = \"closing\""
FX = join("fx", "exchange_rates", ON)
CONVERTED = {
    ("JE-001", 1): Decimal("15000.00"),
    ("JE-001", 2): Decimal("15000.00"),
    ("JE-002", 1): Decimal("9282.00"),
    ("JE-002", 2): Decimal("-9282.00"),
    ("JE-003", 1): Decimal("27962.00"),
    ("JE-003", 2): Decimal("27962.00"),
    ("JE-004", 1): Decimal("3200.00"),
    ("JE-004", 2): Decimal("-3200.00"),
    ("JE-005", 1): Decimal("16800.00"),
    ("JE-005", 2): Decimal("16800.00"),
}


def counts(ran: Any, seq: int = 10) -> list[tuple[str, int, int, int]]:
    return [(j.alias, j.matched, j.unmatched, j.multiple) for j in ran.counts[seq].joins]


def test_the_join_that_is_planned_is_the_join_that_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, Any]] = []

    def lower(left: Any, right: Any, resolved: Any, choice: Any) -> Any:
        ran.append((resolved.fingerprint, choice))
        return lowering.lower(left, right, resolved, choice)

    monkeypatch.setattr("weft.pipelines.spark.joins.lower", lower)
    by_day = join("day", "exchange_rates", ON.replace("fx.", "day."), as_of="posting_date", on_multiple="all")
    first = join(
        "one",
        "exchange_rates",
        "UPPER(currency) = one.from_currency",
        on_multiple="first",
        order_by="[-rate]",
    )
    plan = site(
        tmp_path,
        [
            update(joins=FX + by_day + first, selector="amount_local > 0", usd="fx.rate + day.rate + one.rate"),
            update(20, kind="accounts.type"),
            WRITE_ALL,
        ],
    ).plan()
    run(spark, plan)
    updates = [op for op in plan.operations if isinstance(op, ResolvedUpdate)]
    steps: list[LookupStep | ResolvedJoinStep] = []
    for op in updates:
        steps += [*op.lookups, *op.joins]
    assert [fingerprint for fingerprint, _ in ran] == [s.resolved.fingerprint for s in steps]
    assert all(taken is step.choice for (_, taken), step in zip(ran, steps, strict=True))


def test_amounts_are_converted_exactly(spark: SparkSession, tmp_path: Path) -> None:
    plan = site(tmp_path, [update(joins=FX, amount_reporting="transactions.amount_local * fx.rate"), WRITE_ALL]).plan()
    ran = run(spark, plan)
    assert ran.column("amount_reporting") == CONVERTED
    assert list(ran.last[0]) == list(plan.final.schema.names)
    assert counts(ran) == [("fx", 10, 0, 0)]
    assert "BroadcastHashJoin" not in str(plan)


def test_one_update_shows_most_of_what_joins_do(spark: SparkSession, tmp_path: Path) -> None:
    """Two joins of two temporal modes, keys by alias, no match, NULL keys, a computed key, a residual."""
    joins = (
        FX
        + join("b", "budgets", "UPPER(account_code) = b.account_code AND b.amount > amount_local")
        + join("other", GL_ID, "transactions.journal_id = other.journal_id AND other.line_number = 2")
        + join("acc", GL_ID, "account_code = acc.code", table="accounts")
    )
    text = update(
        joins=joins,
        usd="ROUND(amount_local * fx.rate, 2)",
        found="fx.from_currency",
        budget="b.amount",
        counterpart="other.account_code",
        kind="IF(acc.type = 'revenue', UPPER(acc.type), acc.type)",
        nothing="COALESCE(fx.rate, 0.0)",
    )
    more = [transaction("CAD", currency="CAD"), transaction("NONE", currency=None)]
    ran = run(spark, site(tmp_path, [text, WRITE_ALL]).plan(), {"transactions": [*transactions(), *more]})
    assert len(ran.last) == 12
    usd = ran.column("usd")
    assert {k: usd[k] for k in CONVERTED} == CONVERTED
    assert (usd["CAD", 1], usd["NONE", 1]) == (None, None)
    assert ran.column("nothing")["CAD", 1] == Decimal(0)
    assert ran.column("found")["JE-002", 1] == "EUR"
    assert {k: v for k, v in ran.column("budget").items() if v is not None} == {
        ("JE-001", 1): Decimal("20000.00"),
        ("JE-002", 1): Decimal("10000.00"),
        ("JE-003", 1): Decimal("25000.00"),
        ("JE-004", 1): Decimal("5000.00"),
        ("CAD", 1): Decimal("20000.00"),
        ("NONE", 1): Decimal("20000.00"),
    }
    assert ran.column("counterpart")["JE-003", 1] == "1200"
    assert ran.column("kind")["JE-003", 1] == "REVENUE"
    assert counts(ran) == [("fx", 10, 2, 0), ("b", 6, 6, 0), ("other", 10, 2, 0), ("acc", 12, 0, 0)]
    assert not [name for name in ran.last[0] if name.startswith("__weft") or name.endswith("_fx")]


def test_an_alias_used_again_means_something_else(spark: SparkSession, tmp_path: Path) -> None:
    again = update(20, joins=FX, double_converted="amount_reporting * fx.rate")
    data = {"transactions": [row for row in transactions() if row["line_number"] == 1]}
    ran = run(
        spark,
        site(tmp_path, [update(joins=FX, amount_reporting="amount_local * fx.rate"), again, WRITE_ALL]).plan(),
        data,
    )
    doubled = ran.column("double_converted", "journal_id")
    assert {k: doubled[k] for k in ("JE-001", "JE-002", "JE-003", "JE-005")} == {
        "JE-001": Decimal(15000),
        "JE-002": Decimal("10135.944"),
        "JE-003": Decimal("35539.702"),
        "JE-005": Decimal("112.896"),
    }
    assert ran.reads == ["input", "10.fx", "20.fx"]


def test_nothing_valid_gives_null_and_no_error(spark: SparkSession, tmp_path: Path) -> None:
    plan = site(tmp_path, [update(joins=FX, amount_reporting="amount_local * fx.rate"), WRITE_ALL]).plan()
    ran = run(spark, plan, {"exchange_rates": [rate("EUR", "1", end="2026-01-01", start="2025-01-01")]})
    assert set(ran.column("amount_reporting").values()) == {None}
    assert counts(ran) == [("fx", 0, 10, 0)]


@pytest.mark.parametrize(
    ("as_of", "wanted"), [("period_start", "1.0920"), ("period_end", "1.2000"), ("2025-06-30", "1.0850")]
)
def test_as_of_chooses_the_day(spark: SparkSession, tmp_path: Path, as_of: str, wanted: str) -> None:
    data = {
        "transactions": [transaction("A", currency="EUR")],
        "exchange_rates": [
            rate("EUR", "1.0850", start="2025-01-01", end="2026-01-01"),
            rate("EUR", "1.0920", end="2026-01-31"),
            rate("EUR", "1.2000", start="2026-01-31"),
        ],
    }
    plan = site(tmp_path, [update(joins=join("fx", "exchange_rates", ON, as_of=as_of), r="fx.rate"), WRITE_ALL]).plan()
    assert [row["r"] for row in run(spark, plan, data).last] == [Decimal(wanted)]


def test_as_of_a_column_looks_at_the_day_of_each_row(spark: SparkSession, tmp_path: Path) -> None:
    data = {
        "transactions": [
            transaction(day.isoformat(), currency="EUR", posting_date=day)
            for day in (
                dt.date(2025, 12, 31),
                dt.date(2026, 1, 1),
                dt.date(2026, 1, 14),
                dt.date(2026, 1, 15),
            )
        ]
        + [transaction("none", currency="EUR", posting_date=None)],
        "exchange_rates": [
            rate("EUR", "1.1", start="2026-01-01", end="2026-01-15"),
            rate("EUR", "1.2", start="2026-01-15"),
        ],
    }
    fx = join("fx", "exchange_rates", ON, as_of="posting_date")
    ran = run(spark, site(tmp_path, [update(joins=fx, r="fx.rate"), WRITE_ALL]).plan(), data)
    assert ran.column("r", "journal_id") == {
        "2025-12-31": None,
        "2026-01-01": Decimal("1.1"),
        "2026-01-14": Decimal("1.1"),
        "2026-01-15": Decimal("1.2"),
        "none": None,
    }
    assert counts(ran) == [("fx", 3, 2, 0)]


def failing(spark: SparkSession, folder: Path, operations: list[str], data: dict[str, Any]) -> str:
    from weft.pipelines.spark.joins import multiple_matches
    from weft.pipelines.spark.lower import lower_operation, lower_output, opened

    plan = site(folder, operations).plan()
    env = env_of(spark, plan, {**sample(), **data})
    frame = opened(plan, env)
    for op in plan.operations[:-1]:
        frame = lower_operation(frame, op, env)
    last = plan.operations[-1]
    from weft.pipelines.plan.operations.resolved import ResolvedOutput

    assert isinstance(last, ResolvedOutput)
    with pytest.raises(Exception, match="JOIN_CONTRACT") as caught:
        lower_output(frame, last, env).collect()
    error = multiple_matches(caught.value, env)
    assert error is not None
    assert error.code == "W1209"
    return error.message


def test_more_than_one_match_fails_and_names_the_keys(spark: SparkSession, tmp_path: Path) -> None:
    both = join("fx", "exchange_rates", "currency = fx.from_currency")
    reported = failing(spark, tmp_path, [update(joins=both, r="fx.rate"), WRITE_ALL], {})
    assert reported == "Join 'fx' matches more than one row: from_currency = 'EUR' (2 rows)"


def test_more_than_one_match_of_a_lookup_fails_too(spark: SparkSession, tmp_path: Path) -> None:
    twice = sample()["accounts"] * 2
    reported = failing(spark, tmp_path, [update(t="accounts.type"), WRITE_ALL], {"accounts": twice})
    assert reported.startswith(
        "Join 'accounts' matches more than one row: code = '1200' (2 rows), code = '2100' (2 rows)"
    )


def test_more_than_one_match_of_a_day_of_each_row_fails_too(spark: SparkSession, tmp_path: Path) -> None:
    fx = join("fx", "exchange_rates", ON, as_of="posting_date")
    overlapping = [rate("EUR", "1.1"), rate("EUR", "1.2", start="2026-01-05")]
    reported = failing(spark, tmp_path, [update(joins=fx, r="fx.rate"), WRITE_ALL], {"exchange_rates": overlapping})
    assert reported.startswith("Join 'fx' matches more than one row: ")


def test_rows_that_the_selector_leaves_out_may_match_as_often_as_they_like(spark: SparkSession, tmp_path: Path) -> None:
    both = join("fx", "exchange_rates", "currency = fx.from_currency")
    ran = run(
        spark,
        site(
            tmp_path,
            [
                update(joins=both, selector="currency <> 'EUR'", amount_reporting="amount_local * fx.rate"),
                WRITE_ALL,
            ],
        ).plan(),
    )
    changed = ran.column("amount_reporting")
    assert changed["JE-003", 1] == Decimal("27962.00")
    assert changed["JE-002", 1] is None
    assert (ran.counts[10].rows_changed, counts(ran)) == (8, [("fx", 8, 0, 0)])
    stamps = ran.column("_updated_at")
    assert stamps["JE-003", 1] == stamps["JE-001", 1]


def test_the_first_match_is_the_first_by_its_order(spark: SparkSession, tmp_path: Path) -> None:
    first = join("fx", "exchange_rates", "currency = fx.from_currency", on_multiple="first", order_by="[-rate]")
    late = join(
        "least",
        "exchange_rates",
        "currency = least.from_currency AND line_number < least.rate * 2",
        on_multiple="first",
        order_by="[rate]",
    )
    ran = run(spark, site(tmp_path, [update(joins=first + late, hi="fx.rate", lo="least.rate"), WRITE_ALL]).plan())
    assert ran.column("hi")["JE-002", 1] == Decimal("1.0920")
    assert ran.column("lo")["JE-002", 1] == Decimal("1.0900")
    assert ran.column("lo")["JE-005", 1] is None
    assert len(ran.last) == 10
    assert counts(ran) == [("fx", 10, 0, 2), ("least", 6, 4, 2)]


def test_all_matches_make_rows_with_ids_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    every = join("fx", "exchange_rates", "currency = fx.from_currency", on_multiple="all")
    operations = [
        update(5, selector="line_number = 1", tag="'one'"),
        update(joins=every, selector="currency IN ('EUR', 'GBP')", r="fx.rate"),
        update(20, x="1"),
        WRITE_ALL,
    ]
    plan = site(tmp_path, operations).plan()
    ran = run(spark, plan)
    assert len(ran.last) == 12
    assert len({row["_row_id"] for row in ran.last}) == 12
    assert sorted(row["r"] for row in ran.last if row["currency"] == "EUR") == [
        Decimal("1.0900"), Decimal("1.0900"), Decimal("1.0920"), Decimal("1.0920"),
    ]  # fmt: skip
    seen = ran.counts
    assert [(seen[n].rows_in, seen[n].rows_out, seen[n].rows_changed) for n in (5, 10, 20, 900)] == [
        (10, 10, 5),
        (10, 12, 4),
        (12, 12, 12),
        (12, 12, 12),
    ]
    assert counts(ran) == [("fx", 4, 0, 2)]
    before = {row["_row_id"] for row in run(spark, site(tmp_path, [WRITE_ALL]).plan()).last}
    untouched = {row["_row_id"] for row in ran.last if row["currency"] not in ("EUR", "GBP")}
    assert untouched < before
    again = run(spark, plan, {"exchange_rates": list(reversed(rates()))}, partitions=3)
    assert {row["_row_id"] for row in again.last} == {row["_row_id"] for row in ran.last}


def test_null_keys_match_only_when_declared(spark: SparkSession, tmp_path: Path) -> None:
    data = {
        "transactions": [transaction("A", cost_center_code=None)],
        "budgets": [{**sample()["budgets"][0], "cost_center_code": None}],
    }
    plain = join("b", "budgets", "cost_center_code = b.cost_center_code")
    equal = join("n", "budgets", "cost_center_code = n.cost_center_code", nulls_equal="true")
    ran = run(
        spark,
        site(tmp_path, [update(joins=plain + equal, a="b.amount", b="n.amount"), WRITE_ALL]).plan(),
        data,
    )
    assert [(row["a"], row["b"]) for row in ran.last] == [(None, Decimal("20000.00"))]


def test_a_small_side_is_broadcast_and_nothing_else_changes(spark: SparkSession, tmp_path: Path) -> None:
    def plan_of(**more: Any) -> tuple[str, set[tuple[Any, ...]]]:
        fx = join("fx", "exchange_rates", ON, **more)
        plan = site(tmp_path, [update(joins=fx, amount_reporting="amount_local * fx.rate"), WRITE_ALL]).plan()
        ran = run(spark, plan, size_of=lambda _: 422)
        reported = ran.frames[900]._jdf.queryExecution().executedPlan().toString()
        return reported, {(row["_row_id"], row["amount_reporting"]) for row in ran.last}

    sent, rows = plan_of()
    assert "BroadcastHashJoin" in sent
    merged, same = plan_of(broadcast="false")
    assert "SortMergeJoin" in merged
    assert rows == same


def test_the_broadcast_that_is_printed_is_the_hint_that_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joins = (
        FX
        + join("b", "budgets", "cost_center_code = b.cost_center_code", on_multiple="all")
        + join("never", "exchange_rates", ON.replace("fx.", "never."), broadcast="false")
        + join("always", "exchange_rates", ON.replace("fx.", "always."), broadcast="true")
        + join("day", "exchange_rates", ON.replace("fx.", "day."), as_of="posting_date", on_multiple="all")
    )
    text = update(joins=joins, usd="fx.rate + never.rate + always.rate + day.rate + b.amount")
    project = project_text([text, WRITE_ALL])
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": project, "scenarios/ts03_fx.yml": None})
    # The rates have 422 bytes and the budgets 295, so one of them is small.
    monkeypatch.setattr("weft.pipelines.plan.explain.BROADCAST_UP_TO", 300)
    hints: list[bool | None] = []

    def lower(left: Any, right: Any, resolved: Any, choice: Any) -> Any:
        analyzed = right._jdf.queryExecution().analyzed().toString()
        found = re.search(r"ResolvedHint \(strategy=(\w+)\)", analyzed)
        hints.append(None if found is None else found[1] == "broadcast")
        return lowering.lower(left, right, resolved, choice)

    monkeypatch.setattr("weft.pipelines.spark.joins.lower", lower)
    planned = weft("plan", "fx_reporting", "-p", "2026-01", "--json", root=root).data["joins"]
    with opened(root) as store:
        report = ran(root, store, spark)
    assert report.ok, report.diagnostics
    assert [j["broadcast"] for j in planned] == [False, True, False, True, None]
    assert hints == [j["broadcast"] for j in planned]


def test_no_table_is_opened_when_a_join_is_wrong(tmp_path: Path) -> None:
    wrong = site(tmp_path, [update(joins=FX, x="fx.rat"), WRITE_ALL])
    assert [d.code for d in wrong.refused().diagnostics] == ["W1208"]
