"""TS-10: reference tables of a database, files before 2025, Parquet by month from then on."""

from __future__ import annotations

import pytest

from resolvers import dataset, resolver, rule, table
from weft.core.calendar import GREGORIAN
from weft.io.location import Location
from weft.pipelines.model.resolver import PathStrategy, TableStrategy
from weft.pipelines.plan.resolver.rules import resolve_table

RULES = resolver(
    rule(
        "reference",
        "table.name = 'customers' OR table.name = 'products'",
        strategy=TableStrategy(datasource="ds-postgres", table="{{table_name}}", schema="reference"),
    ),
    rule(
        "legacy",
        "period.start_date < DATE '2025-01-01'",
        strategy=PathStrategy(datasource="ds-legacy-volume", path="/mnt/data/{{YYYY}}/{{MM}}/{{table_name}}.csv"),
        data_level="month",
    ),
    rule(
        "lake",
        "period.start_date >= DATE '2025-01-01'",
        strategy=PathStrategy(datasource="ds-s3", path="data/{{YYYY}}/{{table_name}}/{{MM}}.parquet"),
        data_level="month",
    ),
)


def located(name: str, period: str) -> tuple[Location, ...]:
    main = table(name)
    found = resolve_table(RULES, dataset(main), main, GREGORIAN.parse(period), GREGORIAN, source="system_default")
    return found.locations


def test_a_month_before_2025_is_a_file_of_the_old_volume() -> None:
    (at,) = located("orders", "2024-11")
    assert (at.datasource_id, at.path, at.rule_name) == (
        "ds-legacy-volume",
        "/mnt/data/2024/11/orders.csv",
        "legacy",
    )


def test_a_quarter_of_2026_is_three_files_of_the_lake() -> None:
    found = located("orders", "2026-Q1")
    assert [at.path for at in found] == [f"data/2026/orders/0{m}.parquet" for m in (1, 2, 3)]
    assert [at.period_identifier for at in found] == ["2026-01", "2026-02", "2026-03"]
    assert {at.datasource_id for at in found} == {"ds-s3"}


@pytest.mark.parametrize("period", ["2019-03", "2024-Q4", "2026", "2026-01-15"])
@pytest.mark.parametrize("name", ["customers", "products"])
def test_reference_tables_are_in_the_database_in_every_period(name: str, period: str) -> None:
    (at,) = located(name, period)
    assert (at.datasource_id, at.schema, at.table, at.path) == ("ds-postgres", "reference", name, None)


def test_the_sample_resolver_sends_a_quarter_to_three_months_and_a_year_to_twelve() -> None:
    sales = resolver(
        rule(
            "s3",
            "period.start_date >= DATE '2024-01-01'",
            strategy=PathStrategy(datasource="s3", path="/data/sales/{{period_id}}/{{table_name}}.parquet"),
            data_level="month",
        ),
        rule("legacy", strategy=TableStrategy(datasource="old", table="{{table_name}}")),
    )
    main = table("daily_transactions")

    def paths(period: str) -> list[str]:
        found = resolve_table(sales, dataset(main), main, GREGORIAN.parse(period), GREGORIAN, source="system_default")
        return [str(at) for at in found.locations]

    assert paths("2024-Q1") == [f"/data/sales/2024-0{m}/daily_transactions.parquet" for m in (1, 2, 3)]
    assert paths("2024-02") == ["/data/sales/2024-02/daily_transactions.parquet"]
    assert len(paths("2024")) == 12
    assert paths("2023-12") == ["daily_transactions"]
