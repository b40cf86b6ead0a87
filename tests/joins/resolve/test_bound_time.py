"""As-of, interval and window specs bound to two schemas: order columns, distances, ties."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from refusals import refused
from weft.core.types import Schema
from weft.errors import ArgumentError, JoinSpecError, JoinTypeError, UnknownColumnError
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import AsOf, Exact, SameWindow, Within
from weft.joins.spec import AsofOrder, AsofSpec, IntervalSpec, JoinProjection, JoinSpec, WindowSpec

TRADES = Schema.of(symbol="string", ts="timestamp", day="date", n="long", px="double")
QUOTES = Schema.of(
    sym="string",
    qts="timestamp",
    qday="date",
    m="decimal(10,2)",
    bid="double",
    seq="long",
    tags="map<string,string>",
)
SECOND, DAY = 1_000_000, 86_400_000_000
TIMES, DATES, NUMBERS = AsofOrder("ts", "qts"), AsofOrder("day", "qday"), AsofOrder("n", "m")


def asof(order: AsofOrder = TIMES, **options: Any) -> AsOf:
    match = resolve_join(AsofSpec([("symbol", "sym")], order=order, **options), TRADES, QUOTES).match
    assert isinstance(match, AsOf)
    return match


def test_an_as_of_spec_becomes_an_as_of_match() -> None:
    match = asof(
        direction="nearest",
        tolerance="5 s",
        nearest_tie="forward",
        allow_exact_matches=False,
        tie_break=("SEQ", "bid"),
    )
    assert match == AsOf(
        left=1, right=1, direction="nearest", allow_exact=False, tolerance=5 * SECOND, nearest_tie="forward", tie_break=(5, 4)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("order", "tolerance", "amount"),
    [
        (TIMES, None, None),
        (TIMES, "unbounded", None),
        (TIMES, "5 seconds", 5 * SECOND),
        (TIMES, "PT0.000001S", 1),
        (TIMES, dt.timedelta(days=1), DAY),
        (TIMES, "0s", 0),
        (DATES, "2 days", 2 * DAY),
        (DATES, "48 hours", 2 * DAY),
        (DATES, dt.timedelta(weeks=1), 7 * DAY),
        (NUMBERS, 5, Decimal(5)),
        (NUMBERS, "15", Decimal(15)),
        (NUMBERS, 2.5, Decimal("2.5")),
        (NUMBERS, Decimal("0.01"), Decimal("0.01")),
        (NUMBERS, 0, Decimal(0)),
        (AsofOrder("ts", "qday"), "5 s", 5 * SECOND),
        (AsofOrder("day", "qts"), "5 s", 5 * SECOND),
        (AsofOrder("px", "bid"), 0.1, Decimal("0.1")),
    ],
)
def test_a_tolerance_is_measured_in_the_unit_of_the_order(order: AsofOrder, tolerance: Any, amount: Any) -> None:
    found = asof(order, tolerance=tolerance).tolerance
    assert found == amount
    assert type(found) is type(amount)


@pytest.mark.parametrize(
    ("order", "tolerance", "parts"),
    [
        (TIMES, 5, ("tolerance 5", "left.ts is timestamp", "'5 seconds'")),
        (TIMES, "15", ("'15'", "left.ts is timestamp")),
        (NUMBERS, "5 seconds", ("5s", "left.n is long", "tolerance=5")),
        (NUMBERS, dt.timedelta(1), ("1d", "left.n is long")),
        (DATES, "90 minutes", ("whole days", "left.day", "right.qday", "'2 days'")),
        (DATES, 2, ("left.day is date",)),
    ],
)
def test_a_tolerance_in_another_unit_is_a_type_error(order: AsofOrder, tolerance: Any, parts: tuple[str, ...]) -> None:
    with refused(JoinTypeError, "W0105", *parts):
        asof(order, tolerance=tolerance)


@pytest.mark.parametrize(
    ("order", "side", "near"),
    [
        (AsofOrder("tss", "qts"), "left", "'ts'"),
        (AsofOrder("ts", "qtss"), "right", "'qts'"),
        (AsofOrder("qts", "qts"), "left", "'ts'"),
        (AsofOrder("ts", "nothing_like_it"), "right", "it has"),
    ],
)
@pytest.mark.parametrize("form", ["asof", "interval", "window"])
def test_an_order_column_that_is_not_there_is_unknown(form: str, order: AsofOrder, side: str, near: str) -> None:
    specs: dict[str, Any] = {
        "asof": lambda: AsofSpec(order=order),
        "interval": lambda: IntervalSpec(order=order, lower="0s", upper="1s"),
        "window": lambda: WindowSpec(order=order, window="session", gap="1s"),
    }
    with refused(UnknownColumnError, "W0101", f"the {side} relation has no column", near):
        resolve_join(specs[form](), TRADES, QUOTES)


def test_an_order_column_may_have_any_name() -> None:
    left, right = (
        Schema.of(**{"event ts": "timestamp"}),
        Schema.of(**{"q.ts": "timestamp", "Event TS": "long"}),
    )
    match = resolve_join(
        AsofSpec(order=AsofOrder("EVENT ts", "`Q.ts`")),
        left,
        right,
        project=JoinProjection(suffixes=("", "_r")),
    ).match
    assert isinstance(match, AsOf)
    assert (match.left, match.right) == (0, 0)


@pytest.mark.parametrize(
    ("name", "kind", "code", "part"),
    [
        ("seqq", UnknownColumnError, "W0101", "'seq'"),
        ("n", UnknownColumnError, "W0101", "right relation"),
        ("tags", JoinTypeError, "W0105", "map<string,string>"),
    ],
)
def test_tie_break_columns_are_right_columns_with_an_order(name: str, kind: Any, code: str, part: str) -> None:
    with refused(kind, code, part):
        asof(tie_break=(name,))


def test_an_as_of_join_is_left_or_inner_as_its_spec_says() -> None:
    spec = AsofSpec(order=TIMES)
    assert resolve_join(spec, TRADES, QUOTES).how == "left"
    assert resolve_join(AsofSpec(order=TIMES, how="inner"), TRADES, QUOTES, how="inner").how == "inner"
    with refused(ArgumentError, "W0305", "'inner'", "'left'"):
        resolve_join(spec, TRADES, QUOTES, how="inner")


def test_a_keyless_as_of_join_is_accepted() -> None:
    assert resolve_join(AsofSpec(order=TIMES), TRADES, QUOTES).keys == ()


def test_an_as_of_join_to_which_the_right_side_adds_nothing_is_refused() -> None:
    left, right = (
        Schema.of(s="string", t="timestamp", v="long"),
        Schema.of(s="string", q="timestamp", v="long"),
    )
    spec = AsofSpec([("s", "s"), ("v", "v")], order=AsofOrder("t", "q"))
    assert [c.name for c in resolve_join(spec, left, right).output] == ["s", "t", "v", "q"]
    for project in (
        JoinProjection(keep_right_order=False),
        JoinProjection(keep=["t"]),
        JoinProjection(drop=["q"]),
    ):
        with refused(JoinSpecError, "W0108", "right side adds no column"):
            resolve_join(spec, left, right, project=project)
    reported = JoinProjection(keep_right_order=False, indicator="found")
    assert resolve_join(spec, left, right, project=reported).output[-1].source == "indicator"


@pytest.mark.parametrize(
    ("order", "lower", "upper", "expected"),
    [
        (TIMES, "0s", "24h", (0, DAY)),
        (TIMES, "-1 h", "1 h", (-3600 * SECOND, 3600 * SECOND)),
        (TIMES, None, "1 s", (None, SECOND)),
        (TIMES, "1 s", None, (SECOND, None)),
        (DATES, "-1 day", "PT48H", (-DAY, 2 * DAY)),
        (NUMBERS, -1, "2.5", (Decimal(-1), Decimal("2.5"))),
    ],
)
def test_an_interval_spec_becomes_bounds(order: AsofOrder, lower: Any, upper: Any, expected: Any) -> None:
    join = resolve_join(
        IntervalSpec([("symbol", "sym")], order=order, lower=lower, upper=upper, how="full"), TRADES, QUOTES
    )
    assert isinstance(join.match, Within)
    assert (join.match.lower, join.match.upper) == expected
    assert join.how == "full"


@pytest.mark.parametrize(
    ("order", "lower", "upper", "part"),
    [
        (TIMES, 1, 2, "lower 1"),
        (TIMES, None, 2, "upper 2"),
        (NUMBERS, "1 s", None, "lower 1s"),
        (DATES, "0s", "36 h", "upper '36 h'"),
    ],
)
def test_a_bound_in_another_unit_is_a_type_error(order: AsofOrder, lower: Any, upper: Any, part: str) -> None:
    with refused(JoinTypeError, "W0105", part):
        resolve_join(IntervalSpec(order=order, lower=lower, upper=upper), TRADES, QUOTES)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_an_interval_or_window_spec_says_its_own_how(how: Any) -> None:
    for spec in (
        IntervalSpec(order=TIMES, lower="0s", upper="1s", how=how),
        WindowSpec(order=TIMES, window="tumbling", size="1h", how=how),
    ):
        assert resolve_join(spec, TRADES, QUOTES).how == how
        assert resolve_join(spec, TRADES, QUOTES, how=how).how == how
        other: Any = "left" if how != "left" else "inner"
        with refused(ArgumentError, "W0305", repr(other), repr(how)):
            resolve_join(spec, TRADES, QUOTES, how=other)


@pytest.mark.parametrize(
    ("options", "size", "slide", "gap"),
    [
        ({"window": "tumbling", "size": "1h"}, 3600 * SECOND, None, None),
        ({"window": "sliding", "size": "1h", "slide": "10m"}, 3600 * SECOND, 600 * SECOND, None),
        ({"window": "session", "gap": "30m"}, None, None, 1800 * SECOND),
    ],
)
def test_a_window_spec_becomes_whole_microseconds(options: Any, size: Any, slide: Any, gap: Any) -> None:
    join = resolve_join(WindowSpec([("symbol", "sym")], order=TIMES, per_window=True, **options), TRADES, QUOTES)
    assert join.match == SameWindow(
        left=1, right=1, kind=options["window"], size=size, slide=slide, gap=gap, per_window=True
    )


def test_windows_are_cut_in_time() -> None:
    with refused(JoinTypeError, "W0105", "left.n is long", "interval join"):
        resolve_join(WindowSpec(order=NUMBERS, window="tumbling", size=5), TRADES, QUOTES)
    with refused(JoinTypeError, "W0105", "size 5", "left.ts is timestamp"):
        resolve_join(WindowSpec(order=TIMES, window="tumbling", size=5), TRADES, QUOTES)
    with refused(JoinTypeError, "W0105", "size '1h'", "whole days"):
        resolve_join(WindowSpec(order=DATES, window="tumbling", size="1h"), TRADES, QUOTES)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_a_plain_spec_matches_by_keys_alone(how: Any) -> None:
    assert resolve_join(JoinSpec([("symbol", "sym")]), TRADES, QUOTES, how=how).match == Exact()


def test_keys_of_an_as_of_spec_are_looked_up_like_all_keys() -> None:
    with refused(UnknownColumnError, "W0101", "right relation", "'sym'"):
        resolve_join(AsofSpec([("symbol", "symb")], order=TIMES), TRADES, QUOTES)


@pytest.mark.parametrize(
    ("order", "end"), [(NUMBERS, "sym"), (NUMBERS, "qts"), (TIMES, "sym"), (TIMES, "seq")], ids=repr
)
def test_an_end_is_of_the_family_of_its_start(order: AsofOrder, end: str) -> None:
    for spec in (IntervalSpec(order=order, right_end=end), AsofSpec(order=order, until=end)):
        with refused(JoinTypeError, "W0105", f"right.{end}", "cannot be compared with"):
            resolve_join(spec, TRADES, QUOTES)
