"""update before any data is read: targets, types, order of assignments, selectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines import COUNTRIES, CUSTOMERS, WRITE_ALL, Site, join, site, update
from weft.core.source import Source
from weft.pipelines.plan.operations.resolved import ACTIVE, ResolvedUpdate
from weft.pipelines.plan.operations.update import Levels

GL = "datasets/gl.v1.yml"


def made(tmp_path: Path, *operations: str, **options: object) -> Site:
    return site(tmp_path, [*operations, WRITE_ALL], **options)  # type: ignore[arg-type]  # as site takes them


def first(found: Site) -> ResolvedUpdate:
    op = found.plan().operations[0]
    assert isinstance(op, ResolvedUpdate)
    return op


def marked(found: Site) -> list[str]:
    places = [f.diagnostic.at for f in found.failures()]
    return [p.text[p.start : p.end] for p in places if isinstance(p, Source)]


# Types: a new column takes the expression's, an existing one keeps its own.


@pytest.mark.parametrize(
    ("column", "expression", "dtype"),
    [
        ("x", "amount_local * 2", "decimal(20,2)"),
        ("x", "LEN(currency)", "long"),
        ("x", "1", "long"),
        ("x", "1.5e0", "double"),
        ("x", "'text'", "string"),
        ("x", "posting_date", "date"),
        ("x", "amount_local > 1", "boolean"),
        ("x", "CAST(NULL AS string)", "string"),
        ("_account_active", "accounts.is_active", "boolean"),
        ("amount_local", "amount_local * 1.05", "decimal(18,2)"),
        ("amount_local", "line_number", "decimal(18,2)"),
        ("amount_local", "NULL", "decimal(18,2)"),
        ("line_number", "LEN(currency)", "long"),
        ("line_number", "line_number + 1", "long"),
        ("_labels", "LABEL_SET(_labels, 'region', 'EMEA')", "map<string,string>"),
    ],
)
def test_a_value_is_stored_in_the_type_of_its_column(tmp_path: Path, column: str, expression: str, dtype: str) -> None:
    op = first(made(tmp_path, update(**{column: expression})))
    (assignment,) = op.assignments
    assert str(assignment.dtype) == dtype
    assert str(assignment.typed.dtype) == dtype
    assert str(op.after.schema[column].dtype) == dtype


@pytest.mark.parametrize(
    ("column", "expression", "code", "message"),
    [
        (
            "amount_local",
            "1.5e0",
            "W0209",
            "column 'amount_local' is decimal(18,2), the expression gives double",
        ),
        (
            "line_number",
            "amount_local",
            "W0209",
            "column 'line_number' is long, the expression gives decimal(18,2)",
        ),
        ("currency", "line_number", "W0209", "column 'currency' is string, the expression gives long"),
        (
            "amount_local",
            "currency",
            "W0209",
            "column 'amount_local' is decimal(18,2), the expression gives string",
        ),
        (
            "posting_date",
            "'2026-01-01'",
            "W0209",
            "column 'posting_date' is date, the expression gives string",
        ),
        ("x", "NULL", "W1404", "the type of the new column 'x' cannot be inferred from NULL"),
        (
            "x",
            "currency + 1",
            "W0209",
            "the left side of + is string, the right side integer: + requires numbers",
        ),
        (
            "_labels",
            "CONCAT(_labels, 'x')",
            "W1407",
            "_labels is a map of strings, but the expression is not a map",
        ),
        ("_labels", "'x'", "W1407", "_labels is a map of strings, but the expression is not a map"),
        ("_labels", "LABEL_SET(_lables, 'a', 'b')", "W0207", "unknown column '_lables'"),
        ("_deleted", "TRUE", "W1402", "column '_deleted' is Weft's own"),
        ("_row_id", "'x'", "W1402", "column '_row_id' is Weft's own"),
        ("_period", "'x'", "W1402", "column '_period' is Weft's own"),
        ("_valid_from", "TODAY()", "W1402", "column '_valid_from' is Weft's own"),
        ("__weft_x", "1", "W1402", "column '__weft_x' is Weft's own"),
        ("Currency", "'EUR'", "W1409", "column 'Currency' differs from 'currency' only in case"),
        ("x", "amont", "W0207", "unknown column 'amont'"),
        (
            "x",
            "tranactions.currency",
            "W1208",
            "Unknown column 'tranactions.currency' in assignment expression",
        ),
        ("x", "transactions.curency", "W0207", "'transactions' has no column 'curency'"),
        ("x", "accounts.typ", "W0207", "lookup 'accounts' has no column 'typ'"),
        ("x", "SUM(amount_local)", "W0210", "SUM is an aggregate function, which is not allowed here"),
        (
            "x",
            "amount_local +",
            "W0201",
            "expected a value: a column, a number, a string, a function or (, found the end of the expression",
        ),
        ("x", "{{NOBODY}}", "W0212", "unknown selector 'NOBODY'"),
    ],
)
def test_a_value_that_does_not_fit_is_reported_with_its_location(
    tmp_path: Path, column: str, expression: str, code: str, message: str
) -> None:
    found = made(tmp_path, update(**{column: expression}))
    assert found.messages() == [(code, message)]
    assert all(f.operation_order == 10 for f in found.failures())
    assert code == "W0201" or all(f.diagnostic.help for f in found.failures())
    assert marked(found)


def test_a_column_name_that_is_none_is_refused(tmp_path: Path) -> None:
    text = update(x="1").replace("column: x", "column: a b")
    assert made(tmp_path, text).messages()[0][0] in ("W1402", "W1017")


def test_names_may_be_bare_or_qualified_with_the_table_or_the_dataset(tmp_path: Path) -> None:
    op = first(made(tmp_path, update(x="amount_local + transactions.amount_local + gl.amount_local")))
    assert op.assignments[0].typed.slots == (("w", "amount_local"),)


def test_keyword_prefixes_are_plain_names(tmp_path: Path) -> None:
    op = first(made(tmp_path, update(nullable="line_number", trueup="nullable + 1", notes="trueup * 2")))
    assert [a.level for a in op.assignments] == [1, 2, 3]


def test_not_binds_looser_than_a_comparison(tmp_path: Path) -> None:
    op = first(made(tmp_path, update(x="NOT line_number = 1")))
    assert str(op.assignments[0].dtype) == "boolean"


# Order.


def test_an_assignment_sees_those_before_it(tmp_path: Path) -> None:
    op = first(made(tmp_path, update(usd="amount_local * 2", tax="usd * 0.2", currency="'USD'", total="usd + tax")))
    assert [(a.column, a.level) for a in op.assignments] == [
        ("usd", 1),
        ("tax", 2),
        ("currency", 1),
        ("total", 3),
    ]


def test_an_assignment_never_sees_those_after_it() -> None:
    # b reads what a wrote; d is written after c read it, and c is computed on level 2.
    levels = Levels()
    assert [levels.next("a", {"x"}), levels.next("c", {"a", "d"}), levels.next("d", {"x"})] == [1, 2, 2]


def test_a_column_can_be_assigned_twice(tmp_path: Path) -> None:
    text = update(x="1", y="x")
    again = text + "\n      - {column: x, expression: 'x + 1'}"
    op = first(made(tmp_path, again))
    assert [(a.column, a.level) for a in op.assignments] == [("x", 1), ("y", 2), ("x", 2)]


def test_the_second_assignment_of_a_column_finds_the_first_one_done(tmp_path: Path) -> None:
    # Rows that the selector leaves out keep the value of a column, which must exist by then.
    again = update(x="1") + "\n      - {column: x, expression: '2'}"
    op = first(made(tmp_path, again))
    assert [(a.column, a.creates, a.level) for a in op.assignments] == [("x", True, 1), ("x", False, 2)]


def test_later_operations_see_the_columns_of_earlier_ones(tmp_path: Path) -> None:
    delete = "- {seq: 20, name: Drop, type: delete, selector: 'usd = 0 AND flag'}"
    found = made(tmp_path, update(usd="amount_local * 2", flag="usd > 1"), delete, update(30, y="usd + 1"))
    assert found.failures() == ()
    assert [f.name for f in found.plan().final.business][-3:] == ["usd", "flag", "y"]


def test_a_mistake_is_reported_once_however_often_its_column_is_read(tmp_path: Path) -> None:
    found = made(tmp_path, update(usd="amont * 2"), update(20, x="usd * 2", y="x + usd"), update(30, z="y"))
    assert found.messages() == [("W0207", "unknown column 'amont'")]


def test_new_columns_are_between_the_business_columns_and_the_system_columns(tmp_path: Path) -> None:
    names = made(tmp_path, update(x="1")).plan().final.schema.names
    assert names[10:12] == ("x", "_row_id")
    assert names[-1] == "_period"


# Selectors.


@pytest.mark.parametrize("selector", ["", "   "])
def test_an_empty_selector_is_none(tmp_path: Path, selector: str) -> None:
    text = update(x="1").replace("  arguments:", f"  selector: '{selector}'\n  arguments:")
    assert first(made(tmp_path, text)).selector is None


def test_a_named_selector_keeps_its_grouping(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        update(selector="{{BIG}} AND currency = 'EUR'", x="1"),
        selectors={"BIG": '"amount_local > 10 OR line_number = 1"'},
    )
    chosen = first(found).selector
    assert chosen is not None
    assert (chosen.op, chosen.args[0].op) == ("and", "or")


def test_a_token_inside_a_text_is_plain_text(tmp_path: Path) -> None:
    op = first(made(tmp_path, update(x="'{{NOBODY}}'")))
    assert op.assignments[0].typed.value == "{{NOBODY}}"


@pytest.mark.parametrize(
    ("selector", "code"),
    [("currency", "W1406"), ("{{NOBODY}}", "W0212"), ("currency = 1", "W0209"), ("größe = 'ä'", "W0207")],
)
def test_a_selector_that_is_not_a_condition_is_refused(tmp_path: Path, selector: str, code: str) -> None:
    assert [c for c, _ in made(tmp_path, update(selector=selector, x="1")).messages()] == [code]


# Lookups.


def test_a_lookup_is_joined_only_where_it_is_referenced(tmp_path: Path) -> None:
    plan = made(
        tmp_path,
        update(x="1"),
        update(20, t="accounts.type"),
        update(30, selector="cost_centers.region = 'EMEA'", y="1"),
    ).plan()
    used = [[step.alias for step in op.lookups] for op in plan.operations[:3]]
    assert used == [[], ["accounts"], ["cost_centers"]]
    assert [read.name for read in plan.reads] == ["input", "lookup.accounts", "lookup.cost_centers"]


def test_a_lookup_is_read_once_with_the_columns_of_all_operations(tmp_path: Path) -> None:
    plan = made(tmp_path, update(t="accounts.type"), update(20, n="accounts.name")).plan()
    assert plan.reads[1].columns == ("code", "name", "type")


def nested(**more: str) -> dict[str, str | None]:
    gl = Path(__file__).parents[3] / "data" / "fx" / GL
    lookup = """\
    - alias: customer
      target: {type: dataset, id: customers}
      join_conditions: [{source_column: journal_id, target_column: id}]
