"""The first line of CSV files, read without a job."""

from __future__ import annotations

import csv
from pathlib import Path

from weft.core.names import listed
from weft.errors import ResolutionError
from weft.io.options import CsvOptions


def header_of(file: Path, options: CsvOptions) -> tuple[str, ...]:
    """Return the fields of the first line; raise `ResolutionError` W1318 when there is none that reads."""
    encoding = (
        "utf-8-sig" if options.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else options.encoding
    )
    try:
        with file.open(encoding=encoding, newline="") as lines:
            found = next(csv.reader(lines, delimiter=options.delimiter, quotechar=options.quote), [])
    except (OSError, UnicodeError, LookupError, csv.Error) as cause:
        raise ResolutionError(
            f"{str(file)!r} does not read: {cause}",
            code="W1318",
            help="see the permissions of the file and the encoding of its datasource",
        ) from cause
    if not found:
        raise ResolutionError(
            f"{str(file)!r} is empty: it has no line with the names of its columns",
            code="W1318",
            help="write the names of the columns into the first line",
        )
    twice = sorted({name for name in found if found.count(name) > 1})
    if options.has_header and twice:
        raise ResolutionError(
            f"{str(file)!r} has two columns {listed(twice)}",
            code="W1318",
            help="give each column a name of its own",
        )
    return tuple(found)
