"""parse: from text to tree; every finding is raised at once."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot.tokenizer_core import Token

from weft.core.names import format_list
from weft.core.source import Source
from weft.errors import ArgumentError, Diagnostic, ExpressionError
from weft.expr.ast import Expr, Origin, Span
from weft.expr.grammar import Grammar
from weft.expr.tokens import DIALECTS, describe_refused, strip_comments, tokenize
from weft.expr.words import Dialect

MAX_LENGTH = 10_000
"""The most characters of an expression."""

_MAX_ERRORS = 20  # keeps the message short for a text full of invalid tokens


def parse(text: str, *, dialect: Dialect = "pipeline", source: Source | None = None) -> Expr:
    """Parse one expression; raise `ExpressionError` with every finding.

    ``pipeline`` is the language of operations: both quotes enclose strings, ``{{NAME}}`` is a
    selector.  ``fragment`` is the language of join predicates: double quotes enclose names, `bind` replaces
    ``?`` and ``:name``.  ``stream`` is the language of streaming SQL: names as in
    fragments, no placeholders, and comments.  `source` is the location of the text, for messages.

    >>> parse("a.x = 1")
    Binary(op='=', left=Ref(qualifier='a', name='x'), right=Lit(value=1, dtype=Scalar(name='integer', collation='')))
    >>> parse("a.x = ")
    Traceback (most recent call last):
        ...
    weft.errors.ExpressionError: error[W0201]: expected a value: a column, a number, a string, ...
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"an expression must be a string, not {type(text).__name__}", help="write for example 'price * 2'"
        )
    if dialect not in DIALECTS:
        raise ArgumentError(f"unknown dialect {dialect!r}", help=f"dialects are {format_list(DIALECTS)}")
    if dialect == "stream":
        text = _uncommented(text, source)
    origin = Origin(text, source)
    return _read(_grammar(origin, dialect), Grammar.whole)


def parse_prefix(tokens: list[Token], index: int, origin: Origin) -> tuple[Expr, int]:
    """Parse the expression that starts at a token of a statement; return it and the index of the token after it.

    >>> text = "o.total > 5 EMIT CHANGES"
    >>> expr, after = parse_prefix(tokenize(text, "stream")[0], 0, Origin(text))
    >>> after
    5
    """
    grammar = Grammar(tokens, origin, "stream", statement=True)
    expr = _read(grammar, lambda grammar: grammar.longest(index))
    return expr, grammar.index


def _read(grammar: Grammar, read: Callable[[Grammar], Expr | None]) -> Expr:
    try:
        expr = read(grammar)
    except RecursionError as cause:  # the caller's stack may be deep already, whatever `MAX_DEPTH` allows
        raise ExpressionError(
            f"the expression is too complex: {cause}", help="split it into smaller parts", at=_whole(grammar.origin)
        ) from cause
    if expr is None or grammar.findings:
        raise ExpressionError(grammar.findings)
    return expr


def _uncommented(text: str, source: Source | None) -> str:
    """Return the text with comments replaced by blanks."""
    plain, unclosed = strip_comments(text)
    if unclosed is not None:
        raise ExpressionError(
            "unterminated comment",
            code="W0202",
            help="add the missing */",
            at=Span(unclosed, len(text), Origin(text, source)).place,
        )
    return plain


def _grammar(origin: Origin, dialect: Dialect) -> Grammar:
    """Return the grammar for a text, or raise when it has tokens that are never allowed."""
    text = origin.text
    if not text.strip():
        raise ExpressionError("the expression is empty", help="write a value or a condition", at=_whole(origin))
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"the expression has {len(text):,} characters; the limit is {MAX_LENGTH:,}",
            help="compute part of it in a separate column",
            at=_whole(origin),
        )
    tokens, complete = tokenize(text, dialect)
    errors = []
    for token in tokens:
        if refused := describe_refused(token):
            at = Span(token.start, token.end + 1, origin).place
            errors.append(Diagnostic("W0205", f"{refused[0]} is not allowed", help=refused[1], at=at))
        if len(errors) == _MAX_ERRORS:
            break
    if errors:
        raise ExpressionError(errors)
    if not complete:
        raise _unclosed(origin, tokens[-1].end + 1 if tokens else 0)
    return Grammar(tokens, origin, dialect)


def _whole(origin: Origin) -> Source:
    return Span(0, len(origin.text), origin).place


def _unclosed(origin: Origin, after: int) -> ExpressionError:
    start = after + len(origin.text[after:]) - len(origin.text[after:].lstrip())
    mark = origin.text[start : start + 1]
    at = Span(start, len(origin.text), origin).place
    what = "quoted name" if mark == "`" else "string"
    return ExpressionError(
        f"unterminated {what}", code="W0202", help=f"add the closing {mark}; write it twice to include it", at=at
    )
