"""The registry of connectors: what pipelines read from and write to, one value for each type of datasource.

::

    here, without pyspark       kind, options, sink               weft.io.connectors
    below, with DataFrames      scan, stage, current              the module that `Connector.spark` names

Validation and planning use this registry; `weft.io.spark.connector` imports the Spark part when rows are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from weft.core.names import format_list, suggest
from weft.errors import Code, Diagnostic, ResolutionError
from weft.io.datasource import DataSource
from weft.io.options import csv_options, is_encoding, is_set, jdbc_url

Sink = Literal["files", "jdbc", "table"]
"""How outputs are published: files are exchanged, a database commits, Spark inserts into a table of its catalog."""


class Problem(NamedTuple):
    """An invalid datasource: the finding, and the entry of its file that it is about."""

    code: Code
    message: str
    help: str
    entry: str = "options"


def _accept(source: DataSource) -> Problem | None:  # noqa: ARG001  # most connectors have nothing to refuse
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """A type of datasource: its options, the module that reads and writes it, and how outputs are published.

    `spark` names a module with ``scan(Scan) -> list[Part]`` and, when there is a `sink`, ``stage(rows, Staging) -> Staged``
    and ``current(rows, Staging) -> list[Part]``.  `check` returns a problem of the options as a whole, `refuses`
    the reason why outputs cannot be written to a datasource.
    """

    kind: str
    options: tuple[str, ...]
    spark: str
    sink: Sink | None = None
    check: Callable[[DataSource], Problem | None] = _accept
    refuses: Callable[[DataSource], Problem | None] = _accept


_REGISTERED: dict[str, Connector] = {}  # a later registration of a kind replaces the earlier one


def register(connector: Connector) -> None:
    """Make a type of datasource known to validation, planning and runs.

    Its kind is accepted as ``type`` of a datasource file, and by the JSON Schema of such files, from now on.
    """
    _REGISTERED[connector.kind] = connector


def find_connector(kind: str) -> Connector:
    """Return the connector of a type of datasource; raise W1004 when none is registered.

    >>> find_connector("delta").options
    ('path_prefix', 'storage_options')
    """
    connector = _REGISTERED.get(kind)
    if connector is None:
        raise ResolutionError(
            f"no connector for datasources of type {kind!r}", code="W1004", help=f"types are {format_list(_REGISTERED)}"
        )
    return connector


def connectors() -> tuple[Connector, ...]:
    """Return all connectors in the order of their registration.

    >>> [connector.kind for connector in connectors()]
    ['csv', 'parquet', 'json', 'jdbc', 'table', 'iceberg', 'delta']
    """
    return tuple(_REGISTERED.values())


def file_kinds() -> tuple[str, ...]:
    """Return the formats in which outputs are written as files."""
    return tuple(connector.kind for connector in connectors() if connector.sink == "files")


def check_datasource(source: DataSource) -> tuple[Diagnostic, ...]:
    """Return the findings about the options of a datasource.

    >>> from weft.core.frozen import FrozenMap
    >>> files = DataSource(id="files", name="files", type="csv", options=FrozenMap(delimeter=";"))
    >>> print(check_datasource(files)[0])
    error[W1002]: a datasource of type csv has no option 'delimeter'
     = help: did you mean 'delimiter'?
    """
    connector = find_connector(source.type)
    findings = []
    for name, value in source.options.items():
        if name not in connector.options:
            help = suggest(name, connector.options, "options are", most=1)
            message = f"a datasource of type {source.type} has no option {name!r}"
            findings.append(Diagnostic("W1002", message, help=help, at=source.at.key(f"options.{name}")))
        elif (problem := _value_problem(name, value)) is not None:
            what, help = problem
            at = source.at.of(f"options.{name}")
            findings.append(Diagnostic("W1004", f"option {name!r} is {value!r}; it must be {what}", help=help, at=at))
    if (wrong := connector.check(source)) is not None:
        findings.append(Diagnostic(wrong.code, wrong.message, help=wrong.help, at=source.at.of(wrong.entry)))
    return tuple(findings)


_FLAGS = ("has_header", "multiline", "escape_formulas")
_ONE_CHARACTER = ("delimiter", "quote")


def _value_problem(name: str, value: Any) -> tuple[str, str] | None:
    """Return what the value of an option must be, and how to write it; None when it is valid."""
    if name in _FLAGS and not isinstance(value, bool):
        return "true or false", "write true or false"
    if name in _ONE_CHARACTER and (not isinstance(value, str) or len(value) != 1):
        return "one character", 'write one character, a tab as "\\t"'
    if name == "encoding" and not is_encoding(value):
        return "the name of an encoding", "write UTF-8, ISO-8859-1, windows-1252 or another known name"
    if name == "fetch_size" and not (isinstance(value, int) and value > 0):
        return "a positive number of rows", "write for example 10000"
    if name in ("properties", "storage_options") and not isinstance(value, Mapping):
        return "a mapping", "write names and values below it"
    return None


def _check_characters(source: DataSource) -> Problem | None:
    options = csv_options(source)
    if options.delimiter != options.quote:
        return None
    message = f"options 'delimiter' and 'quote' are both {options.quote!r}"
    return Problem("W1004", message, "choose another character for one of them", "options.delimiter")


def _check_url(source: DataSource) -> Problem | None:
    if jdbc_url(source):
        return None
    help = "write `options: {url: jdbc:postgresql://host:5432/database}`"
    return Problem("W1003", f"datasource {source.id!r} of type jdbc has no url", help)


def _refuse_documents(source: DataSource) -> Problem | None:
    if not is_set(source, "multiline", default=False):
        return None
    return Problem(
        "W1422",
        f"datasource {source.id!r} has `multiline: true`, one JSON document per file; outputs write one object per line",
        "name a datasource without `multiline`",
    )


def _refuse_other_databases(source: DataSource) -> Problem | None:
    if jdbc_url(source).startswith("jdbc:postgresql:"):
        return None
    return Problem(
        "W1509",
        f"datasource {source.id!r} is a database that Weft can read but not write",
        "write to jdbc:postgresql://host:5432/database, or write files",
    )


# The connectors of Weft.  They are registered here, and not in their Spark modules, so that the options of a
# datasource are checked without pyspark.
_FILES = "weft.io.spark.files"
_LAKEHOUSE = "weft.io.spark.lakehouse"
for _connector in (
    Connector(
        kind="csv",
        options=("path_prefix", "delimiter", "has_header", "encoding", "quote", "multiline", "escape_formulas"),
        spark=_FILES,
        sink="files",
        check=_check_characters,
    ),
    Connector(kind="parquet", options=("path_prefix",), spark=_FILES, sink="files"),
    Connector(
        kind="json",
        options=("path_prefix", "multiline", "encoding"),
        spark=_FILES,
        sink="files",
        refuses=_refuse_documents,
    ),
    Connector(
        kind="jdbc",
        options=("url", "connection_string", "schema", "driver", "fetch_size"),
        spark="weft.io.spark.jdbc",
        sink="jdbc",
        check=_check_url,
        refuses=_refuse_other_databases,
    ),
    Connector(kind="table", options=("catalog", "schema"), spark="weft.io.spark.catalog_table", sink="table"),
    Connector(kind="iceberg", options=("path_prefix", "catalog", "schema", "properties"), spark=_LAKEHOUSE),
    Connector(kind="delta", options=("path_prefix", "storage_options"), spark=_LAKEHOUSE),
):
    register(_connector)
