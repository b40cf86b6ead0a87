r"""Offsets of the characters of a YAML scalar in its file, for styles that escape or fold them.

::

    "a \"b\""          the string  a "b"  has columns 2 3 4 6 7
    'it''s'            the string  it's   has columns 2 3 4 6
    >                  folded lines: the space between two lines has the offset of the line end
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

_ESCAPES: Mapping[str, str] = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_CODES: Mapping[str, int] = {"x": 2, "u": 4, "U": 8}
_BLANKS = " \t"

Spelled = Iterator[tuple[str, int]]
"""Characters of the value with their offsets in the file."""


def compute_offsets(text: str, start: int, end: int, style: str, value: str) -> tuple[int, ...]:
    r"""Return the offset of each character of `value`, which is written from `start` to `end`, and of its end.

    Returns () when the text there does not match the value: no location is better than a wrong one.

    >>> compute_offsets("on: 'it''s'", 4, 11, "'", "it's")
    (5, 6, 7, 9, 10)
    """
    # The text is read a second time because the parser reports only where a scalar starts and ends.
    spelled = list(_STYLES[style](text, start, end))
    if style in ("|", ">"):
        spelled = _chomped(spelled, value)
    if "".join(char for char, _ in spelled) != value:
        return ()
    last = end - 1 if style in ("'", '"') else end
    if style in ("|", ">"):
        last = spelled[-1][1] + 1 if spelled else end
    return (*(at for _, at in spelled), last)


def _plain(text: str, start: int, end: int) -> Spelled:
    return _folded(text, start, end, lambda at: (text[at], at + 1))


def _single(text: str, start: int, end: int) -> Spelled:
    return _folded(text, start + 1, end - 1, lambda at: (text[at], at + 2 if text[at] == "'" else at + 1))


def _double(text: str, start: int, end: int) -> Spelled:
    def read(at: int) -> tuple[str, int]:
        if text[at] != "\\":
            return text[at], at + 1
        mark = text[at + 1]
        if mark in _CODES:
            stop = at + 2 + _CODES[mark]
            return chr(int(text[at + 2 : stop], 16)), stop
        if mark in "\r\n":
            # An escaped line end joins two lines without a space; empty lines after it are line breaks.
            return "", _after_blanks(text, _after_break(text, at + 1))
        return _ESCAPES.get(mark, mark), at + 2

    return _folded(text, start + 1, end - 1, read)


def _folded(text: str, start: int, end: int, read: Callable[[int], tuple[str, int]]) -> Spelled:
    """Yield the characters of a flow scalar: one line end is a space, n line ends are n - 1 breaks."""
    at = start
    while at < end:
        stop = at
        while stop < end and text[stop] in _BLANKS:
            stop += 1
        if stop < end and text[stop] in "\r\n":
            breaks: list[int] = []
            while stop < end and text[stop] in "\r\n":
                breaks.append(stop)
                stop = _after_blanks(text, _after_break(text, stop))
            yield from ((" ", breaks[0]),) if len(breaks) == 1 else (("\n", b) for b in breaks[1:])
            at = stop
        elif stop > at:
            yield from ((text[i], i) for i in range(at, stop))
            at = stop
        else:
            char, after = read(at)
            if char:
                yield char, at
            elif text[after : after + 1] and text[after] in "\r\n":
                while after < end and text[after] in "\r\n":
                    yield "\n", after
                    after = _after_blanks(text, _after_break(text, after))
            at = after


def _literal(text: str, start: int, end: int) -> Spelled:
    for line, (first, stop) in _lines(text, start, end):
        yield from ((char, first + i) for i, char in enumerate(line))
        yield "\n", stop


def _folded_block(text: str, start: int, end: int) -> Spelled:
    lines = list(_lines(text, start, end))
    at = 0
    while at < len(lines) and not lines[at][0]:
        yield "\n", lines[at][1][1]
        at += 1
    while at < len(lines):
        line, (first, stop) = lines[at]
        yield from ((char, first + i) for i, char in enumerate(line))
        after = at + 1
        while after < len(lines) and not lines[after][0]:
            after += 1
        empty = [lines[i][1][1] for i in range(at + 1, after)]
        # YAML folds only lines without extra indentation: more indented ones keep their line ends.
        if after < len(lines) and line[0] not in _BLANKS and lines[after][0][0] not in _BLANKS:
            yield from ((" ", stop),) if not empty else ()
        else:
            yield "\n", stop
        yield from (("\n", place) for place in empty)
        at = after


def _lines(text: str, start: int, end: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each line of a block without its indent, with the offsets of its first character and its end."""
    at = text.find("\n", start, end) + 1
    if at == 0:
        return
    header = text[start:at].split("#", 1)[0]
    explicit = next((int(c) for c in header if c.isdigit()), None)
    raw: list[tuple[int, int]] = []
    while at < end:
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        raw.append((at, stop - 1 if text[stop - 1 : stop] == "\r" and stop > at else stop))
        at = stop + 1
    indent = _indent(text, raw) if explicit is None else _explicit_indent(text, start, explicit, raw)
    for first, stop in raw:
        inner = min(first + indent, stop) if text[first:stop][:indent].strip(" ") == "" else first
        yield text[inner:stop], (inner, stop)


def _indent(text: str, lines: list[tuple[int, int]]) -> int:
    for first, stop in lines:
        line = text[first:stop]
        if line.strip(" "):
            return len(line) - len(line.lstrip(" "))
    return max((stop - first for first, stop in lines), default=0)


def _explicit_indent(text: str, start: int, explicit: int, lines: list[tuple[int, int]]) -> int:
    """Return the indent of a header like ``|2``, which is relative to the parent of the scalar."""
    least = min((len(t) - len(t.lstrip(" ")) for t in (text[a:b] for a, b in lines) if t.strip(" ")), default=0)
    head = text[text.rfind("\n", 0, start) + 1 : start]
    parent = len(head) - len(head.lstrip(" -?"))
    return min(least, parent + explicit)


def _chomped(spelled: list[tuple[str, int]], value: str) -> list[tuple[str, int]]:
    """Return as many of the line ends at the end as the value keeps."""
    body = len(spelled)
    while body and spelled[body - 1][0] == "\n":
        body -= 1
    kept = len(value) - len(value.rstrip("\n"))
    return spelled[: body + kept]


def _after_break(text: str, at: int) -> int:
    return at + 2 if text[at : at + 2] == "\r\n" else at + 1


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


_STYLES: Mapping[str, Callable[[str, int, int], Spelled]] = {
    "": _plain, "text": _plain, "'": _single, '"': _double, "|": _literal, ">": _folded_block,
}  # fmt: skip
