"""Options of datasources as readers and writers use them, the header of CSV files, and the settings of Spark."""

from __future__ import annotations

import codecs
import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl

from weft.core.frozen import EMPTY, FrozenMap
from weft.core.names import format_list
from weft.core.spec import ReadAs, Spec, Text, WithJsonSchema, freeze_values
from weft.errors import ResolutionError
from weft.io.datasource import DataSource

POSTGRES_BYTES = 63
"""The longest name in PostgreSQL, which cuts a longer one off without an error."""
_SEARCH_PATH = re.compile(r"search_path=((?:\\.|\S)+)")
_SCHEMA = re.compile(r'"((?:[^"]|"")+)"|([^\s,"]+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """The format of a CSV file; empty fields are NULL.

    `multiline` is None where it is not set: then each line is a row when reading, and a string may hold line
    ends when writing.  `escape_formulas` is for writing only.
    """

    delimiter: str = ","
    has_header: bool = True
    encoding: str = "UTF-8"
    quote: str = '"'
    multiline: bool | None = None
    escape_formulas: bool = False


PLAIN_CSV = CsvOptions()
"""The format of CSV files that do not belong to a datasource."""


def csv_options(source: DataSource | None, *, published: bool = False) -> CsvOptions:
    """Return the options of a CSV datasource; None is the format that Weft writes without one.

    A published file may hold line ends inside a string, so it is read by whole records.
    """
    if source is None or source.type != "csv":
        return CsvOptions(multiline=True if source is None or published else None)
    options = source.options
    multiline = is_set(source, "multiline", default=False) if "multiline" in options else None
    return CsvOptions(
        delimiter=str(options.get("delimiter", ",")),
        has_header=is_set(source, "has_header", default=True),
        encoding=str(options.get("encoding", "UTF-8")),
        quote=str(options.get("quote", '"')),
        multiline=True if published else multiline,
        escape_formulas=is_set(source, "escape_formulas", default=False),
    )


def is_set(source: DataSource | None, name: str, *, default: bool) -> bool:
    """Return an option that is true or false."""
    value = default if source is None else source.options.get(name, default)
    return value if isinstance(value, bool) else str(value).lower() == "true"


def is_utf8(encoding: str) -> bool:
    """Whether a name of an encoding means UTF-8.

    >>> is_utf8("utf8"), is_utf8("UTF_8"), is_utf8("latin-1")
    (True, True, False)
    """
    return codecs.lookup(encoding).name == "utf-8"


def is_encoding(value: Any) -> bool:
    """Whether an option names an encoding that Python knows."""
    try:
        # Encoding, not `codecs.lookup`: Python also knows codecs that convert no text, such as base64.
        return isinstance(value, str) and bool("".encode(value) or True)
    except LookupError:
        return False


def jdbc_url(source: DataSource) -> str:
    """Return the address of a database; `connection_string` is its former name."""
    return str(source.options.get("url") or source.options.get("connection_string") or "")


def jdbc_schema(source: DataSource) -> str:
    """Return the schema in which PostgreSQL creates the tables of a datasource that name none.

    This is the option `schema`, otherwise the first schema of the search path that the URL sets, otherwise ``public``.

    >>> url = "jdbc:postgresql://db/x?currentSchema=%22$user%22,GL,public"
    >>> jdbc_schema(DataSource(id="pg", name="pg", type="jdbc", options={"url": url}))
    'gl'
    """
    if source.options.get("schema"):
        return str(source.options["schema"])
    query = dict(parse_qsl(jdbc_url(source).partition("?")[2]))
    option = _SEARCH_PATH.search(query.get("options", ""))
    path = option[1] if option else query.get("currentSchema", "")
    # Unquoted names are in lower case, and "$user" is a schema that hardly any database has.
    names = ((quoted.replace('""', '"') or bare.lower()) for quoted, bare in _SCHEMA.findall(path))
    return next((name for name in names if name != "$user"), "public")


def read_header(file: Path, options: CsvOptions) -> tuple[str, ...]:
    """Return the fields of the first line; raise `ResolutionError` W1318 when it cannot be read."""
    try:
        # Programs such as Excel begin a file with a byte order mark, which is not part of the first name.
        encoding = "utf-8-sig" if is_utf8(options.encoding) else options.encoding
        with file.open(encoding=encoding, newline="") as lines:
            header = next(csv.reader(lines, delimiter=options.delimiter, quotechar=options.quote), [])
    except (OSError, UnicodeError, LookupError, csv.Error) as cause:
        raise ResolutionError(
            f"cannot read {str(file)!r}: {cause}",
            code="W1318",
            help="check the permissions of the file and the encoding of its datasource",
        ) from cause
    if not header:
        raise ResolutionError(
            f"{str(file)!r} is empty: it has no line with the names of its columns",
            code="W1318",
            help="write the names of the columns into the first line",
        )
    repeated = sorted({name for name in header if header.count(name) > 1})
    if options.has_header and repeated:
        raise ResolutionError(
            f"{str(file)!r} has two columns {format_list(repeated)}",
            code="W1318",
            help="give each column a name of its own",
        )
    return tuple(header)


_Value = Annotated[str, WithJsonSchema({"type": ["string", "number", "boolean"]})]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings(Spec):
    """Where Spark runs, and its configuration.

    It runs at a master, at a Connect server (`remote`), or, with neither, on this machine.
    """

    master: Text | None = None
    remote: Text | None = None
    conf: Annotated[FrozenMap[str, str], ReadAs(dict[str, _Value], freeze_values)] = EMPTY
