"""Pictures: SVG and HTML that load nothing, files of matplotlib, and shares that do not round to all or nothing."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from weft.errors import ArgumentError
from weft.joins.facts import MatchCounts
from weft.joins.picture import Box, Dot, Label, Line, Picture, format_share, measure_text, shorten_text

SHAPES = (
    Line(0, 0, 10, 10),
    Box(1, 2, 30, 4, "#123456", opacity=0.5),
    Box(1, 2, 30, 4, "#123456", filled=False),
    Dot(5, 5, 3, "#654321"),
    Dot(9, 5, 3, "#654321", filled=False),
    Label(1, 20, "<script>a & $b$</script>", bold=True, anchor="middle"),
)
PICTURE = Picture(title='a "title" & more', width=100, height=40, shapes=SHAPES)
COUNTS = MatchCounts(
    left_rows=100, right_rows=40, pairs=120, left_matched=97, right_matched=40, most_for_left=3, most_for_right=9
)


def test_the_svg_has_every_shape_and_escapes_text() -> None:
    root = ET.fromstring(PICTURE.to_svg())  # noqa: S314  # our own text
    tags = [element.tag.split("}")[1] for element in root]
    assert tags == ["title", "rect", "line", "rect", "rect", "circle", "circle", "text"]
    assert root.get("aria-label") == PICTURE.title
    assert root[-1].text == "<script>a & $b$</script>"
    assert [root[5].get("fill"), root[6].get("fill")] == ["#654321", "#ffffff"]


def test_a_page_loads_nothing_from_elsewhere() -> None:
    page = PICTURE.to_html()
    assert page.startswith("<!doctype html>")
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert PICTURE._repr_html_() == PICTURE.to_svg()


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<svg"), ("a.HTML", b"<!doctype"), ("a.png", b"\x89PNG"),
                                             ("a.pdf", b"%PDF")])  # fmt: skip
def test_a_picture_is_written_in_the_format_of_the_name(tmp_path: Path, name: str, start: bytes) -> None:
    PICTURE.savefig(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_format_may_be_given(tmp_path: Path) -> None:
    PICTURE.savefig(str(tmp_path / "picture"), format="svg")
    assert (tmp_path / "picture").read_text() == PICTURE.to_svg()


@pytest.mark.parametrize(("name", "code"), [("picture", "W0304"), ("picture.xyz", "W0302")])
def test_an_unknown_format_is_refused_before_a_file_is_written(tmp_path: Path, name: str, code: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        PICTURE.savefig(tmp_path / name)
    assert caught.value.code == code
    assert "svg" in caught.value.help
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib.backends.backend_agg", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ArgumentError) as caught:
        PICTURE.savefig(tmp_path / "a.png")
    assert caught.value.code == "W0311"
    assert "pip install 'weft[plot]'" in caught.value.help
    PICTURE.savefig(tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("part", "total", "text"),
    [(0, 5, "0 %"), (5, 5, "100 %"), (1, 100_000, "< 0.1 %"), (99_999, 100_000, "> 99.9 %"), (1, 3, "33.3 %"),
     (0, 0, "no rows")],
)  # fmt: skip
def test_a_share_is_all_or_nothing_only_if_it_is(part: int, total: int, text: str) -> None:
    assert format_share(part, total) == text


def test_a_long_text_is_shortened_to_its_room() -> None:
    short = shorten_text("a long condition " * 20, 200, 12)
    assert short.endswith("…")
    assert measure_text(short, 12) <= 200
    assert shorten_text("short", 200, 12) == "short"


def test_counts_as_text_and_picture() -> None:
    assert (COUNTS.match_rate, COUNTS.fan_out) == (0.97, 1.23)
    svg = COUNTS.plot().to_svg()
    assert "97 of 100 match (97.0 %)" in svg
    assert "40 of 40 match (100 %)" in svg
    assert svg == COUNTS._repr_html_()


def test_counts_of_an_empty_left_side_divide_by_nothing() -> None:
    empty = MatchCounts(
        left_rows=0, right_rows=4, pairs=0, left_matched=0, right_matched=0, most_for_left=0, most_for_right=0
    )
    assert (empty.match_rate, empty.fan_out) == (1.0, 1.0)
    assert "no rows" in empty.plot().to_svg()
