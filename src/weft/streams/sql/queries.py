"""Builds the StatementSpec of a SELECT: names are resolved, each join gets its options and its time condition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from weft.core.duration import Duration
from weft.core.names import format_list, suggest
from weft.core.source import Source
from weft.core.types import TIMESTAMP, TIMESTAMP_NTZ
from weft.errors import Code, Diagnostic
from weft.joins.spec.asof import AsofOrder
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.joins.spec.values import WindowKind
from weft.streams.sql.options import find_option, read_options
from weft.streams.sql.spec import (
    MESSAGE_TIME,
    Bounds,
    JoinStepSpec,
    LimitsSpec,
    SinkSpec,
    StatementSpec,
    StreamSpec,
    TableSpec,
)
from weft.streams.sql.syntax import JoinSyntax, Name, OptionSyntax, Select, Unparsed, WindowSyntax

_LENGTHS = {
    "interval": ("lower_bound", "upper_bound"),
    "tumbling": ("size",),
    "sliding": ("size", "slide"),
    "session": ("gap",),
}
_EXAMPLES = {"lower_bound": "0s", "upper_bound": "1h", "size": "1h", "slide": "10m", "gap": "30m"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOptions:
    """The options of one join by their names without ``join.``: the valid values, and all as written."""

    values: Mapping[str, Any]
    written: Mapping[str, OptionSyntax]

    def locate(self, name: str) -> Source | None:
        """Return the location of the value of an option."""
        return self.written[name].value_at if name in self.written else None


@dataclass(frozen=True, slots=True)
class Form:
    """A time condition: the clause or options that declare it, their location, and the spec without keys."""

    clause: str
    at: Source
    spec: IntervalSpec | WindowSpec


def _build_form(
    join: JoinSyntax, tail: WindowSyntax | None, options: JoinOptions, order: AsofOrder, findings: list[Diagnostic]
) -> Form | None:
    """Return the form of a join; two different forms are an error.

    `tail` is the WINDOW after all joins if it belongs to this one.
    """
    forms: list[Form] = []
    if join.within is not None:
        # WITHIN (before, after) is written from the left row, so its first duration is the negative lower bound.
        lower, upper = Duration(-join.within.before.microseconds), join.within.after
        if lower <= upper:
            forms.append(Form("WITHIN", join.within.at, _build_interval(join, order, lower, upper)))
    windows = [window for window in (join.window, tail) if window is not None]
    specs = [(window.at, _build_window(join, order, window, options, findings)) for window in windows]
    forms += [Form("WINDOW", at, spec) for at, spec in specs if spec is not None]
    if (by_options := _build_form_by_options(join, order, options, findings)) is not None:
        forms.append(by_options)
    _check_rows(forms, options, findings)
    for other in forms[1:]:
        if other.spec != forms[0].spec:
            message = f"conflicting time conditions: {_describe(forms[0])}, and {_describe(other)}"
            findings.append(Diagnostic("W2106", message, help="remove one of them", at=other.at))
    return forms[0] if forms else None


def _describe(form: Form) -> str:
    spec = form.spec
    if isinstance(spec, IntervalSpec):
        low, high = (Duration.of(d, signed=True) for d in (spec.lower, spec.upper))  # type: ignore[arg-type]  # both are timedeltas
        return f"an interval from {low} to {high} ({form.clause})"
    lengths = (spec.size, spec.slide, spec.gap)
    text = " every ".join(str(Duration.of(d)) for d in lengths if d is not None)  # type: ignore[arg-type]  # timedeltas
    return f"{spec.window} windows of {text} ({form.clause})"


def _build_interval(join: JoinSyntax, order: AsofOrder, lower: Duration, upper: Duration) -> IntervalSpec:
    return IntervalSpec(order=order, lower=lower.to_timedelta(), upper=upper.to_timedelta(), how=join.how)


def _build_window(
    join: JoinSyntax, order: AsofOrder, window: WindowSyntax, options: JoinOptions, findings: list[Diagnostic]
) -> WindowSpec | None:
    size, slide, gap = window.size, window.slide, window.gap
    if any(d is not None and not d.microseconds for d in (size, slide, gap)):
        return None  # already reported by the parser
    if size is not None and slide is not None and slide > size:
        message = f"the slide {slide} is longer than the size {size}: some rows would be in no window"
        help = f"write a slide of {size} or less"
        findings.append(Diagnostic("W0305", message, help=help, at=window.at))
        return None
    return WindowSpec(
        order=order,
        window=window.kind,
        size=_to_timedelta(size),
        slide=_to_timedelta(slide),
        gap=_to_timedelta(gap),
        how=join.how,
        per_window=window.kind == "sliding" and options.values.get("rows") == "window",
    )


def _to_timedelta(length: Duration | None) -> dt.timedelta | None:
    return None if length is None else length.to_timedelta()


def _build_form_by_options(
    join: JoinSyntax, order: AsofOrder, options: JoinOptions, findings: list[Diagnostic]
) -> Form | None:
    """Return the form that ``join.type`` and the lengths declare, if they do."""
    lengths = [name for name in _EXAMPLES if name in options.values]
    kind: WindowKind | Literal["interval"] | None = options.values.get("type") or _infer_kind(lengths)
    if kind is None or (kind == "interval" and not lengths):
        return None  # with 'join.type' = 'interval' alone, the bound is in ON
    first = options.written["type" if "type" in options.written else lengths[0]]
    required = _LENGTHS[kind]
    noun = f"{'an' if kind == 'interval' else 'a'} {kind} join"
    extra = [options.written[name] for name in lengths if name not in required]
    for option in extra:
        help = f"{noun} takes {' and '.join(repr('join.' + n) for n in required)}"
        message = f"{option.key!r} is not an option of {noun}"
        findings.append(Diagnostic("W2106", message, help=help, at=option.key_at))
    missing = [name for name in required if name not in options.values]
    # An option with an invalid value is reported as such, and not as missing too.
    if missing and not any(name in options.written for name in missing):
        message = f"{noun} by options needs {' and '.join(repr(f'join.{name}') for name in missing)}"
        clause = ", ".join(f"'join.{name}' = '{_EXAMPLES[name]}'" for name in missing)
        help = f"add it with the length that your data needs: {clause}"
        findings.append(Diagnostic("W2008", message, help=help, at=first.value_at))
    if extra or missing:
        return None
    values = {name: options.values[name] for name in required}
    keys = " and ".join(repr(options.written[name].key) for name in required)
    if kind != "interval":
        window = WindowSyntax(kind=kind, at=first.value_at, **values)
        spec = _build_window(join, order, window, options, findings)
        return None if spec is None else Form(keys, first.value_at, spec)
    lower, upper = values["lower_bound"], values["upper_bound"]
    if lower > upper:
        message = f"empty bound: it starts at {lower} and ends at {upper}"
        help = f"write '{upper}' as the lower and '{lower}' as the upper bound"
        findings.append(Diagnostic("W2105", message, help=help, at=options.locate("lower_bound")))
        return None
    return Form(keys, first.value_at, _build_interval(join, order, lower, upper))


def _infer_kind(lengths: list[str]) -> WindowKind | Literal["interval"] | None:
    # The slide first: a sliding window has a size too.
    kinds: dict[str, WindowKind] = {"slide": "sliding", "size": "tumbling", "gap": "session"}
    return next((kind for name, kind in kinds.items() if name in lengths), "interval" if lengths else None)


def _check_rows(forms: list[Form], options: JoinOptions, findings: list[Diagnostic]) -> None:
    option = options.written.get("rows")
    is_sliding = any(isinstance(f.spec, WindowSpec) and f.spec.window == "sliding" for f in forms)
    if option is not None and options.values.get("rows") == "window" and not is_sliding:
        message = f"option {option.key!r} has no effect here: it applies to sliding windows"
        findings.append(Diagnostic("W2005", message, help="remove it", at=option.key_at))


Input = StreamSpec | TableSpec | SinkSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The definitions of a job by folded names, and what its invalid statements may define."""

    inputs: Mapping[str, Input]
    default_bound: Bounds | None
    unparsed: Unparsed

    def find(self, name: Name, findings: list[Diagnostic]) -> Input | None:
        """Return the input that a name after FROM or JOIN refers to."""
        definition = self.inputs.get(name.text.casefold())
        # An invalid CREATE statement may define the name; its own error is enough.
        if definition is None and not self.unparsed.may_define(name.text):
            known = [i.name for i in self.inputs.values() if not isinstance(i, SinkSpec)]
            help = suggest(name.text, known, "the job defines", most=1)
            message = f"unknown stream or table {name.text!r}"
            findings.append(Diagnostic("W2010", message, help=help, at=name.at))
        return definition


