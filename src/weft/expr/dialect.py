"""The three sqlglot dialects: how texts of Weft fall into tokens.

Words are left to the grammar: only marks are keywords here, so a column may be called
``left``, ``order`` or ``date``.  Comment and template marks are tokens of their own, so
that they can be refused where they stand instead of being skipped; streaming SQL, whose
texts are whole files, has comments, and they are blanked out beforehand.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from sqlglot.dialects.dialect import Dialect as SqlglotDialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

Dialect = Literal["pipeline", "fragment", "stream"]

_MARKS = {
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "==": TokenType.EQ,
    "<=": TokenType.LTE,
    ">=": TokenType.GTE,
    "<=>": TokenType.NULLSAFE_EQ,
    "||": TokenType.DPIPE,
    "::": TokenType.DCOLON,
    "->": TokenType.ARROW,
    "=>": TokenType.FARROW,
    "{{": TokenType.BLOCK_START,
    "}}": TokenType.BLOCK_END,
    "--": TokenType.COMMENT,
    "/*": TokenType.COMMENT,
    "*/": TokenType.COMMENT,
    "{#": TokenType.COMMENT,
    "#}": TokenType.COMMENT,
    "{%": TokenType.HINT,
    "%}": TokenType.HINT,
}


class _Marks(Tokenizer):
    """What all dialects share."""

    KEYWORDS = _MARKS
    COMMENTS = []
    COMMANDS = set()

    @classmethod
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._COMMENTS = {}  # sqlglot adds "{#" for Jinja; here it is a token that is refused


class WeftPipeline(SqlglotDialect):
    """Operations: ``'text'`` and ``"text"``, names bare or in backticks, ``{{NAME}}``."""

    class Tokenizer(_Marks):
        """Both quotes are text."""

        QUOTES = ["'", '"']
        STRING_ESCAPES = ["'", '"']
        IDENTIFIERS = ["`"]


class WeftFragment(SqlglotDialect):
    """Join predicates: ``'text'``, names bare, in backticks or double quotes, ``?`` and ``:name``."""

    class Tokenizer(_Marks):
        """Double quotes are names."""

        QUOTES = ["'"]
        STRING_ESCAPES = ["'"]
        IDENTIFIERS = ["`", '"']


class WeftStream(SqlglotDialect):
    """Streaming SQL: texts and names as in join predicates; the text comes without its comments."""

    class Tokenizer(WeftFragment.Tokenizer):
        """Double quotes are names."""


DIALECTS: dict[Dialect, SqlglotDialect] = {
    "pipeline": WeftPipeline(),
    "fragment": WeftFragment(),
    "stream": WeftStream(),
}
_LEAPS = re.compile(r"""'[^']*'?|"[^"]*"?|`[^`]*`?|--[^\n]*|/\*""")
_COMMENT_MARKS = re.compile(r"/\*|\*/")


def tokenize(text: str, dialect: Dialect) -> tuple[list[Token], bool]:
    """Return the tokens of `text`, and whether it could be read to the end."""
    tokenizer = DIALECTS[dialect].tokenizer()
    try:
        return tokenizer.tokenize(text), True
    except TokenError:
        return list(tokenizer.tokens), False


def strip_comments(text: str) -> tuple[str, int | None]:
    r"""Return `text` with blanks for its comments, as long as before, and where one that never ends starts.

    Comments run from ``--`` to the end of the line, or from ``/*`` to its ``*/``; these may be nested.

    >>> strip_comments("a -- b\n/* c */ + '--'")
    ("a     \n        + '--'", None)
    """
    pieces: list[str] = []
    at = 0
    while (leap := _LEAPS.search(text, at)) is not None:
        end: int | None = leap.end()
        if leap[0] == "/*":
            end = _end_of_comment(text, leap.end())
        if end is None:
            return "".join((*pieces, text[at : leap.start()], _blanked(text[leap.start() :]))), leap.start()
        found = text[leap.start() : end]
        comment = found[:2] in ("--", "/*")
        pieces += (text[at : leap.start()], _blanked(found) if comment else found)
        at = end
    return "".join((*pieces, text[at:])), None


def _end_of_comment(text: str, at: int) -> int | None:
    depth = 1
    for mark in _COMMENT_MARKS.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


def _blanked(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
