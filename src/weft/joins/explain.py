"""Explanations of joins: as text, as a dictionary and as HTML for notebooks."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.core.fingerprint import fingerprint
from weft.core.names import format_name, is_plain_text
from weft.core.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Schema
from weft.joins.choose import Choice, choose
from weft.joins.picture import Picture
from weft.joins.resolve.resolved import AsOf, Exact, ResolvedJoin
from weft.joins.several import Part
from weft.joins.sketch import refuse_picture, sketch_rule
from weft.joins.spec.asof import AsofSpec
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.predicates import format_column

Row = tuple[str, ...]
_KEY_HEADINGS = ("left", "right", "origin", "type")
_COLUMN_HEADINGS = ("name", "type", "source", "reason")
_HIDDEN_HEADINGS = ("column", "reason")
_STYLE = (
    ".weft-explain table{border-collapse:collapse}.weft-explain h3,.weft-explain h4{margin:.6em 0 .2em}"
    ".weft-explain th,.weft-explain td{padding:.2em .8em;text-align:left;border-bottom:1px solid #8884}"
    ".weft-explain th,.weft-explain p{opacity:.7;font-weight:normal}"
)
_NULLS = {True: "a NULL key equals a NULL key", False: "a NULL key matches nothing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinExplanation:
    """The explanation of a join: `str` returns the text, `to_dict` the data, and a notebook shows HTML."""

    title: str
    fingerprint: str
    bound: bool
    facts: tuple[tuple[str, str], ...]
    keys: tuple[Row, ...] = ()
    columns: tuple[Row, ...] = ()
    hidden: tuple[Row, ...] = ()
    spec: Mapping[str, Any] | None = field(default=None, repr=False)
    spec_fingerprint: str = ""
    strategy: Choice | None = None
    shown: int | None = field(default=None, compare=False, repr=False)
    """The cell of a notebook, by its number, in which `show` has displayed it."""

    @property
    def fingerprints(self) -> tuple[tuple[str, str], ...]:
        """The fingerprints of the spec, and of the spec with two schemas."""
        pairs = (("spec", self.spec_fingerprint), ("join", self.fingerprint if self.bound else ""))
        return tuple((f"{of} fingerprint", value[:16]) for of, value in pairs if value)

    def __str__(self) -> str:
        width = max((len(name) for name, _ in self.facts), default=0)
        lines = [self.title]
        lines += [f"  {name:<{width}}  {_on_one_line(text)}" for name, text in self.facts]
        for heading, rows in (("keys", self.keys), ("columns", self.columns), ("left out", self.hidden)):
            if rows:
                lines.append(f"  {heading}")
                lines.extend("    " + line for line in _aligned(rows))
        lines += [f"  {name}  {value}" for name, value in self.fingerprints]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        return {
            "title": self.title,
            "bound": self.bound,
            "fingerprint": self.fingerprint,
            "spec_fingerprint": self.spec_fingerprint or None,
            "join_fingerprint": self.fingerprint if self.bound else None,
            "spec": dict(self.spec) if self.spec is not None else None,
            # The text has strategy and cost as two lines, the data has them as one entry below.
            **{name: text for name, text in self.facts if name not in ("strategy", "cost")},
            "strategy": self.strategy
            and {"name": self.strategy.strategy, "reason": self.strategy.reason, "cost": self.strategy.cost or None},
            "keys": [dict(zip(_KEY_HEADINGS, r, strict=False)) for r in self.keys],
            "columns": [dict(zip(_COLUMN_HEADINGS, r, strict=False)) for r in self.columns],
            "left_out": [dict(zip(_HIDDEN_HEADINGS, r, strict=False)) for r in self.hidden],
        }

    def plot(self) -> Picture:
        """Return a picture of what the join matches, with example rows: as-of, interval and window joins.

        ``weft.explain_join(spec).plot().savefig("join.svg")``
        """
        if self.spec is None or self.spec.get("type") == "join" or "parts" in self.spec:
            raise refuse_picture("plot")
        return sketch_rule(JoinSpec.from_dict(self.spec))

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        def table(title: str, headings: Sequence[str], rows: Sequence[Row]) -> str:
            if not rows:
                return ""
            width = max(map(len, rows))
            cells = line(headings[:width], "th") + "".join(line(row, "td") for row in rows)
            return f"<h4>{html.escape(title)}</h4><table>{cells}</table>"

        return (
            f"<div class='weft-explain'><style>{_STYLE}</style><h3>{html.escape(self.title)}</h3>"
            + table("facts", ("fact", "value"), self.facts)
            + table("keys", _KEY_HEADINGS, self.keys)
            + table("columns", _COLUMN_HEADINGS, self.columns)
            + table("left out", _HIDDEN_HEADINGS, self.hidden)
            + "".join(f"<p>{name} <code>{html.escape(value)}</code></p>" for name, value in self.fingerprints)
            + "</div>"
        )

    def show(self) -> JoinExplanation:
        """Print the explanation, or display it in IPython, and return it; the same cell does not display it again."""
        shell = _find_shell()
        if shell is None:
            print(self)  # noqa: T201  # printing is what the method is for
            return self
        self._publish(shell)
        return replace(self, shown=shell.execution_count)

    def _ipython_display_(self) -> None:
        shell = _find_shell()
        if shell is not None and self.shown != shell.execution_count:
            self._publish(shell)

    def _publish(self, shell: Any) -> None:
        shell.display_pub.publish({"text/plain": str(self), "text/html": self._repr_html_()})


def _find_shell() -> Any:
    """Return the running IPython shell, None outside of one; a shell has imported IPython itself."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def _on_one_line(text: str) -> str:
    """Return the text with escaped control characters, so that a name cannot add a line."""
    return "".join(c if is_plain_text(c) else repr(c)[1:-1] for c in text)


