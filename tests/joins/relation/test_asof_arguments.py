"""Mistakes in as-of joins that need no Spark: other libraries' arguments, hints, notebooks, workers."""

from __future__ import annotations

import ast
import datetime as dt
import pickle
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import AsofOrder, AsofSpec, ColumnPredicate, ExpressionPredicate, IntervalSpec, WindowSpec
from weft.core.types import LONG, Field, Schema
from weft.errors import ArgumentError, ColumnCollisionError, JoinSpecError, JoinTypeError, UnknownColumnError, WeftError
from weft.joins.explain import explain_resolved
from weft.joins.relation import Relation, temporal
from weft.joins.relation.temporal import check_order
from weft.joins.resolve.join import resolve_join
from weft.joins.several import resolve_several
from weft.joins.spark import workers
from weft.joins.spark.failures import coded_errors, explain_job_failure

LEFT = Schema.of(symbol="string", ts="timestamp", qty="long")
RIGHT = Schema.of(symbol="string", ts="timestamp", bid="double", ask="double")
TRADES: Any = Relation(None, LEFT, None)  # type: ignore[arg-type]  # these mistakes are reported before Spark is called
QUOTES: Any = Relation(None, RIGHT, None)  # type: ignore[arg-type]


def parsed(call: str) -> AsofSpec:
    """Return the spec of a call to paste, after running it as far as the spec."""
    tree = ast.parse(call.removeprefix("write "), mode="eval").body
    assert isinstance(tree, ast.Call)
    spec = eval(  # noqa: S307  # the point of a call to paste is that it runs
        compile(ast.Expression(tree.args[1]), "<hint>", "eval"),
        {"AsofSpec": AsofSpec, "AsofOrder": AsofOrder},
    )
    assert isinstance(spec, AsofSpec)
    suffixes = [ast.literal_eval(k.value) for k in tree.keywords if k.arg == "suffixes"]
    assert {k.arg for k in tree.keywords} <= {"suffixes"}
    resolve_join(spec, LEFT, RIGHT, project=weft.JoinProjection(suffixes=suffixes[0]) if suffixes else None)
    return spec


BY = [("symbol", "symbol")]
SAME = AsofOrder("ts", "ts")


@pytest.mark.parametrize("method", ["natural_asof", "asof_join", "join_asof"])
@pytest.mark.parametrize(
    ("given", "library", "spec"),
    [
        ({"on": "ts", "by": "symbol"}, "pandas merge_asof", AsofSpec(BY, order=SAME)),
        ({"left_on": "ts", "right_on": "ts"}, "pandas merge_asof", AsofSpec((), order=SAME)),
        (
            {"on": "ts", "left_by": ["symbol"], "right_by": ["symbol"], "suffixes": ("_x", "_y")},
            "pandas merge_asof",
            AsofSpec(BY, order=SAME),
        ),
        (
            {"on": "ts", "by": "symbol", "direction": "nearest", "tolerance": dt.timedelta(seconds=5)},
            "pandas merge_asof",
            AsofSpec(BY, order=SAME, direction="nearest", tolerance="5s"),
        ),
        (
            {"on": "ts", "by_left": "symbol", "by_right": "symbol", "strategy": "nearest", "suffix": "_q"},
            "polars join_asof",
            AsofSpec(BY, order=SAME, direction="nearest", tolerance="unbounded"),
        ),
        (
            {
                "on": "ts",
                "by": "symbol",
                "strategy": "forward",
                "tolerance": "2s",
                "allow_exact_matches": False,
            },
            "polars join_asof",
            AsofSpec(BY, order=SAME, direction="forward", tolerance="2s", allow_exact_matches=False),
        ),
        (
            {"right_prefix": "q", "skipNulls": True, "tolerance": 10},
            "Tempo asofJoin",
            AsofSpec(BY, order=SAME, tolerance="10 seconds", skip_nulls=("bid", "ask")),
        ),
        ({"tsPartitionVal": 10, "fraction": 0.5}, "Tempo asofJoin", AsofSpec(BY, order=SAME)),
        (
            {"on": "ts", "by": "symbol", "tolerance": 10},
            "pandas merge_asof",
            AsofSpec(BY, order=SAME, tolerance="10 seconds"),
        ),
        (
            {"on": "ts", "by": "symbol", "tolerance": np.timedelta64(1500, "ms")},
            "pandas merge_asof",
            AsofSpec(BY, order=SAME, tolerance="1s 500ms"),
        ),
    ],
)
def test_arguments_of_other_libraries_are_translated(
    method: str, given: dict[str, Any], library: str, spec: AsofSpec
) -> None:
    with pytest.raises(ArgumentError) as caught:
        getattr(TRADES, method)(QUOTES, **given)
    assert caught.value.code == "W0310"
    assert library in caught.value.message
    assert parsed(caught.value.help) == spec


