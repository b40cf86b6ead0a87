"""The built-in resolver: which publications of a registered dataset a run reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from resolvers import catalog, dataset, published, source, table
from weft.core.calendar import GREGORIAN
from weft.core.frozen import FrozenMap
from weft.errors import ResolutionError
from weft.pipelines.model.values import TemporalMode
from weft.pipelines.plan.catalog import PublishedLocation, RegisteredVersion
from weft.pipelines.plan.resolver.locate import locate


def paths(
    locations: tuple[PublishedLocation, ...], period: str, *, version: int = 9, mode: TemporalMode = "period"
) -> list[str | None]:
    main = table("gl", mode)
    newest = dataset(main, origin="registered", version=version)
    known = catalog(registered=(RegisteredVersion(dataset=newest, locations=locations),))
    found = locate(newest, main, None, known, GREGORIAN.parse(period), GREGORIAN)
    assert found.diagnostic.resolver_id == "weft:published"
    assert found.diagnostic.resolver_source == "dataset_resolver"
    return [at.path for at in found.locations]


MONTHS = (published("2026-01", 1), published("2026-02", 2), published("2026-02", 3), published("2025-12", 1))


def test_a_run_reads_its_own_period() -> None:
    assert paths(MONTHS, "2026-01") == ["out/2026-01.v1"]


def test_a_quarter_reads_its_months() -> None:
    assert paths(MONTHS, "2026-Q1") == ["out/2026-01.v1", "out/2026-02.v3"]


def test_an_older_version_sees_what_was_published_up_to_it() -> None:
    assert paths(MONTHS, "2026-02", version=2) == ["out/2026-02.v2"]


def test_a_month_reads_the_publication_of_the_smallest_period_around_it() -> None:
    around = (published("2026"), published("2026-Q1"))
    assert paths(around, "2026-02") == ["out/2026-Q1.v1"]


def test_ranges_are_read_from_the_last_publication_not_after_the_period() -> None:
    assert paths(MONTHS, "2026-02", mode="bitemporal") == ["out/2026-02.v3"]
    assert paths(MONTHS, "2026-07", mode="bitemporal") == ["out/2026-02.v3"]
    assert paths(MONTHS, "2026-01", mode="snapshot") == ["out/2026-01.v1"]


def test_a_publication_that_begins_with_the_period_goes_before_an_earlier_one() -> None:
    places = (published("2025-12"), published("2026-Q1"))
    assert paths(places, "2026-01", mode="bitemporal") == ["out/2026-Q1.v1"]


@pytest.mark.parametrize(("period", "mode"), [("2026-07", "period"), ("2025-01", "bitemporal")])
def test_a_period_that_nobody_published_is_an_error(period: str, mode: TemporalMode) -> None:
    with pytest.raises(ResolutionError) as caught:
        paths(MONTHS, period, mode=mode)
    assert caught.value.code == "W1309"
    assert "'2025-12', '2026-01', '2026-02'" in caught.value.message
    assert caught.value.resolution.outcome == "no_matching_rule"


def test_the_format_goes_with_the_location() -> None:
    main = table()
    newest = dataset(main, origin="registered")
    known = catalog(registered=(RegisteredVersion(dataset=newest, locations=(published("2026-01", format="csv"),)),))
    (at,) = locate(newest, main, None, known, GREGORIAN.parse("2026-01"), GREGORIAN).locations
    assert at.catalog == FrozenMap(format="csv")
    assert (at.resolver_id, at.resolver_version, at.rule_name) == ("weft:published", 1, "published")


def test_a_table_holds_all_its_periods_and_is_read_once() -> None:
    main = table()
    newest = dataset(main, origin="registered", version=2)
    places = tuple(
        replace(published(period, version), datasource="pg", table="gl", schema="fin", format="jdbc")
        for version, period in enumerate(("2026-01", "2026-02"), 1)
    )
    registered = (RegisteredVersion(dataset=newest, locations=places),)
    known = catalog(source("jdbc", "pg", url="jdbc:postgresql://h/d"), registered=registered)
    (at,) = locate(newest, main, None, known, GREGORIAN.parse("2026-Q1"), GREGORIAN).locations
    assert (at.datasource_id, at.schema, at.table, at.path) == ("pg", "fin", "gl", None)
    # Its rows say their period themselves.
    assert at.data_level == "any"
    with pytest.raises(ResolutionError, match="W1020"):
        locate(newest, main, None, catalog(registered=registered), GREGORIAN.parse("2026-Q1"), GREGORIAN)
