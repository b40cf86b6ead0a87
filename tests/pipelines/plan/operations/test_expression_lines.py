"""The edge list of the expression language, line by line, as an operation meets it.

Superseded lines: a bare identifier is accepted (a working column), NOT binds looser than a comparison, and
arithmetic around aggregates is allowed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines import WRITE_ALL, site, transactions, update
from weft.errors import EvaluationError
from weft.expr import evaluate
from weft.pipelines.plan.operations.resolved import ResolvedUpdate

TODAY = dt.date(2026, 1, 15)
ROW = {**transactions()[4], "_labels": {}}


def value(tmp_path: Path, text: str, row: Mapping[str, Any] | None = None, /, **selectors: str) -> Any:
    """Return the value of an assignment on the third journal of the samples."""
    named = {name: "'" + body.replace("'", "''") + "'" for name, body in selectors.items()}
    op = site(tmp_path, [update(x=text), WRITE_ALL], selectors=named).plan().operations[0]
    assert isinstance(op, ResolvedUpdate)
    columns: dict[Hashable, Any] = {("w", name): found for name, found in {**ROW, **(row or {})}.items()}
    return evaluate(op.assignments[0].typed, columns.__getitem__, today=TODAY)


def code(tmp_path: Path, text: str, **selectors: str) -> list[str]:
    named = {name: "'" + body.replace("'", "''") + "'" for name, body in selectors.items()}
    return [c for c, _ in site(tmp_path, [update(x=text), WRITE_ALL], selectors=named).messages()]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("7", 7),
        ("7.25", Decimal("7.25")),
        ("-7", -7),
        ('"it\'s"', "it's"),
        ("TRUE AND NOT FALSE", True),
        ("true", True),
        ("CAST(NULL AS string)", None),
        ('DATE("2026-01-31")', dt.date(2026, 1, 31)),
        ("transactions.line_number", 1),
        ("line_number", 1),
        ("1 + 2 - 4 * 3", -9),
        ("6 / 4", Decimal("1.5")),
        ("1 < 2 AND 2 <= 2 AND 3 > 2 AND 3 >= 3 AND 1 <> 2 AND 1 != 2 AND 1 == 1", True),
        ("1 + 2 * 3", 7),
        ("1 + 2 < 5", True),
        ("TRUE OR FALSE AND TRUE", True),
        ("((1 + 2)) * 3", 9),
        ("-(line_number + 1)", -2),
        ("AND(TRUE, TRUE) AND OR(FALSE, TRUE) AND NOT(FALSE)", True),
        ("IF(line_number = 1, ROUND(2.5, 0), 0)", Decimal(3)),
        ("IF(CAST(NULL AS boolean), 1, 2)", 2),
        ("ROUND(100 / 3, 2)", Decimal("33.33")),
        ("ROUND(12.6, 0) + FLOOR(12.6) + CEIL(12.6)", Decimal(38)),
        ("ROUND(amount_local, line_number)", Decimal("22000.0")),
        ("YEAR(posting_date) * 100 + MONTH(posting_date)", 202601),
        ("DAY(DATEADD(DATE '2026-01-15', 2))", 17),
        ("DATEDIFF(DATE '2026-01-31', DATE '2026-01-01')", 30),
        ("TODAY() - 30", dt.date(2025, 12, 16)),
        ("posting_date >= TODAY() - 30", True),
        ('RIGHT(LOWER(TRIM(" Alpha ")), 2)', "ha"),
        ('CONCAT("abc", "-x")', "abc-x"),
        ("CONCAT(currency, CAST(NULL AS string))", None),
        ("LEN(TRIM('\t a \n'))", 1),
        ("10 / 0", None),
        ("MOD(10, 0)", None),
        ("10 / 2", Decimal(5)),
        ("NULL + 5", None),
        ("MIN(NULL, 5)", None),
        ("COALESCE(amount_reporting, 0.00)", Decimal(0)),
        ("DATE(journal_id)", dt.date(2026, 2, 3)),
        ("ISNULL(amount_reporting) AND IS_NULL(NULL)", True),
        ("currency IN ('GBP', 'EUR') AND line_number BETWEEN 1 AND 3 AND description LIKE 'Cons%'", True),
        ("CASE currency WHEN 'GBP' THEN 1 ELSE 2 END", 1),
        ("'{A}'", "{A}"),
    ],
)
def test_a_line_gives_its_value(tmp_path: Path, text: str, wanted: object) -> None:
    assert value(tmp_path, text, {"journal_id": "2026-02-03"}) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("'open", "W0202"),
        ("(1 + 2", "W0201"),
        ("1 + @", "W0201"),
        ("1 +", "W0201"),
        ("nothing.x", "W1208"),
        ("1 + nothing", "W0207"),
        ("UPPER(nothing)", "W0207"),
        ("transactions.nothing", "W0207"),
        ("currency + 1", "W0209"),
        ("1 AND TRUE", "W0209"),
        ("currency > 1", "W0209"),
        ("ROUND()", "W0208"),
        ("YEAR(currency)", "W0209"),
        ("SUM(amount_local)", "W0210"),
        ("1 + COUNT(*)", "W0210"),
        ("MEDIAN(1)", "W0206"),
        ("DATE('2026-02-30')", "W0204"),
        ("posting_date - posting_date", "W0209"),
        ("CONCAT(currency, 1)", "W0209"),
        ("a.b.c", "W0205"),
        ("1; DROP TABLE x", "W0205"),
        ("SELECT 1", "W0205"),
        ("{{}}", "W0201"),
        ("{{A", "W0201"),
        ("{{NOBODY}}", "W0212"),
    ],
)
def test_a_line_that_is_refused_has_its_code(tmp_path: Path, text: str, wanted: str) -> None:
    found = code(tmp_path, text)
    assert found[:1] == [wanted]


def test_a_selector_is_put_in_with_its_grouping(tmp_path: Path) -> None:
    assert value(tmp_path, "{{A}} AND FALSE", A="TRUE OR TRUE") is False
    assert value(tmp_path, "{{ A_1 }} AND {{B}}", A_1="{{B}}", B="currency = 'GBP'") is True
    assert value(tmp_path, "CONCAT('ä', {{A}}, 'ü')", A="'ö'") == "äöü"


def test_selectors_may_be_nested_but_not_in_a_circle(tmp_path: Path) -> None:
    chain = {f"S{i}": f"{{{{S{i + 1}}}}}" for i in range(5)}
    assert value(tmp_path, "{{S0}}", **chain, S5="TRUE") is True
    assert code(tmp_path, "{{S0}}", **chain, S5="{{S0}}") == ["W0213"]
    assert code(tmp_path, "{{S0}}", S0="{{S0}}") == ["W0213"]


def test_an_unknown_column_in_a_selector_is_found_after_it_was_put_in(tmp_path: Path) -> None:
    assert code(tmp_path, "{{A}}", A="nothing = 1") == ["W0207"]


def test_a_text_that_is_not_a_date_fails_when_it_is_computed(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError):
        value(tmp_path, "DATE(currency)")


def test_thirty_days_ago_is_in_and_thirty_one_are_out(tmp_path: Path) -> None:
    text = "posting_date >= TODAY() - 30"
    assert value(tmp_path, text, {"posting_date": dt.date(2025, 12, 16)}) is True
    assert value(tmp_path, text, {"posting_date": dt.date(2025, 12, 15)}) is False


def test_what_was_written_is_kept(tmp_path: Path) -> None:
    op = site(tmp_path, [update(x="amount_local  *  2"), WRITE_ALL]).plan().operations[0]
    assert isinstance(op, ResolvedUpdate)
    span = op.assignments[0].typed.expr.span
    assert span is not None
    assert span.origin.text == "amount_local  *  2"
