"""Operands without subexpressions: numbers, strings, times, columns, placeholders and selectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from weft.core.duration import Duration
from weft.core.types import BOOLEAN, DATE, INTERVAL, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ
from weft.errors import Code, Diagnostic, WeftError
from weft.expr.ast import Expr, Lit, Origin, Placeholder, Ref, Selector, Span
from weft.expr.literals import read_date, read_number, read_time
from weft.expr.tokens import AFTER_NUMBER, Cursor, ends
from weft.expr.words import MAX_DEPTH, UNITS

_T = TypeVar("_T")


class Part(NamedTuple):
    """A parsed node (None after a finding), its span including parentheses, and its depth."""

    expr: Expr | None
    span: Span
    deep: int


class Operands(Cursor):
    """Parses one operand at the cursor; an invalid value is added to the findings and parsing continues."""

    def __init__(self, tokens: list[Token], origin: Origin) -> None:
        super().__init__(tokens, origin)
        self.findings: list[Diagnostic] = []

    def span(self, start: int) -> Span:
        """Return the span from `start` to the end of the last token."""
        return Span(start, self.prev.end + 1, self.origin)

    def part(self, expr: Expr | None, start: int, *below: Part) -> Part:
        """Return the part from `start` to the cursor, one deeper than its deepest child."""
        # Counted here too: operators of one rank nest in the tree without any recursion of the parser.
        deep = 1 + max((part.deep for part in below), default=0)
        if deep > MAX_DEPTH:
            self.too_deep(start)
        return Part(expr, self.span(start), deep)

    def note(self, code: Code, message: str, at: Span, help: str = "") -> None:
        """Add a finding; parsing continues, and all findings are raised at the end."""
        self.findings.append(Diagnostic(code, message, help=help, at=at.place))

    def attempt(self, at: Span, code: Code, read: Callable[[], _T]) -> _T | None:
        """Parse a literal or type; an error becomes a finding at `at`, with its own code or `code`."""
        try:
            return read()
        except WeftError as error:
            own = error.code if error.code in ("W0203", "W0204") else code
            self.note(own, error.message, at, error.help)
            return None

    @property
    def at_number(self) -> bool:
        """Whether a number begins here, with or without a digit before its point."""
        kind = self.curr.token_type
        return kind == TokenType.NUMBER or (kind == TokenType.DOT and self.next.token_type == TokenType.NUMBER)

    def number(self, minus: Token | None = None) -> Part:
        """Parse a number; a minus is part of the literal, so that the smallest long can be written."""
        start = self.curr.start
        self.advance(1 if self.curr.token_type == TokenType.NUMBER else 2)  # sqlglot reads .5 as a dot and a number
        if self.curr.token_type in AFTER_NUMBER and self.connected:
            text = self.origin.text[start : self.curr.end + 1]
            self.fail("W0203", f"{text!r} is not a number", start, self.curr.end + 1)
        text = self.origin.text[start : self.prev.end + 1]
        digits = self.part(None, start)
        span = self.span(start if minus is None else minus.start)
        number = self.attempt(span, "W0203", lambda: read_number(text, negative=minus is not None))
        lit = None if number is None else Lit(*number, span=span)
        return self.part(lit, span.start, *(() if minus is None else (digits,)))

    def text(self) -> Part:
        """Parse a string; inside it only its own quote is doubled."""
        start = self.curr.start
        value = self._unquoted()
        return self.part(Lit(value, STRING, span=self.span(start)), start)

    def _unquoted(self) -> str:
        # From the text: which doubled quotes and backslashes sqlglot's value keeps differs between its releases.
        raw = self.origin.text[self.curr.start : self.curr.end + 1]
        self.advance()
        return raw[1:-1].replace(raw[0] * 2, raw[0])

    def constant(self, word: str) -> Part:
        """Parse NULL, TRUE or FALSE."""
        start = self.curr.start
        self.advance()
        value = None if word == "NULL" else word == "TRUE"
        return self.part(Lit(value, NULL if value is None else BOOLEAN, span=self.span(start)), start)

    def typed_text(self, word: str) -> Part:
        """Parse ``DATE '2026-01-31'`` or ``TIMESTAMP '..'``."""
        start = self.curr.start
        self.advance()
        text_start = self.curr.start
        value = self._unquoted()
        inner, span = self.part(None, text_start), self.span(start)
        if word == "DATE":
            return self.part(self.date(value, span), start, inner)
        time = self.attempt(span, "W0204", lambda: read_time(value))
        if time is None:
            return self.part(None, start, inner)
        return self.part(Lit(time, TIMESTAMP if time.tzinfo else TIMESTAMP_NTZ, span=span), start, inner)

    def date(self, text: str, span: Span) -> Lit | None:
        """Return a date; add a finding and return None when it is invalid."""
        day = self.attempt(span, "W0204", lambda: read_date(text))
        return None if day is None else Lit(day, DATE, span=span)

    def interval(self) -> Part:
        """Parse ``INTERVAL '1' DAY`` and its other spellings."""
        start = self.curr.start
        self.advance(2)
        if self.word() in UNITS:
            self.advance()
            if self.word() == "TO" and self.word(self.next) in UNITS:
                self.advance(2)
        span = self.span(start)
        text = self.origin.text[span.start : span.end]
        length = self.attempt(span, "W0204", lambda: Duration.parse(text, signed=True).to_timedelta())
        return self.part(None if length is None else Lit(length, INTERVAL, span=span), start)

    def placeholder(self) -> Part:
        """Parse ``?`` or ``:name``."""
        mark = self.curr
        self.advance()
        name = None
        if mark.token_type != TokenType.PLACEHOLDER:
            if self.curr.token_type != TokenType.VAR or not self.connected:
                self.unexpected("a name directly after the colon, as in :limit")
            name = self.bare_name()
        return self.part(Placeholder(name, span=self.span(mark.start)), mark.start)

    def selector(self) -> Part:
        """Parse ``{{NAME}}``."""
        opening = self.curr
        self.advance()
        if self.curr.token_type == TokenType.BLOCK_END:
            self.fail("W0201", "the selector has no name", opening.start, self.curr.end + 1, "write {{NAME}}")
        if self.curr.token_type != TokenType.VAR:
            self.unexpected("the name of a selector after {{")
        name = self.bare_name()
        if not self.curr:
            self.fail("W0201", "this {{ is not closed", *ends(opening), "add the missing }}")
        if not self.match(TokenType.BLOCK_END):
            self.unexpected("}} after the name of the selector")
        return self.part(Selector(name, span=self.span(opening.start)), opening.start)

    def column(self) -> Part:
        """Parse ``name`` or ``table.name``."""
        start, parts = self.curr.start, [self._name()]
        while self.match(TokenType.DOT):
            if self.curr.token_type == TokenType.STAR:
                self.fail("W0205", "* is not allowed in an expression", *ends(self.curr), "name one column")
            if self.curr.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
                self.unexpected("a column name after the dot")
            parts.append(self._name())
        if len(parts) > 2 or self.curr.token_type == TokenType.L_PAREN:
            what, help = "a function with a prefix", ""
            if len(parts) > 2:
                what, help = "a name with more than one dot", "put a name with a dot in backticks, as in `a.b`"
            self.fail("W0205", f"{what} is not allowed in an expression", start, self.prev.end + 1, help)
        table = parts[0] if len(parts) == 2 else None
        return self.part(Ref(table, parts[-1], span=self.span(start)), start)

    def _name(self) -> str:
        token = self.curr
        if token.token_type == TokenType.VAR:
            return self.bare_name()
        name = self._unquoted()
        if not name:
            self.fail("W0201", "the quoted name is empty", *ends(token))
        return name
