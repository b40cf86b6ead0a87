"""Which strategy runs a join, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from weft.core.names import find_similar, format_list
from weft.core.types import Array, Decimal, DType, Map, Scalar, Struct, common_type
from weft.errors import ArgumentError, JoinSpecError, StrategyRefusedError
from weft.joins.facts import MIB, UNKNOWN, Facts, SessionFacts, in_words
from weft.joins.resolve.predicates import fold_order_conditions, split_conditions
from weft.joins.resolve.resolved import AsOf, Exact, Overlap, ResolvedJoin, SameWindow, Within


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy by name, the reason it was taken, and what a reader should know of its cost."""

    strategy: str
    reason: str
    cost: str = ""
    facts: Facts | None = None
    no_kernel: str = ""
    """Why no row may go through Python, where that is known: slices are then joined by union."""


def choose(
    join: ResolvedJoin,
    strategy: str = "auto",
    *,
    facts: Facts | None = None,
    session_facts: SessionFacts = UNKNOWN,
) -> Choice:
    """Return the strategy for a join; a forced one that cannot serve it raises."""
    if isinstance(join.match, AsOf):
        why = "" if session_facts is UNKNOWN else session_facts.no_kernel
        return replace(
            _choose_asof(fold_order_conditions(join), strategy, facts, session_facts),
            facts=facts,
            no_kernel=why,
        )
    if isinstance(join.match, Within | Overlap):
        return _interval(join)
    if isinstance(join.match, SameWindow):
        return _window(join.match)
    return _equi(join)


_COSTS = {
    "kernel": "one shuffle of both sides by key; rows go to Python and back, where a task holds up to three times "
    "its share of both sides and 100 bytes a row; a share above 2 GB is refused",
    "union": "one shuffle and one sort of both sides together; a key's rows stay in one task",
    "slices": "both sides are read once more for a sample, the right one again where its rows are few or lie apart; "
    "then one shuffle of both sides in even shares, which go to Python and back as in the kernel plan if it serves "
    "the join",
    "broadcast": "no shuffle of the left side; the right side is grouped by key and sent whole to every executor",
    "tiny_left": "both sides are read twice, the left one is sent whole to every executor; "
    "of the right side only rows that can be an answer are shuffled",
    "rank": "every candidate pair is produced: a key costs the product of its rows",
}


def _choose_asof(
    join: ResolvedJoin, strategy: str, facts: Facts | None, session_facts: SessionFacts
) -> Choice:
    if not isinstance(strategy, str):
        raise ArgumentError(
            f"strategy must be a text, not {type(strategy).__name__}",
            help="weft.asof_strategies lists the names",
        )
    if strategy == "auto":
        return _best_asof(join, facts, session_facts)
    if strategy not in ASOF:
        close = find_similar(strategy, ("auto", *ASOF), most=1)
        raise JoinSpecError(
            f"strategy {strategy!r} is not one of {format_list(('auto', *ASOF))}",
            help=f"did you mean {close[0]!r}?" if close else "",
        )
    refusal = ASOF[strategy](join)
    if refusal is not None:
        raise StrategyRefusedError(refusal, help="leave strategy= out, or take another one")
    if strategy == "kernel" and session_facts is not UNKNOWN and session_facts.no_kernel:
        raise StrategyRefusedError(
            f"the kernel refuses to start: {session_facts.no_kernel}",
            code="W1809",
            help=f"{session_facts.worker_setting}; or leave strategy= out",
        )
    return Choice(strategy, "asked for by name", _COSTS[strategy])


_SMALL = 16 * MIB
"""Sides below this together are joined by the plan with the fewest steps."""
_SENT_WHOLE = 32 * MIB
"""A right side up to this is sent to every executor."""
_TINY = 64 * 1024
"""A left side up to this is some thousand rows at most."""
_ONE_TASK = 640 * MIB
"""Sides below this together fit one kernel task even if all rows have one key."""
_GROWN = 3
"""Rows grow about so many times from files to memory."""
_TASK_HOLDS = 1024 * MIB
"""What an even share of both sides may have in memory: half of what the kernel refuses."""


_LOPSIDED = 1.5
"""Cutting by time reads both sides once more; below this a heavy key costs less."""


