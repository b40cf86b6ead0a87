"""Dataset files: every rule about tables, columns, keys and lookups, and what the values then say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entity_texts import DATASET, dataset, entity, reading, reported
from refusals import refused
from weft.core import types
from weft.errors import EntityError, UnknownColumnError
from weft.pipelines.model.build import entity_from_dict, entity_from_node
from weft.pipelines.model.compose import compose
from weft.pipelines.model.dataset import ColumnDef, Dataset, LookupDef, TableDef
from weft.pipelines.model.entries import build_entity_id
from weft.pipelines.model.values import PERIOD_END, AsOfDay, DatasetRef
from weft.pipelines.model.yaml_nodes import node_from_value


def test_a_dataset_has_defaults() -> None:
    found = dataset(DATASET)
    assert (found.version, found.status, found.resolver_id, found.origin) == (1, "active", None, "file")
    assert found.main_table.temporal_mode == "period"
    assert [c.nullable for c in found.main_table.columns] == [False, True]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("string", types.STRING),
        ("integer", types.LONG),
        ("int", types.LONG),
        ("long", types.LONG),
        ("decimal", types.Decimal(38, 10)),
        ("'decimal(18,2)'", types.Decimal(18, 2)),
        ("boolean", types.BOOLEAN),
        ("date", types.DATE),
        ("timestamp", types.TIMESTAMP),
        ("double", types.DOUBLE),
        ("'array<string>'", types.Array(types.STRING)),
    ],
)
def test_types_are_those_of_the_contract_and_more(written: str, meant: types.DType) -> None:
    found = dataset(f"name: d\nmain_table: {{name: t, columns: [{{name: a, type: {written}}}]}}")
    assert found.schema("t")["a"].dtype == meant


def with_columns(*columns: str) -> str:
    return f"name: d\nmain_table: {{name: t, columns: [{', '.join(columns)}]}}\n"


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (with_columns("{name: a, type: txt}"), [("W1004", "txt")]),
        (with_columns("{name: _a, type: string}"), [("W1017", "_a")]),
        (with_columns("{name: 1a, type: string}"), [("W1017", "1a")]),
        (with_columns("{name: a b, type: string}"), [("W1017", "a b")]),
        (with_columns("{name: a.b, type: string}"), [("W1017", "a.b")]),
        (with_columns("{name: a, type: string}", "{name: A, type: string}"), [("W1018", "A")]),
        (with_columns(), [("W1004", "[]")]),
        (with_columns("{name: a}"), [("W1003", "{name: a}")]),
        (with_columns("{name: a, type: string}") + "natural_key_columns: [b]", [("W1019", "b")]),
        (with_columns("{name: a, type: string}") + "natural_key_columns: [A]", [("W1019", "A")]),
        (with_columns("{name: a, type: string}") + "natural_key_columns: [a, a]", [("W1018", "a")]),
        (with_columns("{name: a, type: string}") + "natural_key_columns: a", [("W1004", "a")]),
        (with_columns("{name: a, type: string}") + "version: 0", [("W1004", "0")]),
        (with_columns("{name: a, type: string}") + "status: draft", [("W1004", "draft")]),
        ("name: d", [("W1003", "name: d")]),
        ("main_table: {name: t, columns: [{name: a, type: date}]}",
         [("W1014", "main_table: {name: t, columns: [{name: a, type: date}]}")]),
    ],
)  # fmt: skip
def test_a_broken_rule_is_reported_at_its_location(text: str, findings: list[tuple[str, str]]) -> None:
    assert reported("dataset", text) == findings


LOOKUP = """\
name: gl
main_table: {{name: gl, columns: [{{name: account, type: string}}, {{name: day, type: date}}]}}
lookups:
  - alias: {alias}
    target: {target}
    join_conditions: {conditions}
