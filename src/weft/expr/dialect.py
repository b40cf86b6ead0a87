"""The two sqlglot dialects: how texts of Weft fall into tokens.

Words are left to the grammar: only marks are keywords here, so a column may be called
``left``, ``order`` or ``date``.  Comment and template marks are tokens of their own, so
that they can be refused where they stand instead of being skipped.
"""

from __future__ import annotations

from typing import Any, Literal

from sqlglot.dialects.dialect import Dialect as SqlglotDialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

Dialect = Literal["pipeline", "fragment"]

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
    """What both dialects share."""

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


DIALECTS: dict[Dialect, SqlglotDialect] = {"pipeline": WeftPipeline(), "fragment": WeftFragment()}


def tokenize(text: str, dialect: Dialect) -> tuple[list[Token], bool]:
    """Return the tokens of `text`, and whether it could be read to the end."""
    tokenizer = DIALECTS[dialect].tokenizer()
    try:
        return tokenizer.tokenize(text), True
    except TokenError:
        return list(tokenizer.tokens), False
