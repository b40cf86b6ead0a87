"""AsofOrder, AsofSpec, IntervalSpec, WindowSpec: what they accept and say."""

# ruff: noqa: RUF001  # look-alike characters are the point of some tests
from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from refusals import refused
from spec_values import interval_specs, window_specs
from weft.errors import ArgumentError, JoinSpecError
from weft.joins.spec import AsofOrder, AsofSpec, ColumnPredicate, IntervalSpec, JoinSpec, WindowSpec

ORDER = AsofOrder(left="event_ts", right="quote_ts")
KEYS = [("symbol", "symbol")]
FORMS: dict[str, Any] = {
    "asof": lambda **o: AsofSpec(KEYS, **{"order": ORDER, **o}),
    "interval": lambda **o: IntervalSpec(KEYS, **{"order": ORDER, "lower": "0s", "upper": "1h", **o}),
    "window": lambda **o: WindowSpec(KEYS, **{"order": ORDER, "window": "tumbling", "size": "1h", **o}),
}


def test_the_printed_examples_of_the_interface_are_accepted() -> None:
    spec = AsofSpec(
        equal_keys=KEYS,
        order=ORDER,
        direction="nearest",
        tolerance="5 seconds",
        range_predicates=[ColumnPredicate("event_ts", ">=", "quote_ts")],
    )
    assert str(spec) == (
        "left.symbol = right.symbol AND left.event_ts >= right.quote_ts AND "
        "right.quote_ts nearest to left.event_ts within 5 seconds"
    )
    assert isinstance(spec, JoinSpec)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [(5, ArgumentError, "W0301"), ("", JoinSpecError, "W0303"), ("q.ts", JoinSpecError, "W0303")],
)
def test_an_order_takes_two_column_names(side: str, name: Any, kind: Any, code: str) -> None:
    with refused(kind, code, f"{side} order column"):
        AsofOrder(**{"left": "a", "right": "b", side: name})


@pytest.mark.parametrize("names", [b"seq", 5, {"seq"}, {"a": 1}, None])
def test_a_tie_break_is_a_sequence_of_names(names: Any) -> None:
    with refused(ArgumentError, "W0301", "tie_break", repr(names)):
        AsofOrder("a", "b", tie_break=names)
    with refused(ArgumentError, "W0301", "tie_break", repr(names)):
        AsofSpec(order=ORDER, tie_break=names)


def test_all_columns_that_skip_nulls_are_not_the_column_of_that_name() -> None:
    every, one = AsofSpec(order=ORDER, skip_nulls="all"), AsofSpec(order=ORDER, skip_nulls=("all",))
    assert every != one
    assert AsofSpec(order=ORDER, skip_nulls="bid") == AsofSpec(order=ORDER, skip_nulls=("bid",))
    assert len({every.fingerprint(), one.fingerprint(), AsofSpec(order=ORDER).fingerprint()}) == 3
    assert AsofSpec.from_json(every.to_json()) == every
    assert AsofSpec.from_json(one.to_json()) == one
    assert str(every).endswith("nearest value that is not NULL of every right column")


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_join_without_right_columns_fills_none(how: Any) -> None:
    with refused(JoinSpecError, "W0305", f"a {how} join", "skip_nulls"):
        AsofSpec(order=ORDER, how=how, skip_nulls=("bid",))


def test_one_name_is_a_tie_break_of_one_column() -> None:
    assert AsofOrder("a", "b", tie_break="seq") == AsofOrder("a", "b", tie_break=("seq",))
    short, long = AsofSpec(order=ORDER, tie_break="seq"), AsofSpec(order=ORDER, tie_break=("seq",))
    assert short == long
    assert short.fingerprint() == long.fingerprint()


