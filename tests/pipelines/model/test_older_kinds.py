"""Kinds and keys of older models are refused by name, with what to write instead."""

from __future__ import annotations

import pytest

from entity_texts import project_text, reading, under
from weft.pipelines.model.normalize import OPERATION_TYPES, REFUSED_KEYS, REFUSED_KINDS


@pytest.mark.parametrize("kind", sorted(REFUSED_KINDS))
def test_an_older_kind_is_refused_with_a_hint(kind: str) -> None:
    text = project_text(f"- {{seq: 10, name: x, type: {kind}, arguments: {{anything: 1}}}}")
    (found,) = reading("project", text).findings
    assert (found.code, under(found)) == ("W1005", kind)
    assert found.message == f"unknown operation type {kind!r}"
    assert found.help == REFUSED_KINDS[kind]


def test_the_hints_of_the_mandates_older_kinds_lead_to_the_five() -> None:
    for kind in (
        "filter",
        "enrich",
        "rollup",
        "add_column",
        "load",
        "join",
        "select",
        "map",
        "sort",
        "union",
    ):
        assert (
            any(f"`{word}`" in REFUSED_KINDS[kind] for word in (*OPERATION_TYPES, "columns", "order_by"))
            or kind == "load"
        )
    assert not set(REFUSED_KINDS) & set(OPERATION_TYPES)


@pytest.mark.parametrize(("kind", "help"), [("updte", "did you mean 'update'?"), ("xyz", "the types are")])
def test_an_unknown_kind_names_the_nearest(kind: str, help: str) -> None:
    (found,) = reading("project", project_text(f"- {{seq: 10, name: x, type: {kind}}}")).findings
    assert found.code == "W1005"
    assert help in found.help


def test_a_kind_that_is_not_a_string_is_of_the_wrong_kind() -> None:
    (found,) = reading("project", project_text("- {seq: 10, name: x, type: 5}")).findings
    assert (found.code, under(found)) == ("W1004", "5")


def test_an_operation_without_a_type_is_reported_with_the_five_types() -> None:
    (found,) = reading("project", project_text("- {seq: 10, name: x}")).findings
    assert found.code == "W1003"
    assert all(repr(kind) in found.help for kind in OPERATION_TYPES)


@pytest.mark.parametrize("key", ["function", "output_column"])
def test_an_older_key_is_refused_with_a_hint(key: str) -> None:
    text = project_text(
        f"- {{seq: 10, name: x, type: aggregate, arguments: {{group_by: [a], aggregations: "
        f"[{{column: s, expression: SUM(a), {key}: b}}]}}}}"
    )
    (found,) = reading("project", text).findings
    assert (found.code, under(found), found.help) == ("W1002", key, REFUSED_KEYS[key])


def test_several_destinations_are_refused_with_a_hint() -> None:
    text = project_text(
        "- {seq: 10, name: x, type: output, arguments: {destination: {path: a}, destinations: [{path: b}]}}"
    )
    (found,) = reading("project", text).findings
    assert "write one output for each" in found.help
