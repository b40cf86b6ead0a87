"""Reading canonical nodes into specs: values with their locations, and the findings about them."""

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

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The form of a name that expressions can hold without quotes."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

LONGEST_SHOWN = 60
"""How many characters of a value a message repeats."""


@dataclass(slots=True)
class Findings(findings.Findings):
    """What is found in a file, while pydantic builds specs from it."""

    rules: Rules = field(default_factory=dict)
    partial: bool = False
    """Whether parts of the file were left out, so that nothing follows from what is not there."""

    def finish(self, spec: Any, node: Node, *, located: bool) -> Any:
        """Return a spec that pydantic built from a node, with its locations; the rules of its type are checked."""
        if located:
            object.__setattr__(spec, LOCATIONS, collect_sites(node))
        rule = self.rules.get(type(spec))
        return spec if rule is None else rule(spec, Entries(node, self))


Rules = Mapping[type, Callable[[Any, "Entries"], Any]]
"""What is checked, and filled in, once a spec of a type has been built: takes the spec and its mapping, returns the spec."""


class WrittenText(str):
    """A string of a file on its way into a spec, with its node."""

    __slots__ = ("node",)
    node: Node


def to_pydantic(node: Node) -> Any:
    """Return the value of a node for pydantic: mappings and strings keep their node, lists are tuples."""
    if node.kind == "mapping":
        mapping = RawMapping((item.name, to_pydantic(item.value)) for item in node.value)
        mapping.node = node
        return mapping
    if node.kind == "list":
        return tuple(to_pydantic(inner) for inner in node.value)
    value = to_python(node)
    if not isinstance(value, str):
        return value
    text = WrittenText(value)
    text.node = node
    return text


class Entries:
    """A mapping of a file that has the right shape, read key by key."""

    __slots__ = ("findings", "node")

    def __init__(self, node: Node, findings: Findings) -> None:
        self.node = node
        self.findings = findings

    def value(self, name: str, default: Any = None) -> Any:
        """Return a plain value, the default when nothing is said."""
        found = self.node.get(name)
        value = None if found is None else to_python(found)
        return default if value is None else value

    def text(self, name: str, default: str = "") -> str:
        """Return a text as it was written, the default when nothing is said."""
        said = self.located(name)
        return default if said is None else said.text

    def text_or_none(self, name: str) -> str | None:
        """Return a text as it was written, or None."""
        said = self.located(name)
        return None if said is None else said.text

    def located(self, name: str) -> LocatedText | None:
        """Return a text with its place, or None."""
        found = self.node.get(name)
        return None if found is None or to_python(found) is None else read_text(found)

    def parts(self, name: str) -> Iterator[Entries]:
        """Yield the mappings of a list."""
        found = self.node.get(name)
        if found is not None and found.is_list:
            for part in found.items():
                yield Entries(part, self.findings)

    def part(self, name: str) -> Entries | None:
        """Return a mapping, or None."""
        found = self.node.get(name)
        return Entries(found, self.findings) if found is not None and found.is_mapping else None

    def texts(self, name: str) -> tuple[LocatedText, ...]:
        """Return the texts of a list."""
        found = self.node.get(name)
        return tuple(read_text(part) for part in found.items()) if found is not None and found.is_list else ()

    def pairs(self, name: str) -> Iterator[Item]:
        """Yield the entries of a mapping."""
        found = self.node.get(name)
        if found is not None and found.is_mapping:
            yield from found.pairs()

    def find(self, code: Code, message: str, name: str, help: str = "") -> None:
        """Note a finding about the value under a name."""
        found = self.node.get(name)
        place = (
            self.node.head() if found is None else found.place() if found.kind == "scalar" else found.head()
        )
        self.findings.add(code, message, place, help)


def check_path_name(entries: Entries, name: str, key: str, what: str, *, prefix: str = "") -> None:
    """Note W1030 when a name that becomes a folder cannot be one.

    What comes from the store and not from a file was accepted when it was written, and stays readable.
    """
    problem = name_problem(name, prefix=prefix, patterns=not prefix)
    if problem is not None and entries.node.text:
        shown = name if len(name) <= LONGEST_SHOWN else name[:LONGEST_SHOWN] + "..."
        entries.find(
            "W1030",
            f"{what} {shown!r} {problem}, and it becomes the name of a folder",
            key,
            "use letters, digits, blanks and - _ . in the name",
        )


def read_text(node: Node) -> LocatedText:
    """Return the text of a scalar with its place."""
    return LocatedText(str(node.value), scalar_source(node) if node.text else None)


def read_expression(node: Node, what: str, findings: Findings) -> LocatedText:
    """Return the expression that a node holds; one without a character in it is noted."""
    said = read_text(node) if node.kind == "scalar" else LocatedText("")
    if not said.text.strip():
        findings.add("W1007", f"{what} is empty", node.place(), "write an expression, or leave the key out")
    return said


EXPRESSION_SCHEMA: dict[str, Any] = {
    "description": "an expression, as text or as {source: text}",
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

Selector = ReadAs(ExpressionText, lambda _value, raw, _findings: read_text(raw.node))
"""How a selector is written: an expression that may be blank."""

NonBlankText = Annotated[LocatedText, ReadAs(Text, lambda _value, raw, _findings: read_text(raw.node))]
"""A string that is not blank, with its location."""


def expression_key(name: str) -> ReadAs:
    """Return how the expression under a key is written; one without a character in it is noted."""
    return ReadAs(
        ExpressionText, lambda _value, raw, findings: read_expression(raw.node, repr(name), findings)
    )


def _as_of(said: str, raw: Any, findings: Findings) -> AsOfDay:
    if said == "period_start":
        return PERIOD_START
    if said == "period_end":
        return PERIOD_END
    if not _DAY.fullmatch(said):
        return AsOfDay("column", column=said)
    try:
        return AsOfDay("date", date=dt.date.fromisoformat(said))
    except ValueError:
        findings.add("W1004", f"'as_of' {said!r} is no day", raw.node.place(), "write for example 2026-01-31")
        return PERIOD_START


AsOf = Annotated[AsOfDay, ReadAs(Text, _as_of)]
"""The day at which a table is read: a word, a date, or a column of the working set."""


def read_identity(entries: Entries, kind: str) -> tuple[str, str]:
    """Return the id and the name of an entity; one of the two may be left out."""
    id, name = entries.text("id"), entries.text("name")
    if not id and not name:
        entries.findings.add(
            "W1014", f"the {kind} has neither 'id' nor 'name'", entries.node.head(), "add `name: ...`"
        )
    return id or build_entity_id(kind, name), name or id


def build_entity_id(kind: str, name: str) -> str:
    """Return the id of an entity that has a name alone; the same name always has the same id.

    >>> build_entity_id("dataset", "gl") == entity_id("dataset", "gl") != entity_id("project", "gl")
    True
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"weft:{kind}/{name}"))


def collect_sites(node: Node) -> SourceMap:
    """Return where each part of a node stands; what stands in no file has no places."""
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
