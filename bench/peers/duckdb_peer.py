"""DuckDB: ASOF LEFT JOIN, a range join for intervals, `arg_max` for two time axes.

A timed run is ``EXPLAIN ANALYZE``: the query runs to its end, makes every column of every row, and drops them, which
is what Spark's `noop` sink does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import duckdb
import pyarrow.parquet as pq
from peers.protocol import PRIME, WEIGHTS, Engine, serve


def _asof(source: str, match: str, job: dict[str, Any], columns: list[str], name: str) -> str:
    """Return one as-of join as a query; right columns get `name` before theirs."""
    on = " AND ".join([*(f"l.{k} = r.{k}" for k in job["keys"]), f"l.t {match} r.rt"])
    fields = ", ".join(f"r.{c} AS {name}_{c}" for c in columns)
    return f"SELECT l.*, {fields} FROM {source} l ASOF LEFT JOIN r ON {on}"  # noqa: S608


def query(job: dict[str, Any], columns: list[str]) -> str:
    """Return the join over the views ``l`` and ``r``."""
    taken = ", ".join(f"r.{c}" for c in columns)
    same = [f"l.{k} = r.{k}" for k in job["keys"]]
    if job["kind"] == "interval":
        left_end, right_end = job["ends"]
        starts = f"r.rt < l.{left_end}" if left_end else "r.rt <= l.t"
        return f"SELECT l.*, {taken} FROM l JOIN r ON {' AND '.join([*same, starts, f'l.t < r.{right_end}'])}"  # noqa: S608
    if job["kind"] == "bitemporal":
        seen = [*same, "r.rt <= l.t", f"r.known <= l.{job['known']}"]
        packed = ", ".join(f"{c} := r.{c}" for c in columns)
        return (
            f"WITH best AS (SELECT l.id, arg_max(struct_pack({packed}), (r.rt, r.known)) AS r "  # noqa: S608
            f"FROM l JOIN r ON {' AND '.join(seen)} GROUP BY l.id), kept AS (SELECT * FROM best WHERE NOT r.deleted) "
            f"SELECT l.*, {', '.join(f'k.r.{c} AS {c}' for c in columns)} FROM l LEFT JOIN kept k USING (id)"
        )
    found = "SELECT * EXCLUDE ({out}), {right} FROM ({query})"
    tolerance = job["tolerance_us"]
    if job["direction"] != "nearest":
        one = _asof("l", ">=" if job["direction"] == "backward" else "<=", job, columns, "b")
        right = ", ".join(f"{_if_near(f'b_{c}', 'b', tolerance)} AS {c}" for c in columns)
        return found.format(out=", ".join(f"b_{c}" for c in columns), right=right, query=one)
    two = _asof(f"({_asof('l', '>=', job, columns, 'b')})", "<=", job, columns, "f")
    first = "f_rt IS NULL OR epoch_us(t) - epoch_us(b_rt) <= epoch_us(f_rt) - epoch_us(t)"
    right = ", ".join(
        f"CASE WHEN {first} THEN {_if_near(f'b_{c}', 'b', tolerance)} ELSE {_if_near(f'f_{c}', 'f', tolerance)} END AS {c}"
        for c in columns
    )
    return found.format(out=", ".join(f"{side}_{c}" for side in "bf" for c in columns), right=right, query=two)


def _if_near(column: str, side: str, tolerance: int | None) -> str:
    if tolerance is None:
        return column
    return f"CASE WHEN abs(epoch_us(t) - epoch_us({side}_rt)) <= {tolerance} THEN {column} END"


class DuckEngine:
    """The join in DuckDB, in memory, with the job's number of threads."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.about = {"duckdb": duckdb.__version__, "out": "EXPLAIN ANALYZE"}
        self.db = duckdb.connect()
        self.db.execute(f"SET threads = {job['cores']}; SET temp_directory = '{job['scratch']}'; SET TimeZone = 'UTC'")
        self.db.execute("SET preserve_insertion_order = false")
        for view, side in (("l", "left"), ("r", "right")):
            self.db.execute(f"CREATE VIEW {view} AS FROM read_parquet('{job[side]}/*.parquet')")
        right = next(iter(sorted(Path(job["right"]).iterdir())))
        columns = [c for c in pq.read_schema(right).names if c not in job["keys"]]
        self.query = query(job, columns)

    def checksum(self) -> dict[str, int]:
        """Run the join and add up what was matched."""
        if self.job["kind"] == "interval":
            matched, reported = "count(rid)", f"(id * 31 + rid) % {PRIME}"
        else:
            times = " + ".join(f"epoch_us({c})" for c in self.job["checked"])
            matched, reported = "count(rt)", f"({times}) % {PRIME} * (id % {WEIGHTS} + 1)"
        row = self.db.execute(
            f"SELECT count(*), {matched}, coalesce(sum({reported}), 0)::BIGINT FROM ({self.query})"  # noqa: S608
        ).fetchone()
        assert row is not None  # noqa: S101  # an aggregate has a row
        return {"rows": row[0], "matched": row[1], "sum": row[2]}

    def run(self, name: str) -> None:  # noqa: ARG002  # runs have names for the engines that log them
        """Run the join to its end and drop its rows."""
        self.db.execute(f"EXPLAIN ANALYZE {self.query}").fetchall()

    def close(self) -> None:
        """Close the database."""
        self.db.close()


def make(job: dict[str, Any]) -> Engine:
    """Return the engine."""
    return DuckEngine(job)


if __name__ == "__main__":
    serve(make)
