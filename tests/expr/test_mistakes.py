"""The messages that users see, word for word: one golden text with a section for each mistake."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from expression_cases import SCOPE
from weft.core.source import Source
from weft.errors import ExpressionError
from weft.expr import Dialect, bind, check, interpolate, parse

MISTAKES: dict[str, str] = {
    "end-of-text": "x +",
    "stray-sign": "x + @",
    "unclosed-text": "name = 'abc",
    "unclosed-parenthesis": "(x + 1) * (2 - x",
    "unclosed-selector": "ok AND {{BIG",
    "empty-selector": "ok AND {{ }}",
    "chained-comparison": "1 < x < 10",
    "forgotten-operator": "x = 1 ok",
    "not-after-comparison": "ok = NOT no",
    "case-without-end": "CASE WHEN ok THEN 1 ELSE 2",
    "curly-quotes": "name = “abc”",
    "bad-number": "price * 1.2.3",
    "bad-date": 'day > DATE("2026-02-30")',
    "calendar-interval": "at > at - INTERVAL '1' MONTH",
    "comment": "x = 1 -- always",
    "subquery": "x IN (SELECT id FROM t)",
    "window": "SUM(x) OVER (PARTITION BY id)",
    "colon-cast": "x::string",
    "two-dots": "db.t.x",
    "unknown-functions": "UPER(name) || TRIMM(name)",
    "clock": "day < CURRENT_DATE()",
    "arguments": "ROUND(price, 2, 3) > MIN(x)",
    "unknown-columns": "t.pric * qty > notes.tex",
    "text-plus-number": "name + 1",
    "text-plus-text": "name + '-' + name",
    "number-in-concat": "CONCAT(name, x)",
    "map-in-concat": "CONCAT(_labels, 'x')",
    "date-and-text": "day = '2026-01-31'",
    "date-minus-date": "day - date > 30",
    "branches": "IF(ok, price, 'none')",
    "condition": "x AND ok",
    "many": "name > 5 AND nope = 1 AND YEAR(name) = 2026 AND SUM(x) > 1",
    "two-lines": "x = 1\n  AND nam = 'a'",
}


def reported(text: str, dialect: Dialect = "pipeline", source: Source | None = None) -> str:
    with pytest.raises(ExpressionError) as caught:
        check(parse(text, dialect=dialect, source=source), SCOPE)
    return str(caught.value)


def test_mistakes_are_explained(golden: Callable[[str, str], None]) -> None:
    golden("expressions/mistakes.txt", "\n\n".join(f"== {name}\n{reported(text)}" for name, text in MISTAKES.items()))


def test_mistakes_in_files_selectors_and_parameters_are_explained(golden: Callable[[str, str], None]) -> None:
    line = "    selector: amount > 10 AND statu = 'x'\n"
    file = "operations:\n  - type: delete\n" + line
    start = file.index("amount")
    parts = {"file": reported("amount > 10 AND statu = 'x'", source=Source(file, start, len(file) - 1, file="job.yml"))}
    big = parse("pric > 5", source=Source.whole("pric > 5", file="selectors.yml"))
    with pytest.raises(ExpressionError) as caught:
        check(interpolate(parse("ok AND {{BIG}}"), {"BIG": big}), SCOPE)
    parts["selector"] = str(caught.value)
    with pytest.raises(ExpressionError) as caught:
        interpolate(parse("{{A}} OR {{BIGG}}"), {"A": parse("{{B}}"), "B": parse("NOT {{A}}"), "BIG": big})
    parts["selectors"] = str(caught.value)
    with pytest.raises(ExpressionError) as caught:
        bind(parse("left.x > :low AND left.x < :hihg", dialect="fragment"), {"low": 1, "high": 2})
    parts["parameters"] = str(caught.value)
    parts["fragment"] = reported("t.name = 5 AND t.\"nme\" = 'a'", dialect="fragment")
    golden("expressions/places.txt", "\n\n".join(f"== {name}\n{text}" for name, text in parts.items()))
