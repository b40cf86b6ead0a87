"""Parsing of SELECT: the list, FROM and JOIN with bounds and windows, and the clauses after the joins, in any order."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from sqlglot.tokenizer_core import TokenType

from weft.core.duration import Duration
from weft.core.names import find_similar
from weft.core.types import DType, parse_type
from weft.errors import WeftError
from weft.expr.tokens import ends
from weft.streams.kernel.spec import Emit, StreamHow
from weft.streams.sql.parser import Parser
from weft.streams.sql.spec import ItemSpec
from weft.streams.sql.syntax import (
    ColumnSyntax,
    JoinSyntax,
    Name,
    OptionSyntax,
    Select,
    SourceSyntax,
    WindowSyntax,
    WithinSyntax,
)

# TIMESTAMP(3) and the like, as Flink writes them: event times have microseconds whatever the precision.
_PRECISION = re.compile(r"(timestamp(?:_ntz|_ltz)?)\s*\(\s*\d\s*\)", re.IGNORECASE)
_AFTER_TYPE = ("NOT", "NULL", "PRIMARY", "WITH", "AS")
_IN_QUOTES = "write the value as one string in single quotes; '' is a quote inside it"
_TYPES = "types are STRING, INT, BIGINT, DOUBLE, DECIMAL(p,s), BOOLEAN, DATE, TIMESTAMP and ARRAY of these"


class OptionParser(Parser):
    """Parses options and column declarations."""

    def parse_options(self) -> tuple[OptionSyntax, ...]:
        """Parse ``('key' = value, ..)`` after WITH."""
        self.expect_token(TokenType.L_PAREN, "( after WITH", "write WITH ('key' = 'value')")
        self.in_options = True
        options: dict[str, OptionSyntax] = {}
        for option in self.parse_list(self.parse_option):
            if option.key in options:
                self.add_finding("W2003", f"duplicate option {option.key!r}", option.key_at, "remove one of them")
            options.setdefault(option.key, option)  # the first counts, for the errors of later checks
        self.expect_token(TokenType.R_PAREN, ", or ) after an option")
        self.in_options = False
        return tuple(options.values())

    def parse_option(self) -> OptionSyntax:
        """Parse ``'key' = value``."""
        token = self.curr
        if token.token_type != TokenType.STRING:
            self.unexpected("the name of an option in single quotes", "write 'key' = 'value'")
        key = self.parse_string()
        key_at = self.locate(token.start)
        self.expect_token(TokenType.EQ, "= after the name of an option")
        start, value = self.start, self._parse_value()
        return OptionSyntax(key=key, value=value, key_at=key_at, value_at=self.locate(start))

    def _parse_value(self) -> str:
        token = self.curr
        sign = "-" if self.match(TokenType.DASH) else ""
        if self.curr.token_type == TokenType.NUMBER:
            self.advance()
            return sign + self.origin.text[self.prev.start : self.prev.end + 1]
        if not sign and token.token_type == TokenType.STRING:
            return self.parse_string()
        if not sign and self.word() in ("TRUE", "FALSE"):
            self.advance()
            return token.text.lower()
        help = f"write {self.describe(self.curr)}" if self.word() else _IN_QUOTES
        return self.unexpected("a value: a string in single quotes, a number, TRUE or FALSE", help)

    def parse_columns(self) -> tuple[ColumnSyntax, ...]:
        """Parse ``(name type [NOT NULL], ..)`` if it comes next."""
        if not self.match(TokenType.L_PAREN):
            return ()
        columns: dict[str, ColumnSyntax] = {}
        for column in self.parse_list(self._parse_column):
            name = column.name
            if name.text.casefold() in columns:
                self.add_finding("W2009", f"duplicate column {name.text!r}", name.at, "remove one of them")
            columns.setdefault(name.text.casefold(), column)
        self.expect_token(TokenType.R_PAREN, ", or ) after a column")
        return tuple(columns.values())

    def _parse_column(self) -> ColumnSyntax:
        name = self.parse_name("the name of a column", any_word=True)
        dtype = self._parse_type(name.text)
        nullable = not self.take("NOT", "NULL")
        if nullable:
            self.take("NULL")
        if self.take("PRIMARY", "KEY"):
            at = self.locate(self.tokens[self.index - 2].start)
            help = "write keys in the ON of a join; 'dedup.keys' removes duplicate rows"
            self.add_finding("W2004", "streaming SQL does not support PRIMARY KEY in a column declaration", at, help)
        return ColumnSyntax(name=name, dtype=dtype, nullable=nullable, at=name.at)

    def _parse_type(self, column: str) -> DType:
        # The type has a grammar of its own, so its tokens are skipped and its text is parsed as a whole.
        first, depth = self.curr, 0
        while not self.is_at_end and (depth or self.curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN)):
            if not depth and self.word() in _AFTER_TYPE and self.curr is not first:
                break
            kind = self.curr.token_type
            depth += kind in (TokenType.L_PAREN, TokenType.LT)
            depth -= kind in (TokenType.R_PAREN, TokenType.GT)
            self.advance()
        if self.curr is first:
            help = f"add a type, for example {column} STRING"
            self.fail("W2013", f"column {column!r} has no type", *ends(self.tokens[self.index - 1]), help)
        text = self.origin.text[first.start : self.prev.end + 1]
        try:
            return parse_type(_PRECISION.sub(r"\1", text))
        except WeftError:
            self.fail("W2013", f"unknown type {text!r}", first.start, self.prev.end + 1, _TYPES)


_HOWS: dict[str, StreamHow] = {"INNER": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}
_WINDOWS = {"TUMBLING": ("size",), "SLIDING": ("size", "slide"), "SESSION": ("gap",)}
_ARGUMENT_WORDS = ("SIZE", "SLIDE", "ADVANCE", "GAP")


class JoinParser(OptionParser):
    """Parses sources and joins."""

    def parse_source(self, after: str) -> SourceSyntax:
        """Parse ``name [[AS] alias]``."""
        if self.curr.token_type == TokenType.L_PAREN:
            help = "write the query as a separate stream: CREATE STREAM .. AS SELECT .."
            self.fail("W2004", "streaming SQL does not support subqueries", *ends(self.curr), help)
        start = self.start
        name = self.parse_name(f"the name of a stream or table after {after}")
        alias = self.parse_alias() or name
        return SourceSyntax(name=name, alias=alias, at=self.locate(start))

    def parse_joins(self) -> tuple[JoinSyntax, ...]:
        """Parse all joins that follow."""
        joins = []
        while not self.is_at_end and (how := self._parse_how()) is not None:
            joins.append(self._parse_join(*how))
        return tuple(joins)

    def _parse_how(self) -> tuple[StreamHow, int] | None:
        """Parse the keywords up to JOIN; return the kind of join and its offset."""
        start, word = self.start, self.word()
        if word == "JOIN":
            self.advance()
            return "inner", start
        if word not in _HOWS:
            return None
        self.advance()
        self.refuse_unsupported()  # LEFT SEMI JOIN
        if word != "INNER":
            self.take("OUTER")
        self.expect("JOIN", f"JOIN after {word}")
        return _HOWS[word], start

    def _parse_join(self, how: StreamHow, start: int) -> JoinSyntax:
        how_at = self.locate(start)
        source = self.parse_source("JOIN")
        # ksqlDB has WITHIN before ON; after ON it may come in any order with WINDOW.
        within, window = self._parse_within() if self.word() == "WITHIN" else None, None
        help = f"write ON and the keys: ON a.key = {source.alias.text}.key"
        self.expect("ON", "ON and a condition", help)
        on = self.parse_condition()
        while not self.is_at_end:
            if self.word() == "WITHIN" and within is None:
                within = self._parse_within()
            elif self.word() == "WINDOW" and window is None:
                window = self.parse_window()
            else:
                break
        at = self.locate(start)
        return JoinSyntax(how=how, source=source, on=on, within=within, window=window, at=at, how_at=how_at)

    def _parse_within(self) -> WithinSyntax:
        """Parse ``WITHIN d`` or ``WITHIN (before, after)``."""
        start = self.start
        self.advance()
        if self.match(TokenType.L_PAREN):
            before = self.parse_duration("the duration before", signed=True)
            self.expect_token(TokenType.COMMA, ", and the duration after", "write WITHIN ('5m', '1h')")
            after = self.parse_duration("the duration after", signed=True)
            self.expect_token(TokenType.R_PAREN, ") after the two durations")
        else:
            before = after = self.parse_duration("a duration after WITHIN")  # unsigned: both directions
        self.refuse_unsupported()  # GRACE PERIOD
        at = self.locate(start)
        if before.microseconds + after.microseconds < 0:
            low = Duration(-before.microseconds)
            help = "WITHIN (before, after) means a right time from left - before to left + after"
            self.add_finding("W2105", f"empty bound: it starts at {low} and ends at {after}", at, help)
        return WithinSyntax(before=before, after=after, at=at)

    def parse_window(self) -> WindowSyntax:
        """Parse ``WINDOW kind (arguments)``."""
        start = self.start
        self.advance()
        self.refuse_unsupported()  # HOPPING
        kind = self.word()
        if kind not in _WINDOWS:
            self.unexpected("TUMBLING, SLIDING or SESSION after WINDOW")
        self.advance()
        example = {"TUMBLING": "('1h')", "SLIDING": "(SIZE '1h', SLIDE '10m')", "SESSION": "('30m')"}[kind]
        help = f"write WINDOW {kind}{example}"
        self.expect_token(TokenType.L_PAREN, f"( after {kind}", help)
        column_of, column = self._parse_time_column()
        lengths: dict[str, Duration] = {}
        for i, name in enumerate(_WINDOWS[kind]):
            if i:
                self.expect_token(TokenType.COMMA, f", and the {name} of the window", help)
            lengths[name] = self._parse_length(kind, name, help)
        self.expect_token(TokenType.R_PAREN, f") after the {name} of the window", help)
        return WindowSyntax(
            kind=kind.lower(),  # type: ignore[arg-type]  # a key of _WINDOWS
            column=column,
            column_of=column_of,
            at=self.locate(start),
            **lengths,
        )

    def _parse_length(self, kind: str, name: str, help: str) -> Duration:
        if self.word() in _ARGUMENT_WORDS:
            # ksqlDB writes ADVANCE BY where Flink writes SLIDE.
            if self.word().replace("ADVANCE", "SLIDE") != name.upper():
                self.unexpected(f"the {name} of the {kind} window", help)
            self.advance()
            self.take("BY")
        start = self.start
        length = self.parse_duration(f"the {name} of the window")
        if not length.microseconds:
            message = f"the {name} of a window must be longer than zero"
            self.add_finding("W0304", message, self.locate(start), help)
        return length

    def _parse_time_column(self) -> tuple[Name | None, Name | None]:
        """Parse ``[alias.]column,`` if the arguments begin with it."""
        is_name = self.curr.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        if not is_name or self.next.token_type not in (TokenType.COMMA, TokenType.DOT):
            return None, None
        column, column_of = self.parse_name("a time column"), None
        if self.match(TokenType.DOT):
            column_of, column = column, self.parse_name("a time column after the dot")
        self.expect_token(TokenType.COMMA, ", after the time column")
        return column_of, column


_EMITS: dict[str, Emit] = {"CHANGES": "changes", "FINAL": "final"}
_TAIL = ("WHERE", "WINDOW", "EMIT", "WITH")
_CLAUSES = (*_TAIL, "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "WITHIN", "FROM", "ON")
EVENT_TIME = "_EVENT_TIME"
"""The alias that marks an expression as the event time of the output."""


class SelectParser(JoinParser):
    """Parses a query."""

    def parse_select(self) -> Select:
        """Parse ``SELECT .. FROM .. JOIN ..`` and the clauses after the joins."""
        start = self.start
        self.expect("SELECT")
        items = self._parse_items()
        self.expect("FROM", ", or FROM after the select list")
        source = self.parse_source("FROM")
        if self.curr.token_type == TokenType.COMMA:
            help = "write JOIN and the keys: JOIN b ON a.key = b.key"
            self.fail("W2004", "streaming SQL does not support a list of sources after FROM", *ends(self.curr), help)
        joins = self.parse_joins()
        clauses = self._parse_clauses()
        return Select(items=items, source=source, joins=joins, at=self.locate(start), **clauses)

    # -- the list

    def _parse_items(self) -> tuple[ItemSpec, ...]:
        items = tuple(self.parse_list(self._parse_item, "FROM"))
        for item in [item for item in items if item.is_event_time][1:]:
            self.add_finding("W2003", f"duplicate AS {EVENT_TIME}", item.at, "a row has one event time")
        return items

    def _parse_item(self) -> ItemSpec:
        start = self.start
        if self.word() == "DISTINCT":
            self.refuse_unsupported()
        if self.word() == "FROM":
            help = "list columns or write *"
            self.fail("W2001", "expected an expression before FROM", *ends(self.curr), help)
        star = self._parse_star()
        if star is not None:
            item, alias = (ItemSpec(is_star=True, star_of=star[0], at=self.locate(start, star[1])), self.parse_alias())
            if alias is not None:
                self.add_finding("W2014", "* cannot have an alias", alias.at, "list the columns")
            if self.take("PRIMARY", "KEY"):
                at = self.locate(self.tokens[self.index - 2].start)
                self.add_finding("W2014", "* cannot be a key", at, "list the columns of the key")
            return item
        expr = self.parse_expression()
        self.refuse_unsupported()  # OVER
        is_key = self.take("PRIMARY", "KEY")  # before or after the alias
        alias = self.parse_alias()
        is_key = self.take("PRIMARY", "KEY") or is_key
        name = None if alias is None else alias.text
        is_time = name is not None and name.upper() == EVENT_TIME
        return ItemSpec(expr=expr, alias=name, is_key=is_key, is_event_time=is_time, at=self.locate(start))

    def _parse_star(self) -> tuple[str | None, int] | None:
        """Parse ``*`` or ``name.*`` if it comes next; return the name and the end offset."""
        if self.match(TokenType.STAR):
            return None, self.prev.end + 1
        # Looked ahead, because `name.column` begins like `name.*`.
        third = self.tokens[min(self.index + 2, len(self.tokens) - 1)]
        if self.next.token_type == TokenType.DOT and third.token_type == TokenType.STAR:
            name = self.parse_name("a name").text
            self.advance(2)
            return name, self.prev.end + 1
        return None

    # -- the clauses after the joins

    def _parse_clauses(self) -> dict[str, Any]:
        """Return the clauses as fields of `Select`."""
        clauses: dict[str, Any] = {}
        while not self.is_at_end:
            word = self.word()
            # In any order, because other systems differ in it.
            if word not in _TAIL:
                self._fail_misplaced(word)
            key = {"WITH": "options"}.get(word, word.lower())
            if key in clauses:
                self.fail("W2003", f"duplicate {word}", *ends(self.curr), "remove one of them")
            clauses[key] = self._parse_clause(word, clauses)
        return clauses

    def _parse_clause(self, word: str, clauses: dict[str, Any]) -> Any:
        if word == "WINDOW":
            return self.parse_window()
        start = self.start
        self.advance()
        if word == "WHERE":
            return self.parse_condition()
        if word == "WITH":
            return self.parse_options()
        self.index -= 1  # back to EMIT: EMIT EARLY is refused as a pair of words
        self.refuse_unsupported()
        self.advance()
        emit = _EMITS.get(self.word())
        if emit is None:
            close = bool(self.word()) and bool(find_similar(self.word(), _EMITS, most=1))  # a typo
            help = "CHANGES emits rows as soon as they are known, FINAL once they cannot change any more"
            self.unexpected("CHANGES or FINAL after EMIT", "" if close else help)
        self.advance()
        clauses["emit_at"] = self.locate(start)
        return emit

    def _fail_misplaced(self, word: str) -> NoReturn:
        self.refuse_unsupported()
        if word in ("JOIN", "INNER", "LEFT", "RIGHT", "FULL"):
            help = "write joins directly after FROM, before WHERE, WINDOW, EMIT and WITH"
            self.fail("W2003", f"{word} after {self._last_clause()}", *ends(self.curr), help)
        if word == "WITHIN":
            help = "write it directly after the ON of its join"
            self.fail("W2003", "WITHIN outside a join", *ends(self.curr), help)
        self.refuse_next_statement()
        for token in (self.curr, self.prev):  # in FROM orders WHRE x, the typo was parsed as an alias
            word = self.word(token)
            close = find_similar(word, _CLAUSES, most=1) if len(word) > 2 and word not in _CLAUSES else ()
            if close:
                help = f"did you mean {close[0]}?"
                self.fail("W2002", f"unknown clause {token.text!r}", *ends(token), help)
        if self.word():
            help = "the clauses after the joins are WHERE, WINDOW, EMIT and WITH"
            self.fail("W2002", f"unknown clause {self.curr.text!r}", *ends(self.curr), help)
        self.unexpected("WHERE, WINDOW, EMIT, WITH or ;")

    def _last_clause(self) -> str:
        words = [self.word(token) for token in self.tokens[: self.index]]
        return next((word for word in reversed(words) if word in _TAIL), "the joins")
