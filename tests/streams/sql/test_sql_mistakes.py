"""Every mistake in a job has a code, a place and a next step, and one mistake hides no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_mistakes import STREAMS, TOPICS
from weft.core.source import Source
from weft.errors import Diagnostic, StreamSqlError
from weft.expr.tokens import tokenize
from weft.streams.sql.lower import read_spec

ENV = {"FOLDER": "folder"}
CASES = [
    pytest.param(before, text, id=f"{topic}: {name}")
    for topic, (cases, before) in TOPICS.items()
    for name, text in cases.items()
]


def collect_findings(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(StreamSqlError) as caught:
        read_spec(text, file="job.sql", env=ENV)
    return caught.value.diagnostics


@pytest.mark.parametrize("topic", TOPICS)
def test_a_mistake_is_reported_with_its_location(topic: str, golden: Callable[[str, str], None]) -> None:
    cases, before = TOPICS[topic]
    sections = []
    for name, text in cases.items():
        findings = collect_findings(before + text)
        sections.append(f"# {name}\n" + "\n".join(map(str, findings)))
    golden(f"streams/mistakes_{topic}.txt", "\n\n".join(sections))


@pytest.mark.parametrize(("before", "text"), CASES)
def test_a_mistake_has_a_place_in_the_statement_that_makes_it(before: str, text: str) -> None:
    for finding in collect_findings(before + text):
        assert isinstance(finding.at, Source)
        assert finding.at.file == "job.sql"
        assert finding.at.start >= len(before) or finding.code == "W2015", finding  # W2015 is about the whole job
        assert finding.help or finding.message.startswith("expected") or finding.code.startswith("W02"), finding


def test_a_mistake_in_each_statement_is_reported_together_and_in_order() -> None:
    text = STREAMS + "SELCT 1;\nSELECT * FROM orders LIMIT 1;\nSET 'triger' = '1s';\nSELECT NOW() FROM orders;\n"
    findings = collect_findings(text)
    assert [d.code for d in findings] == ["W2002", "W2004", "W2005", "W0205"]
    assert [d.at.line for d in findings if isinstance(d.at, Source)] == [6, 7, 8, 9]


def test_an_invalid_statement_does_not_make_its_name_unknown() -> None:
    text = "CREATE STREAM a (b MONEY) WITH ('path' = 'a.csv'); SELECT * FROM a;"
    assert [d.code for d in collect_findings(text)] == ["W2013"]


@pytest.mark.parametrize(("one", "other"), [("id", "ID"), ("Id", "id"), ("ID", "ID")])
def test_a_column_is_declared_twice_whatever_the_case_of_its_name(one: str, other: str) -> None:
    text = "CREATE STREAM a (ONE INT, OTHER INT) WITH ('path' = 'a.csv'); SELECT * FROM a;"
    (finding,) = collect_findings(text.replace("ONE", one).replace("OTHER", other))
    assert (finding.code, finding.message) == ("W2009", f"duplicate column {other!r}")


def test_a_variable_without_a_value_hides_only_what_it_causes() -> None:
    text = "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'format' = '${F}', 'header' = 'yes'); SELECT * FROM a;"
    assert [d.code for d in collect_findings(text)] == ["W2011", "W2006"]


def test_a_job_that_is_far_too_long_is_refused_at_once() -> None:
    (finding,) = collect_findings("SELECT 1;" * 200_000)
    assert finding.code == "W2001"
    assert "1,800,000 characters" in finding.message


TOKENS = [STREAMS[t.start : t.end + 1] for t in tokenize(STREAMS, "stream")[0]]
WORDS = [
    *TOKENS,
    *"SELECT * FROM orders o JOIN shipments s ON o.order_id = s.order_id WITHIN '5m' WINDOW TUMBLING ( '1h' ) ; "
    "EMIT FINAL WITH ( 'join.size' = '1h' ) WHERE a INSERT INTO SLIDING SIZE , SLIDE SESSION AS _EVENT_TIME "
    "EXPLAIN SET CASE WHEN END ${X} -- /* */ ' \" ` {{ ? - .. PRIMARY KEY NOT NULL INTERVAL 5 MINUTE é".split(" "),
]


@given(st.lists(st.sampled_from(WORDS), max_size=60))
def test_whatever_is_written_is_read_or_refused_with_a_code(words: list[str]) -> None:
    try:
        read_spec(STREAMS + " ".join(words))
    except StreamSqlError as error:
        assert str(error)


@given(st.text(max_size=80), st.integers(0, len(STREAMS)))
def test_whatever_is_typed_into_a_job_is_read_or_refused_with_a_code(typed: str, at: int) -> None:
    try:
        read_spec(STREAMS[:at] + typed + STREAMS[at:])
    except StreamSqlError as error:
        assert str(error)
