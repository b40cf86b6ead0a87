"""The secrets of a job, found by their position: whatever follows the name of a secret option, in any spelling.

::

    WITH ('kafka.sasl.password' = 'S')       the value
    WITH ('kafka.sasl.password' "S" 'T')     everything up to the comma or parenthesis that ends the option
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import Token, TokenType

from weft.core.source import UserText
from weft.expr.ast import Origin, Span
from weft.redaction import is_placeholder, is_secret_name

_NAMES = (TokenType.STRING, TokenType.IDENTIFIER)
_SIGNS = (TokenType.EQ, TokenType.FARROW, TokenType.COLON)
_DEPTHS = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}


def hide_secrets(tokens: list[Token], origin: Origin, *, is_complete: bool) -> None:
    """Hide the values of secret options; an incomplete text ends in an unterminated string or name."""
    if origin.source is None or not isinstance(origin.source.text, UserText):
        return
    text = origin.source.text
    is_secret = False
    for option in _split_options(tokens):
        name, after = _split_name(option)
        # Without a name it is the rest of a value that contains a comma.
        is_secret = is_secret if name is None else is_secret_name(name)
        is_open = not is_complete and option[-1] is tokens[-1]
        last = len(origin.text) if is_open else option[-1].end + 1
        if not is_secret or after >= last:
            continue
        at = Span(after, last, origin).place
        start = at.start + len(text[at.start : at.end]) - len(text[at.start : at.end].lstrip())
        value, end = text[start : at.end], at.end
        if option[-1].token_type == TokenType.STRING and option[-1].start >= after and value.count("'") == 2:
            value, start, end = value[1:-1], start + 1, end - 1
        if not is_placeholder(value):
            text.secrets.append((start, end))


def _split_options(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each option of WITH and SET."""
    option: list[Token] = []
    depth = 0
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        kind = token.token_type
        if depth == 0:
            if before is None or before.token_type == TokenType.SEMICOLON:
                depth = int(token.text.upper() == "SET")
            else:
                depth = int(kind == TokenType.L_PAREN and before.text.upper() == "WITH")
        else:
            depth += _DEPTHS.get(kind, 0)
            # Without a blank after it, a semicolon is more likely part of a value without quotes.
            if kind == TokenType.SEMICOLON and (after is None or after.start > token.end + 1):
                depth = 0
            if depth > 1 or (depth == 1 and kind != TokenType.COMMA):
                option.append(token)
            elif option:
                yield option
                option = []
    if option:
        yield option


def _split_name(option: list[Token]) -> tuple[str | None, int]:
    """Return the name of an option, or None, and where its value starts."""
    if option[0].token_type in _NAMES:
        sign = len(option) > 1 and option[1].token_type in _SIGNS
        return option[0].text, option[1 if sign else 0].end + 1
    for i, token in enumerate(option):
        if token.token_type in _SIGNS:
            return "".join(part.text for part in option[:i]), token.end + 1
    return None, option[0].start
