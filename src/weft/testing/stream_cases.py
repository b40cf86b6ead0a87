"""Stream case files: one statement, rows with the batch they arrive in, and what every engine must give.

A case file is a YAML list.  The column ``__batch__`` says when a row arrives, from 0 on; the flush at the
end of the run is the batch after the last one::

    - id: INT-001
      why: both ends of the bound belong to it
      sql: SELECT l.id, r.id AS rid FROM l LEFT JOIN r ON l.k = r.k WITHIN ('0s', '10s')
      streams:
        l: |
          id | k | t     | __batch__
          a  | 1 | 10:00 | 0
        r:
          with: {watermark.max_out_of_orderness: 30s}
          rows: |
            id | k | t        | __batch__
            x  | 1 | 10:00:10 | 1
      expect: |
        id | rid | __batch__
        a  | x   | 1
      ledger:
        left: {in: 1, matched: 1}

``event.time.field`` is the column ``t``, else ``event_time``, where a stream has one and ``with`` says
nothing else.  Without ``__batch__`` in ``expect`` the batches of the rows are not compared.  ``error`` is a
code instead of rows, ``notes`` are codes of warnings.  ``arrivals`` runs a case several times, its rows put
into batches in other ways.  ``set`` holds options of the job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from weft.core.frozen import EMPTY, FrozenMap
from weft.core.names import quote
from weft.core.source import Source
from weft.errors import Code
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import JobPlan, StatementPlan
from weft.streams.sql.lower import read_spec
from weft.testing.stream_items import Row
from weft.testing.tables import Table

Arrival = Literal["as_written", "together", "swapped", "reversed", "one_by_one", "twice"]
ARRIVALS: tuple[Arrival, ...] = get_args(Arrival)
SINK = "result_of_case"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRows:
    """A stream of a case: its rows with their batches, its options, texts that do not read."""

    table: Table
    options: FrozenMap[str, Any] = EMPTY
    unread: tuple[tuple[int, str], ...] = ()

    def arriving(self) -> list[tuple[int, Row]]:
        """Return the rows with the batch of each; without ``__batch__`` all come in the first."""
        numbers = self.table.batches or (0,) * len(self.table)
        return [*zip(numbers, self.table.to_dicts(), strict=True), *self.unread]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCase:
    """One statement, its inputs, and the rows, counts or error that every engine must give."""

    id: str
    why: str
    sql: str
    streams: FrozenMap[str, StreamRows]
    tables: FrozenMap[str, Table] = EMPTY
    settings: FrozenMap[str, Any] = EMPTY
    expect: Table | None = None
    error: Code | None = None
    ledger: FrozenMap[str, FrozenMap[str, int]] = EMPTY
    rejects: FrozenMap[str, int] = EMPTY
    notes: tuple[Code, ...] = ()
    arrivals: tuple[Arrival, ...] = ("as_written",)
    final: bool = True
    groups: int = 2
    idle: FrozenMap[int, tuple[str, ...]] = EMPTY
    wall_clock: int = 0
    source: Source = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.id}: {self.why}"

    def job_text(self) -> str:
        """Return the job file that the case stands for."""
        said = [f"SET '{k}' = '{v}';" for k, v in self.settings.items()]
        said += [_create("STREAM", n, s.table, _stream_options(s)) for n, s in self.streams.items()]
        said += [_create("TABLE", n, t, {"connector": "memory"}) for n, t in self.tables.items()]
        said.append(f"CREATE STREAM {SINK} WITH ('connector'='memory') AS {self.sql.strip().rstrip(';')};")
        return "\n".join(said)

    def job(self) -> JobPlan:
        """Return the plan of the whole job; its mistakes raise."""
        return plan_job(read_spec(self.job_text(), file=f"{self.id}.sql", env={}), Path())

    def plan(self) -> StatementPlan:
        """Return the plan of the statement."""
        return self.job().statements[0]

    def batches(self, arrival: Arrival = "as_written") -> list[dict[str, list[Row]]]:
        """Return the rows of each batch by stream, put into batches as `arrival` says."""
        coming = [(batch, name, row) for name, s in self.streams.items() for batch, row in s.arriving()]
        return _ARRANGED[arrival](coming, list(self.streams))

    def table_rows(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of the tables by name."""
        return {name: table.to_dicts() for name, table in self.tables.items()}


Coming = Sequence[tuple[int, str, Row]]
Batches = list[dict[str, list[Row]]]


def _as_written(coming: Coming, names: Collection[str]) -> Batches:
    count = max((batch for batch, _, _ in coming), default=-1) + 1
    return [
        {n: [row for b, name, row in coming if (b, name) == (at, n)] for n in names} for at in range(count)
    ]


def _together(coming: Coming, names: Collection[str]) -> Batches:
    return [{n: [row for _, name, row in coming if name == n] for n in names}]


def _swapped(coming: Coming, names: Collection[str]) -> Batches:
    return [{n: [row for _, name, row in coming if name == n]} for n in reversed(list(names))]


def _reversed(coming: Coming, names: Collection[str]) -> Batches:
    return _together(coming[::-1], names)


def _one_by_one(coming: Coming, _: Collection[str]) -> Batches:
    return [{name: [row]} for _, name, row in coming]


def _twice(coming: Coming, names: Collection[str]) -> Batches:
    return _together([*coming, *coming], names)


_ARRANGED = {
    "as_written": _as_written,
    "together": _together,
    "swapped": _swapped,
    "reversed": _reversed,
    "one_by_one": _one_by_one,
    "twice": _twice,
}


def _stream_options(stream: StreamRows) -> dict[str, Any]:
    names = stream.table.schema
    time = next((name for name in ("t", "event_time") if name in names), None)
    options: dict[str, Any] = {"connector": "memory"}
    if time is not None:
        options["event.time.field"] = time
    options |= stream.options
    return {k: v for k, v in options.items() if v is not None}


def _create(kind: str, name: str, table: Table, options: Mapping[str, Any]) -> str:
    columns = ", ".join(f"{quote(f.name)} {f.dtype}" for f in table.schema)
    said = ", ".join(f"'{k}'='{v}'" for k, v in options.items())
    return f"CREATE {kind} {quote(name)} ({columns}) WITH ({said});"
