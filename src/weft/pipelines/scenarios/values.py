"""Values of scenarios in the types of their columns: what is written, what comes out, and when they are equal."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from weft.core import types
from weft.core.source import Source
from weft.core.types import DType
from weft.errors import ScenarioError

_WHOLE: Mapping[DType, int] = {types.INTEGER: 32, types.LONG: 64}
_TRUTH = {"true": True, "false": False}


def typed_value(value: Any, dtype: DType, at: Source | None = None) -> Any:
    """Return what was written as a value of a column; raise `ScenarioError` when it is none.

    >>> typed_value("1.50", types.Decimal(18, 2)), typed_value("2026-01-31", types.DATE)
    (Decimal('1.50'), datetime.date(2026, 1, 31))
    """
    if value is None:
        return None
    try:
        found = _read(value, dtype)
    except (ValueError, InvalidOperation, ArithmeticError, TypeError):
        found = NotImplemented
    if found is NotImplemented:
        raise ScenarioError(
            f"{_shown(value)} is no {dtype}", code="W1702", help=f"write a value of type {dtype}", at=at
        )
    return found


def _shown(value: Any) -> str:
    return repr(str(value)) if isinstance(value, str) else str(getattr(value, "text", value))


def _read(value: Any, dtype: DType) -> Any:
    if isinstance(dtype, types.Map):
        entries = value.items() if isinstance(value, Mapping) else json.loads(_text(value)).items()
        return {typed_value(k, dtype.key): typed_value(v, dtype.value) for k, v in entries}
    if isinstance(dtype, types.Array):
        items = (
            value if isinstance(value, Sequence) and not isinstance(value, str) else json.loads(_text(value))
        )
        return [typed_value(v, dtype.element) for v in items]
    if isinstance(value, Mapping | list | tuple):
        return NotImplemented
    if isinstance(dtype, types.Decimal):
        return NotImplemented if isinstance(value, bool) else _finite(Decimal(_text(value)))
    if dtype in _WHOLE:
        return _whole(value, _WHOLE[dtype])
    return _simple(value, dtype)


def _simple(value: Any, dtype: DType) -> Any:
    if dtype == types.STRING:
        return _text(value)
    if dtype == types.BOOLEAN:
        return value if isinstance(value, bool) else _TRUTH.get(_text(value).lower(), NotImplemented)
    if dtype == types.DATE:
        return value if type(value) is dt.date else dt.date.fromisoformat(_text(value))
    if dtype in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        moment = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(_text(value))
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    if dtype in (types.DOUBLE, types.FLOAT):
        return NotImplemented if isinstance(value, bool) else float(_text(value))
    return NotImplemented


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(getattr(value, "text", value))


def _finite(number: Decimal) -> Any:
    return number if number.is_finite() else NotImplemented


def _whole(value: Any, bits: int) -> Any:
    if isinstance(value, bool):
        return NotImplemented
    number = Decimal(_text(value))
    if number != number.to_integral_value() or not -(1 << bits - 1) <= number < 1 << bits - 1:
        return NotImplemented
    return int(number)


def fits(value: Any, dtype: DType) -> bool:
    """Whether a column can hold a value without rounding it.

    >>> fits(Decimal("1.005"), types.Decimal(18, 2)), fits(Decimal("1.50"), types.Decimal(18, 2))
    (False, True)
    """
    if value is None or not isinstance(dtype, types.Decimal):
        return True
    exact = round(value, dtype.scale) == value
    return bool(exact and abs(value) < Decimal(10) ** (dtype.precision - dtype.scale))


def equal(expected: Any, actual: Any, tolerance: Decimal | None = None) -> bool:
    """Whether two values of one column are equal; only doubles may differ by a tolerance.

    >>> equal(Decimal("1.0"), Decimal("1.00")), equal(0.1 + 0.2, 0.3), equal(0.1 + 0.2, 0.3, Decimal("0.001"))
    (True, False, True)
    """
    if expected is None or actual is None:
        return expected is actual
    if isinstance(expected, float) and isinstance(actual, float):
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        return expected == actual or (tolerance is not None and abs(expected - actual) <= float(tolerance))
    return bool(expected == actual)


def key_of(value: Any) -> Any:
    """Return a value that can be looked up: equal values have equal keys."""
    if isinstance(value, Mapping):
        return tuple(sorted((k, key_of(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(key_of, value))
    return ("nan",) if isinstance(value, float) and math.isnan(value) else value


def cell_text(value: Any) -> str:
    """Return a value as a file or a report has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(plain(value), sort_keys=True)
    return str(value)


def plain(value: Any) -> Any:
    """Return a value as JSON has it; decimals, days and times are texts."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return cell_text(value)


def is_row_id(value: Any) -> bool:
    """Whether a value has the shape of a row's id."""
    try:
        return str(uuid.UUID(str(value))) == str(value)
    except ValueError:
        return False