def _aligned(rows: Sequence[Row]) -> Iterator[str]:
    rows = [tuple(map(_on_one_line, row)) for row in rows]
    widths = [max(len(r[i]) for r in rows if i < len(r)) for i in range(max(map(len, rows)))]
    for row in rows:
        yield "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=False)).rstrip()


def explain_spec(spec: JoinSpec, how: str | None = None) -> JoinExplanation:
    """Explain a spec without schemas."""
    kind_of_join = how or getattr(spec, "how", None)
    return JoinExplanation(
        title=" ".join(filter(None, (kind_of_join, _kind(spec), "join, unbound"))),
        fingerprint=spec.fingerprint(),
        spec_fingerprint=spec.fingerprint(),
        bound=False,
        facts=(("condition", str(spec)), *_promises(spec, kind_of_join), ("method", _method(spec, how))),
        keys=tuple((format_column("left", a), format_column("right", b)) for a, b in spec.equal_keys),
        spec=spec.to_dict(),
    )


def _name(schema: Schema, index: int) -> str:
    return format_name(schema.fields[index].name)


def _key_rows(join: ResolvedJoin, right: str = "right") -> tuple[Row, ...]:
    return tuple(
        (f"left.{_name(join.left, k.left)}", f"{right}.{_name(join.right, k.right)}", k.origin, str(k.dtype))
        for k in join.keys
    )


def _kind(spec: JoinSpec | None) -> str:
    return spec.TYPE if spec is not None and spec.TYPE != "join" else ""


