"""What users say about a join: frozen values with complete equality that print and serialise."""

from weft.spec.asof import AsofOrder, AsofSpec
from weft.spec.join import JoinSpec
from weft.spec.predicates import ColumnPredicate, ExpressionPredicate, JoinPredicate
from weft.spec.projection import JoinProjection
from weft.spec.serial import from_dict
from weft.spec.temporal import IntervalSpec, WindowSpec

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
