"""Where a value was written: file, offsets, line, column, caret text; and the places of the parts of a file."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import Range
from weft.redaction import MASK, secret_spans

_LONGEST_LINE = 240
_WINDOW = 8_000


@dataclass(frozen=True, slots=True)
class Source:
    r"""A stretch of text that a user wrote.

    ``start`` and ``end`` are offsets into ``text``, end exclusive.  Where the file spells a value in
    its own way (escapes, folded lines), ``offsets`` says where each character of the value stands,
    with one more for its end.

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
        """Return the place that covers all of `text`."""
        return cls(text, 0, len(text), file)

    def inner(self, text: str, start: int, end: int) -> Source:
        """Return the place of ``text[start:end]``, where `text` stands at this place.

        When the file spells `text` differently and there are no offsets for it, the whole
        place is returned: too wide is better than wrong.
        """
        if len(self.offsets) == len(text) + 1:
            return Source(self.text, self.offsets[start], self._end(start, end), self.file)
        if self.text[self.start : self.end] == text:
            return Source(self.text, self.start + start, self.start + end, self.file)
        found = self.text.find(text, self.start, self.end)
        if found < 0:
            return self
        return Source(self.text, found + start, found + end, self.file)

    def _end(self, start: int, end: int) -> int:
        """Return where ``[start:end]`` of the spelled text ends, without blanks that the spelling adds."""
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
        return {
            "start": {"line": line, "character": char},
            "end": {"line": end_line, "character": end_char},
        }

    def _position(self, offset: int) -> tuple[int, int]:
        offset = min(max(offset, 0), len(self.text))
        line = self.text.count("\n", 0, offset)
        return line, offset - (self.text.rfind("\n", 0, offset) + 1)

    def render(self) -> str:
        """Return the ``-->`` line, the source line and a caret run under it."""
        line, char = self._position(self.start)
        place = f"{self.file or '<text>'}:{line + 1}:{char + 1}"
        shown, char, end = self._masked(char)
        shown, char = _cut(shown.replace("\t", " ").rstrip("\r"), char)
        width = min(max(end, 1), max(len(shown) - char, 1))
        number = str(line + 1)
        pad = " " * len(number)
        return "\n".join(
            (
                f" {pad}--> {place}",
                f" {pad} |",
                f" {number} | {shown}",
                f" {pad} | {' ' * char}{'^' * width}",
            )
        )

    def _masked(self, char: int) -> tuple[str, int, int]:
        """Return the line without its secrets, where the place starts in it, and how many characters it has."""
        first = min(max(self.start, 0), len(self.text)) - char
        end_of_line = self.text.find("\n", first)
        line = self.text[first : end_of_line if end_of_line >= 0 else len(self.text)]
        # A secret may begin lines before this one.
        window = max(0, first // _WINDOW - 1) * _WINDOW
        stop = ((first + len(line)) // _WINDOW + 2) * _WINDOW
        spans = [
            (max(start + window - first, 0), min(end + window - first, len(line)))
            for start, end in secret_spans(self.text[window:stop])
            if start + window < first + len(line) and end + window > first
        ]
        last = char + self.end - self.start
        for start, end in reversed(spans):
            line = line[:start] + MASK + line[end:]
            char, last = (_moved(at, start, end) for at in (char, last))
        return line, char, last - char


def _moved(at: int, start: int, end: int) -> int:
    """Return where a character is after what was between two others has become the mask."""
    if at >= end:
        return at - (end - start) + len(MASK)
    return min(at, start + len(MASK)) if at > start else at


def _cut(line: str, char: int) -> tuple[str, int]:
    """Return the part of a very long line around a character, and where the character is in it."""
    if len(line) <= _LONGEST_LINE:
        return line, char
    start = max(0, min(char - _LONGEST_LINE // 3, len(line) - _LONGEST_LINE))
    end = start + _LONGEST_LINE
    before, after = "..." if start else "", "..." if end < len(line) else ""
    return before + line[start:end] + after, char - start + len(before)


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Places by path: ``arguments.joins.0.on`` is the `on` of the first join.

    `values` holds the places of what was written, `keys` those of the names in front of it.

    >>> text = "seq: 10"
    >>> sites = SourceMap(
    ...     Source.whole(text), FrozenMap(seq=Source(text, 5, 7)), FrozenMap(seq=Source(text, 0, 3))
    ... )
    >>> (
    ...     sites.of("seq").column,
    ...     sites.key("seq").column,
    ...     sites.of("seq.deeper").column,
    ...     sites.of("name").column,
    ... )
    (6, 1, 6, 1)
    """

    whole: Source | None = None
    values: FrozenMap[str, Source] = EMPTY
    keys: FrozenMap[str, Source] = EMPTY

    def of(self, path: str) -> Source | None:
        """Return the place of the value at `path`, else of the nearest part around it, else of the whole."""
        return self._nearest(self.values, path)

    def key(self, path: str) -> Source | None:
        """Return the place of the key at `path`, else of the nearest part around it, else of the whole."""
        return self.keys.get(path) or self._nearest(self.values, path)

    def below(self, prefix: str) -> SourceMap:
        """Return the places of the part at `prefix`, under paths that start there."""
        dotted = f"{prefix}."
        return SourceMap(
            self.of(prefix),
            FrozenMap({p[len(dotted) :]: s for p, s in self.values.items() if p.startswith(dotted)}),
            FrozenMap({p[len(dotted) :]: s for p, s in self.keys.items() if p.startswith(dotted)}),
        )

    def _nearest(self, places: FrozenMap[str, Source], path: str) -> Source | None:
        while path:
            if (found := places.get(path)) is not None:
                return found
            path = path.rpartition(".")[0]
        return self.whole


NO_SOURCES = SourceMap()
"""The places of something that came from no file."""
