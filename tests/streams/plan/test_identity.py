"""A changed statement: which part changed, its old value, and what of the checkpoint can be kept."""

from __future__ import annotations

import pytest

from stream_jobs import planned
from weft.core.frozen import FrozenMap
from weft.streams.plan.identity import Change, compare_parts, describe_parts

BASE = "SELECT a.id, b.n FROM a LEFT JOIN b ON a.k = b.k AND a.n < b.n WITHIN ('0s', '1h')"


def change(new: str, **jobs: object) -> Change:
    """Return what changes from the base statement to another one."""
    before = describe_parts(planned(BASE))
    return compare_parts(before, describe_parts(planned(new, **jobs)))  # type: ignore[arg-type]  # of planned


def test_the_same_statement_changes_nothing() -> None:
    difference = change(BASE.replace("SELECT", "select  "))
    assert difference == Change(keeps="same")
    assert not difference.needs_consent


def test_every_part_is_there() -> None:
    wanted = (
        "inputs schemas times delays keys match how residual emit select where state_columns sink limits policies dedup"
    )
    assert list(describe_parts(planned(BASE))) == wanted.split()


@pytest.mark.parametrize(
    ("new", "changed", "keeps"),
    [
        (BASE + " WITH ('join.max_state_rows'='5')", {"limits"}, "all"),
        (BASE + " WITH ('join.missing_event_time'='fail')", {"policies"}, "all"),
        (BASE + " WHERE a.n > 1", {"where"}, "state"),
        (BASE.replace("a.id, b.n", "b.n, a.id"), {"select"}, "state"),
        (BASE.replace("a.id, b.n", "a.id || 'x' AS id, b.n"), {"select"}, "state"),
        (BASE.replace("'1h'", "'30m'"), {"match", "limits"}, "state"),
        (BASE.replace("'1h'", "'2h'"), {"match", "limits"}, "offsets"),
        (BASE.replace("('0s', '1h')", "('1s', '1h')"), {"match", "limits"}, "offsets"),
        (
            BASE.replace("WITHIN ('0s', '1h')", "WINDOW TUMBLING('1h')"),
            {"match", "limits", "emit"},
            "offsets",
        ),
        (BASE + " EMIT FINAL", {"emit", "limits"}, "offsets"),
        (BASE.replace("LEFT", "FULL"), {"how"}, "offsets"),
        (BASE.replace("a.n < b.n", "a.n <= b.n"), {"residual"}, "offsets"),
        (BASE.replace("a.k = b.k", "a.k = b.k AND a.s = b.s"), {"keys", "state_columns"}, "offsets"),
        (BASE.replace("a.id, b.n", "a.id, a.s, b.n"), {"select", "state_columns"}, "offsets"),
    ],
)
def test_a_change_keeps_what_still_fits(new: str, changed: set[str], keeps: str) -> None:
    difference = change(new)
    assert {p.part for p in difference.parts} == changed
    assert difference.keeps == keeps
    assert difference.needs_consent is (keeps != "all")
    assert all(p.why and p.old != p.new for p in difference.parts)


def test_a_smaller_delay_keeps_the_state() -> None:
    difference = change(BASE, delays={"a": "5s"})
    assert [(p.part, p.old, p.new) for p in difference.parts] == [("delays", "a: 0s; b: 0s", "a: 5s; b: 0s")]
    assert difference.keeps == "state"


def test_what_earlier_versions_recorded_besides_is_no_change() -> None:
    """The number of groups, and the format of the state, which is upgraded."""
    now = describe_parts(planned(BASE))
    assert compare_parts({**now, "groups": "7", "format": "1"}, now) == Change(keeps="same")


def test_exchanged_sources_are_distinguished() -> None:
    difference = change(BASE.replace("FROM a LEFT JOIN b", "FROM b LEFT JOIN a").replace("a.n < b.n", "b.n > a.n"))
    assert "inputs" in {p.part for p in difference.parts}
    assert difference.keeps == "offsets"


