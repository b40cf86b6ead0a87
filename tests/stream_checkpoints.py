"""A small stream join and its checkpoint, for tests of files on disk."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.io.stores.store_path import Place
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import StatementPlan
from weft.streams.sql.lower import read_spec
from weft.testing.stream_engine import StreamResult, run_statement

START = dt.datetime(2026, 1, 15, 10, tzinfo=dt.UTC)
SQL = """
CREATE STREAM orders (id STRING, total INT, t TIMESTAMP)
  WITH ('connector' = 'memory', 'event.time.field' = 't', 'watermark.max_out_of_orderness' = '5s');
CREATE STREAM shipments (id STRING, t TIMESTAMP)
  WITH ('connector' = 'memory', 'event.time.field' = 't', 'watermark.max_out_of_orderness' = '5s');
CREATE STREAM status WITH ('connector' = 'files', 'path' = 'out', 'format' = 'json')
  AS SELECT o.id, o.total, s.t AS shipped FROM orders o LEFT JOIN shipments s
     ON o.id = s.id AND s.t BETWEEN o.t AND o.t + INTERVAL '10' SECOND
"""
Batch = Mapping[str, Sequence[Any]]


def at(second: int) -> dt.datetime:
    """Return a moment of the test."""
    return START + dt.timedelta(seconds=second)


def order(name: str, second: int | None, total: int = 1) -> dict[str, Any]:
    """Return a row of orders."""
    return {"id": name, "total": total, "t": None if second is None else at(second)}


def shipment(name: str, second: int) -> dict[str, Any]:
    """Return a row of shipments."""
    return {"id": name, "t": at(second)}


BATCHES: tuple[Batch, ...] = (
    {"orders": [order("a", 0), order("b", 1), order("none", None)], "shipments": [shipment("a", 2)]},
    {"orders": [order("c", 20)], "shipments": [shipment("b", 11), shipment("c", 30)]},
    {"orders": [order("late", 3), "not a row", order("d", 40)], "shipments": [shipment("d", 41)]},
    {"orders": [order("e", 60), order("f", 62)], "shipments": [shipment("e", 61), shipment("x", 63)]},
)
"""Every batch gives a row, the flush too; one row is late, one has no time, one cannot be read."""


def small_plan() -> StatementPlan:
    """Return the plan of the join."""
    return plan_job(read_spec(SQL, file="small.sql"), Path("/nowhere")).statements[0]


def run(root: Path, batches: Sequence[Batch] = BATCHES, *, final: bool = True) -> StreamResult:
    """Run the join without a JVM."""
    return run_statement(small_plan(), batches, root=root, groups=2, final=final)


def as_set(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> list[tuple[Any, ...]]:
    """Return output rows without the batch that gave them, in a fixed order."""
    return sorted(((r["id"], r["total"], r["shipped"]) for _, r in rows), key=str)


def on_disk(place: Place) -> Path:
    """Return a file or folder of a checkpoint on a disk."""
    assert isinstance(place, Path)
    return place
