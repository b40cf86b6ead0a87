"""group_by: rows of equal values as one row, with aggregates of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from weft import expr
from weft.core.names import fold, format_list
from weft.errors import ArgumentError, ColumnCollisionError, ExpressionError

if TYPE_CHECKING:
    from pyspark.sql import Column

R = TypeVar("R")
"""The kind of relation that is grouped."""


@dataclass(frozen=True, slots=True)
class Groups(Generic[R]):
    """The groups of a relation; `agg` returns one row for each."""

    frame: Any
    keys: tuple[int, ...]

    def agg(self, columns: Mapping[str, Column | str] | None = None, /, **more: Column | str) -> R:
        """Return one row for each group: the columns of `group_by`, then the aggregates.

        ``trades.group_by("symbol").agg(volume="SUM(quantity)", trades="COUNT(*)")``

        Parameters
        ----------
        columns
            A mapping from names to aggregates, for names that are not valid keywords.  None by default.
        **more
            ``name=aggregate``: an expression with an aggregate function as a string, or a Spark Column.  At least one
            is required.
        """
        frame = self.frame
        named = {**(columns or {}), **more}
        if not named:
            raise ArgumentError("agg needs an aggregate", help="write for example agg(rows='COUNT(*)')")
        by = [frame.columns[i] for i in self.keys]
        taken = {fold(name, case_sensitive=frame.schema.case_sensitive) for name in by}
        aggregates = []
        for name, what in named.items():
            check_new_name(name, "agg", "SUM(column)")
            folded = fold(name, case_sensitive=frame.schema.case_sensitive)
            if folded in taken:
                raise ColumnCollisionError(
                    f"agg names {name!r}, which the result has already", help="give each aggregate a name of its own"
                )
            taken.add(folded)
            if isinstance(what, str):
                _check_aggregate(name, what)
            aggregates.append(frame._compiled(what, aggregates=True)[0].alias(name))  # noqa: SLF001  # our own class
        keys = [frame._column(i) for i in self.keys]  # noqa: SLF001
        grouped: R = frame._with(frame.df.groupBy(*keys).agg(*aggregates))  # noqa: SLF001
        return grouped

    def __repr__(self) -> str:
        return f"Groups of {self.frame} by {format_list(self.frame.columns[i] for i in self.keys)}: call agg(...)"


def check_new_name(name: object, method: str, example: str) -> None:
    """Raise unless the name of a computed column is a string with characters."""
    if not isinstance(name, str) or not name:
        raise ArgumentError(
            f"{method}: a column name must be a string, not {name!r}",
            code="W0303",
            help=f"write {method}(name='{example}') or {method}({{'odd name': '{example}'}})",
        )


def _check_aggregate(name: str, text: str) -> None:
    """Raise unless the expression has an aggregate function: a constant is not one value for each group."""
    functions = expr.FUNCTIONS
    calls = [node.name for node in expr.walk(expr.parse(text)) if isinstance(node, expr.Call)]
    if not any(call in functions and functions[call].aggregate for call in calls):
        names = dict.fromkeys(f.name for f in functions.values() if f.aggregate)
        raise ExpressionError(
            f"the value of {name!r} has no aggregate: {text}", code="W0218", help=f"aggregates are {format_list(names)}"
        )
