"""Source locations: file, offsets, line, column, excerpt with carets; and the locations of the parts of a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import Range
from weft.redaction import MASK, Span, merge_spans, secret_spans

_LONGEST_LINE = 240
_WINDOW = 8_000


class UserText(str):
    """A text that a user wrote, with the ranges that its parser knows to be secrets.

    A parser knows more than the text shows: an escaped key, a list of passwords, a value in the wrong quotes.  Every
    `Source` of the text masks these ranges, also one that was created before they were known.
    """

    __slots__ = ("secrets",)
    secrets: list[Span]

    def __new__(cls, text: str) -> Self:
        """Create the text, without secrets."""
        self = super().__new__(cls, text)
        self.secrets = []
        return self


def is_hidden(text: str, start: int, end: int) -> bool:
    """Whether a part of ``text[start:end]`` is known to be a secret."""
    return isinstance(text, UserText) and any(a < end and start < b for a, b in text.secrets)


@dataclass(frozen=True, slots=True)
class Source:
    r"""A range of a text that a user wrote.

    ``start`` and ``end`` are offsets into ``text``, end exclusive.  Where the file contains a value in
    another spelling (escapes, folded lines), ``offsets`` has the offset of each character of the value and
    of its end.

    >>> s = Source("a = 1\nb = oops", 10, 14, file="job.yml")
    >>> print(s.render())
      --> job.yml:2:5
       |
     2 | b = oops
       |     ^^^^
    """

    text: str
    start: int
    end: int
    file: str | None = None
    offsets: tuple[int, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def whole(cls, text: str, file: str | None = None) -> Source:
        """Return the location of all of `text`."""
        return cls(text, 0, len(text), file)

    def inner(self, text: str, start: int, end: int) -> Source:
        """Return the location of ``text[start:end]``, where `text` is the value at this location.

        When the file contains `text` in another spelling and the offsets are unknown, the whole
        location is returned: too wide is better than wrong.
        """
        if len(self.offsets) == len(text) + 1:
            return Source(self.text, self.offsets[start], self._end(start, end), self.file)
        if self.text[self.start : self.end] == text:
            return Source(self.text, self.start + start, self.start + end, self.file)
        offset = self.text.find(text, self.start, self.end)
        if offset < 0:
            return self
        return Source(self.text, offset + start, offset + end, self.file)

    def _end(self, start: int, end: int) -> int:
        """Return where ``[start:end]`` of the value ends in the file, without blanks of folded lines."""
        stop = self.offsets[end]
        while end > start and stop > self.offsets[end - 1] + 1 and self.text[stop - 1].isspace():
            stop -= 1
        return stop

    @property
    def line(self) -> int:
        """Line of the start, counted from 1."""
        return self._position(self.start)[0] + 1

    @property
    def column(self) -> int:
        """Column of the start, counted from 1."""
        return self._position(self.start)[1] + 1

    @property
    def range(self) -> Range:
        """Start and end as 0-based line and character."""
        (line, char), (end_line, end_char) = self._position(self.start), self._position(self.end)
        return {"start": {"line": line, "character": char}, "end": {"line": end_line, "character": end_char}}

    def _position(self, offset: int) -> tuple[int, int]:
        offset = min(max(offset, 0), len(self.text))
        line = self.text.count("\n", 0, offset)
        return line, offset - (self.text.rfind("\n", 0, offset) + 1)

    def render(self) -> str:
        """Return the ``-->`` line, the source line and the carets under it."""
        line, char = self._position(self.start)
        location = f"{self.file or '<text>'}:{line + 1}:{char + 1}"
        excerpt, char, length = self._mask_line(char)
        excerpt, char = _shorten(excerpt.replace("\t", " ").rstrip("\r"), char)
        width = min(max(length, 1), max(len(excerpt) - char, 1))
        number = str(line + 1)
        pad = " " * len(number)
        return "\n".join(
            (f" {pad}--> {location}", f" {pad} |", f" {number} | {excerpt}", f" {pad} | {' ' * char}{'^' * width}")
        )

    def _mask_line(self, char: int) -> tuple[str, int, int]:
        """Return the line with its secrets masked, where the location starts in it, and its length there."""
        first = min(max(self.start, 0), len(self.text)) - char
        end_of_line = self.text.find("\n", first)
        line = self.text[first : end_of_line if end_of_line >= 0 else len(self.text)]
        # A secret may begin lines before this one; aligned windows let the search stay short in long files.
        window = max(0, first // _WINDOW - 1) * _WINDOW
        stop = ((first + len(line)) // _WINDOW + 2) * _WINDOW
        spans = [(start + window, end + window) for start, end in secret_spans(self.text[window:stop])]
        spans += self.text.secrets if isinstance(self.text, UserText) else ()
        in_line = merge_spans(
            (max(start - first, 0), min(end - first, len(line)))
            for start, end in spans
            if start < first + len(line) and end > first
        )
        last = char + self.end - self.start
        # From the right, so that the positions of the other spans stay valid.
        for start, end in reversed(in_line):
            line = line[:start] + MASK + line[end:]
            char, last = (_shift_index(at, start, end) for at in (char, last))
        return line, char, last - char


def _shift_index(at: int, start: int, end: int) -> int:
    """Return the index of a character after the mask has replaced ``[start:end]``."""
    if at >= end:
        return at - (end - start) + len(MASK)
    return min(at, start + len(MASK)) if at > start else at


def _shorten(line: str, char: int) -> tuple[str, int]:
    """Return the part of a long line around a character, and the index of the character in it."""
    if len(line) <= _LONGEST_LINE:
        return line, char
    start = max(0, min(char - _LONGEST_LINE // 3, len(line) - _LONGEST_LINE))
    end = start + _LONGEST_LINE
    before, after = "..." if start else "", "..." if end < len(line) else ""
    return before + line[start:end] + after, char - start + len(before)


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Source locations by path: ``arguments.joins.0.on`` is the `on` of the first join.

    `values` has the locations of values, `keys` those of their keys.

    >>> text = "seq: 10"
    >>> sources = SourceMap(Source.whole(text), FrozenMap(seq=Source(text, 5, 7)), FrozenMap(seq=Source(text, 0, 3)))
    >>> (
    ...     sources.of("seq").column,
    ...     sources.key("seq").column,
    ...     sources.of("seq.deeper").column,
    ...     sources.of("name").column,
    ... )
    (6, 1, 6, 1)
    """

    whole: Source | None = None
    values: FrozenMap[str, Source] = EMPTY
    keys: FrozenMap[str, Source] = EMPTY

    def of(self, path: str) -> Source | None:
        """Return the location of the value at `path`, else of the nearest enclosing part, else of the whole."""
        return self._nearest(self.values, path)

    def key(self, path: str) -> Source | None:
        """Return the location of the key at `path`, else of the nearest enclosing part, else of the whole."""
        return self.keys.get(path) or self._nearest(self.values, path)

    def below(self, prefix: str) -> SourceMap:
        """Return the locations of the part at `prefix`, under paths relative to it."""
        dotted = f"{prefix}."
        return SourceMap(
            self.of(prefix),
            FrozenMap({p[len(dotted) :]: s for p, s in self.values.items() if p.startswith(dotted)}),
            FrozenMap({p[len(dotted) :]: s for p, s in self.keys.items() if p.startswith(dotted)}),
        )

    def _nearest(self, sources: FrozenMap[str, Source], path: str) -> Source | None:
        while path:
            if (source := sources.get(path)) is not None:
                return source
            path = path.rpartition(".")[0]
        return self.whole


NO_SOURCES = SourceMap()
"""The source map of a value that did not come from a file."""
