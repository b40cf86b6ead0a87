"""The sources of FROM and JOIN with their event times, and the scope of expressions over them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from weft.core.findings import Findings
from weft.core.names import find_similar, fold, format_list, suggest
from weft.core.source import Source
from weft.core.types import TIMESTAMP, TIMESTAMP_NTZ, DType, Field, Schema
from weft.errors import Diagnostic
from weft.expr import Column, Ref, render
from weft.streams.plan.resolved import WINDOW_END, WINDOW_START, column_slot, time_slot
from weft.streams.sql.spec import MESSAGE_TIME, JobSpec, StatementSpec, StreamSpec, TableSpec

_WINDOW = {"window_start": WINDOW_START, "window_end": WINDOW_END}


_EPOCHS = {"epoch_seconds": 1_000_000, "epoch_millis": 1_000, "epoch_micros": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class FromSource:
    """A source of FROM: a stream or a table with its alias; `time` is its event-time column.

    `padded` is true in the scope of an expression that sees rows which an outer join may have filled with NULL.
    """

    number: int
    alias: str
    spec: StreamSpec | TableSpec
    time: int | None = None
    padded: bool = False
    at: Source | None = None

    @property
    def is_stream(self) -> bool:
        """Whether the source is a stream."""
        return isinstance(self.spec, StreamSpec)

    @property
    def columns(self) -> Schema:
        """The declared columns."""
        return self.spec.columns

    @property
    def time_type(self) -> DType | None:
        """The declared type of the event time."""
        return None if self.time is None else self.columns.fields[self.time].dtype

    @property
    def time_unit(self) -> int | None:
        """The unit of the event-time column in microseconds if it is a number."""
        return _EPOCHS.get(self.spec.time_format) if isinstance(self.spec, StreamSpec) else None

    @property
    def has_message_time(self) -> bool:
        """Whether the event time is that of the message and not a column."""
        return isinstance(self.spec, StreamSpec) and self.time is None and self.spec.event_time is not None

    def format_time(self) -> str:
        """Return the event time as it is written in SQL."""
        if self.is_stream and self.time is None and not self.has_message_time:
            return f"{self.alias}.<event time>"
        name = self.columns.fields[self.time].name if self.time is not None else MESSAGE_TIME
        return self.format_column(name)

    def format_column(self, column: str) -> str:
        """Return a column as it is written in SQL."""
        return render(Ref(self.alias, column))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementScope:
    """Resolves ``alias.column`` and unambiguous column names.

    `has_window` is true if ``window_start`` and ``window_end`` are available, after a tumbling or sliding
    join; `no_window` is the reason why they are not.

    >>> table = TableSpec(name="t", columns=Schema.of(id="long", at="timestamp"), connector={})
    >>> scope = StatementScope(sources=tuple(FromSource(number=i, alias=a, spec=table) for i, a in enumerate("os")))
    >>> scope.resolve("s", "ID").slot
    ('i', 1, 0)
    >>> print(scope.resolve(None, "id"))
    error[W0216]: ambiguous column 'id': o.id or s.id
     = help: add the alias, for example o.id
    """

    sources: tuple[FromSource, ...]
    has_window: bool = False
    window_padded: bool = False
    no_window: str = ""

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column of a reference, or a finding."""
        if qualifier is not None:
            return self._qualified(qualifier, name)
        # Declared columns first: one of them may be called window_start.
        matches = [(s, i) for s in self.sources if (i := s.columns.find(name)) is not None]
        if len(matches) > 1:
            names = [f"{s.alias}.{s.columns.fields[i].name}" for s, i in matches]
            message = f"ambiguous column {name!r}: {' or '.join(names)}"
            return Diagnostic("W0216", message, help=f"add the alias, for example {names[0]}")
        if matches:
            return _column(*matches[0])
        slot = _WINDOW.get(fold(name))
        if slot is not None:
            return self._window(name, slot)
        return Diagnostic(
            "W0207",
            f"unknown column {name!r} in {self._format_sources()}",
            help=_undeclared(name, self.sources) or _suggest(name, self.names()),
        )

    def names(self) -> tuple[str, ...]:
        """Return ``alias.column`` for every column, and those of the window."""
        # Qualified, so that a suggestion can be pasted even where the name alone is ambiguous.
        columns = (f"{s.alias}.{n}" for s in self.sources for n in s.columns.names)
        return (*columns, *(_WINDOW if self.has_window else ()))

    def star(self, alias: str | None = None) -> tuple[tuple[FromSource, int, Field], ...]:
        """Return the columns of ``*`` or ``alias.*``, in the order of FROM."""
        return tuple(
            (s, i, f)
            for s in self.sources
            if alias is None or fold(s.alias) == fold(alias)
            for i, f in enumerate(s.columns)
        )

    def find(self, alias: str) -> FromSource | None:
        """Return the source with an alias, or None."""
        return next((s for s in self.sources if fold(s.alias) == fold(alias)), None)

    def _qualified(self, qualifier: str, name: str) -> Column | Diagnostic:
        source = self.find(qualifier)
        if source is None:
            return self.unknown_alias(qualifier)
        index = source.columns.find(name)
        if index is None:
            return Diagnostic(
                "W0207",
                f"{source.alias!r} ({source.spec.name}) has no column {name!r}",
                help=_undeclared(name, (source,)) or _suggest(name, source.columns.names),
            )
        return _column(source, index)

    def unknown_alias(self, qualifier: str) -> Diagnostic:
        """Return the finding for an unknown alias."""
        aliases = [s.alias for s in self.sources]
        behind = [s.alias for s in self.sources if fold(s.spec.name) == fold(qualifier)]
        if behind:
            help = f"write {' or '.join(f'{a}.' for a in behind)}"
            return Diagnostic("W0207", f"{qualifier!r} has the alias {behind[0]!r} in this statement", help=help)
        return Diagnostic("W0207", f"unknown source {qualifier!r}", help=_suggest(qualifier, aliases))

    def _window(self, name: str, slot: tuple[str, int]) -> Column | Diagnostic:
        if not self.has_window:
            return Diagnostic(
                "W0207",
                f"unknown column {name!r}: {self.no_window or 'this statement has no window'}",
                help="tumbling and sliding window joins have window_start and window_end",
            )
        return Column(slot, TIMESTAMP, nullable=self.window_padded)

    def _format_sources(self) -> str:
        named = ((s.alias, s.spec.name) for s in self.sources)
        return " and ".join(name if alias == name else f"{alias} ({name})" for alias, name in named)


