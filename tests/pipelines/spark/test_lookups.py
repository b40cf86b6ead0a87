"""Lookups on Spark: joined where they are referenced, at most one match, also through other lookups."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines import COUNTRIES, CUSTOMERS, WRITE_ALL, run, site, transaction, transactions, update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOKUP = """\
    - alias: customer
      target: {type: dataset, id: customers}
      join_conditions: [{source_column: journal_id, target_column: id}]
"""


@pytest.mark.parametrize("materialization", ["eager", "runtime"])
def test_lookups_are_joined_where_they_are_referenced(
    spark: SparkSession, tmp_path: Path, materialization: str
) -> None:
    gl = Path(__file__).parents[2] / "data" / "fx" / "datasets" / "gl.v1.yml"
    changes = {
        "datasets/gl.v1.yml": gl.read_text(encoding="utf-8") + LOOKUP,
        "datasets/customers.yml": CUSTOMERS,
        "datasets/countries.yml": COUNTRIES,
    }
    operations = [
        update(10, selector="{{EMEA_ONLY}}", amount_local="amount_local * 1.05"),
        update(20, region="cost_centers.region", where="country.continent"),
        update(30, account_code="'4100'"),
        update(40, kind="accounts.type"),
        WRITE_ALL,
    ]
    plan = site(
        tmp_path,
        operations,
        changes,
        selectors={"EMEA_ONLY": "'cost_centers.region = \"EMEA\"'"},
        materialization=materialization,
    ).plan()
    data: dict[str, list[dict[str, Any]]] = {
        "customers": [{"id": "JE-002", "country_code": "FR"}, {"id": "JE-003", "country_code": None}],
        "countries": [{"code": "FR", "continent": "Europe"}],
        "transactions": [*transactions(), transaction("X", cost_center_code=None, account_code="none")],
    }
    ran = run(spark, plan, data)
    local = {k: str(v) for k, v in ran.column("amount_local").items()}
    assert (local["JE-002", 1], local["JE-003", 2], local["JE-005", 1], local["JE-001", 1]) == (
        "8925.00",
        "23100.00",
        "2625000.00",
        "15000.00",
    )
    assert ran.counts[10].rows_changed == 6
    where = ran.column("where")
    assert (where["JE-002", 1], where["JE-003", 1], where["JE-001", 1]) == ("Europe", None, None)
    # A lookup follows the column as it is by now.
    assert set(ran.column("kind").values()) == {"revenue"}
    assert ran.column("region")["X", 1] is None
    assert len(ran.last) == 11
    once = ["lookup.cost_centers", "lookup.customer", "lookup.customer.country", "lookup.accounts"]
    twice = ["lookup.cost_centers", "lookup.cost_centers", *once[1:]]
    assert sorted(ran.reads[1:]) == sorted(once if materialization == "eager" else twice)


def test_lookups_that_nobody_reads_are_not_opened(spark: SparkSession, tmp_path: Path) -> None:
    ran = run(spark, site(tmp_path, [update(10, x="1"), WRITE_ALL]).plan())
    assert ran.reads == ["input"]


PRICES = """\
dataset:
  id: prices
  name: prices
  version: 1
  status: active
  main_table:
    name: prices
    temporal_mode: bitemporal
    columns: [{name: code, type: string}, {name: price, type: integer}]
"""
AS_OF = """\
    - {{alias: {0}, target: {{type: dataset, id: prices}}, as_of: {1}, join_conditions: [{{source_column: currency, target_column: code}}]}}
"""


def test_a_lookup_is_read_at_the_day_that_it_says(spark: SparkSession, tmp_path: Path) -> None:
    gl = (Path(__file__).parents[2] / "data" / "fx" / "datasets" / "gl.v1.yml").read_text(encoding="utf-8")
    days = {
        "at_start": "period_start",
        "at_end": "period_end",
        "then": "2025-06-30",
        "that_day": "posting_date",
    }
    changes = {
        "datasets/gl.v1.yml": gl + "".join(AS_OF.format(alias, day) for alias, day in days.items()),
        "datasets/prices.yml": PRICES,
    }
    text = update(10, a="at_start.price", b="at_end.price", c="then.price", d="that_day.price")
    ranges = [
        ("2025-01-01", "2026-01-01"),
        ("2026-01-01", "2026-01-10"),
        ("2026-01-10", "2026-01-31"),
        ("2026-01-31", None),
    ]
    prices = [
        {
            "code": "EUR",
            "price": n,
            "_period_from": dt.date.fromisoformat(start),
            "_period_to": None if end is None else dt.date.fromisoformat(end),
        }
        for n, (start, end) in enumerate(ranges)
    ]
    rows = [transaction("A", currency="EUR", posting_date=dt.date(2026, 1, 10))]
    ran = run(spark, site(tmp_path, [text, WRITE_ALL], changes).plan(), {"transactions": rows, "prices": prices})
    assert [(r["a"], r["b"], r["c"], r["d"]) for r in ran.last] == [(1, 3, 0, 2)]
