"""Reports as JSON: the JSON form of a dataclass and its JSON Schema, derived from the annotations.

::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Check(Document):             Check(name="java", ok=True, seconds=0.12345).to_dict()
        name: str                      {"name": "java", "ok": True, "seconds": 0.123}
        ok: bool
        seconds: Annotated[float, round_seconds]

An annotation may carry a function that converts the value (``round_seconds``), the schema of the value
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
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints, is_typeddict

from weft.core.frozen import FrozenMap, freeze, thaw

Schema = dict[str, Any]
OPEN_WORD = FrozenMap({"type": "string"})
"""The schema of a word from a set that later versions may extend."""

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", Path: "string"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MOMENTS = (dt.datetime, dt.date, Decimal)


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a field in the JSON form, where it differs from the name of the field."""

    name: str


class Document:
    """Base class of reports: a dataclass whose JSON form follows from its annotations."""

    __slots__ = ()
    DOCUMENT: ClassVar[tuple[str, ...]] = ()
    """The fields and properties of the JSON form, in order; all fields by default."""
    UNLISTED: ClassVar[tuple[str, ...]] = ()
    """Those that are not in the schema."""
    OPTIONAL: ClassVar[tuple[str, ...]] = ()
    """Those that are omitted when None; they are not in the schema."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain JSON values."""
        return dict(_items(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the report that `to_dict` wrote; unknown keys, of later versions, are ignored.

        Raises TypeError when a field without default is missing.
        """
        known = {part.attribute: _from_json(part.hint, data[part.key]) for part in _parts(cls) if part.key in data}
        return cls(**known)


@dataclass(frozen=True, slots=True)
class _Part:
    """A field or property in the JSON form of its class."""

    attribute: str
    key: str
    hint: Any
    convert: Callable[[Any], Any] | None


def _parts(cls: Any) -> tuple[_Part, ...]:
    # mypy does not accept a Document class as the argument of a cached function.
    return _cached_parts(cls)


@cache  # resolving annotations takes longer than writing a document
def _cached_parts(cls: Any) -> tuple[_Part, ...]:
    hints = get_type_hints(cls, include_extras=True)
    names = getattr(cls, "DOCUMENT", ()) or tuple(f.name for f in fields(cls))
    return tuple(_part(name, hints.get(name) or _return_type(getattr(cls, name).fget)) for name in names)


def _part(name: str, hint: Any) -> _Part:
    extras = tuple(_extras(hint))
    key = next((extra.name for extra in extras if isinstance(extra, Key)), name)
    return _Part(name, key, hint, next((extra for extra in extras if callable(extra)), None))


def _extras(hint: Any) -> Iterator[Any]:
    """Yield the metadata of an annotation, also inside a union."""
    if get_origin(hint) is Annotated:
        yield from hint.__metadata__
    elif get_origin(hint) in (Union, UnionType):
        for inner in get_args(hint):
            yield from _extras(inner)


def _return_type(function: Any) -> Any:
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
    """Return a value as plain JSON; timestamps are in UTC, decimals are strings.

    >>> to_json({"at": dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), "days": (dt.date(2026, 1, 31),)})
    {'at': '2026-01-31T12:00:00Z', 'days': ['2026-01-31']}
    """
    if hasattr(value, "to_dict"):  # not only Documents: specs and diagnostics have their own form
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    if isinstance(value, dt.datetime):  # before date, of which it is a subclass
        return (value.astimezone(dt.UTC) if value.tzinfo else value).isoformat().replace("+00:00", "Z")
    if isinstance(value, dt.date):
        return value.isoformat()
    if hasattr(value, "as_posix"):  # a Path, or a file of a store
        return value.as_posix()
    return str(value) if isinstance(value, Decimal) else value


def round_seconds(seconds: float) -> float:
    """Round seconds to the millisecond."""
    return round(seconds, 3)


def format_micros(micros: int) -> str | None:
    """Return microseconds since 1970 as an ISO timestamp, None outside the years 1 to 9999.

    >>> format_micros(1736848800123000)
    '2025-01-14T10:00:00.123Z'
    """
    try:
        at = _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _from_json(hint: Any, value: Any) -> Any:
    """Return a JSON value as a field of that type."""
    if value is None:
        return None
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _from_json(next(h for h in inner if h is not NoneType), value)
    if origin is Annotated:
        return _from_json(inner[0], value)
    if origin is tuple and is_dataclass(inner[0]):
        return tuple(_from_json(inner[0], item) for item in value)
    if isinstance(hint, type) and issubclass(hint, Document):
        return hint.from_dict(value)
    return freeze(value)


def json_schema(hint: Any) -> Schema:
    """Return the JSON Schema of a report, or of a type that reports contain.

    >>> json_schema(tuple[Literal["a", "b"], ...] | None)
    {'anyOf': [{'type': 'null'}, {'type': 'array', 'items': {'enum': ['a', 'b']}}]}
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated_schema(hint)
    if origin in (Union, UnionType):
        return _union_schema(inner)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (tuple, list):
        return {"type": "array", "items": json_schema(inner[0])}
    if is_typeddict(hint):
        return _object_schema(get_type_hints(hint, include_extras=True))
    if is_dataclass(hint):
        return _report_schema(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = json_schema(inner[1])
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if hint in _MOMENTS:
        return {"type": "string"}
    return {"type": _NAMES[hint]} if hint in _NAMES else {}


def _annotated_schema(hint: Any) -> Schema:
    for extra in hint.__metadata__:
        if isinstance(extra, Mapping):
            return dict(thaw(extra))
        if callable(extra):
            return json_schema(_return_type(extra))
    return json_schema(hint.__origin__)


def _union_schema(hints: tuple[Any, ...]) -> Schema:
    schemas = [json_schema(hint) for hint in hints if hint is not NoneType]
    if NoneType not in hints:
        return {"anyOf": schemas}
    # The short form, which editors and validators show best: {"type": ["string", "null"]}.
    if len(schemas) == 1 and set(schemas[0]) == {"type"} and isinstance(schemas[0]["type"], str):
        return {"type": [schemas[0]["type"], "null"]}
    return schemas[0] if _accepts_null(schemas[0]) else {"anyOf": [{"type": "null"}, *schemas]}


def _accepts_null(schema: Schema) -> bool:
    return not schema or "null" in schema.get("type", ())


def _report_schema(cls: Any) -> Schema:
    hidden = {*getattr(cls, "UNLISTED", ()), *getattr(cls, "OPTIONAL", ())}
    return _object_schema({part.key: part.hint for part in _parts(cls) if part.attribute not in hidden})


def _object_schema(hints: Mapping[str, Any]) -> Schema:
    properties = {key: json_schema(hint) for key, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}
