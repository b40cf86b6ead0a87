"""Random columns for joins: awkward names, types that meet, and few enough values that rows match."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from weft.core import types
from weft.core.types import TIMESTAMP_NTZ, DType, Field, parse_type

NAMES = (
    "id", "Key", "a.b", "c`d", "order id", "class", "select", "left", "Value", "x1", "naïve", "tag#", "from", "_t", "Q",
    "1st", "a-b", "date", "count", "semi;colon",
)  # fmt: skip
"""Mixed case, dotted, quoted, spaced and reserved names."""

DAY = dt.date(2024, 1, 1)
MIDNIGHT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
NOON = MIDNIGHT.replace(hour=12)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

KEY_TYPES = (
    ("integer", "integer"), ("long", "long"), ("integer", "long"), ("string", "string"), ("boolean", "boolean"),
    ("decimal(6,1)", "decimal(6,1)"), ("decimal(6,1)", "decimal(10,3)"), ("long", "decimal(10,2)"),
    ("date", "date"), ("timestamp", "timestamp"), ("date", "timestamp"), ("timestamp_ntz", "timestamp_ntz"),
    ("double", "double"), ("integer", "double"), ("float", "double"), ("binary", "binary"), ("short", "integer"),
)  # fmt: skip
TIME_TYPES = (
    ("timestamp", "timestamp"), ("timestamp", "timestamp"), ("timestamp_ntz", "timestamp_ntz"), ("date", "date"),
    ("date", "timestamp"), ("timestamp", "date"),
)  # fmt: skip
NUMBER_TYPES = (
    ("long", "long"), ("integer", "long"), ("decimal(10,2)", "decimal(10,2)"), ("long", "decimal(6,1)"),
    ("double", "double"), ("integer", "double"),
)  # fmt: skip

_KEYS: dict[str, Sequence[Any]] = {
    "string": ("", "a", "A", "b", "é"),
    "boolean": (True, False),
    "integer": (0, 1, 2, -1),
    "decimal": (Decimal(0), Decimal(1), Decimal("1.5"), Decimal("-0.5")),
    "double": (0.0, -0.0, 1.0, 1.5, float("nan"), float("inf")),
    "date": (DAY, DAY + dt.timedelta(days=1), dt.date(1969, 12, 31)),
    "timestamp": (NOON, MIDNIGHT, NOON.replace(microsecond=1), EPOCH - dt.timedelta(days=1)),
    "binary": (b"", b"a", b"\xff"),
}


def family(dtype: DType) -> str:
    """Return the sort of values that a type has, under which the tables above list them."""
    if dtype.is_integer:
        return "integer"
    if dtype.is_fraction:
        return "double"
    return str(dtype).partition("(")[0].removesuffix("_ntz")


@dataclass(frozen=True)
class RandomColumn:
    """A column: its field, the part it plays, and the values that it takes."""

    field: Field
    values: Sequence[Any]
    nulls: float

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def dtype(self) -> DType:
        return self.field.dtype

    def value(self, rng: random.Random) -> Any:
        return None if rng.random() < self.nulls else rng.choice(self.values)


def columns(
    rng: random.Random, names: tuple[str, str], dtypes: tuple[str, str], values: Sequence[Any] | None = None
) -> tuple[RandomColumn, RandomColumn]:
    """Return a column for each side; both take the same few values, most often NULL too."""
    kinds = parse_type(dtypes[0]), parse_type(dtypes[1])
    if values is None:
        domain = _domain(*kinds)
        values = rng.sample(domain, k=min(len(domain), rng.randint(2, 3)))
    one, other = (
        _column(rng, name, kind, [typed(v, kind) for v in values]) for name, kind in zip(names, kinds, strict=True)
    )
    return one, other


def _column(rng: random.Random, name: str, dtype: DType, values: Sequence[Any]) -> RandomColumn:
    nulls = rng.choice((0.0, 0.1, 0.1, 0.3))
    return RandomColumn(Field(name, dtype, nullable=nulls > 0 or rng.random() < 0.5), values, nulls)


def _domain(one: DType, other: DType) -> Sequence[Any]:
    """Return values that both types hold: the narrower type decides."""
    families = [family(one), family(other)]
    return _KEYS[min(families, key=_NARROW_FIRST.index)] if families[0] != families[1] else _KEYS[families[0]]


_NARROW_FIRST = ("integer", "decimal", "double", "date", "timestamp", "string", "boolean", "binary")


def typed(value: Any, dtype: DType) -> Any:
    """Return a value as Python's type for a column of `dtype`."""
    kind = family(dtype)
    if kind == "timestamp":
        moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time(), dt.UTC)
        return moment.replace(tzinfo=None) if dtype == TIMESTAMP_NTZ else moment
    if isinstance(dtype, types.Decimal):
        return Decimal(value).quantize(Decimal(1).scaleb(-dtype.scale))
    return float(value) if dtype.is_fraction else value


def order_values(rng: random.Random, dtypes: tuple[str, str]) -> list[Any]:
    """Return points on an axis that both types hold, near each other, some before 1970."""
    kinds = {family(parse_type(dtype)) for dtype in dtypes}
    if "date" in kinds:
        return [DAY + dt.timedelta(days=n) for n in range(5)]
    if "timestamp" in kinds:
        start = rng.choice((MIDNIGHT, MIDNIGHT, EPOCH - dt.timedelta(seconds=4)))
        steps = [start + dt.timedelta(seconds=n) for n in range(9)]
        return [*steps, steps[5] + dt.timedelta(microseconds=1)]
    if "integer" in kinds:
        return list(range(-3, 8))
    if "decimal" in kinds:
        return [Decimal(n) / 2 for n in range(-4, 10)]
    return [n / 2 for n in range(-4, 10)] + ([float("nan")] if rng.random() < 0.3 else [])
