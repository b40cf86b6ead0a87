"""Words and marks that mean something to the grammar, and those it refuses by name."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

NEGATABLE = ("IN", "BETWEEN", "LIKE")
"""Operators that NOT may stand before."""

NEVER_NAMES = frozenset({"OR", "AND", "IS", *NEGATABLE, "NOT", "CASE"})
"""Words that are operators wherever they stand."""

OPENERS = frozenset({"DISTINCT", "EXISTS"})
RESERVED = NEVER_NAMES | OPENERS | {"TRUE", "FALSE", "NULL", "SELECT", "WHEN", "THEN", "ELSE", "END"}
"""Words that a column can be called only in backticks or after a dot."""

CLAUSE_WORDS = frozenset({"FROM", "WHERE", "ON", "JOIN", "EMIT", "WITH", "WITHIN", "AS"})
"""Words that begin a clause of a statement: there a column is called so only in backticks or after a dot."""

JOIN_KINDS = frozenset({"INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "NATURAL"})
"""Words that begin a clause when JOIN or another of them follows."""

REFUSED_TOKENS = {
    TokenType.DCOLON: ("a cast with ::", "write CAST(x AS type)"),
    TokenType.L_BRACKET: ("access by [ ]", "name a column"),
    TokenType.ARROW: ("a lambda (->)", ""),
    TokenType.FARROW: ("=>", "write >= to compare; arguments have no names"),
    TokenType.NOT: ("!", "write NOT"),
    TokenType.AMP: ("&", "write AND"),
    TokenType.PIPE: ("|", "write OR, or || to join texts"),
    TokenType.BLOCK_START: ("a template ({{ }})", ""),
    TokenType.PLACEHOLDER: ("a placeholder (?)", "write the value itself"),
    TokenType.NATIONAL_STRING: ("a text with a letter before the quote", "write the text without it"),
}
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
BEGINNINGS = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.L_PAREN)
AFTER_NUMBER = (TokenType.VAR, TokenType.NUMBER, TokenType.DOT)
UNITS = frozenset(
    unit + plural
    for unit in "MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR".split()
    for plural in ("", "S")
)
VALUE = "a value: a column, a number, a text, a function or ("


def describe_refused(token: Token) -> tuple[str, str] | None:
    """Return what a token that may stand nowhere is, and what to write instead."""
    match token.token_type:
        case TokenType.SEMICOLON:
            return ("a semicolon", "an expression is one value; leave the semicolon out")
        case TokenType.COMMENT:
            return (
                f"a comment mark ({token.text})",
                "write comments outside the expression; a - (-b) for minus minus",
            )
        case TokenType.HINT:
            return (f"a template mark ({token.text})", "templates are not read here")
        case _:
            return None
