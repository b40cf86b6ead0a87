"""Parsing of a job: variables are substituted, the text is split into statements, and every error is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from weft.core.findings import MAX_FINDINGS
from weft.core.names import find_similar
from weft.core.source import Source, UserText
from weft.core.substitution import SubstitutedText, substitute_variables
from weft.errors import ArgumentError, Diagnostic, SourceLocation, StreamSqlError
from weft.expr.ast import Origin, Span
from weft.expr.tokens import describe_refused, ends, strip_comments, tokenize
from weft.streams.sql.parser import OTHER_STATEMENTS, STATEMENT_WORDS
from weft.streams.sql.secrets import hide_secrets
from weft.streams.sql.select import SelectParser
from weft.streams.sql.syntax import (
    CreateStream,
    CreateTable,
    Explain,
    Insert,
    JobSyntax,
    Query,
    SetOption,
    Statement,
    Unparsed,
)

_MAX_REFUSED_TOKENS = 20  # a binary file consists of refused tokens


def _tokenize_job(substitution: SubstitutedText, findings: list[Diagnostic]) -> tuple[list[Token], Origin]:
    """Return the tokens up to the first unterminated one, and the text with blanks for comments."""
    # Blanks take the place of comments, so that every offset is still one of the text.
    text, comment = strip_comments(substitution.text)
    origin = Origin(text, substitution.source)
    tokens, complete = tokenize(text, "stream")
    hide_secrets(tokens, origin, is_complete=complete)
    if comment is not None:
        _add_unterminated("comment", "*/", Span(comment, comment + 2, origin), findings)
    if not complete:
        end = tokens[-1].end + 1 if tokens else 0
        start = end + len(text[end:]) - len(text[end:].lstrip())
        mark = text[start : start + 1]
        line_end = text.find("\n", start)
        span = Span(start, len(text) if line_end < 0 else line_end, origin)
        _add_unterminated("string" if mark == "'" else "name", mark, span, findings)
        # The last statement is incomplete, so any other error in it would be a consequence.
        while tokens and tokens[-1].token_type != TokenType.SEMICOLON:
            tokens.pop()
    allowed = []
    for token in tokens:
        refused = None if token.token_type == TokenType.SEMICOLON else describe_refused(token)
        if refused is None:
            allowed.append(token)
        elif len(findings) < _MAX_REFUSED_TOKENS:
            is_comment = token.token_type == TokenType.COMMENT
            help = "remove it; write comments as -- .. or /* .. */" if is_comment else refused[1]
            at = Span(token.start, token.end + 1, origin).place
            findings.append(Diagnostic("W2001", f"{refused[0]} is not allowed", help=help, at=at))
    return allowed, origin


def _add_unterminated(what: str, mark: str, span: Span, findings: list[Diagnostic]) -> None:
    help = f"add the missing {mark}" + ("" if what == "comment" else f"; write {mark * 2} for {mark} inside it")
    findings.append(Diagnostic("W0202", f"unterminated {what}", help=help, at=span.place))


def _split_statements(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each statement that is not empty, with its semicolon."""
    statement: list[Token] = []
    for token in tokens:
        statement.append(token)  # with its semicolon, at which errors about a missing part can point
        if token.token_type == TokenType.SEMICOLON:
            if len(statement) > 1:
                yield statement
            statement = []
    if statement:
        yield statement


_HEAD, _LONGEST_WORD = 12, 20
"""How many words before the columns and options of a statement count, and how many characters of its first word."""


def _parse_statement(tokens: list[Token], origin: Origin, findings: list[Diagnostic]) -> Statement | None:
    """Return the statement, or None after adding its errors."""
    parser = _StatementParser(tokens, origin)
    statement = parser.attempt(parser.parse, lambda: None)
    findings += parser.findings
    # A statement with a finding is dropped even if it could be parsed: planning it would report consequences.
    return None if parser.findings else statement


def _summarize_unparsed(invalid: Iterable[list[Token]], *, is_truncated: bool) -> Unparsed:
    """Return what invalid statements may define."""
    names: set[str] = set()
    sinks: set[str] = set()
    has_set = False
    for tokens in invalid:
        head = [token.text for token in takewhile(_is_in_head, tokens[:_HEAD])]
        first = head[0].upper()[:_LONGEST_WORD] if head else ""
        kinds = (first, *find_similar(first, STATEMENT_WORDS, most=1))  # INSRT INTO writes a sink too
        folded = {text.casefold() for text in head[1:]}
        names |= folded
        sinks |= folded if "INSERT" in kinds else set()
        has_set = has_set or "SET" in kinds
    return Unparsed(names=frozenset(names), sinks=frozenset(sinks), has_set=has_set, is_truncated=is_truncated)


