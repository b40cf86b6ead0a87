"""``WITH ('key' = 'value', ..)`` and the columns that a stream or table declares."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import TokenType

from weft.core.types import DType, parse_type
from weft.errors import WeftError
from weft.expr.cursor import ends
from weft.streams.sql.reading import Reading
from weft.streams.sql.syntax import ColumnSyntax, SaidOption

_PRECISION = re.compile(r"(timestamp(?:_ntz|_ltz)?)\s*\(\s*\d\s*\)", re.IGNORECASE)
_AFTER_TYPE = ("NOT", "NULL", "PRIMARY", "WITH", "AS")
_TYPES = "types are STRING, INT, BIGINT, DOUBLE, DECIMAL(p,s), BOOLEAN, DATE, TIMESTAMP and lists of them"


class WithOptions(Reading):
    """Reads options and declared columns."""

    def options(self) -> tuple[SaidOption, ...]:
        """Read ``('key' = value, ..)``; WITH is read already."""
        self.need_mark(TokenType.L_PAREN, "( after WITH", "options are written WITH ('key' = 'value')")
        found: list[SaidOption] = []
        while True:
            option = self.attempt(self.option, lambda: self.skip_to(kinds=(TokenType.COMMA,)))
            if option is not None:
                self._note(option, found)
            if not self.match(TokenType.COMMA):
                break
        self.need_mark(TokenType.R_PAREN, ", or ) after an option")
        return tuple(found)

    def _note(self, option: SaidOption, found: list[SaidOption]) -> None:
        if any(option.key == other.key for other in found):
            self.note("W2003", f"option {option.key!r} stands twice", option.key_at, "leave one of them out")
        else:
            found.append(option)

    def option(self) -> SaidOption:
        """Read ``'key' = value``."""
        key = self.curr
        if key.token_type != TokenType.STRING:
            self.unexpected("the name of an option in single quotes", "options are written 'key' = 'value'")
        said = self.text()
        self.need_mark(TokenType.EQ, "= after the name of an option")
        start, value = self.start, self._value()
        key_at = self.place(key.start, key.end + 1)
        return SaidOption(key=said, value=value, key_at=key_at, value_at=self.place(start))

    def _value(self) -> str:
        token = self.curr
        sign = "-" if self.match(TokenType.DASH) else ""
        if self.curr.token_type == TokenType.NUMBER:
            self.advance()
            return sign + self.origin.text[self.prev.start : self.prev.end + 1]
        if not sign and token.token_type == TokenType.STRING:
            return self.text()
        if not sign and self.word() in ("TRUE", "FALSE"):
            self.advance()
            return token.text.lower()
        help = f"write '{self.curr.text}'" if self.word() else ""
        return self.unexpected("a value: a text in single quotes, a number, TRUE or FALSE", help)

    def columns(self) -> tuple[ColumnSyntax, ...]:
        """Read ``(name type [NOT NULL], ..)`` if it stands here."""
        if self.curr.token_type != TokenType.L_PAREN:
            return ()
        self.advance()
        found: list[ColumnSyntax] = []
        while True:
            column = self.attempt(self._column, lambda: self.skip_to(kinds=(TokenType.COMMA,)))
            if column is not None:
                self._note_column(column, found)
            if not self.match(TokenType.COMMA):
                break
        self.need_mark(TokenType.R_PAREN, ", or ) after a column")
        return tuple(found)

    def _note_column(self, column: ColumnSyntax, found: list[ColumnSyntax]) -> None:
        name = column.name.text
        if any(name.casefold() == other.name.text.casefold() for other in found):
            self.note("W2009", f"column {name!r} is declared twice", column.name.at, "leave one of them out")
        else:
            found.append(column)

    def _column(self) -> ColumnSyntax:
        name = self.name("the name of a column", any_word=True)
        dtype = self._type(name.text)
        nullable = not self.take("NOT", "NULL")
        if nullable:
            self.take("NULL")
        if self.take("PRIMARY", "KEY"):
            at = self.place(self.tokens[self.index - 2].start)
            help = "keys are said by the ON of a join; 'dedup.keys' removes repeated rows"
            self.note("W2004", "PRIMARY KEY of a column is not part of streaming SQL", at, help)
        return ColumnSyntax(name=name, dtype=dtype, nullable=nullable, at=name.at)

    def _type(self, column: str) -> DType:
        first, depth = self.curr, 0
        while not self.ended and (depth or self.curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN)):
            if not depth and self.word() in _AFTER_TYPE and self.curr is not first:
                break
            kind = self.curr.token_type
            depth += kind in (TokenType.L_PAREN, TokenType.LT)
            depth -= kind in (TokenType.R_PAREN, TokenType.GT)
            self.advance()
        if self.curr is first:
            help = f"write for example {column} STRING"
            self.fail("W2013", f"column {column!r} has no type", *ends(self.tokens[self.index - 1]), help)
        said = self.origin.text[first.start : self.prev.end + 1]
        try:
            return parse_type(_PRECISION.sub(r"\1", said))
        except WeftError:
            self.fail("W2013", f"{said!r} is not a type", first.start, self.prev.end + 1, _TYPES)
