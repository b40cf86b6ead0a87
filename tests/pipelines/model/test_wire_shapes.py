"""Both forms of an operation mean the same, and so do the short forms of references and expressions."""

from __future__ import annotations

import pytest

from entity_texts import entity, operation, project, project_text, reading, reported, under
from weft.core.source import Source
from weft.pipelines.model.build import entity_from_dict
from weft.pipelines.model.operation import Append, Delete, Output, Update
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import PERIOD_END, AsOfDay, DatasetRef, LocatedText

FIRST = """
- seq: 10
  name: drop zeros
  type: delete
  selector: "amount = 0"
"""


@pytest.mark.parametrize(
    "second",
    [
        '- {order: 10, alias: drop zeros, type: delete, parameters: {selector: "amount = 0"}}',
        '- {order: 10, name: drop zeros, type: delete, parameters: {}, selector: "amount = 0"}',
        '- {seq: 10, alias: drop zeros, type: delete, arguments: {selector: "amount = 0"}}',
        '- {seq: 10, order: 10, name: drop zeros, type: delete, selector: {source: "amount = 0"}}',
        '- {seq: 10, name: drop zeros, type: delete, selector: "amount = 0", parameters: {selector: "amount = 0"}}',
    ],
)
def test_both_forms_are_one_operation(second: str) -> None:
    assert operation(second) == operation(FIRST)


def test_the_places_of_the_second_form_are_found_under_the_canonical_names() -> None:
    text = '- {order: 10, type: delete, parameters: {selector: "amount = 0"}}'
    found = operation(text)
    assert found.selector is not None
    at = found.selector.at
    assert at is not None
    inner = at.inner("amount = 0", 0, 6)
    assert inner.text[inner.start : inner.end] == "amount"
    seq = found.at.of("seq")
    assert seq is not None
    assert seq.text[seq.start : seq.end] == "10"


def test_an_operation_without_a_name_is_named_after_its_kind_in_the_second_form() -> None:
    assert operation("- {order: 10, type: delete}").name == "delete 10"
    assert reported("project", project_text("- {seq: 10, type: delete}")) == [("W1003", "{seq: 10, type: delete}")]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("- {seq: 10, order: 20, name: d, type: delete}", ["20", "10"]),
        (
            '- {seq: 10, name: d, type: delete, selector: "a = 1", arguments: {selector: "a = 2"}}',
            ['"a = 2"', '"a = 1"'],
        ),
        ("- {seq: 10, name: d, type: delete, arguments: {}, parameters: {x: 1}}", ["{x: 1}", "{}"]),
    ],
)
def test_two_forms_that_differ_are_reported_at_both_locations(text: str, places: list[str]) -> None:
    found = [f for f in reading("project", project_text(text)).findings if f.code == "W1006"]
    assert [under(f) for f in found] == places
    assert all("the other is in line 4" in f.help for f in found)


def test_references_may_be_short_and_pinned() -> None:
    short = project(
        """
        - seq: 10
          name: u
          type: update
          arguments:
            joins: [{alias: fx, dataset: exchange_rates@2, on: "a = fx.b"}]
            assignments: [{column: c, expression: {source: fx.rate}}]
        - {seq: 20, name: a, type: append, arguments: {source: budgets@3}}
        - seq: 25
          name: s
          type: append
          arguments:
            source: budgets@3
            aggregation: {group_by: [x], aggregations: [{column: c, expression: {source: SUM(y)}}]}
        - {seq: 30, name: o, type: output, arguments: {destination: {datasource: warehouse, table: t}}}
        """,
        head="project: p\ninput: gl@3",
    )
    long = project(
        """
        - seq: 10
          name: u
          type: update
          arguments:
            joins: [{alias: fx, dataset_id: exchange_rates, dataset_version: 2, on: "a = fx.b"}]
            assignments: [{column: c, expression: fx.rate}]
        - {seq: 20, name: a, type: append, arguments: {source: {dataset_id: budgets, dataset_version: 3}}}
        - seq: 25
          name: s
          type: append
          arguments:
            source: {dataset_id: budgets, dataset_version: 3}
            aggregation: {group_by: [x], aggregations: [{column: c, expression: SUM(y)}]}
        - {seq: 30, name: o, type: output, arguments: {destination: {datasource_id: warehouse, table: t}}}
        """,
        head="name: p\ninput_dataset_id: gl\ninput_dataset_version: 3",
    )
    assert short == long
    assert short.input == DatasetRef("gl", 3)
    assert isinstance(short.operations[1].arguments, Append)
    assert short.operations[1].arguments.source == DatasetRef("budgets", 3)


def test_the_place_of_a_pinned_reference_is_its_name() -> None:
    found = project("- {seq: 1, name: d, type: delete}", head='name: p\ninput: "gl@3"')
    assert isinstance(found.input.at, Source)
    assert found.input.at.text[found.input.at.start : found.input.at.end] == "gl"


@pytest.mark.parametrize(
    ("head", "code", "place"),
    [
        ("name: p\ninput: gl@3\ninput_dataset_version: 2", "W1008", "2"),
        ("name: p\ninput: gl\ninput_dataset_id: other", "W1006", "gl"),
    ],
)
def test_references_that_contradict_each_other_are_reported(head: str, code: str, place: str) -> None:
    assert reported("project", project_text("- {seq: 1, name: d, type: delete}", head)) == [(code, place)]


