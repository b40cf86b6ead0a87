"""The text of a job as tokens, statement by statement; what no statement may hold is refused here."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import Token, TokenType

from weft.core.substitution import Spelled
from weft.errors import Diagnostic
from weft.expr.ast import Origin, Span
from weft.expr.dialect import tokenize, without_comments
from weft.expr.words import describe_refused

_MOST_REFUSED = 20  # a file full of refused marks needs no message of megabytes


def tokens_of(spelled: Spelled) -> tuple[list[Token], Origin, tuple[Diagnostic, ...]]:
    """Return the tokens up to where the text can be read, the text they stand in, and what is refused.

    Comments are blanks in the text of the `Origin`; its places are those of the file.
    """
    text, comment = without_comments(spelled.text)
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
