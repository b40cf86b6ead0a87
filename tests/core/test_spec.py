"""Spec: one declaration checks a mapping, builds the value and writes its canonical form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import TypeAdapter, ValidationError

from weft.core.frozen import FrozenMap
from weft.core.source import NO_SOURCES, Source, SourceMap
from weft.core.spec import (
    ALWAYS,
    NEVER,
    Limits,
    Locations,
    Positive,
    RawMapping,
    ReadAs,
    Spec,
    Text,
    freeze_values,
    yaml_key,
)  # fmt: skip

PLACES = SourceMap(Source("size: 3", 0, 7))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Spec):
    """A part."""

    size: Positive = field(metadata=yaml_key("size_mm"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(Spec):
    """A machine."""

    FIRST: ClassVar = ("parts",)
    name: Text = ""
    speed: int = field(default=1, metadata=ALWAYS)
    owner: str = field(default="", compare=False, metadata=NEVER)
    options: Annotated[FrozenMap[str, Any], ReadAs(dict[str, Any], freeze_values)] = field(default_factory=FrozenMap)
    parts: Annotated[tuple[Part, ...], Limits(min_length=1)]
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


class Reader:
    def finish(self, spec: Any, node: Any, *, located: bool) -> Any:
        return replace(spec, at=node) if located else spec


def written(**keys: Any) -> RawMapping:
    mapping = RawMapping(keys)
    mapping.node = PLACES
    return mapping


def read(**keys: Any) -> Machine:
    machine: Machine = TypeAdapter(Machine).validate_python(written(**keys), context=Reader())
    return machine


def test_a_mapping_becomes_the_value_with_its_locations() -> None:
    machine = read(name="press", owner="me", parts=(written(size_mm=3),), options={"a": [1]})
    assert machine == Machine(name="press", parts=(Part(size=3),), options=FrozenMap(a=(1,)))
    assert machine.at == PLACES
    assert hash(machine) == hash(replace(machine, at=NO_SOURCES, owner=""))


def test_the_canonical_form_leaves_out_defaults_and_has_the_keys_of_files() -> None:
    machine = Machine(parts=(Part(size=3),), owner="me")
    assert list(machine.to_dict().items()) == [("parts", [{"size_mm": 3}]), ("speed", 1)]
    assert replace(machine, name="press", options=FrozenMap(a=(1,))).to_dict()["options"] == {"a": [1]}


def test_null_says_the_same_as_no_key() -> None:
    assert read(name=None, speed=None, parts=(written(size_mm=3),)) == Machine(parts=(Part(size=3),))


@pytest.mark.parametrize(
    ("keys", "kind", "path"),
    [
        ({"parts": ()}, "too_short", ("parts",)),
        ({"parts": (written(size=3),)}, "missing", ("parts", 0, "size_mm")),
        ({"parts": (written(size_mm=3),), "at": 1}, "unexpected_keyword_argument", ("at",)),
        ({"parts": (written(size_mm=3),), "name": " "}, "string_pattern_mismatch", ("name",)),
        ({"parts": (written(size_mm="3"),)}, "int_type", ("parts", 0, "size_mm")),
    ],
)
def test_what_does_not_fit_is_reported_at_its_key(keys: dict[str, Any], kind: str, path: tuple[Any, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        read(**keys)
    assert (kind, path) in [(error["type"], error["loc"]) for error in caught.value.errors()]
