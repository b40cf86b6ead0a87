"""As-of joins that keep every right row: the matches that a plan finds, joined with the right side.

Before::

    left ASOF RIGHT right  keys k, order (t, u)

After::

    (left ASOF right') m RIGHT JOIN right' r ON m.k <=> r.k AND m.u <=> r.u AND m.n = r.n
    right' = SELECT *, row_number() OVER (PARTITION BY k, u ORDER BY ties..) AS n FROM right

Key, time and number identify a right row.  The number depends on the values of the row and not on its
place, because Spark may read the right side once for the search and once for the join: only rows that
are equal in all columns may exchange their numbers, which changes no result.  Any plan can search, and
it returns the identity of the chosen row instead of its columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from weft.core.names import RIGHT, internal_name
from weft.core.types import INTEGER
from weft.expr.spark.frames import window_of
from weft.joins.choose import keeps_right
from weft.joins.resolve.resolved import AsOf, OutputColumn, append_column
from weft.joins.spark.contracts import ROW
from weft.joins.spark.order import tie_slots
from weft.joins.spark.sides import LEFT_HERE, RIGHT_HERE, SPARK_HOW, Sides
from weft.joins.spec.values import How

_CHOSEN = "__weft_chosen_"
Plan = Callable[[Sides, AsOf], DataFrame]


def lower(sides: Sides, match: AsOf, plan: Plan) -> DataFrame:
    """Return the joined rows under positional names, with the right rows that the join needs; no job runs."""
    F, join = sides.F, sides.join
    numbered = _Numbered.of(sides, match)
    lefts = join.how in ("left", "full") or "left" in join.unmatched
    found = plan(numbered.searched("left" if lefts else "inner"), match)
    # The columns of a right row come from the right side itself, except those that several rows fill.
    chosen = {f"{_CHOSEN}{i}": F.col(internal_name(RIGHT, i)) for i in (*numbered.identity, *match.skip_nulls)}
    pairs = found.withColumns(chosen).drop(*numbered.names, RIGHT_HERE)
    same = F.col(internal_name(RIGHT, numbered.number)) == F.col(f"{_CHOSEN}{numbered.number}")
    for i in numbered.identity[:-1]:
        same = same & F.col(internal_name(RIGHT, i)).eqNullSafe(F.col(f"{_CHOSEN}{i}"))
    row = F.struct(*(internal_name(RIGHT, i) for i in numbered.identity))
    rows = numbered.sides.right.withColumns({RIGHT_HERE: F.lit(True), ROW["right"]: row})
    hows: tuple[How, How] = ("full", "right") if keeps_right(join) else ("left", "inner")
    joined = pairs.join(rows, same, SPARK_HOW[hows[0] if lefts else hows[1]])
    filled = {
        internal_name(RIGHT, i): F.when(F.col(LEFT_HERE).isNotNull(), F.col(f"{_CHOSEN}{i}")).otherwise(
            F.col(internal_name(RIGHT, i))
        )
        for i in match.skip_nulls
    }
    return joined.withColumns(filled) if filled else joined


@dataclass(frozen=True, slots=True)
class _Numbered:
    """The sides of a join with a number for each right row; `identity` are the columns that identify one."""

    sides: Sides
    identity: tuple[int, ...]
    skipping: tuple[int, ...]

    @classmethod
    def of(cls, sides: Sides, match: AsOf) -> _Numbered:
        F, join = sides.F, sides.join
        number = len(join.right)
        place = tuple(dict.fromkeys((*(key.right for key in join.keys), match.right)))
        by = [F.col(internal_name(RIGHT, i)) for i in place]
        ties = [sides.column(slot) for slot in tie_slots(join, match)] or [F.lit(0)]
        n = F.row_number().over(window_of(sides.right).partitionBy(*by).orderBy(*ties))
        wider = replace(join, right=append_column(join.right, "__weft_number", INTEGER))
        right = sides.right.withColumn(internal_name(RIGHT, number), n)
        return cls(replace(sides, join=wider, right=right), (*place, number), match.skip_nulls)

    @property
    def number(self) -> int:
        """The position of the number."""
        return self.identity[-1]

    @property
    def names(self) -> list[str]:
        """The names of all right columns."""
        return self.sides.names("right")

    def searched(self, how: How) -> Sides:
        """Return the sides of the search, whose result is left columns and the identity of a right row."""
        join = self.sides.join
        lefts = dict.fromkeys((*(c.left for c in join.output if c.left is not None), *(k.left for k in join.keys)))
        output = (
            *(OutputColumn.of("left", i, join.left.fields[i], nullable=True) for i in lefts),
            *(
                OutputColumn.of("right", i, join.right.fields[i], nullable=True)
                for i in (*self.identity, *self.skipping)
            ),
        )
        return replace(self.sides, join=replace(join, how=how, unmatched=(), output=output))
