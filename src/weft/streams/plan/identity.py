"""Identity of a statement: one text for each part that state depends on, and what a change keeps.

A checkpoint holds the parts of the plan that made it.  A changed plan is told which part differs, what
it was, and what of the old checkpoint still fits: everything, the state, or the offsets alone.
Sources go by the names of their streams and tables, so another alias changes nothing; secrets and the
way to a broker are no part of it.
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
from weft.streams.kernel.spec import FORMAT
from weft.streams.plan.kernel_spec import build_layout
from weft.streams.plan.resolved import Input, KernelStep, StatementPlan, Step, TableInput

Keeps = Literal["same", "all", "state", "offsets"]
"""How much of a checkpoint a plan can go on with: unchanged, everything, its state, its offsets only."""

_SETTINGS = frozenset(
    {
        *("max.files.per.trigger", "max.offsets.per.trigger"),
        *("bootstrap.servers", "starting.offsets", "fail.on.data.loss"),
    }
)
"""Options of a connector that say how it is reached or how fast it is read, not what."""

_KEEPS: dict[str, Keeps] = {
    "limits": "all",
    "policies": "all",
    "delays": "state",
    "where": "state",
    "select": "state",
    "sink": "state",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """One part that differs: its values then and now, what can be kept, and why."""

    part: str
    old: str
    new: str
    keeps: Keeps
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changed between a checkpoint and a plan, and the most that can be kept of it."""

    keeps: Keeps
    parts: tuple[PartChange, ...] = ()

    @property
    def needs_consent(self) -> bool:
        """Whether the user has to say what is kept before the statement goes on."""
        return self.keeps in ("state", "offsets")


def describe_parts(plan: StatementPlan, *, groups: int) -> FrozenMap[str, str]:
    """Return each part of a statement as one text; equal texts are equal parts."""
    steps = plan.steps
    streams = plan.inputs
    said = _Names(plan)
    return FrozenMap(
        {
            "inputs": "; ".join((*(said.input(s) for s in streams), *(said.table(t) for t in plan.tables))),
            "schemas": "; ".join(f"{said.of(s)}({_columns(s.stream.columns)})" for s in streams),
            "times": "; ".join(
                f"{said.of(s)}: {s.stream.event_time} {s.stream.time_format}" for s in streams
            ),
            "delays": "; ".join(f"{said.of(s)}: {s.stream.delay}" for s in streams),
            "keys": "; ".join(said.keys(s) for s in steps),
            "match": "; ".join(said.match(s) for s in steps),
            "how": "; ".join(s.how for s in steps),
            "residual": "; ".join(said.text(s.residual) for s in steps),
            "emit": "; ".join(s.emit for s in plan.kernel_steps),
            "select": "; ".join(f"{said.text(c.typed)} AS {c.name} {c.dtype}" for c in plan.output)
            + f" KEY {','.join(plan.key_columns)} TIME {said.text(plan.event_time)}",
            "where": said.text(plan.where),
            "state_columns": "; ".join(_state(plan, s) for s in plan.kernel_steps),
            "sink": _connector(plan.sink.connector),
            "limits": "; ".join(_limits(s) for s in plan.kernel_steps),
            "policies": "; ".join(f"{said.of(s)}: {s.stream.late} {s.stream.malformed}" for s in streams)
            + " missing "
            + ",".join(s.missing_event_time for s in plan.kernel_steps),
            "dedup": "; ".join(f"{said.of(s)}: {', '.join(s.stream.dedup)}" for s in streams),
            "groups": str(groups),
            "format": str(FORMAT),
        }
    )


def compare_parts(old: Mapping[str, str], new: Mapping[str, str]) -> Change:
    """Return what changed from one set of parts to another and the most that can be kept.

    >>> compare_parts({"where": "", "groups": "2"}, {"where": "a > 1", "groups": "2"}).keeps
    'state'
    """
    # Older checkpoints hold addresses as they were written: a secret is no part of a query.
    old = {name: redact(text) for name, text in old.items()}
    changed = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    told = tuple(_change(name, old.get(name, ""), new.get(name, "")) for name in changed)
    order: tuple[Keeps, ...] = ("same", "all", "state", "offsets")
    least = max((c.keeps for c in told), key=order.index, default=order[0])
    return Change(keeps=least, parts=told)