def explain_resolved(
    join: ResolvedJoin,
    spec: JoinSpec | None,
    *,
    ordering: Sequence[tuple[str, bool]] = (),
    choice: Choice | None = None,
    natural: bool | None = None,
) -> JoinExplanation:
    """Explain a resolved join; `choice` is the strategy if it is already chosen.

    `natural` is whether the keys were inferred; None takes it from the origin of the keys.
    """
    choice = choice or choose(join)
    inferred = any(k.origin != "spec" for k in join.keys) if natural is None else natural
    return JoinExplanation(
        title=" ".join(filter(None, (join.how, _kind(spec), "join"))),
        fingerprint=join.fingerprint,
        spec_fingerprint=join.spec_fingerprint,
        bound=True,
        strategy=choice,
        facts=(*_facts(join, spec, ordering, choice), ("method", _method(spec, join.how, natural=inferred))),
        keys=_key_rows(join),
        columns=tuple((c.name, str(c.dtype), _source(join, c), c.reason) for c in join.output),
        hidden=tuple(_hidden(join)),
        spec=spec.to_dict() if spec is not None else None,
    )


def explain_several(
    parts: Sequence[Part], specs: Sequence[JoinSpec], *, choice: Choice, ordering: Sequence[tuple[str, bool]] = ()
) -> JoinExplanation:
    """Explain several as-of joins that run as one plan."""
    last = parts[-1].chained

    # Sources are named from the left side itself: in the chain, each column would come from the part before.
    def column(place: int) -> Row:
        output, origin = last.output[place], parts[-1].origins[place]
        if not origin.part:
            source = f"left.{_name(parts[0].chained.left, origin.column)}"
            return output.name, str(output.dtype), source, output.reason
        join = parts[origin.part - 1].chained
        first = join.output[origin.column]
        source = _source(join, first).replace("right.", f"right {origin.part}.", 1)
        return output.name, str(output.dtype), source, output.reason or first.reason

    return JoinExplanation(
        title=f"as-of joins of {len(parts)} right sides",
        fingerprint=fingerprint({"parts": [part.chained.fingerprint for part in parts]}),
        spec_fingerprint=fingerprint({"parts": [part.chained.spec_fingerprint for part in parts]}),
        bound=True,
        strategy=choice,
        facts=(
            *((f"part {part.number}", f"{part.chained.how}: {spec}") for part, spec in zip(parts, specs, strict=True)),
            ("strategy", f"{choice.strategy}: {choice.reason}"),
            ("cost", choice.cost),
            ("order", _order_text(ordering)),
            ("method", "asof_join_all"),
        ),
        keys=tuple(row for part in parts for row in _key_rows(part.direct, f"right {part.number}")),
        columns=tuple(map(column, range(len(last.output)))),
        spec={"parts": [spec.to_dict() for spec in specs]},
    )


def _facts(
    join: ResolvedJoin, spec: JoinSpec | None, ordering: Sequence[tuple[str, bool]], choice: Choice
) -> Iterator[tuple[str, str]]:
    if spec is not None:
        yield "condition", str(spec)
        yield "nulls", _NULLS[join.nulls_equal]
    if isinstance(join.match, AsOf):
        names = [f"right.{_name(join.right, i)}" for i in join.match.tie_break]
        yield "ties", _ties(names, join.match.direction, join.match.nearest_tie)
    if zone := _through_zone(join):
        yield "time zone", zone
    if join.relationship:
        yield "relationship", f"{join.relationship}, checked while the job runs"
    if join.unmatched:
        yield "unmatched", f"a {' or '.join(join.unmatched)} row without a match fails the job"
    if join.dropped_aliases:
        yield "dropped", ", ".join(f"{a}={b!r}" for a, b in join.dropped_aliases) + " (strict=False)"
    if choice.facts is not None:
        yield "statistics", f"{choice.facts} (sample of {choice.facts.sampled:,} rows)"
    yield "strategy", f"{choice.strategy}: {choice.reason}"
    if choice.cost:
        yield "cost", choice.cost
    yield "order", _order_text(ordering)