@pytest.mark.parametrize("method", ["interval_join", "window_join", "asof_join_all"])
def test_keywords_of_other_libraries_are_errors_of_every_temporal_join(method: str) -> None:
    with pytest.raises(ArgumentError, match="on="):
        getattr(TRADES, method)([(QUOTES, AsofSpec(BY, order=SAME))] if "all" in method else QUOTES, on="symbol")


@pytest.mark.parametrize("method", ["natural_asof", "join_asof"])
def test_a_missing_order_is_reported_with_the_likely_columns(method: str) -> None:
    with pytest.raises(ArgumentError, match="needs order=") as caught:
        getattr(TRADES, method)(QUOTES)
    assert parsed(caught.value.help) == AsofSpec(BY, order=SAME)


def test_a_left_side_without_an_order_marker_is_reported_only_on_request() -> None:
    spec = AsofSpec(BY, order=SAME)
    check_order(TRADES, spec, "ignore")
    with pytest.warns(weft.AsofOrderWarning, match="the result is correct, but"):
        check_order(TRADES, spec, "warn")
    with pytest.raises(WeftError, match="has no order marker for 'ts'"):
        check_order(TRADES, spec, "error")
    for method in ("natural_asof", "asof_join", "asof_join_all"):
        assert signature(getattr(Relation, method)).parameters["order_check"].default == "ignore"


def test_a_column_with_the_name_of_a_foreign_argument_is_a_key_alias() -> None:
    left: Any = Relation(None, Schema.of(on="string", ts="timestamp"), None)  # type: ignore[arg-type]
    with pytest.raises(WeftError) as caught:
        left.natural_asof(QUOTES, on="nothing", order=SAME)
    assert caught.value.code == "W0101"


def resolved_from(call: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> AsofSpec:
    """Return the spec that a call of natural_asof passes on, without Spark."""
    specs: list[AsofSpec] = []

    def record(left: Any, right: Any, spec: AsofSpec, **options: Any) -> None:
        specs.append(spec)
        resolve_join(spec, left.schema, right.schema, project=options["project"], inference=options["inference"])

    monkeypatch.setattr(temporal, "join_frames", record)
    TRADES.natural_asof(QUOTES, **call)
    return specs[0]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ({"order": "ts"}, AsofSpec(BY, order=SAME)),
        ({"order": "ts", "by": "symbol"}, AsofSpec(BY, order=SAME)),
        ({"order": ("ts", "ts"), "by": ["symbol"]}, AsofSpec(BY, order=SAME)),
        ({"order": "ts", "by": [("symbol", "symbol")]}, AsofSpec(BY, order=SAME)),
        ({"order": "ts", "by": []}, AsofSpec((), order=SAME)),
        ({"order": "ts", "tie_break": "bid"}, AsofSpec(BY, order=SAME, tie_break=("bid",))),
        ({"order": "ts", "known": "ts"}, AsofSpec(BY, order=SAME, known=SAME)),
        ({"order": "ts", "keys": "symbol"}, AsofSpec(BY, order=SAME)),
    ],
)
def test_a_short_call_passes_on_the_spec_written_out(
    short: dict[str, Any], long: AsofSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = resolved_from({"suffixes": ("", "_r"), **short}, monkeypatch)
    assert spec == long
    assert spec.fingerprint() == long.fingerprint()


@pytest.mark.parametrize("more", [{"keys": {"qty": "bid"}}, {"exclude_shared": ["symbol"]}, {"symbol": "symbol"}])
def test_by_names_all_keys_so_nothing_else_names_one(more: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="by= names all keys") as caught:
        TRADES.natural_asof(QUOTES, order="ts", by="symbol", **more)
    assert caught.value.code == "W0305"


def test_by_of_another_kind_or_of_an_unknown_column_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="by must be a column name"):
        TRADES.natural_asof(QUOTES, order="ts", by=5)
    with pytest.raises(weft.UnknownColumnError, match="'sym'"):
        TRADES.natural_asof(QUOTES, order="ts", by="sym")


