"""The sources of a statement as a scope for expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.core.names import fold, listed, near
from weft.core.types import TIMESTAMP, DType, Field, Schema
from weft.errors import Diagnostic
from weft.expr import Column
from weft.streams.plan.resolved import WINDOW_END, WINDOW_START, column
from weft.streams.sql.spec import MESSAGE_TIME

_WINDOW = {"window_start": WINDOW_START, "window_end": WINDOW_END}


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A source as an expression sees it; `padded` says whether an outer join may leave it out.

    `time` is its event-time column.  `time_unit` is how many microseconds one is in that column when it
    holds numbers.  `has_message_time` says whether the time is that of the message and no column.
    """

    number: int
    alias: str
    name: str
    columns: Schema
    padded: bool = False
    time: int | None = None
    time_unit: int | None = None
    has_message_time: bool = False

    @property
    def time_type(self) -> DType | None:
        """The declared type of the event time."""
        return None if self.time is None else self.columns.fields[self.time].dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementScope:
    """Resolves ``alias.column`` and names that one source alone has.

    `has_window` says whether ``window_start`` and ``window_end`` are there, which a tumbling or sliding
    join gives; `no_window` is why they are not.

    >>> orders = Named(number=0, alias="o", name="orders", columns=Schema.of(id="long", at="timestamp"))
    >>> shipments = Named(number=1, alias="s", name="shipments", columns=Schema.of(id="long"))
    >>> scope = StatementScope(sources=(orders, shipments))
    >>> scope.resolve("s", "ID").slot
    ('i', 1, 0)
    >>> print(scope.resolve(None, "id"))
    error[W0216]: 'id' could be o.id or s.id
     = help: write the alias before it, as in o.id
    """

    sources: tuple[Named, ...]
    has_window: bool = False
    window_padded: bool = False
    no_window: str = ""

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column that a reference means, or what is wrong with it."""
        if qualifier is not None:
            return self._qualified(qualifier, name)
        found = [(s, i) for s in self.sources if (i := s.columns.find(name)) is not None]
        if len(found) > 1:
            could = [f"{s.alias}.{s.columns.fields[i].name}" for s, i in found]
            return Diagnostic(
                "W0216",
                f"{name!r} could be {' or '.join(could)}",
                help=f"write the alias before it, as in {could[0]}",
            )
        if found:
            return _column(*found[0])
        slot = _WINDOW.get(fold(name))
        if slot is not None:
            return self._window(name, slot)
        return Diagnostic(
            "W0207",
            f"there is no column {name!r} in {self._said()}",
            help=_undeclared(name, self.sources) or _nearest(name, self.names()),
        )

    def names(self) -> tuple[str, ...]:
        """Return ``alias.column`` for every column, and those of the window."""
        columns = (f"{s.alias}.{n}" for s in self.sources for n in s.columns.names)
        return (*columns, *(_WINDOW if self.has_window else ()))

    def star(self, alias: str | None = None) -> tuple[tuple[Named, int, Field], ...]:
        """Return the columns behind ``*`` or ``alias.*``, in the order of FROM."""
        return tuple(
            (s, i, f)
            for s in self.sources
            if alias is None or fold(s.alias) == fold(alias)
            for i, f in enumerate(s.columns)
        )

    def find(self, alias: str) -> Named | None:
        """Return the source that an alias means, or None."""
        return next((s for s in self.sources if fold(s.alias) == fold(alias)), None)

    def _qualified(self, qualifier: str, name: str) -> Column | Diagnostic:
        source = self.find(qualifier)
        if source is None:
            return self.unknown_alias(qualifier)
        index = source.columns.find(name)
        if index is None:
            return Diagnostic(
                "W0207",
                f"{source.alias!r} ({source.name}) has no column {name!r}",
                help=_undeclared(name, (source,)) or _nearest(name, source.columns.names),
            )
        return _column(source, index)

    def unknown_alias(self, qualifier: str) -> Diagnostic:
        """Return the finding for an alias that the statement does not have."""
        aliases = [s.alias for s in self.sources]
        behind = [s.alias for s in self.sources if fold(s.name) == fold(qualifier)]
        if behind:
            told = " or ".join(f"{a}." for a in behind)
            return Diagnostic(
                "W0207", f"{qualifier!r} is called {behind[0]!r} in this statement", help=f"write {told}"
            )
        return Diagnostic(
            "W0207", f"there is no source {qualifier!r} here", help=_nearest(qualifier, aliases)
        )

    def _window(self, name: str, slot: tuple[str, int]) -> Column | Diagnostic:
        if not self.has_window:
            return Diagnostic(
                "W0207",
                f"there is no column {name!r}: {self.no_window or 'this statement has no window'}",
                help="tumbling and sliding window joins have window_start and window_end",
            )
        return Column(slot, TIMESTAMP, nullable=self.window_padded)

    def _said(self) -> str:
        return " and ".join(f"{s.alias} ({s.name})" if s.alias != s.name else s.name for s in self.sources)


def _column(source: Named, index: int) -> Column:
    field = source.columns.fields[index]
    return Column(column(source.number, index), field.dtype, field.nullable or source.padded)


def _undeclared(name: str, sources: Sequence[Named]) -> str:
    """Return what to do about the time of a message that is read but not declared."""
    timed = [s for s in sources if s.has_message_time]
    if not timed or fold(name) != fold(MESSAGE_TIME):
        return ""
    return f"declare it: CREATE STREAM {timed[0].name} (.., {MESSAGE_TIME} TIMESTAMP)"


def _nearest(wanted: str, known: Sequence[str]) -> str:
    bare = {n.rpartition(".")[2].casefold(): n for n in known}
    close = [*near(wanted, known), *(bare[n.casefold()] for n in near(wanted, list(bare)))]
    found = list(dict.fromkeys(close))[:3]
    return f"did you mean {' or '.join(map(repr, found))}?" if found else f"there is {listed(known)}"
