"""Dataset: a named and versioned set of tables, columns and lookups; resolvers locate its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Rules

from weft.core import types
from weft.core.fingerprint import fingerprint
from weft.core.names import WORD, suggest
from weft.core.source import NO_SOURCES, Source
from weft.core.spec import ALWAYS, REQUIRED, Limits, Locations, Positive, ReadAs, Spec, Text, yaml_key
from weft.core.types import DType, Field, Schema, common_type, parse_type
from weft.errors import UnknownColumnError, WeftError
from weft.io.datasource import EntityStatus
from weft.pipelines.model.entries import AsOf, Entries, Findings, read_identity
from weft.pipelines.model.values import PERIOD_START, Check, DatasetRef, Origin, TemporalMode

__all__ = ["ColumnDef", "Dataset", "DatasetRef", "LookupDef", "TableDef", "format_type"]


def format_type(dtype: DType) -> str:
    """Return the name of a type in dataset files, where ``integer`` has 64 bits.

    >>> format_type(types.LONG), format_type(types.Decimal(18, 2))
    ('integer', 'decimal(18,2)')
    """
    return "integer" if dtype == types.LONG else str(dtype)


def _column_name(name: str, written: Any, findings: Findings) -> str:
    if name.startswith("_"):
        findings.add(
            "W1017", f"column {name!r} starts with an underscore", written.node.place(),
            "such names are reserved; system columns are not declared",
        )  # fmt: skip
    elif not WORD.fullmatch(name):
        findings.add(
            "W1017", f"invalid column name {name!r}", written.node.place(), "use letters, digits and underscores"
        )  # fmt: skip
    return name


def _type(text: str, written: Any, findings: Findings) -> DType:
    try:
        dtype = parse_type(text)
    except WeftError as cause:
        findings.add("W1004", cause.message, written.node.place(), cause.help)
        # NULL is comparable with every type, so the error is reported only once.
        return types.NULL
    # Files know one integer, with 64 bits; the other sizes of the type parser are names of it here.
    return types.LONG if dtype.is_integer else dtype


@dataclass(frozen=True, slots=True)
class ColumnDef(Spec):
    """A column of a table.

    `previous_name` is its name in an earlier version.
    """

    name: Annotated[str, ReadAs(Text, _column_name)]
    dtype: Annotated[DType, ReadAs(Text, _type)] = field(metadata=yaml_key("type"))
    nullable: bool = field(default=True, metadata=ALWAYS)
    description: str = ""
    previous_name: Text | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary form, as in a dataset file."""
        return Spec.to_dict(self) | {"type": format_type(self.dtype)}


def _unique_columns(columns: tuple[ColumnDef, ...], written: Any, findings: Findings) -> tuple[ColumnDef, ...]:
    """Return the columns with distinct names; report the others."""
    unique: dict[str, ColumnDef] = {}
    for column, mapping in zip(columns, written, strict=True):
        entries, name = Entries(mapping.node, findings), column.name
        # Weft keeps the case of a name, but Spark compares names without it.
        same = next((known for known in unique if known.casefold() == name.casefold()), None)
        if same is None:
            unique[name] = column
        else:
            but = "" if same == name else " apart from case"
            entries.report(
                "W1018", f"columns {same!r} and {name!r} have the same name{but}", "name", "rename one of them"
            )
    return tuple(unique.values())