@pytest.mark.parametrize(
    "spec",
    [
        AsofSpec(BY, order=SAME),
        IntervalSpec(BY, order=SAME, lower="0s", upper="1h"),
        WindowSpec(BY, order=SAME, window="tumbling", size="1h"),
    ],
    ids=["asof", "interval", "window"],
)
def test_a_right_time_with_the_name_of_the_left_one_takes_the_right_suffix(spec: Any) -> None:
    assert resolve_join(spec, LEFT, RIGHT).schema.names == ("symbol", "ts", "qty", "ts_right", "bid", "ask")


@pytest.mark.parametrize(
    ("left", "right", "reported"),
    [
        ("timestamp_ntz", "timestamp", "left.t (timestamp_ntz) has no zone"),
        ("timestamp", "date", "right.u (date) has no zone"),
        ("timestamp", "timestamp", None),
        ("timestamp_ntz", "date", None),
    ],
)
def test_the_explanation_says_what_meets_through_the_zone_of_the_session(
    left: str, right: str, reported: str | None
) -> None:
    spec = AsofSpec([("k", "k")], order=AsofOrder("t", "u"))
    join = resolve_join(spec, Schema.of(k="long", t=left), Schema.of(k="long", u=right))
    facts = dict(explain_resolved(join, spec).facts)
    if reported is None:
        assert "time zone" not in facts
    else:
        assert facts["time zone"] == f"{reported} and meets a timestamp: it is read in spark.sql.session.timeZone"


@pytest.mark.parametrize("kind", ["string", "binary", "interval"])
def test_order_columns_that_are_neither_times_nor_numbers_are_refused(kind: str) -> None:
    spec = AsofSpec([("k", "k")], order=AsofOrder("t", "u"))
    with pytest.raises(JoinTypeError, match="cannot be compared in order") as caught:
        resolve_join(spec, Schema.of(k="long", t=kind), Schema.of(k="long", u=kind))
    assert ('left.with_columns(t="CAST(t AS timestamp)")' in caught.value.help) == (kind == "string")


def test_order_decimals_that_no_type_holds_are_refused() -> None:
    spec = AsofSpec([("k", "k")], order=AsofOrder("t", "u"))
    with pytest.raises(JoinTypeError, match="no type holds the values of both order columns exactly"):
        resolve_join(spec, Schema.of(k="long", t="decimal(38,0)"), Schema.of(k="long", u="decimal(38,30)"))


