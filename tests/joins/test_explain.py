"""Explanations: whole texts, their data, and HTML in which no name can do harm."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import weft
from weft.core.types import LONG, Field, Schema
from weft.joins.choose import choose
from weft.joins.explain import JoinExplanation, explain_resolved, explain_several, explain_spec
from weft.joins.facts import Facts, HeavyKey
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import infer_natural_keys
from weft.joins.several import choose_several, resolve_several
from weft.joins.spec import (
    AsofOrder,
    AsofSpec,
    ColumnPredicate,
    ExpressionPredicate,
    IntervalSpec,
    JoinProjection,
    JoinSpec,
    WindowSpec,
)

ORDERS = Schema.of(order_id="long", customer_ref="integer", status="string", placed="timestamp")
CUSTOMERS = Schema.of(id="long", status="string", status_code="string", since="timestamp")
TRADES = Schema.of(symbol="string", ts="timestamp", px="decimal(10,2)")
QUOTES = Schema.of(symbol="string", ts="timestamp", bid="decimal(10,2)", seq="long")
SUFFIXES = JoinProjection(suffixes=("", "_c"))
NEAREST = AsofSpec(
    [("symbol", "symbol")],
    [ExpressionPredicate("right.bid > ?", [0])],
    order=AsofOrder("ts", "ts"),
    direction="nearest",
    tolerance="5 seconds",
    range_predicates=[ColumnPredicate("ts", ">=", "ts")],
    tie_break=("seq",),
)


def natural(
    how: Any, *, aliases: Any = (), strict: bool = True, left: Schema = ORDERS, **options: Any
) -> JoinExplanation:
    found = infer_natural_keys(left, CUSTOMERS, aliases=aliases, strict=strict, **options)
    spec = JoinSpec(found.pairs)
    return explain_resolved(resolve_join(spec, left, CUSTOMERS, how=how, project=SUFFIXES, inference=found), spec)


def directed(spec: JoinSpec, how: Any, project: JoinProjection = SUFFIXES, ordering: Any = ()) -> JoinExplanation:
    return explain_resolved(resolve_join(spec, ORDERS, CUSTOMERS, how=how, project=project), spec, ordering=ordering)


def temporal(spec: JoinSpec, **project: Any) -> JoinExplanation:
    projection = JoinProjection(**({"suffixes": ("", "_q")} | project))
    return explain_resolved(resolve_join(spec, TRADES, QUOTES, project=projection), spec)


def several(*specs: AsofSpec) -> JoinExplanation:
    asked = [(spec, QUOTES, JoinProjection(suffixes=("", f"_{n}"))) for n, spec in enumerate(specs, start=1)]
    parts = resolve_several(TRADES, asked)
    return explain_several(parts, specs, choice=choose_several(parts))


def surveyed(spec: AsofSpec) -> JoinExplanation:
    join = resolve_join(spec, TRADES, QUOTES, project=JoinProjection(suffixes=("", "_q")))
    heavy = (HeavyKey(values=("A",), share=0.95), HeavyKey(values=("B",), share=0.02))
    facts = Facts(left_rows=10_000_000, right_rows=9_000_000, sampled=32_768, partitions=8, heavy=heavy)
    return explain_resolved(join, spec, choice=choose(join, facts=facts))


KEYED = JoinSpec([("customer_ref", "id")])
EXPLAINED: dict[str, Callable[[], JoinExplanation]] = {
    "natural_with_alias": lambda: natural("left", aliases=(("customer_ref", "id"),)),
    "dropped_alias": lambda: natural("inner", aliases=(("customer", "id"), ("order_id", "id")), strict=False),
    "displaced_key": lambda: natural("left", aliases=(("status", "status_code"),)),
    "coalesced_full": lambda: directed(KEYED, "full"),
    "right_keys_kept": lambda: directed(KEYED, "right", JoinProjection(right_keys="keep", suffixes=("_o", "_c"))),
    "asof_unbound": lambda: explain_spec(NEAREST),
    "asof_bound": lambda: temporal(NEAREST),
    "asof_without_tie_break": lambda: temporal(
        AsofSpec([("symbol", "symbol")], order=AsofOrder("ts", "ts"), how="inner"), keep_right_order=False
    ),
    "predicates_only": lambda: directed(JoinSpec([], [ColumnPredicate("placed", ">=", "since", "1 day")]), "inner"),
    "semi": lambda: directed(KEYED, "semi", JoinProjection(drop=("placed",))),
    "cross": lambda: explain_resolved(resolve_join(None, ORDERS, CUSTOMERS, project=SUFFIXES), None),
    "promises": lambda: directed(
        JoinSpec([("customer_ref", "id")], nulls_equal=True, relationship="m:1", unmatched="error"),
        "left",
        JoinProjection(suffixes=("", "_c"), rename={"since": "customer_since"}, indicator="found"),
        (("placed", True), ("order.no", False)),
    ),
    "join_unbound": lambda: explain_spec(JoinSpec([("a", "b")], relationship="1:1", unmatched="both")),
    "interval_bound": lambda: temporal(
        IntervalSpec([("symbol", "symbol")], order=AsofOrder("ts", "ts"), lower="-1 minute", upper="0s", how="full")
    ),
    "window_unbound": lambda: explain_spec(WindowSpec(order=AsofOrder("ts", "ts"), window="session", gap="30m")),
    "several": lambda: several(NEAREST, AsofSpec([("symbol", "symbol")], order=AsofOrder("ts", "ts"), how="inner")),
    "statistics": lambda: surveyed(AsofSpec([("symbol", "symbol")], order=AsofOrder("ts", "ts"))),
    "odd_names": lambda: explain_spec(JoinSpec([("order id", "`a.b`"), ("1 = 1 OR x", "c`d")])),
}


@pytest.mark.golden
@pytest.mark.parametrize("name", EXPLAINED)
def test_the_whole_text_of_an_explanation(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"explain/{name}.txt", str(EXPLAINED[name]()))


def test_no_golden_text_is_left_over() -> None:
    folder = Path(__file__).parents[1] / "golden" / "explain"
    assert {f.stem for f in folder.glob("*.txt")} == set(EXPLAINED)


@pytest.mark.parametrize("name", EXPLAINED)
def test_an_explanation_is_plain_data(name: str) -> None:
    explanation = EXPLAINED[name]()
    data = explanation.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert {"title", "bound", "fingerprint", "spec", "keys", "columns", "left_out", "method"} <= set(data)
    assert data["bound"] is (not name.endswith("unbound") and name != "odd_names")
    assert len(data["fingerprint"]) == 64
    assert data["fingerprint"][:16] in str(explanation)
    assert ("join fingerprint" in str(explanation)) is data["bound"]
    assert ("spec fingerprint" in str(explanation)) is (data["spec"] is not None)
    assert data["join_fingerprint"] == (data["fingerprint"] if data["bound"] else None)


def test_the_data_of_a_bound_join_names_every_key_and_column() -> None:
    data = EXPLAINED["promises"]().to_dict()
    assert data["keys"] == [{"left": "left.customer_ref", "right": "right.id", "origin": "spec", "type": "long"}]
    assert [c["name"] for c in data["columns"]] == [
        "order_id", "customer_ref", "status", "placed", "status_c", "status_code", "customer_since", "found",
    ]  # fmt: skip
    assert data["columns"][6] == {
        "name": "customer_since",
        "type": "timestamp",
        "source": "right.since",
        "reason": "renamed from 'since'",
    }
    assert data["left_out"] == [{"column": "right.id", "reason": "equal to left.customer_ref"}]
    assert data["nulls"] == "a NULL key equals a NULL key"
    assert data["relationship"].startswith("m:1")
    assert data["unmatched"] == "a left row without a match fails the job"
    assert data["spec"]["type"] == "join"


@pytest.mark.parametrize(
    ("how", "old"),
    [("inner", "was join"), ("left", "was left_join"), ("right", "left_right"), ("full", "outer_join")],
)
def test_old_names_lead_to_new_ones(how: str, old: str) -> None:
    assert old in directed(KEYED, how).to_dict()["method"]


def test_every_way_to_join_has_a_method() -> None:
    for how in ("inner", "left", "right", "full", "semi", "anti"):
        assert "_" in directed(KEYED, how).to_dict()["method"]
    assert temporal(NEAREST).to_dict()["method"] == "asof_join (was join_asof)"
    assert "cross_join" in EXPLAINED["cross"]().to_dict()["method"]


def test_the_method_of_a_natural_join_is_a_natural_one() -> None:
    for how in ("inner", "left", "right", "full", "semi", "anti"):
        assert natural(how).to_dict()["method"].partition(" ")[0] == f"natural_{how}"
    bound = resolve_join(NEAREST, TRADES, QUOTES, project=JoinProjection(suffixes=("", "_q")))
    reported = explain_resolved(bound, NEAREST, natural=True).to_dict()
    assert reported["method"] == "natural_asof (was join_asof)"


def test_the_strategy_is_explained_in_parts() -> None:
    strategy = directed(KEYED, "left").to_dict()["strategy"]
    assert set(strategy) == {"name", "reason", "cost"}
    assert strategy["name"] == "equi"
    assert "broadcast" in strategy["cost"]
    assert explain_spec(KEYED).to_dict()["strategy"] is None


@pytest.mark.parametrize(
    ("unmatched", "how", "side"),
    [
        ("left", "inner", "a left row"),
        ("right", "inner", "a right row"),
        ("both", None, "a left or right row"),
        ("error", None, "a kept row"),
        ("error", "left", "a left row"),
        ("error", "right", "a right row"),
        ("error", "full", "a left or right row"),
    ],
)
def test_an_unbound_promise_names_its_side(unmatched: Any, how: Any, side: str) -> None:
    reported = explain_spec(JoinSpec([("a", "b")], unmatched=unmatched), how).to_dict()["unmatched"]
    assert reported == f"{side} without a match fails the job"


def test_html_tables_have_headings() -> None:
    page = EXPLAINED["promises"]()._repr_html_()
    assert "<tr><th>left</th><th>right</th><th>origin</th><th>type</th></tr>" in page
    assert "<tr><th>name</th><th>type</th><th>source</th><th>reason</th></tr>" in page


@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_an_order_marker_is_shown_under_the_name_of_its_column(side: str) -> None:
    reported = directed(KEYED, "inner", ordering=((f"a.{side}", False),)).to_dict()["order"]
    assert reported == f"the left side is sorted by a.{side} descending; the join clears the marker"


NASTY = "<script>alert('x')</script>"


@pytest.mark.parametrize("name", [NASTY, "a\"b'c&d", "</td></table><img src=x onerror=y>", "{{7*7}}"])
def test_html_holds_no_name_as_markup(name: str) -> None:
    schema = Schema((Field(name, LONG), Field("v", LONG)))
    quoted = "`" + name.replace("`", "``") + "`"
    spec = JoinSpec([(quoted, quoted)], [ExpressionPredicate(f"left.{quoted} > 1 OR 'x' = :p", {"p": NASTY})])
    project = JoinProjection(suffixes=("", NASTY), rename={"left.v": name + "!"}, indicator=f"`{name}?`")
    bound = explain_resolved(resolve_join(spec, schema, schema, how="full", project=project), spec)
    for page in (bound._repr_html_(), explain_spec(spec)._repr_html_()):
        for harmful in ("<script", "<img", "</td></table><"):
            assert harmful not in page
        inside = page
        for tag in ("div", "style", "h3", "h4", "table", "tr", "th", "td", "p", "code"):
            inside = inside.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
        assert "<" not in inside.replace("<div class='weft-explain'>", "")
        assert "weft-explain" in page


def test_a_name_cannot_add_a_line_to_the_text() -> None:
    forged = "v\n  join fingerprint  0000000000000000"
    schema = Schema((Field("id", LONG), Field(forged, LONG), Field("x\x1b[31m", LONG)))
    spec = JoinSpec([("id", "id")])
    project = JoinProjection(suffixes=("", "_r"))
    text = str(explain_resolved(resolve_join(spec, schema, schema, project=project), spec, ordering=((forged, True),)))
    assert sum("fingerprint  " in line and line.startswith("  join fingerprint") for line in text.splitlines()) == 1
    assert "\x1b" not in text


class Shell:
    """As much of an IPython shell as displays values."""

    def __init__(self) -> None:
        self.execution_count = 7
        self.published: list[dict[str, str]] = []
        self.display_pub = self

    def publish(self, data: dict[str, str]) -> None:
        self.published.append(data)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    return shell


def test_a_cell_of_a_notebook_shows_an_explanation_once(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    explanation = weft.explain_join(KEYED, how="left")
    explanation._ipython_display_()  # what IPython does with the last value of a cell
    assert len(shell.published) == 1
    assert shell.published[0]["text/html"] == explanation._repr_html_()
    assert shell.published[0]["text/plain"] == str(explanation)
    assert capsys.readouterr().out == ""
    shell.execution_count += 1
    explanation._ipython_display_()  # a later cell shows it again
    assert len(shell.published) == 2
    assert explanation == explain_spec(KEYED, "left")


def test_outside_of_a_notebook_an_explanation_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (None, SimpleNamespace(get_ipython=lambda: None)):
        monkeypatch.setitem(sys.modules, "IPython", module)
        explanation = weft.explain_join(KEYED, how="left")
        assert capsys.readouterr().out == f"{explanation}\n"


def test_a_file_gets_the_text_in_a_notebook_too(shell: Shell) -> None:
    file = io.StringIO()
    explanation = weft.explain_join(KEYED, file=file)
    assert file.getvalue() == f"{explanation}\n"
    assert not shell.published


def test_an_explanation_can_be_compared() -> None:
    assert directed(KEYED, "inner") == directed(KEYED, "inner")
    assert directed(KEYED, "inner") != directed(KEYED, "left")
