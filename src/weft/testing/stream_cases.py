"""Stream case files: one statement, rows with the batch they arrive in, and the expected result of every engine.

A case file is a YAML list.  The column ``__batch__`` is the batch in which a row arrives, from 0; the flush
at the end of the run is the batch after the last one::

    - id: INT-001
      why: both ends of the bound are inclusive
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

``event.time.field`` is by default the column ``t``, else ``event_time``, if the stream has one.  Without ``__batch__``
in ``expect`` the batches of the rows are not compared.  ``error`` is a code instead of rows, ``notes`` are codes of
warnings.  ``arrivals`` runs a case several times, with its rows in other batches.  ``set`` has options of the job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from weft.core.frozen import EMPTY, FrozenMap
from weft.core.names import format_list, quote
from weft.core.source import Source
from weft.core.types import TIMESTAMP
from weft.errors import CaseFileError, Code
from weft.pipelines.model.yaml_nodes import Item, Node
from weft.streams.checkpoint.ledger import COUNTS
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import JobPlan, StatementPlan
from weft.streams.sql.lower import read_spec
from weft.testing.cases import CaseReader, plain, read_case_text
from weft.testing.cells import Cell
from weft.testing.cells import read as read_cell
from weft.testing.stream_items import Row
from weft.testing.tables import T, Table
from weft.testing.values import microseconds

Arrival = Literal["as_written", "together", "swapped", "reversed", "one_by_one", "twice"]
ARRIVALS: tuple[Arrival, ...] = get_args(Arrival)
SINK = "result_of_case"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRows:
    """A stream of a case: its rows with their batches, its options, and invalid lines."""

    table: Table
    options: FrozenMap[str, Any] = EMPTY
    unread: tuple[tuple[int, str], ...] = ()

    def arriving(self) -> list[tuple[int, Row]]:
        """Return the rows with the batch of each; without ``__batch__`` all rows are in the first."""
        numbers = self.table.batches or (0,) * len(self.table)
        return [*zip(numbers, self.table.to_dicts(), strict=True), *self.unread]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCase:
    """One statement, its inputs, and the expected rows, counts or error of every engine."""

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
        """Return the text of the job file of the case."""
        statements = [f"SET '{k}' = '{v}';" for k, v in self.settings.items()]
        statements += [_create("STREAM", n, s.table, _stream_options(s)) for n, s in self.streams.items()]
        statements += [_create("TABLE", n, t, {"connector": "memory"}) for n, t in self.tables.items()]
        statements.append(f"CREATE STREAM {SINK} WITH ('connector'='memory') AS {self.sql.strip().rstrip(';')};")
        return "\n".join(statements)

    def job(self) -> JobPlan:
        """Return the plan of the whole job; raise all its errors."""
        return plan_job(read_spec(self.job_text(), file=f"{self.id}.sql", env={}), Path())

    def plan(self) -> StatementPlan:
        """Return the plan of the statement."""
        return self.job().statements[0]

    def batches(self, arrival: Arrival = "as_written") -> list[dict[str, list[Row]]]:
        """Return the rows of each batch by stream, distributed over batches by `arrival`."""
        arriving = [(batch, name, row) for name, s in self.streams.items() for batch, row in s.arriving()]
        return _ARRANGERS[arrival](arriving, list(self.streams))

    def table_rows(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of the tables by name."""
        return {name: table.to_dicts() for name, table in self.tables.items()}


Coming = Sequence[tuple[int, str, Row]]
Batches = list[dict[str, list[Row]]]


def _as_written(coming: Coming, names: Collection[str]) -> Batches:
    count = max((batch for batch, _, _ in coming), default=-1) + 1
    return [{n: [row for b, name, row in coming if (b, name) == (at, n)] for n in names} for at in range(count)]


def _together(coming: Coming, names: Collection[str]) -> Batches:
    return [{n: [row for _, name, row in coming if name == n] for n in names}]


_ARRANGERS: Mapping[Arrival, Callable[[Coming, Collection[str]], Batches]] = {
    "as_written": _as_written,
    "together": _together,
    "swapped": lambda coming, names: [_together(coming, [name])[0] for name in reversed(list(names))],
    "reversed": lambda coming, names: _together(coming[::-1], names),
    "one_by_one": lambda coming, _: [{name: [row]} for _, name, row in coming],
    "twice": lambda coming, names: _together([*coming, *coming], names),
}


def _stream_options(stream: StreamRows) -> dict[str, Any]:
    names = stream.table.schema
    time = next((name for name in ("t", "event_time") if name in names), None)
    options: dict[str, Any] = {"connector": "memory"}
    if time is not None:
        options["event.time.field"] = time
    options |= stream.options
    return {k: v for k, v in options.items() if v is not None}  # `null` in a case removes a default


def _create(kind: str, name: str, table: Table, options: Mapping[str, Any]) -> str:
    columns = ", ".join(f"{quote(f.name)} {f.dtype}" for f in table.schema)
    settings = ", ".join(f"'{k}'='{v}'" for k, v in options.items())
    return f"CREATE {kind} {quote(name)} ({columns}) WITH ({settings});"


