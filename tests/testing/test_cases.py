"""Case files: what a case holds, and that every mistake has its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.core.source import Source
from weft.errors import CaseFileError
from weft.joins.spec import (
    AsofOrder,
    AsofSpec,
    ColumnPredicate,
    ExpressionPredicate,
    JoinProjection,
    JoinSpec,
    from_dict,
)
from weft.testing import T, load_cases, read_cases

FILE = """\
# Trades and quotes.
- id: ASOF-1
  why: 10:00:05 takes the quote
    of the same instant
  spec:
    type: asof
    keys: [sym]
    order: [ts, qts]
    tolerance: 5 seconds
    how: inner
    project: {suffixes: ["", _q]}
  left: &trades |
    sym  | ts       | qty | __batch__
    AAPL | 10:00:05 | 100 | 1
    null | 10:00:06 | 5   | 2         <- a null key never matches
  right: |
    sym  | qts      | px
    AAPL | 10:00:05 | 2.0
  expect: |
    sym  | ts       | qty | qts      | px
    AAPL | 10:00:05 | 100 | 10:00:05 | 2.0

- id: JOIN-1
  why: no suffix
  spec:
    type: join
    keys: [sym, [ts, qts]]
    predicates: [right.px > 1, [qty, '>=', px, 3], {left: qty, operator: '<', right: px}, {expression: 'qty > ?', args: [1]}]
  left: *trades
  right: "sym | qts: timestamp | px: long"
  error: W0103