def test_a_comparison_that_takes_null_for_equal_is_shown_where_it_is_allowed() -> None:
    with pytest.raises(WeftError) as caught:
        ColumnPredicate("a", "<=>", "b")  # type: ignore[arg-type]
    assert "'left.a <=> right.b'" in caught.value.help
    ExpressionPredicate("left.a <=> right.b")
    for text, help_ in (
        ("left.a IS DISTINCT FROM right.b", "write NOT (x <=> y)"),
        ("left.a IS NOT DISTINCT FROM right.b", "write x <=> y"),
        ("TRY_CAST(left.a AS integer) = 1", "write CAST(x AS type)"),
    ):
        with pytest.raises(WeftError) as caught:
            ExpressionPredicate(text)
        assert help_ in caught.value.help
    with pytest.raises(WeftError) as caught:
        ExpressionPredicate("COUNT(DISTINCT left.a) = 1")
    assert "<=>" not in caught.value.help


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"how": "semi"}, "adds no column"),
        ({"how": "anti"}, "adds no column"),
        ({"how": "right"}, "keeps or counts right rows"),
        ({"how": "full"}, "keeps or counts right rows"),
        ({"unmatched": "right"}, "keeps or counts right rows"),
        ({"relationship": "1:1"}, "keeps or counts right rows"),
        ({"order": ("ts + INTERVAL 1 DAY", "ts")}, "its order is an expression"),
    ],
)
def test_a_join_that_is_more_than_a_search_cannot_be_one_of_several(given: Any, why: str) -> None:
    with pytest.raises(WeftError, match=why) as caught:
        resolve_several(LEFT, [(AsofSpec(BY, **{"order": SAME, **given}), RIGHT, None)])
    assert caught.value.code == "W0130"


def test_every_column_skips_nulls_but_keys_and_times() -> None:
    right = Schema.of(symbol="string", ts="timestamp", seen="timestamp", bid="double", venue="string")
    spec = AsofSpec("symbol", order="ts", known=("ts", "seen"), skip_nulls="all")  # type: ignore[arg-type]
    match: Any = resolve_join(spec, LEFT, right).match
    assert [right.fields[i].name for i in match.skip_nulls] == ["bid", "venue"]


def test_columns_of_several_joins_that_collide_get_a_projection_not_suffixes() -> None:
    other = Schema.of(symbol="string", at="timestamp", bid="double", ask="double")
    specs = [AsofSpec(BY, order=SAME), AsofSpec(BY, order=AsofOrder("ts", "at"))]
    with pytest.raises(ColumnCollisionError) as caught:
        resolve_several(LEFT, [(specs[0], RIGHT, None), (specs[1], other, None)])
    assert caught.value.help == "give part 2 a third value: JoinProjection(suffixes=('', '_right'))"
    project = weft.JoinProjection(suffixes=("", "_right"))
    assert len(resolve_several(LEFT, [(specs[0], RIGHT, None), (specs[1], other, project)])) == 2


def test_a_notebook_shows_the_line_that_was_run_and_the_error_alone() -> None:
    with pytest.raises(ArgumentError) as caught:
        TRADES.natural_asof(QUOTES, on="ts")
    line, text = caught.value._render_traceback_()
    assert line.endswith('TRADES.natural_asof(QUOTES, on="ts")')
    assert text == str(caught.value)


def test_a_notebook_shows_the_line_of_the_user_when_weft_uses_other_packages_too() -> None:
    class Frame:
        isStreaming = False  # noqa: N815  # as Spark calls it

        def count(self) -> int:
            raise RuntimeError("[W1809] the Python, /p, has no module numpy. Next: set X\n")

    relation: Any = Relation(Frame(), LEFT, None)  # type: ignore[arg-type]
    with pytest.raises(WeftError) as caught:  # raised inside of contextlib
        relation.count()
    line, _ = caught.value._render_traceback_()
    assert line.endswith("relation.count()")
    with pytest.raises(WeftError) as caught:  # raised below the generated __init__ of a dataclass
        AsofSpec("symbol", order=5)  # type: ignore[arg-type]
    line, _ = caught.value._render_traceback_()
    assert 'AsofSpec("symbol", order=5)' in line


def test_the_traceback_of_a_script_ends_with_the_line_of_the_user(tmp_path: Path) -> None:
    script = tmp_path / "orders.py"
    script.write_text("import weft\n\nspec = weft.JoinSpec(5)\n")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == f"  at {script}:3: spec = weft.JoinSpec(5)"
    with pytest.raises(ArgumentError) as caught:
        weft.JoinSpec(5)  # type: ignore[arg-type]
    assert "  at " not in str(caught.value)
    copied = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own bytes
    assert copied.__notes__ == caught.value.__notes__


