"""The strategy of a join, the reason for it, and the joins that each as-of plan refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from weft.core.names import find_similar, format_list
from weft.core.types import Array, Decimal, DType, Map, Scalar, Struct, common_type
from weft.errors import ArgumentError, JoinSpecError, StrategyRefusedError
from weft.joins.facts import MIB, UNKNOWN, Facts, SessionFacts, format_size
from weft.joins.resolve.predicates import fold_order_conditions, split_conditions
from weft.joins.resolve.resolved import AsOf, Exact, Overlap, ResolvedJoin, SameWindow, Within


@dataclass(frozen=True, slots=True)
class Choice:
    """The name of a strategy, the reason for it and its cost."""

    strategy: str
    reason: str
    cost: str = ""
    facts: Facts | None = None
    no_kernel: str = ""
    """The reason why rows cannot be sent to Python, if any: slices are then joined by union."""


def choose(
    join: ResolvedJoin, strategy: str = "auto", *, facts: Facts | None = None, session_facts: SessionFacts = UNKNOWN
) -> Choice:
    """Return the strategy for a join; raises if a requested one does not support the join."""
    if isinstance(join.match, AsOf):
        why = "" if session_facts is UNKNOWN else session_facts.no_kernel
        choice = _choose_asof(fold_order_conditions(join), strategy, facts, session_facts)
        more = f"; {_IDENTIFIED}" if identifies_right(join) else ""
        return replace(choice, cost=choice.cost + more, facts=facts, no_kernel=why)
    if isinstance(join.match, Within | Overlap):
        return _interval(join)
    if isinstance(join.match, SameWindow):
        return _window(join.match)
    return _equi(join)


_IDENTIFIED = "the right side is read twice, and its rows are shuffled by key and time to meet their matches"
_COSTS = {
    "kernel": "one shuffle of both sides by key; rows go to Python and back, where a task holds up to three times "
    "its share of both sides, 100 bytes a row and 32 MB; a share above 2 GB is refused",
    "union": "one shuffle and one sort of both sides together; a key's rows stay in one task",
    "slices": "both sides are read once more for a sample, the right one again if its rows are few or far apart; "
    "then one shuffle of both sides in even shares, which go to Python and back as in the kernel plan if it serves "
    "the join",
    "broadcast": "no shuffle of the left side; the right side is grouped by key and sent whole to every executor",
    "tiny_left": "both sides are read twice, the left one is sent whole to every executor; "
    "of the right side only rows that can be an answer are shuffled",
    "rank": "every candidate pair is produced: a key costs the product of its rows",
}


def _choose_asof(join: ResolvedJoin, strategy: str, facts: Facts | None, session_facts: SessionFacts) -> Choice:
    if not isinstance(strategy, str):
        raise ArgumentError(
            f"strategy must be a string, not {type(strategy).__name__}", help="weft.asof_strategies() lists the names"
        )
    if strategy == "auto":
        return _best_asof(join, facts, session_facts)
    if strategy not in ASOF:
        close = find_similar(strategy, ("auto", *ASOF), most=1)
        raise JoinSpecError(
            f"strategy {strategy!r} is not one of {format_list(('auto', *ASOF))}",
            help=f"did you mean {close[0]!r}?" if close else "write one of these names",
        )
    refusal = ASOF[strategy](join)
    if refusal is not None:
        raise StrategyRefusedError(refusal, help="leave strategy= out, or choose another one")
    # Other plans that use the kernel have a replacement for it; this one was requested by name.
    if strategy == "kernel" and session_facts is not UNKNOWN and session_facts.no_kernel:
        raise StrategyRefusedError(
            f"the kernel refuses to start: {session_facts.no_kernel}",
            code="W1809",
            help=f"{session_facts.worker_setting}; or leave strategy= out",
        )
    return Choice(strategy, "requested by name", _COSTS[strategy])


def identifies_right(join: ResolvedJoin) -> bool:
    """Whether an as-of join must tell right rows apart: it keeps or forbids unmatched ones, or counts their matches."""
    return keeps_right(join) or join.relationship in ("1:1", "1:m")


def keeps_right(join: ResolvedJoin) -> bool:
    """Whether right rows without a match are needed: the join keeps them, or promises that there are none."""
    return join.how in ("right", "full") or "right" in join.unmatched


_SMALL = 16 * MIB
"""If both sides together are at most this, the plan with the fewest steps is used."""
_SENT_WHOLE = 32 * MIB
"""A right side up to this is broadcast."""
_TINY = 64 * 1024
"""A left side up to this has a few thousand rows at most."""
_ONE_TASK = 640 * MIB
"""Sides below this together fit one kernel task even if all rows have one key."""
_GROWN = 3
"""Rows in memory are about this many times larger than in files."""
_TASK_HOLDS = 1024 * MIB
"""The memory that an even share of both sides may need: half of what the kernel refuses."""


_SKEW_LIMIT = 1.5
"""Cutting by time reads both sides once more; a heavy key below this costs less."""
_NO_KEY = "no equal key: rows are cut by time, so that tasks share them"


def _best_asof(join: ResolvedJoin, facts: Facts | None, session_facts: SessionFacts) -> Choice:
    """Return the first plan that supports the join and fits the known sizes, with the reason."""
    for name, reason in _asof_candidates(join, facts, session_facts):
        if ASOF[name](join) is None:
            return Choice(name, reason, _COSTS[name] + _describe_traffic(name, session_facts))
    return Choice("rank", ASOF["union"](join) or "no other plan supports the join", _COSTS["rank"])


def _describe_traffic(name: str, session_facts: SessionFacts) -> str:
    """Return how many bytes will be sent, if Spark has an estimate."""
    size = {"broadcast": session_facts.right_bytes, "tiny_left": session_facts.left_bytes}.get(
        name, session_facts.both_bytes
    )
    if size is None:
        return ""
    return f"; about {format_size(size)} {'sent' if name in ('broadcast', 'tiny_left') else 'shuffled'}"


def _asof_candidates(join: ResolvedJoin, facts: Facts | None, session_facts: SessionFacts) -> Iterator[tuple[str, str]]:
    # In order of preference; a plan that refuses the join is skipped, and the last one needs no estimate.
    left, right, both = session_facts.left_bytes, session_facts.right_bytes, session_facts.both_bytes
    if facts is not None and _is_skewed(facts, session_facts) and _share_fits(session_facts):
        yield "slices", _skew(facts)
    if both is not None and both <= _SMALL:
        yield "union", f"small sides of about {format_size(both)}: one shuffle and one sort"
    if left is not None and right is not None:
        if left <= _TINY and right >= _SENT_WHOLE:
            reason = (
                f"the left side is tiny, about {format_size(left)}: right rows that it cannot match are not shuffled"
            )
            yield "tiny_left", reason
        if session_facts.may_broadcast and right <= _SENT_WHOLE and left >= 2 * right:
            yield "broadcast", f"the right side is small, about {format_size(right)}: the left side is not shuffled"
    if not join.keys and (both is None or both > _SMALL):
        yield "slices", _NO_KEY
    if not session_facts.no_kernel and _share_fits(session_facts):
        search = "searched group by group, without a sort in the JVM"
        if facts is not None:
            yield "kernel", f"no key is too heavy: {search}"
        elif both is not None and both <= _ONE_TASK:
            yield "kernel", f"sides of about {format_size(both)}: {search}"
        elif both is not None:
            sides = f"sides of about {format_size(both)}"
            yield "slices", f"{sides} could have a key too heavy for one task: such a key is cut by time"
    yield "union", _why_union(session_facts)


def _share(session_facts: SessionFacts) -> int | None:
    """Return the memory of a task if both sides are spread evenly, None if it is not known."""
    if session_facts.both_bytes is None or session_facts.partitions is None:
        return None
    return _GROWN * session_facts.both_bytes // max(session_facts.partitions, 1)


def _share_fits(session_facts: SessionFacts) -> bool:
    share = _share(session_facts)
    return share is None or share <= _TASK_HOLDS


def _is_skewed(facts: Facts, session_facts: SessionFacts) -> bool:
    """Whether the task with the heaviest key runs much longer than all others together."""
    if not facts.skewed:
        return False
    # The share of the heaviest key, as a multiple of what each of the tasks that run at once would get.
    at_once = min(session_facts.cores or facts.partitions, facts.partitions)
    return not facts.skewed[0].values or facts.skewed[0].share * at_once > _SKEW_LIMIT


def _why_union(session_facts: SessionFacts) -> str:
    reason = "exact for any key sizes with one sort"
    if session_facts.no_kernel:
        return reason
    if not _share_fits(session_facts):
        return (
            f"{reason}; {session_facts.partitions} shuffle partitions would give a kernel task about "
            f"{format_size(_share(session_facts) or 0)}, more of them would let it search without a sort"
        )
    return reason


def _skew(facts: Facts) -> str:
    if not facts.skewed[0].values:
        return _NO_KEY
    share = round(facts.skewed[0].share * 100)
    return f"a key has {share} % of the rows: they are cut by time, so that tasks share them"


def _equi(join: ResolvedJoin) -> Choice:
    assert isinstance(join.match, Exact)  # noqa: S101  # the other kinds are handled above
    if join.how == "cross":
        return Choice("equi", "a cross join was requested", "every pair of rows is produced")
    if join.keys:
        return Choice(
            "equi",
            f"{len(join.keys)} equal key{'s' if len(join.keys) > 1 else ''}: Spark picks a broadcast-hash, "
            "shuffled-hash or sort-merge join by size",
            "both sides are shuffled by key unless one is broadcast",
        )
    return Choice(
        "equi",
        "no equal key, predicates only: Spark needs a nested loop",
        "every pair of rows is compared; add an equal key if possible",
    )


def _interval(join: ResolvedJoin) -> Choice:
    match = join.match
    if isinstance(match, Within) and (match.lower is None or match.upper is None):
        return Choice("interval", "an open end: pairs of a key are compared", "a key costs the product of its rows")
    return Choice(
        "interval",
        "both sides are cut into bins of time and joined by key and bin",
        "both sides are shuffled by key and bin; a range is copied into each bin it touches",
    )


def _window(match: SameWindow) -> Choice:
    if match.kind == "session":
        return Choice(
            "session",
            "sessions are numbered over both sides together, then joined by key and number",
            "one shuffle and sort to number, one join by key and session",
        )
    return Choice(
        "window",
        f"{match.kind} windows are numbers: joined by key and window",
        "both sides are shuffled by key and window",
    )


Refusal = Callable[[ResolvedJoin], str | None]
_NO_ARROW = frozenset({"variant", "interval_ym", "time", "null"})
_LONG_DIGITS = 18
_COMPILED = 48  # measured: with more, the method that holds the search is too long for the JVM to compile


def _union_refuses(join: ResolvedJoin, match: AsOf) -> str | None:
    if match.known is None:
        return None
    if match.direction != "backward":
        return f"the union plan refuses a second time axis with direction {match.direction!r}"
    if match.known[0] != match.left:
        return "the union plan refuses two independent cut-offs: no one order serves both axes"
    left, right = join.left.fields[match.left].dtype, join.right.fields[match.right].dtype
    known = join.right.fields[match.known[1]].dtype
    if len({left, right, known}) > 1:
        return f"the union plan refuses a knowledge time of type {known} beside {left} and {right}"
    return None


def _kernel_refuses(join: ResolvedJoin, match: AsOf) -> str | None:
    if not join.keys:
        return "the kernel refuses joins without a key: all rows would be one group"
    for key in join.keys:
        if key.dtype.is_nested or (
            isinstance(key.dtype, Scalar) and (key.dtype.collation or key.dtype.name in _NO_ARROW)
        ):
            return f"the kernel refuses keys of type {key.dtype}"
    left, right = join.left.fields[match.left].dtype, join.right.fields[match.right].dtype
    axis = common_type(left, right) or left
    if axis.is_fraction and (match.tolerance is not None or match.direction == "nearest"):
        return f"the kernel refuses distances between values of type {axis}"
    if isinstance(axis, Decimal) and axis.precision > _LONG_DIGITS:
        return f"the kernel refuses order values of type {axis}: they do not fit 64 bits"
    for field in (*join.left.fields, *join.right.fields):
        if not _has_arrow_type(field.dtype):
            return f"the kernel refuses columns of type {field.dtype}: Spark cannot send them by Arrow"
    return None


def _has_arrow_type(dtype: DType) -> bool:
    if isinstance(dtype, Array):
        return _has_arrow_type(dtype.element)
    if isinstance(dtype, Map):
        return _has_arrow_type(dtype.key) and _has_arrow_type(dtype.value)
    if isinstance(dtype, Struct):
        return all(_has_arrow_type(f.dtype) for f in dtype.fields)
    return not (isinstance(dtype, Scalar) and (dtype.collation or dtype.name in _NO_ARROW))


def _broadcast_refuses(join: ResolvedJoin, match: AsOf) -> str | None:
    if match.skip_nulls:
        return "the broadcast plan refuses skip_nulls: it finds one row for all columns"
    width = sum(_columns_in(f.dtype) for f in (*join.left.fields, *join.right.fields))
    if width > _COMPILED:
        return (
            f"the broadcast plan refuses {width} columns, nested ones counted: Spark compiles its search for "
            f"up to {_COMPILED}, and otherwise copies the right rows of a key for each left row"
        )
    return None


def _columns_in(dtype: DType) -> int:
    """Return how many columns a type counts as when Spark decides whether to compile a plan."""
    if isinstance(dtype, Struct):
        return sum(_columns_in(f.dtype) for f in dtype.fields)
    if isinstance(dtype, Map):
        return _columns_in(dtype.key) + _columns_in(dtype.value)
    return _columns_in(dtype.element) if isinstance(dtype, Array) else 1


def _refuses(
    plan: str, check: Callable[[ResolvedJoin, AsOf], str | None] | None = None, *, two_axes: bool = False
) -> Refusal:
    """Return a function that runs the checks of all plans but rank, then those of one plan."""
    subject = "the kernel" if plan == "kernel" else f"the {plan} plan"

    def refuses(join: ResolvedJoin) -> str | None:
        if not isinstance(join.match, AsOf):
            return f"{subject} refuses joins that are not as-of joins"
        if plan == "rank":  # it tests every pair of rows, so it supports everything
            return None
        if split_conditions(join).pair:
            return f"{subject} refuses predicates that compare a left with a right column"
        # These plans search along one axis, but the best row on two axes need not be the nearest one on either.
        if join.match.known is not None and not two_axes:
            return f"{subject} refuses a second time axis"
        return None if check is None else check(join, join.match)

    return refuses


ASOF: Mapping[str, Refusal] = {
    "kernel": _refuses("kernel", _kernel_refuses),
    "union": _refuses("union", _union_refuses, two_axes=True),
    "slices": _refuses("slices"),
    "broadcast": _refuses("broadcast", _broadcast_refuses),
    "tiny_left": _refuses("tiny_left"),
    "rank": _refuses("rank"),
}
"""For each plan, a function that returns why the plan refuses a join, or None if it supports the join."""


def asof_strategies() -> tuple[str, ...]:
    """Return the names that ``strategy=`` of an as-of join takes, besides ``"auto"``.

    >>> "kernel" in asof_strategies()
    True
    """
    return tuple(ASOF)
