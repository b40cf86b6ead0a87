"""Column names: written, folded, quoted, nearly right."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.core.names import (
    LEFT,
    RIGHT,
    canonical_name,
    find_similar,
    fold,
    format_list,
    format_name,
    internal_name,
    is_plain_text,
    parse_name,
    quote,
)
from weft.errors import ArgumentError, JoinSpecError, WeftError

names = st.text(min_size=1, max_size=12).filter(is_plain_text)
tricky = st.text(alphabet="a.` \"'$é", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("id", "id"),
        ("order id", "order id"),
        ("class", "class"),
        ("`id`", "id"),
        ("`a.b`", "a.b"),
        ("`c``d`", "c`d"),
        ("c`d", "c`d"),
        ("` `", " "),
        ("`", "`"),
        ("``", "``"),
        ("`a`b`", "`a`b`"),  # no quoted name, and without a dot it can only be meant literally
        ("Straße", "Straße"),
        (" id ", " id "),
    ],
)
def test_a_written_name_means_one_column(written: str, name: str) -> None:
    assert parse_name(written) == name


@given(names | tricky)
@example("`a`")  # backticks that are part of the name
def test_the_canonical_text_of_a_name_reads_back(name: str) -> None:
    assert parse_name(canonical_name(name)) == name
    assert parse_name(quote(name)) == name


@given(names | tricky)
def test_the_canonical_text_is_the_name_where_that_is_enough(name: str) -> None:
    assert canonical_name(name) in (name, quote(name))
    assert canonical_name(parse_name(canonical_name(name))) == canonical_name(name)


@given(st.text())
def test_any_text_is_a_name_or_an_error_of_ours(text: str) -> None:
    try:
        name = parse_name(text)
    except WeftError as refused:
        assert refused.code == "W0303"
        assert refused.help
    else:
        assert parse_name(canonical_name(name)) == name


@pytest.mark.parametrize("written", ["", " ", "\t", "a\nb", "a\x00", "\x1b[0m", "a\x7f", "\ud800"])
def test_an_empty_name_or_a_control_character_is_refused(written: str) -> None:
    with pytest.raises(JoinSpecError, match="empty or contains a control character") as caught:
        parse_name(written, what="left key")
    assert caught.value.message.startswith(f"left key {written!r}")


@pytest.mark.parametrize("written", ["t.id", ".", "a.", "`a.b", "`a`.`b`"])
def test_a_dot_outside_backticks_is_refused_with_the_quoted_form(written: str) -> None:
    with pytest.raises(JoinSpecError, match="contains a dot") as caught:
        parse_name(written)
    assert quote(written) in caught.value.help


@pytest.mark.parametrize("written", [None, 1, b"id", ["id"], ("id",)])
def test_a_name_that_is_not_a_string_is_refused(written: object) -> None:
    with pytest.raises(ArgumentError, match=f"must be a string, not {type(written).__name__}"):
        parse_name(written)


@given(st.text(max_size=8))
def test_a_name_in_an_expression_is_bare_only_when_it_is_a_word(name: str) -> None:
    assert format_name(name) == (name if name.isidentifier() else quote(name))


@pytest.mark.parametrize(("text", "plain"), [("größe µ", True), ("", True), ("a\x1f", False), ("\udfff", False)])
def test_plain_text_has_no_control_character_and_no_half_of_one(text: str, *, plain: bool) -> None:
    assert is_plain_text(text) is plain


def test_names_fold_unless_case_counts() -> None:
    assert fold("Id") == fold("ID") == "id"
    assert fold("Id", case_sensitive=True) == "Id"


def test_internal_names_of_the_two_sides_never_meet() -> None:
    made = {internal_name(side, i) for side in (LEFT, RIGHT) for i in range(200)}
    assert len(made) == 400


def test_near_names_come_nearest_first_and_ignore_case() -> None:
    assert find_similar("CUSTOMER", ["order_id", "customer_id", "Customer"]) == ("Customer", "customer_id")
    assert find_similar("zzz", ["order_id"]) == ()
    assert find_similar("a", []) == ()
    assert len(find_similar("name", [f"name{i}" for i in range(9)])) == 3
    assert len(find_similar("name", [f"name{i}" for i in range(9)], most=1)) == 1


@given(st.text(max_size=10), st.lists(st.text(max_size=10), max_size=6))
def test_near_names_are_some_of_the_available_ones(wanted: str, available: list[str]) -> None:
    assert set(find_similar(wanted, available)) <= set(available)


def test_a_list_of_names_is_quoted_and_cut() -> None:
    assert format_list([]) == "none"
    assert format_list(["a", "b c"]) == "'a', 'b c'"
    assert format_list("abcdef", most=4) == "'a', 'b', 'c', 'd' and 2 more"
    assert format_list("abcd", most=4) == "'a', 'b', 'c', 'd'"
