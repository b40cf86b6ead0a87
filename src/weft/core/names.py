"""Column names: parsing, case folding, quoting, suggestions for misspelled names; lists and tables as text."""

from __future__ import annotations

import difflib
import keyword
import re
import shlex
from collections.abc import Iterable, Sequence

from weft.errors import ArgumentError, JoinSpecError

LEFT = "__weft_l"
RIGHT = "__weft_r"

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A name that needs no quotes: an alias, a variable, a token of a template."""


def internal_name(prefix: str, index: int) -> str:
    """Return the positional name of a column while a join is built.

    Every column of a side is renamed, so that no user column can collide with it.
    """
    return f"{prefix}{index}"


def fold(name: str, *, case_sensitive: bool = False) -> str:
    """Return the form in which two equal names are the same string."""
    return name if case_sensitive else name.casefold()


def quote(name: str) -> str:
    """Return `name` as a Spark identifier, inner backticks doubled.

    >>> quote("order id"), quote("c`d")
    ('`order id`', '`c``d`')
    """
    return "`" + name.replace("`", "``") + "`"


def quote_for_shell(text: object) -> str:
    """Return a name or path as one word of a shell command, for messages that show what to type.

    >>> quote_for_shell("orders"), quote_for_shell("my jobs/day 1.sql")
    ('orders', "'my jobs/day 1.sql'")
    """
    return shlex.quote(str(text))


def is_plain_text(text: str) -> bool:
    r"""Whether a text is valid as a name: no control characters, no lone surrogates.

    >>> is_plain_text("größe µ"), is_plain_text("a\tb"), is_plain_text("\ud800")
    (True, False, False)
    """
    return not any(ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) <= 0xDFFF for c in text)


def format_name(name: str) -> str:
    """Return the name as an expression contains it: in backticks unless it is an identifier.

    >>> format_name("order_id"), format_name("order id"), format_name("1 = 1 OR x")
    ('order_id', '`order id`', '`1 = 1 OR x`')
    """
    return name if name.isidentifier() else quote(name)


def is_keyword_name(name: str) -> bool:
    """Whether ``name=...`` is valid in a Python call.

    >>> is_keyword_name("customer_id"), is_keyword_name("class"), is_keyword_name("order id")
    (True, False, False)
    """
    return name.isidentifier() and not keyword.iskeyword(name)


def parse_name(text: object, *, what: str = "column name") -> str:
    """Return the column that `text` names.

    A name with a dot must be in backticks, because ``table.column`` is not accepted where the
    side of the column is known; inside backticks a backtick is doubled.

    >>> parse_name("id"), parse_name("`a.b`"), parse_name("`c``d`")
    ('id', 'a.b', 'c`d')
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"{what} must be a string, not {type(text).__name__}", help="write the name of a column in quotes"
        )
    if not text.strip() or not is_plain_text(text):
        raise JoinSpecError(
            f"{what} {text!r} is empty or contains a control character",
            code="W0303",
            help="name a column of the relation",
        )
    if len(text) > 2 and text[0] == text[-1] == "`":
        inner = text[1:-1]
        if "`" not in inner.replace("``", ""):
            return inner.replace("``", "`")
    if "." in text:
        raise JoinSpecError(
            f"{what} {text!r} contains a dot: a qualified name is not accepted here",
            code="W0303",
            help=f"write the column alone, or {quote(text)} if the dot is part of the name",
        )
    return text


def canonical_name(name: str) -> str:
    """Return the shortest text that `parse_name` parses to `name`.

    >>> canonical_name("id"), canonical_name("a.b")
    ('id', '`a.b`')
    """
    quoted = len(name) > 2 and name[0] == name[-1] == "`"
    return quote(name) if "." in name or quoted or not name.strip() else name


def find_similar(name: str, available: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Return up to `most` of the available names that are spelled like `name`.

    >>> find_similar("custmer_id", ["customer_id", "order_id", "total"])
    ('customer_id',)
    """
    # difflib is case-sensitive, and the wrong case is the most frequent mistake.
    folded: dict[str, str] = {}
    for candidate in available:
        folded.setdefault(candidate.casefold(), candidate)
    matches = difflib.get_close_matches(name.casefold(), folded, n=most, cutoff=0.6)
    return tuple(folded[match] for match in matches)


def suggest(name: str, available: Iterable[str], otherwise: str, *, most: int = 3) -> str:
    """Return the help for an unknown name: similar names, or `otherwise` and all names.

    >>> suggest("custmer", ["customer", "total"], "columns are")
    "did you mean 'customer'?"
    >>> suggest("zzz", ["customer", "total"], "columns are")
    "columns are 'customer', 'total'"
    """
    known = list(available)
    close = find_similar(name, known, most=most)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"{otherwise} {format_list(known)}"


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, with_numbers: bool = False) -> str:
    """Return rows below their headers, each column as wide as its longest cell.

    `with_numbers` aligns all columns but the first one to the right.

    >>> print(format_table(("RUN", "STATUS"), [("0199", "completed")]))
    RUN   STATUS
    0199  completed
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    align = [str.ljust, *[str.rjust if with_numbers else str.ljust] * (len(head) - 1)]
    lines = ([put(cell, width) for put, cell, width in zip(align, row, widths, strict=True)] for row in (head, *rows))
    return "\n".join("  ".join(line).rstrip() for line in lines)


def format_cell(value: object) -> str:
    """Return a value for a table."""
    return "NULL" if value is None else str(value)


def format_list(names: Iterable[str], *, most: int = 12) -> str:
    """Return names for a message: quoted, separated by commas, shortened when there are many."""
    quoted = [repr(n) for n in names]
    rest = len(quoted) - most
    return ", ".join(quoted[:most]) + (f" and {rest} more" if rest > 0 else "") if quoted else "none"
