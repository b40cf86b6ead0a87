"""Variables in the text of a job: where they are filled in, and where a value comes from."""

# ruff: noqa: S608  # jobs of streaming SQL that reach no database

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.source import Source
from weft.core.substitution import substitute_variables
from weft.errors import StreamSqlError
from weft.streams.sql.lower import read_spec

JOB = "CREATE TABLE t (a INT) WITH ('path' = '{}', 'format' = 'csv');\nSELECT * FROM t;"


def path(written: str, **env: str) -> object:
    return read_spec(JOB.replace("{}", written), env=env).tables["t"].connector["path"]


@pytest.mark.parametrize(
    ("written", "env", "expected"),
    [
        ("${D}/a", {"D": "data"}, "data/a"),
        ("${D:-x}/a", {"D": "data"}, "data/a"),
        ("${D:-x}/a", {}, "x/a"),
        ("${D:-x}/a", {"D": ""}, "x/a"),
        ("${D:-}a", {}, "a"),
        ("${D:?say}/a", {"D": "data"}, "data/a"),
        ("${D}a", {"D": ""}, "a"),
        ("$${D}/a", {"D": "data"}, "${D}/a"),
        ("$D/{a}", {"D": "data"}, "$D/{a}"),
        ("${D}${D}", {"D": "x"}, "xx"),
        ("${D_1}", {"D_1": "${E}", "E": "no"}, "${E}"),
        ("${D}", {"D": "it's ''quoted''"}, "it's ''quoted''"),
        ("${D}", {"D": "x', 'format' = 'json"}, "x', 'format' = 'json"),
        ("${D}", {"D": "a -- b /* c"}, "a -- b /* c"),
    ],
)
def test_a_variable_in_a_text_is_its_value(written: str, env: dict[str, str], expected: str) -> None:
    assert path(written, **env) == expected


def test_a_variable_may_stand_for_a_name_or_a_number() -> None:
    job = read_spec(
        "CREATE TABLE `${N}` (a INT) WITH ('path' = 'a.csv'); SELECT a + ${K} AS b FROM `${N}` WHERE a > ${K:-1};",
        env={"N": "my `table`", "K": "5"},
    )
    assert list(job.tables) == ["my `table`"]
    assert (
        job.statements[0].where
        == read_spec("CREATE TABLE t (a INT) WITH ('path' = 'a.csv'); SELECT * FROM t WHERE a > 5;").statements[0].where
    )


def test_a_variable_in_a_comment_is_not_looked_at() -> None:
    text = "-- ${A}\n/* ${B} /* ${C} */ ${D} */ " + JOB.replace("{}", "a.csv -- ${E:-x}")
    assert read_spec(text).tables["t"].connector["path"] == "a.csv -- x"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("${D}", "variable 'D' has no value"),
        ("${D:?say where}", "variable 'D' has no value: say where"),
        ("${D:?}", "variable 'D' has no value"),
        ("${}", "'${}' is not a variable"),
        ("${D:x}", "'${D:x}' is not a variable"),
        ("${D E}", "'${D E}' is not a variable"),
        ("${D", "'${D' is not a variable"),
    ],
)
def test_a_variable_that_cannot_be_filled_in_is_reported_at_its_location(written: str, message: str) -> None:
    text = JOB.replace("{}", written)
    with pytest.raises(StreamSqlError) as caught:
        read_spec(text, file="job.sql")
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.message) == ("W2011", message)
    start = text.index("${")
    assert finding.at == Source(text, start, start + len(written), "job.sql")


def test_every_variable_without_a_value_is_reported() -> None:
    with pytest.raises(StreamSqlError) as caught:
        read_spec(JOB.replace("{}", "${A}/${B}") + "SELECT ${C} FROM t;")
    assert [d.message.split("'")[1] for d in caught.value.diagnostics] == ["A", "B", "C"]


def test_places_after_a_variable_are_those_of_the_file() -> None:
    text = JOB.replace("{}", "${D}") + " SELECT * FROM nothing;"
    for value in ("", "x", "a much longer value than its name\nover lines"):
        with pytest.raises(StreamSqlError) as caught:
            read_spec(text, env={"D": value or "y"})
        (finding,) = caught.value.diagnostics
        assert isinstance(finding.at, Source)
        assert finding.at.text[finding.at.start : finding.at.end] == "nothing"


_PARTS = st.sampled_from(["a", " ", "'", '"', "`", "--", "/*", "*/", "\n", "${A}", "${B:-x'y}", "$${", "$", "{", "}"])


@given(st.lists(_PARTS, max_size=30).map("".join), st.text(alphabet="xy'`\"\n", max_size=4))
def test_each_character_knows_where_it_comes_from(text: str, value: str) -> None:
    substitution = substitute_variables(text, {"A": value})
    assert len(substitution.offsets) == len(substitution.text) + 1
    assert list(substitution.offsets) == sorted(substitution.offsets)
    assert substitution.offsets[-1] == len(text)
    for character, offset in zip(substitution.text, substitution.offsets, strict=False):
        assert text[offset] in (character, "$")


@given(st.text(max_size=40).filter(lambda text: "$" not in text))
def test_a_text_without_variables_stays_as_it_is(text: str) -> None:
    assert substitute_variables(text, {"A": "x"}).text == text
