"""Runtime joins before any data is read: VR-001 to VR-008 word for word, with the place each is written at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_data import GL_ID, RATES_ID
from pipelines import WRITE_ALL, Site, join, site, update
from weft.core.source import Source
from weft.errors import Diagnostic
from weft.joins.spec.temporal import IntervalSpec
from weft.pipelines.plan.operations.resolved import ResolvedJoinStep, ResolvedUpdate

ON = "transactions.currency = fx.from_currency"
CLOSING = f"{ON} AND fx.to_currency = 'USD' AND fx.rate_type = 'closing'"

Make = Callable[..., Site]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a project with one update whose joins and assignments the test says."""

    def made(
        joins: str = "",
        *more: str,
        changes: dict[str, str | None] | None = None,
        selector: str = "",
        **assigned: str,
    ) -> Site:
        assigned = assigned or {"x": "1"}
        return site(tmp_path, [update(joins=joins, selector=selector, **assigned), *more, WRITE_ALL], changes)

    return made


def marked(finding: Diagnostic) -> str:
    """Return the text that a finding points at."""
    assert isinstance(finding.at, Source)
    return finding.at.text[finding.at.start : finding.at.end].replace("''", "'")


def only(found: Site) -> Diagnostic:
    """Return the one finding there is."""
    (failure,) = found.failures()
    return failure.diagnostic


def first_join(found: Site) -> ResolvedJoinStep:
    op = found.plan().operations[0]
    assert isinstance(op, ResolvedUpdate)
    return op.joins[0]


RATES_FILE = "datasets/exchange_rates.v1.yml"


def rates(version: int = 1, status: str = "active", mode: str = "bitemporal", more: str = "") -> str:
    return f"""\
dataset:
  id: {RATES_ID}
  name: exchange_rates
  version: {version}
  status: {status}
  resolver_id: files
  natural_key_columns: [from_currency, to_currency, rate_type]
  main_table:
    name: exchange_rates
    temporal_mode: {mode}
    columns:
      - {{name: from_currency, type: string, nullable: false}}
      - {{name: to_currency, type: string, nullable: false}}
      - {{name: rate, type: "decimal(18,6)", nullable: false}}
      - {{name: rate_type, type: string, nullable: false}}
{more}"""


@pytest.mark.parametrize(
    ("joins", "code", "message", "place"),
    [
        (join("fx", "fx_rates", ON), "W1201", "Dataset fx_rates not found in MetadataStore", "fx_rates"),
        (
            join("fx", "exchange_rates", ON, dataset_version=9),
            "W1203",
            "Dataset exchange_rates version 9 not found",
            "exchange_rates",
        ),
        (
            join("fx", "exchange_rates", ON) + join("fx", "exchange_rates", ON),
            "W1204",
            "Join alias 'fx' is already used in this operation",
            "fx",
        ),
        (
            join("transactions", "exchange_rates", "currency = transactions.from_currency"),
            "W1205",
            "Join alias 'transactions' conflicts with working dataset table name",
            "transactions",
        ),
        (
            join("accounts", "exchange_rates", "currency = accounts.from_currency"),
            "W1205",
            "Join alias 'accounts' conflicts with working dataset table name",
            "accounts",
        ),
        (
            join("fx", "exchange_rates", f"{ON} AND"),
            "W1206",
            "Join condition failed to compile: expected a value: a column, a number, a string, a function or (, found the end of the expression",
            None,
        ),
        (
            join("fx", "exchange_rates", "transactions.currency = fx.from_currncy AND fx.to_currency = 'USD'"),
            "W1207",
            "Unknown column 'fx.from_currncy' in join condition",
            "fx.from_currncy",
        ),
        (
            join("fx", "exchange_rates", "curency = fx.from_currency"),
            "W1207",
            "Unknown column 'curency' in join condition",
            "curency",
        ),
        (
            join("1x", "exchange_rates", "currency = `1x`.from_currency"),
            "W1210",
            "invalid alias '1x'",
            "1x",
        ),
        (
            join("x" * 65, "exchange_rates", f"currency = {'x' * 65}.from_currency"),
            "W1210",
            f"invalid alias '{'x' * 65}'",
            "x" * 65,
        ),
    ],
)
def test_each_mistake_has_its_words_and_its_place(
    make: Make, joins: str, code: str, message: str, place: str | None
) -> None:
    finding = only(make(joins))
    assert (finding.code, finding.message) == (code, message)
    if place is not None:
        assert marked(finding) == place