def _column(source: FromSource, index: int) -> Column:
    return Column.of(column_slot(source.number, index), source.columns.fields[index], padded=source.padded)


def _undeclared(name: str, sources: Sequence[FromSource]) -> str:
    """Return the help for a message time that is used but not declared."""
    timed = [s for s in sources if s.has_message_time]
    if not timed or fold(name) != fold(MESSAGE_TIME):
        return ""
    return f"declare it: CREATE STREAM {timed[0].spec.name} (.., {MESSAGE_TIME} TIMESTAMP)"


def _suggest(name: str, known: Sequence[str]) -> str:
    # A bare name is compared with both forms: with `o.id` as a whole, and with `id` alone.
    bare = {n.rpartition(".")[2].casefold(): n for n in known}
    close = [*find_similar(name, known), *(bare[n.casefold()] for n in find_similar(name, list(bare)))]
    unique = list(dict.fromkeys(close))[:3]
    return f"did you mean {' or '.join(map(repr, unique))}?" if unique else f"names are {format_list(known)}"


def read_sources(job: JobSpec, statement: StatementSpec, findings: Findings) -> tuple[FromSource, ...] | None:
    """Return the sources in the order of FROM, or None after reporting the unknown ones."""
    written = sorted(s.name for s in job.statements)
    entries = [(*statement.first, statement.first_at or statement.at)]
    entries += [(join.input, join.alias, join.at) for join in statement.joins]
    streams = sum(1 for name, _, _ in entries if name in job.streams)
    sources: list[FromSource] = []
    for number, (name, alias, at) in enumerate(entries):
        spec: StreamSpec | TableSpec | None = job.streams.get(name) or job.tables.get(name)
        if spec is None and name in written:
            help = f"declare {name} as an input stream of another job, or join its inputs here"
            findings.add("W2108", f"{name!r} is written by this job and cannot be read in it", at, help)
        elif spec is None:
            help = suggest(name, [*job.streams, *job.tables], "the job defines")
            findings.add("W2010", f"unknown stream or table {name!r}", at, help)
        elif isinstance(spec, StreamSpec):
            # One stream alone, also with tables, is never compared by time.
            spec, time = _resolve_time(spec, findings, is_required=streams > 1)
            sources.append(FromSource(number=number, alias=alias, spec=spec, time=time, at=at))
        else:
            sources.append(FromSource(number=number, alias=alias, spec=spec, at=at))
    return tuple(sources) if len(sources) == len(entries) else None


def _resolve_time(stream: StreamSpec, findings: Findings, *, is_required: bool) -> tuple[StreamSpec, int | None]:
    """Return the stream with its resolved event time, and the index of its column."""
    schema = stream.columns
    if stream.event_time is not None:
        index = schema.find(stream.event_time)
        if index is None and stream.event_time.upper() != MESSAGE_TIME:
            message = f"stream {stream.name!r} has no column {stream.event_time!r} for the event time"
            findings.add("W2114", message, stream.at, suggest(stream.event_time, schema.names, "columns are"))
        return stream, index
    if not is_required:
        return stream, None
    times = [i for i, f in enumerate(schema) if f.dtype in (TIMESTAMP, TIMESTAMP_NTZ)]
    if len(times) == 1:  # a note, because a second TIMESTAMP column would make it ambiguous
        name = schema.fields[times[0]].name
        message = f"stream {stream.name!r} has no event time; its only TIMESTAMP column {name!r} is used"
        findings.add("W2114", message, stream.at, f"add 'event.time.field' = '{name}' to its WITH", severity="note")
        return replace(stream, event_time=name), times[0]
    names = format_list(schema.fields[i].name for i in times) if times else "none"
    message = f"stream {stream.name!r} is joined by time but has no event time; its TIMESTAMP columns: {names}"
    findings.add("W2114", message, stream.at, "add 'event.time.field' = '<column>' to its WITH")
    return stream, None


def find_padded(how: str, place: int) -> list[frozenset[int]]:
    """Return the groups of sources that the join of source `place` may fill with NULL.

    >>> find_padded("full", 2)
    [frozenset({2}), frozenset({0, 1})]
    """
    right = [frozenset({place})] if how in ("left", "full") else []
    return right + ([frozenset(range(place))] if how in ("right", "full") else [])


def map_time_slots(sources: Iterable[FromSource]) -> dict[Hashable, int]:
    """Return the slots of event times, as declared columns and as times, mapped to their sources."""
    streams = [s for s in sources if s.is_stream]
    columns: dict[Hashable, int] = {column_slot(s.number, s.time): s.number for s in streams if s.time is not None}
    return {**columns, **{time_slot(s.number): s.number for s in streams}}
