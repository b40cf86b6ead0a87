"""The identity of a statement: a string for each part that its state depends on, and what a change allows to keep.

A checkpoint stores the parts of its plan.  For a changed plan, the comparison gives the parts that differ and how much of
the checkpoint can still be used: everything, the state, or only the offsets.  Sources are identified by the names of
their streams and tables, so an alias can change; secrets and broker addresses are not included.

The strings are stored in checkpoints: rewording one makes existing checkpoints look changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap, thaw
from weft.expr import Expr, Ref, Typed, render
from weft.expr.ast import map_children
from weft.redaction import redact
from weft.streams.plan.kernel_spec import build_layout
from weft.streams.plan.resolved import Input, KernelStep, StatementPlan, Step, TableInput

Keeps = Literal["same", "all", "state", "offsets"]
"""How much of a checkpoint a plan can use: it is unchanged, everything, the state, or only the offsets."""

_SETTINGS = frozenset(
    "max.files.per.trigger max.offsets.per.trigger bootstrap.servers starting.offsets fail.on.data.loss".split()
)
"""Connector options that affect how a source is read, but not what is read."""

_KEEPS: dict[str, Keeps] = {
    "limits": "all",
    "policies": "all",
    "delays": "state",
    "where": "state",
    "select": "state",
    "sink": "state",
}

_NO_LONGER = frozenset({"groups", "format"})
"""Parts in checkpoints of earlier versions on which nothing depends today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """A part that differs: its old and new value, what can be kept, and why."""

    part: str
    old: str
    new: str
    keeps: Keeps
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The differences between a checkpoint and a plan, and how much can be kept."""

    keeps: Keeps
    parts: tuple[PartChange, ...] = ()

    @property
    def needs_consent(self) -> bool:
        """Whether the user must choose what to keep before the statement continues."""
        return self.keeps in ("state", "offsets")


def describe_parts(plan: StatementPlan) -> FrozenMap[str, str]:
    """Return each part of a statement as a string; parts are equal if their strings are."""
    steps = plan.steps
    streams = plan.inputs
    names = _Names(plan)
    return FrozenMap(
        {
            "inputs": "; ".join((*(names.input(s) for s in streams), *(names.table(t) for t in plan.tables))),
            "schemas": "; ".join(f"{names.of(s)}({_format_columns(s.stream.columns)})" for s in streams),
            "times": "; ".join(f"{names.of(s)}: {s.stream.event_time} {s.stream.time_format}" for s in streams),
            "delays": "; ".join(f"{names.of(s)}: {s.stream.delay}" for s in streams),
            "keys": "; ".join(names.keys(s) for s in steps),
            "match": "; ".join(names.match(s) for s in steps),
            "how": "; ".join(s.how for s in steps),
            "residual": "; ".join(names.text(s.residual) for s in steps),
            "emit": "; ".join(s.emit for s in plan.kernel_steps),
            "select": "; ".join(f"{names.text(c.typed)} AS {c.name} {c.dtype}" for c in plan.output)
            + f" KEY {','.join(plan.key_columns)} TIME {names.text(plan.event_time)}",
            "where": names.text(plan.where),
            "state_columns": "; ".join(_format_state(plan, s) for s in plan.kernel_steps),
            # Earlier versions recorded a zone for every sink, although all times are written in UTC.
            "sink": _format_connector(FrozenMap({**plan.sink.connector, "timestamp.zone": "UTC"})),
            "limits": "; ".join(_format_limits(s) for s in plan.kernel_steps),
            "policies": "; ".join(f"{names.of(s)}: {s.stream.late} {s.stream.malformed}" for s in streams)
            + " missing "
            + ",".join(s.missing_event_time for s in plan.kernel_steps),
            "dedup": "; ".join(f"{names.of(s)}: {', '.join(s.stream.dedup)}" for s in streams),
        }
    )


def compare_parts(old: Mapping[str, str], new: Mapping[str, str]) -> Change:
    """Return the differences between two sets of parts and how much can be kept.

    >>> compare_parts({"where": "", "emit": "final"}, {"where": "a > 1", "emit": "final"}).keeps
    'state'
    """
    # Older checkpoints contain unredacted addresses, but a secret is not part of the identity.
    old = {name: redact(text) for name, text in old.items() if name not in _NO_LONGER}
    changed = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    changes = tuple(_build_change(name, old.get(name, ""), new.get(name, "")) for name in changed)
    order: tuple[Keeps, ...] = ("same", "all", "state", "offsets")  # the worst change decides
    least = max((c.keeps for c in changes), key=order.index, default=order[0])
    return Change(keeps=least, parts=changes)


def _build_change(part: str, old: str, new: str) -> PartChange:
    # A part that this release does not know is incompatible until it is listed.
    keeps: Keeps = _KEEPS.get(part, "offsets")
    if part == "match":
        keeps = "state" if _is_narrower(old, new) else "offsets"
    return PartChange(part=part, old=old, new=new, keeps=keeps, why=_explain(part, keeps))


def _explain(part: str, keeps: Keeps) -> str:
    if keeps == "all":
        return "it applies from the next batch on"
    if part == "delays":
        return "a smaller delay applies from the next batch on, a larger one never moves the watermark back"
    if part == "match" and keeps == "state":
        return "rows outside the narrower bound leave the state with the next batch"
    if part == "match":
        return "the state does not contain the rows that the wider bound needs"
    if part == "emit":
        return "pairs that were emitted, or are still to be emitted, would be duplicated or lost"
    if keeps == "state":
        return "rows that are already written do not change"
    return "the rows in the state are not compatible with it"


def _is_narrower(old: str, new: str) -> bool:
    """Whether every bound of the new string is inside the corresponding bound of the old one."""
    # From the strings, which are all that a checkpoint stores of its plan.
    before, now = (text.split("; ") for text in (old, new))
    return len(before) == len(now) and all(_is_inside(a, b) for a, b in zip(before, now, strict=True))


def _is_inside(old: str, new: str) -> bool:
    if old == new:
        return True
    before, now = (_INTERVAL.fullmatch(text) for text in (old, new))
    if before is None or now is None or before["axis"] != now["axis"]:
        return False
    low, high, new_low, new_high = (
        Duration.parse(text, signed=True).microseconds
        for text in (before["low"], before["high"], now["low"], now["high"])
    )
    return low <= new_low and new_high <= high


_INTERVAL = re.compile(r"(?P<axis>.+ - .+) in \[(?P<low>[^,]+), (?P<high>[^\]]+)\]", re.DOTALL)


class _Names:
    """Formats parts with the names of streams and tables; the second use of one is ``name#2``."""

    def __init__(self, plan: StatementPlan) -> None:
        self.plan = plan
        self.names: dict[int, str] = {}
        used: dict[str, int] = {}
        sources: list[Input | TableInput] = [*plan.inputs, *plan.tables]
        for source in sorted(sources, key=lambda s: s.number):
            name = plan.declaration(source.number).name
            used[name] = used.get(name, 0) + 1
            self.names[source.number] = name if used[name] == 1 else f"{name}#{used[name]}"

    def of(self, source: Input | TableInput) -> str:
        return self.names[source.number]

    def input(self, source: Input) -> str:
        return f"{self.of(source)}: {_format_connector(source.stream.connector)}"

    def table(self, source: TableInput) -> str:
        table = source.table
        connector = _format_connector(table.connector)
        return f"{self.of(source)}: {connector} {table.reload} ({_format_columns(table.columns)})"

    def column(self, slot: Sequence[Any]) -> str:
        source = self.plan.source(slot[1])
        if slot[0] == "t":
            name = source.stream.event_time if isinstance(source, Input) else None
            return f"{self.names[slot[1]]}.{name}"
        return f"{self.names[slot[1]]}.{self.plan.declaration(slot[1]).columns.fields[slot[2]].name}"

    def keys(self, step: Step) -> str:
        return ", ".join(f"{self.column(k.left)} = {self.column(k.right)} ({k.dtype})" for k in step.keys)

    def match(self, step: Step) -> str:
        if not isinstance(step, KernelStep) or step.axis is None:
            return "table"
        left, right = (self.column(slot) for slot in step.axis)
        reach = step.reach
        if reach.kind == "interval":
            return f"{right} - {left} in [{Duration(reach.lower)}, {Duration(reach.upper)}]"
        both = f"{left} and {right} in one {reach.kind} window"
        if reach.kind == "session":
            return f"{both}, gap {Duration(reach.gap)}"
        every = f" every {Duration(reach.slide)}" if reach.slide else ""
        rows = ", a row for each" if reach.per_window else ""
        return f"{both} of {Duration(reach.size)}{every}{rows}"

    def text(self, typed: Typed | None) -> str:
        """Return an expression with its columns qualified by streams and tables."""
        if typed is None:
            return ""
        # Rendered from the expression as written: the typed tree also has the casts that the type check adds.
        slots = {n.expr: n.slot for n in typed.walk() if n.op == "ref" and isinstance(n.expr, Ref)}

        def qualify(expr: Expr) -> Expr:
            slot = slots.get(expr) if isinstance(expr, Ref) else None
            if isinstance(expr, Ref) and isinstance(slot, tuple) and slot[0] in ("i", "t"):
                return Ref(self.names[slot[1]], expr.name)
            return map_children(expr, qualify)

        return render(qualify(typed.expr))


def _format_connector(options: FrozenMap[str, Any]) -> str:
    identity = {
        k: v for k, v in thaw(options).items() if k not in _SETTINGS and not k.startswith("kafka.") and v is not None
    }
    return redact(", ".join(f"{k}={v}" for k, v in sorted(identity.items())))


def _format_columns(schema: Any) -> str:
    return ", ".join(str(f) for f in schema)


def _format_state(plan: StatementPlan, step: KernelStep) -> str:
    children = build_layout(plan, step)
    sides = (children.left, children.right)
    return " | ".join(", ".join(f"{c.name} {c.dtype}" for c in side) for side in sides)


def _format_limits(step: KernelStep) -> str:
    limits = step.limits
    rows, of_key = ("none" if n is None else str(n) for n in (limits.max_state_rows, limits.max_rows_per_key))
    kept = " and ".join(str(Duration(length)) for length in step.retention)
    return f"rows {rows}, rows of a key {of_key}, eviction {limits.eviction}, kept {kept}"
