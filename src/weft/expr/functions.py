"""The function table: the one place that says which functions there are and what they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.core.names import find_similar
from weft.expr import rules
from weft.expr.checking import CallCheck
from weft.expr.typed import Typed

Rule = Callable[[CallCheck], Typed | None]
_PASSES = "NULL when an argument is NULL"


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its names, how many arguments it takes, its type rule, what NULL does.

    `most` None means any number.  `rule` None means that the reader turns the call into an
    operator, so no call of it is ever checked.
    """

    name: str
    takes: str
    least: int
    most: int | None
    rule: Rule | None
    doc: str
    nulls: str = _PASSES
    aliases: tuple[str, ...] = ()
    aggregate: bool = False

    @property
    def arity(self) -> str:
        """How many arguments it takes, in words."""
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} or {self.most}"


_TABLE = (
    Function("IF", "condition, then, else", 3, 3, rules.conditional, "one of two values",
             "a condition that is NULL takes the else value"),
    Function("AND", "condition, ...", 2, None, None, "whether all hold", "three-valued"),
    Function("OR", "condition, ...", 2, None, None, "whether one holds", "three-valued"),
    Function("NOT", "condition", 1, 1, None, "the opposite"),
    Function("ISNULL", "x", 1, 1, None, "whether x is NULL", "never NULL", ("IS_NULL",)),
    Function("COALESCE", "x, ...", 1, None, rules.coalesce, "the first that is not NULL", "NULL when all are"),
    Function("NULLIF", "a, b", 2, 2, rules.nullif, "NULL when a = b, else a", "a NULL b changes nothing"),
    Function("ABS", "number", 1, 1, rules.absolute, "without its sign"),
    Function("FLOOR", "number", 1, 1, rules.whole, "the next whole number below"),
    Function("CEIL", "number", 1, 1, rules.whole, "the next whole number above", aliases=("CEILING",)),
    Function("ROUND", "number[, digits]", 1, 2, rules.rounded,
             "rounded half up to digits after the point (0 if left out), before it when negative"),
    Function("MOD", "x, y", 2, 2, None, "the remainder of x / y with the sign of x", "NULL also when y is 0"),
    Function("MIN", "a, b, ...", 2, None, rules.extreme, "the smallest argument", aliases=("LEAST",)),
    Function("MAX", "a, b, ...", 2, None, rules.extreme, "the greatest argument", aliases=("GREATEST",)),
    Function("CONCAT", "text, ...", 1, None, rules.concat, "the texts joined"),
    Function("UPPER", "text", 1, 1, rules.text_to_text, "in capitals"),
    Function("LOWER", "text", 1, 1, rules.text_to_text, "in small letters"),
    Function("TRIM", "text", 1, 1, rules.text_to_text, "without spaces, tabs, CR and LF at both ends"),
    Function("LEN", "text", 1, 1, rules.length, "how many characters", aliases=("LENGTH",)),
    Function("LEFT", "text, n", 2, 2, rules.text_and_counts, "the first n characters; none when n is not positive"),
    Function("RIGHT", "text, n", 2, 2, rules.text_and_counts, "the last n characters; none when n is not positive"),
    Function("SUBSTRING", "text, start[, n]", 2, 3, rules.text_and_counts,
             "n characters from start, counted from 1 (0 counts as 1), from the end when negative",
             aliases=("SUBSTR",)),
    Function("CONTAINS", "text, part", 2, 2, rules.contains, "whether part occurs in text"),
    Function("REPLACE", "text, old, new", 3, 3, rules.text_to_text, "with every old replaced; an empty old changes nothing"),
    Function("DATE", "x", 1, 1, rules.to_date, "text yyyy-mm-dd as a date, or the day of a timestamp",
             aliases=("TO_DATE",)),
    Function("TODAY", "", 0, 0, rules.today, "the date of the run", "never NULL"),
    Function("YEAR", "date", 1, 1, rules.date_part, "the year"),
    Function("MONTH", "date", 1, 1, rules.date_part, "the month, 1 to 12"),
    Function("DAY", "date", 1, 1, rules.date_part, "the day of the month"),
    Function("DATEDIFF", "end, start", 2, 2, rules.date_diff, "days from start to end", aliases=("DATE_DIFF",)),
    Function("DATEADD", "date, n", 2, 2, rules.date_add, "n days later", aliases=("DATE_ADD",)),
    Function("DATE_TRUNC", "unit, x", 2, 2, rules.date_trunc, "the start of the year, quarter, month, week, day, hour .."),
    Function("LABEL_SET", "map, key, value", 3, 3, rules.label, "the map with the entry set",
             "NULL when the map or the key is NULL; a NULL value is kept"),
    Function("LABEL_GET", "map, key", 2, 2, rules.label, "the entry", "NULL also when there is none"),
    Function("LABEL_REMOVE", "map, key", 2, 2, rules.label, "the map without the entry"),
    Function("SUM", "number", 1, 1, rules.total, "the total", "NULLs are left out; NULL without rows", aggregate=True),
    Function("AVG", "number", 1, 1, rules.average, "the mean", "NULLs are left out; NULL without rows", aggregate=True),
    Function("COUNT", "x or *", 1, 1, rules.count, "how many are not NULL", "0 without rows", aggregate=True),
    Function("COUNT_ALL", "", 0, 0, rules.count, "how many rows", "0 without rows", aggregate=True),
    Function("MIN_AGG", "x", 1, 1, rules.extreme_of_rows, "the smallest", "NULLs are left out; NULL without rows",
             aggregate=True),
    Function("MAX_AGG", "x", 1, 1, rules.extreme_of_rows, "the greatest", "NULLs are left out; NULL without rows",
             aggregate=True),
)  # fmt: skip

