"""The two sides of a join as a scope for expressions."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.names import listed, near
from weft.core.types import Schema
from weft.errors import Diagnostic
from weft.expr import Column
from weft.joins.resolve.resolved import Side, Slot
from weft.joins.spec.predicates import SIDES


@dataclass(frozen=True, slots=True)
class JoinScope:
    """Resolves ``left.x``, ``right.x``, ``l.x``, ``r.x`` and names that one side alone has."""

    left: Schema
    right: Schema

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column that a reference means, or what is wrong with it."""
        if qualifier is not None:
            side = SIDES.get(qualifier.casefold())
            if side is None:
                return Diagnostic(
                    "W0207", f"{qualifier!r} is not a side of the join", help="write left. or right."
                )
            return self._on_side("left" if side == "left" else "right", name)
        found = [side for side in _BOTH if name in self._schema(side)]
        if len(found) == 2:
            return Diagnostic(
                "W0216", f"both sides have a column {name!r}", help=f"write left.{name} or right.{name}"
            )
        if not found:
            return self._unknown(name, "neither side has a column", (*self.left.names, *self.right.names))
        return self._on_side(found[0], name)

    def names(self) -> tuple[str, ...]:
        """Return every reference that resolves, for near-name help."""
        return (*(f"left.{n}" for n in self.left.names), *(f"right.{n}" for n in self.right.names))

    def _schema(self, side: Side) -> Schema:
        return self.left if side == "left" else self.right

    def _on_side(self, side: Side, name: str) -> Column | Diagnostic:
        schema = self._schema(side)
        index = schema.find(name)
        if index is None:
            return self._unknown(name, f"the {side} side has no column", schema.names)
        field = schema.fields[index]
        return Column(Slot(side, index), field.dtype, field.nullable)

    @staticmethod
    def _unknown(name: str, what: str, available: tuple[str, ...]) -> Diagnostic:
        close = near(name, available)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"there are {listed(available)}"
        return Diagnostic("W0207", f"{what} {name!r}", help=hint)


_BOTH: tuple[Side, Side] = ("left", "right")
