"""Tokens of an expression: how a text is split into them, and the cursor that the grammar reads them with.

Words are left to the grammar: only marks are keywords here, so a column may be called ``left``, ``order`` or
``date``.  Comment and template marks are tokens too, so that an error can point at them instead of skipping them.
A streaming SQL file has comments: they are blanked out before the text is split.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from sqlglot.dialects.dialect import Dialect as SqlglotDialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from weft.errors import Code, ExpressionError
from weft.expr.ast import Origin, Span
from weft.expr.words import CLAUSE_WORDS, JOIN_KINDS, MAX_DEPTH, REFUSED_WORDS, Dialect

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
    """The marks of all dialects."""

    KEYWORDS = _MARKS
    COMMENTS = []
    COMMANDS = set()

    @classmethod
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._COMMENTS = {}  # sqlglot adds "{#" for Jinja; here it is a token, which the parser rejects


class WeftPipeline(SqlglotDialect):
    """Operations: ``'text'`` and ``"text"``, names bare or in backticks, ``{{NAME}}``."""

    class Tokenizer(_Marks):
        """Both quotes enclose strings."""

        QUOTES = ["'", '"']
        STRING_ESCAPES = ["'", '"']
        IDENTIFIERS = ["`"]


class WeftFragment(SqlglotDialect):
    """Join predicates and streaming SQL: ``'text'``, names bare, in backticks or double quotes, ``?`` and ``:name``."""

    class Tokenizer(_Marks):
        """Double quotes enclose names."""

        QUOTES = ["'"]
        STRING_ESCAPES = ["'"]
        IDENTIFIERS = ["`", '"']


DIALECTS: dict[Dialect, SqlglotDialect] = {
    "pipeline": WeftPipeline(),
    "fragment": WeftFragment(),
    "stream": WeftFragment(),  # without comments, which `strip_comments` removes before
}
# Strings and quoted names too: a comment mark inside them is text.
_LEAPS = re.compile(r"""'[^']*'?|"[^"]*"?|`[^`]*`?|--[^\n]*|/\*""")
_COMMENT_MARKS = re.compile(r"/\*|\*/")


def tokenize(text: str, dialect: Dialect) -> tuple[list[Token], bool]:
    """Return the tokens of `text`, and whether the tokenizer reached its end."""
    tokenizer = DIALECTS[dialect].tokenizer()
    # An unterminated string is a TokenError without a location; the tokens before it give one.
    try:
        return tokenizer.tokenize(text), True
    except TokenError:
        return list(tokenizer.tokens), False


