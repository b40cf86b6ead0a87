"""Places in text: lines, columns, ranges, carets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.core.source import Source
from weft.errors import Position

texts = st.text(alphabet="ab\n\r\té ", max_size=30)


@st.composite
def places(draw: st.DrawFn) -> Source:
    text = draw(texts)
    start = draw(st.integers(0, len(text)))
    return Source(text, start, draw(st.integers(start, len(text))), "f.yml")


def test_lines_and_columns_count_from_one_and_ranges_from_zero() -> None:
    place = Source("ab\ncde", 4, 6)
    assert (place.line, place.column) == (2, 2)
    assert place.range == {"start": {"line": 1, "character": 1}, "end": {"line": 1, "character": 3}}


def test_the_whole_of_a_text_is_a_place() -> None:
    assert Source.whole("ab\nc", "x.sql") == Source("ab\nc", 0, 4, "x.sql")
    assert Source.whole("").range == {
        "start": {"line": 0, "character": 0},
        "end": {"line": 0, "character": 0},
    }


@given(places())
def test_a_range_finds_the_same_text_again(place: Source) -> None:
    lines = place.text.split("\n")
    start, end = place.range["start"], place.range["end"]

    def offset(at: Position) -> int:
        return sum(len(line) + 1 for line in lines[: at["line"]]) + at["character"]

    assert place.text[offset(start) : offset(end)] == place.text[place.start : place.end]


@given(places())
def test_carets_are_below_the_text_they_point_at(place: Source) -> None:
    arrow, bar, shown, carets = place.render().split("\n")
    assert arrow.strip() == f"--> f.yml:{place.line}:{place.column}"
    assert bar.strip() == "|"
    gutter = shown.index("|") + 2
    assert carets.index("|") == shown.index("|") == bar.index("|")
    run = carets[gutter:]
    assert run.strip(" ") == "^" * run.count("^")
    assert run.index("^") == place.column - 1
    line = place.text.split("\n")[place.line - 1].rstrip("\r")
    meant = place.text[place.start : place.end].split("\n")[0].rstrip("\r")
    assert line[run.index("^") :][: len(meant)] == meant
    assert run.count("^") >= max(len(meant), 1)


@given(texts, st.integers(-50, 90), st.integers(-50, 90))
def test_offsets_outside_the_text_still_render(text: str, start: int, end: int) -> None:
    place = Source(text, start, end)
    assert "^" in place.render()
    assert place.line >= 1
    assert place.column >= 1


def test_a_tab_is_one_column_wide_so_that_the_caret_fits() -> None:
    assert Source("\tx = y", 5, 6).render().split("\n")[2:] == [" 1 |  x = y", "   |      ^"]


def test_a_span_over_lines_is_underlined_to_the_end_of_its_first() -> None:
    assert Source("a = (b\n  + c)", 4, 12).render().split("\n")[2:] == [" 1 | a = (b", "   |     ^^"]


def test_the_gutter_is_as_wide_as_the_line_number() -> None:
    text = "\n" * 99 + "abc"
    assert Source(text, 99, 102).render() == "    --> <text>:100:1\n     |\n 100 | abc\n     | ^^^"


def test_windows_line_ends_do_not_show() -> None:
    assert Source("ab\r\ncd\r\n", 4, 6).render().split("\n")[2] == " 2 | cd"


def test_the_location_of_a_part_is_where_its_text_is() -> None:
    file = "when: a = 1\n"
    place = Source(file, 6, 11, "p.yml")
    assert place.inner("a = 1", 4, 5) == Source(file, 10, 11, "p.yml")


def test_an_inner_place_is_found_inside_quotes() -> None:
    file = 'when: "a = 1"\n'
    place = Source(file, 6, 13, "p.yml")
    assert place.inner("a = 1", 0, 1) == Source(file, 7, 8, "p.yml")


def test_a_text_that_the_file_spells_differently_keeps_the_wide_place() -> None:
    file = 'when: "a = \\"x\\""\n'
    place = Source(file, 6, 17, "p.yml")
    assert place.inner('a = "x"', 4, 7) == place


@given(places(), st.data())
def test_an_inner_place_never_points_at_another_text(place: Source, data: st.DataObject) -> None:
    text = place.text[place.start : place.end]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    inner = place.inner(text, start, end)
    assert inner.text[inner.start : inner.end] == text[start:end]
    assert place.start <= inner.start <= inner.end <= place.end
