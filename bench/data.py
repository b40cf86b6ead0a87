"""Tables for the temporal benchmark: seeded, written once as Parquet, the same for every engine.

A side is a folder of files of 2.5M rows.  Folders are named after what they hold, so workloads that
differ in the join alone share them.  ``WEFT_BENCH_DATA`` says where; ``bench/.data`` otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from workloads import SECOND, Workload

FILE_ROWS = 2_500_000
SEED = 1337
DAY = 86_400 * SECOND
EPOCH = 1_609_459_200 * SECOND
"""2021-01-01, where all times begin."""
Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Side:
    """What a generator is asked for: one side of a workload."""

    is_left: bool
    rows: int
    options: dict[str, Any]
    rng: np.random.Generator

    def parts(self) -> Iterator[tuple[int, int]]:
        """Yield the first row and the number of rows of each file."""
        for start in range(0, self.rows, FILE_ROWS):
            yield start, min(FILE_ROWS, self.rows - start)


def folder() -> Path:
    """Return where generated tables are kept."""
    return Path(os.environ.get("WEFT_BENCH_DATA") or Path(__file__).parent / ".data")


def tables(work: Workload) -> tuple[Path, Path]:
    """Return the folders of both sides, writing those that are not there yet."""
    return _written(work, work.left_rows, is_left=True), _written(work, work.right_rows, is_left=False)


def _written(work: Workload, rows: int, *, is_left: bool) -> Path:
    given = json.dumps([work.data, rows, work.options, is_left, SEED], sort_keys=True)
    name = f"{work.data}-{'left' if is_left else 'right'}-{rows}-{hashlib.sha256(given.encode()).hexdigest()[:8]}"
    target = folder() / name
    if target.exists():
        return target
    print(f"  writing {target}", file=sys.stderr)
    draft = target.with_name(f"{name}.{os.getpid()}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    rng = np.random.default_rng([SEED, int(is_left), int(hashlib.sha256(given.encode()).hexdigest()[:8], 16)])
    for number, table in enumerate(GENERATORS[work.data](Side(is_left, rows, work.options, rng))):
        pq.write_table(table, draft / f"part-{number:04}.parquet")
    draft.rename(target)
    return target


def _times(micros: Longs) -> pa.Array:
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", tz="UTC"))


def _table(side: Side, first: int, key: pa.Array | None, micros: Longs, **more: Any) -> pa.Table:
    """Put a side's columns together: an id and a quantity on the left, a price and a size on the right."""
    n = len(micros)
    columns: dict[str, Any] = {}
    if side.is_left:
        columns["id"] = np.arange(first, first + n)
    if key is not None:
        columns["key"] = key
    columns["t" if side.is_left else "rt"] = _times(micros)
    if side.is_left:
        columns["quantity"] = side.rng.integers(1, 1000, n, dtype=np.int32)
    else:
        columns["price"] = side.rng.random(n) * 100
        columns["size"] = side.rng.integers(1, 1000, n, dtype=np.int32)
    return pa.table(columns | more)


def _codes(side: Side, rows: int, keys: int) -> Longs:
    """Return key numbers: uniform, by Zipf's law over the ranks, or with one key that has most rows."""
    if "zipf" in side.options:
        weights = 1.0 / np.arange(1, keys + 1) ** side.options["zipf"]
        return side.rng.choice(keys, rows, p=weights / weights.sum())
    codes = side.rng.integers(0, keys, rows)
    if "heavy" in side.options:
        codes[side.rng.random(rows) < side.options["heavy"]] = 0
    return codes


def ticks(side: Side) -> Iterator[pa.Table]:
    """Trades and quotes at random microseconds of one day, in random order."""
    keys = side.options.get("keys", 1000)
    names = pa.array([f"SYM{i:05}" for i in range(keys)])
    for first, n in side.parts():
        micros = side.rng.integers(0, DAY, n)
        if side.options.get("never_halfway"):
            # Right times are multiples of four and left times odd: no left row is equally near to two.
            micros = micros // 2 * 2 + 1 if side.is_left else micros // 4 * 4
        key = names.take(pa.array(_codes(side, n, keys))) if keys else None
        more = {}
        if width := side.options.get("payload", 0 if side.is_left else side.options.get("remark", 0)):
            letters = side.rng.integers(97, 123, n * width, dtype=np.uint8)
            texts = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), n, [None, pa.py_buffer(letters)])
            more["note" if side.is_left else "remark"] = texts.cast(pa.binary()).cast(pa.string())
        yield _table(side, first, key, EPOCH + micros, **more)


