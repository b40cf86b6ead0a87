"""asof_join_all: several as-of joins of one left side in one shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from weft.errors import ArgumentError
from weft.expr.spark.frames import check_one_session
from weft.joins.explain import explain_several
from weft.joins.relation.frame import Frame, JoinLineage
from weft.joins.relation.joining import check_relation, resolve_projection
from weft.joins.relation.temporal import check_order
from weft.joins.several import choose_several, resolve_several
from weft.joins.spark.asof_several import lower_several
from weft.joins.spark.streams import check_promises, check_static_side
from weft.joins.spec.asof import AsofSpec

if TYPE_CHECKING:
    from weft.joins.explain import JoinExplanation
    from weft.joins.several import Part
    from weft.joins.spec.projection import JoinProjection
    from weft.joins.spec.values import OrderCheck

_EXAMPLE = "write asof_join_all([(quotes, AsofSpec(...)), (rates, AsofSpec(...))])"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralLineage(JoinLineage):
    """How a relation came out of several joins at once; what the base says is the last of them."""

    parts: tuple[Part, ...]
    specs: tuple[AsofSpec, ...]

    def explain(self) -> JoinExplanation:
        """Return all joins in words."""
        return explain_several(self.parts, self.specs, choice=self.choice, ordering=self.left_ordering)


class SeveralJoins(Frame):
    """``asof_join_all``."""

    __slots__ = ()

    def asof_join_all(
        self,
        parts: Sequence[tuple[Frame, AsofSpec] | tuple[Frame, AsofSpec, JoinProjection]],
        /,
        *,
        order_check: OrderCheck = "ignore",
    ) -> Self:
        """For each left row the nearest right row of each of several right sides, in one shuffle.

        The result is that of `asof_join` with one part after another: same rows, same columns, same
        names, and a spec may not name what a chain would not find.  Each part is a relation, its
        `AsofSpec` and, if columns collide, a `JoinProjection`.  All parts must have the same left
        keys and the same left order column; direction, tolerance and all else may differ.

        ``trades.asof_join_all([(quotes, AsofSpec(...)), (rates, AsofSpec(...))])``

        Parameters
        ----------
        parts
            Tuples of a right relation, its `AsofSpec` and, if columns collide, a `JoinProjection`.
        order_check
            ``"warn"`` or ``"error"`` when the left side has no order marker that fits; ``"ignore"`` by default.
        """
        # The walk of `join_frames` for several right sides: specs, resolve, choose, lower, Relation.
        said = [_part(part, number) for number, part in enumerate(_parts(parts), start=1)]
        for right, _, _ in said:
            check_one_session(self.session, right.session)
        check_order(self, said[0][1], order_check)
        found = resolve_several(self.schema, [(spec, right.schema, project) for right, spec, project in said])
        for part, (right, _, _) in zip(found, said, strict=True):
            check_promises(self.df, right.df, part.chained)
            check_static_side(self.df, right.df, part.chained)
        df = lower_several(self.df, [right.df for right, _, _ in said], found)
        _, spec, project = said[-1]
        lineage = SeveralLineage(
            spec=spec,
            project=project,
            resolved=found[-1].chained,
            choice=choose_several(found),
            left_ordering=self.ordering,
            parts=found,
            specs=tuple(spec for _, spec, _ in said),
        )
        return replace(self, df=df, schema=found[-1].chained.schema, ordering=(), lineage=lineage)


def _parts(parts: object) -> Sequence[Any]:
    if isinstance(parts, str | Frame) or not isinstance(parts, Sequence) or not parts:
        told = "an empty sequence" if isinstance(parts, Sequence) and not parts else type(parts).__name__
        raise ArgumentError(f"asof_join_all takes a sequence of parts, not {told}", help=_EXAMPLE)
    return parts


def _part(part: object, number: int) -> tuple[Frame, AsofSpec, JoinProjection | None]:
    if not isinstance(part, tuple) or len(part) not in (2, 3):
        raise ArgumentError(
            f"asof_join_all: part {number} must be a tuple of a relation and an AsofSpec, not {_kind(part)}",
            help=_EXAMPLE,
        )
    right = check_relation(part[0], f"asof_join_all: part {number}")
    if not isinstance(part[1], AsofSpec):
        raise ArgumentError(
            f"asof_join_all: part {number} takes an AsofSpec, not {type(part[1]).__name__}", help=_EXAMPLE
        )
    return right, part[1], resolve_projection(part[2] if len(part) == 3 else None, None)


def _kind(part: object) -> str:
    return f"a tuple of {len(part)}" if isinstance(part, tuple) else type(part).__name__
