from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from weft.pipelines.store.records import run_id, short_id

MILLIS = st.integers(0, 2**48 - 1)
CHANCE = st.binary(min_size=10, max_size=10)


@given(MILLIS, CHANCE)
def test_a_run_id_is_a_uuid_of_version_7_that_holds_its_time(now: int, random: bytes) -> None:
    made = uuid.UUID(run_id(now, random))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == now


@given(MILLIS, MILLIS, CHANCE, CHANCE)
def test_run_ids_sort_by_time(first: int, second: int, a: bytes, b: bytes) -> None:
    if first < second:
        assert run_id(first, a) < run_id(second, b)


@given(MILLIS, CHANCE, CHANCE)
def test_chance_tells_runs_of_one_millisecond_apart(now: int, a: bytes, b: bytes) -> None:
    mask = (1 << 80) - 1 & ~(0xF << 76) & ~(0x3 << 62)  # the version and the variant are not chance
    differ = int.from_bytes(a, "big") & mask != int.from_bytes(b, "big") & mask
    assert (run_id(now, a) != run_id(now, b)) == differ


def test_a_short_id_holds_the_whole_time() -> None:
    made = run_id(1_763_200_000_123, bytes(10))
    assert int(short_id(made).replace("-", ""), 16) == 1_763_200_000_123