def test_the_same_pin_twice_is_valid() -> None:
    head = "name: p\ninput: gl@3\ninput_dataset_version: 3"
    assert project("- {seq: 1, name: d, type: delete}", head).input == DatasetRef("gl", 3)


def test_a_number_or_a_word_is_an_expression() -> None:
    found = operation(
        "- {seq: 1, name: u, type: update, arguments: {assignments: [{column: a, expression: 0}, "
        "{column: b, expression: 1.50}, {column: c, expression: true}]}}"
    )
    assert isinstance(found.arguments, Update)
    assert [a.expression.text for a in found.arguments.assignments] == ["0", "1.50", "true"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("period_end", PERIOD_END),
        ("2026-01-31", AsOfDay("date", date=__import__("datetime").date(2026, 1, 31))),
        ("posting_date", AsOfDay("column", column="posting_date")),
        ("2026-01-31_close", AsOfDay("column", column="2026-01-31_close")),
    ],
)
def test_as_of_is_a_word_a_date_or_a_column(given: str, meant: AsOfDay) -> None:
    found = operation(
        "- {seq: 1, name: u, type: update, arguments: {joins: "
        f"[{{alias: x, dataset: d, on: a, as_of: {given}}}], assignments: [{{column: a, expression: b}}]}}}}"
    )
    assert isinstance(found.arguments, Update)
    assert found.arguments.joins[0].as_of == meant


def test_a_delete_needs_no_arguments_and_an_update_does() -> None:
    assert operation("- {seq: 1, name: d, type: delete}").arguments == Delete()
    found = reading("project", project_text("- {seq: 1, name: u, type: update}"))
    assert [f.message for f in found.findings] == ["an update needs 'arguments'"]


def test_all_keys_of_an_output_and_a_join_are_read() -> None:
    found = operation(
        """
        - seq: 1
          id: op-x
          name: o
          description: writes
          type: output
          checkpoint: true
          selector:
          arguments:
            destination: {path: out/x, format: csv, schema: s}
            columns: [a, _period]
            include_deleted: true
            register_as_dataset: gl_usd
            mode: merge
            order_by: [a, -b]
        """
    )
    assert (found.id, found.description, found.checkpoint, found.selector) == ("op-x", "writes", True, None)
    assert isinstance(found.arguments, Output)
    assert found.arguments.columns == (LocatedText("a"), LocatedText("_period"))
    assert found.arguments.order_by == (LocatedText("a"), LocatedText("-b"))
    assert (found.arguments.mode, found.arguments.include_deleted) == ("merge", True)


def test_operations_are_in_the_order_of_their_seq() -> None:
    found = project("- {seq: 30, name: c, type: delete}\n- {seq: 10, name: a, type: delete}")
    assert [op.seq for op in found.operations] == [10, 30]
    assert found.operation(30) == found.operations[1]
    assert found.operation(20) is None


def test_gaps_are_allowed_and_doubles_are_not() -> None:
    twice = "- {seq: 10, name: a, type: delete}\n- {order: 10, type: delete}\n- {seq: -1, name: b, type: delete}"
    assert reported("project", project_text(twice)) == [("W1010", "-1"), ("W1009", "10")]


def test_an_invalid_seq_between_two_that_follow_each_other_is_reported_once() -> None:
    """No number is free for it, so the operation is left out; it must not take that of the next one."""
    close = "- {seq: 10, name: a, type: delete}\n- {seq: 0, name: b, type: delete}\n- {seq: 11, name: c, type: delete}"
    assert reported("project", project_text(close)) == [("W1010", "0")]


@pytest.mark.parametrize(
    "head", ["project:\n  name: p\n  input: gl\n  ", "project: p\ninput: gl\n", "name: p\ninput: gl\n"]
)
def test_the_root_key_may_hold_the_mapping_the_name_or_be_left_out(head: str) -> None:
    found: Project = entity("project", f"{head}operations: [{{seq: 1, name: d, type: delete}}]")
    assert (found.name, found.input) == ("p", DatasetRef("gl"))


def test_what_a_project_says_reads_back() -> None:
    found = project(
        """
        - seq: 10
          name: u
          type: update
          selector: "{{EU}}"
          arguments:
            joins:
              - {alias: fx, dataset: r@2, on: "a = fx.b", table: t, as_of: period_end, on_multiple: first,
                 order_by: [-b], broadcast: false, nulls_equal: true}
            assignments: [{column: c, expression: fx.rate}]
        - seq: 20
          name: g
          type: aggregate
          arguments: {group_by: [a], aggregations: [{column: s, expression: SUM(c)}], include_summaries: true}
        - seq: 30
          name: a
          type: append
          arguments:
            source: b
            source_selector: "x = 1"
            aggregation: {group_by: [x], aggregations: [{column: c, expression: SUM(y)}]}
        - {seq: 31, name: a2, type: append, arguments: {source: b, columns: {c: x + 1}}}
        - {seq: 40, name: d, type: delete, selector: "c = 0", checkpoint: true}
        - seq: 50
          name: o
          type: output
          arguments: {destination: {path: out, format: csv}, columns: [], mode: append, order_by: [a]}
        """,
        head="""
        name: p
        input: gl@3
        owner: ann
        visibility: public
        calendar: fiscal
        checkpoint_every: 5
        materialization: runtime
        selectors: {EU: "a = 'EU'"}
        resolver_overrides: {gl: files}
        """,
    )
    again = entity_from_dict(Project, found.to_dict())
    assert again == found
    assert again.fingerprint() == found.fingerprint()
    assert hash(again) == hash(found)
