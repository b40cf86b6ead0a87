"""Chains of joins: sealed, they give what the batch joins give one after the other.

Clocks that run ahead lose rows here: rows come one by one, roughly in order, and nothing is late.
"""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest

from stream_jobs import planned
from weft.streams.plan.resolved import KernelStep, StatementPlan, TableStep
from weft.testing import assert_rows_equal, reference_join
from weft.testing.stream_reference import run_reference

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DISORDER = 15
HOWS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
Rows = dict[str, list[dict[str, Any]]]


def chain(rng: random.Random) -> str:
    """Return a statement that joins three or four streams, each to the time of an earlier one."""
    names = "abcd"[: rng.choice((3, 3, 4))]
    lines = ["SELECT " + ", ".join(f"{n}.id AS {n}_id" for n in names), "FROM a"]
    for i, name in enumerate(names[1:], start=1):
        axis, key = rng.choice(names[:i]), rng.choice(names[:i])
        lower = rng.randrange(-30, 30, 5)
        upper = lower + rng.randrange(0, 40, 5)
        low, high = (f"{axis}.t + INTERVAL '{end}' SECOND" for end in (lower, upper))
        residual = rng.choice(("", "", f" AND {name}.n <= {axis}.n"))
        if rng.random() < 0.2:
            lines.append(f"{rng.choice(HOWS)} {name} ON {name}.k = {key}.k WINDOW TUMBLING('20s')")
        else:
            lines.append(
                f"{rng.choice(HOWS)} {name} ON {name}.k = {key}.k AND {name}.t BETWEEN {low} AND {high}{residual}"
            )
    if rng.random() < 0.3:
        lines.insert(rng.randrange(3, len(lines) + 1), "LEFT JOIN tab ON tab.k = a.k")
    return "\n".join((*lines, rng.choice(("", "EMIT FINAL", "EMIT CHANGES"))))


def arriving(rng: random.Random, names: list[str]) -> tuple[Rows, list[dict[str, list[dict[str, Any]]]]]:
    """Return rows of each stream, and the batches in which they come: none is late at the delay."""
    rows: Rows = {name: [] for name in names}
    coming = []
    for name in names:
        for i in range(rng.randrange(6, 14)):
            second = rng.randrange(0, 200, 5)
            row = {
                "id": f"{name}{i}",
                "k": rng.choice((1, 1, 2, None)),
                "n": rng.choice((1, 2, None)),
                "t": START + dt.timedelta(seconds=second),
            }
            rows[name].append(row)
            coming.append((second + rng.randrange(DISORDER), name, row))
    coming.sort(key=lambda c: c[:2])
    batches: list[dict[str, list[dict[str, Any]]]] = []
    while coming:
        count = rng.randrange(1, 5)
        batch: dict[str, list[dict[str, Any]]] = {}
        for _, name, row in coming[:count]:
            batch.setdefault(name, []).append(row)
        batches.append(batch)
        coming = coming[count:]
    return rows, batches


def by_batch(plan: StatementPlan, rows: Rows, table: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what the batch joins of the same steps give, one after the other."""

    def as_side(name: str) -> list[tuple[Any, ...]]:
        return [(r["id"], r["k"], r["n"], None, None, None, r["t"], r["t"]) for r in rows[name]]

    streams = {i.number: as_side(i.stream.name) for i in plan.inputs}
    looked = [(r["k"], r["name"], None) for r in table]
    joined = streams[0]
    for step in plan.steps:
        right = looked if isinstance(step, TableStep) else streams[step.right]
        joined = reference_join(step.resolved, joined, right)
    last = plan.steps[-1].resolved
    names = [c.name for c in last.output]
    places = [names.index(f"{i.alias}__id") for i in plan.inputs]
    return [tuple(row[p] for p in places) for row in joined]


@pytest.mark.parametrize("seed", range(120))
def test_a_sealed_chain_gives_the_rows_of_the_batch_joins(seed: int) -> None:
    rng = random.Random(seed)
    select = chain(rng)
    delays = dict.fromkeys("abcd", f"{DISORDER}s")
    plan = planned(select, delays=delays)
    names = [i.stream.name for i in plan.inputs]
    rows, batches = arriving(rng, names)
    table = [{"k": 1, "name": "one"}, {"k": 1, "name": "uno"}]
    result = run_reference(plan, batches, tables={"tab": table})
    assert all(counts["late"] == 0 for counts in result.ledger.values())
    assert_rows_equal([tuple(row.values()) for _, row in result.rows], by_batch(plan, rows, table), tuple(names))
    for side, reported in result.ledger.items():
        counts = dict(reported)
        assert counts.pop("in") == sum(counts.values()), side
        assert counts["waiting"] == 0
    assert any(isinstance(s, KernelStep) for s in plan.steps)


def test_a_row_held_back_twice_still_meets_the_stream_that_is_bound_to_its_first_time() -> None:
    """(a, b) waits for c until 30 s after a; d, one second after a, must wait as long."""
    select = (
        "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, d.id AS d_id FROM a"
        " JOIN b ON b.k = a.k AND b.t BETWEEN a.t AND a.t + INTERVAL '10' SECOND"
        " LEFT JOIN c ON c.k = a.k AND c.t BETWEEN b.t AND b.t + INTERVAL '20' SECOND"
        " FULL JOIN d ON d.k = a.k AND d.t BETWEEN a.t AND a.t + INTERVAL '1' SECOND"
    )
    plan = planned(select)

    def row(name: str, key: int, second: int) -> dict[str, list[dict[str, Any]]]:
        at = START + dt.timedelta(seconds=second)
        return {name: [{"id": f"{name}{second}", "k": key, "n": 1, "t": at}]}

    first = {**row("a", 1, 0), **row("b", 1, 10), **row("d", 1, 1), **row("c", 9, 0)}
    ticks = [{**row("a", 11, s), **row("b", 12, s), **row("c", 13, s), **row("d", 14, s)} for s in range(2, 80)]
    result = run_reference(plan, [first, *ticks])
    found = [(b, *r.values()) for b, r in result.rows if r["a_id"] == "a0" or r["d_id"] == "d1"]
    assert [f[1:] for f in found] == [("a0", "b10", None, "d1")]
    assert found[0][0] < len(ticks)


def test_rows_of_a_chain_come_out_before_the_end() -> None:
    """The clocks move: most rows of a long run do not wait for the flush."""
    rng = random.Random(1)
    select = (
        "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a"
        " LEFT JOIN b ON b.k = a.k AND b.t BETWEEN a.t AND a.t + INTERVAL '10' SECOND"
        " FULL JOIN c ON c.k = a.k AND c.t BETWEEN b.t AND b.t + INTERVAL '10' SECOND"
    )
    plan = planned(select, delays=dict.fromkeys("abc", f"{DISORDER}s"))
    _, batches = arriving(rng, ["a", "b", "c"])
    result = run_reference(plan, batches)
    early = [batch for batch, _ in result.rows if batch < len(batches)]
    assert len(early) > len(result.rows) / 2
