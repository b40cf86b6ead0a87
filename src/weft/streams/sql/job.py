"""The text of a job: variables filled in, split into statements, each parsed; all mistakes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from weft.core.findings import MAX_FINDINGS
from weft.core.names import find_similar
from weft.core.source import Source
from weft.core.substitution import SubstitutedText, substitute_variables
from weft.errors import ArgumentError, Diagnostic, SourceLocation, StreamSqlError, WeftError
from weft.expr.ast import Origin, Span
from weft.expr.tokens import describe_refused, ends, strip_comments, tokenize
from weft.streams.sql.reading import STATEMENTS
from weft.streams.sql.select import Selects
from weft.streams.sql.syntax import (
    CreateStream,
    CreateTable,
    Explain,
    Insert,
    JobSyntax,
    Query,
    SetOption,
    Statement,
    Unread,
)

_MOST_REFUSED = 20  # a file full of refused marks needs no message of megabytes


def tokens_of(spelled: SubstitutedText) -> tuple[list[Token], Origin, tuple[Diagnostic, ...]]:
    """Return the tokens up to where the text can be read, the text they stand in, and what is refused.

    Comments are blanks in the text of the `Origin`; its places are those of the file.
    """
    text, comment = strip_comments(spelled.text)
    origin = Origin(text, spelled.source)
    tokens, complete = tokenize(text, "stream")
    mistakes = []
    if comment is not None:
        mistakes.append(_unclosed("comment", "*/", comment, comment + 2, origin))
    if not complete:
        start = _next_mark(text, tokens[-1].end + 1 if tokens else 0)
        mark = text[start : start + 1]
        what = "text" if mark == "'" else "name"
        mistakes.append(_unclosed(what, mark, start, _end_of_line(text, start), origin))
        while tokens and tokens[-1].token_type != TokenType.SEMICOLON:
            tokens.pop()  # the statement is cut off: it has no other mistake to tell
    kept = []
    for token in tokens:
        refused = None if token.token_type == TokenType.SEMICOLON else describe_refused(token)
        if refused is None:
            kept.append(token)
        elif len(mistakes) < _MOST_REFUSED:
            at = Span(token.start, token.end + 1, origin).place
            is_comment = token.token_type == TokenType.COMMENT
            help = "leave it out; comments are written -- .. and /* .. */" if is_comment else refused[1]
            mistakes.append(Diagnostic("W2001", f"{refused[0]} is not allowed", help=help, at=at))
    return kept, origin, tuple(mistakes)


def statements_of(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each statement with its semicolon, if it has one; empty ones are left out."""
    statement: list[Token] = []
    for token in tokens:
        statement.append(token)
        if token.token_type == TokenType.SEMICOLON:
            if len(statement) > 1:
                yield statement
            statement = []
    if statement:
        yield statement


def _next_mark(text: str, start: int) -> int:
    return start + len(text[start:]) - len(text[start:].lstrip())


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _unclosed(what: str, mark: str, start: int, end: int, origin: Origin) -> Diagnostic:
    help = f"add the missing {mark}" + ("" if what == "comment" else "; inside it is written twice")
    return Diagnostic(
        "W0202", f"the {what} that starts here is not closed", help=help, at=Span(start, end, origin).place
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
        kind = find_similar(first, _KINDS, most=1)
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
        close = find_similar(word, _KINDS, most=1) if word else ()
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


LONGEST = 1_000_000
"""How many characters a job may have."""


def read_job(text: str, *, file: str | None = None, env: Mapping[str, str] = {}) -> JobSyntax:
    """Read the statements of a job; whatever is wrong with them is one `StreamSqlError`.

    >>> job = read_job("CREATE TABLE t (id INT) WITH ('path' = '${DATA:-data}/t.csv');")
    >>> job.statements[0].options[0].value
    'data/t.csv'
    >>> read_job("CREATE STREM orders (id INT)")
    Traceback (most recent call last):
        ...
    weft.errors.StreamSqlError: error[W2001]: expected STREAM or TABLE after CREATE, found 'STREM'
      --> <text>:1:8
       |
     1 | CREATE STREM orders (id INT)
       |        ^^^^^
     = help: did you mean STREAM?
    """
    syntax, mistakes = read_with_mistakes(text, file=file, env=env)
    if mistakes:
        raise StreamSqlError(mistakes)
    return syntax


def load_job(path: Path, env: Mapping[str, str]) -> JobSyntax:
    """Read the job of a file."""
    return read_job(read_job_text(path), file=str(path), env=env)


def read_job_text(path: Path, shown: str | None = None) -> str:
    """Return the text of a job file; findings name it as `shown`."""
    file = shown or str(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as cause:
        # The bytes before the first bad one are text: they give its line and column.
        before = cause.object[: cause.start].decode("utf-8", errors="replace")
        raise StreamSqlError(
            f"the file is not UTF-8 text: byte {cause.start + 1} cannot be decoded",
            help="save the file as UTF-8",
            at=Source(before, len(before), len(before), file),
        ) from cause
    except OSError as cause:
        raise StreamSqlError(
            f"the file cannot be read: {cause.strerror or cause}",
            help="name a file with streaming SQL",
            at=Source("", 0, 0, file),
        ) from cause


def read_with_mistakes(
    text: str, *, file: str | None, env: Mapping[str, str]
) -> tuple[JobSyntax, tuple[Diagnostic, ...]]:
    """Return the statements that read, and every mistake, in the order of the text."""
    if not isinstance(text, str):
        raise ArgumentError(
            f"a job is a text, not {type(text).__name__}", help="pass the text of a .sql file"
        )
    if len(text) > LONGEST:
        raise StreamSqlError(
            f"the job has {len(text):,} characters; the most is {LONGEST:,}",
            help="write several jobs",
            at=Source(text[:200], 0, 1, file),
        )
    spelled = substitute_variables(text, env, file)
    tokens, origin, refused = tokens_of(spelled)
    mistakes = [*spelled.findings, *refused]
    statements: list[Statement] = []
    unread: list[list[Token]] = []
    for part in statements_of(tokens):
        statement, found = read_statement(part, origin)
        mistakes += found
        if statement is None:
            unread.append(part)
        else:
            statements.append(statement)
    missing = unread_statements(unread, everything=any(d.code == "W0202" for d in refused))
    syntax = JobSyntax(statements=tuple(statements), unread=missing, file=file, text=text)
    if not statements and not mistakes:
        help = "write for example CREATE STREAM .., and INSERT INTO sink SELECT .."
        mistakes.append(
            Diagnostic("W2015", "the job has no statement", help=help, at=Source(text, 0, 0, file))
        )
    return syntax, in_order(mistakes)


def in_order(mistakes: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return mistakes in the order of the text, without those that a variable without a value causes."""
    found = list(dict.fromkeys(mistakes))
    unset = [_ends(d.at) for d in found if d.code == "W2011"]
    kept = (d for d in found if d.code == "W2011" or not any(_touch(_ends(d.at), u) for u in unset))
    return tuple(sorted(kept, key=lambda d: _ends(d.at))[:MAX_FINDINGS])


def _ends(at: SourceLocation | None) -> tuple[int, int]:
    return (at.start, at.end) if isinstance(at, Source) else (0, 0)


def _touch(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < max(a[1], a[0] + 1)
