"""The select list of a statement: stars opened, names settled, every expression typed."""

from __future__ import annotations

from dataclasses import replace

from weft.core.names import fold
from weft.core.source import Source
from weft.core.types import TIMESTAMP, DType, Schema, common_type
from weft.errors import ExpressionError
from weft.expr import Ref, Typed, check
from weft.expr.checking import convert
from weft.streams.plan.findings import Found
from weft.streams.plan.resolved import OutputColumn, column
from weft.streams.plan.scope import StatementScope
from weft.streams.sql.spec import ItemSpec, SinkSpec


class SelectList:
    """Reads the items of a SELECT one after another and keeps what they give."""

    def __init__(self, scope: StatementScope, found: Found) -> None:
        self.scope = scope
        self.found = found
        self.columns: list[OutputColumn] = []
        self.keys: list[str] = []
        self.event_time: Typed | None = None
        self._taken: dict[str, Source | None] = {}

    def read(self, item: ItemSpec) -> None:
        """Take one item."""
        if item.is_star or item.star_of is not None:
            self._star(item)
        elif item.expr is not None:
            self._expression(item)

    def _star(self, item: ItemSpec) -> None:
        if item.star_of is not None and self.scope.find(item.star_of) is None:
            self.found.extend([replace(self.scope.unknown_alias(item.star_of), at=item.at)])
            return
        renamed: list[tuple[str, str]] = []
        for source, index, field in self.scope.star(item.star_of):
            name = field.name
            if fold(name) in self._taken:
                name = f"{source.alias}_{field.name}"
                renamed.append((f"{source.alias}.{field.name}", name))
            expr = Ref(source.alias, field.name)
            nullable = field.nullable or source.padded
            typed = Typed("ref", field.dtype, nullable, slot=column(source.number, index), expr=expr)
            self._take(name, typed, item)
        if renamed:
            told = ", ".join(f"{column} is called {name}" for column, name in renamed)
            self.found.add(
                "W2116",
                f"in the result {told}: the name{'s are' if len(renamed) > 1 else ' is'} taken",
                item.at,
                f"write {renamed[0][0]} AS <name> to choose a name",
                severity="note",
            )

    def _expression(self, item: ItemSpec) -> None:
        assert item.expr is not None  # noqa: S101  # the caller's own branch
        try:
            typed = check(item.expr, self.scope, today=False)
        except ExpressionError as cause:
            self.found.take(cause, item.at)
            return
        if item.is_event_time:
            self._time(item, typed)
            return
        name = item.alias or (item.expr.name if isinstance(item.expr, Ref) else f"column_{self._count()}")
        self._take(name, typed, item)

    def _count(self) -> int:
        return len(self.columns) + 1

    def _time(self, item: ItemSpec, typed: Typed) -> None:
        if typed.dtype != TIMESTAMP and not typed.dtype.is_integer:
            self.found.add(
                "W2014",
                f"_EVENT_TIME is {typed.dtype}, a timestamp or whole milliseconds are wanted",
                item.at,
                "write a TIMESTAMP column or CAST(... AS timestamp)",
            )
        elif self.event_time is not None:
            self.found.add("W2103", "_EVENT_TIME is given twice", item.at, "leave one of them out")
        else:
            self.event_time = typed

    def _take(self, name: str, typed: Typed, item: ItemSpec) -> None:
        if fold(name) in self._taken:
            first = self._taken[fold(name)]
            where = f"; the first is in line {first.line}, column {first.column}" if first else ""
            self.found.add(
                "W2103",
                f"two columns of the result are called {name!r}",
                item.at,
                f"give one of them another name with AS{where}",
            )
            return
        self._taken[fold(name)] = item.at
        self.columns.append(OutputColumn(name=name, typed=typed, dtype=typed.dtype, nullable=typed.nullable))
        if item.is_key:
            self.keys.append(name)


def fitted(columns: tuple[OutputColumn, ...], sink: SinkSpec, found: Found) -> tuple[OutputColumn, ...]:
    """Return the columns in the types that the sink declares; notes where the two differ."""
    if sink.columns is None:
        return columns
    declared: Schema = sink.columns
    names, wanted = [c.name for c in columns], list(declared.names)
    if [fold(n) for n in names] != [fold(n) for n in wanted]:
        found.add(
            "W2120",
            f"sink {sink.name!r} declares {', '.join(wanted)} but the SELECT gives {', '.join(names)}",
            sink.at,
            "name the columns of the SELECT with AS, in the order of the declaration",
        )
        return columns
    fitting = []
    for given, field in zip(columns, declared, strict=True):
        typed = given.typed
        if not _widens(typed.dtype, field.dtype):
            found.add(
                "W2120",
                f"column {field.name!r} of sink {sink.name!r} is declared {field.dtype}"
                f" but the SELECT gives {typed.dtype}",
                sink.at,
                f"write CAST(... AS {field.dtype}) AS {field.name}, or declare it {typed.dtype}",
            )
        elif typed.nullable and not field.nullable:
            found.add(
                "W2120",
                f"column {field.name!r} of sink {sink.name!r} is NOT NULL but the SELECT may give NULL",
                sink.at,
                f"leave out NOT NULL, or write COALESCE(..., <value>) AS {field.name}",
            )
        typed = convert(typed, field.dtype)
        fitting.append(OutputColumn(name=field.name, typed=typed, dtype=field.dtype, nullable=typed.nullable))
    return tuple(fitting)


def _widens(given: DType, wanted: DType) -> bool:
    return given == wanted or common_type(given, wanted) == wanted
