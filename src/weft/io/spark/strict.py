"""Values converted to the type that a dataset declares, exactly or not at all.

::

    text '12.30'   -> decimal(18,2)    12.30
    text '12.345'  -> decimal(18,2)    W1317: nothing is rounded on the way in
    double 12.3    -> decimal(18,2)    12.30, because 12.30 is that double
    long           -> decimal(18,2)    exact where it fits, else W1317
    timestamp      -> string           refused before anything is read
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pyspark.sql import Column

from weft.core.types import BOOLEAN, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Decimal, DType, Map, common_type
from weft.errors import ResolutionError
from weft.expr.casts import kind_of
from weft.expr.literals import TEXT_FORMS, text_form
from weft.expr.spark.types import to_spark

MARK = "[WEFT_DATA]"
"""Prefix of the messages about invalid values."""

_BLANKS = " \t\r\n"
_DAY_MICROS = 86_400_000_000
_EXCERPT = 100
_ZONE = r"(?:Z|[+-][0-9]{2}:[0-9]{2})$"


def strict(F: ModuleType, column: Any, source: DType, target: DType, *, name: str, place: Any) -> Column:
    """Return the column in the type `target`; a value that has no exact place there fails the query.

    `place` is a column or constant with the place of the value.
    """
    read = exact(F, column, source, target)
    if read is None:
        raise ResolutionError(
            f"column {name!r} is {source} in the data and {target} in the dataset",
            code="W1317",
            help=f"declare it as {source}, or write the data in the declared type",
        )
    value, fits = read
    if fits is None:
        return value  # type: ignore[no-any-return]
    excerpt = F.substring(column.cast("string"), 1, _EXCERPT)
    message = F.concat(
        F.lit(f"{MARK} W1317 column '{name}' holds '"),
        excerpt,
        F.lit(f"', which is not exactly a {target}, in "),
        place,
    )
    checked: Column = F.when(column.isNull() | fits, value).otherwise(F.raise_error(message))
    return checked


def exact(F: ModuleType, column: Any, source: DType, target: DType) -> tuple[Any, Any] | None:
    """Return the converted column and the condition under which it is exact; None there means always."""
    if str(source) == str(target) or (source == STRING and target == STRING):
        return column, None
    if source == STRING:
        return _from_text(F, column, target)
    if target == STRING:
        fits = source.is_numeric or source in (BOOLEAN, DATE)
        return (column.cast("string"), None) if fits else None
    if source.is_numeric and target.is_numeric:
        return _number(column, source, target)
    return _time(F, column, source, target)


def _from_text(F: ModuleType, column: Any, target: DType) -> tuple[Any, Any] | None:
    if isinstance(target, Map):
        read = F.from_json(column, to_spark(target))
        return read, read.isNotNull()
    kind = kind_of(target)
    if kind not in TEXT_FORMS:
        return None
    trimmed = F.btrim(column, F.lit(_BLANKS))
    if target == TIMESTAMP:
        local = F.concat(trimmed.try_cast("timestamp_ntz").cast("string"), F.lit("Z")).try_cast("timestamp")
        value = F.when(trimmed.rlike(_ZONE), trimmed.try_cast("timestamp")).otherwise(local)
    else:
        value = trimmed.try_cast(to_spark(target))
    fits = column.rlike(rf"\A(?:{text_form(kind)})\z") & value.isNotNull()
    if isinstance(target, Decimal):
        # More digits than the scale has would be rounded; zeros behind them change nothing.
        rounded = trimmed.rlike(rf"\.[0-9]{{{target.scale}}}[0-9]*[1-9]") & ~trimmed.rlike("[eE]")
        scientific = trimmed.rlike("[eE]") & (value.cast("double") != trimmed.try_cast("double"))
        # Most strings have no more digits than the type, which one pattern can tell.
        fits = F.when(column.rlike(_plain(target)), value.isNotNull()).otherwise(fits & ~rounded & ~scientific)
    return value, fits


def _plain(target: Decimal) -> str:
    r"""Return the pattern of texts that a decimal type holds as they are written.

    >>> print(_plain(Decimal(10, 2)))
    \A[+-]?[0-9]{1,8}(?:\.[0-9]{1,2})?\z
    """
    whole = max(target.precision - target.scale, 1)
    return rf"\A[+-]?[0-9]{{1,{whole}}}" + (rf"(?:\.[0-9]{{1,{target.scale}}})?\z" if target.scale else r"\z")


def _number(column: Any, source: DType, target: DType) -> tuple[Any, Any]:
    if common_type(source, target) == target and not (target.is_fraction and not source.is_fraction):
        return column.cast(to_spark(target)), None
    value = column.try_cast(to_spark(target))
    # A conversion is exact if it can be undone.
    back = value.try_cast(to_spark(source))
    return value, back.isNotNull() & (back == column)


def _time(F: ModuleType, column: Any, source: DType, target: DType) -> tuple[Any, Any] | None:
    if target == TIMESTAMP and source in (DATE, TIMESTAMP_NTZ):
        return utc_moment(F, column, source), None
    if target == DATE and source in (TIMESTAMP, TIMESTAMP_NTZ):
        micros = F.unix_micros(utc_moment(F, column, source))
        return utc_day(F, column, source), F.pmod(micros, F.lit(_DAY_MICROS)) == F.lit(0)
    return None


def utc_moment(F: ModuleType, column: Any, source: DType) -> Any:
    """Return a date or a time without zone as a moment of UTC, whatever the zone of the session."""
    if source == TIMESTAMP:
        return column
    # Through text with a Z: a direct cast would use the zone of the session.
    clock = column.cast("timestamp_ntz") if source == DATE else column
    return F.concat(clock.cast("string"), F.lit("Z")).cast("timestamp")


def utc_day(F: ModuleType, column: Any, source: DType) -> Any:
    """Return the UTC day of a moment."""
    if source == DATE:
        return column
    # By arithmetic: `to_date` would take the day in the zone of the session.
    micros = F.unix_micros(utc_moment(F, column, source))
    days = F.floor((micros - F.pmod(micros, F.lit(_DAY_MICROS))) / F.lit(_DAY_MICROS))
    return F.date_from_unix_date(days.cast("int"))