def test_an_alias_may_have_64_letters(make: Make) -> None:
    long = "x" * 64
    on = ON.replace("fx.", f"{long}.")
    assert make(join(long, "exchange_rates", on), x=f"{long}.rate").failures() == ()


def test_a_disabled_dataset_cannot_be_joined(make: Make) -> None:
    found = make(join("fx", RATES_ID, ON), changes={RATES_FILE: rates(status="disabled")})
    finding = only(found)
    assert (finding.code, finding.message) == (
        "W1202",
        f"Dataset {RATES_ID} is disabled and cannot be used in joins",
    )
    assert marked(finding) == RATES_ID


@pytest.mark.parametrize(
    ("expression", "message", "place"),
    [
        ("amount_local * fx.rat", "Unknown column 'fx.rat' in assignment expression", "fx.rat"),
        ("amount_local * fy.rate", "Unknown column 'fy.rate' in assignment expression", "fy.rate"),
        ("IF(fx.rte > 1, 1, 2)", "Unknown column 'fx.rte' in assignment expression", "fx.rte"),
    ],
)
def test_an_unknown_joined_column_in_an_assignment_is_reported(
    make: Make, expression: str, message: str, place: str
) -> None:
    finding = only(make(join("fx", "exchange_rates", ON), x=expression))
    assert (finding.code, finding.message, marked(finding)) == ("W1208", message, place)
    assert "'fx" in finding.help or "'rate'" in finding.help


def test_a_bare_unknown_column_in_an_assignment_is_an_unknown_column(make: Make) -> None:
    finding = only(make(join("fx", "exchange_rates", ON), x="amont_local * fx.rate"))
    assert (finding.code, marked(finding)) == ("W0207", "amont_local")


def test_a_bare_name_that_only_the_join_has_is_explained(make: Make) -> None:
    finding = only(make(join("fx", "exchange_rates", ON), x="rate * 2"))
    assert finding.code == "W0207"
    assert finding.help == "did you mean 'fx.rate'?"


def test_all_mistakes_of_all_joins_come_at_once(make: Make) -> None:
    joins = (
        join("a", "nothing", "currency = a.x")
        + join("b", "exchange_rates", "currency = b.y")
        + join("b", "exchange_rates", "currency = b.from_currency", dataset_version=7)
    )
    assert {f.diagnostic.code for f in make(joins, x="b.q").failures()} == {
        "W1201",
        "W1207",
        "W1204",
        "W1203",
    }


def test_columns_of_an_invalid_join_are_not_reported_again(make: Make) -> None:
    assert make(join("fx", "nothing", "currency = fx.code"), x="fx.rate * amount_local").messages() == [
        ("W1201", "Dataset nothing not found in MetadataStore")
    ]


# FR-004 to FR-006: versions.


