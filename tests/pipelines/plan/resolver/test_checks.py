"""Findings about a resolver that nobody has asked yet."""

from __future__ import annotations

import pytest

from resolvers import catalog, dataset, project, resolver, rule, source, table
from weft.core.calendar import GREGORIAN
from weft.core.frozen import FrozenMap
from weft.errors import ResolutionError
from weft.pipelines.model.resolver import CatalogStrategy, TableStrategy
from weft.pipelines.plan.check import check_resolver
from weft.pipelines.plan.resolver.locate import locate

JANUARY = GREGORIAN.parse("2026-01")


def test_a_sound_resolver_has_no_findings() -> None:
    assert check_resolver(resolver(rule("old", "period.level = 'year'"), rule("all"))) == ()


def test_each_rule_behind_one_without_a_condition_is_never_reached() -> None:
    found = check_resolver(resolver(rule("all"), rule("b", "TRUE"), rule("c")))
    assert [(d.code, d.severity) for d in found] == [("W1306", "warning")] * 2
    assert "rule 'b' is never reached: rule 'all'" in found[0].message
    assert "rule 'c' is never reached: rule 'all'" in found[1].message


def test_findings_of_all_rules_and_templates_come_together() -> None:
    request = CatalogStrategy(
        endpoint="https://c/{{ONE}}", params=FrozenMap(p="{{TWO}}"), headers=FrozenMap(h="{{period}}")
    )
    found = check_resolver(
        resolver(
            rule("a", "tabel = 'x'", strategy=TableStrategy(datasource="d", table="{{T}}", schema="{{S}}")),
            rule("b", "period > '2026'", strategy=request),
        )
    )
    assert [d.code for d in found] == ["W1304", "W1310", "W1310", "W1312", "W1310", "W1310"]


def test_a_datasource_that_is_disabled_or_missing_is_found_before_anything_is_read() -> None:
    main = table()
    sales = dataset(main)
    for known, code in (
        (catalog(resolver(), source(status="disabled"), default="main"), "W1315"),
        (catalog(resolver(), source("csv", "file"), default="main"), "W1020"),
    ):
        with pytest.raises(ResolutionError) as caught:
            locate(sales, main, project(), known, JANUARY, GREGORIAN)
        assert caught.value.code == code
        assert "'files'" in caught.value.message
    found = locate(sales, main, None, catalog(resolver(), source(), default="main"), JANUARY, GREGORIAN)
    assert found.diagnostic.resolver_source == "system_default"