def _through_zone(join: ResolvedJoin) -> str:
    """Return which columns are converted to timestamps in the session time zone."""
    # Listed because the rows of the result then depend on a setting of the session.
    pairs = [(k.left, k.right) for k in join.keys]
    if not isinstance(join.match, Exact):
        pairs.append((join.match.left, join.match.right))
    if isinstance(join.match, AsOf) and join.match.known is not None:
        pairs.append(join.match.known)
    converted = []
    for a, b in pairs:
        fields = ("left", join.left.fields[a]), ("right", join.right.fields[b])
        for (side, local), (_, other) in (fields, fields[::-1]):
            if other.dtype == TIMESTAMP and local.dtype in (TIMESTAMP_NTZ, DATE):
                converted.append(f"{side}.{format_name(local.name)} ({local.dtype})")
    columns = " and ".join(dict.fromkeys(converted))
    return columns and f"{columns} has no zone and meets a timestamp: it is read in spark.sql.session.timeZone"


def _promises(spec: JoinSpec, how: str | None) -> Iterator[tuple[str, str]]:
    yield "nulls", _NULLS[spec.nulls_equal]
    if isinstance(spec, AsofSpec):
        yield ("ties", _ties([format_column("right", n) for n in spec.tie_break], spec.direction, spec.nearest_tie))
    if spec.relationship:
        yield "relationship", f"{spec.relationship}, checked while the job runs"
    if spec.unmatched:
        kept = {None: "kept", "right": "right", "full": "left or right"}.get(how, "left")
        side = {"left": "left", "right": "right", "both": "left or right"}.get(spec.unmatched, kept)
        yield "unmatched", f"a {side} row without a match fails the job"


def _ties(tie_break: Sequence[str], direction: str, nearest_tie: str) -> str:
    """Return which of several equally near right rows wins."""
    by = ", ".join(tie_break) or "all their columns that have an order, the first one first"
    nearest = {"backward": "earlier", "forward": "later"}[nearest_tie]
    first = f"of two equally near times the {nearest} wins; " if direction == "nearest" else ""
    return f"{first}of right rows with equal time the greatest by {by} wins"


def _order_text(ordering: Sequence[tuple[str, bool]]) -> str:
    if not ordering:
        return "the left side has no order marker; none is needed, and the order of rows is not defined"
    columns = ", ".join(f"{n} {'ascending' if up else 'descending'}" for n, up in ordering)
    return f"the left side is sorted by {columns}; the join clears the marker"


_METHODS = {
    "inner": "inner_join (or left_inner; was join)",
    "left": "left_outer (was left_join)",
    "right": "right_outer (or left_right)",
    "full": "full_outer (or outer_join)",
    "semi": "semi_join",
    "anti": "anti_join",
    "cross": "cross_join",
}
_WAS = {"inner": " (was join)", "left": " (was left_join)"}


def _method(spec: JoinSpec | None, how: str | None, *, natural: bool = False) -> str:
    if isinstance(spec, AsofSpec):
        return "natural_asof (was join_asof)" if natural else "asof_join (was join_asof)"
    if natural:
        return f"natural_{how}{_WAS.get(how or '', '')}"
    if spec is not None and spec.TYPE != "join":
        return f"{spec.TYPE}_join"
    return _METHODS[how or "inner"] if how else "any directed join; natural_* when the names are shared"


def _source(join: ResolvedJoin, column: Any) -> str:
    left = "" if column.left is None else f"left.{_name(join.left, column.left)}"
    right = "" if column.right is None else f"right.{_name(join.right, column.right)}"
    if column.source == "coalesced":
        return f"coalesce({left}, {right})"
    return left or right or "which sides have a row"


def _hidden(join: ResolvedJoin) -> Iterator[Row]:
    if join.how in ("semi", "anti"):
        yield "right.*", f"a {join.how} join keeps left columns"
    else:
        keys = {k.right: f"equal to left.{_name(join.left, k.left)}" for k in join.keys}
        for i in sorted(set(join.own_columns("right")) - {c.right for c in join.output}):
            yield f"right.{_name(join.right, i)}", keys.get(i, "not requested")
    for i in sorted(set(join.own_columns("left")) - {c.left for c in join.output}):
        yield f"left.{_name(join.left, i)}", "not requested"
