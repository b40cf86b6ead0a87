"""Joins of the in-process stream engine that look into a table and keep no state."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.frozen import FrozenMap
from weft.expr import evaluate
from weft.streams.checkpoint.ledger import COUNTS
from weft.streams.checkpoint.manifest import Counts
from weft.streams.plan.resolved import TableStep
from weft.testing.stream_arrow import Flowing, Values
from weft.testing.values import as_type


def looked_up(
    step: TableStep, rows: Sequence[Flowing], table: Sequence[Values], turned_away: int
) -> tuple[list[Flowing], Counts]:
    """Return rows with what they meet in the table, and the counts of the left side.

    `turned_away` are rows that did not read and that nothing before this join has counted.
    """
    counts = dict.fromkeys(COUNTS, 0)
    counts["in"] = counts["rejected"] = turned_away
    out: list[Flowing] = []
    for row in rows:
        if row.unread is not None:
            out.append(row)
            continue
        found = [other for other in table if _meets(step, row.values, other)]
        counts["in"] += 1
        counts["matched" if found else "unmatched"] += 1
        out.extend(Flowing({**row.values, **other}) for other in found)
        if not found and step.how == "left":
            out.append(row)
    return out, FrozenMap(counts)


def _meets(step: TableStep, left: Values, right: Values) -> bool:
    for key in step.keys:
        mine, other = as_type(left.get(key.left), key.dtype), as_type(right.get(key.right), key.dtype)
        if mine is None or mine != other:
            return False
    return step.residual is None or evaluate(step.residual, {**left, **right}.get) is True
