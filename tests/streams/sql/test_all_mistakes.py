"""`weft stream check` goes on behind a mistake: one statement hides no mistake of another, and is blamed for none."""

# ruff: noqa: S608  # statements of tests, read and never run
from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from command_line import weft
from weft.core.findings import MAX_FINDINGS
from weft.core.source import Source
from weft.errors import Diagnostic, WeftError
from weft.streams.plan.resolve import plan_text
from weft.streams.sql.job import sort_findings

STREAM = "CREATE STREAM {name} (id STRING, t TIMESTAMP) WITH ('path'='{name}','format'='json','event.time.field'='t');"
STREAMS = [STREAM.format(name=name) for name in "ab"]
JOIN = "FROM a JOIN b ON a.id = b.id WITHIN '5m'"
OUT = "CREATE STREAM {name} WITH ('path'='out_{name}','format'='json') AS"
MISTAKES = {
    f"{OUT} SELECT a.idd {JOIN};": "W0207",
    f"{OUT} SELECT foo(a.id) AS x {JOIN};": "W0206",
    f"{OUT} SELECT a.id + a.t AS x {JOIN};": "W0209",
    f"{OUT} SELECT a.id FROM a JOIN b ON a.id = b.id;": "W2104",
    f"{OUT} SELECT c.id FROM cc c JOIN b ON c.id = b.id WITHIN '5m';": "W2010",
    f"{OUT} SELECT a.id {JOIN};".replace("'format'", "'fromat'"): "W2005",
    f"{OUT} SELECT a.id {JOIN};".replace("'json'", "'jsn'"): "W2006",
    f"{OUT} SELECT a.id a JOIN b;": "W2001",
    f"{OUT} SELECT a.id ? {JOIN};": "W2001",
    f"{OUT} SELECT a.id, b.id {JOIN};": "W2103",
    f"{OUT} SELECT a.id {JOIN} ORDER BY 1;": "W2004",
    f"{OUT} SELECT a.id FROM (SELECT * FROM a) x;": "W2004",
    f"{OUT} SELECT a.id {JOIN};".replace("5m", "5 parsecs"): "W0304",
    f"{OUT} SELECT a.id {JOIN};".replace("5m", "${{NOT_SET}}"): "W2011",
    "CREAT STREAM {name} (id INT);": "W2002",
    "CREATE STREAM {name} (id STRIN, t TIMESTAMP) WITH ('path'='a','format'='json');": "W2013",
    "CREATE STREAM {name} (id STRING) WITH ('path'='a','format'='json','event.time.field'='no');": "W2006",
    "SET 'grups' = '2';": "W2005",
    f"INSERT INTO nowhere_{{name}} SELECT a.id {JOIN};": "W2010",
}
TRIOS = 150


def collect_findings(lines: list[str]) -> list[tuple[int, str]]:
    """Return the lines and codes of all findings of a job with a statement in each line."""
    try:
        plan_text("\n".join(lines), Path(), file="job.sql", env={})
    except WeftError as problem:
        return [(getattr(d.at, "line", 0), d.code) for d in problem.diagnostics]
    return []


def job(statements: tuple[str, ...]) -> list[str]:
    return [*STREAMS, *(s.format(name=f"s{n}") for n, s in enumerate(statements))]


def test_three_mistakes_in_three_statements_are_all_reported_with_their_locations() -> None:
    trios = list(itertools.permutations(MISTAKES, 3))
    for trio in random.Random(21).sample(trios, TRIOS):
        expected = [(number, MISTAKES[statement]) for number, statement in enumerate(trio, start=3)]
        assert collect_findings(job(trio)) == expected, "\n".join(job(trio))


def test_every_mistake_is_reported_beside_an_invalid_statement() -> None:
    broken = f"{OUT} SELECT (a.id {JOIN};"
    for statement, code in MISTAKES.items():
        findings = collect_findings(job((broken, statement)))
        assert {line for line, _ in findings} == {3, 4}
        assert (4, code) in findings


@pytest.mark.parametrize(
    "lines",
    [
        # No other statement is blamed for what an invalid statement may define.
        [STREAMS[0].replace("'format'", "format"), STREAMS[1], f"{OUT} SELECT a.id {JOIN};".format(name="x")],
        [*STREAMS, "SET 'join.default_bound' '5m';", f"{OUT} SELECT a.id {JOIN[:-12]};".format(name="x")],
        [*STREAMS, "SET 'join.defalt_bound' = '5m';", f"{OUT} SELECT a.id {JOIN[:-12]};".format(name="x")],
        [
            *STREAMS,
            "INSERT INT x SELECT a.id FROM a;",
            "CREATE STREAM x WITH ('path'='out','format'='json');",
        ],
        [*STREAMS, f"{OUT} SELECT (a.id {JOIN};".format(name="x"), "EXPLAIN JOIN x;"],
    ],
)
def test_a_statement_is_not_blamed_for_an_invalid_one(lines: list[str]) -> None:
    broken = next(n for n, line in enumerate(lines, start=1) if line not in STREAMS)
    assert {line for line, _ in collect_findings(lines)} == {broken}


def test_check_prints_them_all(tmp_path: Path) -> None:
    lines = job(tuple(s for s, code in MISTAKES.items() if code in ("W2001", "W2010", "W2104"))[:3])
    (tmp_path / "job.sql").write_text("\n".join(lines))
    ran = weft("stream", "check", "job.sql", "--json", root=tmp_path)
    assert ran.code == 3
    findings = [(d["code"], d["range"]["start"]["line"] + 1) for d in ran.document["diagnostics"]]
    assert [line for _, line in findings] == [3, 4, 5]
    assert {"W2104", "W2010", "W2001"} == {code for code, _ in findings}


def test_of_too_many_mistakes_the_first_ones_in_the_text_are_reported() -> None:
    text = "x" * (MAX_FINDINGS + 5)
    found = [Diagnostic("W2001", f"mistake {i}", at=Source(text, i, i + 1)) for i in range(len(text))]
    assert sort_findings(reversed(found)) == tuple(found[:MAX_FINDINGS])
