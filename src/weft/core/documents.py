"""Reports as JSON: a dataclass gives its document and the JSON Schema of it.

::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Check(Document):             Check(name="java", ok=True, seconds=0.12345).to_dict()
        name: str                      {"name": "java", "ok": True, "seconds": 0.123}
        ok: bool
        seconds: Annotated[float, rounded]

An annotation may carry the function that makes the value of the document (``round_seconds``), the schema of the value
(``OPEN_WORD``) or another key (``Key("in")``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from weft.core.frozen import FrozenMap, freeze, thaw

Schema = dict[str, Any]
OPEN_WORD = FrozenMap({"type": "string"})
"""The schema of a word of a set that later versions may add to."""

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", Path: "string"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MOMENTS = (dt.datetime, dt.date, Decimal)


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a field in documents, where it is not the name of the field."""

    name: str


class Document:
    """What a report derives from: a dataclass whose form as JSON follows from its annotations."""

    __slots__ = ()
    DOCUMENT: ClassVar[tuple[str, ...]] = ()
    """The fields and properties that the document has, in order; all fields by default."""
    UNLISTED: ClassVar[tuple[str, ...]] = ()
    """Those that the schema does not promise."""
    OPTIONAL: ClassVar[tuple[str, ...]] = ()
    """Those that are left out when they are None; the schema does not promise them."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain JSON values."""
        return dict(_items(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return what `to_dict` wrote; keys of later versions are left out.

        Raises TypeError when a field without default is missing.
        """
        kind: Any = cls  # mypy takes a class for no key of a cache
        known = {
            part.attribute: _read(part.hint, data[part.key]) for part in _parts(kind) if part.key in data
        }
        return cls(**known)


@dataclass(frozen=True, slots=True)
class _Part:
    """A field or property in the document of its class."""

    attribute: str
    key: str
    hint: Any
    convert: Callable[[Any], Any] | None


def _parts(cls: Any) -> tuple[_Part, ...]:
    return _parts_of(cls)


@cache
def _parts_of(cls: Any) -> tuple[_Part, ...]:
    hints = get_type_hints(cls, include_extras=True)
    names = getattr(cls, "DOCUMENT", ()) or tuple(f.name for f in fields(cls))
    return tuple(_part(name, hints.get(name) or _returned(getattr(cls, name).fget)) for name in names)


def _part(name: str, hint: Any) -> _Part:
    extras = tuple(_extras(hint))
    key = next((extra.name for extra in extras if isinstance(extra, Key)), name)
    return _Part(name, key, hint, next((extra for extra in extras if callable(extra)), None))


def _extras(hint: Any) -> Iterator[Any]:
    """Yield what an annotation carries, also where it is one of several or None."""
    if get_origin(hint) is Annotated:
        yield from hint.__metadata__
    elif get_origin(hint) in (Union, UnionType):
        for inner in get_args(hint):
            yield from _extras(inner)


def _returned(function: Any) -> Any:
    return get_type_hints(function, include_extras=True)["return"]


def _items(report: Document) -> Iterator[tuple[str, Any]]:
    for part in _parts(type(report)):
        value = getattr(report, part.attribute)
        if value is None:
            if part.attribute not in report.OPTIONAL:
                yield part.key, None
        else:
            yield part.key, to_json(value if part.convert is None else part.convert(value))


def to_json(value: Any) -> Any:
    """Return a value as JSON has it; moments are in UTC, decimals are texts.

    >>> to_json({"at": dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), "days": (dt.date(2026, 1, 31),)})
    {'at': '2026-01-31T12:00:00Z', 'days': ['2026-01-31']}
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    if isinstance(value, dt.datetime):
        return (value.astimezone(dt.UTC) if value.tzinfo else value).isoformat().replace("+00:00", "Z")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Path):
        return value.as_posix()
    return str(value) if isinstance(value, Decimal) else value


def round_seconds(seconds: float) -> float:
    """Return seconds to the millisecond."""
    return round(seconds, 3)


def format_micros(micros: int) -> str | None:
    """Return microseconds since 1970 as text to the millisecond, None when no calendar has that moment.

    >>> format_micros(1736848800123000)
    '2025-01-14T10:00:00.123Z'
    """
    try:
        at = _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(hint: Any, value: Any) -> Any:
    """Return a value of a document as the field of that type has it."""
    if value is None:
        return None
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _read(next(h for h in inner if h is not NoneType), value)
    if origin is Annotated:
        return _read(inner[0], value)
    if origin is tuple and is_dataclass(inner[0]):
        return tuple(_read(inner[0], one) for one in value)
    if isinstance(hint, type) and issubclass(hint, Document):
        return hint.from_dict(value)
    return freeze(value)


def json_schema(hint: Any) -> Schema:
    """Return the JSON Schema of a report, or of another type that documents hold.

    >>> json_schema(tuple[Literal["a", "b"], ...] | None)
    {'anyOf': [{'type': 'null'}, {'type': 'array', 'items': {'enum': ['a', 'b']}}]}
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(hint)
    if origin in (Union, UnionType):
        return _union(inner)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (tuple, list):
        return {"type": "array", "items": json_schema(inner[0])}
    if is_typeddict(hint):
        return _object(get_type_hints(hint, include_extras=True))
    if is_dataclass(hint):
        return _of_report(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = json_schema(inner[1])
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if hint in _MOMENTS:
        return {"type": "string"}
    return {"type": _NAMES[hint]} if hint in _NAMES else {}


def _annotated(hint: Any) -> Schema:
    for extra in hint.__metadata__:
        if isinstance(extra, Mapping):
            return dict(thaw(extra))
        if callable(extra):
            return json_schema(_returned(extra))
    return json_schema(hint.__origin__)


def _union(hints: tuple[Any, ...]) -> Schema:
    found = [json_schema(hint) for hint in hints if hint is not NoneType]
    if NoneType not in hints:
        return {"anyOf": found}
    if len(found) == 1 and set(found[0]) == {"type"} and isinstance(found[0]["type"], str):
        return {"type": [found[0]["type"], "null"]}
    return found[0] if _takes_null(found[0]) else {"anyOf": [{"type": "null"}, *found]}


def _takes_null(schema: Schema) -> bool:
    return not schema or "null" in schema.get("type", ())


def _of_report(cls: Any) -> Schema:
    hidden = {*getattr(cls, "UNLISTED", ()), *getattr(cls, "OPTIONAL", ())}
    return _object({part.key: part.hint for part in _parts(cls) if part.attribute not in hidden})


def _object(hints: Mapping[str, Any]) -> Schema:
    properties = {key: json_schema(hint) for key, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}