def test_the_speed_of_reading_is_not_part_of_the_identity() -> None:
    def job(option: str) -> FrozenMap[str, str]:
        stream = (
            "CREATE STREAM f (id STRING, k BIGINT, t TIMESTAMP) WITH ('path'='in', 'format'='json',"
            f" 'event.time.field'='t'{option});"
        )
        return describe_parts(planned("SELECT a.id FROM a JOIN f ON a.k = f.k WITHIN '1m'", before=stream))

    assert job("") == job(", 'max.files.per.trigger'='5'")
    assert job("") == job(", 'idle.timeout'='5s'")
    assert job("") != job(", 'dedup.keys'='id'")
    assert job("") != job(", 'late'='drop'")


def test_another_alias_or_a_column_without_its_alias_changes_nothing() -> None:
    new = "SELECT one.id, two.n FROM a AS one LEFT JOIN b AS two ON one.k = two.k AND one.n < two.n WITHIN ('0s', '1h')"
    assert change(new) == Change(keeps="same")
    alone = "SELECT tab.{name} FROM a JOIN tab ON a.k = tab.k WHERE {name} > 'x'"
    qualified = alone.replace("WHERE ", "WHERE tab.")
    texts = [describe_parts(planned(q.format(name="name"))) for q in (alone, qualified)]
    assert texts[0] == texts[1]


def test_both_uses_of_a_stream_are_distinguished() -> None:
    text = "SELECT x.id FROM a x JOIN a y ON x.k = y.k AND x.n < y.n WITHIN '1m'"
    one, other = (describe_parts(planned(q)) for q in (text, text.replace("x.n < y.n", "y.n < x.n")))
    assert one["residual"] != other["residual"]


def test_a_changed_bound_is_reported_as_it_is_explained() -> None:
    (part,) = (p for p in change(BASE.replace("'1h'", "'30m'")).parts if p.part == "match")
    assert (part.old, part.new) == ("b.t - a.t in [0s, 1h]", "b.t - a.t in [0s, 30m]")
    (limits,) = (p for p in change(BASE.replace("'1h'", "'30m'")).parts if p.part == "limits")
    assert limits.new == "rows none, rows of a key none, eviction oldest, kept 30m and 0s"


@pytest.mark.parametrize(
    ("window", "text"),
    [
        ("TUMBLING('1h')", "a.t and b.t in one tumbling window of 1h"),
        ("SLIDING('1h', '20m')", "a.t and b.t in one sliding window of 1h every 20m"),
        ("SESSION('30s')", "a.t and b.t in one session window, gap 30s"),
    ],
)
def test_a_window_is_described(window: str, text: str) -> None:
    new = BASE.replace("WITHIN ('0s', '1h')", f"WINDOW {window}")
    assert describe_parts(planned(new))["match"] == text


def test_the_address_of_a_broker_and_its_secrets_are_not_part_of_the_identity() -> None:
    def job(topic: str, option: str) -> FrozenMap[str, str]:
        stream = (
            f"CREATE STREAM f (id STRING, k BIGINT, t TIMESTAMP) WITH ('topic'='{topic}', 'format'='json',"
            f" 'event.time.field'='t', 'bootstrap.servers'='one:9092'{option});"
        )
        return describe_parts(planned("SELECT a.id FROM a JOIN f ON a.k = f.k WITHIN '1m'", before=stream))

    before = job("f", "")
    options = ", 'kafka.sasl.jaas.config'='password', 'starting.offsets'='latest', 'fail.on.data.loss'='false'"
    assert job("f", options) == before
    assert "password" not in str(job("f", options))
    assert "one:9092" not in str(before)
    assert compare_parts(before, job("g", "")).parts[0].part == "inputs"


def test_a_part_that_only_one_side_has_is_a_change() -> None:
    difference = compare_parts({"emit": "final"}, {"emit": "final", "extra": "x"})
    assert [(p.part, p.old, p.new, p.keeps) for p in difference.parts] == [("extra", "", "x", "offsets")]


@pytest.mark.parametrize(
    ("bound", "keeps"),
    [
        ("[10s, 50s]", "state"),
        ("[0s, 59s]", "state"),
        ("[1s, 1m]", "state"),
        ("[30s, 1m30s]", "offsets"),
        ("[-30s, 30s]", "offsets"),
        ("[-1s, 2m]", "offsets"),
    ],
)
def test_a_bound_is_narrower_only_if_both_ends_are_inside(bound: str, keeps: str) -> None:
    old, new = ({"match": f"b.t - a.t in {text}"} for text in ("[0s, 1m]", bound))
    assert compare_parts(old, new).keeps == keeps
