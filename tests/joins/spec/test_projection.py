"""JoinProjection: what it accepts."""

from __future__ import annotations

from typing import Any

import pytest

from refusals import refused
from weft.errors import ArgumentError, JoinSpecError
from weft.joins.spec import JoinProjection
from weft.joins.spec.projection import split_side


@pytest.mark.parametrize("suffixes", ["ab", 5, {"a", "b"}, {"a": 1, "b": 2}])
def test_suffixes_of_another_kind_are_a_type_error(suffixes: Any) -> None:
    with refused(ArgumentError, "W0301", "suffixes", "('', '_right')"):
        JoinProjection(suffixes=suffixes)


@pytest.mark.parametrize("suffixes", [(), ("_x",), ("a", "b", "c")])
def test_suffixes_are_two(suffixes: Any) -> None:
    with refused(JoinSpecError, "W0307", f"{len(suffixes)} strings"):
        JoinProjection(suffixes=suffixes)


@pytest.mark.parametrize("suffix", [None, 5, b"_x"])
def test_a_suffix_that_is_not_a_string_is_a_type_error(suffix: Any) -> None:
    with refused(ArgumentError, "W0301", "suffix", type(suffix).__name__):
        JoinProjection(suffixes=("", suffix))


@pytest.mark.parametrize("suffix", ["\n", "_\0", "\x7f", "\ud800"])
def test_a_suffix_with_a_control_character_is_refused(suffix: str) -> None:
    with refused(JoinSpecError, "W0307", "suffix"):
        JoinProjection(suffixes=("", suffix))


def test_suffixes_are_kept_as_a_tuple() -> None:
    assert JoinProjection(suffixes=["", "_r"]) == JoinProjection(suffixes=("", "_r"))  # type: ignore[arg-type]


def test_allowed_collisions_have_usual_suffixes() -> None:
    assert JoinProjection().effective_suffixes is None
    assert JoinProjection(allow_collisions=True).effective_suffixes == ("", "_right")
    assert JoinProjection(suffixes=("_a", "_b")).effective_suffixes == ("_a", "_b")
    assert JoinProjection(suffixes=("", "")).effective_suffixes == ("", "")


@pytest.mark.parametrize("option", ["allow_collisions", "keep_right_order"])
@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_switches_are_bools(option: str, value: Any) -> None:
    with refused(ArgumentError, "W0301", option, repr(value)):
        JoinProjection(**{option: value})


def test_right_keys_takes_its_own_words() -> None:
    with refused(JoinSpecError, "W0302", "right_keys", "'kept'", "'keep'", "'auto'"):
        JoinProjection(right_keys="kept")  # type: ignore[arg-type]
    with refused(ArgumentError, "W0301", "right_keys"):
        JoinProjection(right_keys=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["keep", "drop"])
@pytest.mark.parametrize("value", ["id", 5, {"id"}, {"id": 1}])
def test_keep_and_drop_are_sequences(option: str, value: Any) -> None:
    with refused(ArgumentError, "W0301", option, repr(value)):
        JoinProjection(**{option: value})


@pytest.mark.parametrize("option", ["keep", "drop"])
@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        (5, ArgumentError, "W0301"),
        ("", JoinSpecError, "W0303"),
        ("orders.id", JoinSpecError, "W0303"),
        ("left.", JoinSpecError, "W0303"),
        ("left.a.b", JoinSpecError, "W0303"),
    ],
)
def test_keep_and_drop_hold_names_of_a_side(option: str, name: Any, kind: Any, code: str) -> None:
    with refused(kind, code, option):
        JoinProjection(**dict[str, Any]({option: [name]}))


@pytest.mark.parametrize("rename", ["ab", 5, {"a"}, ["ab"], [("a",)], [("a", "b", "c")], [5]])
def test_rename_is_a_mapping_of_names(rename: Any) -> None:
    with refused(ArgumentError, "W0301", "rename"):
        JoinProjection(rename=rename)


@pytest.mark.parametrize(
    ("old", "new", "kind", "code"),
    [
        (5, "b", ArgumentError, "W0301"),
        ("", "b", JoinSpecError, "W0303"),
        ("orders.a", "b", JoinSpecError, "W0303"),
        ("a", 5, ArgumentError, "W0301"),
        ("a", None, ArgumentError, "W0301"),
        ("a", "", JoinSpecError, "W0303"),
        ("a", "  ", JoinSpecError, "W0303"),
        ("a", "b\n", JoinSpecError, "W0303"),
        ("a", "\ud800", JoinSpecError, "W0303"),
    ],
)
def test_rename_holds_names(old: Any, new: Any, kind: Any, code: str) -> None:
    with refused(kind, code, "rename"):
        JoinProjection(rename=[(old, new)])


def test_rename_may_be_a_mapping_or_pairs() -> None:
    assert JoinProjection(rename={"left.a": "b"}) == JoinProjection(rename=[("left.a", "b")])
    assert hash(JoinProjection(rename={"a": "b"})) == hash(JoinProjection(rename=(("a", "b"),)))


@pytest.mark.parametrize(
    ("value", "kind", "code"),
    [
        (5, ArgumentError, "W0301"),
        ("", JoinSpecError, "W0303"),
        ("a.b", JoinSpecError, "W0303"),
        ("a\tb", JoinSpecError, "W0303"),
    ],
)
def test_an_indicator_is_a_column_name(value: Any, kind: Any, code: str) -> None:
    with refused(kind, code, "indicator"):
        JoinProjection(indicator=value)


@pytest.mark.parametrize(
    ("written", "side", "name"),
    [
        ("id", None, "id"),
        ("left.id", "left", "id"),
        ("RIGHT.Id", "right", "Id"),
        ("right.`a.b`", "right", "a.b"),
        ("`left.id`", None, "left.id"),
        ("left.order id", "left", "order id"),
    ],
)
def test_a_side_may_qualify_a_name(written: str, side: str | None, name: str) -> None:
    assert split_side(written, "drop") == (side, name)
