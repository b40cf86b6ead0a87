"""Pictures of rules: their example rows match as the reference engine says; docs/images holds some of them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from weft import AsofOrder, AsofSpec, ColumnPredicate, IntervalSpec, JoinProjection, JoinSpec, WindowSpec, explain_join
from weft.core.types import DOUBLE, Field, Schema
from weft.errors import ArgumentError
from weft.joins.explain import explain_spec
from weft.joins.resolve.join import resolve_join
from weft.joins.sketch import _asof, _bounds, _ranges, _windows, find_sessions, sketch_rule
from weft.joins.timeline import Lane, Mark
from weft.testing.reference import matching_pairs

IMAGES = Path(__file__).parents[2] / "docs" / "images"
ORDER = AsofOrder("ts", "quote_ts")
RANGES = AsofOrder("valid_from", "valid_from")
ENDS: dict[str, Any] = {"left_end": "valid_to", "right_end": "valid_to"}
KEYS = [("symbol", "symbol")]
# The pictures of the docs.
DRAWN: dict[str, Any] = {
    "asof_backward": AsofSpec(KEYS, order=ORDER, tolerance="5 seconds"),
    "asof_forward": AsofSpec(KEYS, order=ORDER, direction="forward", tolerance="5 seconds"),
    "asof_nearest": AsofSpec(KEYS, order=ORDER, direction="nearest", tolerance="5 seconds"),
    "interval_bounds": IntervalSpec(KEYS, order=ORDER, lower="-1 hour", upper="2 hours"),
    "interval_range": IntervalSpec(KEYS, order=AsofOrder("ts", "valid_from"), right_end="valid_to"),
    "interval_overlap": IntervalSpec(KEYS, order=RANGES, **ENDS),
    "window_tumbling": WindowSpec(KEYS, order=ORDER, window="tumbling", size="1 hour"),
    "window_sliding": WindowSpec(KEYS, order=ORDER, window="sliding", size="1 hour", slide="20 minutes"),
    "window_session": WindowSpec(KEYS, order=ORDER, window="session", gap="30 minutes"),
}
# Specs over numbers with the distances of the example rows, so that the reference engine can join those rows.
ASOF = [
    AsofSpec(order=ORDER, direction=direction, tolerance=tolerance, allow_exact_matches=exact, nearest_tie=tie)
    for direction in ("backward", "forward", "nearest")
    for tolerance in (Decimal("2.5"), "unbounded")
    for exact in (True, False)
    for tie in (("backward", "forward") if direction == "nearest" else ("backward",))
]  # fmt: skip
BOUNDS = [
    IntervalSpec(order=ORDER, lower=lower, upper=upper)
    for lower, upper in ((-1, 3), (0, 4), (-4, 0), (1, 4), (-4, -2), (0, 0), (None, 4), (-4, None))
]
RANGED = [
    IntervalSpec(order=RANGES, closed=closed, **{name: ENDS[name] for name in names})
    for names in (("left_end",), ("right_end",), ("left_end", "right_end"))
    for closed in (True, False)
]


def reference_pairs(spec: Any, lane: Lane) -> set[tuple[int, int]]:
    """Join the example rows of a picture with the reference engine."""

    def rows(marks: tuple[Mark, ...]) -> list[tuple[float, float | None]]:
        return [(m.start, None if m.end is None or math.isinf(m.end) else m.end) for m in marks]

    schemas = [
        Schema((Field(start, DOUBLE), Field("valid_to", DOUBLE))) for start in (spec.order.left, spec.order.right)
    ]
    join = resolve_join(spec, schemas[0], schemas[1], how="inner" if not isinstance(spec, AsofSpec) else None,
                        project=JoinProjection(suffixes=('', '_r')), inference=None)  # fmt: skip
    return set(matching_pairs(join, rows(lane.left), rows(lane.right)))


@pytest.mark.parametrize("spec", ASOF, ids=str)
def test_example_rows_of_an_asof_join_match_as_in_the_reference(spec: AsofSpec) -> None:
    lane, _ = _asof(spec)
    assert set(lane.pairs) == reference_pairs(spec, lane)


@pytest.mark.parametrize("spec", BOUNDS, ids=str)
def test_example_rows_of_bounds_match_as_in_the_reference(spec: IntervalSpec) -> None:
    lane, _ = _bounds(spec)
    assert set(lane.pairs) == reference_pairs(spec, lane)


@pytest.mark.parametrize("spec", RANGED, ids=str)
def test_example_rows_of_ranges_match_as_in_the_reference(spec: IntervalSpec) -> None:
    lane, _ = _ranges(spec)
    assert set(lane.pairs) == reference_pairs(spec, lane)


@pytest.mark.parametrize("name", [n for n in DRAWN if n.startswith("window")])
def test_example_rows_of_a_window_match_if_they_share_one(name: str) -> None:
    lane, _ = _windows(DRAWN[name])
    # The left and right row at the same window border differ: a window ends before its end.
    shared = {
        (i, j)
        for i, mine in enumerate(lane.left)
        for j, other in enumerate(lane.right)
        if any(a <= mine.start < b and a <= other.start < b for a, b in lane.windows)
    }
    assert set(lane.pairs) == shared
    assert shared
    assert any(not m.matched for m in (*lane.left, *lane.right)) or name != "window_session"


def test_a_gap_of_exactly_the_length_does_not_end_a_session() -> None:
    assert find_sessions((0.0, 2.0, 4.5), 2.0) == ((0.0, 4.0), (4.5, 6.5))
    assert find_sessions((), 2.0) == ()


@pytest.mark.parametrize("name", DRAWN)
def test_every_picture_shows_rows_with_and_without_a_match(name: str) -> None:
    svg = sketch_rule(DRAWN[name]).to_svg()
    assert "has a match" in svg
    assert str(DRAWN[name]).split(" AND ")[-1][:20] in svg


@pytest.mark.golden
@pytest.mark.parametrize("name", DRAWN)
def test_the_pictures_of_the_docs_are_up_to_date(name: str, request: pytest.FixtureRequest) -> None:
    svg, file = sketch_rule(DRAWN[name]).to_svg(), IMAGES / f"{name}.svg"
    if request.config.getoption("--rewrite-golden"):
        IMAGES.mkdir(exist_ok=True)
        file.write_text(svg, encoding="utf-8")
    assert svg == file.read_text(encoding="utf-8"), f"{file} differs: see the diff, or `make golden`"


def test_an_explanation_draws_its_spec() -> None:
    spec = DRAWN["asof_backward"]
    assert explain_spec(spec).plot() == sketch_rule(spec)


def test_what_is_not_drawn_is_written_below() -> None:
    spec = AsofSpec(
        KEYS,
        [ColumnPredicate("qty", "<=", "size")],
        order=ORDER,
        known=AsofOrder("seen", "known_from"),
        tombstone="deleted",
        until="ended",
    )
    svg = sketch_rule(spec).to_svg()
    for text in (
        "must also satisfy",
        "known_from at or before left.seen",
        "right.deleted is true",
        "ends at right.ended",
    ):
        assert text in svg


@pytest.mark.parametrize("spec", [JoinSpec(KEYS)], ids=str)
def test_a_join_without_times_has_no_timeline(spec: JoinSpec) -> None:
    with pytest.raises(ArgumentError, match="compares keys only") as caught:
        explain_spec(spec).plot()
    assert caught.value.code == "W0305"
    assert "inspect_matches" in caught.value.help


def test_explain_join_returns_what_plots(capsys: pytest.CaptureFixture[str]) -> None:
    explanation = explain_join(AsofSpec(KEYS, order=ORDER, tolerance=dt.timedelta(seconds=5)))
    assert "has a match" in explanation.plot().to_svg()
    assert "unbound" in capsys.readouterr().out