"""


def test_a_case_file_holds_cases_with_tables_and_specs(tmp_path: Path) -> None:
    path = tmp_path / "asof.yml"
    path.write_text(FILE, encoding="utf-8")
    first, second = load_cases(path)
    assert str(first) == "ASOF-1: 10:00:05 takes the quote of the same instant"
    assert (first.how, first.error, second.how, second.error) == ("inner", None, "inner", "W0103")
    assert first.left == second.left
    assert first.left.batches == (1, 2)
    assert first.expect == T("sym | ts | qty | qts | px \n AAPL | 10:00:05 | 100 | 10:00:05 | 2.0")
    assert second.expect is None
    assert second.right.schema.names == ("sym", "qts", "px")
    assert (first.source.file, first.source.line, second.source.line) == (str(path), 2, 23)


def test_the_spec_of_a_case_is_the_form_that_specs_are_read_from() -> None:
    first, second = read_cases(FILE)
    assert from_dict(first.spec) == AsofSpec(
        equal_keys=[("sym", "sym")], order=AsofOrder("ts", "qts"), tolerance="5 seconds", how="inner"
    )
    assert first.project is not None
    assert from_dict(first.project) == JoinProjection(suffixes=("", "_q"))
    assert second.project is None
    assert from_dict(second.spec) == JoinSpec(
        [("sym", "sym"), ("ts", "qts")],
        [
            ExpressionPredicate("right.px > 1"),
            ColumnPredicate("qty", ">=", "px", 3),
            ColumnPredicate("qty", "<", "px"),
            ExpressionPredicate("qty > ?", args=[1]),
        ],
    )


def case(**changes: str | None) -> str:
    """Return a case file of one case, some of its entries changed or left out."""
    entries: dict[str, str | None] = {
        "id": "A",
        "why": "because",
        "spec": "{type: join, keys: [a]}",
        "left": "a | b",
        "right": "a | c",
        "expect": "a | b | c",
    }
    entries.update(changes)
    lines = [f"{key}: {value}" for key, value in entries.items() if value is not None]
    return "- " + "\n  ".join(lines) + "\n"


def test_the_smallest_case_reads() -> None:
    [found] = read_cases(case())
    assert (found.how, found.spec) == ("inner", {"type": "join", "equal_keys": [["a", "a"]]})


def test_each_type_of_spec_has_its_usual_how() -> None:
    order = "order: {left: a, right: c}"
    found = [read_cases(case(spec=f"{{type: {kind}, {order}}}"))[0].how for kind in ("asof", "interval", "window")]
    assert found == ["left", "inner", "inner"]
    assert read_cases(case(spec="{type: join, how: cross}"))[0].how == "cross"


def test_a_text_that_looks_like_a_date_stays_a_text() -> None:
    [found] = read_cases(case(spec="{type: join, keys: [a], x: [2024-01-01, no, 1.5, 0x10, true, ~, .inf]}"))
    assert found.spec["x"] == ["2024-01-01", "no", 1.5, 16, True, None, float("inf")]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "the file is empty", 1),
        ("a: 1", "a case file must be a list of cases", 1),
        ("[]", "a case file must be a list of cases", 1),
        ("- 1", "a case must be a mapping", 1),
        ("- a: [", "invalid YAML: expected the node content, but found '<stream end>'", 1),
        (case(why=None), "the case has no 'why'", 1),
        (case(why="''"), "'why' must be a string", 2),
        (case(id="7"), "'id' must be a string", 1),
        (case(wyh="x"), "unknown key 'wyh' in a case", 7),
        (case(expect=None), "a case has either 'expect' or 'error'", 1),
        (case(error="W0101"), "a case has either 'expect' or 'error'", 1),
        (case(expect=None, error="W1"), "unknown code 'W1'", 6),
        (case(left="[1]"), "'left' must be a table", 4),
        (case(spec="join"), "'spec' must be a mapping with a type of 'join', 'natural', 'asof', 'interval', 'window'", 3),
        (case(spec="{type: outer}"), "'spec' must be a mapping with a type of 'join', 'natural', 'asof', 'interval', 'window'", 3),
        (case(spec="{type: join, keys: a}"), "keys must be a list, not 'a'", 3),
        (case(spec="{type: join, keys: [7]}"), "7 is not a key", 3),
        (case(spec="{type: join, keys: [], equal_keys: []}"), "the spec has both 'keys' and 'equal_keys'", 3),
        (case(spec="{type: join, predicates: x}"), "predicates must be a list, not 'x'", 3),
        (case(spec="{type: join, predicates: [7]}"), "7 is not a predicate", 3),
        (case(spec="{type: asof, order: ts}"), "'ts' is not a valid order", 3),
        (case(spec="{type: join, project: x}"), "'x' is not a valid projection", 3),
        (case(spec="{type: join, how: 7}"), "how must be a string, not 7", 3),
        (case(spec="{a: 1, a: 2}"), "duplicate key 'a'", 3),
        (case(spec="{1: 2}"), "a key must be a string", 3),
        (case(left="|\n    a | b: date\n    1 | 2024-01-01\n    1 | x"), "column 'b': 'x' is not a value of type date", 7),
        (case() + case(), "duplicate id 'A'", 7),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(CaseFileError) as caught:
        read_cases(text, file="cases.yml")
    assert caught.value.message == message
    at = caught.value.diagnostics[0].at
    assert isinstance(at, Source)
    assert (at.file, at.line) == ("cases.yml", line)


def test_all_mistakes_of_a_file_are_reported_together() -> None:
    with pytest.raises(CaseFileError) as caught:
        read_cases(case(why=None) + case(id="B", spec="x", left="|\n    a: date\n    x"))
    assert len(caught.value.diagnostics) >= 3


def test_a_bad_cell_in_a_case_file_has_its_own_column() -> None:
    text = case(left="|\n    a | b: date\n    1 | x")
    with pytest.raises(CaseFileError) as caught:
        read_cases(text, file="cases.yml")
    assert str(caught.value).splitlines()[1:5] == [
        "  --> cases.yml:6:9",
        "   |",
        " 6 |     1 | x",
        "   |         ^",
    ]


def test_a_file_that_is_not_there_is_a_case_file_error(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match="cannot read case file"):
        load_cases(tmp_path / "none.yml")
