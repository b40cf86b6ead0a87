"""What a datasource of each type may say in its options, and the form in which readers and writers get it."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.names import listed, near
from weft.errors import Diagnostic
from weft.io.datasource import DataSource, DataSourceType

OPTIONS: Mapping[DataSourceType, tuple[str, ...]] = {
    "csv": ("path_prefix", "delimiter", "has_header", "encoding", "quote", "multiline", "escape_formulas"),
    "parquet": ("path_prefix",),
    "json": ("path_prefix", "multiline", "encoding"),
    "jdbc": ("url", "connection_string", "schema", "driver", "fetch_size"),
    "table": ("catalog", "schema"),
    "iceberg": ("path_prefix", "catalog", "schema", "properties"),
    "delta": ("path_prefix", "storage_options"),
}
"""The options of each type of datasource."""

POSTGRES_BYTES = 63
"""The longest name in PostgreSQL."""

_FLAGS = ("has_header", "multiline", "escape_formulas")
_ONE_SIGN = ("delimiter", "quote")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """How a CSV file is written down; empty fields are NULL.

    `multiline` is None where nobody says it: then lines are rows when reading, and a text may hold line
    ends when writing.  `escape_formulas` is for writing only.
    """

    delimiter: str = ","
    has_header: bool = True
    encoding: str = "UTF-8"
    quote: str = '"'
    multiline: bool | None = None
    escape_formulas: bool = False


PLAIN_CSV = CsvOptions()
"""How CSV files are written that belong to no datasource."""


def csv_options(source: DataSource | None, *, published: bool = False) -> CsvOptions:
    """Return the options of a CSV datasource; None is the form that Weft writes without one.

    A published file may hold line ends inside a text, so it is read by whole records.
    """
    if source is None or source.type != "csv":
        return CsvOptions(multiline=True if source is None or published else None)
    said = source.options
    return CsvOptions(
        delimiter=str(said.get("delimiter", ",")),
        has_header=is_set(source, "has_header", default=True),
        encoding=str(said.get("encoding", "UTF-8")),
        quote=str(said.get("quote", '"')),
        multiline=True if published else _flag(source, "multiline"),
        escape_formulas=is_set(source, "escape_formulas", default=False),
    )


def _flag(source: DataSource, name: str) -> bool | None:
    return is_set(source, name, default=False) if name in source.options else None


def is_set(source: DataSource | None, name: str, *, default: bool) -> bool:
    """Return an option that is true or false."""
    value = default if source is None else source.options.get(name, default)
    return value if isinstance(value, bool) else str(value).lower() == "true"


def check_datasource(source: DataSource) -> tuple[Diagnostic, ...]:
    """Return what is wrong with the options of a datasource.

    >>> from weft.core.frozen import FrozenMap
    >>> files = DataSource(id="files", name="files", type="csv", options=FrozenMap(delimeter=";"))
    >>> print(check_datasource(files)[0])
    error[W1002]: a datasource of type csv has no option 'delimeter'
     = help: did you mean 'delimiter'?
    """
    allowed = OPTIONS[source.type]
    found = []
    for name, value in source.options.items():
        if name not in allowed:
            close = near(name, allowed, most=1)
            help = f"did you mean {close[0]!r}?" if close else f"options are {listed(allowed)}"
            message = f"a datasource of type {source.type} has no option {name!r}"
            found.append(Diagnostic("W1002", message, help=help, at=source.at.key(f"options.{name}")))
        elif (problem := _value_problem(name, value)) is not None:
            what, help = problem
            at = source.at.of(f"options.{name}")
            found.append(Diagnostic("W1004", f"option {name!r} is {value!r}, {what}", help=help, at=at))
    said = csv_options(source)
    if said.delimiter == said.quote:
        found.append(
            Diagnostic(
                "W1004",
                f"options 'delimiter' and 'quote' are both {said.quote!r}",
                help="choose another sign for one of them",
                at=source.at.of("options.delimiter"),
            )
        )
    if source.type == "jdbc" and not jdbc_url(source):
        found.append(
            Diagnostic(
                "W1003",
                f"datasource {source.id!r} of type jdbc has no url",
                help="write `options: {url: jdbc:postgresql://host:5432/database}`",
                at=source.at.of("options"),
            )
        )
    return tuple(found)


def _value_problem(name: str, value: Any) -> tuple[str, str] | None:
    if name in _FLAGS and not isinstance(value, bool):
        return "true or false is wanted", "write true or false"
    if name in _ONE_SIGN and (not isinstance(value, str) or len(value) != 1):
        return "one sign is wanted", 'write one character, a tab as "\\t"'
    if name == "encoding" and not _is_encoding(value):
        return "which is no encoding", "write UTF-8, ISO-8859-1, windows-1252 or another known name"
    if name == "fetch_size" and not (isinstance(value, int) and value > 0):
        return "a number of rows is wanted", "write for example 10000"
    if name in ("properties", "storage_options") and not isinstance(value, Mapping):
        return "a mapping is wanted", "write names and values below it"
    return None


def is_utf8(encoding: str) -> bool:
    """Whether a name of an encoding means UTF-8.

    >>> is_utf8("utf8"), is_utf8("UTF_8"), is_utf8("latin-1")
    (True, True, False)
    """
    return codecs.lookup(encoding).name == "utf-8"


def _is_encoding(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool("".encode(value) or True)
    except LookupError:
        return False


def jdbc_url(source: DataSource) -> str:
    """Return the address of a database; `connection_string` is its older name."""
    return str(source.options.get("url") or source.options.get("connection_string") or "")
