"""Specs as dictionaries and JSON: complete, exact, versioned, and strict about what they read."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import refused
from spec_values import everything, values
from weft.errors import ArgumentError, JoinSpecError, WeftError
from weft.joins.spec import (
    AsofOrder,
    AsofSpec,
    ColumnPredicate,
    ExpressionPredicate,
    IntervalSpec,
    JoinProjection,
    JoinSpec,
    WindowSpec,
    from_dict,
)
from weft.joins.spec.serial import Serial

ORDER = AsofOrder("ts", "qts")
EXAMPLES: tuple[Any, ...] = (
    JoinSpec(
        [("order_id", "id")],
        [ColumnPredicate("d", ">=", "since", "1 day"), ExpressionPredicate("right.flag")],
    ),
    AsofSpec([("symbol", "symbol")], order=ORDER, direction="nearest", tolerance="5 seconds", tie_break=("seq",)),
    IntervalSpec([("id", "id")], order=ORDER, lower="0s", upper="24h", how="left"),
    WindowSpec([("id", "id")], order=ORDER, window="sliding", size="1h", slide="10m", per_window=True),
    JoinProjection(suffixes=("", "_r"), drop=("right.x",), rename={"a": "b"}, indicator="_merge"),
    ColumnPredicate("a", "<", "b", Decimal("2.5")),
    ExpressionPredicate("right.a = :x", {"x": Decimal("1.20")}),
    ORDER,
)


@given(everything)
def test_a_value_reads_back_equal_with_the_same_hash_and_fingerprint(value: Any) -> None:
    text = value.to_json()
    for again in (
        type(value).from_json(text),
        Serial.from_json(text),
        from_dict(json.loads(text)),
        from_dict(value.to_dict()),
    ):
        assert type(again) is type(value)
        assert again == value
        assert hash(again) == hash(value)
        assert again.fingerprint() == value.fingerprint()
        assert again.to_json() == text
        assert str(again) == str(value)


@given(everything)
def test_the_json_is_one_line_that_names_its_type_and_version(value: Any) -> None:
    data = json.loads(value.to_json())
    assert list(data)[:2] == ["type", "version"]
    assert (data["type"], data["version"]) == (value.TYPE, 1)
    assert "\n" not in value.to_json()


@given(values, values)
def test_parameters_of_different_types_have_different_texts(one: Any, other: Any) -> None:
    a, b = (ExpressionPredicate("x = ?", (v,)) for v in (one, other))
    assert (a == b) is (a.to_json() == b.to_json()) is (a.fingerprint() == b.fingerprint())
    assert (a == b) is (type(one) is type(other) and str(one) == str(other))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (1, 1),
        (True, True),
        (None, None),
        ("x", "x"),
        (1.5, 1.5),
        (Decimal("1.20"), {"$decimal": "1.20"}),
        (dt.date(2024, 1, 31), {"$date": "2024-01-31"}),
        (
            dt.datetime(2024, 1, 31, 10, 0, 0, 5, tzinfo=dt.UTC),
            {"$timestamp": "2024-01-31T10:00:00.000005+00:00"},
        ),
        (dt.datetime(2024, 1, 31, 10), {"$timestamp": "2024-01-31T10:00:00"}),  # noqa: DTZ001
        (dt.timedelta(days=-1, microseconds=1), {"$microseconds": "-86399999999"}),
    ],
)
def test_a_parameter_carries_its_type(value: Any, encoded: Any) -> None:
    predicate = ExpressionPredicate("right.a = ?", [value])
    assert predicate.to_dict()["args"] == [encoded]
    again = ExpressionPredicate.from_json(predicate.to_json())
    assert type(again.args[0]) is type(value)  # type: ignore[index]
    assert again.args[0] == value  # type: ignore[index]
    named = ExpressionPredicate("right.a = :type", {"type": value})
    assert named.to_dict()["args"] == {"$named": {"type": encoded}}
    assert ExpressionPredicate.from_json(named.to_json()) == named


@pytest.mark.parametrize(
    "distance", ["5 seconds", "15", 15, Decimal("0.5"), dt.timedelta(seconds=5), "unbounded", None]
)
def test_a_distance_reads_back_in_the_form_it_was_written_in(distance: Any) -> None:
    spec = AsofSpec(order=ORDER, tolerance=distance)
    again = AsofSpec.from_json(spec.to_json())
    assert again.tolerance == distance
    assert type(again.tolerance) is type(distance)


def test_defaults_take_part_in_the_text_but_not_in_the_fingerprint() -> None:
    plain = JoinSpec([("a", "b")])
    assert plain.to_dict() == {
        "type": "join",
        "version": 1,
        "equal_keys": [["a", "b"]],
        "predicates": [],
        "nulls_equal": False,
        "relationship": None,
        "unmatched": None,
    }
    assert from_dict({"type": "join", "equal_keys": [["a", "b"]]}).fingerprint() == plain.fingerprint()


def test_fingerprints_do_not_change_between_releases_or_processes() -> None:
    code = (
        "from weft.joins.spec import *;"
        "print(JoinSpec([('a','b')]).fingerprint(), AsofSpec(order=AsofOrder('t','q')).fingerprint())"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    reported = done.stdout.split()
    assert reported == [JoinSpec([("a", "b")]).fingerprint(), AsofSpec(order=AsofOrder("t", "q")).fingerprint()]
    assert [t[:16] for t in reported] == ["81b3c8a9e6c8463f", "e14be47b58637250"]


def test_an_option_added_to_a_part_does_not_change_the_whole() -> None:
    spelt_out = AsofSpec([("a", "b")], [ColumnPredicate("a", "<", "b", None)], order=AsofOrder("t", "q", tie_break=()))
    assert (
        spelt_out.fingerprint()
        == AsofSpec([("a", "b")], [ColumnPredicate("a", "<", "b")], order=AsofOrder("t", "q")).fingerprint()
    )


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.0, [1]])
@pytest.mark.parametrize("value", EXAMPLES, ids=lambda v: v.TYPE)
def test_another_version_is_refused(value: Any, version: Any) -> None:
    with refused(JoinSpecError, "W0306", f"version {version!r}", "version 1"):
        from_dict(value.to_dict() | {"version": version})


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda v: v.TYPE)
def test_a_missing_version_means_this_one(value: Any) -> None:
    data = value.to_dict()
    del data["version"]
    assert from_dict(data) == value


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda v: v.TYPE)
def test_a_field_that_is_not_known_is_refused(value: Any) -> None:
    with refused(JoinSpecError, "W0306", "'surprise'", value.TYPE):
        from_dict(value.to_dict() | {"surprise": 1})
    with refused(JoinSpecError, "W0306", "no field"):
        from_dict(value.to_dict() | {5: 1})


def test_a_misspelt_field_is_reported_with_the_right_one() -> None:
    with refused(JoinSpecError, "W0306", "'tolerence'", "did you mean 'tolerance'?"):
        from_dict({"type": "asof", "order": ORDER.to_dict(), "tolerence": "5 s"})


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"type": "join"}, "equal_keys"),
        ({"type": "asof"}, "order"),
        ({"type": "interval", "lower": 1}, "order"),
        ({"type": "window", "order": ORDER.to_dict()}, "window"),
        ({"type": "column", "left": "a", "right": "b"}, "operator"),
        ({"type": "expression"}, "expression"),
        ({"type": "order", "left": "a"}, "right"),
    ],
)
def test_a_field_that_is_missing_is_named(data: Any, field: str) -> None:
    with refused(JoinSpecError, "W0306", f"needs the field {field!r}"):
        from_dict(data)


def test_a_class_reads_its_own_type_and_those_below_it() -> None:
    asof = EXAMPLES[1]
    assert JoinSpec.from_json(asof.to_json()) == asof
    with refused(JoinSpecError, "W0306", "'join'", "'asof'"):
        AsofSpec.from_json(JoinSpec([("a", "b")]).to_json())
    with refused(JoinSpecError, "W0306", "'column'", "'window'"):
        JoinSpec.from_dict(ColumnPredicate("a", "<", "b").to_dict())
    with refused(JoinSpecError, "W0306", "'macro'"):
        from_dict({"type": "macro"})


@pytest.mark.parametrize("data", [None, 5, "x", [], [1]])
def test_what_is_not_a_mapping_is_a_type_error(data: Any) -> None:
    with refused(ArgumentError, "W0301", "mapping", type(data).__name__):
        from_dict(data)
    with refused(ArgumentError, "W0301", "mapping"):
        JoinSpec.from_json(json.dumps(data))


@pytest.mark.parametrize("data", [{}, {"type": None}, {"type": 5}, {"type": ["join"]}, {"TYPE": "join"}])
def test_a_mapping_without_a_type_is_refused(data: Any) -> None:
    with refused(JoinSpecError, "W0306", "'type'"):
        from_dict(data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{'type': 'join'}",
        "join",
        '{"type": "join"',
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("1" * 5000, id="long number"),
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(WeftError) as caught:
        JoinSpec.from_json(text)
    assert caught.value.code in ("W0306", "W0301")


@pytest.mark.parametrize("text", [None, b"{}", 5, {}])
def test_from_json_takes_a_string(text: Any) -> None:
    with refused(ArgumentError, "W0301", "string", type(text).__name__):
        JoinSpec.from_json(text)


@pytest.mark.parametrize("depth", [50, 400, 900, 5000])
def test_json_nested_without_end_is_refused(depth: int) -> None:
    text = '{"type": "join", "equal_keys": ' + "[" * depth + "]" * depth + "}"
    with pytest.raises(WeftError) as caught:
        JoinSpec.from_json(text)
    assert caught.value.code in ("W0306", "W0301", "W0303")


@pytest.mark.parametrize(
    "args",
    [
        [{"$decimal": "x"}], [{"$decimal": None}], [{"$date": "2024-02-30"}], [{"$date": 5}], [{"$timestamp": "now"}],
        [{"$microseconds": "1.5"}], [{"$microseconds": "9" * 40}], [{"$bytes": "!"}], [{"$bytes": 5}],
        [{"$float": "x"}], [{"$decimal": "sNaN"}], [{"$float": "nan"}], [{"$unknown": 1}], [{"type": "join"}],
        [{"type": "order", "left": "a", "right": "b"}], [[1]], {"$named": 5}, {"$named": {"x": 1}}, {"x": 1}, "x", 5, None,
    ],
)  # fmt: skip
def test_invalid_parameters_are_refused(args: Any) -> None:
    with pytest.raises(WeftError) as caught:
        from_dict({"type": "expression", "expression": "a = ?", "args": args})
    assert caught.value.code in ("W0306", "W0301", "W0214")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["a", "b.c", "unbounded"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "left", "$decimal", "$named", "$date", "x"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(st.sampled_from(EXAMPLES), st.data())
def test_any_field_may_hold_anything_and_gives_a_spec_or_an_error_with_a_code(value: Any, data: st.DataObject) -> None:
    form = value.to_dict()
    field = data.draw(st.sampled_from(sorted(form)))
    form[field] = data.draw(json_values)
    try:
        built = Serial.from_json(json.dumps(form))
    except WeftError as error:
        assert error.code
    else:
        assert Serial.from_json(built.to_json()) == built
