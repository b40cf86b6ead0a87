"""Values as JSON without loss of their types, and stable hashes of them."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from weft.errors import ArgumentError, JoinSpecError

_ENCODERS: tuple[tuple[type, str, Callable[[Any], str]], ...] = (
    # datetime before date: every datetime is a date.
    (dt.datetime, "$timestamp", dt.datetime.isoformat),
    (dt.date, "$date", dt.date.isoformat),
    (dt.timedelta, "$microseconds", lambda v: str(v // dt.timedelta(microseconds=1))),
    (Decimal, "$decimal", str),
    (bytes, "$bytes", lambda v: base64.b64encode(v).decode("ascii")),
)
_DECODERS: Mapping[str, Callable[[str], Any]] = {
    "$timestamp": dt.datetime.fromisoformat,
    "$date": dt.date.fromisoformat,
    "$microseconds": lambda v: dt.timedelta(microseconds=int(v)),
    "$decimal": Decimal,
    "$bytes": lambda v: base64.b64decode(v, validate=True),
    "$float": float,
}
_MAP = "$map"


def encode(value: object) -> Any:
    """Return `value` as JSON with a type tag where JSON lacks the type.

    >>> encode(Decimal("1.20")), encode((1, "a"))
    ({'$decimal': '1.20'}, [1, 'a'])
    """
    # A change of this form changes every fingerprint, and checkpoints and snapshots of earlier versions with it.
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    for kind, tag, text in _ENCODERS:
        if isinstance(value, kind):
            return {tag: text(value)}
    if isinstance(value, Mapping):
        if not all(isinstance(k, str) for k in value):
            raise ArgumentError("the keys of a serialised mapping must be strings", help="convert its keys to strings")
        plain = {k: encode(v) for k, v in value.items()}
        # A mapping that looks like a tag is wrapped, so that different values have different JSON.
        return {_MAP: plain} if len(plain) == 1 and next(iter(plain)).startswith("$") else plain
    if isinstance(value, list | tuple):
        return [encode(v) for v in value]
    raise ArgumentError(
        f"a value of type {type(value).__name__} cannot be serialised",
        help="use None, bool, int, float, Decimal, str, bytes, date, datetime or timedelta",
    )


def decode(value: Any) -> Any:
    """Return the value that `encode` encoded; sequences become tuples."""
    if isinstance(value, list):
        return tuple(decode(v) for v in value)
    if isinstance(value, dict):
        if len(value) == 1:
            ((tag, text),) = value.items()
            if tag == _MAP and isinstance(text, dict):
                return {k: decode(v) for k, v in text.items()}
            if tag in _DECODERS:
                try:
                    return _DECODERS[tag](text)
                except (ValueError, TypeError, ArithmeticError) as cause:
                    raise JoinSpecError(
                        f"invalid {tag} value {text!r}",
                        code="W0306",
                        help="write it with to_dict or to_json of the spec",
                    ) from cause
        return {k: decode(v) for k, v in value.items()}
    return value


def canonical_json(value: object) -> str:
    """Return the canonical JSON of `value`: keys sorted, no spaces."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def fingerprint(value: object) -> str:
    """Return the sha256 of the canonical JSON of `value`, in hex.

    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    # A string from a file name may contain lone surrogates, which strict UTF-8 refuses.
    return hashlib.sha256(canonical_json(value).encode(errors="surrogatepass")).hexdigest()
