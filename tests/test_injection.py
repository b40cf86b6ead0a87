"""Hostile texts: each gives a WeftError with a code, or is a plain name or value and nothing more.

Every text that a user can hand over is tried: names, suffixes, new names, the indicator, distances,
fragments, parameters and stored specs.  What is accepted is printed quoted and reads back the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hostile_texts import (
    BROKEN_NAMES,
    EXTREME_VALUES,
    GOOD_FRAGMENTS,
    HOSTILE_DISTANCES,
    HOSTILE_FRAGMENTS,
    HOSTILE_JSON,
    HOSTILE_NAMES,
    LONG_FRAGMENTS,
    SNIPPETS,
)
from weft import expr
from weft.core.names import is_plain_text, parse_name, quote
from weft.core.types import BOOLEAN, LONG, STRING, Field, Schema
from weft.errors import CODES, WeftError
from weft.expr.ast import Call, walk
from weft.joins.explain import explain_resolved
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import infer_natural_keys
from weft.joins.spec import (
    AsofOrder,
    AsofSpec,
    ColumnPredicate,
    ExpressionPredicate,
    IntervalSpec,
    JoinProjection,
    JoinSpec,
    WindowSpec,
    from_dict,
)
from weft.joins.spec.predicates import SIDES
from weft.joins.spec.serial import Serial
from weft.joins.spec.values import Operator

PLAIN = Schema((Field("id", LONG), Field("v", STRING), Field("flag", BOOLEAN)))
OTHER = Schema((Field("id", LONG), Field("w", STRING), Field("ok", BOOLEAN)))
ORDER = AsofOrder("id", "id")
KEPT = JoinProjection(suffixes=("", "_r"))


def outcome(make: Callable[[], Any]) -> Any:
    """Return what `make` gives, or its error; anything that is no WeftError fails the test."""
    try:
        return make()
    except WeftError as error:
        assert error.diagnostics
        assert all(d.code in CODES for d in error.diagnostics)
        assert str(error)
        return error


def refusal(make: Callable[[], Any]) -> WeftError:
    """Return the error that `make` must raise."""
    found = outcome(make)
    assert isinstance(found, WeftError), f"accepted: {found!r}"
    return found


def quoted_schema(name: str) -> Schema:
    return Schema((Field(name, LONG), Field("z", LONG)))


@pytest.mark.parametrize(
    "name",
    [*HOSTILE_NAMES, *BROKEN_NAMES, "a.b; DROP TABLE x", "left.id", "../../etc/passwd"],
    ids=lambda t: repr(t)[:40],
)
def test_a_hostile_name_is_a_column_that_is_not_there(name: str) -> None:
    attempts: tuple[Callable[[], Any], ...] = (
        lambda: resolve_join(JoinSpec([(name, "id")]), PLAIN, OTHER),
        lambda: resolve_join(JoinSpec([("id", name)]), PLAIN, OTHER),
        lambda: resolve_join(JoinSpec([], [ColumnPredicate(name, "=", "id")]), PLAIN, OTHER),
        lambda: resolve_join(JoinSpec([], [ColumnPredicate("id", "=", name)]), PLAIN, OTHER),
        lambda: resolve_join(AsofSpec(order=AsofOrder(name, "id")), PLAIN, OTHER, project=KEPT),
        lambda: resolve_join(AsofSpec(order=AsofOrder("id", name)), PLAIN, OTHER, project=KEPT),
        lambda: resolve_join(AsofSpec(order=ORDER, tie_break=(name,)), PLAIN, OTHER, project=KEPT),
        lambda: infer_natural_keys(PLAIN, OTHER, aliases=((name, "id"),)),
        lambda: infer_natural_keys(PLAIN, OTHER, aliases=(("id", name),)),
        lambda: infer_natural_keys(PLAIN, OTHER, exclude_shared=(name,)),
        lambda: resolve_join(JoinSpec([("id", "id")]), PLAIN, OTHER, project=JoinProjection(keep=[name])),
        lambda: resolve_join(JoinSpec([("id", "id")]), PLAIN, OTHER, project=JoinProjection(drop=[name])),
        lambda: resolve_join(JoinSpec([("id", "id")]), PLAIN, OTHER, project=JoinProjection(rename={name: "x"})),
    )
    for i, attempt in enumerate(attempts):
        found = outcome(attempt)
        if name == "left.id" and i >= 10:
            continue  # the documented way to name a side
        assert isinstance(found, WeftError), f"attempt {i} accepted {name!r}"
        # The order of a join may be an expression; those that are none are refused as such.
        is_order = i in (4, 5) and found.code.startswith("W02")
        assert is_order or found.code in ("W0101", "W0102", "W0303")


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda t: repr(t)[:40])
def test_a_hostile_name_that_a_column_really_has_is_a_plain_name(name: str) -> None:
    schema = quoted_schema(name)
    predicate = ExpressionPredicate(f"left.{quote(name)} = right.{quote(name)}")
    spec = JoinSpec([(quote(name), quote(name))], [predicate])
    join = resolve_join(spec, schema, schema, how="full", project=KEPT)
    assert [(k.left, k.right) for k in join.keys] == [(0, 0)]
    assert join.output[0].name == name
    assert JoinSpec.from_json(spec.to_json()) == spec
    assert parse_name(quote(name)) == name
    shown = name if name.isidentifier() else quote(name)
    assert str(spec).startswith(f"left.{shown} = right.{shown} AND (")
    assert expr.parse(str(predicate), dialect="fragment") == predicate.tree
    assert f"left.{shown}" in str(explain_resolved(join, spec))


@pytest.mark.parametrize("name", [n for n in HOSTILE_NAMES if "." not in n], ids=lambda t: repr(t)[:40])
def test_a_hostile_output_name_stays_the_name_it_is(name: str) -> None:
    spec = JoinSpec([("id", "id")])
    renamed = resolve_join(spec, PLAIN, OTHER, project=JoinProjection(rename={"v": name}))
    assert [c.name for c in renamed.output] == ["id", name, "flag", "w", "ok"]
    suffixed = resolve_join(spec, PLAIN, PLAIN, project=JoinProjection(suffixes=("", name)))
    assert [c.name for c in suffixed.output] == ["id", "v", "flag", f"v{name}", f"flag{name}"]
    marked = resolve_join(spec, PLAIN, OTHER, project=JoinProjection(indicator=quote(name)))
    assert marked.output[-1].name == name
    for join in (renamed, suffixed, marked):
        assert len(join.schema) == len(join.output)


@pytest.mark.parametrize("name", [n for n in BROKEN_NAMES if n.strip(" ")], ids=lambda t: repr(t)[:40])
def test_an_unprintable_output_name_is_refused(name: str) -> None:
    attempts: tuple[Callable[[], Any], ...] = (
        lambda: JoinProjection(rename={"v": name}),
        lambda: JoinProjection(suffixes=("", name)),
        lambda: JoinProjection(suffixes=(name, "")),
        lambda: JoinProjection(indicator=name),
    )
    for attempt in attempts:
        assert refusal(attempt).code in ("W0303", "W0307")


DISTANCES: dict[str, Callable[[str], Any]] = {
    "tolerance": lambda text: AsofSpec(order=ORDER, tolerance=text),
    "offset": lambda text: ColumnPredicate("id", "<", "id", text),
    "lower": lambda text: IntervalSpec(order=ORDER, lower=text, upper=None),
    "upper": lambda text: IntervalSpec(order=ORDER, lower=None, upper=text),
    "size": lambda text: WindowSpec(order=ORDER, window="tumbling", size=text),
    "slide": lambda text: WindowSpec(order=ORDER, window="sliding", size="1h", slide=text),
    "gap": lambda text: WindowSpec(order=ORDER, window="session", gap=text),
}


@pytest.mark.parametrize("text", HOSTILE_DISTANCES, ids=lambda t: repr(t)[:40])
@pytest.mark.parametrize("where", DISTANCES)
def test_a_hostile_distance_is_refused_or_a_number(where: str, text: str) -> None:
    found = outcome(lambda: DISTANCES[where](text))
    if isinstance(found, WeftError):
        assert found.code in ("W0304", "W0305")
        return
    stored = getattr(found, where)
    assert stored == text
    assert stored.replace(".", "", 1).isdecimal()
    assert stored.isascii()


@given(
    st.sampled_from(sorted(DISTANCES)),
    st.text(max_size=30) | st.text(alphabet="0123456789 smhd-+.PTINTERVAL'", max_size=40),
)
def test_any_text_is_a_distance_or_refused(where: str, text: str) -> None:
    found = outcome(lambda: DISTANCES[where](text))
    if not isinstance(found, WeftError):
        assert type(found).from_json(found.to_json()) == found


@given(st.text(max_size=6))
@example("==")
@example("= 1 OR 1 =")
def test_any_other_operator_is_refused(operator: Any) -> None:
    if operator not in get_args(Operator):
        assert refusal(lambda: ColumnPredicate("a", operator, "b")).code == "W0302"


@pytest.mark.parametrize("text", HOSTILE_FRAGMENTS, ids=lambda t: repr(t)[:40])
def test_a_hostile_fragment_is_refused(text: str) -> None:
    found = outcome(lambda: resolve_join(JoinSpec([], [ExpressionPredicate(text)]), PLAIN, OTHER, project=KEPT))
    assert isinstance(found, WeftError), f"{text!r} was accepted as {[c.text for c in found.conditions]}"


def test_there_are_enough_written_attempts() -> None:
    assert len(set(HOSTILE_FRAGMENTS)) + len(set(HOSTILE_DISTANCES)) + len(set(HOSTILE_NAMES)) > 200


@pytest.mark.parametrize("name", LONG_FRAGMENTS)
def test_a_long_or_deep_fragment_is_read_or_refused(name: str) -> None:
    text = LONG_FRAGMENTS[name]
    found = outcome(lambda: resolve_join(JoinSpec([], [ExpressionPredicate(text)]), PLAIN, OTHER, project=KEPT))
    if isinstance(found, WeftError):
        assert len(str(found.diagnostics[0])) < 12_000  # the text can be no longer than 10,000
    else:
        assert len(found.conditions) == 1


def check_fragment(text: str, args: Any = ()) -> None:
    """Check that a fragment is refused, or is a tree of allowed calls that prints and reads back."""
    found = outcome(lambda: ExpressionPredicate(text, args))
    if isinstance(found, WeftError):
        return
    printed = str(found)
    assert expr.parse(printed, dialect="fragment") == found.tree, printed
    assert not expr.placeholders(found.tree)
    for node in walk(found.tree):
        if isinstance(node, expr.Ref):
            assert node.qualifier is None or node.qualifier.casefold() in SIDES
        if isinstance(node, Call):
            assert node.name in expr.FUNCTIONS
    again = outcome(lambda: Serial.from_json(found.to_json()))
    assert again == found
    outcome(lambda: resolve_join(JoinSpec([], [found]), PLAIN, OTHER, project=KEPT))


@given(st.sampled_from(GOOD_FRAGMENTS), st.data())
def test_a_mutated_fragment_is_refused_or_harmless(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 4))
        text = text[:at] + data.draw(st.sampled_from(SNIPPETS) | st.text(max_size=3)) + text[at + cut :]
    check_fragment(text)


@given(st.text(max_size=40) | st.lists(st.sampled_from((*SNIPPETS, *"leftright.idv =<>'1")), max_size=20).map("".join))
def test_any_text_as_a_fragment_is_refused_or_harmless(text: str) -> None:
    check_fragment(text)


@pytest.mark.parametrize("text", GOOD_FRAGMENTS)
def test_the_fragments_that_are_mutated_are_good_ones(text: str) -> None:
    assert isinstance(ExpressionPredicate(text), ExpressionPredicate)


@given(st.text(max_size=30) | st.lists(st.sampled_from(SNIPPETS), max_size=8).map("".join))
@example("x' OR '1' = '1")
@example("'; DROP TABLE orders; --")
@example("\\' OR 1 = 1 --")
@example("{{ x }}")
@example("?")
@example(":x")
def test_a_parameter_stays_one_text_literal(value: str) -> None:
    for text, args in (("left.v = ?", (value,)), ("left.v = :x OR left.v = :x", {"x": value})):
        found = outcome(partial(ExpressionPredicate, text, args))
        assert isinstance(found, ExpressionPredicate)
        literals = [n for n in walk(found.tree) if isinstance(n, expr.Lit)]
        assert {n.value for n in literals} == {value}
        assert "'" + value.replace("'", "''") + "'" in str(found)
        if is_plain_text(value):
            check_fragment(text, args)


@pytest.mark.parametrize("value", EXTREME_VALUES, ids=lambda v: repr(v).partition(" at 0x")[0][:40])
@pytest.mark.parametrize("text", ["left.id = ?", "left.v = ?", "left.v || ? = 'x'"])
def test_an_extreme_parameter_is_a_literal_or_refused(text: str, value: Any) -> None:
    found = outcome(lambda: ExpressionPredicate(text, [value]))
    if not isinstance(found, WeftError):
        outcome(lambda: resolve_join(JoinSpec([], [found]), PLAIN, OTHER, project=KEPT))
        assert ExpressionPredicate.from_json(found.to_json()) == found
        assert hash(found) == hash(ExpressionPredicate(text, [value]))


def test_a_parameter_of_more_digits_than_python_prints_is_refused() -> None:
    assert refusal(lambda: ExpressionPredicate("left.id = ?", [10**5000])).code == "W0301"


@given(st.text(max_size=20).filter(lambda n: n.strip() and is_plain_text(n) and n.casefold() != "z"))
def test_any_name_stays_one_name(name: str) -> None:
    spec = JoinSpec([(quote(name), quote(name))])
    join = resolve_join(spec, quoted_schema(name), quoted_schema(name), project=KEPT)
    assert [(k.left, k.right) for k in join.keys] == [(0, 0)]
    written = name if name.isidentifier() else quote(name)
    assert str(spec) == f"left.{written} = right.{written}"


@pytest.mark.parametrize("text", HOSTILE_JSON, ids=lambda t: t[:70])
def test_a_hostile_stored_spec_is_refused(text: str) -> None:
    assert refusal(lambda: Serial.from_json(text)).code in CODES


@given(st.text(max_size=60) | st.text(alphabet='{}[]":,typejoin$1 ', max_size=60))
def test_any_text_as_a_stored_spec_is_refused(text: str) -> None:
    refusal(lambda: JoinSpec.from_json(text))


def stored() -> Any:
    order = {"type": "order", "left": "id", "right": "id"}
    return st.sampled_from(
        (
            {"type": "join", "equal_keys": [["id", "id"]], "predicates": [{"type": "expression", "expression": "left.id = ?", "args": [1]}]},
            {"type": "asof", "order": order, "tolerance": "5", "tie_break": ["w"], "direction": "nearest"},
            {"type": "interval", "order": order, "lower": "0", "upper": "5"},
            {"type": "projection", "suffixes": ["", "_r"], "drop": ["right.w"], "rename": [["v", "x"]], "indicator": "i"},
        )
    )  # fmt: skip


@given(stored(), st.data())
def test_a_stored_spec_with_a_hostile_value_anywhere_is_refused_or_harmless(form: Any, data: st.DataObject) -> None:
    text = json.dumps(form)
    places = [i for i, c in enumerate(text) if c in '":,[]{}']
    hostile = data.draw(st.sampled_from([*HOSTILE_NAMES[:35], *BROKEN_NAMES, *HOSTILE_DISTANCES[:40], *SNIPPETS]))
    at = data.draw(st.sampled_from(places))
    inserted = data.draw(st.sampled_from([hostile, json.dumps(hostile), json.dumps(hostile)[1:-1]]))
    found = outcome(lambda: Serial.from_json(text[: at + 1] + inserted + text[at + 1 :]))
    if isinstance(found, JoinSpec):
        outcome(lambda: resolve_join(found, PLAIN, OTHER, project=KEPT))
        assert from_dict(found.to_dict()) == found
    elif isinstance(found, JoinProjection):
        outcome(lambda: resolve_join(JoinSpec([("id", "id")]), PLAIN, OTHER, project=found))
