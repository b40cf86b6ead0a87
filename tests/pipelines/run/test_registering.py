"""What an output registers: its location, and how its rows are placed in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines import Site, site
from weft.pipelines.plan.catalog import PublishedLocation
from weft.pipelines.run.publish import registrations
from weft.pipelines.store.open import open_store
from weft.pipelines.store.records import Registration

SOURCES: dict[str, str | None] = {
    "datasources/db.yml": "datasource: {id: db, name: db, type: jdbc, options: {url: 'jdbc:postgresql://h/d', schema: fin}}\n",
    "datasources/lake.yml": "datasource: {id: lake, name: lake, type: table, options: {}}\n",
}


def made(folder: Path, destination: str, more: str = "") -> Site:
    given = f"destination: {destination}, register_as_dataset: made{more}"
    return site(folder, [f"- {{seq: 20, name: Write, type: output, arguments: {{{given}}}}}"], SOURCES)


def registered(found: Site) -> Registration:
    (one,) = registrations(found.plan(), found.catalog, "run-1", found.root)
    return one


@pytest.mark.parametrize(
    ("destination", "path", "table", "mode"),
    [
        ("{datasource_id: warehouse, table: gl}", "out/gl/period=2026-01", (None, None, None), "period"),
        ("{path: exports/gl.csv}", "exports/gl.csv", (None, None, None), "period"),
        ("{datasource_id: db, table: gl}", "db:fin.gl", ("db", "fin", "gl"), "period"),
        ("{datasource_id: lake, table: gl}", "gl", ("lake", None, "gl"), "period"),
    ],
)
def test_a_registered_output_has_its_location(
    tmp_path: Path, destination: str, path: str, table: tuple[str | None, ...], mode: str
) -> None:
    one = registered(made(tmp_path, destination))
    at = one.location
    assert (at.path, (at.datasource, at.schema, at.table), at.period) == (path, table, "2026-01")
    assert one.dataset.main_table.temporal_mode == mode


def test_rows_of_a_table_without_a_period_are_of_every_period(tmp_path: Path) -> None:
    more = ", columns: [journal_id], mode: append"
    one = registered(made(tmp_path, "{datasource_id: db, table: gl}", more))
    assert one.dataset.main_table.temporal_mode == "snapshot"
    files = registered(made(tmp_path / "files", "{path: exports/gl}", more))
    assert files.dataset.main_table.temporal_mode == "period"


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ("", ("journal_id", "line_number")),
        (", columns: [line_number, journal_id, currency]", ("journal_id", "line_number")),
        (", columns: [journal_id, currency]", ()),
    ],
)
def test_the_natural_key_is_kept_when_all_its_columns_are_written(
    tmp_path: Path, columns: str, key: tuple[str, ...]
) -> None:
    one = registered(made(tmp_path, "{path: exports/gl}", columns))
    assert one.dataset.natural_key_columns == key


def test_the_store_returns_the_location_of_a_table(tmp_path: Path) -> None:
    from staged_runs import staged_run

    found = made(tmp_path, "{datasource_id: warehouse, table: gl}")
    elsewhere = registered(made(tmp_path / "db", "{datasource_id: db, table: gl}"))
    with open_store("sqlite:///.weft/weft.db", found.root, patience=1.0) as store:
        run = staged_run(found.root, store)
        store.complete(run.run_id, [elsewhere])
        (version,) = store.registered()
        (at,) = version.locations
    assert at == PublishedLocation(
        period="2026-01", path="db:fin.gl", format="jdbc", run_id=run.run_id, version=1, datasource="db",
        table="gl", schema="fin",
    )  # fmt: skip
