"""Reading: structure, names, places, the two dialects, and the limits."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from weft.core.source import Source
from weft.core.types import BOOLEAN, INTEGER, STRING, Schema
from weft.errors import ArgumentError, ExpressionError
from weft.expr import (
    Binary,
    Call,
    In,
    IsNull,
    Lit,
    Logic,
    Negate,
    Not,
    Placeholder,
    Ref,
    Selector,
    check,
    evaluate,
    parse,
    placeholders,
    references,
    render,
    selectors,
    walk,
)
from weft.expr.ast import Expr, When
from weft.expr.typed import TableScope

X, Y = Ref(None, "x"), Ref(None, "y")
ONE = Lit(1, INTEGER)


def number(value: int) -> Lit:
    return Lit(value, INTEGER)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", Binary("+", ONE, Binary("*", number(2), number(3)))),
        ("x - 1 - 2", Binary("-", Binary("-", X, ONE), number(2))),
        ("NOT x = 1", Not(Binary("=", X, ONE))),
        ("NOT x IS NULL", Not(IsNull(X))),
        ("x IS NOT NULL", Not(IsNull(X))),
        ("x not in (1)", Not(In(X, (ONE,)))),
        ("x AND y OR x", Logic("OR", (Logic("AND", (X, Y)), X))),
        ("x AND y AND x", Logic("AND", (X, Y, X))),
        ("(x AND y) AND x", Logic("AND", (Logic("AND", (X, Y)), X))),
        ("AND(x, y, x)", Logic("AND", (X, Y, X))),
        ("-x * y", Binary("*", Negate(X), Y)),
        ("-1", number(-1)),
        ("-(1)", Negate(ONE)),
        ("x % 1", Binary("%", X, ONE)),
        ("MOD(x, 1)", Binary("%", X, ONE)),
        ("isnull(x)", IsNull(X)),
        ("COUNT(*)", Call("COUNT_ALL", ())),
        ("count_all()", Call("COUNT_ALL", ())),
        ("length(x)", Call("LEN", (X,))),
        ("x == 1", Binary("=", X, ONE)),
        ("x != 1", Binary("<>", X, ONE)),
        ("{{ BIG }}", Selector("BIG")),
        ("{{BIG}} AND x", Logic("AND", (Selector("BIG"), X))),
        ("`a.b`.`c``d`", Ref("a.b", "c`d")),
        ("größe", Ref(None, "größe")),
        ("\u0131s", Ref(None, "\u0131s")),
        ("x\r\n\t= 1", Binary("=", X, ONE)),
    ],
)
def test_a_text_has_its_tree(text: str, tree: Expr) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    "word",
    "nullable trueup falsework notes andy order left right date timestamp interval class group index key "
    "union value values current_date all any row rows first last by as over from where table user".split(),
)
def test_a_word_that_begins_no_operator_is_a_name(word: str) -> None:
    assert parse(word) == Ref(None, word)
    assert parse(f"{word} + 1 = t.{word}") == Binary("=", Binary("+", Ref(None, word), ONE), Ref("t", word))
    assert parse(f"{word}.x IS NULL AND NOT {word}.y") == Logic("AND", (IsNull(Ref(word, "x")), Not(Ref(word, "y"))))


@pytest.mark.parametrize("word", "and or not in is like between case when end null true select".split())
def test_a_reserved_word_is_a_name_after_a_dot_and_in_backticks(word: str) -> None:
    tree = Binary("=", Ref("t", word), Ref(None, word))
    assert parse(f"t.{word} = `{word}`") == tree
    assert parse(render(tree)) == tree


def test_quotes_mean_text_in_a_pipeline_and_names_in_a_fragment() -> None:
    assert parse('"a b"') == Lit("a b", STRING)
    assert parse('"a b"', dialect="fragment") == Ref(None, "a b")
    assert parse("'a b'", dialect="fragment") == Lit("a b", STRING)
    assert parse('"say ""x"""', dialect="fragment") == Ref(None, 'say "x"')


def test_a_fragment_has_placeholders_and_no_selectors() -> None:
    tree = parse("left.x > ? AND r.y < :most", dialect="fragment")
    assert placeholders(tree) == (Placeholder(), Placeholder("most"))
    assert references(tree) == (Ref("left", "x"), Ref("r", "y"))
    with pytest.raises(ExpressionError) as caught:
        parse("{{A}}", dialect="fragment")
    assert caught.value.code == "W0205"


