"""``SELECT``: the list, ``FROM`` and ``JOIN`` with their bounds and windows, and the clauses after them in any order."""

from __future__ import annotations

import re
from typing import Any

from sqlglot.tokenizer_core import TokenType

from weft.core.duration import Duration
from weft.core.names import find_similar
from weft.core.types import DType, parse_type
from weft.errors import WeftError
from weft.expr.tokens import ends
from weft.streams.kernel.spec import Emit, StreamHow
from weft.streams.sql.reading import Reading
from weft.streams.sql.syntax import (
    ColumnSyntax,
    Item,
    JoinSyntax,
    Name,
    SaidOption,
    Select,
    SourceSyntax,
    WindowSyntax,
    WithinSyntax,
)

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


_HOWS: dict[str, StreamHow] = {"INNER": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}
_WINDOWS = {"TUMBLING": ("size",), "SLIDING": ("size", "slide"), "SESSION": ("gap",)}
_ARGUMENT_WORDS = ("SIZE", "SLIDE", "ADVANCE", "GAP", "INTERVAL")


class Joins(WithOptions):
    """Reads sources and joins."""

    def source(self, after: str) -> SourceSyntax:
        """Read ``name [[AS] alias]``."""
        if self.curr.token_type == TokenType.L_PAREN:
            help = "write the query as a stream of its own: CREATE STREAM .. AS SELECT .."
            self.fail("W2004", "a subquery is not part of streaming SQL", *ends(self.curr), help)
        start = self.start
        name = self.name(f"the name of a stream or table after {after}")
        alias = self.alias() or name
        return SourceSyntax(name=name, alias=alias, at=self.place(start))

    def joins(self) -> tuple[JoinSyntax, ...]:
        """Read every JOIN that follows."""
        found = []
        while not self.ended and (how := self._how()) is not None:
            found.append(self._join(*how))
        return tuple(found)

    def _how(self) -> tuple[StreamHow, int] | None:
        """Step over the words up to JOIN; return the kind and where it starts."""
        start, word = self.start, self.word()
        if word == "JOIN":
            self.advance()
            return "inner", start
        if word not in _HOWS:
            return None
        self.advance()
        self.refuse_absent()  # LEFT SEMI JOIN
        if word != "INNER":
            self.take("OUTER")
        self.need("JOIN", f"JOIN after {word}")
        return _HOWS[word], start

    def _join(self, how: StreamHow, start: int) -> JoinSyntax:
        how_at = self.place(start)
        source = self.source("JOIN")
        within, window = self.within() if self.word() == "WITHIN" else None, None
        help = f"write ON and the keys: ON a.key = {source.alias.text}.key"
        self.need("ON", "ON and a condition", help)
        on = self.condition()
        while not self.ended:
            if self.word() == "WITHIN" and within is None:
                within = self.within()
            elif self.word() == "WINDOW" and window is None:
                window = self.window()
            else:
                break
        at = self.place(start)
        return JoinSyntax(how=how, source=source, on=on, within=within, window=window, at=at, how_at=how_at)

    def within(self) -> WithinSyntax:
        """Read ``WITHIN d`` or ``WITHIN (before, after)``."""
        start = self.start
        self.advance()
        if self.match(TokenType.L_PAREN):
            before = self.duration("the length of time before", signed=True)
            self.need_mark(TokenType.COMMA, ", and the length of time after", "write WITHIN ('5m', '1h')")
            after = self.duration("the length of time after", signed=True)
            self.need_mark(TokenType.R_PAREN, ") after the two lengths of time")
        else:
            before = after = self.duration("a length of time after WITHIN")
        self.refuse_absent()  # GRACE PERIOD
        at = self.place(start)
        if before.microseconds + after.microseconds < 0:
            low = Duration(-before.microseconds)
            self.note(
                "W2105",
                f"the bound from {low} to {after} leaves nothing: it ends before it starts",
                at,
                "WITHIN (before, after) means right time from left - before to left + after",
            )
        return WithinSyntax(before=before, after=after, at=at)

    def window(self) -> WindowSyntax:
        """Read ``WINDOW kind (arguments)``."""
        start = self.start
        self.advance()
        self.refuse_absent()  # HOPPING
        kind = self.word()
        if kind not in _WINDOWS:
            self.unexpected("TUMBLING, SLIDING or SESSION after WINDOW")
        self.advance()
        example = {"TUMBLING": "('1h')", "SLIDING": "(SIZE '1h', SLIDE '10m')", "SESSION": "('30m')"}[kind]
        help = f"write WINDOW {kind}{example}"
        self.need_mark(TokenType.L_PAREN, f"( after {kind}", help)
        column_of, column = self._time_column()
        lengths: dict[str, Duration] = {}
        for i, name in enumerate(_WINDOWS[kind]):
            if i:
                self.need_mark(TokenType.COMMA, f", and the {name} of the window", help)
            lengths[name] = self._length(kind, name, help)
        self.need_mark(TokenType.R_PAREN, f") after the {name} of the window", help)
        return WindowSyntax(
            kind=kind.lower(),  # type: ignore[arg-type]  # a key of _WINDOWS
            column=column,
            column_of=column_of,
            at=self.place(start),
            **lengths,
        )

    def _length(self, kind: str, name: str, help: str) -> Duration:
        if self.word() in _ARGUMENT_WORDS and self.word() != "INTERVAL":
            said = self.word().replace("ADVANCE", "SLIDE")
            if said != name.upper():
                self.unexpected(f"the {name} of the {kind} window", help)
            self.advance()
            self.take("BY")
        start = self.start
        found = self.duration(f"the {name} of the window")
        if not found.microseconds:
            self.note("W0304", f"the {name} of a window is longer than zero", self.place(start), help)
        return found

    def _time_column(self) -> tuple[Name | None, Name | None]:
        """Step over ``[alias.]column,`` if the arguments begin with it."""
        is_name = self.curr.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        if not is_name or self.next.token_type not in (TokenType.COMMA, TokenType.DOT):
            return None, None
        column, column_of = self.name("a time column"), None
        if self.match(TokenType.DOT):
            column_of, column = column, self.name("a time column after the dot")
        self.need_mark(TokenType.COMMA, ", after the time column")
        return column_of, column


