"""``SELECT``: the list, the sources, and the clauses after them in any order."""

from __future__ import annotations

from typing import Any

from sqlglot.tokenizer_core import TokenType

from weft.core.names import near
from weft.expr.cursor import ends
from weft.streams.sql.joins import Joins
from weft.streams.sql.spec import Emit
from weft.streams.sql.syntax import Item, Name, Select

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
            close = bool(self.word()) and bool(near(self.word(), _EMITS, most=1))  # a word misspelt
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
            close = near(said, _CLAUSES, most=1) if len(said) > 2 and said not in _CLAUSES else ()
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