def _is_in_head(token: Token) -> bool:
    """Whether a token is before the columns, options and query of a statement."""
    ends_head = token.token_type in (TokenType.L_PAREN, TokenType.SEMICOLON)
    return not ends_head and token.text.upper() not in ("WITH", "AS", "SELECT")


class _StatementParser(SelectParser):
    """Parses one statement."""

    def parse(self) -> Statement:
        self._refuse_subqueries()
        word = self.word()
        parse: Callable[[int], Statement] | None = {
            "CREATE": self._parse_create,
            "INSERT": self._parse_insert,
            "SELECT": self._parse_query,
            "EXPLAIN": self._parse_explain,
            "SET": self._parse_set,
        }.get(word)
        statement = self._fail_unknown(word) if parse is None else parse(self.start)
        if not self.is_at_end:
            self._fail_trailing()
        return statement

    def _refuse_subqueries(self) -> None:
        # First of all: inside an expression, the parser of expressions would report SELECT in words of its own.
        for opening, token in zip(self.tokens, self.tokens[1:], strict=False):
            if opening.token_type == TokenType.L_PAREN and self.word(token) == "SELECT":
                help = "join the stream instead, or write the query as a separate stream"
                self.fail("W2004", "streaming SQL does not support subqueries", *ends(token), help)

    def _fail_unknown(self, word: str) -> NoReturn:
        known = "CREATE STREAM, CREATE TABLE, INSERT INTO, SELECT, EXPLAIN JOIN and SET"
        if word in OTHER_STATEMENTS:
            what, help = OTHER_STATEMENTS[word]
            self.fail("W2002", f"streaming SQL does not support {what}", *ends(self.curr), help)
        self.in_options = True  # an unquoted value with a semicolon ends its statement, and this is the rest of it
        close = find_similar(word, STATEMENT_WORDS, most=1) if word else ()
        help = (f"did you mean {close[0]}?\n" if close else "") + f"statements are {known}"
        self.fail("W2002", f"unknown statement {self.describe(self.curr)}", *ends(self.curr), help)

    def _fail_trailing(self) -> NoReturn:
        self.refuse_unsupported()
        self.refuse_next_statement()
        if self.word() == "WITH":
            self.fail("W2003", "duplicate WITH", *ends(self.curr), "write all options in one WITH")
        self.unexpected("; after the statement")

    # -- the statements

    def _parse_create(self, start: int) -> Statement:
        self.advance()
        self.refuse_unsupported()  # OR REPLACE
        if self.word() not in ("STREAM", "TABLE"):
            self.unexpected("STREAM or TABLE after CREATE")
        is_table = self.word() == "TABLE"
        self.advance()
        self.refuse_unsupported()  # IF NOT EXISTS
        name = self.parse_name("a name")
        columns = self.parse_columns()
        options = self.parse_options() if self.take("WITH") else ()
        if is_table:
            if self.word() == "AS":
                help = f"write CREATE STREAM {name.text} WITH (..) AS SELECT .."
                self.fail("W2004", "streaming SQL does not support CREATE TABLE .. AS", *ends(self.curr), help)
            return CreateTable(name=name, columns=columns, options=options, at=self.locate(start))
        if not self.take("AS"):
            if self.word() == "SELECT":
                help = f"write AS SELECT after CREATE STREAM {name.text} WITH (..)"
                self.fail("W2001", "expected AS before SELECT", *ends(self.curr), help)
            return CreateStream(name=name, columns=columns, options=options, at=self.locate(start))
        query = self.parse_select()
        return CreateStream(name=name, columns=columns, options=options, query=query, at=self.locate(start))

    def _parse_insert(self, start: int) -> Statement:
        self.advance()
        self.expect("INTO", "INTO after INSERT")
        sink = self.parse_name("the name of a sink")
        if self.curr.token_type == TokenType.L_PAREN:
            help = f"declare the columns with CREATE STREAM {sink.text} (..) and name them with AS"
            message = "streaming SQL does not support a column list after INSERT INTO"
            self.fail("W2004", message, *ends(self.curr), help)
        if self.word() != "SELECT":
            self.unexpected("SELECT")
        return Insert(sink=sink, query=self.parse_select(), at=self.locate(start))

    def _parse_query(self, start: int) -> Statement:
        return Query(query=self.parse_select(), at=self.locate(start))

    def _parse_explain(self, start: int) -> Statement:
        self.advance()
        self.expect("JOIN", "JOIN after EXPLAIN", "write EXPLAIN JOIN and a query or the name of a sink")
        if self.word() == "SELECT":
            return Explain(query=self.parse_select(), at=self.locate(start))
        return Explain(name=self.parse_name("SELECT or the name of a sink"), at=self.locate(start))

    def _parse_set(self, start: int) -> Statement:
        self.advance()
        self.in_options = True
        return SetOption(option=self.parse_option(), at=self.locate(start))


