"""What users say about a join: frozen values with complete equality that print and serialise."""

from weft.joins.spec.asof import AsofOrder, AsofSpec
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.predicates import ColumnPredicate, ExpressionPredicate, JoinPredicate
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.serial import from_dict
from weft.joins.spec.temporal import IntervalSpec, WindowSpec

__all__ = [
    "AsofOrder",
    "AsofSpec",
    "ColumnPredicate",
    "ExpressionPredicate",
    "IntervalSpec",
    "JoinPredicate",
    "JoinProjection",
    "JoinSpec",
    "WindowSpec",
    "from_dict",
]
