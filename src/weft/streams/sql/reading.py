"""The cursor of streaming SQL: words, names, durations, expressions, and what it refuses with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from weft.core.duration import Duration
from weft.core.names import find_similar
from weft.core.source import Source
from weft.core.types import NULL
from weft.errors import Code, Diagnostic, StreamSqlError, WeftError
from weft.expr import functions
from weft.expr.ast import Call, Expr, Lit, Origin, Span, walk
from weft.expr.read import parse_prefix
from weft.expr.tokens import UNITS, Cursor, ends
from weft.streams.sql.syntax import Name

_AGGREGATE = "a job joins rows and does not aggregate them: aggregate its output in a project or in Spark"
_FILTER = "the rows of a stream never end, so they have no order and no last one: leave it out"

_ABSENT: dict[str, tuple[str, str]] = {
    "GROUP": ("GROUP BY", _AGGREGATE),
    "HAVING": ("HAVING", _AGGREGATE),
    "ORDER": ("ORDER BY", _FILTER),
    "LIMIT": ("LIMIT", _FILTER),
    "FETCH": ("FETCH", _FILTER),
    "OFFSET": ("OFFSET", _FILTER),
    "UNION": ("UNION", "write one INSERT INTO for each query, each with a sink of its own"),
    "INTERSECT": ("INTERSECT", "write a JOIN on all columns"),
    "EXCEPT": ("EXCEPT", "write a LEFT JOIN and keep the rows without a match: WHERE key IS NULL"),
    "DISTINCT": ("DISTINCT", "the stream option 'dedup.keys' removes repeated rows as they come"),
    "OVER": ("a window function (OVER)", "an expression sees one joined row"),
    "CROSS": ("CROSS JOIN", "a join of streams needs a key: write JOIN .. ON a.key = b.key"),
    "SEMI": ("SEMI JOIN", "write JOIN and select the columns of the left side"),
    "ANTI": ("ANTI JOIN", "write LEFT JOIN and keep the rows without a match: WHERE right.key IS NULL"),
    "NATURAL": ("NATURAL JOIN", "name the keys: JOIN .. ON a.key = b.key"),
    "ASOF": ("ASOF JOIN", "write an interval: ON a.key = b.key WITHIN '5m'"),
    "LATERAL": ("LATERAL", "write JOIN .. ON"),
    "USING": ("USING", "write ON a.key = b.key"),
    "HOPPING": ("HOPPING", "write SLIDING(SIZE .., SLIDE ..): it is the same window"),
    "QUALIFY": ("QUALIFY", "an expression sees one joined row"),
    "VALUES": ("VALUES", "put the rows into a file and read it with CREATE TABLE"),
    "INTO": (
        "SELECT .. INTO",
        "write INSERT INTO sink SELECT .., or CREATE STREAM sink WITH (..) AS SELECT ..",
    ),
    "GRACE": (
        "GRACE PERIOD",
        "how late rows may come is said by the stream: 'watermark.max_out_of_orderness' = '30s'",
    ),
    "PARTITION": ("PARTITION BY", "rows are spread by the keys of the join"),
}
_ABSENT_PAIRS: dict[tuple[str, str], tuple[str, str]] = {
    ("OR", "REPLACE"): ("CREATE OR REPLACE", "a job says each time what is there: leave out OR REPLACE"),
    ("IF", "NOT"): ("IF NOT EXISTS", "a job says each time what is there: leave out IF NOT EXISTS"),
    ("EMIT", "EARLY"): ("EMIT EARLY", "write EMIT CHANGES: a pair comes as soon as both rows are there"),
}
_SECOND = {"GROUP": "BY", "ORDER": "BY", "PARTITION": "BY", "GRACE": "PERIOD"}
_BEFORE_JOIN = frozenset({"CROSS", "SEMI", "ANTI", "NATURAL", "ASOF"})
_STOPS = frozenset(
    "SELECT FROM WHERE ON JOIN INNER LEFT RIGHT FULL OUTER CROSS SEMI ANTI NATURAL ASOF USING WINDOW WITHIN EMIT "
    "WITH GROUP HAVING ORDER LIMIT UNION INTERSECT EXCEPT OVER INTO AS PRIMARY AND OR NOT LATERAL GRACE".split()
)
STATEMENTS: dict[str, tuple[str, str]] = {
    "START": ("START JOB", "`weft stream start JOB.sql` starts a job"),
    "STOP": ("STOP JOB", "`weft stream stop JOB` stops a job"),
    "DEPLOY": ("DEPLOY JOB", "`weft stream start JOB.sql` starts a job"),
    "PAUSE": ("PAUSE JOB", "`weft stream stop JOB` stops a job; start goes on where it stopped"),
    "RESUME": ("RESUME JOB", "`weft stream start JOB` goes on where it stopped"),
    "SHOW": ("SHOW", "`weft stream status` shows the jobs"),
    "LIST": ("LIST", "`weft stream status` shows the jobs"),
    "DESCRIBE": ("DESCRIBE", "`weft stream explain JOB.sql` describes a job"),
    "UPDATE": ("UPDATE", "a stream is only read and appended to"),
    "DELETE": ("DELETE", "a stream is only read and appended to"),
    "MERGE": ("MERGE", "a stream is only read and appended to"),
    "DROP": ("DROP", "a job says each time what is there: leave the statement out"),
    "ALTER": ("ALTER", "a job says each time what is there: change its CREATE"),
    "WITH": ("WITH before SELECT", "write the query as a stream of its own: CREATE STREAM .. AS SELECT .."),
}
"""How other statements begin, and what to do instead."""


def describe_absent(word: str, following: str) -> tuple[str, str, int] | None:
    """Return what stands here that streams do not have, what to do, and of how many words it is.

    >>> describe_absent("GROUP", "BY")[0], describe_absent("JOIN", "")
    ('GROUP BY', None)
    """
    pair = _ABSENT_PAIRS.get((word, following))
    if pair is not None:
        return *pair, 3 if word == "IF" else 2
    if word in _BEFORE_JOIN and following not in ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER"):
        return None
    found = _ABSENT.get(word)
    if found is None or (word in _SECOND and following != _SECOND[word]):
        return None  # a column may be called group or order
    return *found, 2 if word in _SECOND or following == "JOIN" else 1


def stops_a_name(word: str) -> bool:
    """Whether a bare word begins the next clause and is not a name.

    >>> stops_a_name("WHERE"), stops_a_name("orders")
    (True, False)
    """
    return word in _STOPS


_T = TypeVar("_T")
_WORDS = re.compile(r"\b[A-Z]{2,}\b")
_AFTER_CONDITION = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "WITHIN", "WINDOW", "WHERE", "EMIT", "WITH")
_DURATIONS = "write INTERVAL '5' MINUTE, '5m' or 5 MINUTES"


class Reading(Cursor):
    """Walks over one statement; `mistakes` are those after which it could go on."""

    def __init__(self, tokens: list[Token], origin: Origin) -> None:
        super().__init__(tokens, origin)
        self.mistakes: list[Diagnostic] = []

    # -- places and refusals

    def place(self, start: int, end: int | None = None) -> Source:
        """Return the place of a stretch of the statement; it ends with the token read last if not said."""
        return Span(start, self.prev.end + 1 if end is None else end, self.origin).place

    @property
    def start(self) -> int:
        """Where the token to be read starts; at the end of the text, where it ends."""
        return self.curr.start if self.curr else len(self.origin.text)

    @property
    def ended(self) -> bool:
        """Whether the statement is read."""
        return not self.curr or self.curr.token_type == TokenType.SEMICOLON

    def fail(self, code: Code, message: str, start: int, end: int, help: str = "") -> NoReturn:
        """Refuse the statement at a place."""
        raise StreamSqlError(message, code=code, help=help, at=Span(start, end, self.origin).place)

    def unexpected(self, expected: str, help: str = "") -> NoReturn:
        """Refuse the token that stands where something else is expected."""
        self.refuse_absent()
        if not self.curr:
            after = len(self.origin.text.rstrip())
            self.fail("W2001", f"expected {expected}, found the end of the text", after, after, help)
        found = self.origin.text[self.curr.start : self.curr.end + 1]
        close = find_similar(self.word(), _WORDS.findall(expected), most=1) if self.word() else ()
        help = help or (f"did you mean {close[0]}?" if close else "")
        self.fail("W2001", f"expected {expected}, found {found!r}", *ends(self.curr), help)

    def refuse_absent(self) -> None:
        """Refuse SQL that streams do not have, if such a word is to be read."""
        absent = describe_absent(self.word(), self.word(self.next))
        if absent is not None:
            what, help, words = absent
            last = self.tokens[self.index + words - 1]
            end = max(last.end, self.curr.end) + 1  # the text may end before the last of the words
            self.fail("W2004", f"{what} is not part of streaming SQL", self.start, end, help)

    def note(self, code: Code, message: str, at: Source, help: str = "") -> None:
        """Note a mistake and go on."""
        self.mistakes.append(Diagnostic(code, message, help=help, at=at))

    def attempt(self, read: Callable[[], _T], recover: Callable[[], None]) -> _T | None:
        """Read a part; after a mistake in it note the mistake, `recover` and go on with None."""
        try:
            return read()
        except WeftError as error:
            self.mistakes += error.diagnostics
            recover()
            return None

    def skip_to(self, *words: str, kinds: tuple[TokenType, ...] = (TokenType.COMMA,)) -> None:
        """Step to the next token of that kind or word that stands in no parenthesis, or to the end."""
        depth = 0
        while not self.ended:
            kind = self.curr.token_type
            if depth == 0 and (kind in kinds or self.word() in words):
                return
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
            if depth < 0:
                return
            self.advance()

    # -- words and names

    def take(self, *words: str) -> bool:
        """Step over the words if they stand here in this order."""
        for i, word in enumerate(words):
            if self.word(self.tokens[min(self.index + i, len(self.tokens) - 1)]) != word:
                return False
        self.advance(len(words))
        return True

    def need(self, word: str, expected: str = "", help: str = "") -> None:
        """Step over a word that must stand here."""
        if not self.take(word):
            self.unexpected(expected or word, help)

    def need_mark(self, kind: TokenType, expected: str, help: str = "") -> Token:
        """Step over a mark that must stand here and return it."""
        if self.curr.token_type != kind:
            self.unexpected(expected, help)
        self.advance()
        return self.prev

    def name(self, what: str, *, any_word: bool = False) -> Name:
        """Step over a name, bare or in quotes; `any_word` where no clause can begin."""
        token = self.curr
        if token.token_type == TokenType.VAR and (any_word or not stops_a_name(self.word())):
            text = self.bare_name()
        elif token.token_type == TokenType.IDENTIFIER:
            self.advance()
            raw = self.origin.text[token.start : token.end + 1]
            text = raw[1:-1].replace(raw[0] * 2, raw[0])
            if not text.strip():
                self.fail("W2001", "the name in quotes is empty", *ends(token), f"write {what}")
        else:
            quoted = "names stand without quotes, in backticks or in double quotes"
            self.unexpected(what, quoted if token.token_type == TokenType.STRING else "")
        return Name(text=text, at=self.place(token.start))

    def alias(self) -> Name | None:
        """Step over ``[AS] name`` if there is one."""
        if self.take("AS"):
            return self.name("a name after AS", any_word=True)
        bare = self.curr.token_type == TokenType.VAR and not stops_a_name(self.word())
        return self.name("a name") if bare or self.curr.token_type == TokenType.IDENTIFIER else None

    def text(self) -> str:
        """Step over a text in single quotes and return it."""
        token = self.curr
        self.advance()
        return self.origin.text[token.start + 1 : token.end].replace("''", "'")

    # -- values

    def expression(self) -> Expr:
        """Read the expression that starts here."""
        if self.ended:
            self.unexpected("an expression")
        start = self.start
        expr, self.index = parse_prefix(self.tokens, self.index, self.origin)
        for call in _calls_over_rows(expr):
            at = self.place(start) if call.span is None else call.span.place
            if call.name == "TODAY":
                message = "TODAY() is not possible: a batch that is run again must give the same rows"
                self.note("W2014", message, at, "use the event time of a row")
            else:
                message = f"{call.name.removesuffix('_ALL')} aggregates rows, and here is one joined row"
                self.note("W2014", message, at, "aggregate the output in a project or in Spark")
        return expr

    def condition(self) -> Expr:
        """Read the condition that starts here; after a mistake in it go on with the next clause."""
        found = self.attempt(self.expression, lambda: self.skip_to(*_AFTER_CONDITION, kinds=()))
        return Lit(None, NULL) if found is None else found

    def duration(self, what: str, *, signed: bool = False) -> Duration:
        """Read a length of time in any of its forms."""
        start = self.start
        sign = "-" if self.match(TokenType.DASH) else ""
        if self.take("INTERVAL"):
            quoted = self.curr.token_type == TokenType.STRING
            if not quoted and self.curr.token_type != TokenType.NUMBER:
                self.unexpected("a number after INTERVAL", _DURATIONS)
            self.advance()
            self._units()
            said = self.origin.text[start : self.prev.end + 1].removeprefix("-")
        elif self.curr.token_type == TokenType.STRING:
            said = self.text()
        elif self.curr.token_type == TokenType.NUMBER:
            number = self.curr.start
            while self.match(TokenType.NUMBER):
                self.match(TokenType.VAR)
            said = self.origin.text[number : self.prev.end + 1]
        else:
            self.unexpected(what, _DURATIONS)
        try:
            return Duration.parse(sign + said, signed=signed)
        except WeftError as error:
            self.fail(error.code, error.message, start, self.prev.end + 1, error.help)

    def _units(self) -> None:
        if self.word() in UNITS:
            self.advance()
            if self.word() == "TO" and self.word(self.next) in UNITS:
                self.advance(2)


def _calls_over_rows(expr: Expr) -> Iterator[Call]:
    """Yield what one joined row has no value for: aggregates, and the date of the run."""
    for node in walk(expr):
        if isinstance(node, Call):
            function = functions.find(node.name)
            if function is not None and (function.aggregate or function.name == "TODAY"):
                yield node
