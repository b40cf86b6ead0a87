"""``FROM`` and ``JOIN``: sources, conditions, and the bounds or windows that follow them."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from weft.core.duration import Duration
from weft.expr.cursor import ends
from weft.streams.sql.spec import StreamHow
from weft.streams.sql.syntax import JoinSyntax, Name, SourceSyntax, WindowSyntax, WithinSyntax
from weft.streams.sql.with_options import WithOptions

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
