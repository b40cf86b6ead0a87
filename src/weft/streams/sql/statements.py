"""One statement of a job: CREATE, INSERT, SELECT, EXPLAIN JOIN, SET."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from weft.core.names import near
from weft.errors import Diagnostic, WeftError
from weft.expr.ast import Origin
from weft.expr.cursor import ends
from weft.streams.sql.refused import STATEMENTS
from weft.streams.sql.select import Selects
from weft.streams.sql.syntax import (
    CreateStream,
    CreateTable,
    Explain,
    Insert,
    Query,
    SetOption,
    Statement,
    Unread,
)

_KINDS = ("CREATE", "INSERT", "SELECT", "EXPLAIN", "SET")
_HEAD, _LONGEST_WORD = 12, 20
"""How many words the head of a statement has at most, and how long a word that begins one can be."""


def read_statement(tokens: list[Token], origin: Origin) -> tuple[Statement | None, tuple[Diagnostic, ...]]:
    """Return the statement that the tokens are, or None, and what is wrong with it."""
    reader = _Statements(tokens, origin)
    try:
        statement: Statement | None = reader.whole()
    except WeftError as error:
        return None, (*reader.mistakes, *error.diagnostics)
    return (None if reader.mistakes else statement), tuple(reader.mistakes)


def unread_statements(parts: Iterable[list[Token]], *, everything: bool) -> Unread:
    """Return what statements that do not read may define; `everything` when the text is cut off."""
    names: set[str] = set()
    written: set[str] = set()
    settings = False
    for part in parts:
        head = [token.text for token in takewhile(_is_of_head, part[:_HEAD])]
        first = head[0].upper()[:_LONGEST_WORD] if head else ""
        kind = near(first, _KINDS, most=1)
        folded = {text.casefold() for text in head[1:]}
        names |= folded
        written |= folded if "INSERT" in (first, *kind) else set()
        settings = settings or "SET" in (first, *kind)
    return Unread(
        names=frozenset(names), written=frozenset(written), settings=settings, everything=everything
    )


def _is_of_head(token: Token) -> bool:
    """Whether a token is before the columns, options and query of a statement."""
    ends_it = (TokenType.L_PAREN, TokenType.SEMICOLON)
    return token.token_type not in ends_it and token.text.upper() not in ("WITH", "AS", "SELECT")


class _Statements(Selects):
    """Reads a whole statement."""

    def whole(self) -> Statement:
        self._refuse_subqueries()
        word = self.word()
        read: Callable[[int], Statement] | None = {
            "CREATE": self._create,
            "INSERT": self._insert,
            "SELECT": self._query,
            "EXPLAIN": self._explain,
            "SET": self._set,
        }.get(word)
        statement = self._unknown(word) if read is None else read(self.start)
        if not self.ended:
            self._left_over()
        return statement

    def _refuse_subqueries(self) -> None:
        for opening, token in zip(self.tokens, self.tokens[1:], strict=False):
            if opening.token_type == TokenType.L_PAREN and self.word(token) == "SELECT":
                help = "join the stream instead, or write the query as a stream of its own"
                self.fail("W2004", "a subquery is not part of streaming SQL", *ends(token), help)

    def _unknown(self, word: str) -> NoReturn:
        known = "CREATE STREAM, CREATE TABLE, INSERT INTO, SELECT, EXPLAIN JOIN and SET"
        if word in STATEMENTS:
            what, help = STATEMENTS[word]
            self.fail("W2002", f"{what} is no statement of a job", *ends(self.curr), help)
        found = self.origin.text[self.curr.start : self.curr.end + 1]
        close = near(word, _KINDS, most=1) if word else ()
        help = (f"did you mean {close[0]}?\n" if close else "") + f"statements are {known}"
        self.fail("W2002", f"{found!r} begins no statement", *ends(self.curr), help)

    def _left_over(self) -> None:
        self.refuse_absent()
        if self.word() in _KINDS:
            help = "statements end with a semicolon"
            self.fail("W2001", f"expected ; before {self.word()}", *ends(self.curr), help)
        if self.word() == "WITH":
            self.fail("W2003", "WITH stands twice", *ends(self.curr), "write all options in one WITH")
        self.unexpected("; after the statement")

    # -- the statements

    def _create(self, start: int) -> Statement:
        self.advance()
        self.refuse_absent()  # OR REPLACE
        if self.word() not in ("STREAM", "TABLE"):
            self.unexpected("STREAM or TABLE after CREATE")
        is_table = self.word() == "TABLE"
        self.advance()
        self.refuse_absent()  # IF NOT EXISTS
        name = self.name("a name")
        columns = self.columns()
        options = self.options() if self.take("WITH") else ()
        if is_table:
            if self.word() == "AS":
                help = f"write CREATE STREAM {name.text} WITH (..) AS SELECT .."
                self.fail("W2004", "CREATE TABLE .. AS is not part of streaming SQL", *ends(self.curr), help)
            return CreateTable(name=name, columns=columns, options=options, at=self.place(start))
        if not self.take("AS"):
            if self.word() == "SELECT":
                help = f"write AS SELECT after CREATE STREAM {name.text} WITH (..)"
                self.fail("W2001", "expected AS before SELECT", *ends(self.curr), help)
            return CreateStream(name=name, columns=columns, options=options, at=self.place(start))
        query = self.select()
        return CreateStream(name=name, columns=columns, options=options, query=query, at=self.place(start))

    def _insert(self, start: int) -> Statement:
        self.advance()
        self.need("INTO", "INTO after INSERT")
        sink = self.name("the name of a sink")
        if self.curr.token_type == TokenType.L_PAREN:
            help = f"declare the columns with CREATE STREAM {sink.text} (..) and name them with AS"
            self.fail(
                "W2004",
                "a column list after INSERT INTO is not part of streaming SQL",
                *ends(self.curr),
                help,
            )
        if self.word() != "SELECT":
            self.unexpected("SELECT")
        return Insert(sink=sink, query=self.select(), at=self.place(start))

    def _query(self, start: int) -> Statement:
        return Query(query=self.select(), at=self.place(start))

    def _explain(self, start: int) -> Statement:
        self.advance()
        self.need("JOIN", "JOIN after EXPLAIN", "write EXPLAIN JOIN and a query or the name of a sink")
        if self.word() == "SELECT":
            return Explain(query=self.select(), at=self.place(start))
        return Explain(name=self.name("SELECT or the name of a sink"), at=self.place(start))

    def _set(self, start: int) -> Statement:
        self.advance()
        return SetOption(option=self.option(), at=self.place(start))