_EMITS: dict[str, Emit] = {"CHANGES": "changes", "FINAL": "final"}
_TAIL = ("WHERE", "WINDOW", "EMIT", "WITH")
_CLAUSES = (*_TAIL, "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "WITHIN", "FROM", "ON")
EVENT_TIME = "_EVENT_TIME"
"""The alias that makes an expression the event time of the output."""


class Selects(Joins):
    """Reads a query."""

    def select(self) -> Select:
        """Read ``SELECT .. FROM .. JOIN ..`` and the clauses after it."""
        start = self.start
        self.need("SELECT")
        items = self._items()
        self.need("FROM", ", or FROM after the select list")
        source = self.source("FROM")
        if self.curr.token_type == TokenType.COMMA:
            help = "write JOIN and the keys: JOIN b ON a.key = b.key"
            self.fail("W2004", "a list after FROM is not part of streaming SQL", *ends(self.curr), help)
        joins = self.joins()
        tail = self._tail()
        return Select(items=items, source=source, joins=joins, at=self.place(start), **tail)

    # -- the list

    def _items(self) -> tuple[Item, ...]:
        found: list[Item] = []
        while True:
            item = self.attempt(self._item, lambda: self.skip_to("FROM"))
            if item is not None:
                found.append(item)
            if not self.match(TokenType.COMMA):
                break
        times = [item for item in found if item.is_event_time]
        for item in times[1:]:
            self.note("W2003", f"AS {EVENT_TIME} stands twice", item.at, "a row has one event time")
        return tuple(found)

    def _item(self) -> Item:
        start = self.start
        if self.word() == "DISTINCT":
            self.refuse_absent()
        if self.word() == "FROM":
            help = "name columns or write *"
            self.fail("W2001", "expected an expression before FROM", *ends(self.curr), help)
        star = self._star()
        if star is not None:
            alias, found = self.alias(), Item(is_star=True, star_of=star[0], at=self.place(start, star[1]))
            if alias is not None:
                self.note("W2014", "a star has no name of its own", alias.at, "name the columns one by one")
            if self.take("PRIMARY", "KEY"):
                at = self.place(self.tokens[self.index - 2].start)
                self.note("W2014", "a star is no key", at, "name the columns of the key one by one")
            return found
        expr = self.expression()
        self.refuse_absent()  # OVER
        is_key = self.take("PRIMARY", "KEY")
        alias = self.alias()
        is_key = self.take("PRIMARY", "KEY") or is_key
        is_time = alias is not None and alias.text.upper() == EVENT_TIME
        return Item(expr=expr, alias=alias, is_key=is_key, is_event_time=is_time, at=self.place(start))

    def _star(self) -> tuple[Name | None, int] | None:
        """Step over ``*`` or ``name.*`` if it stands here; return the name and where the star ends."""
        if self.match(TokenType.STAR):
            return None, self.prev.end + 1
        third = self.tokens[min(self.index + 2, len(self.tokens) - 1)]
        if self.next.token_type == TokenType.DOT and third.token_type == TokenType.STAR:
            name = self.name("a name")
            self.advance(2)
            return name, self.prev.end + 1
        return None

    # -- what follows

    def _tail(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.ended:
            word = self.word()
            if word not in _TAIL:
                self._out_of_place(word)
            key = {"WITH": "options"}.get(word, word.lower())
            if key in found:
                self.fail("W2003", f"{word} stands twice", *ends(self.curr), "leave one of them out")
            found[key] = self._clause(word, found)
        return found

    def _clause(self, word: str, found: dict[str, Any]) -> Any:
        if word == "WINDOW":
            return self.window()
        start = self.start
        self.advance()
        if word == "WHERE":
            return self.condition()
        if word == "WITH":
            return self.options()
        self.index -= 1
        self.refuse_absent()  # EMIT EARLY
        self.advance()
        emit = _EMITS.get(self.word())
        if emit is None:
            close = bool(self.word()) and bool(find_similar(self.word(), _EMITS, most=1))  # a word misspelt
            help = "CHANGES gives rows as soon as they are known, FINAL when nothing can change any more"
            self.unexpected("CHANGES or FINAL after EMIT", "" if close else help)
        self.advance()
        found["emit_at"] = self.place(start)
        return emit

    def _out_of_place(self, word: str) -> None:
        self.refuse_absent()
        if word in ("JOIN", "INNER", "LEFT", "RIGHT", "FULL"):
            help = "joins stand directly after FROM, before WHERE, WINDOW, EMIT and WITH"
            self.fail("W2003", f"{word} stands after {self._clause_before()}", *ends(self.curr), help)
        if word == "WITHIN":
            help = "write it directly after the ON of the join it means"
            self.fail("W2003", "WITHIN stands in no join", *ends(self.curr), help)
        if word in ("CREATE", "INSERT", "SELECT", "EXPLAIN", "SET"):
            help = "statements end with a semicolon"
            self.fail("W2001", f"expected ; before {word}", *ends(self.curr), help)
        for token in (self.curr, self.prev):  # FROM orders WHRE x: the alias is a clause misspelt
            said = self.word(token)
            close = find_similar(said, _CLAUSES, most=1) if len(said) > 2 and said not in _CLAUSES else ()
            if close:
                help = f"did you mean {close[0]}?"
                self.fail("W2002", f"{token.text!r} begins no clause", *ends(token), help)
        if self.word():
            help = "after the joins stand WHERE, WINDOW, EMIT and WITH"
            self.fail("W2002", f"{self.curr.text!r} begins no clause", *ends(self.curr), help)
        self.unexpected("WHERE, WINDOW, EMIT, WITH or ;")

    def _clause_before(self) -> str:
        words = [self.word(token) for token in self.tokens[: self.index]]
        return next((word for word in reversed(words) if word in _TAIL), "the joins")