@pytest.mark.parametrize("form", ["asof", "interval", "window"])
@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("ts", AsofOrder("ts", "ts")),
        ("`a.b`", AsofOrder("`a.b`", "`a.b`")),
        (("at", "quoted"), AsofOrder("at", "quoted")),
        (["at", "quoted"], AsofOrder("at", "quoted")),
    ],
)
def test_an_order_of_one_or_two_names_is_the_order_written_out(form: str, short: Any, long: AsofOrder) -> None:
    one, other = FORMS[form](order=short), FORMS[form](order=long)
    assert one == other
    assert one.fingerprint() == other.fingerprint()
    assert type(one).from_json(one.to_json()) == other


def test_the_second_time_axis_is_written_like_the_first_one() -> None:
    assert AsofSpec(order="ts", known=("seen", "from")) == AsofSpec(  # type: ignore[arg-type]
        order=AsofOrder("ts", "ts"), known=AsofOrder("seen", "from")
    )
    with refused(ArgumentError, "W0301", "known must be", "tuple of 3"):
        AsofSpec(order="ts", known=("a", "b", "c"))  # type: ignore[arg-type]


def test_a_tie_break_is_part_of_the_order_or_of_the_spec() -> None:
    in_order = AsofSpec(KEYS, order=replace(ORDER, tie_break=("seq", "id")))
    in_spec = AsofSpec(KEYS, order=ORDER, tie_break=["seq", "`id`"])
    assert in_order == in_spec
    assert in_order.tie_break == ("seq", "id")
    assert in_order.order == ORDER
    assert in_order.fingerprint() == in_spec.fingerprint()
    both = AsofSpec(KEYS, order=replace(ORDER, tie_break=("seq", "id")), tie_break=("seq", "id"))
    assert both == in_spec
    with refused(JoinSpecError, "W0305", "'seq'", "'id'"):
        AsofSpec(KEYS, order=replace(ORDER, tie_break=("seq",)), tie_break=("id",))


def test_an_order_turns_round_unless_it_breaks_ties() -> None:
    assert ORDER.reversed() == AsofOrder("quote_ts", "event_ts")
    assert ORDER.reversed().reversed() == ORDER
    with refused(JoinSpecError, "W0302", "tie_break"):
        replace(ORDER, tie_break=("seq",)).reversed()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", [None, 5, ("a",), ["a", "b", "c"], {"left": "a", "right": "b"}])
def test_the_order_is_an_asof_order(form: str, order: Any) -> None:
    with refused(ArgumentError, "W0301", "order", type(order).__name__, "order=('event_ts', 'quote_ts')"):
        FORMS[form](order=order)


@pytest.mark.parametrize("form", FORMS)
def test_keys_may_be_empty_because_the_order_joins(form: str) -> None:
    assert replace(FORMS[form](), equal_keys=()).equal_keys == ()


@pytest.mark.parametrize("form", FORMS)
def test_the_rules_of_a_join_spec_hold_for_keys_and_predicates(form: str) -> None:
    with refused(ArgumentError, "W0301", "equal_keys"):
        replace(FORMS[form](), equal_keys=5)
    with refused(ArgumentError, "W0301", "predicates[0]"):
        FORMS[form](predicates=["x"])
    with refused(JoinSpecError, "W0302", "relationship"):
        FORMS[form](relationship="n:m")


@pytest.mark.parametrize(
    ("form", "option", "bad", "allowed"),
    [
        ("asof", "direction", "backwards", "'backward'"),
        ("asof", "direction", "", "'nearest'"),
        ("asof", "nearest_tie", "left", "'forward'"),
        ("asof", "how", "outer", "'inner'"),
        ("interval", "how", "cross", "'anti'"),
        ("interval", "how", "outer", "'full'"),
        ("window", "how", "asof", "'semi'"),
        ("window", "window", "hopping", "'sliding'"),
    ],
)
def test_options_take_their_own_words_only(form: str, option: str, bad: str, allowed: str) -> None:
    with refused(JoinSpecError, "W0302", option, repr(bad), allowed):
        FORMS[form](**{option: bad})
    with refused(ArgumentError, "W0301", option):
        FORMS[form](**{option: 5})


