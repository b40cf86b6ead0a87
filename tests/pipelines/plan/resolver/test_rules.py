"""Rules in order, their conditions, and the result of each."""

from __future__ import annotations

import pytest

from resolvers import dataset, resolver, rule, table
from weft.core.calendar import GREGORIAN
from weft.errors import ResolutionError
from weft.pipelines.model.resolver import PathStrategy, Resolver, TableStrategy
from weft.pipelines.plan.resolver.rules import Resolution, resolve_table


def resolve(found: Resolver, period: str = "2026-01", name: str = "orders") -> Resolution:
    main = table(name)
    return resolve_table(found, dataset(main), main, GREGORIAN.parse(period), GREGORIAN, source="dataset_resolver")


def matching(when: str, period: str = "2026-01", name: str = "orders") -> bool:
    found = resolve(resolver(rule("asked", when), rule("else")), period, name)
    return found.locations[0].rule_name == "asked"


def test_the_first_rule_that_holds_decides_and_each_rule_is_reported() -> None:
    found = resolve(
        resolver(
            rule("never", "FALSE"),
            rule("null", "period.level = NULL"),
            rule("by table", "table = 'orders'"),
            rule("too late", "TRUE"),
            rule("last"),
        )
    )
    assert [(r.rule_name, r.matched, r.reason) for r in found.diagnostic.evaluated_rules] == [
        ("never", False, "its condition is false"),
        ("null", False, "its condition is NULL"),
        ("by table", True, "its condition is true"),
        ("too late", None, "not evaluated: an earlier rule matched"),
        ("last", None, "not evaluated: an earlier rule matched"),
    ]
    assert found.diagnostic.evaluated_rules[2].evaluated_expression == "table = 'orders'"
    assert found.diagnostic.outcome == "success"
    assert found.diagnostic.resolver_source == "dataset_resolver"
    assert found.warnings == ()


def test_a_rule_without_a_condition_always_matches() -> None:
    found = resolve(resolver(rule("all")))
    assert found.diagnostic.evaluated_rules[0].reason == "has no condition and always matches"
    (at,) = found.locations
    assert (at.datasource_id, at.path, at.period_identifier, at.data_level) == (
        "files",
        "orders.csv",
        "2026-01",
        "any",
    )
    assert (at.resolver_id, at.resolver_version, at.rule_name, at.missing) == ("main", 1, "all", "fail")


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("period = '2026-01'", True),
        ('period.identifier == "2026-01"', True),
        ("period IN ('2026-01', '2026-02')", True),
        ("period <> '2026-01'", False),
        ("period.level = 'month'", True),
        ("period.start_date = DATE '2026-01-01' AND period.end_date = DATE '2026-01-31'", True),
        ("table = 'orders'", True),
        ("table.name = 'customers'", False),
        ("table IN ('customers', 'orders')", True),
        ("dataset = 'sales' AND dataset.name = 'sales' AND dataset.id = 'ds-sales'", True),
        ("dataset.version >= 2", False),
        ("data_level = 'any'", True),
        ("NOT (table = 'customers' OR (period.level = 'year' AND TRUE))", True),
        ("NOT table = 'orders'", False),
        ("true", True),
        ("table LIKE 'ord%'", True),
    ],
)
def test_conditions_speak_of_the_period_the_table_and_the_dataset(when: str, expected: bool) -> None:  # noqa: FBT001
    assert matching(when) is expected


@pytest.mark.parametrize("period", ["2024-01", "2024-Q1", "2024", "2025-12-31"])
def test_dates_decide_a_cut_over_on_every_level(period: str) -> None:
    assert matching("period.start_date >= DATE '2024-01-01'", period)
    assert not matching("period.start_date >= DATE '2026-01-01'", period)


