"""The scale of a timeline, and where its rows are drawn."""

from __future__ import annotations

import math

import pytest

from weft.joins.picture import Box, Dot, Line
from weft.joins.timeline import Lane, Mark, Scale, Timeline, draw_timeline, is_zone

SECOND = 1_000_000
DAY = 86_400 * SECOND
MORNING = 20_468 * DAY + 10 * 3600 * SECOND  # 2026-01-15 10:00 UTC


def draw(*lanes: Lane, scale: Scale | None = None, reach_name: str = "") -> tuple[object, ...]:
    timeline = Timeline(
        title="t", left_name="left.a", right_name="right.b", scale=scale or Scale("none"), lanes=lanes,
        reach_name=reach_name,
    )  # fmt: skip
    return draw_timeline(timeline).shapes


@pytest.mark.parametrize(
    ("scale", "low", "high", "labels"),
    [
        (Scale("time"), MORNING, MORNING + 60 * SECOND, ["10:00:00", "10:00:10", "10:00:20", "10:00:30", "10:00:40",
                                                        "10:00:50", "10:01:00"]),
        (Scale("time", "Asia/Kolkata"), MORNING, MORNING + 2 * 3600 * SECOND, ["15:30", "16:00", "16:30", "17:00", "17:30"]),
        (Scale("time", "Asia/Kathmandu"), MORNING, MORNING + 6 * 3600 * SECOND, ["16:00", "17:00", "18:00", "19:00", "20:00",
                                                                              "21:00"]),
        (Scale("time"), MORNING, MORNING + SECOND // 2, ["10:00:00", "10:00:00.1", "10:00:00.2", "10:00:00.3",
                                                         "10:00:00.4", "10:00:00.5"]),
        (Scale("time"), MORNING, MORNING + 2 * DAY, ["01-15 12:00", "01-16 00:00", "01-16 12:00", "01-17 00:00"]),
        (Scale("time", least_step=DAY), MORNING, MORNING + 2 * DAY, ["2026-01-16", "2026-01-17"]),
        (Scale("number"), -0.25, 0.35, ["-0.2", "-0.1", "0.0", "0.1", "0.2", "0.3"]),
        (Scale("number"), 0, 70_000, ["0", "10,000", "20,000", "30,000", "40,000", "50,000", "60,000", "70,000"]),
        (Scale("none"), 0, 1, []),
    ],
)  # fmt: skip
def test_ticks_are_at_round_places_of_the_zone(scale: Scale, low: float, high: float, labels: list[str]) -> None:
    assert [label for _, label in scale.choose_ticks(low, high)] == labels


def test_a_time_that_python_cannot_write_is_a_number() -> None:
    assert [label for _, label in Scale("time").choose_ticks(9e18, 9.2e18)]


def test_zones_that_only_spark_knows() -> None:
    assert is_zone("Europe/Berlin")
    assert not is_zone("GMT+02:00:00")
    assert not is_zone("../etc/passwd")


def test_filled_marks_match_and_each_pair_has_a_line() -> None:
    lane = Lane(left=(Mark(0, matched=True), Mark(5)), right=(Mark(1, matched=True), Mark(9)), pairs=((0, 0),))
    shapes = draw(lane)
    # The last four dots belong to the legend.
    assert [d.filled for d in shapes if isinstance(d, Dot)][:-4] == [True, False, True, False]
    pairs = [s for s in shapes if isinstance(s, Line) and s.x1 != s.x2 and s.y1 != s.y2]
    assert len(pairs) == 1


def test_an_open_range_and_an_endless_reach_end_at_the_border() -> None:
    lane = Lane(left=(Mark(0, 4),), right=(Mark(2, math.inf),), pairs=(), reach=((-math.inf, math.inf),))
    for box in (s for s in draw(lane) if isinstance(s, Box)):
        assert math.isfinite(box.x)
        assert 0 <= box.x <= box.x + box.width <= 760


def test_one_row_and_no_row_can_be_drawn() -> None:
    assert draw(Lane(left=(Mark(5),), right=(), pairs=()), scale=Scale("number"))
    assert draw(Lane(left=(), right=(), pairs=()), scale=Scale("number"))
    assert draw(scale=Scale("time"))


def test_windows_that_overlap_are_bars_in_tracks() -> None:
    def heights(*windows: tuple[float, float]) -> set[float]:
        lane = Lane(left=(Mark(0), Mark(10)), right=(), pairs=(), windows=windows)
        boxes = [s for s in draw(lane) if isinstance(s, Box)][: len(windows)]
        return {b.y for b in boxes}

    assert len(heights((0, 5), (5, 10))) == 1
    assert len(heights((0, 6), (3, 9), (6, 12))) == 2