def dense(side: Side) -> Iterator[pa.Table]:
    """W1: every minute for each of 50 keys; the left side asks half a minute earlier, for every second key."""
    for first, n in side.parts():
        row = np.arange(first, first + n)
        micros = EPOCH + row // 50 * 60 * SECOND
        key = row % 50
        if side.is_left:
            key, micros = key * 2, micros - 30 * SECOND
        yield _table(side, first, pa.array(key), micros)


def sparse(side: Side) -> Iterator[pa.Table]:
    """W2: keys with one left row and ten right rows each, at random seconds of a year."""
    keys = side.rows if side.is_left else max(side.rows // 10, 1)
    for first, n in side.parts():
        micros = EPOCH + side.rng.integers(0, 365 * 86_400, n) * SECOND
        yield _table(side, first, pa.array(np.arange(first, first + n) % keys), micros)


def plans(side: Side) -> Iterator[pa.Table]:
    """W4: random seconds of a year, no key."""
    for first, n in side.parts():
        yield _table(side, first, None, EPOCH + side.rng.integers(0, 365 * 86_400, n) * SECOND)


def _ids(side: Side, each: int) -> Longs:
    """Return the ids of a side in random order: one row each on the left, about `each` on the right."""
    if side.is_left:
        return side.rng.permutation(side.rows)
    ids = max(side.rows // each, 1)
    counts = np.clip(side.rng.normal(each, each / 10, ids).round(), 1, None).astype(np.int64)
    return side.rng.permutation(np.repeat(np.arange(ids), counts))


def features(side: Side) -> Iterator[pa.Table]:
    """W5: a feature store: ids with one left row and N(20, 2) right rows over 360 days."""
    ids = _ids(side, 20)
    for first in range(0, len(ids), FILE_ROWS):
        part = ids[first : first + FILE_ROWS]
        yield _table(side, first, pa.array(part), EPOCH + side.rng.integers(0, 360 * DAY, len(part)))


def versions(side: Side) -> Iterator[pa.Table]:
    """W13: as W5, known after a log-normal lag; 2% are corrected days later, 0.5% are deletes."""
    ids = _ids(side, 20)
    for first in range(0, len(ids), FILE_ROWS):
        part = ids[first : first + FILE_ROWS]
        event = EPOCH + side.rng.integers(0, 360 * DAY, len(part))
        if side.is_left:
            asked = event + (side.rng.random(len(part)) * 30 * DAY).astype(np.int64)
            yield _table(side, first, pa.array(part), event, asked=_times(asked))
            continue
        known = event + (side.rng.lognormal(8, 1.5, len(part)) * SECOND).astype(np.int64)
        again = np.flatnonzero(side.rng.random(len(part)) < 0.02)
        later = known[again] + (side.rng.random(len(again)) * 10 * DAY).astype(np.int64) + 1
        event, known = np.concatenate([event, event[again]]), np.concatenate([known, later])
        deleted = side.rng.random(len(event)) < 0.005
        key = np.concatenate([part, part[again]])
        yield _table(side, first, pa.array(key), event, known=_times(known), deleted=pa.array(deleted))


def loans(side: Side) -> Iterator[pa.Table]:
    """W12, point in period: the days of 2021 and loans of about three weeks from 2019 to 2023."""
    for first, n in side.parts():
        if side.is_left:
            yield pa.table({"id": np.arange(first, first + n), "t": _times(EPOCH + np.arange(n) * DAY)})
            continue
        start = EPOCH - 730 * DAY + side.rng.integers(0, 5 * 365 * DAY, n)
        length = (side.rng.exponential(21 * DAY, n)).astype(np.int64) + SECOND
        yield pa.table({"rid": np.arange(first, first + n), "rt": _times(start), "rt_end": _times(start + length)})


def ranges(side: Side) -> Iterator[pa.Table]:
    """W12, overlap: ranges of an hour on the left and of two days on the right, 24 keys, one year."""
    number, start_name = ("id", "t") if side.is_left else ("rid", "rt")
    mean = DAY // 24 if side.is_left else 2 * DAY
    for first, n in side.parts():
        start = EPOCH + side.rng.integers(0, 365 * DAY, n)
        length = side.rng.exponential(mean, n).astype(np.int64) + SECOND
        yield pa.table(
            {
                number: np.arange(first, first + n),
                "key": side.rng.integers(0, 24, n),
                start_name: _times(start),
                f"{start_name}_end": _times(start + length),
            }
        )


GENERATORS: dict[str, Callable[[Side], Iterator[pa.Table]]] = {
    f.__name__: f for f in (ticks, dense, sparse, plans, features, versions, loans, ranges)
}
