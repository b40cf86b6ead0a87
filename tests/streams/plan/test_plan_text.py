"""plan_text: mistakes of reading and of planning in one go, and no mistake that another one causes."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.errors import StreamPlanError, StreamSqlError
from weft.streams.plan.resolve import plan_text

A = "CREATE STREAM a (id STRING, f DOUBLE, t TIMESTAMP) WITH ('path' = 'a', 'format' = 'json', 'event.time.field' = 't');\n"
B = A.replace("STREAM a", "STREAM b").replace("'a'", "'b'")
GOOD = "CREATE STREAM z WITH ('connector' = 'memory') AS SELECT a.id FROM a JOIN b ON a.id = b.id WITHIN '1h';\n"


def codes(text: str) -> list[str]:
    with pytest.raises((StreamSqlError, StreamPlanError)) as caught:
        plan_text(text, Path())
    return [d.code for d in caught.value.diagnostics]


def test_a_job_without_mistakes_is_planned() -> None:
    (statement,) = plan_text(A + B + GOOD, Path("here")).statements
    assert statement.name == "z"


def test_a_mistake_of_one_statement_hides_none_of_another() -> None:
    unbounded = GOOD.replace("STREAM z", "STREAM y").replace("WITHIN '1h'", "").replace("a.id FROM", "b.nope FROM")
    wrong = "CREATE TABLE t (id STRING) WITH ('path' = 't.csv', 'relod' = 'batch');\n"
    assert codes(A + B + wrong + GOOD + unbounded) == ["W2005", "W0207", "W2104"]


def test_consequences_of_a_mistake_are_not_reported_beside_it() -> None:
    untimed = A.replace("'event.time.field'", "'event.time.feild'")
    assert codes(untimed + B + GOOD) == ["W2005"]
    assert codes(A + B + GOOD.replace("WITHIN '1h'", "WITH ('join.upper_bound' = '1h')")) == ["W2008"]
    assert codes("SET 'join.default_bund' = '1h';\n" + A + B + GOOD.replace(" WITHIN '1h'", "")) == ["W2005"]
    assert codes(A.replace("STREAM a", "STREM a") + B + GOOD) == ["W2001"]


def test_columns_of_a_statement_with_another_mistake_are_looked_up_all_the_same() -> None:
    wrong = A.replace("'format'", "'fromat'") + B
    assert codes(wrong + GOOD.replace("SELECT a.id", "SELECT a.idd, id")) == ["W2005", "W0207", "W0216"]
    assert codes(wrong + GOOD.replace("a.id = b.id", "a.f = b.f")) == ["W2005", "W2102"]
