"""YAML as nodes: what values mean, what is refused, the location of everything."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    FoldedScalarString,
    LiteralScalarString,
    SingleQuotedScalarString,
)

from refusals import refused
from weft.core.source import Source
from weft.errors import CaseFileError, EntityError
from weft.pipelines.model.compose import DEEPEST, MOST_NODES, compose
from weft.pipelines.model.yaml_nodes import (
    Exact,
    Node,
    Whole,
    as_text,
    node_from_value,
    scalar_source,
    to_python,
)


def value_of(text: str) -> Any:
    return to_python(compose(f"v: {text}"))["v"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-01-01", "2026-01-01"),
        ("2026-01", "2026-01"),
        ("2026-01-01 10:00:00", "2026-01-01 10:00:00"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("0b11", "0b11"),
        (".", "."),
        ("1.2.3", "1.2.3"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("'null'", "null"),
        ('"12"', "12"),
        ("0x1F", 31),
        ("0o17", 15),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
    ],
)
def test_a_value_means_what_the_core_schema_says(written: str, meant: object) -> None:
    found = value_of(written)
    assert found == meant
    assert isinstance(found, type(meant))


@pytest.mark.parametrize("written", ["1.0920", "1.0", ".5", "5.", "1e3", "-2.50E-4", "100000000000000000000.01"])
def test_a_number_with_a_point_is_exact_and_keeps_its_text(written: str) -> None:
    found = value_of(written)
    assert isinstance(found, Exact)
    assert found == Decimal(written)
    assert found.text == written


@pytest.mark.parametrize("written", ["9" * 1000, "-" + "9" * 1000, "1e1000", "1E-1000", "1e+01000"])
def test_a_number_may_have_a_thousand_digits(written: str) -> None:
    assert value_of(written) == Decimal(written)


@pytest.mark.parametrize("written", ["9" * 1001, "1e1001", "1E-1001", "0." + "9" * 1001])
def test_a_number_of_more_digits_is_refused_at_its_place(written: str) -> None:
    with pytest.raises(EntityError, match=r"W1022.*more than 1,000 digits"):
        value_of(written)


def test_infinity_and_nan_are_decimals_too() -> None:
    assert value_of("-.inf") == Decimal("-Infinity")
    assert value_of(".NaN").is_nan()


def test_a_whole_number_keeps_its_text() -> None:
    found = value_of("2026")
    assert isinstance(found, Whole)
    assert (found, found.text) == (2026, "2026")
    assert to_python(as_text(compose("2026"))) == "2026"


@pytest.mark.parametrize("number", [Whole(31, "0x1F"), Exact("1.50", "1.50")])
def test_a_number_survives_copying_and_pickling(number: Whole | Exact) -> None:
    for again in (copy.deepcopy(number), pickle.loads(pickle.dumps(number))):  # noqa: S301
        assert again == number
        assert type(again) is type(number)
    assert pickle.loads(pickle.dumps(number)).text == number.text  # noqa: S301


def test_on_is_an_ordinary_key() -> None:
    assert to_python(compose("on: a = b")) == {"on": "a = b"}


def test_a_text_tag_makes_a_text() -> None:
    assert value_of("!!str 12") == "12"


def test_an_alias_stands_for_its_anchor() -> None:
    root = compose("a: &x [1, 2]\nb: *x\nc: &y text\nd: *y")
    assert to_python(root) == {"a": [1, 2], "b": [1, 2], "c": "text", "d": "text"}
    assert root.get("a") is root.get("b")


def test_a_mapping_reaches_to_the_key_of_an_alias_that_ends_it() -> None:
    inner = compose("a: &x [1, 2]\nb:\n  c: *x\n  d: *x\n").get("b")
    assert inner is not None
    assert inner.text[inner.start : inner.end] == "c: *x\n  d"


@pytest.mark.parametrize(
    ("text", "code", "message", "place"),
    [
        ("a: 1\nb: 2\na: 3", "W1001", "duplicate key 'a'", (3, 1, "a")),
        ("a: 1\n---\nb: 2", "W1001", "a second document", (2, 1, "---")),
        ("a: !money 3", "W1001", "tags are not supported: !money", (1, 4, "!money")),
        ("a: !!int '3'", "W1001", "tags are not supported: !!int", (1, 4, "!!int")),
        ("a: !!omap [b]", "W1001", "tags are not supported: !!omap", (1, 4, "!!omap")),
        ("a: {<<: {b: 1}}", "W1001", "merge keys (`<<`) are not supported", (1, 5, "<<")),
        ("1: a", "W1001", "a key must be a string", (1, 1, "1")),
        ("null: a", "W1001", "a key must be a string", (1, 1, "null")),
        ("[a]: b", "W1001", "a key must be a string", (1, 1, "[a]")),
        ("a:\n\t- b", "W1001", "cannot start any token", (2, 1, "\t")),
        ("a: b: c", "W1001", "mapping values are not allowed here", (1, 5, ":")),
        ("a: [1, 2", "W1001", "invalid YAML", (1, 9, "")),
        ("a: 'b", "W1001", "invalid YAML", (1, 6, "")),
        ("a: \x07", "W1001", "invalid character", (1, 4, "\x07")),
        ("a: *b", "W1001", "unknown anchor 'b'", (1, 4, "*b")),
        ("&a [*a]", "W1022", "refers to a value that contains it", (1, 5, "*a")),
        ("", "W1001", "the file is empty", (1, 1, "")),
        ("# only a remark\n", "W1001", "the file is empty", (1, 1, "")),
    ],
)
def test_what_we_do_not_take_is_refused_at_its_place(
    text: str, code: str, message: str, place: tuple[int, int, str]
) -> None:
    with pytest.raises(EntityError) as caught:
        compose(text, "x.yml")
    error = caught.value
    assert (error.code, message in error.message) == (code, True), str(error)
    assert error.help
    at = error.diagnostics[0].at
    assert isinstance(at, Source)
    assert (at.file, at.line, at.column, at.text[at.start : at.end]) == ("x.yml", *place)


def test_every_mistake_of_a_file_is_reported() -> None:
    with pytest.raises(EntityError) as caught:
        compose("a: 1\na: 2\nb: {c: 1, c: 2}\nd: !x 1\n")
    assert len(caught.value.diagnostics) == 3


def test_a_tab_says_to_use_spaces() -> None:
    with refused(EntityError, "W1001", "indent with spaces, not with tabs"):
        compose("a:\n\tb: 1")


def test_the_error_is_of_the_class_that_was_asked_for() -> None:
    with refused(CaseFileError, "W0901", "duplicate key"):
        compose("a: 1\na: 2", error=CaseFileError)


def test_aliases_cannot_blow_a_file_up() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with refused(EntityError, "W1022", f"more than {MOST_NODES:,} values"):
        compose("\n".join(lines))


def test_a_file_cannot_be_endlessly_deep() -> None:
    compose("[" * DEEPEST + "]" * DEEPEST)
    with refused(EntityError, "W1022", f"nested more than {DEEPEST} deep"):
        compose("[" * 300 + "]" * 300)


def test_the_place_of_a_block_ends_with_its_last_value() -> None:
    text = "a:\n  b: 1\n  c: two\n# a remark\n\nd: [1,\n  2]\n"
    root = compose(text)
    block, flow = root.get("a"), root.get("d")
    assert block is not None
    assert flow is not None
    assert text[block.start : block.end] == "b: 1\n  c: two"
    assert text[flow.start : flow.end] == "[1,\n  2]"
    assert text[block.head().start : block.head().end] == "b: 1"


def test_a_made_node_reads_as_its_value() -> None:
    value = {"a": [1, "2", None, True, {"b": Decimal("1.50")}], "c": {}}
    assert to_python(node_from_value(value)) == value


def test_a_value_that_is_left_out_does_not_become_an_empty_text() -> None:
    empty, number = compose("a:\nb: 2026").get("a"), compose("b: 2026").get("b")
    assert empty is not None
    assert number is not None
    assert (to_python(as_text(empty)), to_python(as_text(number))) == (None, "2026")


def test_a_break_in_a_folded_text_points_at_the_line_that_is_empty() -> None:
    text = "v: 'a\n\n\n  b'"
    node = compose(text).get("v")
    assert node is not None
    assert node.value == "a\n\nb"
    # Of three line ends the first is folded away, the other two are the breaks.
    assert scalar_source(node).offsets[1:3] == (6, 7)


def spans(text: str, node: Node) -> list[str]:
    """Return the text of the file for each character of a scalar."""
    place, value = scalar_source(node), str(node.value)
    inner = [place.inner(value, i, i + 1) for i in range(len(value))]
    return [text[at.start : at.end] for at in inner]


@pytest.mark.parametrize(
    ("text", "value", "texts"),
    [
        ("v: a b", "a b", ["a", " ", "b"]),
        ("v: 'it''s'", "it's", ["i", "t", "''", "s"]),
        (r'v: "a\"b"', 'a"b', ["a", r"\"", "b"]),
        (r'v: "\u00e4\x41\t."', "äA\t.", [r"\u00e4", r"\x41", r"\t", "."]),
        ('v: "a\n  b"', "a b", ["a", "\n", "b"]),
        ('v: "a\n\n  b"', "a\nb", ["a", "\n", "b"]),
        ('v: "a \\\n   b"', "a b", ["a", " \\", "b"]),
        ("v: a\n  b", "a b", ["a", "\n", "b"]),
        ("v: |\n  a\n   b\n", "a\n b\n", ["a", "\n", " ", "b", "\n"]),
        ("v: >\n  a\n  b\n\n  c\n", "a b\nc\n", ["a", "\n", "b", "\n", "c", "\n"]),
        ("v: >-\n  a\n    b\n  c", "a\n  b\nc", ["a", "\n", " ", " ", "b", "\n", "c"]),
        ("v: |2\n   a\n", " a\n", [" ", "a", "\n"]),
        ("v: 'a\r\n  b'", "a b", ["a", "\r\n", "b"]),
        ("v: !!str 12", "12", ["1", "2"]),
        ("v: &x text", "text", ["t", "e", "x", "t"]),
    ],
)
def test_each_character_is_found_in_every_style(text: str, value: str, texts: list[str]) -> None:
    node = compose(text).get("v")
    assert node is not None
    assert node.value == value
    found = spans(text, node)
    assert [s.strip() or s[:1] for s in found] == [s.strip() or s[:1] for s in texts]


STYLES = (
    str,
    SingleQuotedScalarString,
    DoubleQuotedScalarString,
    LiteralScalarString,
    FoldedScalarString,
)
LINES = st.text(alphabet="ab \"'\\:#-äµ\t{}%", min_size=1, max_size=30).map(str.strip).filter(bool)


@given(
    lines=st.lists(LINES, min_size=1, max_size=4),
    style=st.sampled_from(STYLES),
    width=st.sampled_from([12, 40, 4096]),
)
def test_the_offsets_of_any_text_lead_to_its_characters(lines: list[str], style: Any, width: int) -> None:
    value = ("\n" if style in (LiteralScalarString, FoldedScalarString) else " ").join(lines)
    yaml = YAML()
    yaml.width = width
    out = StringIO()
    yaml.dump({"k": {"v": style(value)}, "z": 1}, out)
    text = out.getvalue()
    inner = compose(text).get("k")
    node = inner.get("v") if inner is not None else None
    assert node is not None
    place, read = scalar_source(node), str(node.value)
    for i, char in enumerate(read):
        at = place.inner(read, i, i + 1)
        written = text[at.start : at.end]
        if char.isalpha() and "\\" not in written:
            assert written.strip() == char, (text, i)
        assert node.start <= at.start <= at.end <= max(node.end, at.start), (text, i)


@pytest.mark.parametrize("text", ["'<<': 1", '"<<": 1', "!!str <<: 1"])
def test_a_key_in_quotes_is_a_string_also_when_it_looks_like_a_merge(text: str) -> None:
    assert to_python(compose(text)) == {"<<": 1}
