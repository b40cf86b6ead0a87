"""Every algebraic form of one bound is one bound; everything else stays a condition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.frozen import FrozenMap
from weft.core.types import Schema
from weft.expr import Typed, check, evaluate, parse
from weft.joins.resolve.predicates import conjuncts
from weft.streams.plan.bounds import Affine, find_bounds, parse_affine, parse_comparison
from weft.streams.plan.scope import FromSource, StatementScope
from weft.streams.sql.spec import TableSpec

SECOND = 1_000_000
COLUMNS = Schema.of(k="long", t="timestamp", other="timestamp", v="long")
TABLE = TableSpec(name="t", columns=COLUMNS, connector=FrozenMap())
SCOPE = StatementScope(sources=tuple(FromSource(number=i, alias=a, spec=TABLE) for i, a in enumerate("abr")))
TIMES: dict[Hashable, int] = {("i", i, 1): i for i in range(3)}
A, B, R = (("i", i, 1) for i in range(3))


def typed(text: str) -> Typed:
    return check(parse(text), SCOPE)


def summarize(text: str, **options: object) -> tuple[int | None, int | None, int | None, int]:
    bounds = find_bounds(conjuncts(typed(text)), TIMES, 2, **options)  # type: ignore[arg-type]  # left= or order=
    return bounds.left, bounds.lower, bounds.upper, len(bounds.residual)


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("r.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR", 0, 3600),
        ("a.t BETWEEN r.t - INTERVAL '1' HOUR AND r.t", 0, 3600),
        ("r.t - a.t BETWEEN INTERVAL '0' SECOND AND INTERVAL '1' HOUR", 0, 3600),
        ("a.t - r.t BETWEEN INTERVAL '-1' HOUR AND INTERVAL '0' SECOND", 0, 3600),
        ("r.t >= a.t AND r.t <= a.t + INTERVAL '60' MINUTE", 0, 3600),
        ("a.t <= r.t AND a.t + INTERVAL '1' HOUR >= r.t", 0, 3600),
        ("INTERVAL '1' HOUR + a.t >= r.t AND NOT r.t < a.t", 0, 3600),
        ("r.t - INTERVAL '1' HOUR <= a.t AND NOT (a.t > r.t)", 0, 3600),
        ("r.t - a.t <= INTERVAL '30' MINUTE * 2 AND r.t - a.t >= -INTERVAL '0' SECOND", 0, 3600),
        ("r.t - a.t <= INTERVAL '30' MINUTE + INTERVAL '30' MINUTE AND a.t <= r.t", 0, 3600),
        ("r.t - a.t <= INTERVAL '2' HOUR - INTERVAL '1' HOUR AND a.t <= r.t", 0, 3600),
        ("(r.t - INTERVAL '1' HOUR) - a.t <= INTERVAL '0' SECOND AND a.t <= r.t", 0, 3600),
        ("CAST(r.t AS timestamp) BETWEEN a.t AND CAST(a.t AS timestamp) + INTERVAL '1' HOUR", 0, 3600),
        ("r.t = a.t + INTERVAL '10' SECOND", 10, 10),
        ("a.t = r.t", 0, 0),
        ("r.t BETWEEN a.t - INTERVAL '5' SECOND AND a.t - INTERVAL '2' SECOND", -5, -2),
        ("r.t >= a.t", 0, None),
        ("r.t <= a.t + INTERVAL '3' SECOND", None, 3),
        ("r.t BETWEEN a.t AND a.t + INTERVAL '9' SECOND AND r.t <= a.t + INTERVAL '3' SECOND", 0, 3),
    ],
)
def test_a_bound_is_found_however_it_is_written(text: str, lower: int | None, upper: int | None) -> None:
    expected = tuple(None if end is None else end * SECOND for end in (lower, upper))
    assert summarize(text) == (0, *expected, 0)


def test_a_strict_comparison_ends_one_microsecond_earlier() -> None:
    assert summarize("r.t > a.t AND r.t < a.t + INTERVAL '1' SECOND") == (0, 1, SECOND - 1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "r.t >= a.t OR r.v = 1",
        "r.other BETWEEN a.t AND a.t + INTERVAL '1' HOUR",
        "NOT (r.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR)",
        "r.t <> a.t",
        "r.t >= TIMESTAMP '2026-01-01T00:00:00Z'",
        "r.t - a.t >= r.t - b.t",
        "CASE WHEN a.v = 1 THEN r.t ELSE a.t END >= a.t",
        "r.v = a.v",
        "a.t <= b.t",
        "DATE_TRUNC('day', r.t) = DATE_TRUNC('day', a.t)",
    ],
)
def test_what_bounds_nothing_stays_a_condition(text: str) -> None:
    parts = tuple(conjuncts(typed(text)))
    bounds = find_bounds(parts, TIMES, 2)
    assert (bounds.left, bounds.lower, bounds.upper) == (None, None, None)
    assert bounds.residual == parts


def test_the_pair_is_the_first_earlier_source_with_both_ends() -> None:
    text = "r.t >= a.t AND r.t BETWEEN b.t AND b.t + INTERVAL '1' SECOND"
    assert summarize(text) == (1, 0, SECOND, 1)
    assert summarize("r.t >= a.t AND r.t >= b.t") == (0, 0, None, 1)
    both = "r.t BETWEEN a.t AND a.t + INTERVAL '2' SECOND AND r.t BETWEEN b.t AND b.t + INTERVAL '1' SECOND"
    assert summarize(both) == (0, 0, 2 * SECOND, 2)
    assert summarize(both, order=(1, 0)) == (1, 0, SECOND, 2)
    assert summarize(both, left=1) == (1, 0, SECOND, 2)


@pytest.mark.parametrize(
    "wider",
    ["", "r.t >= a.t - INTERVAL '1' HOUR AND r.t <= a.t + INTERVAL '1' HOUR"],
    ids=["alone", "with a wider bound"],
)
def test_an_empty_bound_is_reported_with_the_location_of_its_tightest_ends(wider: str) -> None:
    for text in ((wider, "r.t > a.t", "r.t < a.t"), ("r.t > a.t", "r.t < a.t", wider)):
        bounds = find_bounds(conjuncts(typed(" AND ".join(filter(None, text)))), TIMES, 2)
        assert bounds.is_empty
        low, high = bounds.locations
        assert low is not None
        assert high is not None
        assert (low.text[low.start : low.end], high.text[high.start : high.end]) == ("r.t > a.t", "r.t < a.t")


def test_a_sum_of_times_keeps_signs_and_lengths() -> None:
    affine = parse_affine(typed("r.t - INTERVAL '3' SECOND - a.t"), TIMES)
    factors: dict[Hashable, int] = {R: 1, A: -1}
    assert affine == Affine(coefficients=FrozenMap(factors), constant_us=-3 * SECOND)
    assert parse_affine(typed("r.v"), TIMES) is None
    assert parse_comparison(typed("r.t + INTERVAL '1' SECOND > a.t"), TIMES, 2) is not None
    assert parse_comparison(typed("r.t > b.t"), TIMES, 1) is not None


@st.composite
def written_bounds(draw: st.DrawFn) -> tuple[str, int, int]:
    """Return ``r.t - a.t OP length`` for both ends, each in a random algebraic form."""
    lower = draw(st.integers(-10_000, 10_000))
    upper = draw(st.integers(lower, 10_001))
    return f"{draw(one_end('>=', lower))} AND {draw(one_end('<=', upper))}", lower, upper


@st.composite
def one_end(draw: st.DrawFn, op: str, length: int) -> str:
    """Return one parse_comparison that says ``r.t - a.t op length`` seconds."""
    shift = draw(st.integers(-500, 500))
    left_text = _moved(draw, "r.t", shift)
    right_text = _moved(draw, "a.t", length + shift)
    form = draw(st.sampled_from(["plain", "difference", "mirrored", "negated", "mirrored difference"]))
    mirrored = {">=": "<=", "<=": ">="}[op]
    strict = {">=": "<", "<=": ">"}[op]
    match form:
        case "plain":
            return f"{left_text} {op} {right_text}"
        case "difference":
            return f"({left_text}) - a.t {op} {_length(length + shift)}"
        case "mirrored":
            return f"{right_text} {mirrored} {left_text}"
        case "negated":
            return f"NOT ({left_text} {strict} {right_text})"
        case _:
            return f"{_length(-(length + shift))} {op} a.t - ({left_text})"


def _length(seconds: int) -> str:
    return f"INTERVAL '{seconds}' SECOND"


def _moved(draw: st.DrawFn, time: str, seconds: int) -> str:
    parts = draw(st.lists(st.integers(-100, 100), max_size=3))
    rest = seconds - sum(parts)
    text = time
    for part in (*parts, rest):
        form = draw(st.sampled_from(["+", "-", "front", "cast", "times"]))
        match form:
            case "+":
                text = f"{text} + {_length(part)}"
            case "-":
                text = f"{text} - {_length(-part)}"
            case "front":
                text = f"{_length(part)} + ({text})"
            case "cast":
                text = f"CAST(({text}) AS timestamp) + {_length(part)}"
            case _:
                text = f"({text}) + INTERVAL '1' SECOND * {part}" if part >= 0 else f"{text} + {_length(part)}"
    return text


@given(written_bounds())
def test_random_forms_of_one_bound_are_one_bound(case: tuple[str, int, int]) -> None:
    text, lower, upper = case
    assert summarize(text) == (0, lower * SECOND, upper * SECOND, 0), text


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12), st.integers(-(10**6), 10**6))
def test_a_bound_holds_of_a_pair_when_its_comparison_does(left: int, right: int, length: int) -> None:
    """The recognised ends agree with the meaning of the expression, microsecond by microsecond."""
    epoch = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    at: dict[Hashable, object] = {
        A: epoch + dt.timedelta(microseconds=left),
        R: epoch + dt.timedelta(microseconds=right),
    }
    for op in ("<", "<=", ">", ">=", "="):
        condition = typed(f"r.t {op} a.t + INTERVAL '{length}' SECOND")
        bounds = find_bounds([condition], TIMES, 2)
        difference = right - left
        holds = (bounds.lower is None or bounds.lower <= difference) and (
            bounds.upper is None or difference <= bounds.upper
        )
        assert holds == (evaluate(condition, at.get) is True)