@pytest.mark.parametrize("text", ["x = : a", "x = :", "x = ::a", "x = :1"])
def test_a_colon_needs_a_name_directly_after_it(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, dialect="fragment")
    assert caught.value.diagnostics[0].at is not None


def test_references_and_selectors_come_in_text_order_once_per_occurrence() -> None:
    tree = parse("CASE a.x WHEN b.y THEN {{S}} ELSE IF(a.x IN (1, c), {{T}}, a.x BETWEEN d AND e) END")
    assert [r.name for r in references(tree)] == ["x", "y", "x", "c", "x", "d", "e"]
    assert [s.name for s in selectors(tree)] == ["S", "T"]


def test_every_node_has_its_location() -> None:
    text = "NOT (a.x + 1) * 2 IN (3, -4) OR CASE WHEN b THEN TRIM('z') END LIKE 'q%' AND CAST(c AS date) IS NULL"
    for node in walk(parse(text)):
        assert node.span is not None
        written = text[node.span.start : node.span.end]
        if isinstance(node, When):
            assert written == "WHEN b THEN TRIM('z')"
        else:
            assert parse(written) == node


def test_places_do_not_take_part_in_equality() -> None:
    assert parse("  x=1") == parse("x  =  (1)")
    assert hash(parse("  x=1")) == hash(parse("x  =  (1)"))


def test_a_place_is_given_in_the_file_the_text_came_from() -> None:
    file = "selector: amount > 10 AN status = 'x'\n"
    source = Source(file, 10, len(file) - 1, file="job.yml")
    with pytest.raises(ExpressionError) as caught:
        parse("amount > 10 AN status = 'x'", source=source)
    place = caught.value.diagnostics[0].at
    assert isinstance(place, Source)
    assert (place.file, place.line, place.column) == ("job.yml", 1, 23)
    assert "job.yml:1:23" in str(caught.value)


def test_line_and_column_are_counted_in_the_text() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("x = 1\n  AND y = )")
    assert "<text>:2:11" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["(" * 99 + "x" + ")" * 99, "- " * 98 + "x", "NOT " * 99 + "b", "ABS(" * 99 + "x" + ")" * 99]
)
def test_nesting_up_to_the_limit_works_everywhere(text: str) -> None:
    tree = parse(text)
    typed = check(tree, TableScope({"t": Schema.of(x="integer", b="boolean")}))
    row: dict[Hashable, object] = {("t", 0): 5, ("t", 1): True}
    assert evaluate(typed, row.__getitem__) in {5, -5, False, True}
    assert parse(render(tree)) == tree


@pytest.mark.parametrize(
    "text",
    [
        "(" * 101 + "x" + ")" * 101,
        "(" * 4000 + "x",
        "- " * 4000 + "x",
        "NOT " * 2400 + "x",
        "ABS(" * 2400 + "x",
        "CASE WHEN " * 900 + "x",
        "x IN (" * 1500,
        "1 + " * 2400 + "1",
        "1 || (1 || " * 900 + "1",
        "CAST(" * 1900 + "x",
        "IF(x, 1, " * 1000 + "2",
    ],
)
def test_nesting_beyond_the_limit_is_an_error_and_no_crash(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.code == "W0201"
    assert "nested more than 100 deep" in caught.value.message


@pytest.mark.parametrize(("text", "start"), [("``", 0), ("x + t.``", 6), ('""', 0)])
def test_a_quoted_name_is_not_empty(text: str, start: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, dialect="fragment")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("W0201", "the quoted name is empty")
    assert isinstance(found.at, Source)
    assert (found.at.start, found.at.end) == (start, start + 2)


def test_a_long_chain_of_conditions_is_not_deep() -> None:
    tree = parse(" AND ".join(f"x = {i}" for i in range(600)))
    assert isinstance(tree, Logic)
    assert len(tree.args) == 600
    assert parse(render(tree)) == tree


def test_a_text_over_the_limit_is_refused() -> None:
    assert parse("x" + " " * 9_999) == X
    with pytest.raises(ExpressionError) as caught:
        parse("x" + " " * 10_000)
    assert "10,001 characters" in caught.value.message


def test_what_is_not_a_string_is_an_argument_error() -> None:
    with pytest.raises(ArgumentError):
        parse(5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        parse("x", dialect="sql")  # type: ignore[arg-type]


def test_true_and_one_are_two_literals() -> None:
    assert Lit(value=True, dtype=BOOLEAN) != ONE
    assert parse("1.0") != parse("1.00")
