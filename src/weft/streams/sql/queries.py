"""SELECT as a StatementSpec: names looked up, each join with its time part (WITHIN, WINDOW or options) and options."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap
from weft.core.names import find_similar, format_list
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
    ItemSpec,
    JoinStepSpec,
    LimitsSpec,
    SinkSpec,
    StatementSpec,
    StreamSpec,
    TableSpec,
)
from weft.streams.sql.syntax import (
    Item,
    JoinSyntax,
    Name,
    SaidOption,
    Select,
    SourceSyntax,
    Unread,
    WindowSyntax,
)

_NEEDS = {
    "interval": ("lower_bound", "upper_bound"),
    "tumbling": ("size",),
    "sliding": ("size", "slide"),
    "session": ("gap",),
}
_EXAMPLES = {"lower_bound": "0s", "upper_bound": "1h", "size": "1h", "slide": "10m", "gap": "30m"}
_SHAPES = tuple(_EXAMPLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOptions:
    """The options that hold for one join, by their names without ``join.``, and where they stand."""

    values: Mapping[str, Any]
    said: Mapping[str, SaidOption]

    def at(self, name: str) -> Source | None:
        """Return where the value of an option stands."""
        return self.said[name].value_at if name in self.said else None


@dataclass(frozen=True, slots=True)
class Form:
    """A time part: what says it, where, and the spec without keys."""

    words: str
    at: Source
    spec: IntervalSpec | WindowSpec


def form_of(
    join: JoinSyntax,
    tail: WindowSyntax | None,
    options: JoinOptions,
    order: AsofOrder,
    mistakes: list[Diagnostic],
) -> Form | None:
    """Return the one form that is said of a join; two that differ are a mistake.

    `tail` is the WINDOW after the joins when it means this one.
    """
    forms: list[Form] = []
    if join.within is not None:
        lower, upper = Duration(-join.within.before.microseconds), join.within.after
        if lower <= upper:
            forms.append(Form("WITHIN", join.within.at, _interval(join, order, lower, upper)))
    windows = [window for window in (join.window, tail) if window is not None]
    read = [(window.at, _window(join, order, window, options, mistakes)) for window in windows]
    forms += [Form("WINDOW", at, spec) for at, spec in read if spec is not None]
    if (by_options := _by_options(join, order, options, mistakes)) is not None:
        forms.append(by_options)
    _check_rows(forms, options, mistakes)
    for other in forms[1:]:
        if other.spec != forms[0].spec:
            message = f"two forms that differ: {_said(forms[0])}, and {_said(other)}"
            mistakes.append(Diagnostic("W2106", message, help="leave one of the two out", at=other.at))
    return forms[0] if forms else None


def _said(form: Form) -> str:
    spec = form.spec
    if isinstance(spec, IntervalSpec):
        low, high = (Duration.of(d, signed=True) for d in (spec.lower, spec.upper))  # type: ignore[arg-type]  # both are timedeltas
        return f"an interval from {low} to {high} ({form.words})"
    lengths = (spec.size, spec.slide, spec.gap)
    told = " every ".join(str(Duration.of(d)) for d in lengths if d is not None)  # type: ignore[arg-type]  # timedeltas
    return f"{spec.window} windows of {told} ({form.words})"


def _interval(join: JoinSyntax, order: AsofOrder, lower: Duration, upper: Duration) -> IntervalSpec:
    return IntervalSpec(order=order, lower=lower.to_timedelta(), upper=upper.to_timedelta(), how=join.how)


def _window(
    join: JoinSyntax,
    order: AsofOrder,
    window: WindowSyntax,
    options: JoinOptions,
    mistakes: list[Diagnostic],
) -> WindowSpec | None:
    size, slide, gap = window.size, window.slide, window.gap
    if any(d is not None and not d.microseconds for d in (size, slide, gap)):
        return None  # a mistake that is noted
    if size is not None and slide is not None and slide > size:
        message = f"the slide {slide} is longer than the size {size}: some times would be in no window"
        help = f"write a slide of {size} or less"
        mistakes.append(Diagnostic("W0305", message, help=help, at=window.at))
        return None
    return WindowSpec(
        order=order,
        window=window.kind,
        size=_distance(size),
        slide=_distance(slide),
        gap=_distance(gap),
        how=join.how,
        per_window=window.kind == "sliding" and options.values.get("rows") == "window",
    )


def _distance(length: Duration | None) -> dt.timedelta | None:
    return None if length is None else length.to_timedelta()


def _by_options(
    join: JoinSyntax, order: AsofOrder, options: JoinOptions, mistakes: list[Diagnostic]
) -> Form | None:
    """Return the form that ``join.type`` and its lengths say, if they do."""
    shapes = [name for name in _SHAPES if name in options.values]
    kind: WindowKind | Literal["interval"] | None = options.values.get("type") or _kind_of(shapes)
    if kind is None or (kind == "interval" and not shapes):
        return None  # 'join.type' = 'interval' alone: the bound stands in ON
    anchor = options.said["type" if "type" in options.said else shapes[0]]

    def note(code: Code, message: str, help: str, at: Source | None) -> None:
        mistakes.append(Diagnostic(code, message, help=help, at=at))

    article = "an" if kind == "interval" else "a"
    strange = [name for name in shapes if name not in _NEEDS[kind]]
    for name in strange:
        said = options.said[name]
        help = f"{article} {kind} join has {' and '.join(repr('join.' + n) for n in _NEEDS[kind])}"
        note("W2106", f"{said.key!r} does not belong to {article} {kind} join", help, said.key_at)
    missing = [name for name in _NEEDS[kind] if name not in options.values]
    if missing and not any(name in options.said for name in missing):
        needs = " and ".join(repr(f"join.{name}") for name in missing)
        clause = ", ".join(f"'join.{name}' = '{_EXAMPLES[name]}'" for name in missing)
        message = f"{article} {kind} join by options needs {needs}"
        note("W2008", message, f"add, with the length that is right: {clause}", anchor.value_at)
    if strange or missing:
        return None
    lengths = {name: options.values[name] for name in _NEEDS[kind]}
    words = " and ".join(repr(options.said[name].key) for name in _NEEDS[kind])
    if kind == "interval":
        lower, upper = lengths["lower_bound"], lengths["upper_bound"]
        if lower > upper:
            message = f"the bound from {lower} to {upper} leaves nothing: it ends before it starts"
            note(
                "W2105",
                message,
                f"write '{upper}' as lower and '{lower}' as upper bound",
                options.at("lower_bound"),
            )
            return None
        return Form(words, anchor.value_at, _interval(join, order, lower, upper))
    window = WindowSyntax(kind=kind, at=anchor.value_at, **lengths)
    spec = _window(join, order, window, options, mistakes)
    return None if spec is None else Form(words, anchor.value_at, spec)


def _kind_of(shapes: list[str]) -> WindowKind | Literal["interval"] | None:
    if "slide" in shapes:
        return "sliding"
    if "size" in shapes:
        return "tumbling"
    if "gap" in shapes:
        return "session"
    return "interval" if shapes else None


def _check_rows(forms: list[Form], options: JoinOptions, mistakes: list[Diagnostic]) -> None:
    said = options.said.get("rows")
    sliding = any(isinstance(f.spec, WindowSpec) and f.spec.window == "sliding" for f in forms)
    if said is not None and options.values.get("rows") == "window" and not sliding:
        message = f"option {said.key!r} says nothing here: it belongs to sliding windows"
        mistakes.append(Diagnostic("W2005", message, help="leave it out", at=said.key_at))


Input = StreamSpec | TableSpec | SinkSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a job defines, by folded names, and what its statements that do not read may define."""

    inputs: Mapping[str, Input]
    default_bound: Bounds | None
    unread: Unread

    def find(self, name: Name, mistakes: list[Diagnostic]) -> Input | None:
        """Return what a name after FROM or JOIN means."""
        found = self.inputs.get(name.text.casefold())
        if found is None and not self.unread.may_define(name.text):
            known = [i.name for i in self.inputs.values() if not isinstance(i, SinkSpec)]
            close = find_similar(name.text, known, most=1)
            help = f"did you mean {close[0]!r}?" if close else f"the job has {format_list(known)}"
            message = f"there is no stream or table {name.text!r}"
            mistakes.append(Diagnostic("W2010", message, help=help, at=name.at))
        return found


