"""The base parser of streaming SQL: keywords, names, durations, expressions, and SQL that is not supported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from weft.core.duration import Duration
from weft.core.names import find_similar
from weft.core.source import Source, is_hidden
from weft.core.types import NULL
from weft.errors import Code, Diagnostic, StreamSqlError, WeftError
from weft.expr import functions
from weft.expr.ast import Call, Expr, Lit, Origin, Span, walk
from weft.expr.read import parse_prefix
from weft.expr.tokens import Cursor, ends
from weft.expr.words import UNITS
from weft.streams.sql.syntax import Name

_AGGREGATE = "a job joins rows but does not aggregate them: aggregate its output in a project or in Spark"
_UNBOUNDED = "a stream is unbounded, so its rows have no order and no last row: remove the clause"

_UNSUPPORTED: dict[str, tuple[str, str]] = {
    "GROUP": ("GROUP BY", _AGGREGATE),
    "HAVING": ("HAVING", _AGGREGATE),
    "ORDER": ("ORDER BY", _UNBOUNDED),
    "LIMIT": ("LIMIT", _UNBOUNDED),
    "FETCH": ("FETCH", _UNBOUNDED),
    "OFFSET": ("OFFSET", _UNBOUNDED),
    "UNION": ("UNION", "write one INSERT INTO for each query, each with its own sink"),
    "INTERSECT": ("INTERSECT", "write a JOIN on all columns"),
    "EXCEPT": ("EXCEPT", "write a LEFT JOIN and keep the rows without a match: WHERE key IS NULL"),
    "DISTINCT": ("DISTINCT", "use the stream option 'dedup.keys', which removes duplicate rows"),
    "OVER": ("a window function (OVER)", "an expression is evaluated on one joined row"),
    "CROSS": ("CROSS JOIN", "a join of streams needs a key: write JOIN .. ON a.key = b.key"),
    "SEMI": ("SEMI JOIN", "write JOIN and select the columns of the left side"),
    "ANTI": ("ANTI JOIN", "write LEFT JOIN and keep the rows without a match: WHERE right.key IS NULL"),
    "NATURAL": ("NATURAL JOIN", "name the keys: JOIN .. ON a.key = b.key"),
    "ASOF": ("ASOF JOIN", "write an interval: ON a.key = b.key WITHIN '5m'"),
    "LATERAL": ("LATERAL", "write JOIN .. ON"),
    "USING": ("USING", "write ON a.key = b.key"),
    "HOPPING": ("HOPPING", "write SLIDING(SIZE .., SLIDE ..), which is the same window"),
    "QUALIFY": ("QUALIFY", "an expression is evaluated on one joined row"),
    "VALUES": ("VALUES", "put the rows into a file and read it with CREATE TABLE"),
    "INTO": ("SELECT .. INTO", "write INSERT INTO sink SELECT .., or CREATE STREAM sink WITH (..) AS SELECT .."),
    "GRACE": (
        "GRACE PERIOD",
        "set how late rows may arrive as an option of the stream: 'watermark.max_out_of_orderness' = '30s'",
    ),
    "PARTITION": ("PARTITION BY", "rows are partitioned by the keys of the join"),
}
_UNSUPPORTED_PAIRS: dict[tuple[str, str], tuple[str, str]] = {
    ("OR", "REPLACE"): ("CREATE OR REPLACE", "a job declares its streams on every run: remove OR REPLACE"),
    ("IF", "NOT"): ("IF NOT EXISTS", "a job declares its streams on every run: remove IF NOT EXISTS"),
    ("EMIT", "EARLY"): ("EMIT EARLY", "write EMIT CHANGES: a pair is emitted as soon as both rows have arrived"),
}
_SECOND = {"GROUP": "BY", "ORDER": "BY", "PARTITION": "BY", "GRACE": "PERIOD"}
_BEFORE_JOIN = frozenset({"CROSS", "SEMI", "ANTI", "NATURAL", "ASOF"})
_CLAUSE_WORDS = frozenset(
    "SELECT FROM WHERE ON JOIN INNER LEFT RIGHT FULL OUTER CROSS SEMI ANTI NATURAL ASOF USING WINDOW WITHIN EMIT "
    "WITH GROUP HAVING ORDER LIMIT UNION INTERSECT EXCEPT OVER INTO AS PRIMARY AND OR NOT LATERAL GRACE".split()
)
STATEMENT_WORDS = ("CREATE", "INSERT", "SELECT", "EXPLAIN", "SET")
"""First words of the statements of a job."""
OTHER_STATEMENTS: dict[str, tuple[str, str]] = {
    "START": ("START JOB", "`weft stream start JOB.sql` starts a job"),
    "STOP": ("STOP JOB", "`weft stream stop JOB` stops a job"),
    "DEPLOY": ("DEPLOY JOB", "`weft stream start JOB.sql` starts a job"),
    "PAUSE": ("PAUSE JOB", "`weft stream stop JOB` stops a job; start resumes it"),
    "RESUME": ("RESUME JOB", "`weft stream start JOB` resumes a job"),
    "SHOW": ("SHOW", "`weft stream status` lists the jobs"),
    "LIST": ("LIST", "`weft stream status` lists the jobs"),
    "DESCRIBE": ("DESCRIBE", "`weft stream explain JOB.sql` describes a job"),
    "UPDATE": ("UPDATE", "streams are append-only"),
    "DELETE": ("DELETE", "streams are append-only"),
    "MERGE": ("MERGE", "streams are append-only"),
    "DROP": ("DROP", "a job declares its streams on every run: remove the statement"),
    "ALTER": ("ALTER", "a job declares its streams on every run: change the CREATE statement"),
    "WITH": ("WITH before SELECT", "write the query as a separate stream: CREATE STREAM .. AS SELECT .."),
}
"""First words of statements that other systems have, with what to use instead."""


def describe_unsupported(word: str, following: str) -> tuple[str, str, int] | None:
    """Return the unsupported clause that two words begin, what to write instead, and its number of words.

    >>> describe_unsupported("GROUP", "BY")[0], describe_unsupported("JOIN", "")
    ('GROUP BY', None)
    """
    pair = _UNSUPPORTED_PAIRS.get((word, following))
    if pair is not None:
        return *pair, 3 if word == "IF" else 2
    if word in _BEFORE_JOIN and following not in ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER"):
        return None
    clause = _UNSUPPORTED.get(word)
    if clause is None or (word in _SECOND and following != _SECOND[word]):
        return None  # a column may be named group or order
    return *clause, 2 if word in _SECOND or following == "JOIN" else 1


_QUOTED = {
    TokenType.STRING: "a string",
    TokenType.NATIONAL_STRING: "a string with a prefix",
    TokenType.IDENTIFIER: "a quoted name",
}
_T = TypeVar("_T")
_WORDS = re.compile(r"\b[A-Z]{2,}\b")
_AFTER_CONDITION = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "WITHIN", "WINDOW", "WHERE", "EMIT", "WITH")
_DURATIONS = "write INTERVAL '5' MINUTE, '5m' or 5 MINUTES"


class Parser(Cursor):
    """Parses one statement; `findings` are the errors after which it could continue."""

    def __init__(self, tokens: list[Token], origin: Origin) -> None:
        super().__init__(tokens, origin)
        self.findings: list[Diagnostic] = []
        self.in_options = False

    # -- locations and errors

    def locate(self, start: int, end: int | None = None) -> Source:
        """Return the location of a part of the statement, by default up to the last token read."""
        return Span(start, self.prev.end + 1 if end is None else end, self.origin).place

    @property
    def start(self) -> int:
        """The offset of the current token, or of the end of the text."""
        return self.curr.start if self.curr else len(self.origin.text)

    @property
    def is_at_end(self) -> bool:
        """Whether the whole statement has been read."""
        return not self.curr or self.curr.token_type == TokenType.SEMICOLON

    def fail(self, code: Code, message: str, start: int, end: int, help: str = "") -> NoReturn:
        """Raise an error at a location."""
        raise StreamSqlError(message, code=code, help=help, at=Span(start, end, self.origin).place)

    def unexpected(self, expected: str, help: str = "") -> NoReturn:
        """Raise an error about the current token."""
        self.refuse_unsupported()
        if not self.curr:
            after = len(self.origin.text.rstrip())
            self.fail("W2001", f"expected {expected}, found the end of the text", after, after, help)
        # The expected text names its keywords in capitals; one of them may be what a typo was meant to be.
        close = find_similar(self.word(), _WORDS.findall(expected), most=1) if self.word() else ()
        help = help or (f"did you mean {close[0]}?" if close else "")
        self.fail("W2001", f"expected {expected}, found {self.describe(self.curr)}", *ends(self.curr), help)

    def describe(self, token: Token) -> str:
        """Return a token for a message; a value of an option may be a secret and is not repeated."""
        if self.in_options and token.token_type in _QUOTED:
            return _QUOTED[token.token_type]
        at = self.locate(token.start, token.end + 1)
        return (
            "a value" if is_hidden(at.text, at.start, at.end) else repr(self.origin.text[token.start : token.end + 1])
        )

    def refuse_unsupported(self) -> None:
        """Raise an error if the current token begins SQL that streams do not support."""
        unsupported = describe_unsupported(self.word(), self.word(self.next))
        if unsupported is not None:
            what, help, words = unsupported
            last = self.tokens[self.index + words - 1]
            end = max(last.end, self.curr.end) + 1  # the text may end before the last of the words
            self.fail("W2004", f"streaming SQL does not support {what}", self.start, end, help)

    def refuse_next_statement(self) -> None:
        """Raise an error if the current token begins the next statement."""
        if self.word() in STATEMENT_WORDS:
            help = "end each statement with a semicolon"
            self.fail("W2001", f"expected ; before {self.word()}", *ends(self.curr), help)

    def add_finding(self, code: Code, message: str, at: Source | None, help: str = "") -> None:
        """Record an error and continue."""
        self.findings.append(Diagnostic(code, message, help=help, at=at))

    def attempt(self, parse: Callable[[], _T], recover: Callable[[], None]) -> _T | None:
        """Parse a part; after an error in it, record the error, call `recover` and return None."""
        try:
            return parse()
        except WeftError as error:
            self.findings += error.diagnostics
            recover()
            return None

    def parse_list(self, parse: Callable[[], _T], *stops: str) -> Iterator[_T]:
        """Yield the valid entries of a comma-separated list; an invalid one is skipped up to a comma or stop word."""
        while True:
            entry = self.attempt(parse, lambda: self.skip_to(*stops))
            if entry is not None:
                yield entry
            if not self.match(TokenType.COMMA):
                return

    def skip_to(self, *words: str, kinds: tuple[TokenType, ...] = (TokenType.COMMA,)) -> None:
        """Advance to the next of these kinds or words outside parentheses, or to the end."""
        depth = 0
        while not self.is_at_end:
            kind = self.curr.token_type
            if depth == 0 and (kind in kinds or self.word() in words):
                return
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
            if depth < 0:  # the end of the list that is being parsed
                return
            self.advance()

    # -- keywords and names

    def take(self, *words: str) -> bool:
        """Skip the words if they come next, in this order."""
        for i, word in enumerate(words):
            if self.word(self.tokens[min(self.index + i, len(self.tokens) - 1)]) != word:
                return False
        self.advance(len(words))
        return True

    def expect(self, word: str, expected: str = "", help: str = "") -> None:
        """Skip a required word."""
        if not self.take(word):
            self.unexpected(expected or word, help)

    def expect_token(self, kind: TokenType, expected: str, help: str = "") -> None:
        """Skip a required token."""
        if not self.match(kind):
            self.unexpected(expected, help)

    def parse_name(self, what: str, *, any_word: bool = False) -> Name:
        """Parse a name, bare or quoted; `any_word` also accepts keywords, where no clause can begin."""
        token = self.curr
        if token.token_type == TokenType.VAR and (any_word or self.word() not in _CLAUSE_WORDS):
            text = self.bare_name()
        elif token.token_type == TokenType.IDENTIFIER:
            self.advance()
            # The quote that a name begins with is the one that is doubled inside it.
            raw = self.origin.text[token.start : token.end + 1]
            text = raw[1:-1].replace(raw[0] * 2, raw[0])
            if not text.strip():
                self.fail("W2001", "the quoted name is empty", *ends(token), f"write {what}")
        else:
            help = "write names without quotes, in backticks or in double quotes"
            self.unexpected(what, help if token.token_type == TokenType.STRING else "")
        return Name(text=text, at=self.locate(token.start))

    def parse_alias(self) -> Name | None:
        """Parse ``[AS] name`` if it comes next."""
        if self.take("AS"):
            return self.parse_name("a name after AS", any_word=True)
        bare = self.curr.token_type == TokenType.VAR and self.word() not in _CLAUSE_WORDS
        return self.parse_name("a name") if bare or self.curr.token_type == TokenType.IDENTIFIER else None

    def parse_string(self) -> str:
        """Parse a string in single quotes."""
        token = self.curr
        self.advance()
        return self.origin.text[token.start + 1 : token.end].replace("''", "'")

    # -- values

    def parse_expression(self) -> Expr:
        """Parse an expression."""
        if self.is_at_end:
            self.unexpected("an expression")
        start = self.start
        expr, self.index = parse_prefix(self.tokens, self.index, self.origin)
        for call in _find_row_set_calls(expr):
            at = self.locate(start) if call.span is None else call.span.place
            # Deterministic, or a batch that is repeated after a crash would add other rows to the sink.
            if call.name == "TODAY":
                message = "TODAY() is not allowed: a repeated batch must produce the same rows"
                self.add_finding("W2014", message, at, "use the event time of a row")
            else:
                message = f"{call.name.removesuffix('_ALL')} is an aggregate, but an expression sees one joined row"
                self.add_finding("W2014", message, at, "aggregate the output in a project or in Spark")
        return expr

    def parse_condition(self) -> Expr:
        """Parse a condition; after an error in it, continue with the next clause."""
        expr = self.attempt(self.parse_expression, lambda: self.skip_to(*_AFTER_CONDITION, kinds=()))
        # Any condition will do: the statement has an error and is never planned.
        return Lit(None, NULL) if expr is None else expr

    def parse_duration(self, what: str, *, signed: bool = False) -> Duration:
        """Parse a duration in any of its forms."""
        start = self.start
        sign = "-" if self.match(TokenType.DASH) else ""
        if self.take("INTERVAL"):
            quoted = self.curr.token_type == TokenType.STRING
            if not quoted and self.curr.token_type != TokenType.NUMBER:
                self.unexpected("a number after INTERVAL", _DURATIONS)
            self.advance()
            self._skip_units()
            text = self.origin.text[start : self.prev.end + 1].removeprefix("-")
        elif self.curr.token_type == TokenType.STRING:
            text = self.parse_string()
        elif self.curr.token_type == TokenType.NUMBER:
            number = self.curr.start
            while self.match(TokenType.NUMBER):  # 1 HOUR 30 MINUTES
                self.match(TokenType.VAR)
            text = self.origin.text[number : self.prev.end + 1]
        else:
            self.unexpected(what, _DURATIONS)
        try:
            return Duration.parse(sign + text, signed=signed)
        except WeftError as error:
            self.fail(error.code, error.message, start, self.prev.end + 1, error.help)

    def _skip_units(self) -> None:
        if self.word() in UNITS:
            self.advance()
            if self.word() == "TO" and self.word(self.next) in UNITS:
                self.advance(2)


def _find_row_set_calls(expr: Expr) -> Iterator[Call]:
    """Yield the calls that one joined row does not determine: aggregates and the date of the run."""
    for node in walk(expr):
        if isinstance(node, Call):
            function = functions.find(node.name)
            if function is not None and (function.aggregate or function.name == "TODAY"):
                yield node
