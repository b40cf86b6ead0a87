"""Datasets from their files, with every rule about tables, columns, keys and lookups."""

from __future__ import annotations

import datetime as dt
import re

from weft.core import types
from weft.core.names import listed, near
from weft.core.source import Source
from weft.core.types import DType, common_type, parse_type
from weft.errors import WeftError
from weft.pipelines.model.dataset import ColumnDef, Dataset, LookupDef, TableDef
from weft.pipelines.model.entries import WORD, Entries, Findings, identity, sites_of
from weft.pipelines.model.reference import PERIOD_END, PERIOD_START, AsOfSaid, DatasetRef
from weft.pipelines.model.yaml_nodes import Node

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def build_dataset(node: Node, findings: Findings) -> Dataset:
    """Return the dataset of a canonical node; what breaks a rule is noted."""
    entries = Entries(node, findings)
    id, name = identity(entries, "dataset")
    main = _table(_inner(entries, "main_table"))
    lookups = tuple(_lookups(entries, main))
    keys = tuple(said.text for said in entries.texts("natural_key_columns"))
    for i, said in enumerate(entries.texts("natural_key_columns")):
        if said.text not in main.schema:
            _no_column(findings, said.text, main, said.at)
        elif said.text in keys[:i]:
            findings.add("W1018", f"the key names {said.text!r} twice", said.at, "name each column once")
    return Dataset(
        id=id,
        name=name,
        version=entries.whole("version", 1),
        status=entries.value("status", "active"),
        main_table=main,
        lookups=lookups,
        natural_key_columns=keys,
        resolver_id=entries.text_or_none("resolver_id"),
        check_keys=entries.value("check_keys", "off"),
        description=entries.text("description"),
        owner=entries.text("owner"),
        origin=entries.value("origin", "file"),
        at=sites_of(node),
    )


def _inner(entries: Entries, name: str) -> Entries:
    return entries.part(name) or entries


def _table(entries: Entries) -> TableDef:
    columns: dict[str, ColumnDef] = {}
    for column in entries.parts("columns"):
        name = column.text("name")
        _check_name(column, name)
        same = next((known for known in columns if known.casefold() == name.casefold()), None)
        if same is not None:
            but = "" if same == name else " but for case"
            column.find(
                "W1018",
                f"columns {same!r} and {name!r} have the same name{but}",
                "name",
                "rename one of them",
            )
            continue
        columns[name] = ColumnDef(
            name,
            _type(column),
            column.value("nullable", True),
            column.text("description"),
            column.text_or_none("previous_name"),
        )
    return TableDef(
        name=entries.text("name"),
        columns=tuple(columns.values()),
        temporal_mode=entries.value("temporal_mode", "period"),
        overlap=entries.value("overlap", "off"),
        at=sites_of(entries.node),
    )


def _check_name(column: Entries, name: str) -> None:
    if name.startswith("_"):
        column.find(
            "W1017", f"column {name!r} starts with an underscore", "name",
            "such names are Weft's own; system columns need no declaration",
        )  # fmt: skip
    elif not WORD.fullmatch(name):
        column.find(
            "W1017", f"column {name!r} is not a plain name", "name", "use letters, digits and underscores"
        )


def _type(column: Entries) -> DType:
    try:
        found = parse_type(column.text("type"))
    except WeftError as cause:
        column.find("W1004", cause.message, "type", cause.help)
        # The type of nothing meets every other: one mistake is told once.
        return types.NULL
    return types.LONG if found.is_integer else found


def _lookups(entries: Entries, main: TableDef) -> list[LookupDef]:
    found: list[LookupDef] = []
    taken = {main.name.casefold(): "the main table"}
    for lookup in entries.parts("lookups"):
        built = _lookup(lookup, main)
        if built.alias.casefold() in taken:
            lookup.find(
                "W1018", f"the alias {built.alias!r} is taken by {taken[built.alias.casefold()]}",
                "alias" if lookup.node.get("alias") else "target", "give the lookup an alias of its own",
            )  # fmt: skip
        taken.setdefault(built.alias.casefold(), "another lookup")
        found.append(built)
    return found


def _lookup(lookup: Entries, main: TableDef) -> LookupDef:
    target = _inner(lookup, "target")
    said: TableDef | DatasetRef
    said = target.reference("id", "version") if target.text("type") == "dataset" else _table(target)
    default = said.said if isinstance(said, DatasetRef) else said.name
    alias = lookup.text("alias", default)
    if not WORD.fullmatch(alias):
        lookup.find(
            "W1017", f"the alias {alias!r} is not a plain name", "alias" if lookup.node.get("alias") else "target",
            "use letters, digits and underscores",
        )  # fmt: skip
    for condition in lookup.parts("join_conditions"):
        _check_condition(condition, main, said)
    return LookupDef(
        alias=alias,
        target=said,
        join_conditions=tuple(
            (c.text("source_column"), c.text("target_column")) for c in lookup.parts("join_conditions")
        ),
        as_of=as_of(lookup),
        at=sites_of(lookup.node),
    )


def _check_condition(condition: Entries, main: TableDef, target: TableDef | DatasetRef) -> None:
    """Both columns are there and can be compared; the columns of another dataset are checked with the catalog."""
    sides = [("source_column", main)]
    if isinstance(target, TableDef):
        sides.append(("target_column", target))
    met: list[DType] = []
    for key, table in sides:
        name = condition.text(key)
        at = table.schema.find(name)
        if at is None:
            said = condition.said(key)
            _no_column(condition.findings, name, table, said.at if said else None)
        else:
            met.append(table.schema.fields[at].dtype)
    if len(met) == 2 and common_type(*met) is None and types.NULL not in met:
        source, other = condition.text("source_column"), condition.text("target_column")
        condition.find(
            "W1019", f"{source!r} is {met[0]} and {other!r} is {met[1]}: they cannot be equal", "target_column",
            "give both columns one type",
        )  # fmt: skip


def _no_column(findings: Findings, name: str, table: TableDef, at: Source | None) -> None:
    close = near(name, table.schema.names, most=1)
    help = f"did you mean {close[0]!r}?" if close else f"it has {listed(table.schema.names)}"
    findings.add("W1019", f"table {table.name!r} has no column {name!r}", at, help)


def as_of(entries: Entries) -> AsOfSaid:
    """Return the day at which a table is read: a word, a date, or a column of the working set."""
    said = entries.text("as_of", "period_start")
    if said == "period_start":
        return PERIOD_START
    if said == "period_end":
        return PERIOD_END
    if not _DAY.fullmatch(said):
        return AsOfSaid("column", column=said)
    try:
        return AsOfSaid("date", date=dt.date.fromisoformat(said))
    except ValueError:
        entries.find("W1004", f"'as_of' {said!r} is no day", "as_of", "write for example 2026-01-31")
        return PERIOD_START
