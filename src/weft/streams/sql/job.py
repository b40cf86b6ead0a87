"""The text of a job: variables filled in, split into statements, each read; all mistakes at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from sqlglot.tokenizer_core import Token

from weft.core.mistakes import MOST_FINDINGS
from weft.core.source import Source
from weft.core.substitution import substituted
from weft.errors import ArgumentError, Diagnostic, Place, StreamSqlError
from weft.streams.sql.statements import read_statement, unread_statements
from weft.streams.sql.syntax import JobSyntax, Statement
from weft.streams.sql.tokens import statements_of, tokens_of

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
    return read_job(text_of(path), file=str(path), env=env)


def text_of(path: Path, shown: str | None = None) -> str:
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
    spelled = substituted(text, env, file)
    tokens, origin, refused = tokens_of(spelled)
    mistakes = [*spelled.mistakes, *refused]
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
    return tuple(sorted(kept, key=lambda d: _ends(d.at))[:MOST_FINDINGS])


def _ends(at: Place | None) -> tuple[int, int]:
    return (at.start, at.end) if isinstance(at, Source) else (0, 0)


def _touch(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < max(a[1], a[0] + 1)
