"""Nodes of YAML 1.2 with their locations; no value is converted to a date or a float.

::

    period: 2026-01        the string "2026-01"
    period: 2026           Whole(2026), whose .text is "2026"
    rate: 1.0920           Exact("1.0920"), whose .text is "1.0920"
    on: yes                the key "on" and the string "yes"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, NamedTuple, Self

from weft.core.source import Source, is_hidden
from weft.pipelines.model.scalar_offsets import compute_offsets
from weft.redaction import MASK, is_reference_name, is_secret_name

Style = Literal["", "text", '"', "'", "|", ">"]
"""How a scalar is written: "" plain, "text" plain but always read as a string."""

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
MOST_DIGITS = 1000
"""Maximum number of digits of a number, written without an exponent."""

_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_SHORT = 4  # a number with so few characters is within the limit
_WORDS: Mapping[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class Whole(int):
    """An integer with the text it was written as."""

    text: str

    def __new__(cls, value: int, text: str = "") -> Self:
        """Create the number with its text."""
        number = super().__new__(cls, value)
        number.text = text or str(value)
        return number

    def __reduce__(self) -> tuple[type[Whole], tuple[int, str]]:
        return Whole, (int(self), self.text)


class Exact(Decimal):
    """A number with a decimal point or exponent, with the text it was written as."""

    text: str

    def __new__(cls, value: str, text: str = "") -> Self:
        """Create the number with its text."""
        number = super().__new__(cls, value)
        number.text = text or value
        return number

    def __reduce__(self) -> tuple[type[Exact], tuple[Any, ...]]:
        return Exact, (str(self), self.text)


class Item(NamedTuple):
    """One entry of a mapping."""

    name: str
    key: Node
    value: Node


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a document with its location.

    `value` is the text of a scalar, the nodes of a list, or the items of a mapping.
    """

    kind: Literal["scalar", "list", "mapping"]
    value: Any
    start: int = 0
    end: int = 0
    text: str = ""
    file: str | None = None
    style: Style = '"'
    size: int = 1

    @property
    def is_mapping(self) -> bool:
        """Whether the node is a mapping."""
        return self.kind == "mapping"

    @property
    def is_list(self) -> bool:
        """Whether the node is a list."""
        return self.kind == "list"

    @property
    def shown(self) -> str:
        """The text of a scalar for a message, without a secret."""
        return MASK if is_hidden(self.text, self.start, self.end) else str(self.value)

    def place(self) -> Source:
        """Return the location of the node."""
        return Source(self.text, self.start, self.end, self.file)

    def head(self) -> Source:
        """Return the location of the node within its first line, without the entries that follow."""
        stop = self.text.find("\n", self.start, self.end)
        if stop < 0:
            return self.place()
        if self.kind != "scalar" and self.value and self.text[self.start] not in "[{":
            first = self.value[0]
            key, value = (first.key, first.value) if self.is_mapping else (first, first)
            # If the value starts in a later line, only the key is in the first one.
            end = value.end if value.start < stop else key.end
            return Source(self.text, self.start, max(self.start, min(end, stop)), self.file)
        end = self.start + len(self.text[self.start : stop].rstrip())
        return Source(self.text, self.start, end, self.file)

    def scalar(self, value: str, style: Style = "text") -> Node:
        """Return a string at the location of this node; with the style "", what YAML reads it as."""
        return replace(self, kind="scalar", value=value, style=style, size=1)

    def block(self) -> Source | None:
        """Return the location of the lines of a literal block, or None for other styles."""
        if self.kind != "scalar" or self.style != "|":
            return None
        start = self.text.find("\n", self.start) + 1 or len(self.text)
        return Source(self.text, start, max(start, self.end), self.file)

    def items(self) -> Iterator[Node]:
        """Yield the nodes of a list."""
        yield from self.value

    def pairs(self) -> Iterator[Item]:
        """Yield the entries of a mapping."""
        yield from self.value

    def get(self, name: str) -> Node | None:
        """Return the value under a name of a mapping, or None."""
        if self.kind != "mapping":
            return None
        return next((item.value for item in self.value if item.name == name), None)

    def key(self, name: str) -> Node | None:
        """Return the key of that name in a mapping, or None."""
        if self.kind != "mapping":
            return None
        return next((item.key for item in self.value if item.name == name), None)

    def without(self, name: str) -> Node:
        """Return a mapping without the entry of that name."""
        return replace(self, value=tuple(item for item in self.value if item.name != name))

    def rename(self, old: str, new: str) -> Node:
        """Return a mapping with one key under another name; its location stays that of the old key."""
        return replace(self, value=tuple(i._replace(name=new) if i.name == old else i for i in self.value))

    def with_value(self, name: str, value: Node) -> Node:
        """Return a mapping with another value under an existing name."""
        return replace(self, value=tuple(i._replace(value=value) if i.name == name else i for i in self.value))

    def map_values(self, change: Callable[[Node], Node], *names: str) -> Node:
        """Return a mapping with the values under `names`, or all of them, changed; other nodes stay."""
        if self.kind != "mapping":
            return self
        changed = (i._replace(value=change(i.value)) if not names or i.name in names else i for i in self.value)
        return replace(self, value=tuple(changed))


