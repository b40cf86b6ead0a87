"""LIKE patterns and the text forms that a CAST reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK = r"[ \t\r\n]*"
_FRACTION = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_DAY = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MINUTE = r"[0-9]{2}:[0-9]{2}"
_SECOND = r"[0-9]{2}(?:\.[0-9]{1,6})?"
_ZONE = r"Z|[+-][0-9]{2}:[0-9]{2}"

TEXT_FORMS = {
    "integer": r"[+-]?[0-9]+",
    "decimal": _FRACTION,
    "double": _FRACTION + r"|NaN|[+-]?Infinity",
    "boolean": r"(?i:true|false)",
    "date": _DAY,
    "timestamp_ntz": rf"{_DAY}(?:[ T]{_MINUTE}(?::{_SECOND})?)?",
    "timestamp": rf"{_DAY}(?:[ T]{_MINUTE}(?::{_SECOND}(?:{_ZONE})?)?)?",
}
"""What a text must look like to be cast, as a pattern that Python and Java read alike."""


def text_form(kind: str) -> str:
    """Return the pattern of a text that is cast, blanks around it allowed."""
    return f"{_BLANK}(?:{TEXT_FORMS[kind]}){_BLANK}"


def pieces(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yield each character of a LIKE pattern and whether it was escaped."""
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            yield next(characters, ""), True
        else:
            yield character, False


def pattern_problem(pattern: str) -> str | None:
    r"""Return what is wrong with a LIKE pattern, or None.

    >>> pattern_problem(r"50\% of %"), pattern_problem("a\\b")
    (None, "the backslash in the LIKE pattern stands before 'b'")
    """
    for character, escaped in pieces(pattern):
        if escaped and character not in ("%", "_", "\\"):
            what = repr(character) if character else "nothing"
            return f"the backslash in the LIKE pattern stands before {what}"
    return None


def like_regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression that matches whole texts as LIKE does; `re` remembers what it compiled.

    A plain function: conditions travel to workers by value, and a cached function would travel by name.
    """
    signs = {"%": ".*", "_": "."}
    parts = (re.escape(c) if escaped else signs.get(c, re.escape(c)) for c, escaped in pieces(pattern))
    return re.compile("".join(parts), re.DOTALL)
