"""Types of decimal results, as Spark gives them, and exact arithmetic in those types."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context
from decimal import Decimal as Number

from weft.core.types import MAX_PRECISION, Decimal
from weft.errors import EvaluationError

_KEPT_FRACTION = 6
_WIDE = Context(prec=400, rounding=ROUND_HALF_UP, Emax=10_000, Emin=-10_000)
"""Holds every intermediate result of two 38 digit numbers without rounding."""


def bounded(precision: int, scale: int) -> Decimal:
    """Return the type, or the nearest one that exists."""
    return Decimal(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted(precision: int, scale: int) -> Decimal:
    """Return the type; past 38 digits the fraction gives way, down to six digits."""
    if precision <= MAX_PRECISION:
        return Decimal(precision, scale)
    whole = precision - scale
    return Decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _KEPT_FRACTION)))


def result_type(op: str, a: Decimal, b: Decimal) -> Decimal:
    """Return the type of ``a op b``.

    >>> str(result_type("*", Decimal(18, 2), Decimal(10, 4)))
    'decimal(29,6)'
    >>> str(result_type("/", Decimal(3, 0), Decimal(1, 0)))
    'decimal(9,6)'
    """
    whole_a, whole_b, scale = a.precision - a.scale, b.precision - b.scale, max(a.scale, b.scale)
    match op:
        case "+" | "-":
            return adjusted(max(whole_a, whole_b) + scale + 1, scale)
        case "*":
            return adjusted(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            fraction = max(_KEPT_FRACTION, a.scale + b.precision + 1)
            return adjusted(whole_a + b.scale + fraction, fraction)
        case _:
            return adjusted(min(whole_a, whole_b) + scale, scale)


def fit(value: Number, dtype: Decimal) -> Number:
    """Round half up to the scale of the type; a number with too many digits is an error."""
    try:
        rounded = _WIDE.quantize(value, Number(1).scaleb(-dtype.scale))
    except ArithmeticError:
        rounded = Number("Infinity")
    if not rounded.is_finite() or abs(rounded) >= Number(10) ** (dtype.precision - dtype.scale):
        raise EvaluationError(
            f"{value:.20g} does not fit into {dtype}",
            help="use a wider type, or round the parts before",
        )
    return rounded or abs(rounded)


def compute(op: str, a: Number, b: Number, dtype: Decimal) -> Number | None:
    """Return ``a op b`` in the type; division and remainder by zero are None.

    Quotients are rounded to 39 places first, because Spark's are; products are rounded once.
    """
    match op:
        case "+":
            return fit(_WIDE.add(a, b), dtype)
        case "-":
            return fit(_WIDE.subtract(a, b), dtype)
        case "*":
            return fit(_WIDE.multiply(a, b), dtype)
    if not b:
        return None
    if op == "%":
        return fit(_WIDE.remainder(a, b), dtype)
    return fit(_WIDE.quantize(_WIDE.divide(a, b), Number(1).scaleb(-MAX_PRECISION - 1)), dtype)


def round_half_up(value: Number, digits: int) -> Number:
    """Round to that many places after the point, before it when negative."""
    return _WIDE.quantize(value, Number(1).scaleb(-digits))
