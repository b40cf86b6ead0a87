"""Event times as microseconds of UTC, whatever the session's zone and mode.

::

    iso8601         '2026-01-14T10:00:00Z', '2026-01-14 10:00:00' (in timestamp.zone), '2026-01-14'
    epoch_seconds   1736848800, '1736848800.25'         epoch_millis, epoch_micros: likewise
    timestamp       a column of type TIMESTAMP
    %d.%m.%Y %H:%M  a pattern

A text that does not read gives NULL, never an error: the row is rejected, not the query.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from weft.core.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DType
from weft.errors import ConnectorError
from weft.expr.patterns import text_form

UTC = "UTC"
_BLANKS = " \t\r\n"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})$"
_EPOCHS = {"epoch_seconds": 1_000_000, "epoch_millis": 1_000, "epoch_micros": 1}
_DIRECTIVES = {
    "Y": "yyyy", "y": "yy", "m": "MM", "b": "MMM", "d": "dd", "j": "DDD", "H": "HH", "I": "hh",
    "M": "mm", "S": "ss", "f": "SSSSSS", "p": "a", "z": "[XXX][XX][X]", "%": "'%'",
}  # fmt: skip


def event_micros(F: ModuleType, column: Any, dtype: DType, *, form: str, zone: str = UTC) -> Any:
    """Return the time in a column of type `dtype` as microseconds; what does not read is NULL."""
    if form in _EPOCHS:
        return _epoch(F, column, dtype, _EPOCHS[form])
    if dtype == TIMESTAMP:
        return F.unix_micros(column)
    if dtype in (TIMESTAMP_NTZ, DATE):
        return F.unix_micros(_moment(F, column.cast("timestamp_ntz"), zone))
    if dtype != STRING:
        raise ConnectorError(
            f"an event time of type {dtype} cannot be read as {form!r}",
            code="W2303",
            help="numbers are epoch_seconds, epoch_millis or epoch_micros: say which in 'event.time.format'",
        )
    text = F.btrim(column, F.lit(_BLANKS))
    moment = _patterned(F, text, form, zone) if "%" in form else iso_moment(F, text, zone)
    return F.unix_micros(moment)


def iso_moment(F: ModuleType, text: Any, zone: str = UTC) -> Any:
    """Return an ISO text as TIMESTAMP; without an offset it is a time of `zone`."""
    local = _moment(F, text.try_cast("timestamp_ntz"), zone)
    fits = text.rlike(rf"\A(?:{text_form('timestamp')}|.{{16,26}}[+-][0-9]{{4}})\z")
    read = F.when(text.rlike(_ZONE), text.try_cast("timestamp")).otherwise(local)
    return F.when(fits, read)


def _moment(F: ModuleType, clock: Any, zone: str) -> Any:
    """Return a time without zone as the moment it is in `zone`."""
    told = clock if zone == UTC else F.convert_timezone(F.lit(zone), F.lit(UTC), clock)
    return F.concat(told.cast("string"), F.lit("Z")).try_cast("timestamp")


def _epoch(F: ModuleType, column: Any, dtype: DType, factor: int) -> Any:
    number = F.btrim(column, F.lit(_BLANKS)) if dtype == STRING else column
    if dtype in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        raise ConnectorError(
            f"an event time of type {dtype} is no count since the epoch",
            code="W2303",
            help="leave out 'event.time.format', or write 'timestamp'",
        )
    whole = F.try_multiply(number.try_cast("bigint"), F.lit(factor).cast("bigint"))
    if dtype.is_integer:
        return whole
    parts = F.floor(number.try_cast("decimal(28,9)") * F.lit(factor)).try_cast("bigint")
    if dtype != STRING:
        return parts
    return F.coalesce(whole, parts)  # a text with a fraction is no bigint


def _patterned(F: ModuleType, text: Any, form: str, zone: str) -> Any:
    pattern = spark_pattern(form)
    if "%z" in form:
        return F.try_to_timestamp(text, F.lit(pattern))
    # The zone is part of the text, for the session's own must not decide.
    return F.try_to_timestamp(F.concat(text, F.lit(f" {zone}")), F.lit(f"{pattern} VV"))


def spark_pattern(form: str) -> str:
    """Return a pattern of Python's strptime as Spark writes it.

    >>> spark_pattern("%d.%m.%Y at %H:%M")
    "dd'.'MM'.'yyyy' at 'HH':'mm"
    """
    found: list[str] = []
    literal = ""
    letters = iter(form)
    for letter in letters:
        if letter != "%":
            literal += letter
            continue
        directive = next(letters, "")
        if directive == "%":
            literal += "%"
            continue
        if directive not in _DIRECTIVES:
            raise ConnectorError(
                f"the time pattern {form!r} has %{directive}, which is not read",
                code="W2311",
                help=f"use {', '.join('%' + d for d in _DIRECTIVES)}",
            )
        if literal:
            found.append(_quoted(literal))
            literal = ""
        found.append(_DIRECTIVES[directive])
    return "".join([*found, _quoted(literal)] if literal else found)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
