"""Where the rows of both sides lie: exact values, in the frames only where they cost something."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from weft.joins.resolve.axis import Axis
from weft.joins.resolve.resolved import Side
from weft.joins.spark import axis as on_axis
from weft.joins.spark.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(slots=True)
class Places:
    """Two sides and an axis; `sides` gains a column for each value that is dear to compute."""

    sides: Sides
    axis: Axis
    _known: dict[str, Column] = field(default_factory=dict)

    def value(self, side: Side, index: int, role: str = "start") -> Column:
        """Return the exact value of a column on the axis."""
        schema = self.sides.join.left if side == "left" else self.sides.join.right
        own = schema.fields[index].dtype
        column = self.sides.left_column(index) if side == "left" else self.sides.right_column(index)
        found = on_axis.value(self.sides.F, column, own, self.axis)
        return found if on_axis.is_cheap(own, self.axis) else self.kept(side, role, found)

    def kept(self, side: Side, role: str, column: Column) -> Column:
        """Return a column that is computed once, in the frame of its side; a role is kept once."""
        name = f"__weft_{side}_{role}"
        if name not in self._known:
            if side == "left":
                self.sides = replace(self.sides, left=self.sides.left.withColumn(name, column))
            else:
                self.sides = replace(self.sides, right=self.sides.right.withColumn(name, column))
            self._known[name] = self.sides.F.col(name)
        return self._known[name]
