"""Duration: an exact length of time in microseconds, and its text forms."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from decimal import Decimal, localcontext

from weft.errors import ArgumentError, DurationError

_UNITS: dict[str, Decimal] = {}
for _size, _words in (
    ("0.001", "ns nanos nanosecond nanoseconds"),
    ("1", "us micros microsecond microseconds"),
    ("1000", "ms millis millisecond milliseconds"),
    ("1000000", "s sec secs second seconds"),
    ("60000000", "m min mins minute minutes"),
    ("3600000000", "h hr hrs hour hours"),
    ("86400000000", "d day days"),
    ("604800000000", "w wk wks week weeks"),
):
    _UNITS.update(dict.fromkeys(_words.split(), Decimal(_size)))

_CALENDAR_UNITS = frozenset("mo mon month months q quarter quarters y yr yrs year years".split())
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*(?:(?:,|and\b)(?=\s*[0-9]))?", re.ASCII | re.IGNORECASE)
_ISO = re.compile(
    r"P(?:(?P<w>\d+(?:\.\d+)?)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<m>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_ISO_CALENDAR = re.compile(r"P[^T]*?\d([YM])", re.ASCII | re.IGNORECASE)
_INTERVAL = re.compile(r"INTERVAL\b\s*(?P<rest>.+)", re.ASCII | re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(r"(['\"])(?P<body>[^'\"]*)\1\s*(?P<unit>[A-Za-z]+)?", re.ASCII)
_CLOCK = re.compile(
    r"(['\"])(?:(?P<d>\d+)\s+)?(?P<h>\d+):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d(?:\.\d{1,6})?))?\1"
    r"\s*(?P<from>DAY|HOUR)\s+TO\s+(?P<to>MINUTE|SECOND)",
    re.ASCII | re.IGNORECASE,
)
_MAX = (1 << 63) - 1
_HELP = "write for example '5 seconds', '24h', '1 hour 30 minutes', 'PT5S' or \"INTERVAL '24' HOUR\""


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time, whole microseconds, possibly negative.

    >>> Duration.parse("1 hour 30 minutes") == Duration.parse("PT90M") == Duration.parse("90m")
    True
    >>> str(Duration.parse("INTERVAL '36' HOUR"))
    '1d 12h'
    """

    microseconds: int

    def __post_init__(self) -> None:
        if isinstance(self.microseconds, bool) or not isinstance(self.microseconds, int):
            raise ArgumentError("a Duration is a whole number of microseconds", help=_HELP)
        if abs(self.microseconds) > _MAX:
            raise DurationError("the duration is longer than 292,000 years", help=_HELP)

    @classmethod
    def parse(cls, text: str, *, signed: bool = False) -> Duration:
        """Parse `text`; a leading sign is accepted only when `signed`."""
        if not isinstance(text, str):
            raise ArgumentError(f"a duration must be a string or a timedelta, not {type(text).__name__}", help=_HELP)
        body = text.strip()
        sign = 1
        if body[:1] in ("-", "+"):
            if not signed:
                raise DurationError(f"duration {text!r} must not have a sign", help=_HELP)
            sign = -1 if body[0] == "-" else 1
            body = body[1:].strip()
        if len(text) > 200:  # keeps the exact arithmetic below small
            raise DurationError(f"duration {text[:40]!r}... is too long", help=_HELP)
        with localcontext() as context:
            context.prec = 300  # more digits than the text can have, so nothing is rounded
            total = _read(body, text, signed=signed)
            if total != total.to_integral_value():
                raise DurationError(f"duration {text!r} has a fraction of a microsecond", help=_HELP)
        return cls(sign * int(total))

    @classmethod
    def of(cls, value: Duration | dt.timedelta | str, *, signed: bool = False) -> Duration:
        """Return `value`, in any of the accepted forms, as a Duration."""
        if isinstance(value, str):
            return cls.parse(value, signed=signed)
        if isinstance(value, dt.timedelta):
            value = cls(value // dt.timedelta(microseconds=1))
        if not isinstance(value, Duration):
            raise ArgumentError(f"a duration must be a string or a timedelta, not {type(value).__name__}", help=_HELP)
        if value.microseconds < 0 and not signed:
            raise DurationError(f"duration {value} must not be negative", help=_HELP)
        return value

    def to_timedelta(self) -> dt.timedelta:
        """Return the duration as a timedelta."""
        return dt.timedelta(microseconds=self.microseconds)

    def __str__(self) -> str:
        rest = abs(self.microseconds)
        parts = []
        for unit in ("d", "h", "m", "s", "ms", "us"):
            count, rest = divmod(rest, int(_UNITS[unit]))
            if count:
                parts.append(f"{count}{unit}")
        sign = "-" if self.microseconds < 0 else ""
        return sign + " ".join(parts) if parts else "0s"


def _read(body: str, text: str, *, signed: bool) -> Decimal:
    """Return the microseconds of `body`, or raise with `text` in the message."""
    if interval := _INTERVAL.fullmatch(body):
        return _read_interval(interval["rest"].strip(), text, signed=signed)
    if body[:1] in ("P", "p"):
        iso = _ISO.fullmatch(body)
        if iso is None and (varies := _ISO_CALENDAR.match(body)):
            raise _length_varies(varies[1], text)
        if iso is None or not any(iso.groupdict().values()) or body[-1] in "Tt":
            raise DurationError(f"duration {text!r} is not ISO 8601", help=_HELP)
        return sum((Decimal(n) * _UNITS[u] for u, n in iso.groupdict().items() if n), Decimal(0))
    return _read_parts(body, text)


def _read_parts(body: str, text: str) -> Decimal:
    if not body:
        raise DurationError("the duration is empty", help=_HELP)
    total, at, units = Decimal(0), 0, set[Decimal]()
    while at < len(body):
        part = _PART.match(body, at)
        if part is None:
            raise DurationError(f"invalid duration {text!r} at {body[at:][:20]!r}", help=_HELP)
        total += Decimal(part[1]) * _unit(part[2], text, units)
        at = part.end()
    return total


def _unit(word: str, text: str, units: set[Decimal]) -> Decimal:
    if word.lower() in _CALENDAR_UNITS:
        raise _length_varies(word, text)
    size = _UNITS.get(word.lower())
    if size is None:
        raise DurationError(f"duration {text!r} has the unknown unit {word!r}", help=_HELP)
    if size in units:  # '1h 1h' is more likely a mistake than a sum
        raise DurationError(f"duration {text!r} has the unit {word!r} twice", help=_HELP)
    units.add(size)
    return size


def _length_varies(word: str, text: str) -> DurationError:
    return DurationError(
        f"duration {text!r} uses {word!r}, whose length varies",
        help="use days: a month is 28 to 31 days, a year 365 or 366",
    )


def _read_interval(rest: str, text: str, *, signed: bool) -> Decimal:
    if clock := _CLOCK.fullmatch(rest):
        parts = {k: v for k, v in clock.groupdict().items() if k in "dhms" and v}
        return sum((Decimal(n) * _UNITS[u] for u, n in parts.items()), Decimal(0))
    quoted = _QUOTED.fullmatch(rest)
    body, unit = (quoted["body"].strip(), quoted["unit"]) if quoted else (rest, None)
    sign = 1
    if body[:1] == "-":
        if not signed:
            raise DurationError(f"duration {text!r} must not have a sign", help=_HELP)
        sign, body = -1, body[1:].strip()
    return sign * _read_parts(f"{body} {unit}" if unit else body, text)