def _best_asof(join: ResolvedJoin, facts: Facts | None, session_facts: SessionFacts) -> Choice:
    """Return the first plan that serves the join and fits what is known, with the reason."""
    for name, reason in _asof_wishes(join, facts, session_facts):
        if ASOF[name](join) is None:
            return Choice(name, reason, _COSTS[name] + _expected(name, session_facts))
    return Choice("rank", ASOF["union"](join) or "no other plan serves the join", _COSTS["rank"])


def _expected(name: str, session_facts: SessionFacts) -> str:
    """Return how much is about to be sent, where Spark has an estimate."""
    size = {"broadcast": session_facts.right_bytes, "tiny_left": session_facts.left_bytes}.get(
        name, session_facts.both_bytes
    )
    if size is None:
        return ""
    return f"; about {in_words(size)} {'sent' if name in ('broadcast', 'tiny_left') else 'shuffled'}"


def _asof_wishes(
    join: ResolvedJoin, facts: Facts | None, session_facts: SessionFacts
) -> Iterator[tuple[str, str]]:
    left, right, both = session_facts.left_bytes, session_facts.right_bytes, session_facts.both_bytes
    if facts is not None and _is_lopsided(facts, session_facts) and _share_fits(session_facts):
        yield "slices", _skew(facts)
    if both is not None and both <= _SMALL:
        yield "union", f"small sides of about {in_words(both)}: one shuffle and one sort"
    if left is not None and right is not None:
        if left <= _TINY and right >= _SENT_WHOLE:
            yield "tiny_left", f"the left side of about {in_words(left)} goes to the rows of the right side"
        if session_facts.may_broadcast and right <= _SENT_WHOLE and left >= 2 * right:
            yield (
                "broadcast",
                f"the right side is small, about {in_words(right)}: the left side stays where it is",
            )
    if not join.keys and (both is None or both > _SMALL):
        yield "slices", "no equal key: rows are cut by time, so that tasks share them"
    if not session_facts.no_kernel and _share_fits(session_facts):
        if facts is not None:
            yield "kernel", "no key is too heavy: searched group by group, without a sort in the JVM"
        elif both is not None and both <= _ONE_TASK:
            yield (
                "kernel",
                f"sides of about {in_words(both)}: searched group by group, without a sort in the JVM",
            )
        elif both is not None:
            yield (
                "slices",
                f"sides of about {in_words(both)} could have a key too heavy for one task: such a key is cut by time",
            )
    yield "union", _why_union(session_facts)


def _share(session_facts: SessionFacts) -> int | None:
    """Return what a task holds in memory when both sides are shared out evenly, None where that is not known."""
    if session_facts.both_bytes is None or session_facts.partitions is None:
        return None
    return _GROWN * session_facts.both_bytes // max(session_facts.partitions, 1)


def _share_fits(session_facts: SessionFacts) -> bool:
    share = _share(session_facts)
    return share is None or share <= _TASK_HOLDS


def _is_lopsided(facts: Facts, session_facts: SessionFacts) -> bool:
    """Whether the heaviest key keeps one task busy for much longer than all others together."""
    if not facts.skewed:
        return False
    at_once = min(session_facts.cores or facts.partitions, facts.partitions)
    return not facts.skewed[0].values or facts.skewed[0].share * at_once > _LOPSIDED


def _why_union(session_facts: SessionFacts) -> str:
    sure = "exact for any key sizes with one sort"
    if session_facts.no_kernel:
        return sure
    if not _share_fits(session_facts):
        return (
            f"{sure}; {session_facts.partitions} shuffle partitions would give a kernel task about "
            f"{in_words(_share(session_facts) or 0)}, more of them would let it search without a sort"
        )
    return sure


def _skew(facts: Facts) -> str:
    if not facts.skewed[0].values:
        return "no equal key: rows are cut by time, so that tasks share them"
    share = round(facts.skewed[0].share * 100)
    return f"a key has {share} % of the rows: they are cut by time, so that tasks share them"


def _equi(join: ResolvedJoin) -> Choice:
    assert isinstance(join.match, Exact)  # noqa: S101  # the other kinds are dealt with above
    if join.how == "cross":
        return Choice("equi", "a cross join was asked for by name", "every pair of rows is produced")
    if join.keys:
        return Choice(
            "equi",
            f"{len(join.keys)} equal key{'s' if len(join.keys) > 1 else ''}: Spark picks a broadcast-hash, "
            "shuffled-hash or sort-merge join by size",
            "both sides are shuffled by key unless one is broadcast",
        )
    return Choice(
        "equi",
        "no equal key, predicates only: Spark can do no better than a nested loop",
        "every pair of rows is compared; add an equal key if there is one",
    )


