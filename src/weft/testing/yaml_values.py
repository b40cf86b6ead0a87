"""YAML 1.2 as plain values that know where they stand; no text turns into a date by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from weft.core.source import Source
from weft.errors import CaseFileError

_TAG = "tag:yaml.org,2002:"


class Item(NamedTuple):
    """One entry of a mapping."""

    name: str
    key: Node
    value: Node


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the document: ruamel's node, the text it stands in, the file."""

    node: Any
    text: str
    file: str | None

    @property
    def value(self) -> Any:
        """The text of a scalar, the nodes of a list or mapping."""
        return self.node.value

    @property
    def is_mapping(self) -> bool:
        """Whether the node is a mapping."""
        return bool(self.node.id == "mapping")

    def place(self) -> Source:
        """Return where the node stands."""
        end = self.node.end_mark.index
        shown = self.text[: end if end > self.node.start_mark.index else end + 1].rstrip()
        return Source(
            self.text, self.node.start_mark.index, max(len(shown), self.node.start_mark.index), self.file
        )

    def head(self) -> Source:
        """Return where the first line of the node stands."""
        place = self.place()
        stop = self.text.find("\n", place.start, place.end)
        return place if stop < 0 else Source(self.text, place.start, stop, self.file)

    def block(self) -> Source | None:
        """Return where the lines of a literal block stand, or None for text written otherwise."""
        if self.node.id != "scalar" or self.node.style != "|":
            return None
        start = self.text.index("\n", self.text.index("|", self.node.start_mark.index)) + 1
        return Source(self.text, start, max(start, self.node.end_mark.index), self.file)

    def items(self) -> Iterator[Node]:
        """Yield the nodes of a list."""
        for node in self.node.value:
            yield Node(node, self.text, self.file)

    def pairs(self) -> Iterator[Item]:
        """Yield the entries of a mapping; a name that occurs twice raises."""
        seen: set[str] = set()
        for key, value in self.node.value:
            inner = Node(key, self.text, self.file)
            name = plain(inner)
            if not isinstance(name, str):
                raise CaseFileError(
                    "a name in a mapping must be a text", at=inner.place(), help="put quotes around it"
                )
            if name in seen:
                raise CaseFileError(
                    f"the name {name!r} occurs twice", at=inner.place(), help="leave one of them out"
                )
            seen.add(name)
            yield Item(name, inner, Node(value, self.text, self.file))


def compose(text: str, file: str | None = None) -> Node:
    """Return the root of the one document in `text`."""
    try:
        from ruamel.yaml import YAML  # noqa: PLC0415  # only case files need it
        from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415
    except ImportError as cause:
        raise CaseFileError("case files need ruamel.yaml", help="pip install 'weft[testing]'") from cause
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as cause:
        at = cause.problem_mark.index if cause.problem_mark is not None else 0
        raise CaseFileError(
            f"the file is not YAML: {cause.problem}",
            at=Source(text, at, at + 1, file),
            help="mend the text at this place",
        ) from cause
    except YAMLError as cause:
        raise CaseFileError(
            f"the file is not YAML: {cause}", at=Source(text, 0, 0, file), help="mend the text at this place"
        ) from cause
    if root is None:
        raise CaseFileError(
            "the file is empty",
            at=Source(text, 0, 0, file),
            help="write a mapping with the names of the cases",
        )
    return Node(root, text, file)


def plain(node: Node) -> Any:
    """Return the value of a node: dict, list, str, int, float, bool or None."""
    if node.is_mapping:
        return {item.name: plain(item.value) for item in node.pairs()}
    if node.node.id == "sequence":
        return [plain(inner) for inner in node.items()]
    return _scalar(node)


def _scalar(node: Node) -> Any:
    text: str = node.node.value
    kind = str(node.node.tag).removeprefix(_TAG)
    try:
        if kind == "int":
            return int(text.replace("_", ""), base=0)
        if kind == "float":
            return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError as cause:
        raise CaseFileError(
            f"{text!r} is not a number", at=node.place(), help="put quotes around it if it is a text"
        ) from cause
    if kind == "bool":
        return text.lower() == "true"
    return None if kind == "null" else text
