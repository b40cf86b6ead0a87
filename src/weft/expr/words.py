"""Words of the expression language, and limits; they need no tokenizer, so printing and checking load none."""

from __future__ import annotations

from typing import Literal

Dialect = Literal["pipeline", "fragment", "stream"]

NEGATABLE = ("IN", "BETWEEN", "LIKE")
"""Operators that NOT may precede."""

NEVER_NAMES = frozenset({"OR", "AND", "IS", *NEGATABLE, "NOT", "CASE"})
"""Words that are always operators."""

OPENERS = frozenset({"DISTINCT", "EXISTS"})
RESERVED = NEVER_NAMES | OPENERS | {"TRUE", "FALSE", "NULL", "SELECT", "WHEN", "THEN", "ELSE", "END"}
"""Words that are column names only in backticks or after a dot."""

CLAUSE_WORDS = frozenset({"FROM", "WHERE", "ON", "JOIN", "EMIT", "WITH", "WITHIN", "AS"})
"""Words that begin a clause of a statement: column names only in backticks or after a dot."""

JOIN_KINDS = frozenset({"INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "NATURAL"})
"""Words that begin a clause when JOIN or another of them follows."""

REFUSED_WORDS = {
    "SELECT": ("SELECT", "an expression has no subquery"),
    "EXISTS": ("EXISTS", "an expression has no subquery"),
    "OVER": ("a window (OVER)", ""),
    "FILTER": ("FILTER", "use IF inside the aggregate"),
    "WITHIN": ("WITHIN GROUP", ""),
    "DISTINCT": ("DISTINCT", ""),
    "AS": ("an alias (AS)", ""),
    "ILIKE": ("ILIKE", "write LOWER(x) LIKE 'pattern'"),
    "RLIKE": ("RLIKE", "use LIKE or CONTAINS"),
    "REGEXP": ("REGEXP", "use LIKE or CONTAINS"),
    "ESCAPE": ("ESCAPE", "the backslash escapes in a LIKE pattern"),
    "COLLATE": ("COLLATE", ""),
    "AT": ("AT TIME ZONE", ""),
    "DIV": ("DIV", "write FLOOR(x / y)"),
    "XOR": ("XOR", "write (a OR b) AND NOT (a AND b)"),
    "FROM": ("FROM", "an expression has no query"),
    "WHERE": ("WHERE", "an expression has no query"),
    "ORDER": ("ORDER BY", "an expression has no query"),
    "UNION": ("UNION", "an expression has no query"),
}
UNITS = frozenset(
    unit + plural
    for unit in "MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR".split()
    for plural in ("", "S")
)

# Checking, rendering and Spark's optimiser are recursive: this stays far below the limits of their stacks.
MAX_DEPTH = 100
"""How deep expressions may be nested."""
