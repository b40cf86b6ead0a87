"""Random specs of every type, for round trips and for mutations of one field."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from weft.core.names import is_plain_text, quote
from weft.joins.spec import (
    AsofOrder,
    AsofSpec,
    ColumnPredicate,
    ExpressionPredicate,
    IntervalSpec,
    JoinProjection,
    JoinSpec,
    WindowSpec,
)

PLAIN = ("id", "ts", "Status", "order id", "class", "größe", "left", "x", "y", "price")
QUOTED = ("`a.b`", "`c``d`", "` `", "``", "`l.x`")
ODD = st.text(min_size=1, max_size=6).filter(is_plain_text).map(quote)
names = st.sampled_from(PLAIN) | st.sampled_from(QUOTED) | ODD

durations = st.sampled_from(("5 seconds", "1 hour 30 minutes", "PT5S", "2d", "INTERVAL '24' HOUR", "0s")) | st.builds(
    dt.timedelta, microseconds=st.integers(0, 10**15)
)
numbers = st.integers(0, 10**30) | st.decimals(
    min_value=0, max_value=10**20, allow_nan=False, allow_infinity=False, places=7
)
number_texts = st.sampled_from(("15", "2.50", "0"))
signed_durations = (
    durations
    | st.sampled_from(("-1 hour", "+ 3 s", "- 2 days"))
    | st.builds(dt.timedelta, microseconds=st.integers(-(10**15), 10**15))
)
signed_numbers = numbers | numbers.map(lambda n: -n) | st.sampled_from(("-15", "+2.5"))

column_predicates = st.builds(
    ColumnPredicate,
    names,
    st.sampled_from(("=", "!=", "<", "<=", ">", ">=")),
    names,
    st.none() | signed_durations | signed_numbers,
)

values: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.decimals(min_value=-(10**12), max_value=10**12, places=3, allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12),
    st.text(max_size=8).filter(is_plain_text),
    st.dates(),
    st.datetimes(min_value=dt.datetime(1900, 1, 1), max_value=dt.datetime(2200, 1, 1)),  # noqa: DTZ001
    st.datetimes(
        min_value=dt.datetime(1900, 1, 1),  # noqa: DTZ001
        max_value=dt.datetime(2200, 1, 1),  # noqa: DTZ001
        timezones=st.just(dt.UTC),
    ),
    st.timedeltas(dt.timedelta(days=-999), dt.timedelta(days=999)),
)
expression_predicates = (
    st.sampled_from(
        ("left.x = right.y", "right.flag", "left.x > 1 OR right.y IS NULL", 'l.`a.b` BETWEEN 1 AND r."q"')
    ).map(ExpressionPredicate)
    | values.map(lambda v: ExpressionPredicate("right.y = ?", (v,)))
    | st.tuples(values, values).map(lambda v: ExpressionPredicate("left.x IN (:a, :b)", {"a": v[0], "b": v[1]}))
)
predicates = column_predicates | expression_predicates
some_predicates = st.lists(predicates, max_size=3)
check_key_pairs = st.lists(st.tuples(names, names), max_size=4)
relationships = st.none() | st.sampled_from(("1:1", "1:m", "m:1", "m:m"))
unmatched = st.none() | st.sampled_from(("error", "left", "right", "both"))
promises = {"nulls_equal": st.booleans(), "relationship": relationships, "unmatched": unmatched}

join_specs = st.builds(JoinSpec, check_key_pairs.filter(bool), some_predicates, **promises) | st.builds(
    JoinSpec, st.just([]), some_predicates.filter(bool), **promises
)

orders = st.builds(AsofOrder, names, names)
hows = st.sampled_from(("inner", "left", "right", "full", "semi", "anti"))
asof_specs = st.builds(
    AsofSpec,
    check_key_pairs,
    some_predicates,
    order=orders | st.builds(AsofOrder, names, names, tie_break=st.lists(names, max_size=2)),
    direction=st.sampled_from(("backward", "forward")),
    tolerance=st.none() | st.just("unbounded") | durations | numbers | number_texts,
    range_predicates=some_predicates,
    allow_exact_matches=st.booleans(),
    nearest_tie=st.sampled_from(("backward", "forward")),
    how=st.sampled_from(("left", "inner")),
    **promises,
) | st.builds(
    AsofSpec,
    check_key_pairs,
    order=orders,
    direction=st.just("nearest"),
    tolerance=st.just("unbounded") | durations | numbers,
    tie_break=st.lists(names, max_size=2),
)
interval_specs = st.one_of(
    [
        st.builds(
            IntervalSpec,
            check_key_pairs,
            some_predicates,
            order=orders,
            lower=lower,
            upper=upper,
            how=hows,
            **promises,
        )
        for lower, upper in (
            (st.none(), signed_durations),
            (signed_numbers, st.none()),
            (st.just("-1 hour"), durations),
            (st.just(Decimal("-0.5")), numbers),
        )
    ]
)
_SIZES = ("10 minutes", "1h", dt.timedelta(hours=3))
window_specs = st.one_of(
    [
        st.builds(WindowSpec, check_key_pairs, some_predicates, order=orders, how=hows, **promises, **window)
        for window in (
            {"window": st.just("tumbling"), "size": st.sampled_from(_SIZES)},
            {
                "window": st.just("sliding"),
                "size": st.sampled_from(_SIZES),
                "slide": st.sampled_from(("5m", "1 min")),
                "per_window": st.booleans(),
            },
            {"window": st.just("session"), "gap": st.sampled_from(_SIZES)},
        )
    ]
)
columns = names | names.filter(lambda n: n[0] != "`").map(lambda n: f"right.{n}")
outputs = st.text(min_size=1, max_size=6).filter(lambda n: n.strip() and is_plain_text(n))
projections = st.builds(
    JoinProjection,
    suffixes=st.none() | st.tuples(st.sampled_from(("", "_l")), st.sampled_from(("_r", ".x", "`"))),
    allow_collisions=st.booleans(),
    right_keys=st.sampled_from(("auto", "keep", "drop")),
    keep=st.none() | st.lists(columns, max_size=3),
    drop=st.lists(columns, max_size=3),
    keep_right_order=st.booleans(),
    rename=st.dictionaries(columns, outputs, max_size=3),
    indicator=st.none() | names,
)
specs: st.SearchStrategy[Any] = join_specs | asof_specs | interval_specs | window_specs
everything: st.SearchStrategy[Any] = specs | projections | predicates | orders

OTHER: dict[str, Callable[[Any], Any]] = {
    "equal_keys": lambda v: (*v, ("another", "another one")),
    "predicates": lambda v: (*v, ColumnPredicate("another", "<", "another one")),
    "range_predicates": lambda v: (*v, ExpressionPredicate("left.another = 1")),
    "nulls_equal": lambda v: not v,
    "relationship": lambda v: "1:1" if v != "1:1" else None,
    "unmatched": lambda v: "both" if v != "both" else None,
    "order": lambda v: AsofOrder(v.right + "x", v.left),
    "direction": lambda v: "forward" if v != "forward" else "backward",
    "tolerance": lambda v: "77 s" if v != "77 s" else "78 s",
    "allow_exact_matches": lambda v: not v,
    "nearest_tie": lambda v: "forward" if v == "backward" else "backward",
    "tie_break": lambda v: (*v, "another"),
    "how": lambda v: "left" if v != "left" else "inner",
    "per_window": lambda v: not v,
    "allow_collisions": lambda v: not v,
    "keep_right_order": lambda v: not v,
    "right_keys": lambda v: "keep" if v != "keep" else "drop",
    "suffixes": lambda v: ("_a", "_b") if v != ("_a", "_b") else None,
    "keep": lambda v: ("another",) if v != ("another",) else None,
    "drop": lambda v: (*v, "another"),
    "rename": lambda v: (*v, ("another", "other")),
    "indicator": lambda v: "another" if v != "another" else None,
    "left": lambda v: "another" if v != "another" else "other",
    "right": lambda v: "another" if v != "another" else "other",
    "operator": lambda v: "<" if v != "<" else ">",
    "offset": lambda v: 7 if v != 7 else 8,
}
"""For each field a change that gives another, still accepted, value."""
