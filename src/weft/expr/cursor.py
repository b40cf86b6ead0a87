"""The cursor over tokens: where it stands, what it can expect, how it fails."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from weft.errors import Code, ExpressionError
from weft.expr.ast import Origin, Span
from weft.expr.words import REFUSED_TOKENS, REFUSED_WORDS

DEEPEST = 100
"""How far expressions may be nested."""

_END = Token(TokenType.SENTINEL, "")


class Cursor:
    """Walks over sqlglot's tokens; every failure has a place and every node notes its own.

    sqlglot's own parser cannot be the base: its compiled build (sqlglotc) refuses subclasses.
    """

    def __init__(self, tokens: list[Token], origin: Origin) -> None:
        self.tokens = [*tokens, _END, _END]
        self.origin = origin
        self.index = 0

    @property
    def curr(self) -> Token:
        """The token to be read; false at the end."""
        return self.tokens[self.index]

    @property
    def next(self) -> Token:
        """The token after that."""
        return self.tokens[self.index + 1]

    @property
    def prev(self) -> Token:
        """The token that was read last."""
        return self.tokens[self.index - 1]

    @property
    def connected(self) -> bool:
        """Whether nothing stands between the last token and this one."""
        return bool(self.curr) and self.prev.end + 1 == self.curr.start

    def advance(self, by: int = 1) -> None:
        """Step over tokens."""
        self.index += by

    def match(self, kind: TokenType) -> bool:
        """Step over a token of that kind, if it is one."""
        found = self.curr.token_type == kind
        self.index += found
        return found

    def fail(self, code: Code, message: str, start: int, end: int, help: str = "") -> NoReturn:
        """Refuse the text at a place."""
        raise ExpressionError(message, code=code, help=help, at=Span(start, end, self.origin).place)

    def unexpected(self, expected: str) -> NoReturn:
        """Refuse the token that stands where something else is expected."""
        token, size = self.curr, len(self.origin.text)
        if not token:
            self.fail("W0201", f"expected {expected}, found the end of the text", size, size)
        found = self.origin.text[token.start : token.end + 1]
        refused = REFUSED_TOKENS.get(token.token_type) or REFUSED_WORDS.get(self.word())
        if refused is not None:
            help_ = self._meant() or refused[1]
            self.fail("W0205", f"{refused[0]} is not allowed in an expression", *ends(token), help_)
        self.fail("W0201", f"expected {expected}, found {found!r}", *ends(token))

    def _meant(self) -> str:
        """Return how to write what the next word belongs to, where the word alone does not tell."""
        before = [token.text.upper() for token in self.tokens[: self.index]]
        if self.word() == "AS" and ("TRY_CAST" in before or "SAFE_CAST" in before):
            return "write CAST(x AS type)"
        if self.word() == "DISTINCT" and before[-1:] == ["IS"]:
            return "write NOT (x <=> y): it is true when one of the two is NULL"
        if self.word() == "DISTINCT" and before[-2:] == ["IS", "NOT"]:
            return "write x <=> y: it is true when both are NULL"
        return ""

    def node(self, node: exp.Expr, start: int) -> exp.Expr:
        """Note where the node stands and how deep it is; AND and OR of a chain count once."""
        below = [c for c in node.iter_expressions() if "deep" in c.meta]
        deep = 1 + max((c.meta["deep"] for c in below), default=0)
        if isinstance(node, exp.Connector) and type(node.this) is type(node):
            deep = max(node.this.meta["deep"], 1 + node.expression.meta["deep"])
        if deep > DEEPEST:
            self.too_deep(start)
        node.meta.update(start=start, end=self.prev.end + 1, deep=deep)
        return node

    def too_deep(self, start: int) -> NoReturn:
        """Refuse a text that is nested too deep from `start` on."""
        self.fail(
            "W0201",
            f"the expression is nested more than {DEEPEST} deep",
            start,
            len(self.origin.text),
            "compute a part of it in a column of its own",
        )

    def word(self, token: Token | None = None) -> str:
        """Return the token in capitals if it is a plain ASCII word, else an empty text."""
        token = self.curr if token is None else token
        return token.text.upper() if token.token_type == TokenType.VAR and token.text.isascii() else ""

    def take_word(self, word: str, expected: str) -> None:
        """Step over a word that must stand here."""
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
                "names have letters, digits and _; put any other in backticks, texts in straight quotes",
            )
        self.advance()
        return name


def ends(token: Token) -> tuple[int, int]:
    """Return where a token starts and where the text after it does."""
    return token.start, token.end + 1
