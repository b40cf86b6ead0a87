"""Variables in the text of a file: ``${NAME}``, ``${NAME:-default}``, ``${NAME:?message}``.

::

    before   'path' = '${DATA:-data}/orders.csv'     -- ${THIS} is in a comment and stays
    after    'path' = '/mnt/in/orders.csv'           (DATA=/mnt/in)

``$${`` is a plain ``${``.  Inside quotes, a quote in a value is doubled, so that a value cannot
end the string that contains it.  The source offset of every character of the result is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.core.names import find_similar, format_list
from weft.core.source import Source
from weft.errors import Diagnostic
from weft.redaction import secret_spans

_FORM = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<how>:[-?])(?P<rest>[^}]*))?\}", re.ASCII)
_STOP = re.compile(r"\$\$\{|\$\{[^}\n]*\}|\$\{\w*|['\"`]|--[^\n]*|/\*|\*/")
_FORMS = "write ${NAME}, ${NAME:-default}, ${NAME:?message}, or $${ for a literal ${"


@dataclass(frozen=True, slots=True)
class SubstitutedText:
    """A text with its variables substituted, and the offset in the file of each of its characters.

    `offsets` has one more entry than `text` has characters: the end.  `source` is the whole file
    with those offsets, so ``source.inner(text, start, end)`` is the location of a part of `text`.
    """

    text: str
    offsets: tuple[int, ...] = field(repr=False)
    source: Source = field(repr=False)
    findings: tuple[Diagnostic, ...] = ()


def substitute_variables(text: str, env: Mapping[str, str], file: str | None = None) -> SubstitutedText:
    """Return `text` with the variables of `env` substituted; those without a value are findings.

    >>> substitute_variables("'${A}', ${B:-2}, $${C}", {"A": "it's"}).text
    "'it''s', 2, ${C}"
    """
    writer = _Writer(text, env, file)
    writer.run()
    offsets = (*writer.offsets, len(text))
    source = Source(text, 0, len(text), file, offsets)
    return SubstitutedText("".join(writer.pieces), offsets, source, tuple(writer.findings))


class _Writer:
    """Copies the text from one special character to the next, inside and outside quotes and comments."""

    def __init__(self, text: str, env: Mapping[str, str], file: str | None) -> None:
        self.text, self.env, self.file = text, env, file
        self.pieces: list[str] = []
        self.offsets: list[int] = []
        self.findings: list[Diagnostic] = []
        self.quote = ""
        self.comments = 0

    def run(self) -> None:
        at = 0
        while (stop := _STOP.search(self.text, at)) is not None:
            self.keep(at, stop.start())
            at = self.step(stop)
        self.keep(at, len(self.text))

    def keep(self, start: int, end: int) -> None:
        self.pieces.append(self.text[start:end])
        self.offsets.extend(range(start, end))

    def step(self, stop: re.Match[str]) -> int:
        """Handle one special character; return where to continue."""
        sign, end = stop[0], stop.end()
        if self.comments:  # block comments nest, as in Spark SQL
            self.comments += {"/*": 1, "*/": -1}.get(sign, 0)
            end = stop.start() + (2 if sign in ("/*", "*/") else 1)
        elif sign.startswith("$"):
            self.fill("${" if sign == "$${" else self.value(stop), stop)
            return end
        elif self.quote:
            if sign == self.quote:
                self.quote = ""
            end = stop.start() + 1
        elif sign == "/*":
            self.comments = 1
        elif len(sign) == 1:
            self.quote = sign
        self.keep(stop.start(), end)
        return end

    def fill(self, value: str, stop: re.Match[str]) -> None:
        if self.quote:
            value = value.replace(self.quote, self.quote * 2)
        self.pieces.append(value)
        self.offsets.extend([stop.start()] * len(value))

    def value(self, stop: re.Match[str]) -> str:
        form = _FORM.fullmatch(stop[0])
        if form is None:
            what = "this" if self.is_secret(stop) else repr(stop[0])
            self.add_finding(f"{what} is not a variable", _FORMS, stop)
            return "x"
        name, how, rest = form["name"], form["how"], form["rest"]
        value = self.env.get(name)
        if value is not None and (value or how is None):
            return value
        if how == ":-":
            return str(rest)
        if how == ":?" and rest and not self.is_secret(stop):
            self.add_finding(f"variable {name!r} has no value: {rest}", self.advice(name), stop)
        else:
            self.add_finding(f"variable {name!r} has no value", self.advice(name), stop)
        return str(name)  # a valid name, so that the rest of the text is parsed and checked too

    def is_secret(self, stop: re.Match[str]) -> bool:
        """Whether a variable is in the value of a secret option: what looks like a message may be the secret."""
        return any(start < stop.end() and stop.start() < end for start, end in secret_spans(self.text))

    def advice(self, name: str) -> str:
        close = find_similar(name, self.env, most=1)
        hint = f"did you mean {format_list(close)}?\n" if close else ""
        return f"{hint}set it with -D {name}=value or in the environment, or give a default: ${{{name}:-value}}"

    def add_finding(self, message: str, help: str, stop: re.Match[str]) -> None:
        at = Source(self.text, stop.start(), stop.end(), self.file)
        self.findings.append(Diagnostic("W2011", message, help=help, at=at))