_Columns = Annotated[
    tuple[ColumnDef, ...], ReadAs(Annotated[tuple[ColumnDef, ...], Limits(min_length=1)], _unique_columns)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDef(Spec):
    """A table of a dataset.

    `temporal_mode` tells how its rows are assigned to periods.
    """

    name: Text
    temporal_mode: TemporalMode = field(default="period", metadata=ALWAYS)
    overlap: Check = "off"
    columns: _Columns
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """The declared columns; names are case-sensitive."""
        return Schema(tuple(Field(c.name, c.dtype, c.nullable) for c in self.columns), case_sensitive=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTarget(TableDef):
    """A lookup table that belongs to the dataset."""

    type: Literal["table"] = field(default="table", metadata=REQUIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetTarget(Spec):
    """A lookup that is another dataset."""

    SHORT: ClassVar = (("id", "dataset"),)
    type: Literal["dataset"] = field(default="dataset", metadata=REQUIRED)
    id: Text
    version: Positive | None = None
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


_WrittenTarget = Annotated[TableTarget | DatasetTarget, Rules(discriminator="type")]


def _target(target: TableTarget | DatasetTarget, _written: Any, _findings: Findings) -> TableDef | DatasetRef:
    """Return the table or dataset that a lookup reads, without its `type` key."""
    if isinstance(target, DatasetTarget):
        return DatasetRef(target.id, target.version, target.at.values.get("id"))
    return TableDef(**{name: getattr(target, name) for name in TableDef.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition(Spec):
    """A column of the main table that equals one of the target."""

    source_column: Text
    target_column: Text


def _pairs(conditions: tuple[Condition, ...], _written: Any, _findings: Findings) -> tuple[tuple[str, str], ...]:
    return tuple((condition.source_column, condition.target_column) for condition in conditions)


_Pairs = Annotated[tuple[tuple[str, str], ...], ReadAs(Annotated[tuple[Condition, ...], Limits(min_length=1)], _pairs)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupDef(Spec):
    """A table whose columns every operation can read.

    They are read as ``alias.column``.  `join_conditions` are pairs: a column of the main table, a column of
    the target.
    """

    alias: Text = field(default="", metadata=ALWAYS)
    target: Annotated[TableDef | DatasetRef, ReadAs(_WrittenTarget, _target)]
    join_conditions: _Pairs
    as_of: AsOf = PERIOD_START
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary form, as in a dataset file."""
        target = (
            {"type": "table", **self.target.to_dict()}
            if isinstance(self.target, TableDef)
            else {"type": "dataset", **self.target.to_dict(dataset="id", version="version")}
        )
        conditions = [{"source_column": s, "target_column": t} for s, t in self.join_conditions]
        return Spec.to_dict(self) | {"target": target, "join_conditions": conditions}


def check_lookup(lookup: LookupDef, entries: Entries) -> LookupDef:
    """Return a lookup with its alias, which defaults to the name of the target."""
    alias = lookup.alias or lookup.target.name
    if not WORD.fullmatch(alias):
        entries.report(
            "W1017", f"invalid alias {alias!r}", "alias" if entries.node.get("alias") else "target",
            "use letters, digits and underscores",
        )  # fmt: skip
    return replace(lookup, alias=alias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(Spec):
    """One version of a dataset.

    >>> rates = TableDef(name="rates", columns=(ColumnDef("rate", types.Decimal(18, 6)),))
    >>> gl = Dataset(id="fx", name="fx", version=1, status="active", main_table=rates)
    >>> gl.schema("rates").names, str(gl)
    (('rate',), 'fx v1')
    """

    SHORT: ClassVar = (("resolver_id", "resolver"),)
    FIRST: ClassVar = (
        "id", "name", "version", "status", "description", "owner", "resolver_id", "check_keys", "origin",
    )  # fmt: skip
    id: Text = ""
    name: Text = ""
    version: Positive = field(default=1, metadata=ALWAYS)
    status: EntityStatus = field(default="active", metadata=ALWAYS)
    description: str = ""
    owner: str = ""
    resolver_id: Text | None = None
    natural_key_columns: tuple[Text, ...] = field(default=(), metadata=ALWAYS)
    check_keys: Check = "off"
    main_table: TableDef
    lookups: tuple[LookupDef, ...] = field(default=(), metadata=ALWAYS)
    # Set by Weft in the store, never in a file that a user writes.
    origin: Annotated[Origin, Rules(description="origin of the version; default: file")] = "file"
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    @property
    def tables(self) -> tuple[TableDef, ...]:
        """The main table, then the tables of lookups inside this dataset."""
        own = (lookup.target for lookup in self.lookups)
        return (self.main_table, *(target for target in own if isinstance(target, TableDef)))

    def table(self, name: str) -> TableDef:
        """Return the table of that name, or the one a lookup of that alias reads."""
        for known, table in self._named():
            if known == name:
                return table
        names = dict.fromkeys(known for known, _ in self._named())
        help = suggest(name, names, "its tables are", most=1)
        raise UnknownColumnError(f"dataset {self} has no table {name!r}", help=help)

    def schema(self, table: str) -> Schema:
        """Return the declared columns of the table of that name or alias."""
        return self.table(table).schema

    def _named(self) -> Iterator[tuple[str, TableDef]]:
        yield self.main_table.name, self.main_table
        for lookup in self.lookups:
            if isinstance(lookup.target, TableDef):
                yield lookup.alias, lookup.target
                yield lookup.target.name, lookup.target

    def structure(self) -> dict[str, Any]:
        """Return what requires a new version when it changes: tables, columns, types, keys, lookups."""
        form = self.to_dict()
        return {name: form[name] for name in ("natural_key_columns", "main_table", "lookups")}

    def fingerprint(self) -> str:
        """Return the hash of everything that can change a result, which status and descriptions cannot."""
        content = self.to_dict()
        for key in ("status", "owner", "description", "origin"):
            content.pop(key, None)
        return fingerprint(content)


def check_dataset(dataset: Dataset, entries: Entries) -> Dataset:
    """Return a dataset with its id and name; report keys and lookups that do not fit its tables."""
    id, name = read_identity(entries, "dataset")
    findings, main = entries.findings, dataset.main_table
    taken = {main.name.casefold(): "the main table"}
    for lookup, written in zip(dataset.lookups, entries.parts("lookups"), strict=True):
        for condition in written.parts("join_conditions"):
            _check_condition(condition, main, lookup.target)
        alias = lookup.alias.casefold()
        if alias in taken:
            written.report(
                "W1018", f"the alias {lookup.alias!r} is already used by {taken[alias]}",
                "alias" if written.node.get("alias") else "target", "choose another alias",
            )  # fmt: skip
        taken.setdefault(alias, "another lookup")
    for i, column in enumerate(entries.texts("natural_key_columns")):
        if column.text not in main.schema:
            _report_unknown_column(findings, column.text, main, column.at)
        elif column.text in dataset.natural_key_columns[:i]:
            findings.add("W1018", f"duplicate key column {column.text!r}", column.at, "list each column once")
    return replace(dataset, id=id, name=name)


def _check_condition(condition: Entries, main: TableDef, target: TableDef | DatasetRef) -> None:
    """Check that both columns exist and are comparable; those of another dataset are checked with the catalog."""
    sides = [("source_column", main)]
    if isinstance(target, TableDef):
        sides.append(("target_column", target))
    dtypes: list[DType] = []
    for key, table in sides:
        name = condition.text(key)
        at = table.schema.find(name)
        if at is None:
            column = condition.located(key)
            _report_unknown_column(condition.findings, name, table, column.at if column else None)
        else:
            dtypes.append(table.schema.fields[at].dtype)
    # A column whose type is invalid is NULL here, and its error is reported at the column.
    if len(dtypes) == 2 and common_type(*dtypes) is None and types.NULL not in dtypes:
        source, other = condition.text("source_column"), condition.text("target_column")
        condition.report(
            "W1019", f"{source!r} is {dtypes[0]} and {other!r} is {dtypes[1]}: the types cannot be compared", "target_column",
            "give both columns the same type",
        )  # fmt: skip


def _report_unknown_column(findings: Findings, name: str, table: TableDef, at: Source | None) -> None:
    help = suggest(name, table.schema.names, "its columns are", most=1)
    findings.add("W1019", f"table {table.name!r} has no column {name!r}", at, help)