def statement_spec(
    query: Select,
    sink: SinkSpec,
    said: tuple[SaidOption, ...],
    names: Names,
    mistakes: list[Diagnostic],
) -> StatementSpec:
    """Return the spec of a query; `said` are the options of its sink, of which the joins' are read here."""
    return _Query(query, sink, said, names, mistakes).spec()


class _Query:
    def __init__(
        self,
        query: Select,
        sink: SinkSpec,
        said: tuple[SaidOption, ...],
        names: Names,
        mistakes: list[Diagnostic],
    ) -> None:
        self.query, self.sink, self.names, self.mistakes = query, sink, names, mistakes
        self.sources = [query.source, *(join.source for join in query.joins)]
        self.inputs = [names.find(source.name, mistakes) for source in self.sources]
        self.said = self._join_options(said)
        self.values = read_options(self.said, "join", mistakes)

    def note(self, code: Code, message: str, help: str, at: Source | None) -> None:
        self.mistakes.append(Diagnostic(code, message, help=help, at=at))

    def spec(self) -> StatementSpec:
        self._check_aliases()
        self._check_addressed()
        tail_join = self._meant_by_tail()
        joins = [
            self._join(number, join, self.query.window if tail_join == number else None)
            for number, join in enumerate(self.query.joins)
        ]
        return StatementSpec(
            name=self.sink.name,
            sink=self.sink,
            first=self._named(0),
            items=tuple(_item(item) for item in self.query.items),
            joins=tuple(joins),
            where=self.query.where,
            emit=self.query.emit,
            first_at=self.query.source.at,
            emit_at=self.query.emit_at,
            at=self.sink.at or self.query.source.at,
        )

    def _named(self, number: int) -> tuple[str, str]:
        found, source = self.inputs[number], self.sources[number]
        return (source.name.text if found is None else found.name), source.alias.text

    def _check_aliases(self) -> None:
        seen: dict[str, SourceSyntax] = {}
        for source in self.sources:
            name = source.alias.text
            if name.casefold() in seen:
                help = f"write {source.name.text} AS another_name"
                self.note("W2009", f"two sources are called {name!r}", help, source.alias.at)
            seen.setdefault(name.casefold(), source)

    # -- options

    def _join_options(self, of_sink: tuple[SaidOption, ...]) -> tuple[SaidOption, ...]:
        """Return the options of joins, from the WITH of the sink and from that of the query."""
        found: dict[str, SaidOption] = {o.key: o for o in of_sink if o.key.startswith("join.")}
        for option in self.query.options:
            other = found.get(option.key)
            if other is not None and other.value != option.value:
                message = (
                    f"option {option.key!r} is {other.value!r} in the first WITH and {option.value!r} here"
                )
                self.note("W2003", message, "leave one of the two out", option.value_at)
            found[option.key] = option
        return tuple(found.values())

    def _check_addressed(self) -> None:
        aliases = [join.source.alias.text for join in self.query.joins]
        for option in self.said:
            if option.key not in self.values:
                continue
            if not aliases:
                message = f"option {option.key!r} is about a join, and the statement has none"
                self.note("W2005", message, "leave it out", option.key_at)
            alias = _addressed(option.key)
            if aliases and alias is not None and alias.casefold() not in {a.casefold() for a in aliases}:
                help = f"write join.<alias>.<key> with the right side of a join: {format_list(aliases)}"
                self.note("W2005", f"option {option.key!r} names no join", help, option.key_at)

    def _options_of(self, alias: str) -> JoinOptions:
        values, said = {}, {}
        known = [option for option in self.said if find_option(option.key, ("join",)) is not None]
        for option in sorted(known, key=lambda option: _addressed(option.key) is not None):
            addressed = _addressed(option.key)
            if addressed is None or addressed.casefold() == alias.casefold():
                name = option.key.rsplit(".", 1)[1]
                said[name] = option
                if option.key in self.values:
                    values[name] = self.values[option.key]
        return JoinOptions(values=values, said=said)

    # -- joins

    def _is_table(self, number: int) -> bool:
        return isinstance(self.inputs[number], TableSpec)

    def _stream_joins(self) -> list[int]:
        """Return the numbers of the joins of which both sides are streams."""
        return [
            number
            for number in range(len(self.query.joins))
            if not self._is_table(number + 1) and not all(self._is_table(i) for i in range(number + 1))
        ]

    def _meant_by_tail(self) -> int | None:
        """Return the join that a WINDOW after all joins means."""
        window = self.query.window
        if window is None:
            return None
        joins = self._stream_joins()
        if len(joins) == 1:
            return joins[0]
        if joins:
            message = (
                f"the statement has {len(joins)} joins of streams: which one has this WINDOW, it does not say"
            )
            self.note("W2012", message, "write it directly after the ON of the join it means", window.at)
        else:
            message = "WINDOW is about a join of two streams, and the statement has none"
            self.note("W2012", message, "leave it out", window.at)
        return None

    def _join(self, number: int, join: JoinSyntax, tail: WindowSyntax | None) -> JoinStepSpec:
        name, alias = self._named(number + 1)
        options = self._options_of(alias)
        form, values = None, options.values
        if number in self._stream_joins():
            for window in (join.window, tail):
                if window is not None:
                    self._check_column(window, number)
            form = form_of(join, tail, options, self._order(number), self.mistakes)
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
            retention_at=options.at("retention"),
            how_at=join.how_at,
            at=join.source.at,
        )

    def _refuse_time(self, join: JoinSyntax) -> None:
        for said in (join.within, join.window):
            if said is not None:
                word = "WITHIN" if said is join.within else "WINDOW"
                message = f"{word} stands after a join with a table, which has no time"
                self.note("W2012", message, "write it directly after the ON of the join it means", said.at)

    def _order(self, number: int) -> AsofOrder:
        """Return the event times as far as they are said; the planner knows the real ones."""
        left = next((_time_of(i) for i in self.inputs[: number + 1] if isinstance(i, StreamSpec)), None)
        return AsofOrder(left or "event_time", _time_of(self.inputs[number + 1]) or "event_time")

    def _check_column(self, window: WindowSyntax, number: int) -> None:
        """Note a column of a WINDOW that is not the event time of a side."""
        if window.column is None:
            return
        sides = list(zip(self.sources, self.inputs, strict=True))[: number + 2]
        if window.column_of is not None:
            sides = [s for s in sides if s[0].alias.text.casefold() == window.column_of.text.casefold()]
        times = [_time_of(found) for _, found in sides if isinstance(found, StreamSpec)]
        if any(time is not None and time.casefold() == window.column.text.casefold() for time in times):
            return
        known = [
            f"{s.alias.text}.{_time_of(i)}"
            for s, i in zip(self.sources, self.inputs, strict=True)
            if _time_of(i)
        ]
        message = f"{window.column.text!r} is not the event time of a side"
        self.note(
            "W2001", message, f"leave the column out; event times are {format_list(known)}", window.column.at
        )


def _addressed(key: str) -> str | None:
    """Return the alias in ``join.<alias>.<key>``."""
    parts = key.split(".")
    return parts[1] if len(parts) > 2 else None


def _time_of(found: Input | None) -> str | None:
    """Return the event time that a stream says, or the one that can be meant."""
    if not isinstance(found, StreamSpec):
        return None
    if found.event_time is not None and found.event_time != MESSAGE_TIME:
        return found.event_time
    times = [f.name for f in found.columns if f.dtype in (TIMESTAMP, TIMESTAMP_NTZ)]
    return times[0] if len(times) == 1 and found.event_time is None else None


def _item(item: Item) -> ItemSpec:
    return ItemSpec(
        expr=item.expr,
        is_star=item.is_star,
        star_of=None if item.star_of is None else item.star_of.text,
        alias=None if item.alias is None else item.alias.text,
        is_key=item.is_key,
        is_event_time=item.is_event_time,
        at=item.at,
    )


def printed(name: str) -> SinkSpec:
    """Return the sink of a query that stands alone: its rows are printed."""
    return SinkSpec(name=name, connector=FrozenMap(connector="console"))
