"""From the statements of a job to its specs: every name found, every option typed.

::

    CREATE STREAM a (..) WITH (..)                 StreamSpec a, or the SinkSpec when INSERT INTO writes it
    CREATE TABLE t (..) WITH (..)                  TableSpec t
    CREATE STREAM b WITH (..) AS SELECT ..         StatementSpec b with its SinkSpec
    INSERT INTO a SELECT ..                        StatementSpec a
    SELECT ..                                      StatementSpec result, printed
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap
from weft.core.names import find_similar, format_list
from weft.core.paths import escapes_folder
from weft.core.source import Source
from weft.errors import Code, Diagnostic, StreamSqlError
from weft.streams.sql.job import in_order, read_job_text, read_with_mistakes
from weft.streams.sql.options import read_options
from weft.streams.sql.queries import Input, Names, printed, statement_spec
from weft.streams.sql.relations import sink_spec, stream_spec, table_spec
from weft.streams.sql.spec import JobSpec, SinkSpec, StatementSpec, StreamSpec, TableSpec
from weft.streams.sql.syntax import (
    CreateStream,
    CreateTable,
    Explain,
    Insert,
    JobSyntax,
    Name,
    Query,
    SaidOption,
    Select,
    SetOption,
)

_DEFAULT_BOUND = "join.default_bound"


def read_spec(text: str, *, file: str | None = None, env: Mapping[str, str] = {}) -> JobSpec:
    """Read a job and look up its names; every mistake of both is in one `StreamSqlError`.

    >>> job = read_spec(
    ...     "CREATE STREAM a (id INT, t TIMESTAMP) WITH ('path' = 'a.json'); "
    ...     "INSERT INTO b SELECT * FROM a; CREATE STREAM b WITH ('connector' = 'memory')"
    ... )
    >>> list(job.streams), [s.name for s in job.statements]
    (['a'], ['b'])
    """
    found = read_partly(text, file=file, env=env)
    if found.mistakes:
        raise StreamSqlError(found.mistakes)
    return found.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Partly:
    """A job as far as it reads: its specs, every mistake, and the statements that a mistake touches.

    Statements whose sources are not all there are left out of the spec.
    """

    spec: JobSpec
    mistakes: tuple[Diagnostic, ...]
    doubtful: frozenset[str]


def read_partly(text: str, *, file: str | None = None, env: Mapping[str, str] = {}) -> Partly:
    """Read what can be read of a job, so that a mistake in one statement hides no mistake in another."""
    syntax, mistakes = read_with_mistakes(text, file=file, env=env)
    lowering = _Lowering(syntax, mistakes)
    spec = lowering.spec()
    if not lowering.mistakes:
        return Partly(spec=spec, mistakes=(), doubtful=frozenset())
    wrong = [d.at.start for d in lowering.mistakes if isinstance(d.at, Source)]
    bad = [s for s in syntax.statements if any(s.at.start <= at <= s.at.end for at in wrong)]
    unread = syntax.unread
    # Of the settings, a bound for all joins is the one that decides what a statement lacks.
    settings = [s.option.key for s in bad if isinstance(s, SetOption)]
    unbound = unread.settings or any(find_similar(key, (_DEFAULT_BOUND,), most=1) for key in settings)
    everywhere = unread.everything or unbound

    def is_touched(statement: StatementSpec) -> bool:
        places = [statement.at, statement.sink.at, *(_places(spec, statement))]
        inside = [at for at in places if at is not None]
        named = (statement.name, statement.first[0], *(j.input for j in statement.joins))
        if everywhere or any(unread.may_define(name) for name in named):
            return True
        return any(s.at.start <= at.start <= s.at.end for s in bad for at in inside)

    there = {*spec.streams, *spec.tables}
    kept = [s for s in spec.statements if {s.first[0], *(j.input for j in s.joins)} <= there]
    return Partly(
        spec=replace(spec, statements=tuple(kept), explains=()),
        mistakes=in_order(lowering.mistakes),
        doubtful=frozenset(s.name for s in kept if is_touched(s)),
    )


def _places(spec: JobSpec, statement: StatementSpec) -> Iterator[Source | None]:
    for name in (statement.first[0], *(join.input for join in statement.joins)):
        source = spec.streams.get(name) or spec.tables.get(name)
        yield None if source is None else source.at


def load_spec(path: Path, env: Mapping[str, str]) -> JobSpec:
    """Read the job of a file and look up its names."""
    return read_spec(read_job_text(path), file=str(path), env=env)


def job_spec(syntax: JobSyntax) -> JobSpec:
    """Return the specs of a job that reads; what its names and options say wrongly is one `StreamSqlError`."""
    return _Lowering(syntax, ()).whole()


class _Lowering:
    def __init__(self, syntax: JobSyntax, mistakes: Iterable[Diagnostic]) -> None:
        self.syntax, self.unread = syntax, syntax.unread
        self.mistakes = list(mistakes)
        self.options: dict[str, tuple[SaidOption, ...]] = {}
        self.inputs: dict[str, Input] = {}

    def note(self, code: Code, message: str, help: str, name: Name) -> None:
        self.mistakes.append(Diagnostic(code, message, help=help, at=name.at))

    def whole(self) -> JobSpec:
        spec = self.spec()
        if self.mistakes:
            raise StreamSqlError(in_order(self.mistakes))
        return spec

    def spec(self) -> JobSpec:
        settings = self._settings()
        self._define(settings.get("idle.timeout"))
        names = Names(inputs=self.inputs, default_bound=settings.get(_DEFAULT_BOUND), unread=self.unread)
        statements = tuple(self._statements(names))
        explains = tuple(self._explains(names, statements))
        if not statements and not explains and not self.mistakes:
            help = "write INSERT INTO sink SELECT .., or CREATE STREAM sink WITH (..) AS SELECT .."
            at = Source(self.syntax.text, 0, 0, self.syntax.file)
            self.mistakes.append(Diagnostic("W2015", "the job has nothing to run", help=help, at=at))
        name = "job" if self.syntax.file is None else Path(self.syntax.file).stem
        usual = {"trigger": Duration.parse("1s"), "checkpoint": f".weft/streams/{name}"}
        return JobSpec(
            name=name,
            streams=FrozenMap({i.name: i for i in self.inputs.values() if isinstance(i, StreamSpec)}),
            tables=FrozenMap({i.name: i for i in self.inputs.values() if isinstance(i, TableSpec)}),
            statements=statements,
            explains=explains,
            settings=FrozenMap(usual | dict(settings)),
        )

    def _settings(self) -> FrozenMap[str, Any]:
        said = [s.option for s in self.syntax.statements if isinstance(s, SetOption)]
        seen: dict[str, SaidOption] = {}
        for option in said:
            if option.key in seen:
                message = f"SET {option.key!r} stands twice"
                self.mistakes.append(
                    Diagnostic("W2003", message, help="leave one of them out", at=option.key_at)
                )
            seen[option.key] = option
        settings = read_options(tuple(seen.values()), "job", self.mistakes)
        folder = str(settings.get("checkpoint", ""))
        if escapes_folder(folder):
            help = "write a folder of the workspace, or an absolute path"
            message = f"the checkpoint {folder!r} leads out of the workspace"
            self.mistakes.append(Diagnostic("W2017", message, help=help, at=seen["checkpoint"].value_at))
        return settings

    # -- what the job defines

    def _define(self, idle: Duration | None) -> None:
        written = {s.sink.text.casefold() for s in self.syntax.statements if isinstance(s, Insert)}
        written |= self.unread.written
        first: dict[str, Name] = {}
        for statement in self.syntax.statements:
            if not isinstance(statement, CreateStream | CreateTable):
                continue
            name = statement.name
            key = name.text.casefold()
            if key in first:
                help = f"line {first[key].at.line} defines it already; give one of them another name"
                self.note("W2009", f"{name.text!r} is defined twice", help, name)
                continue
            first[key] = name
            if isinstance(statement, CreateTable):
                self.inputs[key] = table_spec(statement, self.mistakes)
            elif statement.query is not None or key in written:
                # Of a stream that is written and read, the planner tells that, not which options are too many.
                told = [] if statement.query is None and key in self._read() else self.mistakes
                self.inputs[key] = sink_spec(statement, told)
                self.options[key] = statement.options
            else:
                self.inputs[key] = stream_spec(statement, idle, self.mistakes)

    def _read(self) -> set[str]:
        queries = [q for s in self.syntax.statements if (q := getattr(s, "query", None)) is not None]
        sources = [source for q in queries for source in (q.source, *(join.source for join in q.joins))]
        return {source.name.text.casefold() for source in sources}

    # -- what it runs and explains

    def _statements(self, names: Names) -> Iterator[StatementSpec]:
        made: dict[str, int] = {}
        alone = 0
        for statement in self.syntax.statements:
            sink: SinkSpec | None = None
            name: Name | None = None
            match statement:
                case CreateStream(name=Name() as name, query=Select() as query):
                    sink = self._sink(name)
                case Insert(sink=Name() as name, query=query):
                    sink = self._sink(name)
                case Query(query=query):
                    alone += 1
                    sink = printed("result" if alone == 1 else f"result_{alone}")
                case _:
                    continue
            if sink is None:
                continue
            if name is not None:
                if sink.name.casefold() in made:
                    help = f"line {made[sink.name.casefold()]} writes it already; one statement writes a sink"
                    self.note("W2009", f"sink {sink.name!r} is written twice", help, name)
                    continue
                made[sink.name.casefold()] = name.at.line
            said = self.options.get(sink.name.casefold(), ())
            yield statement_spec(query, sink, said, names, self.mistakes)

    def _sink(self, name: Name) -> SinkSpec | None:
        found = self.inputs.get(name.text.casefold())
        if isinstance(found, SinkSpec):
            return found
        if isinstance(found, TableSpec):
            help = f"write CREATE STREAM {name.text} WITH (..) for a sink"
            self.note("W2010", f"{name.text!r} is a table; a job writes streams", help, name)
        elif found is None and not self.unread.may_define(name.text):
            close = find_similar(
                name.text, [i.name for i in self.inputs.values() if isinstance(i, SinkSpec)], most=1
            )
            help = f"did you mean {close[0]!r}?\n" if close else ""
            help += f"say where it lies: CREATE STREAM {name.text} WITH ('path' = 'out/{name.text}', 'format' = 'parquet')"
            self.note("W2010", f"there is no sink {name.text!r}", help, name)
        return None

    def _explains(self, names: Names, statements: tuple[StatementSpec, ...]) -> Iterator[StatementSpec]:
        number = 0
        for statement in self.syntax.statements:
            if not isinstance(statement, Explain):
                continue
            if statement.query is not None:
                number += 1
                sink = printed("explain" if number == 1 else f"explain_{number}")
                yield statement_spec(statement.query, sink, (), names, self.mistakes)
            elif statement.name is not None:
                wanted = statement.name
                found = [s for s in statements if s.name.casefold() == wanted.text.casefold()]
                yield from found
                if not found and not self.unread.may_define(wanted.text):
                    known = [s.name for s in statements]
                    help = f"the job writes {format_list(known)}"
                    self.note("W2010", f"no statement writes {wanted.text!r}", help, wanted)
