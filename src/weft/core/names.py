"""Column names: how users write them, how they fold, how they are quoted, near misses."""

from __future__ import annotations

import difflib
import keyword
import shlex
from collections.abc import Iterable

from weft.errors import ArgumentError, JoinSpecError

LEFT = "__weft_l"
RIGHT = "__weft_r"


def internal_name(prefix: str, index: int) -> str:
    """Return the positional name a column has while a join is being built.

    Every column of a side is renamed, so no user column is left that it could meet.
    """
    return f"{prefix}{index}"


def fold(name: str, *, case_sensitive: bool = False) -> str:
    """Return the form under which two names are the same name."""
    return name if case_sensitive else name.casefold()


def quote(name: str) -> str:
    """Return `name` as a Spark identifier, inner backticks doubled.

    >>> quote("order id"), quote("c`d")
    ('`order id`', '`c``d`')
    """
    return "`" + name.replace("`", "``") + "`"


def quote_for_shell(text: object) -> str:
    """Return a name or path as one word of a shell: what a message tells people to type.

    >>> quote_for_shell("orders"), quote_for_shell("my jobs/day 1.sql")
    ('orders', "'my jobs/day 1.sql'")
    """
    return shlex.quote(str(text))


def is_plain_text(text: str) -> bool:
    r"""Whether a name can hold the text: no control character, nothing that UTF-8 has no form for.

    >>> is_plain_text("größe µ"), is_plain_text("a\tb"), is_plain_text("\ud800")
    (True, False, False)
    """
    return not any(ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) <= 0xDFFF for c in text)


def format_name(name: str) -> str:
    """Return the name as an expression writes it: a plain word bare, all others in backticks.

    >>> format_name("order_id"), format_name("order id"), format_name("1 = 1 OR x")
    ('order_id', '`order id`', '`1 = 1 OR x`')
    """
    return name if name.isidentifier() else quote(name)


def is_keyword_name(name: str) -> bool:
    """Whether ``name=...`` can stand in a Python call.

    >>> is_keyword_name("customer_id"), is_keyword_name("class"), is_keyword_name("order id")
    (True, False, False)
    """
    return name.isidentifier() and not keyword.iskeyword(name)


def parse_name(written: object, *, what: str = "column name") -> str:
    """Return the column that a user's text names.

    A name with a dot must stand in backticks, because ``table.column`` is not accepted
    where a column of a known side is meant; inside backticks a backtick is doubled.

    >>> parse_name("id"), parse_name("`a.b`"), parse_name("`c``d`")
    ('id', 'a.b', 'c`d')
    """
    if not isinstance(written, str):
        raise ArgumentError(
            f"{what} must be a text, not {type(written).__name__}",
            help="write the name of a column in quotes",
        )
    if not written.strip() or not is_plain_text(written):
        raise JoinSpecError(
            f"{what} {written!r} is empty or holds a control character",
            code="W0303",
            help="name a column of the relation",
        )
    if len(written) > 2 and written[0] == written[-1] == "`":
        inner = written[1:-1]
        if "`" not in inner.replace("``", ""):
            return inner.replace("``", "`")
    if "." in written:
        raise JoinSpecError(
            f"{what} {written!r} has a dot: a qualified name is not accepted here",
            code="W0303",
            help=f"give the column alone, or write {quote(written)} if the dot belongs to the name",
        )
    return written


def canonical_name(name: str) -> str:
    """Return the shortest text that `parse_name` reads as the column `name`.

    >>> canonical_name("id"), canonical_name("a.b")
    ('id', '`a.b`')
    """
    quoted = len(name) > 2 and name[0] == name[-1] == "`"
    return quote(name) if "." in name or quoted or not name.strip() else name


def find_similar(wanted: str, available: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Return up to `most` of the available names that resemble the wanted one.

    >>> find_similar("custmer_id", ["customer_id", "order_id", "total"])
    ('customer_id',)
    """
    folded: dict[str, str] = {}
    for name in available:
        folded.setdefault(name.casefold(), name)
    found = difflib.get_close_matches(wanted.casefold(), folded, n=most, cutoff=0.6)
    return tuple(folded[f] for f in found)


def suggest(wanted: str, available: Iterable[str], otherwise: str, *, most: int = 3) -> str:
    """Return the next step for a name that is not available: the nearest ones, or `otherwise` and what there is.

    >>> suggest("custmer", ["customer", "total"], "columns are")
    "did you mean 'customer'?"
    >>> suggest("zzz", ["customer", "total"], "columns are")
    "columns are 'customer', 'total'"
    """
    known = list(available)
    close = find_similar(wanted, known, most=most)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"{otherwise} {format_list(known)}"


def format_list(names: Iterable[str], *, most: int = 12) -> str:
    """Return names for a message: quoted, comma-separated, cut when there are many."""
    shown = [repr(n) for n in names]
    rest = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {rest} more" if rest > 0 else "") if shown else "none"
