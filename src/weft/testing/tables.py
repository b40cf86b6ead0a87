"""Tables in tests are tables: ``T("sym | px ...")`` returns a `Table`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weft.core import types
from weft.core.names import format_list, quote
from weft.core.source import Source
from weft.core.types import DType, Field, Schema, parse_type
from weft.errors import CaseFileError, Diagnostic, WeftError
from weft.testing import cells
from weft.testing.cells import Cell
from weft.testing.values import kind_of

BATCH = "__batch__"
"""The column with the batch in which a row arrives; it is not part of the schema."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a schema, and optionally the batch in which each row arrives."""

    schema: Schema
    rows: tuple[Row, ...]
    batches: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if BATCH in self.schema:
            raise CaseFileError(f"{BATCH!r} is not a column of the schema", help="pass the numbers as batches=")
        for row in self.rows:
            if len(row) != len(self.schema):
                raise CaseFileError(
                    f"a row has {len(row)} values, the table {len(self.schema)} columns: {row!r}",
                    help="write one value for each column",
                )
        if self.batches is not None and len(self.batches) != len(self.rows):
            raise CaseFileError(
                f"{len(self.batches)} batch numbers for {len(self.rows)} rows",
                help="write one batch number for each row",
            )

    @classmethod
    def of(cls, dicts: Iterable[Mapping[str, Any]], schema: Schema | None = None) -> Table:
        """Build a table from one mapping for each row; a missing name is NULL.

        >>> print(Table.of([{"id": 1, "px": None}, {"id": 2}]))
        id: long | px: string
        1        | null
        2        | null
        """
        records = list(dicts)
        names = tuple(dict.fromkeys(name for record in records for name in record if name != BATCH))
        if schema is None:
            types_ = {name: _type_of([record.get(name) for record in records], name) for name in names}
            schema = Schema(tuple(Field(name, dtype) for name, dtype in types_.items()))
        if foreign := [name for name in names if name not in schema]:
            raise CaseFileError(
                f"the schema has no column {format_list(foreign)}", help=f"it has {format_list(schema.names)}"
            )
        rows = tuple(tuple(record.get(name) for name in schema.names) for record in records)
        arrivals = [record.get(BATCH) for record in records]
        batches = tuple(b for b in arrivals if isinstance(b, int))
        return cls(schema, rows, batches if any(b is not None for b in arrivals) else None)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row."""
        return [dict(zip(self.schema.names, row, strict=True)) for row in self.rows]

    def column(self, name: str) -> tuple[Any, ...]:
        """Return the values of one column."""
        index = self.schema.index(name)
        return tuple(row[index] for row in self.rows)

    def arrivals(self) -> tuple[Table, ...]:
        r"""Return one table for each batch, in the order of the batch numbers; one in all without them.

        >>> [len(t.rows) for t in T("id | __batch__ \n 1 | 2 \n 2 | 1 \n 3 | 2").arrivals()]
        [1, 2]
        """
        if self.batches is None:
            return (self,)
        arrivals = tuple(zip(self.batches, self.rows, strict=True))
        numbers = sorted(set(self.batches))
        return tuple(Table(self.schema, tuple(row for b, row in arrivals if b == n)) for n in numbers)

    def with_rows(self, rows: Iterable[Row]) -> Table:
        """Return a table with the same columns and other rows."""
        return replace(self, rows=tuple(rows), batches=None)

    def format(self) -> str:
        """Return the table as text that `T` reads as an equal table."""
        header = [f"{_header_name(f.name)}: {f.dtype}" for f in self.schema]
        lines = [[cells.write(v, f.dtype) for v, f in zip(row, self.schema, strict=True)] for row in self.rows]
        if self.batches is not None:
            header.append(BATCH)
            lines = [[*line, str(batch)] for line, batch in zip(lines, self.batches, strict=True)]
        return align([header, *lines])

    def __str__(self) -> str:
        return self.format()

    def __len__(self) -> int:
        return len(self.rows)


def align(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells with aligned ``|`` between them."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (" | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def T(text: str, *, source: Source | None = None) -> Table:  # noqa: N802  # read as a noun, like a literal
    """Read a table: a header line, then one line for each row, cells between ``|``.

    A header cell is a name or ``name: type``; without a type it follows from the cells.  Blank
    and ``null`` are NULL; a string in double quotes (JSON) may contain spaces, ``|`` or nothing.  A time
    without a date is on 2024-01-01 in UTC.  The column ``__batch__`` is the batch in which a row arrives.
    Lines that start with ``#``, and everything after ``<-``, are comments.

    Parameters
    ----------
    text
        The table.  Required.
    source
        Where the text is in a file, for the locations of findings.  None (default): the text is all there is.

    Examples
    --------
    >>> t = T('''
    ...     sym  | ts       | px: decimal(10,2) | __batch__
    ...     AAPL | 10:00:05 | 1.5               | 1
    ...     null | 10:00:06 |                   | 2          <- arrives late
    ... ''')
    >>> t.rows[0][2], t.batches
    (Decimal('1.50'), (1, 2))
    >>> T(t.format()) == t
    True
    """
    return _Reader(source or Source.whole(text)).table()


@dataclass(frozen=True, slots=True)
class _Placed:
    """A cell and its location."""

    cell: Cell
    start: int
    end: int


class _Reader:
    """Reads the table at a source location; every finding points into it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.findings: list[Diagnostic] = []

    def place(self, start: int, end: int) -> Source:
        return Source(self.source.text, start, end, self.source.file)

    def find(self, message: str, start: int, end: int, help: str = "") -> None:
        self.findings.append(Diagnostic("W0901", message, help=help, at=self.place(start, end)))

    def done(self) -> None:
        if self.findings:
            raise CaseFileError(self.findings)

    def table(self) -> Table:
        lines = list(self.lines())
        if not lines:
            self.find("the table is empty", self.source.start, self.source.end, "write a header line: name | name")
        self.done()
        header, *body = lines
        fields = [self.field(placed) for placed in header]
        for line in body:
            if len(line) != len(header):
                message = f"the row has {len(line)} cells, the header {len(header)}"
                self.find(message, line[0].start, line[-1].end)
        # Cells are taken by position below, so rows of another length are reported first.
        self.done()
        columns = [self.column(*fields[i], [line[i] for line in body]) for i in range(len(header))]
        self.done()
        return self.assemble(columns, len(body))

    def assemble(self, columns: Sequence[tuple[Field, list[Any]]], count: int) -> Table:
        batches = next((tuple(values) for field, values in columns if field.name == BATCH), None)
        kept = [(field, values) for field, values in columns if field.name != BATCH]
        try:
            schema = Schema(tuple(field for field, _ in kept))
        except WeftError as cause:
            raise CaseFileError(cause.message, help=cause.help, at=self.source) from cause
        return Table(schema, tuple(tuple(values[r] for _, values in kept) for r in range(count)), batches)

    def lines(self) -> Iterator[list[_Placed]]:
        text, at = self.source.text, self.source.start
        while at < self.source.end:
            stop = text.find("\n", at, self.source.end)
            stop = self.source.end if stop < 0 else stop
            shown = text[at:stop].strip()
            if shown and not shown.startswith("#"):
                yield self.line(at, stop)
            at = stop + 1

    def line(self, at: int, stop: int) -> list[_Placed]:
        """Return the cells of the line between `at` and `stop`."""
        placed, text = [], self.source.text
        while True:
            end, follows = self.cell_end(at, stop)
            inside = text[at:end]
            start = at + len(inside) - len(inside.lstrip())
            placed.append(self.cell(start, max(start, at + len(inside.rstrip()))))
            if follows != "|":
                return placed
            at = end + 1

    def cell_end(self, at: int, stop: int) -> tuple[int, str]:
        """Return where the cell ends and whether ``|``, a comment or nothing follows."""
        text = self.source.text
        # Quotes matter only in cells that begin like JSON or a quoted name: 5" is a plain string.
        structured = text[at:stop].lstrip()[:1] in ('"', "[", "{", "`")
        mark = "`" if text[at:stop].lstrip()[:1] == "`" else '"'
        inside = False
        while at < stop:
            if structured and text[at] == "\\" and inside and mark == '"':
                at += 1
            elif structured and text[at] == mark:
                inside = not inside
            elif not inside and text[at] == "|":
                return at, "|"
            elif not inside and text.startswith("<-", at, stop):
                return at, "<-"
            at += 1
        return stop, ""

    def cell(self, start: int, end: int) -> _Placed:
        text = self.source.text[start:end]
        if not text.startswith('"'):
            return _Placed(Cell(text), start, end)
        try:
            value = json.loads(text)
        except ValueError:
            self.find(f"invalid quoted string {text}", start, end, 'write "..." with \\" and \\\\ inside')
            value = text
        return _Placed(Cell(value, quoted=True), start, end)

    def field(self, placed: _Placed) -> tuple[str, DType | None]:
        """Return the name and the declared type of a header cell."""
        text = placed.cell.text
        if text.startswith("`"):
            close = len(text) - len(text[1:].replace("``", "  ").partition("`")[2]) - 1
            name, rest = text[1:close].replace("``", "`"), text[close + 1 :].strip()
        else:
            name, colon, after = text.partition(":")
            name, rest = name.strip(), colon + after
        if not name:
            self.find("a column has no name", placed.start, placed.end, "write name or name: type")
        if name == BATCH:
            return name, types.INTEGER
        if not rest:
            return name, None
        try:
            return name, parse_type(rest.removeprefix(":"))
        except WeftError as cause:
            self.find(cause.message, placed.start, placed.end, cause.help)
            return name, types.STRING

    def column(self, name: str, dtype: DType | None, column: Sequence[_Placed]) -> tuple[Field, list[Any]]:
        dtype = dtype or cells.infer([placed.cell for placed in column])
        values = []
        for placed in column:
            try:
                values.append(cells.read(placed.cell, dtype))
            except CaseFileError as cause:
                self.find(f"column {name!r}: {cause.message}", placed.start, placed.end, cause.help)
            if name == BATCH and placed.cell.is_null:
                self.find("a row has no batch number", placed.start, max(placed.end, placed.start + 1))
        return Field(name, dtype), values


def _header_name(name: str) -> str:
    plain = name == name.strip() and name.isprintable() and name != BATCH
    return name if plain and not set(name) & set(":|<") and name[:1] not in '`"[{#' else quote(name)


def _type_of(values: Sequence[Any], name: str) -> DType:
    """Return the type of Python values, which must be of one kind."""
    filled = [v for v in values if v is not None]
    kinds = {kind_of(v) for v in filled}
    if not kinds:
        return types.STRING
    if kinds == {"decimal"}:
        return types.Decimal(types.MAX_PRECISION, max(0, *(-int(v.as_tuple().exponent) for v in filled), 0))
    if len(kinds) > 1 or not kinds <= _SIMPLE:
        raise CaseFileError(
            f"column {name!r} holds values of type {format_list(sorted(kinds))}",
            help="pass schema= with the types of the columns",
        )
    return types.LONG if kinds == {"integer"} else parse_type(kinds.pop())


_SIMPLE = {
    "boolean", "integer", "double", "string", "binary", "date", "timestamp", "timestamp_ntz", "interval",
}  # fmt: skip