_REQUIRED = ("id", "why", "sql", "streams")
_KEYS = (
    *_REQUIRED,
    *("tables", "set", "expect", "error", "ledger", "rejects", "notes", "arrivals", "final", "groups"),
    *("idle", "wall_clock"),
)
_STREAM_KEYS = ("rows", "with", "unread")


def load_stream_cases(path: str | Path) -> tuple[StreamCase, ...]:
    """Read the stream case file at `path`; raise `CaseFileError` with every finding."""
    return read_stream_cases(read_case_text(path), file=str(path))


def read_stream_cases(text: str, *, file: str | None = None) -> tuple[StreamCase, ...]:
    """Read stream cases from the text of a case file."""
    reader = _Reader()
    return reader.read(text, file, reader.case)


class _Reader(CaseReader):
    """Reads cases of streams."""

    def case(self, node: Node) -> StreamCase | None:
        before = len(self.findings)
        items = self.case_items(node, _REQUIRED, _KEYS)
        values: dict[str, Any] = {}
        for key, item in items.items():
            name, read = _READERS[key]
            values[name] = read(self, item)
        if len(self.findings) > before:
            return None
        return StreamCase(**values, source=items["id"].value.place())

    def of_type(self, item: Item, kind: type, word: str) -> Any:
        value = plain(item.value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.add(f"{item.name!r} must be {word}", item.value.place())
            return kind()
        return value

    def tables(self, item: Item) -> FrozenMap[str, Table]:
        return FrozenMap({i.name: self.table(i) for i in self.items(item.value, (), "tables").values()})

    def streams(self, item: Item) -> FrozenMap[str, StreamRows]:
        return FrozenMap({i.name: self.stream(i) for i in self.items(item.value, (), "streams").values()})

    def stream(self, item: Item) -> StreamRows:
        if not item.value.is_mapping:
            return StreamRows(table=self.table(item))
        items = self.items(item.value, _STREAM_KEYS, "a stream")
        if "rows" not in items:
            self.add(f"stream {item.name!r} has no rows", item.value.head(), "write rows: | and the table")
            return StreamRows(table=T("nothing"))
        options = self.of_type(items["with"], dict, "a mapping of options") if "with" in items else {}
        unread = self.of_type(items["unread"], dict, "strings by batch") if "unread" in items else {}
        texts = tuple((int(batch), text) for batch, lines in unread.items() for text in lines)
        return StreamRows(table=self.table(items["rows"]), options=FrozenMap(options), unread=texts)

    def error(self, item: Item) -> Code | None:
        return self.code(self.line(item), item.value.place())

    def notes(self, item: Item) -> tuple[Code | None, ...]:
        codes = self.of_type(item, list, "a list of codes")
        return tuple(self.code(str(c), item.value.place()) for c in codes)

    def ledger(self, item: Item) -> FrozenMap[str, FrozenMap[str, int]]:
        sides = self.items(item.value, (), "a ledger")
        for side in sides.values():
            self.items(side.value, COUNTS, "a side of the ledger")
        return FrozenMap({name: FrozenMap(plain(i.value)) for name, i in sides.items()})

    def mapping(self, item: Item) -> FrozenMap[str, Any]:
        return FrozenMap(self.of_type(item, dict, "a mapping"))

    def arrivals(self, item: Item) -> tuple[Any, ...]:
        arrivals = self.of_type(item, list, f"a list of {format_list(ARRIVALS)}")
        for word in arrivals:
            if word not in ARRIVALS:
                self.add(f"unknown arrival {word!r}", item.value.place(), f"arrivals are {format_list(ARRIVALS)}")
        return tuple(arrivals)

    def idle(self, item: Item) -> FrozenMap[int, tuple[str, ...]]:
        idle: Mapping[Any, Any] = self.of_type(item, dict, "aliases by batch")
        return FrozenMap({int(batch): tuple(aliases) for batch, aliases in idle.items()})

    def moment(self, item: Item) -> int:
        try:
            return microseconds(read_cell(Cell(self.line(item)), TIMESTAMP))
        except CaseFileError as cause:
            self.add(cause.message, item.value.place(), cause.help)
            return 0


_READERS: dict[str, tuple[str, Callable[[_Reader, Item], Any]]] = {
    "id": ("id", _Reader.line),
    "why": ("why", _Reader.line),
    "sql": ("sql", _Reader.text),
    "streams": ("streams", _Reader.streams),
    "tables": ("tables", _Reader.tables),
    "set": ("settings", _Reader.mapping),
    "expect": ("expect", _Reader.table),
    "error": ("error", _Reader.error),
    "ledger": ("ledger", _Reader.ledger),
    "rejects": ("rejects", _Reader.mapping),
    "notes": ("notes", _Reader.notes),
    "arrivals": ("arrivals", _Reader.arrivals),
    "final": ("final", lambda reader, item: reader.of_type(item, bool, "true or false")),
    "groups": ("groups", lambda reader, item: reader.of_type(item, int, "a number")),
    "idle": ("idle", _Reader.idle),
    "wall_clock": ("wall_clock", _Reader.moment),
}
