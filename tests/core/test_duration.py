"""Durations: every text that says one, and every text that does not."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.duration import Duration
from weft.errors import ArgumentError, DurationError, WeftError

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
MOST = (1 << 63) - 1
whole = st.integers(-MOST, MOST)


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0s", 0),
        ("5 seconds", 5 * SECOND),
        ("5s", 5 * SECOND),
        ("5 SECONDS", 5 * SECOND),
        ("  5   sec ", 5 * SECOND),
        ("1 hour 30 minutes", 90 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("1h, 30m", 90 * MINUTE),
        ("1 hour and 30 minutes", 90 * MINUTE),
        ("30m 1h", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("24h", DAY),
        ("2 weeks", 14 * DAY),
        ("1 day", DAY),
        ("250ms", 250_000),
        ("3us", 3),
        ("1000ns", 1),
        ("0.001ms", 1),
        ("1 millisecond", 1000),
        ("PT5S", 5 * SECOND),
        ("pt90m", 90 * MINUTE),
        ("P1DT12H", 36 * HOUR),
        ("P2W", 14 * DAY),
        ("PT0.5S", 500_000),
        ("P0D", 0),
        ("INTERVAL '24' HOUR", DAY),
        ("interval '24' hours", DAY),
        ('INTERVAL "5" MINUTE', 5 * MINUTE),
        ("INTERVAL 5 MINUTES", 5 * MINUTE),
        ("INTERVAL '1 hour 30 minutes'", 90 * MINUTE),
        ("INTERVAL'5'MINUTE", 5 * MINUTE),
        ("INTERVAL '1:30' HOUR TO MINUTE", 90 * MINUTE),
        ("INTERVAL '01:30:15' HOUR TO SECOND", 90 * MINUTE + 15 * SECOND),
        ("INTERVAL '1 12:00:00.25' DAY TO SECOND", 36 * HOUR + 250_000),
        ("INTERVAL '2 00:30' DAY TO MINUTE", 2 * DAY + 30 * MINUTE),
        ("29200w", 29200 * 7 * DAY),
    ],
)
def test_a_text_says_a_length_of_time(text: str, microseconds: int) -> None:
    assert Duration.parse(text) == Duration(microseconds)
    assert Duration.parse(text, signed=True) == Duration(microseconds)


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("-5s", -5 * SECOND),
        ("- 5 s", -5 * SECOND),
        ("+5s", 5 * SECOND),
        ("-PT1H", -HOUR),
        ("-1h 30m", -90 * MINUTE),
        ("INTERVAL '-5' MINUTE", -5 * MINUTE),
        ("-INTERVAL '5' MINUTE", -5 * MINUTE),
        ("-INTERVAL '-5' MINUTE", 5 * MINUTE),
    ],
)
def test_a_sign_is_read_only_where_one_makes_sense(text: str, microseconds: int) -> None:
    assert Duration.parse(text, signed=True) == Duration(microseconds)
    with pytest.raises(DurationError, match="must not have a sign"):
        Duration.parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("5", "invalid duration '5' at '5'"),
        ("s", "invalid duration"),
        ("5 parsecs", "unknown unit 'parsecs'"),
        ("1 month", "'month', whose length varies"),
        ("2y", "'y', whose length varies"),
        ("1 quarter", "'quarter', whose length varies"),
        ("INTERVAL '1' YEAR", "'YEAR', whose length varies"),
        ("P1Y", "'Y', whose length varies"),
        ("P1M", "'M', whose length varies"),
        ("P1YT1H", "'Y', whose length varies"),
        ("1h 2h", "has the unit 'h' twice"),
        ("1 hour 2 hrs", "has the unit 'hrs' twice"),
        ("0.5us", "a fraction of a microsecond"),
        ("1.00000000000000000000000000000000000000001s", "a fraction of a microsecond"),
        ("1h,", "invalid duration '1h,' at ','"),
        ("1h and", "invalid duration '1h and' at 'and'"),
        ("1h,,2m", "invalid duration"),
        (", 1h", "invalid duration"),
        ("1e3s", "unknown unit 'e'"),
        (".5s", "invalid duration"),
        ("5.s", "invalid duration"),
        ("1,5s", "invalid duration"),
        ("5 s s", "invalid duration '5 s s' at 's'"),
        ("\u0661s", "invalid duration"),  # an Arabic digit one
        ("5\u00a0s!", "invalid duration"),
        ("P", "is not ISO 8601"),
        ("PT", "is not ISO 8601"),
        ("P1DT", "is not ISO 8601"),
        ("PT1D", "is not ISO 8601"),
        ("INTERVAL", "invalid duration"),
        ("INTERVAL '5' MINUTE; DROP TABLE t", "invalid duration"),
        ("INTERVAL '5\" MINUTE", "invalid duration"),
        ("INTERVAL '5 m' MINUTE", "invalid duration"),
        ("INTERVAL INTERVAL '5' SECOND", "invalid duration"),
        ("INTERVAL '1:99' HOUR TO MINUTE", "invalid duration"),
        ("INTERVAL '1:30' MONTH TO DAY", "invalid duration"),
        ("9" * 60 + "s", "longer than 292,000 years"),
        ("5 s" + " " * 300, "is too long"),
    ],
)
def test_a_text_that_says_none_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(DurationError) as caught:
        Duration.parse(text)
    assert says in caught.value.message
    assert caught.value.code == "W0304"
    assert caught.value.help


@given(st.text() | st.text(alphabet="0123456789.smhdPTINERVAL'\" -:,"))
def test_any_text_is_a_duration_or_an_error_of_ours(text: str) -> None:
    try:
        found = Duration.parse(text, signed=True)
    except WeftError as refused:
        assert refused.code == "W0304"
    else:
        assert Duration.parse(str(found), signed=True) == found


@given(whole)
def test_a_printed_duration_reads_back(microseconds: int) -> None:
    length = Duration(microseconds)
    assert Duration.parse(str(length), signed=True) == length
    assert Duration.parse(f"{microseconds} us".replace("- ", "-"), signed=True) == length
    assert Duration.of(length.to_timedelta(), signed=True) == length


@given(st.integers(0, 10**6), st.integers(0, 999_999))
def test_a_fraction_is_exact(seconds: int, micros: int) -> None:
    wanted = Duration(seconds * SECOND + micros)
    text = f"{seconds}.{micros:06d}"
    assert Duration.parse(f"{text} s") == Duration.parse(f"PT{text}S") == wanted
    assert Duration.parse(f"INTERVAL '{text}' SECOND") == wanted


@given(whole, whole)
def test_durations_order_by_length(a: int, b: int) -> None:
    assert (Duration(a) < Duration(b)) == (a < b)
    assert (Duration(a) == Duration(b)) == (a == b)
    assert len({Duration(a), Duration(a)}) == 1


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0s"),
        (1, "1us"),
        (-1, "-1us"),
        (36 * HOUR, "1d 12h"),
        (-90 * MINUTE, "-1h 30m"),
        (61_001_001, "1m 1s 1ms 1us"),
    ],
)
def test_a_duration_prints_in_its_largest_units(microseconds: int, text: str) -> None:
    assert str(Duration(microseconds)) == text


def test_every_accepted_form_is_taken() -> None:
    wanted = Duration(5 * SECOND)
    assert Duration.of("5s") == Duration.of(dt.timedelta(seconds=5)) == Duration.of(wanted) == wanted


@pytest.mark.parametrize("value", [Duration(-1), dt.timedelta(microseconds=-1)])
def test_a_negative_length_is_refused_unless_signed(value: Duration | dt.timedelta) -> None:
    assert Duration.of(value, signed=True) == Duration(-1)
    with pytest.raises(DurationError, match="must not be negative"):
        Duration.of(value)


@pytest.mark.parametrize("value", [None, 5, 5.0, True, b"5s", ["5s"]])
def test_another_kind_of_value_is_not_a_duration(value: object) -> None:
    with pytest.raises(ArgumentError, match="a string or a timedelta"):
        Duration.of(value)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="a string or a timedelta"):
        Duration.parse(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_a_duration_holds_whole_microseconds_only(value: object) -> None:
    with pytest.raises(ArgumentError, match="a whole number of microseconds"):
        Duration(value)  # type: ignore[arg-type]


def test_a_length_beyond_sixty_four_bits_is_refused() -> None:
    assert Duration(MOST).to_timedelta() // dt.timedelta(microseconds=1) == MOST
    for too_long in (MOST + 1, -MOST - 1):
        with pytest.raises(DurationError, match="292,000 years"):
            Duration(too_long)
    with pytest.raises(DurationError, match="292,000 years"):
        Duration.of(dt.timedelta.max)
