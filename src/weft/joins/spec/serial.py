"""Specs as dictionaries and JSON, from which equal specs can be built, and their fingerprints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Self

from weft.core.fingerprint import decode, encode, fingerprint
from weft.core.names import find_similar, format_list
from weft.errors import ArgumentError, JoinSpecError, WeftError

_NAMED = "$named"


class Serial:
    """A frozen record that can be stored: ``{"type": ..., "version": 1, ...}``."""

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1
    _known: ClassVar[dict[str, type[Serial]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "TYPE" in vars(cls):  # not the abstract TemporalSpec, which inherits the type of JoinSpec
            Serial._known[cls.TYPE] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain JSON values, from which `from_dict` builds an equal spec."""
        values = {f.name: _plain(getattr(self, f.name)) for f in _stored_fields(self)}
        return {"type": self.TYPE, "version": self.VERSION, **values}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build the spec that `to_dict` described; unknown fields and versions raise."""
        kind = _kind(data)
        target = Serial._known.get(kind)
        if target is None or not issubclass(target, cls):
            accepted = sorted(n for n, c in Serial._known.items() if issubclass(c, cls))
            close = find_similar(kind, accepted, most=1)
            raise JoinSpecError(
                f"type {kind!r} is not one of {format_list(accepted)}",
                code="W0306",
                help=f"did you mean {close[0]!r}?" if close else "write one of these types",
            )
        version = data.get("version", target.VERSION)
        # `type`, because True is an int that equals 1.
        if type(version) is not int or version != target.VERSION:
            raise JoinSpecError(
                f"version {version!r} of {kind!r} is not supported",
                code="W0306",
                help=f"this release reads version {target.VERSION}",
            )
        try:
            built: Self = target._build(  # noqa: SLF001  # our own class
                {k: v for k, v in data.items() if k not in ("type", "version")}
            )
        except RecursionError as cause:
            raise JoinSpecError(
                f"the serialised {kind!r} is nested too deeply",
                code="W0306",
                help="write it with to_dict or to_json of the spec",
            ) from cause
        return built

    @classmethod
    def _build(cls, values: dict[str, Any]) -> Any:
        cls._check_fields(values)
        return cls(**{name: _value(value) for name, value in values.items()})

    @classmethod
    def _check_fields(cls, values: dict[str, Any]) -> None:
        known = {f.name: f for f in _stored_fields(cls)}
        for name in map(str, values):
            if name not in known:
                close = find_similar(name, known, most=1)
                raise JoinSpecError(
                    f"{cls.TYPE!r} has no field {name!r}",
                    code="W0306",
                    help=f"did you mean {close[0]!r}?" if close else f"fields are {format_list(known, most=30)}",
                )
        for name, f in known.items():
            if name not in values and f.default is MISSING and f.default_factory is MISSING:
                raise JoinSpecError(
                    f"{cls.TYPE!r} needs the field {name!r}",
                    code="W0306",
                    help=f"add {name!r}; fields are {format_list(known, most=30)}",
                )

    def to_json(self) -> str:
        """Return `to_dict` as a JSON string, fields in their declared order."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build the spec that `to_json` described."""
        if not isinstance(text, str):
            raise ArgumentError(
                f"from_json takes a string, not {type(text).__name__}", help="from_dict takes a mapping"
            )
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as cause:  # also an integer of more digits than Python reads
            raise JoinSpecError(
                f"invalid JSON: {cause}", code="W0306", help="write the string with to_json of the spec"
            ) from cause
        return cls.from_dict(data)

    def fingerprint(self) -> str:
        """Return a hash of the spec; options at their default value do not count.

        So a release that adds an option does not change the fingerprints of existing specs.
        """
        return fingerprint(_without_defaults(self))


def _stored_fields(spec: Any) -> tuple[Any, ...]:
    return tuple(f for f in fields(spec) if f.init)


def _without_defaults(value: Any) -> Any:
    """Return a spec as plain values, without options at their default value, also in nested specs."""
    if isinstance(value, tuple | list):
        return [_without_defaults(v) for v in value]
    if not isinstance(value, Serial):
        return _plain(value)
    # The type is compared too: 1 == True, but the two are different options.
    changed: dict[str, Any] = {"type": value.TYPE, "version": value.VERSION}
    for f in _stored_fields(value):
        option = getattr(value, f.name)
        default = MISSING if f.default is MISSING else _without_defaults(f.default)
        if _without_defaults(option) != default or type(option) is not type(f.default):
            changed[f.name] = _without_defaults(option)
    return changed


def _kind(data: object) -> str:
    if not isinstance(data, Mapping):
        raise ArgumentError(
            f"a serialised spec is a mapping, not {type(data).__name__}", help="from_json takes a string"
        )
    kind = data.get("type")
    if not isinstance(kind, str):
        raise JoinSpecError(
            "the serialised spec has no 'type'",
            code="W0306",
            help=f"add 'type', one of {format_list(sorted(Serial._known))}",  # noqa: SLF001  # our own class
        )
    return kind


def _plain(value: Any) -> Any:
    if isinstance(value, Serial):
        return value.to_dict()
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):  # under a tag, so that a key "type" is not taken for a spec
        return {_NAMED: encode(value)}
    return encode(value)


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {_NAMED} and isinstance(value[_NAMED], Mapping):
            return {name: decode(v) for name, v in value[_NAMED].items()}
        if "type" in value:
            return from_dict(value)
    if isinstance(value, list | tuple):
        return tuple(_value(v) for v in value)
    return decode(value)


def from_dict(data: Mapping[str, Any]) -> Any:
    """Build whichever spec, predicate or order `data` describes."""
    try:
        return Serial.from_dict(data)
    except WeftError:
        raise
    except (TypeError, ValueError, KeyError, RecursionError) as cause:
        raise JoinSpecError(
            f"invalid serialised spec: {cause}", code="W0306", help="write it with to_dict or to_json of the spec"
        ) from cause