@pytest.mark.parametrize(
    ("text", "code", "message", "help_"),
    [
        (
            "[USER_RAISED_EXCEPTION] [JOIN_CONTRACT] W0501 relationship 'm:1' is broken: k = 1 "  # noqa: ISC004
            "(spec 0123456789ab, join 0123456789ab) SQLSTATE: P0001\n\tat org.apache.spark",
            "W0501",
            "relationship 'm:1' is broken",
            "relax relationship=",
        ),
        (
            "[W0110] the kernel refuses a group. Next: strategy='slices'\n  at x",
            "W0110",
            "refuses a group",
            "slices",
        ),
        (
            "[W1809] the Python, /p, has no module numpy. Next: set X\n",
            "W1809",
            "has no module numpy",
            "set X",
        ),
        (
            "[PYTHON_EXCEPTION] thrown:\nModuleNotFoundError: No module named 'numpy'\n",
            "W1809",
            "no module 'numpy'",
            f"PYSPARK_PYTHON={sys.executable}",
        ),
    ],
)
def test_a_failed_job_is_an_error_of_weft_with_a_next_step(text: str, code: str, message: str, help_: str) -> None:
    with pytest.raises(WeftError) as caught, coded_errors():
        raise RuntimeError(text)
    assert caught.value.code == code
    assert message in caught.value.message
    assert help_ in caught.value.help
    assert caught.value.__suppress_context__
    assert len(str(caught.value).splitlines()) <= 3


def test_other_failures_are_left_alone() -> None:
    assert explain_job_failure(ValueError("ModuleNotFoundError: No module named 'numpy'")) is None
    with pytest.raises(KeyError), coded_errors():
        raise KeyError("x")


class Session:
    """As much of a session as says where its workers run."""

    def __init__(self, master: str) -> None:
        self.conf = {"spark.master": master}


class Connected:
    """A Connect session, as far as its class tells."""

    __module__ = "pyspark.sql.connect.session"


def test_another_python_of_a_local_session_is_asked_for_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\necho asked >> {tmp_path}/asked\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    local: Any = Session("local[2]")
    cluster: Any = Session("spark://host:7077")
    connected: Any = Connected()
    monkeypatch.delenv("SPARK_LOCAL_REMOTE", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    for _ in range(2):
        assert workers.missing_modules(local) == ("numpy", "pyarrow")
    assert (tmp_path / "asked").read_text() == "asked\n"
    assert workers.missing_modules(cluster) == workers.missing_modules(connected) == ()
    monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")
    assert workers.missing_modules(connected) == ("numpy", "pyarrow")
    for program in (sys.executable, str(tmp_path / "nothing")):
        monkeypatch.setenv("PYSPARK_PYTHON", program)
        assert workers.missing_modules(local) == ()


@pytest.mark.parametrize(
    ("order", "error", "code", "text"),
    [
        ("CAST(ts AS timestam)", JoinSpecError, "W0205", "<text>:1:12"),
        ("(qty * 1.5", JoinSpecError, "W0201", "this parenthesis is not closed"),
        ("qtty + 1", UnknownColumnError, "W0207", "unknown column 'qtty'"),
        ("1 + 2", UnknownColumnError, "W0101", "the left relation has no column '1 + 2'"),
        ("net (usd", UnknownColumnError, "W0101", "did you mean 'net (usd)'"),
        ("quantity", UnknownColumnError, "W0101", "the left relation has no column 'quantity'"),
    ],
)
def test_an_order_that_is_no_column_is_reported_as_what_it_was_meant_to_be(
    order: str, error: type[WeftError], code: str, text: str
) -> None:
    left: Any = Relation(None, Schema((*LEFT.fields, Field("net (usd)", LONG))), None)  # type: ignore[arg-type]
    with pytest.raises(error, match=re.escape(text)) as caught:
        left.natural_asof(QUOTES, order=(order, "ts"), by="symbol")
    assert caught.value.code == code