class StatementBuilder:
    """Builds the spec of a query; its join options are in its own WITH and in that of its sink."""

    def __init__(
        self,
        query: Select,
        sink: SinkSpec,
        sink_options: tuple[OptionSyntax, ...],
        names: Names,
        findings: list[Diagnostic],
    ) -> None:
        self.query, self.sink, self.names, self.findings = query, sink, names, findings
        self.sources = [query.source, *(join.source for join in query.joins)]
        self.inputs = [names.find(source.name, findings) for source in self.sources]
        self.options = self._merge_options(sink_options)
        self.values = read_options(self.options, "join", findings)

    def add_finding(self, code: Code, message: str, help: str, at: Source | None) -> None:
        """Add an error."""
        self.findings.append(Diagnostic(code, message, help=help, at=at))

    def build(self) -> StatementSpec:
        """Return the spec after adding all findings."""
        self._check_aliases()
        self._check_option_aliases()
        window_join = self._find_window_join()
        joins = [
            self._build_join(number, join, self.query.window if window_join == number else None)
            for number, join in enumerate(self.query.joins)
        ]
        return StatementSpec(
            name=self.sink.name,
            sink=self.sink,
            first=self._resolve_source(0),
            items=self.query.items,
            joins=tuple(joins),
            where=self.query.where,
            emit=self.query.emit,
            first_at=self.query.source.at,
            emit_at=self.query.emit_at,
            at=self.sink.at or self.query.source.at,
        )

    def _resolve_source(self, number: int) -> tuple[str, str]:
        """Return the defined name of a source and its alias."""
        definition, source = self.inputs[number], self.sources[number]
        return (source.name.text if definition is None else definition.name), source.alias.text

    def _check_aliases(self) -> None:
        folded: set[str] = set()
        for source in self.sources:
            name = source.alias.text
            if name.casefold() in folded:
                help = f"write {source.name.text} AS another_name"
                self.add_finding("W2009", f"duplicate alias {name!r}", help, source.alias.at)
            folded.add(name.casefold())

    # -- options

    def _merge_options(self, sink_options: tuple[OptionSyntax, ...]) -> tuple[OptionSyntax, ...]:
        """Return the join options of the sink and of the query."""
        options = {o.key: o for o in sink_options if o.key.startswith("join.")}
        for option in self.query.options:
            other = options.get(option.key)
            # Both statements of `CREATE STREAM .. WITH (..) AS SELECT .. WITH (..)` may repeat an option.
            if other is not None and other.value != option.value:
                message = f"option {option.key!r} is {other.value!r} in the first WITH but {option.value!r} here"
                self.add_finding("W2003", message, "remove one of them", option.value_at)
            options[option.key] = option
        return tuple(options.values())

    def _check_option_aliases(self) -> None:
        aliases = [join.source.alias.text for join in self.query.joins]
        for option in self.options:
            if option.key not in self.values:
                continue
            alias = _parse_alias(option.key)
            if not aliases:
                message = f"option {option.key!r} applies to a join, but the statement has none"
                self.add_finding("W2005", message, "remove it", option.key_at)
            elif alias is not None and alias.casefold() not in {a.casefold() for a in aliases}:
                help = f"write join.<alias>.<key> with the alias of a joined source: {format_list(aliases)}"
                self.add_finding("W2005", f"option {option.key!r} matches no join", help, option.key_at)

    def _select_options(self, alias: str) -> JoinOptions:
        """Return the options of the join of `alias`; those with its alias take precedence."""
        values, written = {}, {}
        known = [option for option in self.options if find_option(option.key, ("join",)) is not None]
        # Sorted, so that options with an alias come after the general ones and replace them.
        for option in sorted(known, key=lambda option: _parse_alias(option.key) is not None):
            target = _parse_alias(option.key)
            if target is None or target.casefold() == alias.casefold():
                name = option.key.rsplit(".", 1)[1]
                written[name] = option
                if option.key in self.values:
                    values[name] = self.values[option.key]
        return JoinOptions(values=values, written=written)

    # -- joins

    def _is_table(self, number: int) -> bool:
        return isinstance(self.inputs[number], TableSpec)

    def _find_stream_joins(self) -> list[int]:
        """Return the numbers of the joins of two streams."""
        return [
            number
            for number in range(len(self.query.joins))
            # An unknown source counts as a stream, so that the clauses of its join are still checked.
            if not self._is_table(number + 1) and not all(self._is_table(i) for i in range(number + 1))
        ]

    def _find_window_join(self) -> int | None:
        """Return the number of the join that a WINDOW after all joins belongs to."""
        window = self.query.window
        if window is None:
            return None
        joins = self._find_stream_joins()
        if len(joins) == 1:
            return joins[0]
        if joins:
            message = f"ambiguous WINDOW: the statement has {len(joins)} joins of streams"
            self.add_finding("W2012", message, "write it directly after the ON of its join", window.at)
        else:
            message = "WINDOW applies to a join of two streams, but the statement has none"
            self.add_finding("W2012", message, "remove it", window.at)
        return None

    def _build_join(self, number: int, join: JoinSyntax, tail: WindowSyntax | None) -> JoinStepSpec:
        name, alias = self._resolve_source(number + 1)
        options = self._select_options(alias)
        form, values = None, options.values
        if number in self._find_stream_joins():
            # As in Flink, a window may name the time column; it must be the one that the stream declares.
            for window in (join.window, tail):
                if window is not None:
                    self._check_time_column(window, number)
            form = _build_form(join, tail, options, self._build_order(number), self.findings)
        else:
            self._refuse_time(join)
        return JoinStepSpec(
            how=join.how,
            input=name,
            alias=alias,
            on=join.on,
            form=None if form is None else form.spec,
            limits=LimitsSpec(
                max_state_rows=values.get("max_state_rows"),
                max_rows_per_key=values.get("max_rows_per_key"),
                eviction=values.get("eviction", "oldest"),
            ),
            missing_event_time=values.get("missing_event_time", "reject"),
            retention=values.get("retention"),
            default_bound=values.get("default_bound", self.names.default_bound),
            form_at=None if form is None else form.at,
            retention_at=options.locate("retention"),
            how_at=join.how_at,
            at=join.source.at,
        )

    def _refuse_time(self, join: JoinSyntax) -> None:
        for clause in (join.within, join.window):
            if clause is not None:
                word = "WITHIN" if clause is join.within else "WINDOW"
                message = f"{word} after a join with a table, whose rows have no event time"
                self.add_finding("W2012", message, "write it directly after the ON of its join", clause.at)

    def _build_order(self, number: int) -> AsofOrder:
        """Return the declared event times; the planner replaces them with the resolved ones."""
        left = next((_find_time(i) for i in self.inputs[: number + 1] if isinstance(i, StreamSpec)), None)
        return AsofOrder(left or "event_time", _find_time(self.inputs[number + 1]) or "event_time")

    def _check_time_column(self, window: WindowSyntax, number: int) -> None:
        """Report a column of a WINDOW that is not the event time of a side."""
        if window.column is None:
            return
        sides = list(zip(self.sources, self.inputs, strict=True))[: number + 2]
        if window.column_of is not None:
            sides = [s for s in sides if s[0].alias.text.casefold() == window.column_of.text.casefold()]
        times = [_find_time(i) for _, i in sides if isinstance(i, StreamSpec)]
        if any(time is not None and time.casefold() == window.column.text.casefold() for time in times):
            return
        known = [
            f"{s.alias.text}.{_find_time(i)}" for s, i in zip(self.sources, self.inputs, strict=True) if _find_time(i)
        ]
        message = f"{window.column.text!r} is not an event time of the join"
        help = f"remove the column; event times are {format_list(known)}"
        self.add_finding("W2001", message, help, window.column.at)


def _parse_alias(key: str) -> str | None:
    """Return the alias in ``join.<alias>.<key>``."""
    parts = key.split(".")
    return parts[1] if len(parts) > 2 else None


def _find_time(stream: Input | None) -> str | None:
    """Return the declared event time of a stream, or its only TIMESTAMP column."""
    if not isinstance(stream, StreamSpec):
        return None
    if stream.event_time is not None and stream.event_time != MESSAGE_TIME:
        return stream.event_time
    times = [f.name for f in stream.columns if f.dtype in (TIMESTAMP, TIMESTAMP_NTZ)]
    return times[0] if len(times) == 1 and stream.event_time is None else None