"""
ACCOUNTS = "{type: table, name: accounts, columns: [{name: code, type: string}, {name: no, type: integer}]}"
ON_CODE = "[{source_column: account, target_column: code}]"


def lookup(alias: str = "accounts", target: str = ACCOUNTS, conditions: str = ON_CODE) -> str:
    return LOOKUP.format(alias=alias, target=target, conditions=conditions)


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (lookup(), []),
        (lookup(alias="gl"), [("W1018", "gl")]),
        (lookup(alias="GL"), [("W1018", "GL")]),
        (lookup(alias="a-b"), [("W1017", "a-b")]),
        (lookup(conditions="[]"), [("W1004", "[]")]),
        (lookup(conditions="[{source_column: acount, target_column: cod}]"), [("W1019", "acount"), ("W1019", "cod")]),
        (lookup(conditions="[{source_column: account, target_column: no}]"), [("W1019", "no")]),
        (lookup(conditions="[{source_column: account}]"), [("W1003", "{source_column: account}")]),
        (lookup(target="{type: file, name: x}"), [("W1004", "file")]),
        (lookup(target="{name: x}"), [("W1003", "{name: x}")]),
        (lookup(target="{type: dataset, dataset: accounts@2}"), []),
        (lookup(target="{type: dataset, id: accounts, dataset: other}"), [("W1006", "other")]),
        (lookup(target="{type: dataset, dataset: accounts@2, version: 3}"), [("W1008", "3")]),
    ],
)  # fmt: skip
def test_lookups_have_rules_of_their_own(text: str, findings: list[tuple[str, str]]) -> None:
    assert reported("dataset", text) == findings


def test_a_lookup_without_an_alias_has_the_name_of_its_target() -> None:
    text = lookup().replace("  - alias: accounts\n    target", "  - target")
    assert dataset(text).lookups[0].alias == "accounts"


def test_a_lookup_may_be_a_dataset_at_another_day() -> None:
    text = lookup(target="{type: dataset, dataset: accounts@2}") + "    as_of: period_end\n"
    (found,) = dataset(text).lookups
    assert (found.target, found.as_of) == (DatasetRef("accounts", 2), PERIOD_END)


def test_an_invalid_day_is_reported() -> None:
    assert reported("dataset", lookup() + "    as_of: 2026-02-30\n") == [("W1004", "2026-02-30")]


def test_tables_are_found_by_name_or_alias() -> None:
    found = dataset(lookup(alias="acc"))
    assert found.table("acc") is found.table("accounts") is found.tables[1]
    assert found.schema("gl").names == ("account", "day")
    with refused(UnknownColumnError, "W0101", "dataset gl v1 has no table 'acconts'", "did you mean 'accounts'?"):
        found.table("acconts")


def test_an_id_comes_from_the_name_when_it_is_left_out() -> None:
    assert dataset("name: d\nmain_table: {name: t, columns: [{name: a, type: date}]}").id == build_entity_id(
        "dataset", "d"
    )
    assert dataset("id: d\nmain_table: {name: t, columns: [{name: a, type: date}]}").name == "d"


def test_a_file_with_findings_raises_all_of_them() -> None:
    with pytest.raises(EntityError) as caught:
        entity_from_node(Dataset, compose(with_columns("{name: _a, type: txt}")))
    assert [d.code for d in caught.value.diagnostics] == ["W1017", "W1004"]


def test_status_and_prose_do_not_change_the_fingerprint_and_columns_do() -> None:
    one = dataset(DATASET)
    prose = dataset(DATASET.replace("name: orders\n  main", "name: orders\n  status: disabled\n  owner: ann\n  main"))
    wider = dataset(DATASET.replace("(18,2)", "(20,2)"))
    assert one.fingerprint() == prose.fingerprint()
    assert one.fingerprint() != wider.fingerprint()
    assert one.structure() == prose.structure()
    assert one.structure() != wider.structure()


def test_a_file_without_a_dataset_in_it_says_so() -> None:
    assert reported("dataset", "[1, 2]") == [("W1004", "[1, 2]")]
    assert reported("dataset", "dataset: {name: d}\nother: 1") == [("W1002", "other"), ("W1003", "{name: d}")]


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
TYPES = st.sampled_from([types.STRING, types.LONG, types.Decimal(18, 2), types.BOOLEAN, types.DATE, types.TIMESTAMP])
TEXTS = st.text(alphabet="ab :#\"'é{}", max_size=12).map(str.strip)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    names = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    columns = tuple(ColumnDef(n, draw(TYPES), draw(st.booleans()), draw(TEXTS), draw(st.none() | NAMES)) for n in names)
    table = TableDef(
        name="main",
        columns=columns,
        temporal_mode=draw(st.sampled_from(["period", "bitemporal", "snapshot"])),
        overlap=draw(st.sampled_from(["off", "warn", "fail"])),
    )
    targets: list[DatasetRef | TableDef] = [DatasetRef("other", 3), DatasetRef("other")]
    target = draw(st.sampled_from([*targets, TableDef(name="look", columns=columns)]))
    as_of = draw(st.sampled_from([PERIOD_END, AsOfDay("column", column="day")]))
    looked = LookupDef(alias="look_up", target=target, join_conditions=((names[0], names[0]),), as_of=as_of)
    return Dataset(
        id=draw(NAMES),
        name=draw(NAMES),
        version=draw(st.integers(1, 99)),
        status=draw(st.sampled_from(["active", "disabled"])),
        main_table=table,
        lookups=(looked,) if draw(st.booleans()) else (),
        natural_key_columns=tuple(names[: draw(st.integers(0, 2))]),
        resolver_id=draw(st.none() | NAMES),
        check_keys=draw(st.sampled_from(["off", "warn", "fail"])),
        description=draw(TEXTS),
        owner=draw(TEXTS),
        origin=draw(st.sampled_from(["file", "registered"])),
    )


@given(datasets())
def test_what_a_dataset_says_reads_back(found: Dataset) -> None:
    again = entity_from_dict(Dataset, found.to_dict())
    assert again == found
    assert again.fingerprint() == found.fingerprint()


def test_a_made_node_has_no_places() -> None:
    found = reading("dataset", DATASET)
    assert isinstance(found.entity, Dataset)
    assert entity_from_node(Dataset, node_from_value(found.entity.to_dict())).at.of("name") is None
    assert entity("dataset", DATASET).at.of("name") is not None
