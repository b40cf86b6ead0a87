"""Values of options: from their text to a typed value, or why the text is none."""

from __future__ import annotations

import json
import re
import zoneinfo
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn

from weft.core.duration import Duration
from weft.core.names import listed, near
from weft.errors import StreamSqlError
from weft.streams.sql.spec import TIME_DIRECTIVES, Bounds

Kind = Literal[
    "text", "any_text", "word", "flag", "count", "duration", "signed_duration", "length", "bounds",
    "character", "zone", "offsets", "time_format", "names",
]  # fmt: skip
"""``duration`` may be zero, ``length`` may not; ``signed_duration`` may be negative."""

Words = tuple[str, ...]
_BOUNDS = re.compile(r"\[\s*(?P<a>[^,\]]+?)\s*,\s*(?P<b>[^,\]]+?)\s*\]|(?P<c>.+?)\s*\.\.\s*(?P<d>.+)")
_OFFSET = re.compile(r"[+-](0\d|1[0-8]):?[0-5]\d")
_LARGEST = (1 << 63) - 1


def _refuse(message: str, help: str) -> NoReturn:
    raise StreamSqlError(message, code="W2006", help=help)


def _text(value: str, words: Words) -> str:  # noqa: ARG001  # all readers are called alike
    if not value.strip():
        _refuse("the value is empty", "write a value, or leave the option out")
    if "\0" in value:
        _refuse("the value has a NUL character", "leave it out")
    return value


def _any_text(value: str, words: Words) -> str:  # noqa: ARG001
    return value


def _word(value: str, words: Words) -> str:
    if value.lower() in words:
        return value.lower()
    close = near(value, words, most=1)
    help = f"did you mean {close[0]!r}?" if close else f"write {' or '.join(map(repr, words))}"
    _refuse(f"{value!r} is not one of {listed(words)}", help)


def _flag(value: str, words: Words) -> bool:  # noqa: ARG001
    if value.lower() not in ("true", "false"):
        _refuse(f"{value!r} is neither true nor false", "write 'true' or 'false'")
    return value.lower() == "true"


def _count(value: str, words: Words) -> int:  # noqa: ARG001
    plain = value.replace("_", "")
    if not (plain.isascii() and plain.isdigit()) or not 0 < int(plain[:20]) <= _LARGEST:
        _refuse(f"{value!r} is not a count", "write a whole number, 1 or more")
    return int(plain)


def _duration(value: str, words: Words) -> Duration:  # noqa: ARG001
    return Duration.parse(value)


def _signed_duration(value: str, words: Words) -> Duration:  # noqa: ARG001
    return Duration.parse(value, signed=True)


def _length(value: str, words: Words) -> Duration:  # noqa: ARG001
    found = Duration.parse(value)
    if not found.microseconds:
        _refuse(f"{value!r} is no length of time", "write for example '5m'")
    return found


def _bounds(value: str, words: Words) -> Bounds:  # noqa: ARG001
    found = _BOUNDS.fullmatch(value.strip())
    low, high = (found["a"] or found["c"], found["b"] or found["d"]) if found else ("0s", value)
    lower, upper = Duration.parse(low, signed=True), Duration.parse(high, signed=True)
    if lower > upper:
        _refuse(f"the bound from {lower} to {upper} ends before it starts", f"write '{upper}..{lower}'")
    return lower, upper


def _character(value: str, words: Words) -> str:  # noqa: ARG001
    value = {"\\t": "\t"}.get(value, value)
    if len(value) != 1 or value in "\r\n":
        _refuse(f"{value!r} is not one character", r"write one character, as ',' or '\t'")
    return value


def _zone(value: str, words: Words) -> str:  # noqa: ARG001
    if _OFFSET.fullmatch(value) or value in ("Z", "UTC"):
        return value
    known = zoneinfo.available_timezones()
    if known and value not in known:  # without a database of zones Spark's own has the last word
        close = near(value, known, most=1)
        help = f"did you mean {close[0]!r}?" if close else "write 'UTC', 'Europe/Paris' or '+02:00'"
        _refuse(f"{value!r} is no time zone", help)
    return value


def _offsets(value: str, words: Words) -> str:  # noqa: ARG001
    if value.lower() in ("earliest", "latest"):
        return value.lower()
    help = "write 'earliest', 'latest' or JSON as '{\"orders\": {\"0\": 23, \"1\": -2}}'"
    try:
        said = json.loads(value)
    except (ValueError, RecursionError):
        _refuse(f"{value!r} says no offsets", help)
    if not isinstance(said, dict) or not all(isinstance(part, dict) for part in said.values()):
        _refuse(f"{value!r} says no offsets", help)
    return value


def _time_format(value: str, words: Words) -> str:
    if "%" not in value:
        return _word(value, words)
    for found in re.finditer(r"%(.?)", value, re.DOTALL):
        if found[1] not in TIME_DIRECTIVES or not found[1]:
            known = " ".join(f"%{letter}" for letter in TIME_DIRECTIVES)
            _refuse(
                f"the pattern {value!r} has {found[0]!r}, which is no directive", f"directives are {known}"
            )
    return value


def _names(value: str, words: Words) -> tuple[str, ...]:  # noqa: ARG001
    found = tuple(part.strip() for part in value.split(","))
    if not all(found):
        _refuse(f"{value!r} has an empty name", "write column names with commas between them")
    if len({name.casefold() for name in found}) < len(found):
        _refuse(f"{value!r} names a column twice", "leave one of them out")
    return found


READERS: Mapping[Kind, Callable[[str, Words], Any]] = {
    "text": _text,
    "any_text": _any_text,
    "word": _word,
    "flag": _flag,
    "count": _count,
    "duration": _duration,
    "signed_duration": _signed_duration,
    "length": _length,
    "bounds": _bounds,
    "character": _character,
    "zone": _zone,
    "offsets": _offsets,
    "time_format": _time_format,
    "names": _names,
}
"""How the text of each kind is read; a text that is none raises."""
