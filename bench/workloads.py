"""The workloads of the temporal benchmark: which tables, which join, which candidates.

Names as in the literature where there is one: W1, W2 and W4 are those of DuckDB's articles on as-of joins,
W5 is the point-in-time suite of KTH, W8 follows DataFusion's as-of suite, W12 are intervals and W13 is
our own bitemporal one.  The result of ``fan-in`` is forty times as large as both its sides together.  Sides are ``left(id, key, t, ...)`` and ``right(key, rt, ...)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

Kind = Literal["asof", "bitemporal", "interval"]
Million = 1_000_000
SECOND = 1_000_000
"""Microseconds in a second."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One join over two generated tables, and how it is measured."""

    name: str
    title: str
    data: str
    """Which generator of `data` makes both sides."""
    left_rows: int
    right_rows: int
    kind: Kind = "asof"
    keys: tuple[str, ...] = ("key",)
    direction: Literal["backward", "forward", "nearest"] = "backward"
    tolerance_us: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """The options of the generator besides the numbers of rows."""
    ends: tuple[str | None, str | None] = (None, None)
    """End columns of ranges, left and right, of an interval join."""
    known: str | None = None
    """The left column that says as of when things were known; the right one is ``known``."""
    cores: int = 2
    rounds: int = 2
    native_limit: float = 20
    """After how many times Weft's time Spark's own as-of join is stopped."""
    pairs: float = 0.0
    """How many pairs a plan makes that joins every candidate; 0 where that is few."""

    def scaled(self, scale: float) -> Workload:
        """Return the same workload with fewer rows; a side of a few thousand rows stays as it is."""
        if scale == 1:
            return self
        left, right = (
            rows if rows <= 5000 else max(1000, int(rows * scale)) for rows in (self.left_rows, self.right_rows)
        )
        return replace(self, left_rows=left, right_rows=right, pairs=self.pairs * scale * scale)


def _ticks(name: str, title: str, left: int, right: int, **more: Any) -> Workload:
    """Trades and quotes: random microseconds of one day, 1,000 text keys by default."""
    options = more.get("options", {})
    keys = options.get("keys", 1000)
    shared = options["heavy"] ** 2 if "heavy" in options else 0.1 if "zipf" in options else 1 / max(keys, 1)
    pairs = float(left) * right * shared / 2
    if keys == 0:
        more["keys"] = ()
    return Workload(name, title, "ticks", left, right, **{"pairs": pairs, **more})


# One turn, and no long wait for an engine that takes quadratic time.
_LARGE: dict[str, Any] = {"rounds": 1, "native_limit": 5}
_UNIFORM = (
    _ticks("uniform-1M", "1M x 1M, 1,000 keys, backward", Million, Million),
    _ticks("uniform-10M", "10M x 10M, 1,000 keys, backward", 10 * Million, 10 * Million),
    _ticks("uniform-50M", "50M x 50M, 1,000 keys, backward", 50 * Million, 50 * Million, **_LARGE),
    _ticks(
        "nearest-10M",
        "10M x 10M, 1,000 keys, nearest within 5 seconds",
        10 * Million,
        10 * Million,
        direction="nearest",
        tolerance_us=5 * SECOND,
        options={"never_halfway": True},
    ),
    _ticks("right-1M", "50M left rows, 1M right rows, 1,000 keys", 50 * Million, Million, **_LARGE),
)
_SKEWED = (
    _ticks("zipf-10M", "10M x 10M, zipf 1.3 keys", 10 * Million, 10 * Million, options={"zipf": 1.3}),
    _ticks("heavy-1M", "1M x 1M, one key has 95%", Million, Million, options={"heavy": 0.95}),
    _ticks("heavy-10M", "10M x 10M, one key has 95%", 10 * Million, 10 * Million, options={"heavy": 0.95}),
)
_NO_KEY = (
    _ticks("nokey-5M", "5M x 5M, no key", 5 * Million, 5 * Million, options={"keys": 0}),
    _ticks("nokey-5M-1core", "5M x 5M, no key, one core", 5 * Million, 5 * Million, options={"keys": 0}, cores=1),
    *(
        Workload(
            f"W4-{left}",
            f"W4: {left} times, 10M prices, no key",
            "plans",
            left,
            10 * Million,
            keys=(),
            pairs=left * 5.0 * Million,
        )
        for left in (1, 64, 2048)
    ),
)
_PUBLIC = (
    Workload(
        "W1",
        "W1: 5M x 5M, 50 dense keys",
        "dense",
        5 * Million,
        5 * Million,
        native_limit=50,
        pairs=1.25e11,
    ),
    Workload("W2", "W2: 100k left rows with a key each, 1M right rows", "sparse", 100_000, Million),
    Workload("W5", "W5: 1M ids, one left row and 20 right rows each", "features", Million, 20 * Million),
    _ticks(
        "W8-wide",
        "W8: 1M x 1M, 10k keys, 256-byte payload on both sides",
        Million,
        Million,
        options={"keys": 10_000, "payload": 256},
    ),
    _ticks(
        "fan-in",
        "1.2M left rows of one key share 20k right rows of 2 kB",
        1_200_000,
        20_000,
        options={"keys": 1, "remark": 2000},
    ),
)
_TWO_AXES = (
    Workload(
        "W13",
        "W13: bitemporal, 200k ids, 20 right rows each, one cut-off",
        "versions",
        200_000,
        4 * Million,
        kind="bitemporal",
        known="t",
    ),
    Workload(
        "W13-two",
        "W13: bitemporal, 200k ids, 20 right rows each, two cut-offs",
        "versions",
        200_000,
        4 * Million,
        kind="bitemporal",
        known="asked",
    ),
)
_INTERVALS = (
    Workload(
        "W12-period",
        "W12: 365 days in 3.5M loans, no key",
        "loans",
        365,
        int(3.5 * Million),
        kind="interval",
        keys=(),
        ends=(None, "rt_end"),
    ),
    Workload(
        "W12-overlap",
        "W12: 1M ranges overlap 120k ranges, 24 keys",
        "ranges",
        Million,
        120_000,
        kind="interval",
        ends=("t_end", "rt_end"),
    ),
)
WORKLOADS = {w.name: w for w in (*_UNIFORM, *_SKEWED, *_NO_KEY, *_PUBLIC, *_TWO_AXES, *_INTERVALS)}
"""Every workload by name, in the order of the report."""
