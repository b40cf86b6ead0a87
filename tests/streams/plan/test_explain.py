"""What `weft stream check` and EXPLAIN JOIN print, word for word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stream_jobs import job, refused
from weft.core.frozen import thaw
from weft.streams.plan.explain import explain_job
from weft.streams.plan.resolve import plan_job
from weft.streams.sql.lower import read_spec

SAMPLE = Path(__file__).parents[2] / "data" / "streams" / "orders_shipments" / "orders_shipments.sql"
SELECTS = {
    "explain_interval_left": "SELECT a.id, b.id AS bid FROM a LEFT JOIN b ON a.k = b.k AND a.n < b.n WITHIN ('5m', '1h')",
    "explain_where": "SELECT a.id FROM a JOIN b ON a.k = b.k WHERE b.t BETWEEN a.t AND a.t + INTERVAL '90' SECOND AND a.n > 1",
    "explain_final": "SELECT a.id FROM a FULL JOIN b ON a.k = b.k WITHIN ('0s', '1h') EMIT FINAL",
    "explain_tumbling": "SELECT a.id, window_start FROM a RIGHT JOIN b ON a.k = b.k WINDOW TUMBLING('1h')",
    "explain_sliding": "SELECT a.id FROM a FULL JOIN b ON a.k = b.k WINDOW SLIDING('1h', '10m') WITH ('join.rows'='window')",
    "explain_session": "SELECT a.id FROM a FULL JOIN b ON a.k = b.k WINDOW SESSION('30m') EMIT CHANGES",
    "explain_row_by_row": "SELECT a.id FROM a JOIN b ON a.k = b.k AND a.n % 2 = b.n % 2 WITHIN '1m'",
    "explain_limits": (
        "SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN '1m'"
        " WITH ('join.max_state_rows'='1000000', 'join.max_rows_per_key'='1000', 'join.retention'='2h')"
    ),
    "explain_chain": (
        "SELECT a.id, c.id AS cid, tab.name FROM a LEFT JOIN b ON a.k = b.k WITHIN ('5s', '10s')"
        " FULL JOIN c ON c.k = a.k AND c.t BETWEEN a.t - INTERVAL '1' MINUTE AND a.t + INTERVAL '3' MINUTE"
        " LEFT JOIN tab ON tab.k = c.k"
    ),
    "explain_table_kept": "SELECT a.id, tab.name FROM a FULL JOIN tab ON a.k = tab.k",
    "explain_table_only": "SELECT a.id PRIMARY KEY, tab.name FROM a JOIN tab ON a.k = tab.k AND tab.s <> a.s",
    "explain_no_join": "SELECT a.id, a.n + 1 AS more FROM a WHERE a.n > 3",
}


@pytest.mark.parametrize("name", SELECTS)
def test_a_statement_is_explained(name: str, golden: Callable[[str, str], None]) -> None:
    plan = job(SELECTS[name], delays={"a": "30s"})
    explanation = explain_job(plan)
    golden(f"streams/{name}.txt", f"{explanation.text}\n\n{explanation.long}")


def test_the_sample_of_the_mandate_is_explained(golden: Callable[[str, str], None]) -> None:
    plan = plan_job(read_spec(SAMPLE.read_text(), file=str(SAMPLE)), Path())
    golden("streams/explain_acceptance.txt", explain_job(plan).text)


def test_one_sink_of_several_is_explained_alone() -> None:
    plan = job(
        "SELECT a.id FROM a",
        before="CREATE STREAM other WITH ('connector'='memory') AS SELECT b.id FROM b;"
        " EXPLAIN JOIN SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN '1m';",
    )
    assert explain_job(plan, "other").text.splitlines()[0] == "statement other -> memory"
    assert "statement x" not in explain_job(plan, "other").text
    assert explain_job(plan).text.count("EXPLAIN JOIN") == 1


def test_the_data_says_bounds_retention_and_executor() -> None:
    plan = job("SELECT a.id FROM a LEFT JOIN b ON a.k = b.k WITHIN ('5m', '1h')")
    data = thaw(explain_job(plan).data)
    assert json.loads(json.dumps(data)) == data
    (join,) = data["statements"][0]["joins"]
    assert join["bound"] == {"lower_us": -300_000_000, "upper_us": 3_600_000_000}
    assert join["retention_us"] == {"left": 3_600_000_000, "right": 300_000_000}
    assert (join["left"], join["right"], join["how"], join["executor"]) == ("a", "b", "left", "kernel")


def test_mistakes_of_a_plan_are_printed_with_carets(golden: Callable[[str, str], None]) -> None:
    errors = [
        refused("SELECT a.idd, b.id FROM a JOIN b ON a.k = b.s AND b.t > a.t"),
        refused("SELECT a.id, b.id FROM a LEFT JOIN b ON a.f = b.f WITHIN '1h'\nWHERE b.n > 1"),
        refused("SELECT a.id FROM a JOIN b ON a.k = b.k AND b.t > a.t\n  AND b.t < a.t"),
        refused("SELECT * FROM a JOIN b ON a.k + 1 = b.k\nWITHIN '1h'"),
        refused("SELECT a.id, window_start FROM a JOIN b ON a.k = b.k WINDOW SESSION('1h')"),
    ]
    golden("streams/mistakes_plan.txt", "\n\n".join(str(error) for error in errors))
