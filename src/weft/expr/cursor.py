"""The cursor over tokens: where it stands, what it can expect, how it fails."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from weft.errors import Code, ExpressionError
from weft.expr.ast import Origin, Span
from weft.expr.words import REFUSED_TOKENS, REFUSED_WORDS

DEEPEST = 100
"""How far expressions may be nested."""


class Cursor(Parser):
    """sqlglot's parser as a cursor: every failure is ours and has a place, every node notes its own."""

    origin: Origin = Origin("")

    def _fail(self, code: Code, message: str, start: int, end: int, help: str = "") -> NoReturn:
        raise ExpressionError(message, code=code, help=help, at=Span(start, end, self.origin).place)

    def _unexpected(self, expected: str) -> NoReturn:
        token, size = self._curr, len(self.origin.text)
        if not token:
            self._fail("W0201", f"expected {expected}, found the end of the text", size, size)
        found = self.origin.text[token.start : token.end + 1]
        refused = REFUSED_TOKENS.get(token.token_type) or REFUSED_WORDS.get(self._word())
        if refused is not None:
            self._fail("W0205", f"{refused[0]} is not allowed in an expression", *ends(token), refused[1])
        self._fail("W0201", f"expected {expected}, found {found!r}", *ends(token))

    def _node(self, node: exp.Expr, start: int) -> exp.Expr:
        """Note where the node stands and how deep it is; AND and OR of a chain count once."""
        below = [c for c in node.iter_expressions() if "deep" in c.meta]
        deep = 1 + max((c.meta["deep"] for c in below), default=0)
        if isinstance(node, exp.Connector) and type(node.this) is type(node):
            deep = max(node.this.meta["deep"], 1 + node.expression.meta["deep"])
        if deep > DEEPEST:
            self._too_deep(start)
        node.meta.update(start=start, end=self._prev.end + 1, deep=deep)
        return node

    def _too_deep(self, start: int) -> NoReturn:
        self._fail(
            "W0201",
            f"the expression is nested more than {DEEPEST} deep",
            start,
            len(self.origin.text),
            "compute a part of it in a column of its own",
        )

    def _word(self, token: Token | None = None) -> str:
        """Return the token in capitals if it is a plain ASCII word, else an empty text."""
        token = self._curr if token is None else token
        return token.text.upper() if token.token_type == TokenType.VAR and token.text.isascii() else ""

    def _take_word(self, word: str, expected: str) -> None:
        if self._word() != word:
            self._unexpected(expected)
        self._advance()

    def _close(self, opening: Token) -> None:
        if not self._curr:
            self._fail("W0201", "this parenthesis is not closed", *ends(opening), "add the missing )")
        if not self._match(TokenType.R_PAREN):
            self._unexpected(") or an operator")

    def _bare_name(self) -> str:
        name = self._curr.text
        if not name.isidentifier():
            self._fail(
                "W0201",
                f"{name!r} is not a name",
                *ends(self._curr),
                "names have letters, digits and _; put any other in backticks, texts in straight quotes",
            )
        self._advance()
        return name


def ends(token: Token) -> tuple[int, int]:
    """Return where a token starts and where the text after it does."""
    return token.start, token.end + 1