FUNCTIONS: Mapping[str, Function] = {f.name: f for f in _TABLE}
"""Every function under its first name."""

_NAMES: Mapping[str, Function] = {name: f for f in _TABLE for name in (f.name, *f.aliases)}

_REFUSED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        "EXPLODE EXPLODE_OUTER POSEXPLODE POSEXPLODE_OUTER INLINE INLINE_OUTER STACK JSON_TUPLE UNNEST".split(),
        ("makes rows; an expression makes one value", "make the rows in a relation of its own first"),
    ),
    **dict.fromkeys(
        "ROW_NUMBER RANK DENSE_RANK PERCENT_RANK NTILE LAG LEAD CUME_DIST NTH_VALUE FIRST_VALUE LAST_VALUE".split(),
        ("is a window function; an expression sees one row", "compute it in a column first"),
    ),
    **dict.fromkeys(
        "NOW CURRENT_DATE CURRENT_TIMESTAMP GETDATE CURDATE LOCALTIMESTAMP UNIX_TIMESTAMP".split(),
        ("reads the clock", "TODAY() is the date of the run"),
    ),
    **dict.fromkeys(
        "RAND RANDN RANDOM UUID SHUFFLE MONOTONICALLY_INCREASING_ID".split(),
        ("gives another value each time", "compute it in a column first, so that it stays the same"),
    ),
    **dict.fromkeys(
        "TRY_CAST SAFE_CAST CONVERT".split(), ("is not in the language", "write CAST(x AS type)")
    ),
}


def find(name: str) -> Function | None:
    """Return the function of that name or alias, in any case.

    >>> find("length").name, find("median")
    ('LEN', None)
    """
    return _NAMES.get(name.upper()) if name.isascii() else None


def in_fragments(function: Function) -> bool:
    """Whether a join predicate may call it: it sees one pair of rows and no run date."""
    return not function.aggregate and function.name != "TODAY"


def refused(name: str, *, fragment: bool = False, stream: bool = False) -> tuple[str, str] | None:
    """Return why a well-known function is left out on purpose and what to do, or None."""
    found = _REFUSED.get(name.upper())
    if found is not None and found[1].startswith("TODAY()") and (fragment or stream):
        help = "a row of a stream has its event time: use that column"
        return found[0], help if stream else "pass the time as a value: write ? and args=[...]"
    return found


def nearest(name: str, *, fragment: bool = False) -> str:
    """Return the help for a name that is no function: only what can be called there."""
    usable = {n: f for n, f in _NAMES.items() if not fragment or in_fragments(f)}
    close = find_similar(name, usable)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return "functions are " + ", ".join(n for n, f in usable.items() if n == f.name)
