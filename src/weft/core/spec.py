"""Spec: an entity of a YAML file, declared once as a frozen dataclass.

::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class PathStrategy(Spec):
        type: Literal["path"] = field(default="path", metadata=REQUIRED)
        datasource: Text = field(metadata=yaml_key("datasource_id"))  # the key in files
        path: Text

The fields are the keys of the file.  pydantic validates a file against them and builds the value; the canonical form
(`Spec.to_dict`) and the JSON Schema are derived from them too.  Values that Python code builds are checked by mypy alone.
This module does not import pydantic, so that only code that reads files loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, ClassVar

from weft.core.frozen import FrozenMap
from weft.core.source import SourceMap

ALWAYS: Mapping[str, Any] = {"always": True}
"""Metadata of a field that the canonical form contains even at its default."""

NEVER: Mapping[str, Any] = {"never": True}
"""Metadata of a field that files may contain and the canonical form omits."""

REQUIRED: Mapping[str, Any] = {"required": True, "always": True}
"""Metadata of a field whose default is for Python only: files must have the key."""

LOCATIONS = "at"
"""The field with the source locations of a spec; it is not a key of the file."""


def yaml_key(name: str) -> Mapping[str, Any]:
    """Return the metadata of a field whose key in files differs from its name."""
    return {"key": name}


class RawMapping(dict[str, Any]):
    """A mapping of a file before validation, with the YAML node it came from."""

    __slots__ = ("node",)
    node: Any


@dataclass(frozen=True, slots=True)
class Limits:
    """Constraints that pydantic checks besides the type: ``pattern``, ``gt``, ``min_length``."""

    pattern: str | None = None
    gt: int | None = None
    ge: int | None = None
    min_length: int | None = None
    max_length: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Return the schema of the type with the limits."""
        limits = {f.name: getattr(self, f.name) for f in fields(self)}
        return handler(source) | {name: limit for name, limit in limits.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class ReadAs:
    """How a value is read from files: validated as `raw`, then converted.

    `convert` takes the validated value, the value in the file and the reader, which collects findings.
    """

    raw: Any
    convert: Callable[[Any, Any, Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the schema of the raw value, followed by the conversion."""
        from pydantic_core import core_schema  # noqa: PLC0415  # loaded only to read files

        def read(value: Any, check: Callable[[Any], Any], info: Any) -> Any:
            return self.convert(check(value), value, info.context)

        return core_schema.with_info_wrap_validator_function(read, handler.generate_schema(self.raw))


@dataclass(frozen=True, slots=True, eq=False)  # unions hash the metadata of their members
class WithJsonSchema:
    """The JSON Schema of a value, where it differs from what pydantic validates."""

    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Return the schema for editors."""
        return dict(self.schema)


def freeze_values(value: Any, _raw: Any = None, _reader: Any = None) -> Any:
    """Return the value of a free-form key as immutable plain values."""
    if isinstance(value, Mapping):
        return FrozenMap({name: freeze_values(inner) for name, inner in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze_values(inner) for inner in value)
    return str(value) if isinstance(value, str) else value


Text = Annotated[str, Limits(pattern=r"\S")]
"""A string that is not blank."""

Positive = Annotated[int, Limits(gt=0)]

Locations = Annotated[SourceMap, ReadAs(Any, lambda value, _raw, _reader: value)]
"""The type of the field with the source locations, opaque to pydantic."""


class Spec:
    """Base class of the entities in files: how they are read, and their canonical form."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "strict": True}
    SHORT: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Keys with a short form, ``dataset`` for ``dataset_id``, which is expanded before validation."""

    FIRST: ClassVar[tuple[str, ...]] = ()
    """Fields that come first in the canonical form, where its order differs from that of the file."""

    def to_dict(self) -> dict[str, Any]:
        """Return the canonical form: fields at their default are omitted, unless marked ALWAYS."""
        form: dict[str, Any] = {}
        for attribute, name, default, always in _canonical_keys(type(self)):  # type: ignore[arg-type]  # is hashable
            value = getattr(self, attribute)
            if always or not _is_default(value, default):
                form[name] = plain_form(value)
        return form

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Return the schema of the dataclass, for mappings with a YAML node."""
        from pydantic_core import core_schema  # noqa: PLC0415  # loaded only to read files

        schema = handler(source)
        known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
        # Where the class occurs again, pydantic refers to the schema that was changed the first time.
        if schema["type"] == "dataclass":
            # In strict mode pydantic accepts only instances of the dataclass; its fields stay strict.
            schema["strict"] = False
            schema["fields"] = [name for name in schema["fields"] if name != LOCATIONS]
            arguments = [a for a in schema["schema"]["fields"] if a["name"] != LOCATIONS]
            schema["schema"]["fields"] = arguments
            for argument in arguments:
                metadata = known[argument["name"]].metadata
                if "key" in metadata:
                    argument["validation_alias"] = metadata["key"]
                if "required" in metadata:
                    argument["schema"] = argument["schema"]["schema"]
        optional = {_key(f) for f in known.values() if _has_default(f) and "required" not in f.metadata}

        def read(value: Any, build: Callable[[Any], Any], info: Any) -> Any:
            if not isinstance(value, RawMapping):  # a value of the wrong kind: pydantic reports it
                return build(value)
            # `key: null` is the same as a missing key.
            built = build({k: v for k, v in value.items() if v is not None or k not in optional})
            return info.context.finish(built, value.node, located=LOCATIONS in known)

        return core_schema.with_info_wrap_validator_function(read, schema)


def _key(f: Field[Any]) -> str:
    return str(f.metadata.get("key", f.name))


def _has_default(f: Field[Any]) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


@cache
def _canonical_keys(spec: type[Any]) -> tuple[tuple[str, str, Any, bool], ...]:
    """Return attribute, key, default and whether the key is always written, for each field of a spec."""
    first = {name: rank for rank, name in enumerate(spec.FIRST)}
    return tuple(
        (f.name, _key(f), f.default, "always" in f.metadata or not _has_default(f))
        for f in sorted(fields(spec), key=lambda f: first.get(f.name, len(first)))
        if f.name != LOCATIONS and "never" not in f.metadata
    )


def _is_default(value: Any, default: Any) -> bool:
    return bool(value == default) or (isinstance(value, Mapping) and not value)


def plain_form(value: Any) -> Any:
    """Return a value of a spec as plain JSON and YAML values."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: plain_form(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_form(inner) for inner in value]
    if value is None or isinstance(value, str | int | float | Decimal):
        return value
    return str(value)