@pytest.mark.parametrize(
    ("form", "option"), [("asof", "allow_exact_matches"), ("window", "per_window"), ("asof", "nulls_equal")]
)
@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_switches_are_bools(form: str, option: str, value: Any) -> None:
    with refused(ArgumentError, "W0301", option, repr(value)):
        FORMS[form](**{option: value})


@pytest.mark.parametrize(
    "tolerance",
    [
        "5 seconds",
        "1 hour 30 minutes",
        "2 weeks",
        "500 ms",
        "PT5S",
        "90s",
        5,
        "15",
        0,
        "0s",
        dt.timedelta(1),
        Decimal("0.5"),
        2.5,
    ],
)
def test_tolerances_that_are_accepted(tolerance: Any) -> None:
    assert AsofSpec(order=ORDER, tolerance=tolerance).tolerance == tolerance


@pytest.mark.parametrize(
    "tolerance",
    ["1 OR TRUE", "", "five seconds", "1 month", "1 year", "P1M", "-5 s", -1, "-1", float("nan"), float("inf"),
     Decimal("-Infinity"), dt.timedelta(-1), "5 s; DROP TABLE x", "1 day --", "UNBOUNDED", "５ s", "1e3 s", "5 s 5 s"],
)  # fmt: skip
def test_tolerances_that_are_refused(tolerance: Any) -> None:
    with refused(JoinSpecError, "W0304", "tolerance"):
        AsofSpec(order=ORDER, tolerance=tolerance)


@pytest.mark.parametrize("tolerance", [True, b"5 s", [5], object])
def test_tolerances_of_another_kind_are_a_type_error(tolerance: Any) -> None:
    with refused(ArgumentError, "W0301", "tolerance", "5 seconds"):
        AsofSpec(order=ORDER, tolerance=tolerance)


def test_nearest_needs_a_tolerance_or_the_word_unbounded() -> None:
    with refused(JoinSpecError, "W0304", "nearest", "unbounded"):
        AsofSpec(order=ORDER, direction="nearest")
    assert AsofSpec(order=ORDER, direction="nearest", tolerance="unbounded").tolerance == "unbounded"
    assert AsofSpec(order=ORDER, direction="backward").tolerance is None