@pytest.mark.parametrize(
    "when",
    [
        "period >= '2024-Q1'",
        "'2024-Q1' <= period.identifier",
        "table = 'x' OR NOT period < '2024'",
        "period BETWEEN '2024-01' AND '2024-12'",
        "period LIKE '2024%'",
        "SUBSTRING(period, 1, 4) > '2024'",
    ],
)
def test_identifiers_of_periods_have_no_order(when: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        resolve(resolver(rule("asked", when)))
    assert [d.code for d in caught.value.diagnostics] == ["W1312"]
    (finding,) = caught.value.diagnostics
    assert finding.at is not None
    assert "^" * len("period") in finding.at.render()
    assert "period.start_date" in finding.help


@pytest.mark.parametrize(
    ("when", "part", "help"),
    [
        ("tabel = 'orders'", "unknown name 'tabel'", "did you mean 'table'"),
        ("period.quarter = 1", "unknown name 'period.quarter'", "period"),
        ("fx.rate = 1", "unknown name 'fx.rate'", "names are 'period'"),
        ("table = 'orders' 'x'", "", ""),
        ("table =", "expected a value", ""),
        ("table = 1", "", "CAST"),
        ("table", "the expression is string, expected boolean", ""),
        ("TODAY() > period.start_date", "TODAY() is not available here", ""),
        ("SUM(dataset.version) > 1", "SUM is an aggregate", ""),
        ("CAST(table AS date) = period.start_date", "", ""),
        ("{{SELECTED}}", "", ""),
    ],
)
def test_a_condition_that_fails_names_its_rule_and_text(when: str, part: str, help: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        resolve(resolver(rule("first", "FALSE"), rule("broken", when), rule("all")))
    error = caught.value
    assert error.code == "W1304"
    assert "'broken'" in error.message
    assert when in error.message
    assert part in error.message
    assert help in error.help
    assert error.diagnostics[0].at is not None
    diagnostic = error.resolution
    assert [(r.rule_name, r.matched) for r in diagnostic.evaluated_rules] == [
        ("first", False),
        ("broken", None),
    ]
    assert diagnostic.evaluated_rules[1].reason.startswith("fails: ")


def test_no_match_lists_every_rule_its_text_and_its_result() -> None:
    with pytest.raises(ResolutionError) as caught:
        resolve(resolver(rule("old", "period.start_date < DATE '2025-01-01'"), rule("items", "table = 'items'")))
    error = caught.value
    assert error.code == "W1305"
    assert error.message == "no rule of resolver 'main' matches table 'orders' of sales v1 in 2026-01"
    assert "old: its condition is false: period.start_date < DATE '2025-01-01'" in error.help
    assert "items: its condition is false: table = 'items'" in error.help
    assert error.resolution.outcome == "no_matching_rule"
    assert [r.matched for r in error.resolution.evaluated_rules] == [False, False]


def test_a_table_strategy_names_schema_and_table() -> None:
    strategy = TableStrategy(datasource="pg", table="{{table_name}}_{{YYYY}}", schema="{{dataset_name}}")
    (at,) = resolve(resolver(rule("db", strategy=strategy))).locations
    assert (at.datasource_id, at.schema, at.table, at.path) == ("pg", "sales", "orders_2026", None)
    assert str(at) == "sales.orders_2026"


def test_every_template_problem_of_a_rule_is_reported_at_once() -> None:
    strategy = TableStrategy(datasource="pg", table="{{tabel_name}}", schema="{{YYY}}")
    with pytest.raises(ResolutionError) as caught:
        resolve(resolver(rule("db", strategy=strategy)))
    assert [d.code for d in caught.value.diagnostics] == ["W1310", "W1310"]
    assert caught.value.resolution.outcome == "template_render_error"
    assert caught.value.resolution.expanded_periods == ("2026-01",)


def test_the_account_is_plain_data() -> None:
    path = PathStrategy(datasource="files", path="{{period}}/{{table_name}}.csv")
    found = resolve(resolver(rule("all", strategy=path, data_level="month")))
    assert found.diagnostic.to_dict() == {
        "resolver_id": "main",
        "resolver_source": "dataset_resolver",
        "evaluated_rules": [
            {
                "rule_name": "all",
                "matched": True,
                "reason": "has no condition and always matches",
                "evaluated_expression": "",
            }
        ],
        "outcome": "success",
        "expanded_periods": ["2026-01"],
        "missing_periods": [],
    }
    assert found.locations[0].to_dict()["path"] == "2026-01/orders.csv"
