"""Resolved joins made by hand, so that the reference engine is tested without the planner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from weft import expr
from weft.core.duration import Duration
from weft.core.types import STRING, DType, Schema, common_type
from weft.errors import Diagnostic
from weft.joins.resolve.resolved import (
    AsOf,
    Exact,
    Match,
    OutputColumn,
    ResolvedJoin,
    ResolvedKey,
    ResolvedPredicate,
    SameWindow,
    Slot,
    Within,
)
from weft.testing import Table, reference_join


def micros(text: str) -> int:
    return Duration.parse(text, signed=True).microseconds


def common(one: DType, other: DType) -> DType:
    found = common_type(one, other)
    assert found is not None
    return found


@dataclass(frozen=True)
class SlotScope:
    """Columns of both sides as slots, the way the planner binds predicates."""

    left: Schema
    right: Schema

    def resolve(self, qualifier: str | None, name: str) -> expr.Column | Diagnostic:
        for side, schema in (("left", self.left), ("right", self.right)):
            if qualifier in (side, None) and name in schema:
                slot = Slot("left" if side == "left" else "right", schema.index(name))
                return expr.Column(slot, schema[name].dtype)
        return Diagnostic("W0207", f"no column {name!r}")

    def names(self) -> tuple[str, ...]:
        return (*self.left.names, *self.right.names)


def predicate(text: str, left: Schema, right: Schema) -> ResolvedPredicate:
    tree = expr.parse(text, dialect="fragment")
    return ResolvedPredicate(text=text, typed=expr.check(tree, SlotScope(left, right)))


def resolved(
    left: Table,
    right: Table,
    keys: Sequence[tuple[str, str] | str] = (),
    match: Match | None = None,
    *,
    how: Any = "inner",
    where: Sequence[str] = (),
    **options: Any,
) -> ResolvedJoin:
    """Return a join of two tables; its output is all left columns, then the right ones that are not keys."""
    pairs = [(k, k) if isinstance(k, str) else k for k in keys]
    resolved_keys = tuple(
        ResolvedKey(
            left=left.schema.index(a),
            right=right.schema.index(b),
            dtype=common(left.schema[a].dtype, right.schema[b].dtype),
            origin="spec",
        )
        for a, b in pairs
    )
    return ResolvedJoin(
        how=how,
        left=left.schema,
        right=right.schema,
        keys=resolved_keys,
        match=match or Exact(),
        output=_output(left.schema, right.schema, resolved_keys, how),
        conditions=tuple(predicate(text, left.schema, right.schema) for text in where),
        **options,
    )


def _output(left: Schema, right: Schema, keys: Sequence[ResolvedKey], how: str) -> tuple[OutputColumn, ...]:
    partner = {k.left: k for k in keys} if how in ("right", "full") else {}
    mine = [
        OutputColumn(
            name=f.name,
            dtype=partner[i].dtype if i in partner else f.dtype,
            nullable=True,
            source="coalesced" if i in partner else "left",
            left=i,
            right=partner[i].right if i in partner else None,
        )
        for i, f in enumerate(left)
    ]
    dropped = {k.right for k in keys}
    theirs = [
        OutputColumn(name=f.name, dtype=f.dtype, nullable=True, source="right", right=j)
        for j, f in enumerate(right)
        if j not in dropped and how not in ("semi", "anti")
    ]
    return (*mine, *theirs)


def with_indicator(join: ResolvedJoin) -> ResolvedJoin:
    reported = OutputColumn(name="_merge", dtype=STRING, nullable=False, source="indicator")
    return replace(join, output=(*join.output, reported))


def asof(left: Table, right: Table, at: tuple[str, str], **options: Any) -> AsOf:
    tolerance, tie_break = options.pop("tolerance", None), options.pop("tie_break", ())
    values: dict[str, Any] = {
        "direction": "backward",
        "allow_exact": True,
        "nearest_tie": "backward",
        **options,
    }
    return AsOf(
        left=left.schema.index(at[0]),
        right=right.schema.index(at[1]),
        tolerance=micros(tolerance) if isinstance(tolerance, str) else tolerance,
        tie_break=tuple(right.schema.index(name) for name in tie_break),
        **values,
    )


def within(
    left: Table,
    right: Table,
    at: tuple[str, str],
    lower: str | Decimal | None,
    upper: str | Decimal | None,
) -> Within:
    return Within(
        left=left.schema.index(at[0]),
        right=right.schema.index(at[1]),
        lower=micros(lower) if isinstance(lower, str) else lower,
        upper=micros(upper) if isinstance(upper, str) else upper,
    )


def window(left: Table, right: Table, at: tuple[str, str], kind: Any, **sizes: Any) -> SameWindow:
    lengths = {name: micros(sizes[name]) if name in sizes else None for name in ("size", "slide", "gap")}
    return SameWindow(
        left=left.schema.index(at[0]),
        right=right.schema.index(at[1]),
        kind=kind,
        per_window=bool(sizes.get("per_window")),
        **lengths,
    )


def run(left: Table, right: Table, join: ResolvedJoin) -> list[tuple[Any, ...]]:
    return reference_join(join, left.rows, right.rows)
