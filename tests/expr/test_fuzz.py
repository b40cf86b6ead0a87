"""Whatever is typed, reading ends in a tree or in an `ExpressionError` with a place."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from expression_cases import ERRORS, SCOPE, VALUES
from made_expressions import SCOPE as MADE_SCOPE
from made_expressions import Maker
from weft.errors import ExpressionError
from weft.expr import Dialect, check, parse, render

TEXTS = [row[0] for row in VALUES] + [text for text, _ in ERRORS]
PIECES = "( ) , . ; ' \" ` - -- /* */ {{ }} {# {% :: : ? * || <=> -> [ ] NOT AND CASE WHEN END IN BETWEEN IS CAST( AS SELECT \\ \n 1e 9 é \ud800 \x00".split(
    " "
)
DIALECTS: list[Dialect] = ["pipeline", "fragment"]


def read(text: str, dialect: Dialect) -> None:
    try:
        tree = parse(text, dialect=dialect)
    except ExpressionError as error:
        assert error.diagnostics
        assert all(d.at is not None for d in error.diagnostics)
        assert str(error)
        return
    assert parse(render(tree, dialect=dialect), dialect=dialect) == tree
    try:
        check(tree, SCOPE)
    except ExpressionError as error:
        assert all(d.at is not None for d in error.diagnostics)


@given(text=st.text(max_size=60), dialect=st.sampled_from(DIALECTS))
def test_any_text_is_read_or_refused(text: str, dialect: Dialect) -> None:
    read(text, dialect)


@given(
    text=st.lists(st.sampled_from(PIECES + TEXTS[:80]), max_size=12).map(" ".join),
    dialect=st.sampled_from(DIALECTS),
)
def test_any_pile_of_pieces_is_read_or_refused(text: str, dialect: Dialect) -> None:
    read(text, dialect)


@settings(max_examples=400, deadline=None)
@given(text=st.sampled_from(TEXTS), seed=st.integers(0, 2**32), dialect=st.sampled_from(DIALECTS))
def test_any_damaged_expression_is_read_or_refused(text: str, seed: int, dialect: Dialect) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        at, upto = sorted((chance.randint(0, len(text)), chance.randint(0, len(text))))
        match chance.randint(0, 3):
            case 0:
                text = text[:at] + text[upto:]
            case 1:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 2:
                text = text[:at] + text[at:upto] * 2 + text[upto:]
            case _:
                text = text[:at] + chance.choice(TEXTS) + text[upto:]
    read(text[:10_000], dialect)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_random_expression_reads_back_the_same_in_both_dialects(seed: int) -> None:
    tree = parse(Maker(seed).any(5))
    for dialect in DIALECTS:
        text = render(tree, dialect=dialect)
        assert parse(text, dialect=dialect) == tree
        assert render(parse(text, dialect=dialect), dialect=dialect) == text


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_parentheses_are_needed_where_they_are_written(seed: int) -> None:
    """Taking any pair of parentheses away that groups operators changes the tree or breaks the text."""
    tree = parse(Maker(seed).make("bool", 4))
    text = render(tree)
    for at, mark in enumerate(text):
        grouping = mark == "(" and (at == 0 or (text[at - 1] in " (-" and not text[:at].endswith("IN ")))
        if not grouping or in_quotes(text, at) or text[at + 1 :].startswith("NOT ("):
            continue  # NOT (x) could be the function NOT as well, which needs no parentheses
        closing = matching(text, at)
        shorter = text[:at] + text[at + 1 : closing] + text[closing + 1 :]
        try:
            assert parse(shorter) != tree
        except ExpressionError:
            continue


def in_quotes(text: str, at: int) -> bool:
    return text.count('"', 0, at) % 2 == 1


def matching(text: str, at: int) -> int:
    depth = 0
    for end in range(at, len(text)):
        if not in_quotes(text, end):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return end
    return len(text)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_checking_a_random_expression_gives_a_type_or_findings(seed: int) -> None:
    tree = parse(Maker(seed).any(5))
    try:
        assert check(tree, MADE_SCOPE).dtype
    except ExpressionError as error:
        assert error.code == "W0209"
