"""The sources of a statement: streams and tables of FROM and JOIN, with their event times."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

from weft.core.names import listed, near
from weft.core.source import Source
from weft.core.types import TIMESTAMP, TIMESTAMP_NTZ, Schema
from weft.expr import Ref, render
from weft.streams.plan.findings import Found
from weft.streams.plan.resolved import column, event_time
from weft.streams.plan.scope import Named
from weft.streams.sql.spec import MESSAGE_TIME, JobSpec, StatementSpec, StreamSpec, TableSpec

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


def read_sources(job: JobSpec, statement: StatementSpec, found: Found) -> tuple[FromSource, ...] | None:
    """Return the sources in the order of FROM, or None after noting which are not there."""
    written = sorted(s.name for s in job.statements)
    said = [(*statement.first, statement.first_at or statement.at)]
    said += [(join.input, join.alias, join.at) for join in statement.joins]
    streams = sum(1 for name, _, _ in said if name in job.streams)
    sources: list[FromSource] = []
    for number, (name, alias, at) in enumerate(said):
        spec: StreamSpec | TableSpec | None = job.streams.get(name) or job.tables.get(name)
        if spec is None and name in written:
            found.add(
                "W2108",
                f"{name!r} is written by this job, it cannot be read in it",
                at,
                f"declare what {name} writes as a stream of another job, or join its inputs here",
            )
        elif spec is None:
            known = [*job.streams, *job.tables]
            close = near(name, known)
            help = f"did you mean {' or '.join(map(repr, close))}?" if close else f"there is {listed(known)}"
            found.add("W2010", f"there is no stream or table {name!r}", at, help)
        elif isinstance(spec, StreamSpec):
            spec, time = _timed(spec, found, wanted=streams > 1)
            sources.append(FromSource(number=number, alias=alias, spec=spec, time=time, at=at))
        else:
            sources.append(FromSource(number=number, alias=alias, spec=spec, at=at))
    return tuple(sources) if len(sources) == len(said) else None


def _timed(stream: StreamSpec, found: Found, *, wanted: bool) -> tuple[StreamSpec, int | None]:
    """Return the stream with its event time settled, and the column of it."""
    schema = stream.columns
    if stream.event_time is not None:
        index = schema.find(stream.event_time)
        if index is None and stream.event_time.upper() != MESSAGE_TIME:
            close = near(stream.event_time, schema.names)
            help = (
                f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"it has {listed(schema.names)}"
            )
            found.add(
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
        found.add(
            "W2114",
            f"stream {stream.name!r} says no event time: {name!r} is taken, its only TIMESTAMP column",
            stream.at,
            f"write 'event.time.field'='{name}' in its WITH",
            severity="note",
        )
        return replace(stream, event_time=name), times[0]
    names = listed(schema.fields[i].name for i in times) if times else "none"
    found.add(
        "W2114",
        f"stream {stream.name!r} is joined by time but says no event time; its TIMESTAMP columns: {names}",
        stream.at,
        "write 'event.time.field'='<column>' in its WITH",
    )
    return stream, None


def time_slots(sources: Iterable[FromSource]) -> dict[Hashable, int]:
    """Return the slots of event times, as declared columns and as times, each with its source."""
    streams = [s for s in sources if s.is_stream]
    columns: dict[Hashable, int] = {column(s.number, s.time): s.number for s in streams if s.time is not None}
    return {**columns, **{event_time(s.number): s.number for s in streams}}
