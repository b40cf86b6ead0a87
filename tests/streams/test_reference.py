"""The reference engine against the batch reference: sealed, a stream gives what the batch join gives."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from stream_jobs import planned
from weft.testing import assert_rows_equal, reference_join
from weft.testing.stream_reference import run_reference
from weft.testing.values import EPOCH

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
FORMS = {
    "interval": "WITHIN ('20s', '40s')",
    "tumbling": "WINDOW TUMBLING('1m') EMIT CHANGES",
    "sliding": "WINDOW SLIDING('1m', '20s') EMIT FINAL",
    "windows": "WINDOW SLIDING('1m', '20s') EMIT FINAL WITH ('join.rows'='window')",
    "session": "WINDOW SESSION('15s') EMIT CHANGES",
    "session final": "WINDOW SESSION('15s') EMIT FINAL",
    "interval final": "WITHIN ('20s', '40s') EMIT FINAL",
}
JOINED = "SELECT a.id, b.id AS other FROM a JOIN b ON a.k = b.k AND a.n <= b.n"
HOWS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


def rows_of(rng: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{i}",
            "k": rng.choice((1, 1, 1, 2, 3, None)),
            "n": rng.choice((1, 2, None)),
            "f": None,
            "s": "x",
            "v": None,
            "t": START + dt.timedelta(seconds=rng.randrange(0, 300, 5)),
        }
        for i in range(count)
    ]


def batch_row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a row as the resolved join has it: its columns and its event time."""
    return (*row.values(), row["t"])


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_sealed_it_gives_the_rows_of_the_batch_join(how: str, form: str, seed: int) -> None:
    rng = random.Random(f"{how} {form} {seed}")
    select = JOINED.replace("JOIN", how)
    plan = planned(f"{select} {FORMS[form]}", delays={"a": "10m", "b": "10m"})
    left, right = rows_of(rng, 14), rows_of(rng, 14)
    batches = [{"a": left[i : i + 5], "b": right[i : i + 5]} for i in range(0, 15, 5)]
    streamed = run_reference(plan, batches)
    resolved = plan.kernel_steps[0].resolved
    joined = reference_join(resolved, [batch_row(r) for r in left], [batch_row(r) for r in right])
    names = [c.name for c in resolved.output]
    wanted = [(row[names.index("a__id")], row[names.index("b__id")]) for row in joined]
    assert_rows_equal([tuple(row.values()) for _, row in streamed.rows], wanted, ("id", "other"))
    for side in ("left", "right"):
        counts = dict(streamed.ledger[side])
        assert counts.pop("in") == sum(counts.values())
        assert counts["waiting"] == 0


def test_how_rows_fall_into_batches_decides_nothing_when_none_is_late() -> None:
    rng = random.Random(7)
    plan = planned("SELECT a.id, b.id AS other FROM a FULL JOIN b ON a.k = b.k WITHIN '30s'", delays={"a": "10m"})
    left, right = rows_of(rng, 12), rows_of(rng, 12)
    whole = run_reference(plan, [{"a": left, "b": right}])
    for _ in range(5):
        coming = [("a", r) for r in left] + [("b", r) for r in right]
        rng.shuffle(coming)
        single = run_reference(plan, [{name: [row]} for name, row in coming])
        late = single.ledger["right"]["late"]
        if not late:
            assert_rows_equal([r for _, r in single.rows], [r for _, r in whole.rows])


def test_a_longer_delay_never_loses_a_pair() -> None:
    rng = random.Random(3)
    left, right = rows_of(rng, 30), rows_of(rng, 30)
    batches = [{"a": left[i : i + 3], "b": right[i : i + 3]} for i in range(0, 30, 3)]
    found: list[set[tuple[Any, ...]]] = []
    for delay in ("0s", "30s", "2m", "10m"):
        plan = planned(
            "SELECT a.id, b.id AS other FROM a JOIN b ON a.k = b.k WITHIN '30s'",
            delays={"a": delay, "b": delay},
        )
        found.append({tuple(r.values()) for _, r in run_reference(plan, batches).rows})
    assert found[0] < found[-1]
    assert all(one <= other for one, other in pairwise(found))


def test_left_of_two_sides_is_right_of_them_exchanged() -> None:
    rng = random.Random(5)
    left, right = rows_of(rng, 20), rows_of(rng, 20)
    batches = [{"a": left[i : i + 4], "b": right[i : i + 4]} for i in range(0, 20, 4)]
    one = planned("SELECT a.id, b.id AS other FROM a LEFT JOIN b ON a.k = b.k WITHIN ('10s', '30s')")
    other = planned("SELECT a.id, b.id AS other FROM b RIGHT JOIN a ON a.k = b.k WITHIN ('30s', '10s')")
    first, second = run_reference(one, batches), run_reference(other, batches)
    assert_rows_equal([(b, *r.values()) for b, r in first.rows], [(b, *r.values()) for b, r in second.rows])
    assert first.ledger["left"] == second.ledger["right"]


def test_watermarks_and_clocks_of_every_batch_are_reported() -> None:
    plan = planned("SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN '30s'", delays={"a": "10s"})
    row = {"id": "1", "k": 1, "t": START}
    result = run_reference(plan, [{"a": [row]}, {"b": [row]}, {}])
    start = (START - EPOCH) // dt.timedelta(microseconds=1)
    assert result.marks[:3] == (None, None, start - 10_000_000)
    assert len(result.clocks) == 4


def at(second: int) -> dt.datetime:
    return START + dt.timedelta(seconds=second)


def times(select: str, left: dt.datetime, right: dt.datetime) -> list[dt.timedelta | None]:
    """Return the event times of the result of two rows, as distances from the epoch."""
    batch = {"a": [{"id": "l", "k": 1, "n": 5, "t": left}], "b": [{"id": "r", "k": 1, "t": right}]}
    reported = run_reference(planned(select), [batch]).times
    return [None if t is None else dt.timedelta(microseconds=t) for t in reported]


def test_a_row_has_the_greatest_time_of_its_sources_and_a_padded_one_its_own() -> None:
    far, old = dt.datetime(2999, 1, 1, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC)
    full = "SELECT a.id, b.id AS other FROM a FULL JOIN b ON a.k = b.k WITHIN '10s'"
    assert times(full, at(0), at(7)) == [at(7) - EPOCH]
    assert times(full, at(7), at(0)) == [at(7) - EPOCH]
    assert times(full, EPOCH, EPOCH) == [EPOCH - EPOCH]
    assert sorted(t for t in times(full, far, old) if t is not None) == [old - EPOCH, far - EPOCH]


def test_event_time_of_the_result_is_what_the_statement_says_in_any_case_of_its_name() -> None:
    given = "SELECT a.id, a.t AS _EVENT_TIME FROM a JOIN b ON a.k = b.k WITHIN '10s'"
    for name in ("_EVENT_TIME", "_event_time", "_Event_Time"):
        assert times(given.replace("_EVENT_TIME", name), at(0), at(7)) == [at(0) - EPOCH]
    assert times(given.replace("a.t AS", "a.n AS"), at(0), at(7)) == [dt.timedelta(milliseconds=5)]
