from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select

from store_values import NOW, new_run
from weft.errors import ArgumentError, StoreError
from weft.pipelines.store import tables
from weft.pipelines.store.column_types import json_text, moment_text, utc
from weft.pipelines.store.writer import Store

RUN = new_run()
VERSION = {"id": "a", "version": 1, "name": "a", "body": {}, "fingerprint": "f", "status": "active"}
ROWS: dict[str, dict[str, Any]] = {
    "datasets": VERSION | {"origin": "file", "published_at": NOW},
    "projects": VERSION | {"created_at": NOW},
    "resolvers": {k: v for k, v in VERSION.items() if k != "name"} | {"created_at": NOW},
    "project_state": {"project_id": "p", "status": "active", "updated_at": NOW},
    "run_operations": {
        "run_id": RUN.run_id, "seq": 99, "name": "n", "type": "update", "status": "pending", "joins": [],
    },
    "run_outputs": {
        "run_id": RUN.run_id, "seq": 99, "state": "staged", "stage": "s", "target": "t", "backup": "b",
        "kind": "files", "format": "csv", "rows": 1, "columns": [], "manifest": [],
    },
}  # fmt: skip
REFUSED = (
    ("datasets", {"status": "draft"}),
    ("datasets", {"origin": "elsewhere"}),
    ("datasets", {"version": 0}),
    ("projects", {"status": "disabled"}),
    ("projects", {"version": -1}),
    ("resolvers", {"status": "inactive"}),
    ("resolvers", {"version": 0}),
    ("project_state", {"status": "conflict"}),
    ("project_state", {"status": "active", "conflict": {}}),
    ("project_state", {"status": "asleep"}),
    ("run_operations", {"type": "filter"}),
    ("run_operations", {"status": "cancelled"}),
    ("run_operations", {"run_id": "nobody"}),
    ("run_outputs", {"state": "written"}),
)


@pytest.mark.parametrize(("table", "change"), REFUSED)
def test_a_row_that_means_nothing_is_refused_by_the_database(store: Store, table: str, change: dict[str, Any]) -> None:
    store.create_run(RUN)
    good = ROWS[table]
    with pytest.raises(StoreError) as refused:
        store.database.write(lambda c: c.execute(insert(tables.METADATA.tables[table]).values(**good | change)))
    assert refused.value.code == "W1602"
    store.database.write(lambda c: c.execute(insert(tables.METADATA.tables[table]).values(**good)))


@pytest.mark.parametrize(
    "change",
    [
        {"status": "asleep"},
        {"status": "failed"},
        {"status": "completed"},
        {"trigger": "chance"},
        {"attempt": 0},
    ],
)
def test_a_run_in_a_state_that_cannot_be_is_refused(store: Store, change: dict[str, Any]) -> None:
    store.create_run(RUN)
    runs = tables.RUNS
    with pytest.raises(StoreError) as refused:
        store.database.write(lambda c: c.execute(runs.update().values(**change)))
    assert refused.value.code == "W1602"


def test_every_kind_of_value_reads_back(store: Store) -> None:
    body = {
        "name": "größe",
        "empty": "",
        "none": None,
        "nested": {"$filter": [1, True, "\u0000"]},
        "n": 10**30,
    }
    row = ROWS["datasets"] | {"body": body}
    store.database.write(lambda c: c.execute(insert(tables.DATASETS).values(**row)))
    (found,) = store.database.read(lambda c: c.execute(select(tables.DATASETS)).all())
    assert (found.body, found.published_at) == (body, NOW)


@given(st.datetimes(min_value=dt.datetime(1, 1, 3), max_value=dt.datetime(9999, 12, 29)))  # noqa: DTZ001
def test_the_text_of_a_time_reads_back_and_has_one_width(naive: dt.datetime) -> None:
    for zone in (dt.UTC, dt.timezone(dt.timedelta(hours=-7, minutes=-30))):
        moment = naive.replace(tzinfo=zone)
        text = moment_text(moment)
        assert dt.datetime.fromisoformat(text) == moment
        assert len(text) == 27


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ArgumentError):
        utc(dt.datetime(2026, 1, 1))  # noqa: DTZ001


def test_one_value_has_one_text() -> None:
    assert json_text({"b": [1], "a": {"d": 1, "c": 2}}) == '{"a":{"c":2,"d":1},"b":[1]}'


@pytest.mark.parametrize("value", [float("nan"), {1.5, 2}, b"x", {("a",): 1}, NOW])
def test_a_value_that_json_has_not_is_refused(value: object) -> None:
    with pytest.raises(ArgumentError):
        json_text({"v": value} if not isinstance(value, dict) else value)