def _interval(join: ResolvedJoin) -> Choice:
    match = join.match
    if isinstance(match, Within) and (match.lower is None or match.upper is None):
        return Choice(
            "interval", "an open end: pairs of a key are compared", "a key costs the product of its rows"
        )
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


_NO_KEY = frozenset({"variant", "interval_ym", "time", "null"})
_NO_ARROW = frozenset({"variant", "interval_ym", "time", "null"})
_LONG_DIGITS = 18
_COMPILED = 48  # with more, the method that holds the search is too long for the JVM to compile


def _union_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the union plan refuses joins that are not as-of joins"
    if split_conditions(join).pair:
        return "the union plan refuses predicates that compare a left with a right column"
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


def _kernel_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the kernel refuses joins that are not as-of joins"
    if split_conditions(join).pair:
        return "the kernel refuses predicates that compare a left with a right column"
    if match.known is not None:
        return "the kernel refuses a second time axis"
    if not join.keys:
        return "the kernel refuses joins without a key: all rows would be one group"
    for key in join.keys:
        if key.dtype.is_nested or (
            isinstance(key.dtype, Scalar) and (key.dtype.collation or key.dtype.name in _NO_KEY)
        ):
            return f"the kernel refuses keys of type {key.dtype}"
    left, right = join.left.fields[match.left].dtype, join.right.fields[match.right].dtype
    axis = common_type(left, right) or left
    if axis.is_fraction and (match.tolerance is not None or match.direction == "nearest"):
        return f"the kernel refuses distances between values of type {axis}"
    if isinstance(axis, Decimal) and axis.precision > _LONG_DIGITS:
        return f"the kernel refuses order values of type {axis}: they do not fit 64 bits"
    for field in (*join.left.fields, *join.right.fields):
        if not _travels(field.dtype):
            return f"the kernel refuses columns of type {field.dtype}: they do not travel by Arrow"
    return None


def _travels(dtype: DType) -> bool:
    if isinstance(dtype, Array):
        return _travels(dtype.element)
    if isinstance(dtype, Map):
        return _travels(dtype.key) and _travels(dtype.value)
    if isinstance(dtype, Struct):
        return all(_travels(f.dtype) for f in dtype.fields)
    return not (isinstance(dtype, Scalar) and (dtype.collation or dtype.name in _NO_ARROW))


def _slices_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the slices plan refuses joins that are not as-of joins"
    if split_conditions(join).pair:
        return "the slices plan refuses predicates that compare a left with a right column"
    if match.known is not None:
        return "the slices plan refuses a second time axis: a row known late is about an earlier slice"
    return None


def _broadcast_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the broadcast plan refuses joins that are not as-of joins"
    if split_conditions(join).pair:
        return "the broadcast plan refuses predicates that compare a left with a right column"
    if match.known is not None:
        return "the broadcast plan refuses a second time axis"
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
    """Return how many columns a type counts for when Spark decides whether to compile."""
    if isinstance(dtype, Struct):
        return sum(_columns_in(f.dtype) for f in dtype.fields)
    if isinstance(dtype, Map):
        return _columns_in(dtype.key) + _columns_in(dtype.value)
    return _columns_in(dtype.element) if isinstance(dtype, Array) else 1


def _tiny_left_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the tiny_left plan refuses joins that are not as-of joins"
    if split_conditions(join).pair:
        return "the tiny_left plan refuses predicates that compare a left with a right column"
    if match.known is not None:
        return "the tiny_left plan refuses a second time axis"
    return None


def _rank_refuses(join: ResolvedJoin) -> str | None:
    if not isinstance(join.match, AsOf):
        return "the rank plan refuses joins that are not as-of joins"
    return None


ASOF: Mapping[str, Callable[[ResolvedJoin], str | None]] = {
    "kernel": _kernel_refuses,
    "union": _union_refuses,
    "slices": _slices_refuses,
    "broadcast": _broadcast_refuses,
    "tiny_left": _tiny_left_refuses,
    "rank": _rank_refuses,
}
"""Plan names and what each refuses: a sentence, or None when it serves the join."""


def asof_strategies() -> tuple[str, ...]:
    """Return the names that ``strategy=`` of an as-of join takes, besides ``"auto"``."""
    return tuple(ASOF)
