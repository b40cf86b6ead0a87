"""Which strategy runs a join, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.core.names import find_similar, format_list
from weft.errors import ArgumentError, JoinSpecError, StrategyRefusedError
from weft.joins.facts import MIB, UNKNOWN, Facts, Ground, in_words
from weft.joins.resolve.conditions import folded
from weft.joins.resolve.resolved import AsOf, Exact, Overlap, ResolvedJoin, SameWindow, Within
from weft.joins.strategies import ASOF


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
    join: ResolvedJoin, strategy: str = "auto", *, facts: Facts | None = None, ground: Ground = UNKNOWN
) -> Choice:
    """Return the strategy for a join; a forced one that cannot serve it raises."""
    if isinstance(join.match, AsOf):
        why = "" if ground is UNKNOWN else ground.no_kernel
        return replace(_choose_asof(folded(join), strategy, facts, ground), facts=facts, no_kernel=why)
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


def _choose_asof(join: ResolvedJoin, strategy: str, facts: Facts | None, ground: Ground) -> Choice:
    if not isinstance(strategy, str):
        raise ArgumentError(
            f"strategy must be a text, not {type(strategy).__name__}",
            help="weft.asof_strategies lists the names",
        )
    if strategy == "auto":
        return _best_asof(join, facts, ground)
    if strategy not in ASOF:
        close = find_similar(strategy, ("auto", *ASOF), most=1)
        raise JoinSpecError(
            f"strategy {strategy!r} is not one of {format_list(('auto', *ASOF))}",
            help=f"did you mean {close[0]!r}?" if close else "",
        )
    refusal = ASOF[strategy](join)
    if refusal is not None:
        raise StrategyRefusedError(refusal, help="leave strategy= out, or take another one")
    if strategy == "kernel" and ground is not UNKNOWN and ground.no_kernel:
        raise StrategyRefusedError(
            f"the kernel refuses to start: {ground.no_kernel}",
            code="W1809",
            help=f"{ground.worker_setting}; or leave strategy= out",
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


def _best_asof(join: ResolvedJoin, facts: Facts | None, ground: Ground) -> Choice:
    """Return the first plan that serves the join and fits what is known, with the reason."""
    for name, reason in _asof_wishes(join, facts, ground):
        if ASOF[name](join) is None:
            return Choice(name, reason, _COSTS[name] + _expected(name, ground))
    return Choice("rank", ASOF["union"](join) or "no other plan serves the join", _COSTS["rank"])


def _expected(name: str, ground: Ground) -> str:
    """Return how much is about to be sent, where Spark has an estimate."""
    size = {"broadcast": ground.right_bytes, "tiny_left": ground.left_bytes}.get(name, ground.both_bytes)
    if size is None:
        return ""
    return f"; about {in_words(size)} {'sent' if name in ('broadcast', 'tiny_left') else 'shuffled'}"


def _asof_wishes(join: ResolvedJoin, facts: Facts | None, ground: Ground) -> Iterator[tuple[str, str]]:
    left, right, both = ground.left_bytes, ground.right_bytes, ground.both_bytes
    if facts is not None and _is_lopsided(facts, ground) and _share_fits(ground):
        yield "slices", _skew(facts)
    if both is not None and both <= _SMALL:
        yield "union", f"small sides of about {in_words(both)}: one shuffle and one sort"
    if left is not None and right is not None:
        if left <= _TINY and right >= _SENT_WHOLE:
            yield "tiny_left", f"the left side of about {in_words(left)} goes to the rows of the right side"
        if ground.may_broadcast and right <= _SENT_WHOLE and left >= 2 * right:
            yield (
                "broadcast",
                f"the right side is small, about {in_words(right)}: the left side stays where it is",
            )
    if not join.keys and (both is None or both > _SMALL):
        yield "slices", "no equal key: rows are cut by time, so that tasks share them"
    if not ground.no_kernel and _share_fits(ground):
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
    yield "union", _why_union(ground)


def _share(ground: Ground) -> int | None:
    """Return what a task holds in memory when both sides are shared out evenly, None where that is not known."""
    if ground.both_bytes is None or ground.partitions is None:
        return None
    return _GROWN * ground.both_bytes // max(ground.partitions, 1)


def _share_fits(ground: Ground) -> bool:
    share = _share(ground)
    return share is None or share <= _TASK_HOLDS


def _is_lopsided(facts: Facts, ground: Ground) -> bool:
    """Whether the heaviest key keeps one task busy for much longer than all others together."""
    if not facts.skewed:
        return False
    at_once = min(ground.cores or facts.partitions, facts.partitions)
    return not facts.skewed[0].values or facts.skewed[0].share * at_once > _LOPSIDED


def _why_union(ground: Ground) -> str:
    sure = "exact for any key sizes with one sort"
    if ground.no_kernel:
        return sure
    if not _share_fits(ground):
        return (
            f"{sure}; {ground.partitions} shuffle partitions would give a kernel task about "
            f"{in_words(_share(ground) or 0)}, more of them would let it search without a sort"
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