def strip_comments(text: str) -> tuple[str, int | None]:
    r"""Return `text` with comments replaced by blanks, and the start of an unterminated comment or None.

    Comments extend from ``--`` to the end of the line, or from ``/*`` to its ``*/``; these may be nested.

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
            return "".join((*pieces, text[at : leap.start()], _blank(text[leap.start() :]))), leap.start()
        token = text[leap.start() : end]
        comment = token[:2] in ("--", "/*")
        pieces += (text[at : leap.start()], _blank(token) if comment else token)
        at = end
    return "".join((*pieces, text[at:])), None


def _end_of_comment(text: str, at: int) -> int | None:
    depth = 1
    for mark in _COMMENT_MARKS.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


REFUSED_TOKENS = {
    TokenType.DCOLON: ("a cast with ::", "write CAST(x AS type)"),
    TokenType.L_BRACKET: ("access by [ ]", "name a column"),
    TokenType.ARROW: ("a lambda (->)", ""),
    TokenType.FARROW: ("=>", "write >= to compare; arguments have no names"),
    TokenType.NOT: ("!", "write NOT"),
    TokenType.AMP: ("&", "write AND"),
    TokenType.PIPE: ("|", "write OR, or || to concatenate strings"),
    TokenType.BLOCK_START: ("a template ({{ }})", ""),
    TokenType.PLACEHOLDER: ("a placeholder (?)", "write the value itself"),
    TokenType.NATIONAL_STRING: ("a string with a prefix", "remove the letter before the quote"),
}
BEGINNINGS = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.L_PAREN)
AFTER_NUMBER = (TokenType.VAR, TokenType.NUMBER, TokenType.DOT)
VALUE = "a value: a column, a number, a string, a function or ("


def describe_refused(token: Token) -> tuple[str, str] | None:
    """Return a description of a token that is never allowed, and what to write instead."""
    match token.token_type:
        case TokenType.SEMICOLON:
            return ("a semicolon", "an expression is one value; remove the semicolon")
        case TokenType.COMMENT:
            return (f"a comment mark ({token.text})", "write comments outside the expression; a - (-b) for minus minus")
        case TokenType.HINT:
            return (f"a template mark ({token.text})", "templates are not supported here")
        case _:
            return None


_END = Token(TokenType.SENTINEL, "")


class Cursor:
    """A position in sqlglot's tokens; every error has a location.

    sqlglot's own parser cannot be the base: its compiled build (sqlglotc) cannot be subclassed.
    """

    def __init__(self, tokens: list[Token], origin: Origin) -> None:
        self.tokens = [*tokens, _END, _END]  # two, because `next` looks one token ahead
        self.origin = origin
        self.index = 0

    @property
    def curr(self) -> Token:
        """The current token; false at the end."""
        return self.tokens[self.index]

    @property
    def next(self) -> Token:
        """The token after the current one."""
        return self.tokens[self.index + 1]

    @property
    def prev(self) -> Token:
        """The token before the current one."""
        return self.tokens[self.index - 1]

    @property
    def connected(self) -> bool:
        """Whether the current token directly follows the previous one."""
        return bool(self.curr) and self.prev.end + 1 == self.curr.start

    def advance(self, by: int = 1) -> None:
        """Step over tokens."""
        self.index += by

    def match(self, kind: TokenType) -> bool:
        """Step over a token of that kind, if it is one."""
        matches = self.curr.token_type == kind
        self.index += matches
        return matches

    def fail(self, code: Code, message: str, start: int, end: int, help: str = "") -> NoReturn:
        """Raise an error at a location."""
        raise ExpressionError(message, code=code, help=help, at=Span(start, end, self.origin).place)

    def unexpected(self, expected: str) -> NoReturn:
        """Raise an error for the current token, where something else is expected."""
        token, size = self.curr, len(self.origin.text)
        if not token:
            self.fail("W0201", f"expected {expected}, found the end of the expression", size, size)
        text = self.origin.text[token.start : token.end + 1]
        refused = REFUSED_TOKENS.get(token.token_type) or REFUSED_WORDS.get(self.word())
        if refused is not None:
            help_ = self._help_in_context() or refused[1]
            self.fail("W0205", f"{refused[0]} is not allowed in an expression", *ends(token), help_)
        self.fail("W0201", f"expected {expected}, found {text!r}", *ends(token))

    def _help_in_context(self) -> str:
        """Return the help for the current word, where it depends on the words before."""
        before = [token.text.upper() for token in self.tokens[: self.index]]
        if self.word() == "AS" and ("TRY_CAST" in before or "SAFE_CAST" in before):
            return "write CAST(x AS type)"
        if self.word() == "DISTINCT" and before[-1:] == ["IS"]:
            return "write NOT (x <=> y): it is true when one of the two is NULL"
        if self.word() == "DISTINCT" and before[-2:] == ["IS", "NOT"]:
            return "write x <=> y: it is true when both are NULL"
        return ""

    def check_depth(self, depth: int) -> None:
        """Raise an error when expressions are nested deeper than allowed."""
        if depth > MAX_DEPTH:
            self.too_deep(self.curr.start if self.curr else len(self.origin.text))

    def too_deep(self, start: int) -> NoReturn:
        """Raise the error for an expression that is nested too deep at `start`."""
        self.fail(
            "W0201",
            f"the expression is nested more than {MAX_DEPTH} deep",
            start,
            len(self.origin.text),
            "compute part of it in a separate column",
        )

    def word(self, token: Token | None = None) -> str:
        """Return the token in capitals if it is a plain ASCII word, else an empty string."""
        token = self.curr if token is None else token
        return token.text.upper() if token.token_type == TokenType.VAR and token.text.isascii() else ""

    def begins_clause(self, word: str) -> bool:
        """Whether a word at the cursor begins a clause of a statement."""
        following = self.word(self.next)
        return word in CLAUSE_WORDS or (word in JOIN_KINDS and following in ("JOIN", "OUTER", *JOIN_KINDS))

    def take_word(self, word: str, expected: str) -> None:
        """Step over a required word."""
        if self.word() != word:
            self.unexpected(expected)
        self.advance()

    def close(self, opening: Token) -> None:
        """Step over the parenthesis that closes `opening`."""
        if not self.curr:
            self.fail("W0201", "this parenthesis is not closed", *ends(opening), "add the missing )")
        if not self.match(TokenType.R_PAREN):
            self.unexpected(") or an operator")

    def bare_name(self) -> str:
        """Step over a name without quotes and return it."""
        name = self.curr.text
        if not name.isidentifier():
            self.fail(
                "W0201",
                f"{name!r} is not a name",
                *ends(self.curr),
                "a name has letters, digits and _; put other names in backticks and strings in straight quotes",
            )
        self.advance()
        return name


def ends(token: Token) -> tuple[int, int]:
    """Return the start and the exclusive end of a token."""
    return token.start, token.end + 1