def versions(*statuses: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {
        f"datasets/exchange_rates.v{i}.yml": rates(i, status) for i, status in enumerate(statuses, start=1)
    }
    return found


@pytest.mark.parametrize(("pinned", "version"), [(None, 2), (1, 1), (2, 2)])
def test_the_latest_active_version_is_taken_unless_one_is_pinned(make: Make, pinned: int | None, version: int) -> None:
    more = {} if pinned is None else {"dataset_version": pinned}
    step = first_join(
        make(
            join("fx", "exchange_rates", ON, **more),
            changes=versions("active", "active", "disabled"),
            x="fx.rate",
        )
    )
    assert (step.dataset.version, step.pinned) == (version, pinned is not None)
    pin = step.read.pin
    assert (pin.alias, pin.dataset_id, pin.dataset_version, pin.resolver_source) == (
        "fx",
        RATES_ID,
        version,
        "dataset_resolver",
    )


@pytest.mark.parametrize(("pinned", "code"), [(3, "W1202"), (9, "W1203")])
def test_a_pinned_version_that_cannot_be_taken_is_an_error(make: Make, pinned: int, code: str) -> None:
    found = make(
        join("fx", "exchange_rates", ON, dataset_version=pinned),
        changes=versions("active", "active", "disabled"),
    )
    assert only(found).code == code


def test_a_name_means_the_same_as_an_id(make: Make) -> None:
    by_name = first_join(make(join("fx", "exchange_rates", ON), x="fx.rate"))
    by_id = first_join(make(join("fx", RATES_ID, ON), x="fx.rate"))
    assert by_name.read.pin == by_id.read.pin


# FR-001, FR-013, FR-014: none, one, several; an alias is valid in one operation only.


def test_an_update_without_joins_reads_working_columns_alone(make: Make) -> None:
    plan = make(x="amount_local * 2").plan()
    assert [read.name for read in plan.reads] == ["input"]


def test_two_joins_are_made_in_order(make: Make) -> None:
    joins = join("fx", "exchange_rates", ON) + join("b", "budgets", "account_code = b.account_code")
    op = make(joins, x="fx.rate * b.amount").plan().operations[0]
    assert isinstance(op, ResolvedUpdate)
    assert [(s.alias, s.columns) for s in op.joins] == [
        ("fx", ("from_currency", "rate")),
        ("b", ("account_code", "amount")),
    ]


def test_an_alias_can_be_used_again_in_another_operation(make: Make) -> None:
    again = update(20, joins=join("fx", "budgets", "account_code = fx.account_code"), y="fx.amount")
    plan = make(join("fx", "exchange_rates", ON), again, x="fx.rate").plan()
    assert [read.name for read in plan.reads] == ["input", "10.fx", "20.fx"]


def test_an_alias_of_another_operation_is_not_visible(make: Make) -> None:
    finding = only(make(join("fx", "exchange_rates", ON), update(20, y="fx.rate"), x="fx.rate"))
    assert finding.code == "W1208"
    assert finding.help == "'fx' is a join of operation 10: an alias is valid in one operation only"


def test_an_alias_of_an_update_is_not_visible_in_a_delete(make: Make) -> None:
    delete = "- {seq: 20, name: Drop, type: delete, selector: fx.rate > 1}"
    finding = only(make(join("fx", "exchange_rates", ON), delete, x="fx.rate"))
    assert (finding.code, finding.message) == ("W0207", "unknown table or join 'fx'")
    assert finding.help == "'fx' is a join of operation 10: an alias is valid in one operation only"


# FR-011: the shapes of `on`.


@pytest.mark.parametrize(
    ("on", "keys", "own"),
    [
        (ON, 1, False),
        ("fx.from_currency = currency", 1, False),
        ("gl.currency = fx.from_currency", 1, False),
        (CLOSING, 1, True),
        (f"{ON} AND (fx.to_currency = 'USD' OR fx.to_currency = 'EUR') AND fx.rate > 1.0", 1, True),
        (f"{ON} AND transactions.description = fx.rate_type", 2, False),
        (f"{ON} AND fx.rate_type IN ('closing', 'average') AND fx.rate IS NOT NULL", 1, True),
    ],
)
def test_the_shapes_of_the_mandate_are_taken_as_they_are(make: Make, on: str, keys: int, own: bool) -> None:  # noqa: FBT001
    step = first_join(make(join("fx", "exchange_rates", on), x="fx.rate"))
    assert (len(step.right_keys), step.own_filter is not None) == (keys, own)
    assert step.extension == ()
    assert step.spec.relationship == "m:1"


@pytest.mark.parametrize(
    ("on", "extension"),
    [
        (
            f"{ON} AND transactions.amount_local > fx.rate",
            "a term across both sides: transactions.amount_local > fx.rate",
        ),
        (
            f"{ON} AND (fx.rate > 1 OR amount_local > 1)",
            "a term across both sides: fx.rate > 1 OR amount_local > 1",
        ),
        (
            f"{ON} AND fx.rate = amount_local - fx.rate",
            "a term across both sides: fx.rate = amount_local - fx.rate",
        ),
        ("UPPER(currency) = fx.from_currency", "a computed key: UPPER(currency)"),
        ("accounts.type = fx.from_currency", "a lookup in the condition: accounts.type"),
    ],
)
def test_more_shapes_are_extensions_that_the_plan_names(make: Make, on: str, extension: str) -> None:
    step = first_join(make(join("fx", "exchange_rates", on), x="fx.rate"))
    assert step.extension == (extension,)


def test_a_join_may_use_a_join_before_it(make: Make) -> None:
    joins = join("fx", "exchange_rates", CLOSING) + join("eur", "exchange_rates", "fx.to_currency = eur.from_currency")
    op = make(joins, x="fx.rate * eur.rate").plan().operations[0]
    assert isinstance(op, ResolvedUpdate)
    assert op.joins[1].extension == ("an earlier join: fx.to_currency",)
    assert op.joins[0].columns == ("from_currency", "to_currency", "rate")


def test_a_join_cannot_use_one_that_comes_later(make: Make) -> None:
    joins = join("fx", "exchange_rates", "later.account_code = fx.from_currency") + join(
        "later", "budgets", "account_code = later.account_code"
    )
    finding = only(make(joins, x="fx.rate"))
    assert (finding.code, finding.message) == (
        "W1207",
        "Unknown column 'later.account_code' in join condition",
    )
    assert finding.help == "join 'later' is listed later: joins run in the order they are listed"


@pytest.mark.parametrize(
    ("on", "problem", "place"),
    [
        (
            f"{ON} AND transactions.amount_local > 0",
            "the term transactions.amount_local > 0 never mentions 'fx'",
            "transactions.amount_local > 0",
        ),
        (
            "fx.to_currency = 'USD'",
            "it needs an equality between a working column and a column of 'fx'",
            "fx.to_currency = 'USD'",
        ),
        (
            "transactions.amount_local > fx.rate",
            "it needs an equality between a working column and a column of 'fx'",
            None,
        ),
        ("TRUE", "the term TRUE never mentions 'fx'", "TRUE"),
        ("fx.rate", "it is of type decimal(18,6), not boolean", "fx.rate"),
        (
            f"{ON} AND SUM(fx.rate) > 1",
            "SUM is an aggregate function, which is not allowed here",
            "SUM(fx.rate)",
        ),
        ("transactions.amount_local = fx.from_currency", None, None),
        ("currency = 'unterminated", None, None),
        (
            f"{ON} AND fx.to_currency = CAST(TODAY() AS string) AND amount_local > YEAR(TODAY()) * fx.rate",
            None,
            None,
        ),
    ],
)
def test_a_condition_that_does_not_compile_is_explained(
    make: Make, on: str, problem: str | None, place: str | None
) -> None:
    finding = only(make(join("fx", "exchange_rates", on), x="1"))
    assert finding.code == "W1206"
    assert finding.message.startswith("Join condition failed to compile: ")
    if problem is not None:
        assert finding.message == f"Join condition failed to compile: {problem}"
    if place is not None:
        assert marked(finding) == place


STRICT = {"weft.yml": "weft: 1\ndefault_resolver: files\nconformance: strict\n"}


@pytest.mark.parametrize(
    "on",
    [
        f"{ON} AND transactions.amount_local > fx.rate",
        f"{ON} AND (fx.rate > 1 OR amount_local > 1)",
        "UPPER(currency) = fx.from_currency",
        "accounts.type = fx.from_currency",
    ],
)
def test_strict_conformance_refuses_every_extension(make: Make, on: str) -> None:
    finding = only(make(join("fx", "exchange_rates", on), x="fx.rate", changes=STRICT))
    assert finding.code == "W1206"
    assert "conformance: strict" in finding.message


def test_strict_conformance_takes_the_shapes_of_the_mandate(make: Make) -> None:
    assert make(join("fx", "exchange_rates", CLOSING), x="fx.rate", changes=STRICT).failures() == ()


# Tables, days, several matches.


def test_a_lookup_table_of_a_dataset_can_be_joined(make: Make) -> None:
    step = first_join(make(join("a", GL_ID, "account_code = a.code", table="accounts"), x="a.type"))
    assert (step.table.name, step.dataset.name) == ("accounts", "gl")


def test_the_input_can_be_joined_to_itself(make: Make) -> None:
    step = first_join(make(join("other", GL_ID, "journal_id = other.journal_id"), x="other.amount_local"))
    assert step.table.name == "transactions"


def test_a_table_that_is_not_there_is_reported(make: Make) -> None:
    finding = only(make(join("a", GL_ID, "account_code = a.code", table="acounts"), x="1"))
    assert (finding.code, finding.help) == ("W1213", "did you mean 'accounts'?")
    assert marked(finding) == "acounts"


@pytest.mark.parametrize(
    ("as_of", "description"),
    [
        ("period_start", "as of 2026-01-01"),
        ("period_end", "as of 2026-01-31"),
        ("2025-06-30", "as of 2025-06-30"),
    ],
)
def test_a_join_says_the_day_it_looks_at(make: Make, as_of: str, description: str) -> None:
    step = first_join(make(join("fx", "exchange_rates", CLOSING, as_of=as_of), x="fx.rate"))
    assert str(step.read.filter) == description


@pytest.mark.parametrize("column", ["posting_date", "transactions.posting_date"])
def test_a_join_can_look_at_the_day_of_each_row(make: Make, column: str) -> None:
    step = first_join(make(join("fx", "exchange_rates", CLOSING, as_of=column), x="fx.rate"))
    assert isinstance(step.spec, IntervalSpec)
    assert step.read.filter.instant is None
    assert step.choice.strategy == "interval"


@pytest.mark.parametrize(
    ("as_of", "changes", "message"),
    [
        (
            "period_end",
            {RATES_FILE: rates(mode="period")},
            "join 'fx' has as_of, but table 'exchange_rates' is period",
        ),
        ("postng_date", None, "as_of names 'postng_date', which is not a working column"),
        ("currency", None, "as_of names 'currency', which is string"),
    ],
)
def test_a_day_that_cannot_be_is_refused(
    make: Make, as_of: str, changes: dict[str, str | None] | None, message: str
) -> None:
    finding = only(make(join("fx", "exchange_rates", CLOSING, as_of=as_of), x="1", changes=changes))
    assert (finding.code, finding.message) == ("W1211", message)
    assert marked(finding) == as_of


def test_the_first_match_needs_an_order(make: Make) -> None:
    finding = only(make(join("fx", "exchange_rates", ON, on_multiple="first"), x="fx.rate"))
    assert finding.code == "W1003"


def test_matches_are_ordered_by_columns_of_the_alias(make: Make) -> None:
    step = first_join(
        make(
            join("fx", "exchange_rates", ON, on_multiple="first", order_by="[-rate, fx.rate_type]"),
            x="fx.rate",
        )
    )
    assert step.order_by == (("rate", False), ("rate_type", True))
    assert step.spec.relationship is None
    finding = only(make(join("fx", "exchange_rates", ON, on_multiple="first", order_by="[rat]"), x="fx.rate"))
    assert (finding.code, finding.help) == ("W0207", "did you mean 'rate'?")


def test_all_matches_need_a_selector_that_decides_before_the_join(make: Make) -> None:
    joins = join("fx", "exchange_rates", ON, on_multiple="all")
    assert only(make(joins, selector="fx.rate > 1", x="fx.rate")).code == "W1209"
    assert make(joins, selector="amount_local > 1", x="fx.rate").failures() == ()


# What is read, and when.


def test_only_referenced_columns_are_read(make: Make) -> None:
    step = first_join(make(join("fx", "exchange_rates", CLOSING), x="fx.rate"))
    assert step.columns == ("from_currency", "rate")
    assert step.read.columns == ("from_currency", "to_currency", "rate", "rate_type")


def test_the_key_of_a_join_can_be_assigned(make: Make) -> None:
    step = first_join(make(join("fx", "exchange_rates", ON), x="fx.from_currency"))
    assert step.columns == ("from_currency",)


def test_a_selector_on_a_joined_column_is_decided_after_the_joins(make: Make) -> None:
    op = make(join("fx", "exchange_rates", ON), selector="fx.rate > 1", x="fx.rate").plan().operations[0]
    assert isinstance(op, ResolvedUpdate)
    assert op.selector_after_joins
    early = make(join("fx", "exchange_rates", ON), selector="amount_local > 1", x="fx.rate").plan().operations[0]
    assert isinstance(early, ResolvedUpdate)
    assert not early.selector_after_joins


def test_an_alias_with_the_name_of_the_dataset_shadows_it(make: Make) -> None:
    step = first_join(make(join("gl", "exchange_rates", "currency = gl.from_currency"), x="gl.rate"))
    assert step.columns == ("from_currency", "rate")


def test_one_join_that_cannot_be_resolved_stops_the_plan_and_names_its_dataset(make: Make) -> None:
    joins = join("fx", "exchange_rates", ON) + join("c", "customers", "journal_id = c.id")
    error = make(joins, x="fx.rate").refused()
    assert [d.message for d in error.diagnostics] == ["Dataset customers not found in MetadataStore"]
    assert [f.rule for f in error.failures] == ["VAL-008"]


def test_an_override_goes_before_the_resolver_of_a_joined_dataset(tmp_path: Path) -> None:
    other = {
        "resolvers/other.yml": "resolver: {id: other, name: other, version: 4, status: active, rules: "
        "[{name: r, strategy: {type: path, datasource_id: files, path: 'x.csv'}}]}\n"
    }
    keys: dict[str, Any] = {"resolver_overrides": "{exchange_rates: other}"}
    plan = site(
        tmp_path, [update(joins=join("fx", "exchange_rates", ON), x="fx.rate"), WRITE_ALL], other, **keys
    ).plan()
    by_alias = {pin.alias: (pin.resolver_id, pin.resolver_version, pin.resolver_source) for pin in plan.pins}
    assert by_alias == {"fx": ("other", 4, "project_override"), "input": ("files", 1, "system_default")}