"""
    return {
        GL: gl.read_text(encoding="utf-8") + lookup,
        "datasets/customers.yml": CUSTOMERS,
        "datasets/countries.yml": COUNTRIES,
        **more,
    }


@pytest.mark.parametrize("name", ["country.continent", "`customer.country`.continent"])
def test_a_lookup_of_a_lookup_is_reached_by_alias_or_path(tmp_path: Path, name: str) -> None:
    found = made(tmp_path, update(x=name), changes=nested())
    assert [(step.alias, step.columns) for step in first(found).lookups] == [
        ("customer", ("id", "country_code")),
        ("customer.country", ("code", "continent")),
    ]


def test_lookups_that_lead_back_are_refused(tmp_path: Path) -> None:
    back = (
        COUNTRIES
        + """\
  lookups:
    - alias: back
      target: {type: dataset, id: customers}
      join_conditions: [{source_column: code, target_column: id}]
"""
    )
    found = made(tmp_path, update(x="1"), changes=nested(**{"datasets/countries.yml": back}))
    assert found.messages() == [("W1212", "lookup 'customer.country.back' leads back to dataset customers v1")]


def test_a_lookup_whose_dataset_is_disabled_is_reported_when_it_is_used(tmp_path: Path) -> None:
    off = nested(**{"datasets/customers.yml": CUSTOMERS.replace("status: active", "status: disabled")})
    assert made(tmp_path, update(x="1"), changes=off).failures() == ()
    found = made(tmp_path, update(x="customer.id"), changes=off)
    assert [code for code, _ in found.messages()] == ["W1213"]


# Warnings.


def test_a_key_that_may_become_null_is_a_warning(tmp_path: Path) -> None:
    plan = made(tmp_path, update(journal_id="description")).plan()
    assert [(w.code, w.severity) for w in plan.warnings] == [("W1405", "warning")]
    assert made(tmp_path, update(journal_id="COALESCE(description, 'x')")).plan().warnings == ()


def test_an_operation_that_nothing_writes_is_a_warning(tmp_path: Path) -> None:
    plan = site(tmp_path, [WRITE_ALL, update(950, x="1")]).plan()
    assert [w.code for w in plan.warnings] == ["W1401"]


@pytest.mark.parametrize(
    ("before", "selector", "gated"),
    [
        ("", "", False),
        ("", "amount_local > 0", True),
        ("amount_local = 0", "", True),
        ("", "fx.rate > 0", False),
    ],
)
def test_a_join_is_made_for_rows_that_are_selected_and_not_deleted(
    tmp_path: Path,
    before: str,
    selector: str,
    gated: bool,  # noqa: FBT001
) -> None:
    delete = f'- {{seq: 5, name: d, type: delete, selector: "{before}"}}\n'
    joins = join("fx", "exchange_rates", "currency = fx.from_currency")
    operations = [*([delete] if before else []), update(joins=joins, selector=selector, x="fx.rate")]
    op = made(tmp_path, *operations).plan().operations[len(operations) - 1]
    assert isinstance(op, ResolvedUpdate)
    resolved = op.joins[0].resolved
    assert (ACTIVE in [resolved.left.fields[key.left].name for key in resolved.keys]) == gated


def test_a_column_is_written_no_earlier_than_the_latest_assignment_that_reads_it() -> None:
    levels = Levels()
    assert [levels.next("tax", {"amount"}), levels.next("net", {"tax", "fee"}), levels.next("total", {"fee"})] == [
        1,
        2,
        1,
    ]
    assert levels.next("fee", set()) == 2  # `net` reads it on level 2, although `total` read it on level 1 afterwards
