"""Identity of a statement: one text for each part that state depends on, and what a change keeps.

A checkpoint holds the parts of the plan that made it.  A changed plan is told which part differs, what
it was, and what of the old checkpoint still fits: everything, the state, or the offsets alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from weft.core.frozen import FrozenMap, thawed
from weft.expr import Typed
from weft.expr.render import render
from weft.kernel.spec import FORMAT
from weft.plan.resolved import SameWindow
from weft.plan.streams.layout import layout
from weft.plan.streams.resolved import Input, KernelStep, StatementPlan, Step

Keeps = Literal["same", "all", "state", "offsets"]
"""How much of a checkpoint a plan can go on with: unchanged, everything, its state, its offsets only."""

_SETTINGS = frozenset({"max.files.per.trigger", "max.offsets.per.trigger"})
"""Options of a source that say how fast it is read, not what."""

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


def parts(plan: StatementPlan, *, groups: int) -> FrozenMap[str, str]:
    """Return each part of a statement as one text; equal texts are equal parts."""
    steps = plan.steps
    streams = plan.inputs
    return FrozenMap(
        {
            "inputs": "; ".join((*map(_input, streams), *(_table(t) for t in plan.tables))),
            "schemas": "; ".join(f"{s.stream.name}({_columns(s.stream.columns)})" for s in streams),
            "times": "; ".join(f"{s.alias}: {s.stream.event_time} {s.stream.time_format}" for s in streams),
            "delays": "; ".join(f"{s.alias}: {s.stream.delay}" for s in streams),
            "keys": "; ".join(_keys(s) for s in steps),
            "match": "; ".join(_match(s) for s in steps),
            "how": "; ".join(s.how for s in steps),
            "residual": "; ".join(_text(s.residual) for s in steps),
            "emit": "; ".join(s.emit for s in plan.kernel_steps),
            "select": "; ".join(f"{_text(c.typed)} AS {c.name} {c.dtype}" for c in plan.output)
            + f" KEY {','.join(plan.key_columns)} TIME {_text(plan.event_time)}",
            "where": _text(plan.where),
            "state_columns": "; ".join(_state(plan, s) for s in plan.kernel_steps),
            "sink": _connector(plan.sink.connector),
            "limits": "; ".join(_limits(s) for s in plan.kernel_steps),
            "policies": "; ".join(_policies(s) for s in streams)
            + " missing "
            + ",".join(s.missing_event_time for s in plan.kernel_steps),
            "dedup": "; ".join(f"{s.alias}: {', '.join(s.stream.dedup)}" for s in streams),
            "groups": str(groups),
            "format": str(FORMAT),
        }
    )


def verdict(old: Mapping[str, str], new: Mapping[str, str]) -> Change:
    """Return what changed from one set of `parts` to another and the most that can be kept.

    >>> verdict({"where": "", "groups": "2"}, {"where": "a > 1", "groups": "2"}).keeps
    'state'
    """
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
    return int(before["low"]) <= int(now["low"]) and int(now["high"]) <= int(before["high"])


_INTERVAL = re.compile(r"interval (?P<low>-?\d+) (?P<high>-?\d+) (?P<axis>of \d+ and \d+)")


def _input(source: Input) -> str:
    return f"{source.stream.name} {source.alias}: {_connector(source.stream.connector)}"


def _table(source: Any) -> str:
    table = source.table
    return f"{table.name} {source.alias}: {_connector(table.connector)} {table.reload} ({_columns(table.columns)})"


def _connector(options: FrozenMap[str, Any]) -> str:
    told = {k: v for k, v in thawed(options).items() if k not in _SETTINGS and v is not None}
    return ", ".join(f"{k}={v}" for k, v in sorted(told.items()))


def _columns(schema: Any) -> str:
    return ", ".join(str(f) for f in schema)


def _keys(step: Step) -> str:
    return ", ".join(f"{_slot(k.left)}={_slot(k.right)} {k.dtype}" for k in step.keys)


def _slot(slot: Sequence[object]) -> str:
    return ".".join(str(s) for s in slot[1:])


def _match(step: Step) -> str:
    if not isinstance(step, KernelStep) or step.axis is None:
        return "table"
    axis = f"of {step.axis[0][1]} and {step.axis[1][1]}"
    if isinstance(step.match, SameWindow):
        m = step.match
        rows = "window" if m.per_window else "pair"
        return f"{m.kind} window size={m.size} slide={m.slide} gap={m.gap} rows={rows} {axis}"
    return f"interval {step.lower} {step.upper} {axis}"


def _text(typed: Typed | None) -> str:
    return "" if typed is None else render(typed.expr)


def _state(plan: StatementPlan, step: KernelStep) -> str:
    children = layout(plan, step)
    sides = (children.left, children.right)
    return " | ".join(", ".join(f"{c.name} {c.dtype}" for c in side) for side in sides)


def _limits(step: KernelStep) -> str:
    limits = step.limits
    return f"{limits.max_state_rows} {limits.max_rows_per_key} {limits.eviction} {step.retention}"


def _policies(source: Input) -> str:
    stream = source.stream
    return f"{source.alias}: {stream.late} {stream.malformed}"