def _change(part: str, old: str, new: str) -> PartChange:
    keeps: Keeps = _KEEPS.get(part, "offsets")
    if part == "match":
        keeps = "state" if _is_narrower(old, new) else "offsets"
    return PartChange(part=part, old=old, new=new, keeps=keeps, why=_why(part, keeps))


def _why(part: str, keeps: Keeps) -> str:
    if keeps == "all":
        return "it holds from the next batch on"
    if part == "delays":
        return "a smaller delay holds from the next batch on, a larger one never moves the watermark back"
    if part == "match" and keeps == "state":
        return "rows that are over under the narrower bound leave with the next batch"
    if part == "match":
        return "the state does not reach as far as the new bound"
    if part == "emit":
        return "pairs that the state has given, or still owes, would come twice or never"
    if keeps == "state":
        return "rows written before stay as they were"
    return "the rows in the state do not fit it"


def _is_narrower(old: str, new: str) -> bool:
    """Whether every bound of the new text lies within its partner of the old one."""
    before, now = (text.split("; ") for text in (old, new))
    return len(before) == len(now) and all(_fits(a, b) for a, b in zip(before, now, strict=True))


def _fits(old: str, new: str) -> bool:
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
    """Says parts with the names of streams and tables; the second use of one is ``name#2``."""

    def __init__(self, plan: StatementPlan) -> None:
        self.plan = plan
        self.names: dict[int, str] = {}
        used: dict[str, int] = {}
        sources: list[Input | TableInput] = [*plan.inputs, *plan.tables]
        for source in sorted(sources, key=lambda s: s.number):
            name = source.stream.name if isinstance(source, Input) else source.table.name
            used[name] = used.get(name, 0) + 1
            self.names[source.number] = name if used[name] == 1 else f"{name}#{used[name]}"

    def of(self, source: Input | TableInput) -> str:
        return self.names[source.number]

    def input(self, source: Input) -> str:
        return f"{self.of(source)}: {_connector(source.stream.connector)}"

    def table(self, source: TableInput) -> str:
        table = source.table
        said = _connector(table.connector)
        return f"{self.of(source)}: {said} {table.reload} ({_columns(table.columns)})"

    def column(self, slot: Sequence[Any]) -> str:
        source = self.plan.source(slot[1])
        if slot[0] == "t":
            name = source.stream.event_time if isinstance(source, Input) else None
            return f"{self.names[slot[1]]}.{name}"
        schema = source.stream.columns if isinstance(source, Input) else source.table.columns
        return f"{self.names[slot[1]]}.{schema.fields[slot[2]].name}"

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
        """Return an expression with the names of streams and tables before its columns."""
        if typed is None:
            return ""
        slots = {n.expr: n.slot for n in typed.walk() if n.op == "ref" and isinstance(n.expr, Ref)}

        def renamed(expr: Expr) -> Expr:
            slot = slots.get(expr) if isinstance(expr, Ref) else None
            if isinstance(expr, Ref) and isinstance(slot, tuple) and slot[0] in ("i", "t"):
                return Ref(self.names[slot[1]], expr.name)
            return map_children(expr, renamed)

        return render(renamed(typed.expr))


def _connector(options: FrozenMap[str, Any]) -> str:
    told = {
        k: v
        for k, v in thaw(options).items()
        if k not in _SETTINGS and not k.startswith("kafka.") and v is not None
    }
    return redact(", ".join(f"{k}={v}" for k, v in sorted(told.items())))


def _columns(schema: Any) -> str:
    return ", ".join(str(f) for f in schema)


def _state(plan: StatementPlan, step: KernelStep) -> str:
    children = build_layout(plan, step)
    sides = (children.left, children.right)
    return " | ".join(", ".join(f"{c.name} {c.dtype}" for c in side) for side in sides)


def _limits(step: KernelStep) -> str:
    limits = step.limits
    rows, of_key = ("none" if n is None else str(n) for n in (limits.max_state_rows, limits.max_rows_per_key))
    kept = " and ".join(str(Duration(length)) for length in step.retention)
    return f"rows {rows}, rows of a key {of_key}, eviction {limits.eviction}, kept {kept}"
