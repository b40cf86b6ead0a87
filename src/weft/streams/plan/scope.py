"""The sources of FROM and JOIN with their event times, the names that expressions see, and the findings about them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from weft.core.findings import Findings
from weft.core.names import find_similar, fold, format_list
from weft.core.source import Source
from weft.core.types import TIMESTAMP, TIMESTAMP_NTZ, DType, Field, Schema
from weft.errors import Diagnostic
from weft.expr import Column, Ref, render
from weft.streams.plan.resolved import WINDOW_END, WINDOW_START, column_slot, time_slot
from weft.streams.sql.spec import MESSAGE_TIME, JobSpec, StatementSpec, StreamSpec, TableSpec

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
    return Column.of(column_slot(source.number, index), source.columns.fields[index], padded=source.padded)


def _undeclared(name: str, sources: Sequence[Named]) -> str:
    """Return what to do about the time of a message that is read but not declared."""
    timed = [s for s in sources if s.has_message_time]
    if not timed or fold(name) != fold(MESSAGE_TIME):
        return ""
    return f"declare it: CREATE STREAM {timed[0].name} (.., {MESSAGE_TIME} TIMESTAMP)"


def _nearest(wanted: str, known: Sequence[str]) -> str:
    bare = {n.rpartition(".")[2].casefold(): n for n in known}
    close = [*find_similar(wanted, known), *(bare[n.casefold()] for n in find_similar(wanted, list(bare)))]
    found = list(dict.fromkeys(close))[:3]
    return f"did you mean {' or '.join(map(repr, found))}?" if found else f"there is {format_list(known)}"


_EPOCHS = {"epoch_seconds": 1_000_000, "epoch_millis": 1_000, "epoch_micros": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class FromSource:
    """One source of FROM: a stream or a table under its alias; `time` is its event-time column."""

    number: int
    alias: str
    spec: StreamSpec | TableSpec
    time: int | None = None
    at: Source | None = None

    @property
    def is_stream(self) -> bool:
        """Whether rows keep coming."""
        return isinstance(self.spec, StreamSpec)

    @property
    def columns(self) -> Schema:
        """The declared columns."""
        return self.spec.columns

    def named(self, *, padded: bool) -> Named:
        """Return the source as an expression sees it."""
        stream = self.spec if isinstance(self.spec, StreamSpec) else None
        return Named(
            number=self.number,
            alias=self.alias,
            name=self.spec.name,
            columns=self.columns,
            padded=padded,
            time=self.time,
            time_unit=None if stream is None else _EPOCHS.get(stream.time_format),
            has_message_time=stream is not None and self.time is None and stream.event_time is not None,
        )

    @property
    def said_time(self) -> str:
        """The event time as a clause writes it."""
        if isinstance(self.spec, StreamSpec) and self.time is None and self.spec.event_time is None:
            return f"{self.alias}.<event time>"
        name = self.columns.fields[self.time].name if self.time is not None else MESSAGE_TIME
        return self.said(name)

    def said(self, column: str) -> str:
        """Return a column as a clause writes it."""
        return render(Ref(self.alias, column))


def read_sources(job: JobSpec, statement: StatementSpec, findings: Findings) -> tuple[FromSource, ...] | None:
    """Return the sources in the order of FROM, or None after noting which are not there."""
    written = sorted(s.name for s in job.statements)
    said = [(*statement.first, statement.first_at or statement.at)]
    said += [(join.input, join.alias, join.at) for join in statement.joins]
    streams = sum(1 for name, _, _ in said if name in job.streams)
    sources: list[FromSource] = []
    for number, (name, alias, at) in enumerate(said):
        spec: StreamSpec | TableSpec | None = job.streams.get(name) or job.tables.get(name)
        if spec is None and name in written:
            findings.add(
                "W2108",
                f"{name!r} is written by this job, it cannot be read in it",
                at,
                f"declare what {name} writes as a stream of another job, or join its inputs here",
            )
        elif spec is None:
            known = [*job.streams, *job.tables]
            close = find_similar(name, known)
            help = (
                f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"there is {format_list(known)}"
            )
            findings.add("W2010", f"there is no stream or table {name!r}", at, help)
        elif isinstance(spec, StreamSpec):
            spec, time = _timed(spec, findings, wanted=streams > 1)
            sources.append(FromSource(number=number, alias=alias, spec=spec, time=time, at=at))
        else:
            sources.append(FromSource(number=number, alias=alias, spec=spec, at=at))
    return tuple(sources) if len(sources) == len(said) else None


def _timed(stream: StreamSpec, findings: Findings, *, wanted: bool) -> tuple[StreamSpec, int | None]:
    """Return the stream with its event time settled, and the column of it."""
    schema = stream.columns
    if stream.event_time is not None:
        index = schema.find(stream.event_time)
        if index is None and stream.event_time.upper() != MESSAGE_TIME:
            close = find_similar(stream.event_time, schema.names)
            help = (
                f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"it has {format_list(schema.names)}"
            )
            findings.add(
                "W2114",
                f"the event time {stream.event_time!r} is no column of stream {stream.name!r}",
                stream.at,
                help,
            )
        return stream, index
    if not wanted:
        return stream, None
    times = [i for i, f in enumerate(schema) if f.dtype in (TIMESTAMP, TIMESTAMP_NTZ)]
    if len(times) == 1:
        name = schema.fields[times[0]].name
        findings.add(
            "W2114",
            f"stream {stream.name!r} says no event time: {name!r} is taken, its only TIMESTAMP column",
            stream.at,
            f"write 'event.time.field'='{name}' in its WITH",
            severity="note",
        )
        return replace(stream, event_time=name), times[0]
    names = format_list(schema.fields[i].name for i in times) if times else "none"
    findings.add(
        "W2114",
        f"stream {stream.name!r} is joined by time but says no event time; its TIMESTAMP columns: {names}",
        stream.at,
        "write 'event.time.field'='<column>' in its WITH",
    )
    return stream, None


def time_slots(sources: Iterable[FromSource]) -> dict[Hashable, int]:
    """Return the slots of event times, as declared columns and as times, each with its source."""
    streams = [s for s in sources if s.is_stream]
    columns: dict[Hashable, int] = {
        column_slot(s.number, s.time): s.number for s in streams if s.time is not None
    }
    return {**columns, **{time_slot(s.number): s.number for s in streams}}
