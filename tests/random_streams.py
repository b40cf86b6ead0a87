"""Random streaming statements with random rows, batches, crashes and hashes, each from one seed."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weft.core.crash import CRASH, Crash
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import StatementPlan
from weft.streams.sql.lower import read_spec
from weft.testing.stream_arrow import HashOf, stable_hash

START = dt.datetime(2026, 1, 15, 10, tzinfo=dt.UTC)
Rows = list[Any]
Batch = dict[str, Rows]
HOWS = ("INNER", "LEFT", "RIGHT", "FULL")


@dataclass(frozen=True, kw_only=True)
class Side:
    """How one stream is declared."""

    name: str
    delay: int = 3
    late: str = "side_output"
    dedup: str = ""

    @property
    def sql(self) -> str:
        dedup = f", 'dedup.keys' = '{self.dedup}'" if self.dedup else ""
        return (
            f"CREATE STREAM {self.name} (id INT, k STRING, g INT, v INT, t TIMESTAMP) WITH ("
            f"'connector' = 'memory', 'event.time.field' = 't', 'late' = '{self.late}', "
            f"'watermark.max_out_of_orderness' = '{self.delay}s'{dedup});"
        )


@dataclass(frozen=True, kw_only=True)
class Run:
    """One random run: the statement and what comes in."""

    seed: int
    sides: tuple[Side, ...]
    how: str
    form: str  # what follows the ON of the first join
    bound: str  # the condition in the ON beside the keys
    keys: tuple[str, ...]
    residual: str = ""
    where: str = ""
    emit: str = ""
    options: tuple[str, ...] = ()
    windows: bool = False
    more: str = ""  # a second join
    batches: tuple[Batch | Crash, ...] = ()
    groups: int = 2
    collide: int = 0
    final: bool = True
    idle: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        on = " AND ".join([f"a.{key} = b.{key}" for key in self.keys] + [c for c in (self.bound, self.residual) if c])
        windows = ", window_start, window_end" if self.windows else ""
        columns = ", ".join(f"{s.name}.{c} AS {s.name}{c}" for s in self.sides for c in ("id", "k", "t"))
        options = f" WITH ({', '.join(self.options)})" if self.options else ""
        return "\n".join(
            [
                *(s.sql for s in self.sides),
                "CREATE STREAM joined WITH ('connector' = 'memory') AS",
                f"SELECT {columns}{windows} FROM a {self.how} JOIN b ON {on} {self.form} {self.more}",  # noqa: S608
                f"{self.where} {self.emit}{options};",
            ]
        )

    @property
    def plan(self) -> StatementPlan:
        return plan_job(read_spec(self.sql), Path()).statements[0]

    @property
    def fed(self) -> list[Batch]:
        """The batches without the crashes."""
        return [b for b in self.batches if not isinstance(b, Crash)]

    @property
    def hash_of(self) -> HashOf:
        if not self.collide:
            return stable_hash
        return lambda key: stable_hash((stable_hash(key) % self.collide,))

    def __str__(self) -> str:
        fed = "\n".join(f"  {b}" for b in self.batches)
        return f"seed {self.seed}, groups {self.groups}, collide {self.collide}, final {self.final}\n{self.sql}\n{fed}"


def random_run(seed: int) -> Run:
    """Return the run of a seed."""
    rng = random.Random(seed)
    kind = rng.choice(("interval", "interval", "tumbling", "sliding", "session"))
    sides = [_side(rng, name) for name in "ab"]
    run = Run(
        seed=seed,
        sides=tuple(sides),
        how=rng.choice(HOWS),
        form="",
        bound="",
        keys=rng.choice((("k",), ("k",), ("k", "g"))),
        residual=rng.choice(("", "", "", "a.v < b.v", "(a.v <> b.v OR a.v IS NULL)", "a.v % 2 = b.v % 2")),
        emit=rng.choice(("", "EMIT CHANGES", "EMIT FINAL")),
        groups=rng.randint(1, 3),
        collide=rng.choice((0, 0, 1, 2)),
        final=rng.random() < 0.8,
    )
    run = _formed(run, kind, rng)
    if run.how == "INNER" and rng.random() < 0.2:
        run = replace(run, where="WHERE a.v > 1")
    if rng.random() < 0.2:
        run = replace(
            run,
            options=(*run.options, f"'join.missing_event_time' = '{rng.choice(('reject', 'wall_clock'))}'"),
        )
    if kind != "session" and rng.random() < 0.2:
        run = _chained(run, rng)
    return _fed(run, rng, most=8 if kind == "session" else 25)


def _side(rng: random.Random, name: str) -> Side:
    return Side(
        name=name,
        delay=rng.choice((0, 1, 3, 10, 100)),
        late=rng.choice(("side_output", "side_output", "drop")),
        dedup=rng.choice(("", "", "", "k, id")),
    )


def _formed(run: Run, kind: str, rng: random.Random) -> Run:
    size = rng.choice((4, 10, 20))
    if kind == "interval":
        lower = rng.choice((-30, -5, 0, 0, 2))
        upper = max(lower, rng.choice((-3, 0, 8, 30)))
        if rng.random() < 0.3 and lower <= 0 <= upper:
            return replace(run, form=f"WITHIN ('{-lower}s', '{upper}s')")
        if rng.random() < 0.5:
            return replace(run, bound=f"a.t BETWEEN b.t - {_seconds(upper)} AND b.t - {_seconds(lower)}")
        return replace(run, bound=f"b.t >= a.t + {_seconds(lower)} AND b.t - a.t <= {_seconds(upper)}")
    if kind == "tumbling":
        return replace(run, form=f"WINDOW TUMBLING ('{size}s')", windows=True)
    if kind == "sliding":
        slide = rng.choice([s for s in (2, 3, 4, 10) if s <= size])
        rows = rng.choice(("pair", "window"))
        form = f"WINDOW SLIDING (SIZE '{size}s', SLIDE '{slide}s')"
        return replace(run, form=form, windows=True, options=(f"'join.rows' = '{rows}'",))
    return replace(run, form=f"WINDOW SESSION (GAP '{rng.choice((1, 4, 8))}s')")


def _seconds(count: int) -> str:
    return f"INTERVAL '{count}' SECOND"


def _chained(run: Run, rng: random.Random) -> Run:
    """Add a third stream; rows behind the first join come by its pairs and by its padded rows."""
    how = rng.choice(HOWS)
    lower, upper = rng.choice(((-5, 5), (0, 10), (-20, 0)))
    axis = rng.choice("ab")
    more = f"{how} JOIN c ON {axis}.k = c.k AND c.t - {axis}.t BETWEEN {_seconds(lower)} AND {_seconds(upper)}"
    # Only the last join of a chain may wait for the end of its windows.
    emit = "EMIT CHANGES" if run.windows or run.emit == "EMIT FINAL" else run.emit
    sides = (*run.sides, _side(rng, "c"))
    options = tuple(o for o in run.options if "join.rows" not in o)
    return replace(run, sides=sides, more=more, options=options, emit=emit, where="")


def _fed(run: Run, rng: random.Random, most: int) -> Run:
    """Return the run with its batches: disorder inside and beyond the delay, copies, NULLs, crashes."""
    span, keys = rng.choice((10, 30, 100)), rng.choice((1, 2, 4))
    fed: list[Batch] = [{} for _ in range(rng.choice((1, 2, 2, 3, 3, 5, 5, 8, 8, 20, 50)))]
    silent = rng.choice(("", "", "", "b", "c"))
    for side in run.sides:
        rows = _rows(rng, rng.choice((most, rng.randint(0, most))), span, keys)
        for row in rows:
            row["id"] += ord(side.name) * 1000
        disorder = rng.choice((0, 3, 20))
        arrival = sorted(rows, key=lambda r: _at(r) + rng.uniform(-disorder, disorder))
        start = len(fed) // 2 if side.name == silent else 0
        for place, row in enumerate(arrival):
            number = start + place * (len(fed) - start) // max(1, len(arrival))
            fed[number].setdefault(side.name, []).append(row)
        if rng.random() < 0.2 and rows:
            rng.choice(fed).setdefault(side.name, []).append("{not a row")
    batches: list[Batch | Crash] = []
    for batch in fed:
        batches += [CRASH] * (rng.random() < 0.15) + [batch]
    idle = {n: (rng.choice(run.sides).name,) for n in range(len(fed)) if rng.random() < 0.1}
    return replace(run, batches=tuple(batches), idle=idle if rng.random() < 0.2 else {})


def _rows(rng: random.Random, count: int, span: int, keys: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number in range(count):
        if rows and rng.random() < 0.1:
            rows.append(dict(rng.choice(rows)))  # delivered again
            continue
        hot = rng.random() < 0.3
        at = rng.choice((rng.randint(-5, span), rng.randint(-5, span) + rng.choice((0.0005, 0.999999))))
        rows.append(
            {
                "id": number,
                "k": rng.choice((None, "")) if rng.random() < 0.08 else ("hot" if hot else f"k{rng.randrange(keys)}"),
                "g": rng.choice((1, 1, 1, 1, 1, 2, None)),
                "v": rng.choice((None, 0, 1, 2, 3, 5)),
                "t": None if rng.random() < 0.05 else START + dt.timedelta(seconds=at),
            }
        )
    return rows


def _at(row: Mapping[str, Any]) -> float:
    return 0.0 if row["t"] is None else float((row["t"] - START).total_seconds())


def as_set(rows: Sequence[tuple[int, Mapping[str, Any]]], *, by_batch: bool = True) -> list[str]:
    """Return rows in an order that does not matter, with the batch they came in or without."""
    return sorted(repr((batch if by_batch else 0, _shown(row))) for batch, row in rows)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {n: v.isoformat() if isinstance(v, dt.datetime) else v for n, v in sorted(row.items())}
