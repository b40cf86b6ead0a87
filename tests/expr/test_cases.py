"""The case table, in plain Python."""

from __future__ import annotations

from typing import Any

import pytest

from expression_cases import ERRORS, FAILURES, SCOPE, TODAY, VALUES, look_up
from weft.errors import EvaluationError, ExpressionError
from weft.expr import check, evaluate, parse, render


@pytest.mark.parametrize("row", VALUES, ids=lambda row: row[0])
def test_an_expression_has_its_value_and_type(row: tuple[Any, ...]) -> None:
    text, value, *dtype = row
    typed = check(parse(text), SCOPE)
    found = evaluate(typed, look_up, today=TODAY)
    assert found == value
    assert type(found) is type(value)
    assert [str(typed.dtype)] * len(dtype) == dtype
    assert typed.nullable or found is not None


@pytest.mark.parametrize("row", VALUES, ids=lambda row: row[0])
def test_a_written_expression_reads_back_the_same(row: tuple[Any, ...]) -> None:
    tree = parse(row[0])
    assert parse(render(tree)) == tree
    assert parse(render(tree, dialect="fragment"), dialect="fragment") == tree


@pytest.mark.parametrize("text", FAILURES)
def test_an_expression_fails_on_a_value(text: str) -> None:
    typed = check(parse(text), SCOPE)
    with pytest.raises(EvaluationError) as caught:
        evaluate(typed, look_up, today=TODAY)
    assert caught.value.code == "W0217"


@pytest.mark.parametrize(("text", "codes"), ERRORS, ids=[repr(text) for text, _ in ERRORS])
def test_a_wrong_expression_has_every_finding_with_its_place(text: str, codes: list[str]) -> None:
    with pytest.raises(ExpressionError) as caught:
        check(parse(text), SCOPE)
    assert [d.code for d in caught.value.diagnostics] == codes
    assert all(d.at is not None for d in caught.value.diagnostics)
