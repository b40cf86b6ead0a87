"""Maps that never change, and the places of the parts of a file."""

from __future__ import annotations

from typing import Any, cast

import pytest

from weft.core.fingerprint import fingerprint
from weft.core.frozen import EMPTY, FrozenMap, freeze, thaw
from weft.core.source import NO_SOURCES, Source, SourceMap


def test_equal_maps_have_one_hash_in_any_order() -> None:
    one, two = FrozenMap({"a": 1, "b": (2,)}), FrozenMap([("b", (2,)), ("a", 1)])
    assert one == two == {"a": 1, "b": (2,)}
    assert hash(one) == hash(two)
    assert one != FrozenMap(a=1)
    assert list(two) == ["b", "a"]


def test_a_map_cannot_be_changed_and_forgets_where_it_came_from() -> None:
    source = {"a": 1}
    held = FrozenMap(source)
    source["a"] = 2
    assert held["a"] == 1
    with pytest.raises(TypeError):
        cast("Any", held)["a"] = 3


def test_frozen_and_thawed_turn_each_other_around() -> None:
    plain = {"a": [1, {"b": [None, "x"]}], "c": {}}
    assert thaw(freeze(plain)) == plain
    assert hash(freeze(plain)) == hash(freeze(dict(reversed(plain.items()))))
    assert "a" in freeze(plain)
    assert len(EMPTY) == 0


def test_a_map_is_fingerprinted_as_a_mapping() -> None:
    assert fingerprint(FrozenMap(a=1)) == fingerprint({"a": 1})


TEXT = "arguments:\n  on: a = b\n"
SITES = SourceMap(
    Source(TEXT, 0, 9),
    FrozenMap({"arguments": Source(TEXT, 13, 22), "arguments.on": Source(TEXT, 17, 22)}),
    FrozenMap({"arguments": Source(TEXT, 0, 9), "arguments.on": Source(TEXT, 13, 15)}),
)


@pytest.mark.parametrize(
    ("path", "start"),
    [("arguments.on", 17), ("arguments.on.deeper", 17), ("arguments.off", 13), ("other", 0), ("", 0)],
)
def test_a_place_is_that_of_the_nearest_part(path: str, start: int) -> None:
    found = SITES.of(path)
    assert found is not None
    assert found.start == start


def test_a_key_has_a_place_of_its_own() -> None:
    keys = [SITES.key("arguments.on"), SITES.key("arguments.off")]
    assert [key and key.start for key in keys] == [13, 13]


def test_the_places_of_a_part_start_at_it() -> None:
    inner = SITES.below("arguments")
    assert inner.of("on") == SITES.of("arguments.on")
    assert inner.key("on") == SITES.key("arguments.on")
    assert inner.whole == SITES.of("arguments")
    assert NO_SOURCES.of("anything") is NO_SOURCES.key("anything") is None


def test_offsets_are_those_of_each_character() -> None:
    text = "'it''s'"
    place = Source(text, 0, 7, None, (1, 2, 3, 5, 6))
    inner = place.inner("it's", 2, 4)
    assert text[inner.start : inner.end] == "''s"
    assert place.inner("other", 0, 1) == place
    assert place == Source(text, 0, 7)