def test_range_predicates_are_predicates() -> None:
    with refused(ArgumentError, "W0301", "range_predicates[0]"):
        AsofSpec(order=ORDER, range_predicates=["x = 1"])  # type: ignore[list-item]
    with refused(ArgumentError, "W0301", "range_predicates", "ColumnPredicate"):
        AsofSpec(order=ORDER, range_predicates=ColumnPredicate("a", "<", "b"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("direction", "exact", "words"),
    [
        ("backward", True, "at or before"),
        ("backward", False, "before"),
        ("forward", True, "at or after"),
        ("forward", False, "after"),
        ("nearest", True, "nearest to"),
        ("nearest", False, "nearest to but not at"),
    ],
)
def test_an_as_of_spec_prints_its_direction(direction: Any, exact: bool, words: str) -> None:  # noqa: FBT001
    spec = AsofSpec(order=ORDER, direction=direction, allow_exact_matches=exact, tolerance="unbounded")
    assert str(spec) == f"right.quote_ts {words} left.event_ts"


def test_as_of_builders() -> None:
    spec = AsofSpec(KEYS, order=ORDER, direction="forward", tolerance="5 s")
    assert AsofSpec.from_tuples(("symbol", "symbol"), order=ORDER, direction="forward", tolerance="5 s") == spec
    assert (
        AsofSpec.from_current_api(keys={"symbol": "symbol"}, order=ORDER, direction="forward", tolerance="5 s") == spec
    )
    assert AsofSpec.from_kwargs("symbol", order=ORDER, direction="forward", tolerance="5 s") == spec
    assert AsofSpec.from_kwargs(order=ORDER, symbol="symbol", direction="forward", tolerance="5 s") == spec
    assert AsofSpec.from_current_api(order=ORDER).equal_keys == ()
    assert AsofSpec.from_current_api(keys={}, order=ORDER) == AsofSpec(order=ORDER)
    with refused(ArgumentError, "W0301", "from_tuples", "order="):
        AsofSpec.from_tuples(("a", "b"))
    with refused(ArgumentError, "W0301", "IntervalSpec.from_tuples", "order="):
        IntervalSpec.from_tuples(("a", "b"), lower="0s")
    with refused(ArgumentError, "W0301", "from_kwargs", "order="):
        AsofSpec.from_kwargs("a")
    with refused(ArgumentError, "W0301", "keys"):
        AsofSpec.from_current_api(keys=5, order=ORDER)  # type: ignore[arg-type]


def test_a_column_called_like_an_option_goes_through_keys() -> None:
    spec = AsofSpec.from_kwargs(order=ORDER, keys={"order": "order_no", "how": "how"}, tolerance="5 s")
    assert spec.equal_keys == (("order", "order_no"), ("how", "how"))


def test_an_as_of_spec_cannot_be_reversed() -> None:
    with refused(JoinSpecError, "W0302", "cannot be reversed"):
        AsofSpec(order=ORDER).reversed()


@pytest.mark.parametrize("form", ["interval", "window"])
def test_a_join_that_keeps_every_match_takes_no_tie_break(form: str) -> None:
    with refused(JoinSpecError, "W0305", "tie_break", "seq"):
        FORMS[form](order=AsofOrder("a", "b", tie_break=("seq",)))


@pytest.mark.parametrize(
    ("lower", "upper"),
    [("0s", "24h"), ("-1 hour", "1 hour"), (None, "5 s"), ("5 s", None), (-1, 1), ("-1", "2.5"), ("1 h", "1 h"),
     (dt.timedelta(-1), "PT0S")],
)  # fmt: skip
def test_intervals_that_are_accepted(lower: Any, upper: Any) -> None:
    spec = IntervalSpec(order=ORDER, lower=lower, upper=upper)
    assert (spec.lower, spec.upper) == (lower, upper)


@pytest.mark.parametrize(
    ("lower", "upper", "code"),
    [
        (None, None, "W0304"),
        ("2 h", "1 h", "W0305"),
        (2, 1, "W0305"),
        (1, "1 h", "W0305"),
        ("1 h", "1", "W0305"),
        ("1 month", "2 h", "W0304"),
        ("x", None, "W0304"),
        (None, float("nan"), "W0304"),
    ],
)
def test_intervals_that_are_refused(lower: Any, upper: Any, code: str) -> None:
    with refused(JoinSpecError, code):
        IntervalSpec(order=ORDER, lower=lower, upper=upper)


def test_bounds_of_another_kind_are_a_type_error() -> None:
    with refused(ArgumentError, "W0301", "lower", "bool"):
        IntervalSpec(order=ORDER, lower=True, upper=1)


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        ("0s", "24h", "between left.event_ts + 0s and left.event_ts + 24h"),
        (None, 5, "between the beginning and left.event_ts + 5"),
        ("-1 h", None, "between left.event_ts + -1 h and the end"),
    ],
)
def test_an_interval_prints_its_bounds(lower: Any, upper: Any, text: str) -> None:
    assert str(IntervalSpec(order=ORDER, lower=lower, upper=upper)) == f"right.quote_ts {text}"


def test_reversing_an_interval_exchanges_and_negates_the_bounds() -> None:
    turned = IntervalSpec(KEYS, order=ORDER, lower="0s", upper="24h", how="left").reversed()
    assert (turned.lower, turned.upper, turned.how) == ("-24h", "-0s", "right")
    assert turned.order == AsofOrder("quote_ts", "event_ts")


