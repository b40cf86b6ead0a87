"""Read canonical nodes into specs: values with their locations, and findings about them."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from weft.core import findings
from weft.core.frozen import FrozenMap
from weft.core.paths import name_problem
from weft.core.source import Source, SourceMap
from weft.core.spec import LOCATIONS, RawMapping, ReadAs, Text, WithJsonSchema
from weft.errors import Code
from weft.pipelines.model.values import PERIOD_END, PERIOD_START, AsOfDay, LocatedText
from weft.pipelines.model.yaml_nodes import Item, Node, scalar_source, to_python

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

LONGEST_NAME = 60
"""Maximum number of characters of a name that a message repeats."""


@dataclass(slots=True)
class Findings(findings.Findings):
    """Findings about a file, collected while pydantic builds specs from it."""

    rules: Rules = field(default_factory=dict)
    partial: bool = False
    """Whether parts of the file were dropped, so that a missing part is not an error."""

    def finish(self, spec: Any, node: Node, *, located: bool) -> Any:
        """Return a spec that pydantic built from a node, with its locations, after the rules of its type."""
        if located:
            # Specs are frozen; pydantic has just built this one, and nobody else has it yet.
            object.__setattr__(spec, LOCATIONS, collect_sites(node))
        rule = self.rules.get(type(spec))
        return spec if rule is None else rule(spec, Entries(node, self))


Rules = Mapping[type, Callable[[Any, "Entries"], Any]]
"""By type, what checks and completes a spec once it is built: takes the spec and its mapping, returns the spec."""


class NodeText(str):
    """A string passed to pydantic together with its node."""

    __slots__ = ("node",)
    node: Node


def to_pydantic(node: Node) -> Any:
    """Return the value of a node for pydantic: mappings and strings keep their node, lists become tuples."""
    if node.kind == "mapping":
        mapping = RawMapping((item.name, to_pydantic(item.value)) for item in node.value)
        mapping.node = node
        return mapping
    if node.kind == "list":
        return tuple(to_pydantic(inner) for inner in node.value)
    value = to_python(node)
    if not isinstance(value, str):
        return value
    # Only strings are converted with their location; numbers and booleans are used as they are.
    text = NodeText(value)
    text.node = node
    return text


class Entries:
    """A valid mapping of a file, read key by key."""

    __slots__ = ("findings", "node")

    def __init__(self, node: Node, findings: Findings) -> None:
        self.node = node
        self.findings = findings

    def value(self, name: str, default: Any = None) -> Any:
        """Return the value under a name, or the default."""
        node = self.node.get(name)
        value = None if node is None else to_python(node)
        return default if value is None else value

    def text(self, name: str, default: str = "") -> str:
        """Return a text as it was written, or the default."""
        text = self.located(name)
        return default if text is None else text.text

    def located(self, name: str) -> LocatedText | None:
        """Return a string with its location, or None."""
        node = self.node.get(name)
        return None if node is None or to_python(node) is None else read_text(node)

    def parts(self, name: str) -> Iterator[Entries]:
        """Yield the mappings of a list."""
        node = self.node.get(name)
        if node is not None and node.is_list:
            for part in node.items():
                yield Entries(part, self.findings)

    def part(self, name: str) -> Entries | None:
        """Return a mapping, or None."""
        node = self.node.get(name)
        return Entries(node, self.findings) if node is not None and node.is_mapping else None

    def texts(self, name: str) -> tuple[LocatedText, ...]:
        """Return the strings of a list with their locations."""
        node = self.node.get(name)
        return tuple(read_text(part) for part in node.items()) if node is not None and node.is_list else ()

    def pairs(self, name: str) -> Iterator[Item]:
        """Yield the entries of a mapping."""
        node = self.node.get(name)
        if node is not None and node.is_mapping:
            yield from node.pairs()

    def report(self, code: Code, message: str, name: str, help: str = "") -> None:
        """Report a finding about the value under a name."""
        node = self.node.get(name)
        place = self.node.head() if node is None else node.place() if node.kind == "scalar" else node.head()
        self.findings.add(code, message, place, help)


def check_path_name(entries: Entries, name: str, key: str, what: str, *, prefix: str = "") -> None:
    """Report W1030 for a name that must be usable as a folder name.

    A name from the store was accepted when it was saved, and must stay readable.
    """
    problem = name_problem(name, prefix=prefix, patterns=not prefix)
    if problem is not None and entries.node.text:
        short = name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "..."
        entries.report(
            "W1030",
            f"{what} {short!r} {problem}; it is used as a folder name",
            key,
            "use letters, digits, spaces and - _ . in the name",
        )


def read_text(node: Node) -> LocatedText:
    """Return the string of a scalar with its location."""
    return LocatedText(str(node.value), scalar_source(node) if node.text else None)


def read_expression(node: Node, what: str, findings: Findings) -> LocatedText:
    """Return the expression of a node; report a blank one."""
    text = read_text(node) if node.kind == "scalar" else LocatedText("")
    if not text.text.strip():
        findings.add("W1007", f"{what} is empty", node.place(), "write an expression, or remove the key")
    return text


EXPRESSION_SCHEMA: dict[str, Any] = {
    "description": "an expression, as a string or as {source: string}",
    "anyOf": [
        {"type": ["string", "number", "boolean"]},
        {
            "type": "object",
            "properties": {"source": {"type": "string"}},
            "required": ["source"],
            "additionalProperties": False,
        },
    ],
}
ExpressionText = Annotated[str, WithJsonSchema(EXPRESSION_SCHEMA)]


Name = Annotated[Text, WithJsonSchema({"type": ["string", "number"]})]
"""A string that may look like a number, as the identifier of a year does."""


def read_located(_value: Any, raw: Any, _findings: Findings) -> LocatedText:
    """Return a validated string with its location."""
    return read_text(raw.node)


Selector = ReadAs(ExpressionText, read_located)
"""Reads a selector: an expression that may be blank."""

NonBlankText = Annotated[LocatedText, ReadAs(Text, read_located)]
"""A string that is not blank, with its location."""


def expression_key(name: str) -> ReadAs:
    """Return what reads the expression under a key and reports a blank one."""
    return ReadAs(ExpressionText, lambda _value, raw, findings: read_expression(raw.node, repr(name), findings))


def _as_of(value: str, raw: Any, findings: Findings) -> AsOfDay:
    if value == "period_start":
        return PERIOD_START
    if value == "period_end":
        return PERIOD_END
    if not _DAY.fullmatch(value):
        return AsOfDay("column", column=value)
    try:
        return AsOfDay("date", date=dt.date.fromisoformat(value))
    except ValueError:
        findings.add("W1004", f"'as_of' has the invalid date {value!r}", raw.node.place(), "use the form 2026-01-31")
        return PERIOD_START


AsOf = Annotated[AsOfDay, ReadAs(Text, _as_of)]
"""The day at which a table is read: a word, a date, or a column of the working set."""


def read_identity(entries: Entries, kind: str) -> tuple[str, str]:
    """Return the id and the name of an entity; each one is derived from the other if it is missing."""
    id, name = entries.text("id"), entries.text("name")
    if not id and not name:
        entries.findings.add("W1014", f"the {kind} has neither 'id' nor 'name'", entries.node.head(), "add `name: ...`")
    return id or build_entity_id(kind, name), name or id


def build_entity_id(kind: str, name: str) -> str:
    """Return the id of an entity that only has a name; equal names have equal ids.

    >>> build_entity_id("dataset", "gl") == build_entity_id("dataset", "gl") != build_entity_id("project", "gl")
    True
    """
    # Derived, not random: two clones of a workspace must record the same id in their stores.
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"weft:{kind}/{name}"))


def collect_sites(node: Node) -> SourceMap:
    """Return the location of each part of a node; a node that is not from a file has none."""
    if not node.text:
        return SourceMap()
    values: dict[str, Source] = {}
    keys: dict[str, Source] = {}
    _gather(node, "", values, keys)
    return SourceMap(node.head(), FrozenMap(values), FrozenMap(keys))


def _gather(node: Node, prefix: str, values: dict[str, Source], keys: dict[str, Source]) -> None:
    if node.is_mapping:
        for name, key, value in node.pairs():
            path = f"{prefix}{name}"
            keys[path] = key.place()
            _place(value, path, values, keys)
    elif node.is_list:
        for i, part in enumerate(node.items()):
            _place(part, f"{prefix}{i}", values, keys)


def _place(node: Node, path: str, values: dict[str, Source], keys: dict[str, Source]) -> None:
    values[path] = scalar_source(node) if node.kind == "scalar" else node.head()
    _gather(node, f"{path}.", values, keys)
