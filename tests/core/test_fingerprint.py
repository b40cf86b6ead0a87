"""Values as JSON that reads back the same, and hashes that tell them apart."""

from __future__ import annotations

import datetime as dt
import json
import math
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.fingerprint import canonical_json, decode, encode, fingerprint
from weft.errors import ArgumentError, JoinSpecError, WeftError

offsets = st.integers(-14 * 60, 14 * 60).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=offsets)
    | st.timedeltas()
    | st.decimals(allow_nan=False)
)
keys = st.text(max_size=4) | st.sampled_from(["$decimal", "$date", "$map", "$float", "$", "$x"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@given(values)
def test_a_value_comes_back_from_its_json_with_its_type(value: Any) -> None:
    text = json.dumps(encode(value), allow_nan=False)
    back = decode(json.loads(text))
    assert back == value
    assert _types(back) == _types(value)


def _types(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(_types(v) for v in value)
    if isinstance(value, dict):
        return {k: _types(v) for k, v in value.items()}
    return type(value)


@given(values, values)
def test_two_values_share_a_text_only_when_they_are_equal(a: Any, b: Any) -> None:
    if canonical_json(a) == canonical_json(b):
        assert a == b
        assert fingerprint(a) == fingerprint(b)
    else:
        assert fingerprint(a) != fingerprint(b)


@pytest.mark.parametrize(
    "different",
    [
        (1, True, 1.0, "1", Decimal(1)),
        (Decimal("1.0"), Decimal("1.00")),
        (dt.date(2026, 1, 1), dt.datetime(2026, 1, 1), "2026-01-01"),  # noqa: DTZ001
        (Decimal("1.5"), {"$decimal": "1.5"}, {"$map": {"$decimal": "1.5"}}),
        (b"a", "a"),
        (None, "null", (), {}),
        (0.0, -0.0),
        (float("inf"), float("-inf"), float("nan"), "inf"),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ((1, (2,)), ((1, 2),)),
    ],
)
def test_values_that_look_alike_have_different_fingerprints(different: tuple[object, ...]) -> None:
    assert len({fingerprint(value) for value in different}) == len(different)


def test_the_order_of_a_mapping_does_not_count() -> None:
    assert canonical_json({"b": 1, "a": (None, "é")}) == '{"a":[null,"é"],"b":1}'


def test_nan_comes_back_as_nan() -> None:
    assert math.isnan(decode(encode(float("nan"))))
    assert encode(float("-inf")) == {"$float": "-inf"}


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    value = {"keys": [("a", "b")], "tolerance": dt.timedelta(seconds=5), "px": Decimal("1.20")}
    code = (
        "import datetime as dt\nfrom decimal import Decimal\nfrom weft.core.fingerprint import fingerprint\n"
        "print(fingerprint({'px': Decimal('1.20'), 'tolerance': dt.timedelta(seconds=5), 'keys': [('a', 'b')]}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"},
    )
    assert run.stdout.strip() == fingerprint(value)
    assert fingerprint(value) == "e40c48ee83335ae6cc55b438857b0e947d8c3a5dbde0dbd2906a8a86f30fdb74"


def test_a_text_that_no_encoding_takes_still_has_a_fingerprint() -> None:
    assert fingerprint("\ud800") != fingerprint("\ud801")


@pytest.mark.parametrize("value", [object(), {1, 2}, bytearray(b"x"), 1j, [range(3)], {"a": object()}])
def test_a_value_without_a_json_form_is_refused(value: object) -> None:
    with pytest.raises(ArgumentError, match="cannot be serialised"):
        encode(value)


def test_keys_that_are_not_strings_are_refused_because_two_could_become_one() -> None:
    with pytest.raises(ArgumentError, match="keys of a serialised mapping must be strings"):
        encode({1: "a", "1": "b"})


@pytest.mark.parametrize(
    "tagged",
    [
        {"$decimal": "abc"},
        {"$decimal": [1]},
        {"$date": "2026-02-30"},
        {"$date": None},
        {"$timestamp": 5},
        {"$microseconds": "1.5"},
        {"$microseconds": "9" * 40},
        {"$bytes": "*"},
        {"$bytes": 5},
        {"$float": "one"},
        [{"a": {"$date": "x"}}],
    ],
)
def test_a_tag_with_an_invalid_value_is_refused(tagged: object) -> None:
    with pytest.raises(JoinSpecError, match="invalid \\$") as caught:
        decode(tagged)
    assert caught.value.code == "W0306"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=10,
)


@given(json_values)
def test_any_json_decodes_or_is_refused_by_an_error_of_ours(value: Any) -> None:
    try:
        decoded = decode(value)
    except WeftError as refused:
        assert refused.code == "W0306"
    else:
        assert fingerprint(decode(encode(decoded))) == fingerprint(decoded)


def test_a_mapping_that_is_more_than_a_tag_stays_a_mapping() -> None:
    assert decode({"$decimal": "1", "b": 2}) == {"$decimal": "1", "b": 2}
    assert decode({"$other": [1]}) == {"$other": (1,)}
