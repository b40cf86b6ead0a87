"""Parse YAML into nodes: the events of ruamel, and errors for the YAML features that Weft refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)
from ruamel.yaml.events import MappingEndEvent as MappingEnd
from ruamel.yaml.reader import ReaderError

from weft.core.findings import MAX_FINDINGS
from weft.core.source import Source, UserText
from weft.errors import Code, Diagnostic, EntityError, WeftError
from weft.pipelines.model.yaml_nodes import (
    MOST_DIGITS,
    Item,
    Node,
    Style,
    has_too_many_digits,
    inherit_name,
    named_value,
    parse_scalar,
    scalar_source,
)
from weft.redaction import is_open_reference, is_placeholder, is_secret_name, secret_spans

MOST_NODES = 200_000
"""Maximum number of nodes in a file; a part counts once for each alias that repeats it."""

DEEPEST = 100
"""Maximum nesting of lists and mappings."""

_NO_CHARACTER = re.compile(r"\\U(?!000|0010)[0-9A-Fa-f]{8}")
_TEXT_TAG = "tag:yaml.org,2002:str"
_is_secret_name = lru_cache(4096)(is_secret_name)  # the same few keys are in every entry of a list


def compose(text: str, file: str | None = None, error: type[WeftError] = EntityError) -> Node:
    """Return the root node of the document in `text`; raise `error` for invalid or refused YAML."""
    reader = _Reader(text, file)
    root: Node | None = None
    try:
        root = reader.document()
    except _Stop:
        pass
    except ReaderError as cause:
        at = int(getattr(cause, "position", 0) or 0)
        reader.report(f"invalid character: {cause.reason}", at, at + 1)
    except MarkedYAMLError as cause:
        mark = cause.problem_mark or cause.context_mark
        at = int(mark.index) if mark is not None else 0
        reader.report(f"invalid YAML: {cause.problem or cause.context}", at, at + 1, _hint(text, at, cause.problem))
    except YAMLError as cause:
        reader.report(f"invalid YAML: {cause}", 0, 0)
    except (ValueError, OverflowError):
        # The parser passes an escape like "\U00110000" to chr(), which raises ValueError.
        match = _NO_CHARACTER.search(text, reader.last)
        start, end = match.span() if match else (reader.last, reader.last + 1)
        reader.report("invalid escape: the character does not exist", start, end)
    if root is None and not reader.findings:
        reader.report("the file is empty", 0, 0, "write a mapping")
    if root is None or reader.findings:
        own = error is EntityError
        raise error(f if own else replace(f, code=error.default_code) for f in reader.findings)
    return root


class _Stop(Exception):  # noqa: N818  # ends the parsing of one file; never leaves this module
    """The rest of the file cannot be parsed."""


class _Reader:
    """Builds nodes from the events of one file and collects findings."""

    def __init__(self, text: str, file: str | None) -> None:
        self.text = UserText(text)
        self.file = file
        self.findings: list[Diagnostic] = []
        self.anchors: dict[str, Node | None] = {}
        self.count = 0
        self.last = 0
        self.events: Iterator[Any] = iter(YAML(typ="safe", pure=True).parse(text))

    def report(
        self, message: str, start: int, end: int, help: str = "correct the syntax here", code: Code = "W1001"
    ) -> None:
        self.findings.append(Diagnostic(code, message, help=help, at=Source(self.text, start, end, self.file)))
        if len(self.findings) >= MAX_FINDINGS:
            raise _Stop

    def document(self) -> Node | None:
        root: Node | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    start = event.start_mark.index
                    self.report("the file contains a second document", start, start + 3, "write one document per file")
                    break
            elif isinstance(event, ScalarEvent | CollectionStartEvent | AliasEvent):
                root = self.node(event, 0)
            elif isinstance(event, StreamEndEvent):
                break
        return root

    def node(self, event: Any, depth: int) -> Node:
        start, end = event.start_mark.index, event.end_mark.index
        self.last = end
        if isinstance(event, AliasEvent):
            return self.alias(event, start, end)
        self.count_nodes(1, start, end)
        if depth > DEEPEST:
            self.report(
                f"lists and mappings are nested more than {DEEPEST} deep",
                start, end, "reduce the nesting", "W1022",
            )  # fmt: skip
            raise _Stop
        if event.anchor is not None:
            self.anchors[event.anchor] = None  # until its content is complete: an alias inside it would not end
            # The mark includes the anchor, but findings should point at the content.
            start += len(event.anchor) + 1
            start += len(self.text[start:]) - len(self.text[start:].lstrip(" \t"))
        node = self.content(event, start, end, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def content(self, event: Any, start: int, end: int, depth: int) -> Node:
        tag = str(event.tag) if event.tag is not None else None
        if tag is not None and not (tag == _TEXT_TAG and isinstance(event, ScalarEvent)):
            stop = start + len(self.text[start:end].split(maxsplit=1)[0] if end > start else "")
            self.report(
                f"tags are not supported: {self.text[start:stop]}", start, stop, "write the value without a tag"
            )
        if isinstance(event, ScalarEvent):
            style: Style = event.style or ""
            if tag == _TEXT_TAG and style == "":
                style = "text"
            if style in ("|", ">"):
                # ruamel ends a block where the next token starts, which is after trailing blank lines.
                end = start + len(self.text[start:end].rstrip())
            if not _is_encodable(event.value):
                self.report(
                    "the string contains half of a surrogate pair", start, end,
                    r"write a character beyond FFFF as \UXXXXXXXX",
                )  # fmt: skip
            # PostgreSQL and the file system refuse it, so it is refused where it is written.
            if "\0" in event.value:
                self.report("the string contains a NUL character", start, end, "remove it")
            if style == "" and has_too_many_digits(event.value):
                self.report(
                    f"the number has more than {MOST_DIGITS:,} digits", start, end,
                    "use fewer digits, or put quotes around a string that looks like a number", "W1022",
                )  # fmt: skip
            scalar = Node("scalar", event.value, start, max(start, end), self.text, self.file, style)
            self.hide_within(scalar)
            return scalar
        flow = bool(event.flow_style)
        if isinstance(event, MappingStartEvent):
            return self.mapping(start, depth, flow=flow)
        return self.list(start, depth, flow=flow)

    def list(self, start: int, depth: int, *, flow: bool) -> Node:
        parts: list[Node] = []
        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                end = event.end_mark.index if flow or not parts else parts[-1].end
                break
            parts.append(self.node(event, depth + 1))
        else:
            raise _Stop
        size = 1 + sum(part.size for part in parts)
        return Node("list", tuple(parts), start, max(start, end), self.text, self.file, "", size)

    def mapping(self, start: int, depth: int, *, flow: bool) -> Node:
        entries: dict[str, Item] = {}
        size, end = 1, start
        for event in self.events:
            if isinstance(event, MappingEnd):
                end = event.end_mark.index if flow else end
                break
            key = self.node(event, depth + 1)
            value = self.node(next(self.events), depth + 1)
            # An alias as a value ends where its anchor does, which is before its key.
            size, end = size + 1 + value.size, max(end, value.end, key.end)
            name = self.name(key)
            if name is None:
                continue
            if name in entries:
                first = entries[name].key.place().line
                self.report(
                    f"duplicate key {name!r}", key.start, key.end,
                    f"remove one of them; the first is in line {first}",
                )  # fmt: skip
                continue
            entries[name] = Item(name, key, value)
            self.hide_value(name, value)
        else:
            raise _Stop
        if (named := named_value(entries.values())) is not None:
            self.hide_value(named.name, named.value)
        return Node("mapping", tuple(entries.values()), start, max(start, end), self.text, self.file, "", size)

    # A secret is hidden by its position, because the text may spell its key or its value in another way.

    def hide_value(self, name: str, value: Node) -> None:
        """Hide a value, or all that is in a list or a mapping, whose name means a secret."""
        if value.is_list:
            for part in value.items():
                self.hide_value(name, part)
        elif value.is_mapping and _is_secret_name(name):
            for item in inherit_name(name, value):
                self.hide_value(item.name, item.value)
        elif value.kind == "scalar" and (
            is_open_reference(name, value.value) or (_is_secret_name(name) and not is_placeholder(value.value))
        ):
            self.hide(scalar_source(value).inner(value.value, 0, len(value.value)))

    def hide_within(self, scalar: Node) -> None:
        """Hide the secrets inside a string, such as the password of an address."""
        for start, end in secret_spans(scalar.value):
            self.hide(scalar_source(scalar).inner(scalar.value, start, end))

    def hide(self, at: Source) -> None:
        self.text.secrets.append((at.start, at.end))

    def name(self, key: Node) -> str | None:
        if key.kind == "scalar" and key.style == "" and key.value == "<<":
            self.report(
                "merge keys (`<<`) are not supported",
                key.start,
                key.end,
                "repeat the entries, or use an alias for the whole value",
            )
            return None
        value = parse_scalar(key.value) if key.kind == "scalar" and key.style == "" else key.value
        if key.kind != "scalar" or not isinstance(value, str):
            self.report("a key must be a string", key.start, key.end, "put quotes around it")
            return None
        return value

    def alias(self, event: Any, start: int, end: int) -> Node:
        if event.anchor not in self.anchors:
            self.report(f"unknown anchor {event.anchor!r}", start, end, "write the value here")
            raise _Stop
        known = self.anchors[event.anchor]
        if known is None:
            self.report(
                f"the alias {event.anchor!r} refers to a value that contains it", start, end,
                "write the value here", "W1022",
            )  # fmt: skip
            raise _Stop
        # Nodes are shared, so a file of a few lines can stand for billions of values; they count as if written out.
        self.count_nodes(known.size, start, end)
        return known

    def count_nodes(self, nodes: int, start: int, end: int) -> None:
        self.count += nodes
        if self.count > MOST_NODES:
            self.report(
                f"the file contains more than {MOST_NODES:,} values", start, end,
                "split it, or move data to a separate file", "W1022",
            )  # fmt: skip
            raise _Stop


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _hint(text: str, at: int, problem: str | None) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :].split("\n", 1)[0]
    if "\t" in line[: len(line) - len(line.lstrip())] or text[at : at + 1] == "\t":
        return "indent with spaces, not with tabs"
    if (problem or "").startswith("mapping values"):
        return "put quotes around a value that contains ': ', or correct the indentation"
    if text[at : at + 1] in ("{", "%", "@", "`"):
        return "put quotes around the value"
    return "correct the syntax here"