def to_python(node: Node) -> Any:
    """Return the value of a node: dict, list, str, Whole, Exact, bool or None."""
    if node.kind == "mapping":
        return {item.name: to_python(item.value) for item in node.value}
    if node.kind == "list":
        return [to_python(inner) for inner in node.value]
    return node.value if node.style else parse_scalar(node.value)


def parse_scalar(text: str) -> Any:
    """Return the value of a scalar without quotes in the core schema of YAML 1.2.

    >>> parse_scalar("2026-01-01"), parse_scalar("yes"), parse_scalar("0x1F"), parse_scalar("1.50")
    ('2026-01-01', 'yes', 31, Decimal('1.50'))
    """
    if text in _WORDS:
        return _WORDS[text]
    # A number that is too long is reported by the parser; as a string it does no harm until then.
    if text[0] not in "0123456789+-." or has_too_many_digits(text):
        return text
    if _INT.fullmatch(text):
        # Base 0 understands 0x and 0o, but refuses 007, which is seven in YAML 1.2.
        return Whole(int(text, base=10 if text.lstrip("+-").isdigit() else 0), text)
    if _FLOAT.fullmatch(text):
        return Exact(text, text)
    if match := _SPECIAL.fullmatch(text):
        return Exact(f"{match[1] or ''}{'inf' if match[2] else 'nan'}", text)
    return text


def has_too_many_digits(text: str) -> bool:
    """Whether a text is a number with more digits, or a greater exponent, than Weft accepts.

    Python refuses to convert such numbers, and some of its operations would take hours on them.

    >>> has_too_many_digits("9" * 1000), has_too_many_digits("9" * 1001), has_too_many_digits("1e1001")
    (False, True, True)
    """
    if len(text) <= _SHORT or text[0] not in "0123456789+-.":
        return False
    if _INT.fullmatch(text):
        return len(text.lstrip("+-")) > MOST_DIGITS
    match = _FLOAT.fullmatch(text)
    if match is None:
        return False
    exponent = (match[3] or "e0")[1:].lstrip("+-").lstrip("0")
    return len(match[1]) > MOST_DIGITS or len(exponent) > _SHORT or int(exponent or 0) > MOST_DIGITS


def scalar_source(node: Node) -> Source:
    """Return the location of a scalar, with the offset of each of its characters.

    `Source.inner` of the result is exact for all five styles of scalars.
    """
    return Source(node.text, node.start, node.end, node.file, _offsets(node))


def _offsets(node: Node) -> tuple[int, ...]:
    inside = 1 if node.style in ("'", '"') and node.end - node.start >= 2 else 0
    if node.text[node.start + inside : node.end - inside] == node.value:
        # Quotes are the only difference, so the offsets are consecutive.
        return tuple(range(node.start + inside, node.end - inside + 1)) if inside else ()
    return compute_offsets(node.text, node.start, node.end, node.style, node.value)


def named_value(items: Iterable[Item]) -> Item | None:
    """Return the value of ``{name: password, value: x}`` under that name, or None for other mappings."""
    entries = {item.name: item for item in items}
    name, value = entries.get("name") or entries.get("key"), entries.get("value")
    if name is None or value is None or name.value.kind != "scalar":
        return None
    return Item(name.value.value, value.key, value.value)


def inherit_name(name: str, mapping: Node) -> Iterator[Item]:
    """Yield the entries of a mapping; under the name of a secret they have that name: ``password: {value: x}``."""
    inherits = is_secret_name(name)
    for item in mapping.pairs():
        yield Item(name, item.key, item.value) if inherits and not is_reference_name(item.name) else item


def as_text(node: Node) -> Node:
    """Return a plain scalar as a string, so that ``2026`` can name a period."""
    return replace(node, style="text") if node.kind == "scalar" and node.style == "" and node.value else node


def node_from_value(value: Any) -> Node:
    """Return the node of a value that is not from a file.

    >>> to_python(node_from_value({"seq": 10, "columns": ["a"]}))
    {'seq': 10, 'columns': ['a']}
    """
    if isinstance(value, Mapping):
        entries = tuple(Item(str(k), node_from_value(str(k)), node_from_value(v)) for k, v in value.items())
        return Node("mapping", entries)
    if isinstance(value, list | tuple):
        return Node("list", tuple(node_from_value(v) for v in value))
    if isinstance(value, str):
        return Node("scalar", value)
    if value is None or isinstance(value, bool):
        return Node("scalar", "null" if value is None else str(value).lower(), style="")
    return Node("scalar", getattr(value, "text", None) or str(value), style="")