MAX_CHARACTERS = 1_000_000
"""The maximum number of characters of a job."""


def parse_job(text: str, *, file: str | None = None, env: Mapping[str, str] = {}) -> JobSyntax:
    """Parse the statements of a job; `findings` of the result are all syntax errors, in the order of the text.

    >>> job = parse_job("CREATE TABLE t (id INT) WITH ('path' = '${DATA:-data}/t.csv'); CREATE STREM a")
    >>> job.statements[0].options[0].value
    'data/t.csv'
    >>> print(job.findings[0])
    error[W2001]: expected STREAM or TABLE after CREATE, found 'STREM'
      --> <text>:1:71
       |
     1 | CREATE TABLE t (id INT) WITH ('path' = '${DATA:-data}/t.csv'); CREATE STREM a
       |                                                                       ^^^^^
     = help: did you mean STREAM?
    """
    if not isinstance(text, str):
        message = f"a job must be a string, not {type(text).__name__}"
        raise ArgumentError(message, help="pass the content of a .sql file")
    if len(text) > MAX_CHARACTERS:
        message = f"the job has {len(text):,} characters; the maximum is {MAX_CHARACTERS:,}"
        raise StreamSqlError(message, help="split it into several jobs", at=Source(text[:200], 0, 1, file))
    text = UserText(text)
    findings: list[Diagnostic] = []
    substitution = substitute_variables(text, env, file)
    tokens, origin = _tokenize_job(substitution, findings)
    is_truncated = any(d.code == "W0202" for d in findings)
    findings += substitution.findings  # in the order of the text only after `sort_findings`
    statements: list[Statement] = []
    invalid: list[list[Token]] = []
    # Each statement is parsed by itself, so that an error in one does not hide those in others.
    for part in _split_statements(tokens):
        statement = _parse_statement(part, origin, findings)
        if statement is None:
            invalid.append(part)
        else:
            statements.append(statement)
    if not statements and not findings:
        help = "write CREATE STREAM statements and INSERT INTO sink SELECT .."
        at = Source(text, 0, 0, file)
        findings.append(Diagnostic("W2015", "the job has no statement", help=help, at=at))
    return JobSyntax(
        statements=tuple(statements),
        unparsed=_summarize_unparsed(invalid, is_truncated=is_truncated),
        findings=sort_findings(findings),
        file=file,
        text=text,
    )


def read_job_text(path: Path, label: str | None = None) -> str:
    """Return the text of a job file; errors name it `label`, by default its path."""
    file = label or str(path)
    try:
        return path.read_text(encoding="utf-8-sig")  # editors on Windows begin a file with a byte order mark
    except UnicodeDecodeError as cause:
        # The bytes before the first invalid one determine its line and column.
        before = cause.object[: cause.start].decode("utf-8", errors="replace")
        message = f"the file is not valid UTF-8: byte {cause.start + 1} cannot be decoded"
        at = Source(before, len(before), len(before), file)
        raise StreamSqlError(message, help="save the file as UTF-8", at=at) from cause
    except OSError as cause:
        message = f"cannot read the file: {cause.strerror or cause}"
        help = "pass the path of a streaming SQL file"
        raise StreamSqlError(message, help=help, at=Source("", 0, 0, file)) from cause


def sort_findings(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return findings in the order of the text, without those that a variable without a value causes."""
    unique = list(dict.fromkeys(findings))
    # What was parsed in place of a missing value is meaningless, and so are errors about it.
    unset = [_range(d.at) for d in unique if d.code == "W2011"]
    kept = (d for d in unique if d.code == "W2011" or not any(_overlaps(_range(d.at), u) for u in unset))
    return tuple(sorted(kept, key=lambda d: _range(d.at))[:MAX_FINDINGS])


def _range(at: SourceLocation | None) -> tuple[int, int]:
    return (at.start, at.end) if isinstance(at, Source) else (0, 0)


def _overlaps(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < max(a[1], a[0] + 1)
