"""The time part of a join as one spec, whether WITHIN, WINDOW or options say it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from weft.core.duration import Duration
from weft.core.source import Source
from weft.errors import Code, Diagnostic
from weft.joins.spec.asof import AsofOrder
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.joins.spec.words import WindowKind
from weft.streams.sql.syntax import JoinSyntax, SaidOption, WindowSyntax

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