@given(
    interval_specs.filter(lambda s: s.how not in ("semi", "anti"))
    | window_specs.filter(lambda s: s.how not in ("semi", "anti"))
)
def test_interval_and_window_specs_reversed_twice_are_themselves(spec: Any) -> None:
    again = spec.reversed().reversed()
    assert replace(again, predicates=spec.predicates) == spec


@pytest.mark.parametrize("form", ["interval", "window"])
@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_join_that_keeps_one_side_cannot_be_reversed(form: str, how: str) -> None:
    with refused(JoinSpecError, "W0302", how, "cannot be reversed"):
        FORMS[form](how=how).reversed()


WINDOWS: dict[str, dict[str, Any]] = {
    "tumbling": {"size": "1h"},
    "sliding": {"size": "1h", "slide": "10m"},
    "session": {"gap": "30m"},
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_each_window_takes_its_own_sizes_and_no_other(kind: Any) -> None:
    sizes = WINDOWS[kind]
    assert WindowSpec(order=ORDER, window=kind, **sizes).window == kind
    for name in ("size", "slide", "gap"):
        changed: dict[str, Any] = {**sizes, name: None if name in sizes else "5 m"}
        verb = "needs" if name in sizes else "takes no"
        with refused(JoinSpecError, "W0305", f"a {kind} window {verb} {name}=", *(f"{n}=" for n in sizes)):
            WindowSpec(order=ORDER, window=kind, **changed)


@pytest.mark.parametrize("size", ["0s", 0, "-1 h", "1 month", "x", ""])
def test_a_window_is_longer_than_zero(size: Any) -> None:
    with refused(JoinSpecError, "W0304", "size"):
        WindowSpec(order=ORDER, window="tumbling", size=size)


def test_a_slide_is_no_longer_than_the_size() -> None:
    with refused(JoinSpecError, "W0305", "slide", "'2h'", "'1h'"):
        WindowSpec(order=ORDER, window="sliding", size="1h", slide="2h")
    with refused(JoinSpecError, "W0305", "number"):
        WindowSpec(order=ORDER, window="sliding", size="1h", slide=5)
    assert WindowSpec(order=ORDER, window="sliding", size="1h", slide="60m").slide == "60m"


@pytest.mark.parametrize(
    ("kind", "reported"), [("tumbling", "size 1h"), ("sliding", "size 1h, slide 10m"), ("session", "gap 30m")]
)
def test_a_window_prints_its_sizes(kind: Any, reported: str) -> None:
    spec = WindowSpec(KEYS, order=ORDER, window=kind, **WINDOWS[kind])
    assert str(spec) == (
        f"left.symbol = right.symbol AND left.event_ts and right.quote_ts in one {kind} window ({reported})"
    )


def test_order_names_that_are_not_words_print_in_backticks() -> None:
    odd = AsofOrder("event ts", "`q.ts`")
    assert "right.`q.ts` at or before left.`event ts`" in str(AsofSpec(order=odd))
    assert "right.`q.ts` between left.`event ts` + 0s" in str(IntervalSpec(order=odd, lower="0s", upper="1s"))
    assert "left.`event ts` and right.`q.ts`" in str(WindowSpec(order=odd, window="session", gap="1s"))


def test_specs_of_two_types_are_never_equal() -> None:
    assert AsofSpec(KEYS, order=ORDER) != JoinSpec(KEYS)
    assert JoinSpec(KEYS) != AsofSpec(KEYS, order=ORDER)


def test_two_as_of_specs_that_differ_in_order_or_direction_differ_in_all_respects() -> None:
    one = AsofSpec(KEYS, order=ORDER)
    for other in (
        AsofSpec(KEYS, order=ORDER, direction="forward"),
        AsofSpec(KEYS, order=AsofOrder("event_ts", "other_ts")),
        AsofSpec(KEYS, order=ORDER, tolerance="5 s"),
    ):
        assert one != other
        assert hash(one) != hash(other)
        assert one.to_json() != other.to_json()
        assert one.fingerprint() != other.fingerprint()
