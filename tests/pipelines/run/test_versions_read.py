"""Which data a join reads: the pinned version or the newest active one, where the first resolver that is named says."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from engine_data import RATES_ID, project_text, sample_workspace
from engine_runs import opened, ran, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = "from_currency,to_currency,rate_type,rate,_period_from,_period_to\n"


def rates(version: int, more: str = "") -> str:
    """Return a version of the exchange rates whose data is in a folder of its own."""
    return f"""\
dataset:
  id: {RATES_ID}
  name: exchange_rates
  version: {version}
  {more}
  main_table:
    name: exchange_rates
    temporal_mode: bitemporal
    columns:
      - {{name: from_currency, type: string}}
      - {{name: to_currency, type: string}}
      - {{name: rate_type, type: string}}
      - {{name: rate, type: "decimal(18,6)"}}
"""


def resolver(name: str) -> str:
    return f"""\
resolver:
  id: {name}
  name: {name}
  version: 1
  status: active
  rules:
    - {{name: all, strategy: {{type: path, datasource_id: files, path: "{name}/{{{{table_name}}}}.csv"}}}}
"""


JOIN = "on: \"currency = {0}.from_currency AND {0}.rate_type = 'closing'\""
OPERATIONS = f"""\
- seq: 10
  name: Both
  type: update
  arguments:
    joins:
      - {{alias: old, dataset_id: exchange_rates, dataset_version: 1, {JOIN.format("old")}}}
      - {{alias: new, dataset_id: {RATES_ID}, {JOIN.format("new")}}}
    assignments:
      - {{column: rate_new, expression: "1"}}
      - {{column: first, expression: "old.rate"}}
      - {{column: second, expression: "new.rate + rate_new"}}
- seq: 20
  name: Again
  type: update
  arguments:
    joins:
      - {{alias: new, dataset_id: exchange_rates@2, {JOIN.format("new")}}}
    assignments: [{{column: third, expression: "new.rate"}}]
- {{seq: 30, name: Write, type: output, selector: "currency = 'EUR'", arguments: {{destination: {{path: out/gl}}}}}}
"""
CHANGES: dict[str, str | None] = {
    "datasets/exchange_rates.v1.yml": rates(1, "resolver_id: one"),
    "datasets/exchange_rates.v2.yml": rates(2, "resolver_id: two"),
    "datasets/exchange_rates.v3.yml": rates(3, "status: disabled"),
    "resolvers/one.yml": resolver("one"),
    "resolvers/two.yml": resolver("two"),
    "resolvers/trial.yml": resolver("trial"),
    **{
        f"data/{name}/exchange_rates.csv": f"{HEAD}EUR,USD,closing,{rate},2026-01-01,\n"
        for name, rate in (("one", "1.1"), ("two", "1.2"), ("trial", "9.9"))
    },
}


def joined(root: Path, spark: SparkSession) -> tuple[list[tuple[int, str]], set[tuple[Decimal, ...]]]:
    with opened(root) as store:
        report = ran(root, store, spark)
        assert report.ok, report.diagnostics
        snapshot = store.snapshot(report.run_id)["resolver_snapshot"]
        assert report.resolver_snapshot == snapshot
    assert [entry["alias"] for entry in snapshot["join_datasets"]] == ["old", "new", "new"]
    assert {entry["dataset_id"] for entry in snapshot["join_datasets"]} == {RATES_ID}
    pins = [(entry["dataset_version"], entry["resolver_source"]) for entry in snapshot["join_datasets"]]
    found = rows(spark, root / "out" / "gl" / "period=2026-01", "first", "second", "third")
    return pins, set(found)


def test_a_join_reads_the_pinned_version_or_the_newest_active_one(tmp_path: Path, spark: SparkSession) -> None:
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text(OPERATIONS), **CHANGES})
    pins, found = joined(root, spark)
    assert pins == [(1, "dataset_resolver"), (2, "dataset_resolver"), (2, "dataset_resolver")]
    # `rate_new` is a column like any other: what a join makes for itself never meets it.
    assert found == {(Decimal("1.1"), Decimal("2.2"), Decimal("1.2"))}


def test_an_override_of_the_project_decides_for_joins_too(tmp_path: Path, spark: SparkSession) -> None:
    text = project_text(OPERATIONS, resolver_overrides="{exchange_rates: trial}")
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": text, **CHANGES})
    pins, found = joined(root, spark)
    assert [source for _, source in pins] == ["project_override"] * 3
    assert found == {(Decimal("9.9"), Decimal("10.9"), Decimal("9.9"))}
