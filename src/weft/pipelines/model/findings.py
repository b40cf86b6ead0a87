"""Errors of pydantic as findings: in plain words, at their location in the file.

::

    pydantic: ('operations', 0, 'update', 'selecter')  extra_forbidden
    ours:     error[W1002]: unknown key 'selecter' in an update
                --> projects/gl.yml:9:5     at the key, with the most similar name
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from weft.core.names import find_similar, format_list
from weft.core.source import Source, is_hidden
from weft.core.spec import Spec
from weft.errors import Code, Diagnostic
from weft.pipelines.model.normalize import REFUSED_KEYS
from weft.pipelines.model.yaml_nodes import Exact, Node, Whole, parse_scalar, to_python

Path = tuple[str | int, ...]
"""Keys and positions from the root of a file to a part of it."""

# What pydantic calls an unknown key, depending on the kind of the schema.
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


@dataclass(frozen=True, slots=True)
class Problem:
    """One part of a file that does not fit its spec."""

    path: Path
    kind: Literal["unknown", "missing", "wrong"]
    finding: Diagnostic


def list_problems(error: ValidationError, root: Node, spec: type[Spec]) -> tuple[Problem, ...]:
    """Return all problems with their paths; errors of several union members about one value are one problem."""
    wrong: dict[Path, list[Any]] = {}
    for details in error.errors(include_url=False):
        # An unknown or missing key is a problem of its own, also where the value around it has another one.
        path = (*_path(details["loc"], root), details["type"] in (*_UNKNOWN, "missing"))
        wrong.setdefault(path, []).append(details)
    problems = [_problem(same_place, root, spec) for same_place in wrong.values()]
    # A problem inside a mapping is enough; that the mapping does not fit other union members adds nothing.
    inner = {p.path[:i] for p in problems for i in range(len(p.path))}
    return tuple(p for p in problems if p.kind != "wrong" or p.path not in inner)


def _path(loc: Iterable[str | int], root: Node) -> Path:
    """Return the steps of a location that exist in the file, without the tags of unions."""
    path: list[str | int] = []
    at: Node | None = root
    steps = tuple(loc)
    for i, step in enumerate(steps):
        if _is_tag(steps, i):
            continue
        inner = step_into(at, step)
        if inner is not None:
            path.append(step)
            at = inner
        elif i == len(steps) - 1 and at is not None and at.is_mapping and isinstance(step, str):
            path.append(step)  # the key that is missing
    return tuple(path)


def _is_tag(steps: tuple[str | int, ...], i: int) -> bool:
    """Whether a step is the tag of a union, which pydantic adds after the location of the union."""
    before = steps[max(0, i - 2) : i]
    return before[-1:] in (("strategy",), ("target",)) or (
        len(before) == 2 and before[0] == "operations" and isinstance(before[1], int)
    )


def step_into(node: Node | None, step: str | int) -> Node | None:
    """Return the child of a node at a key or position, or None."""
    if node is None:
        return None
    if isinstance(step, int):
        return node.value[step] if node.is_list and step < len(node.value) else None
    return node.get(step)


def node_at(root: Node, path: Path) -> Node | None:
    """Return the part of a file at a path, or None."""
    at: Node | None = root
    for step in path:
        at = step_into(at, step)
    return at


def _problem(details: list[Any], root: Node, spec: type[Spec]) -> Problem:
    first = details[0]
    path = _path(first["loc"], root)
    if first["type"] in _UNKNOWN:
        return _unknown(first, path, root, spec)
    if first["type"] == "missing":
        return _missing(first, path, root, spec)
    node = node_at(root, path)
    # A location can end in the tag of a union, which is not a key of the file.
    while node is None:
        path = path[:-1]
        node = node_at(root, path)
    if first["type"] in ("union_tag_invalid", "union_tag_not_found") and node.is_mapping:
        return _tag(first, path, node, spec)
    subject = _subject(path)
    expected = " or ".join(dict.fromkeys(_expected(error) for error in details))
    kind: Code = "W1010" if path[-1:] == ("seq",) and first["type"] == "greater_than" else "W1004"
    message = f"{subject} must be {expected}, not {describe_node(node)}"
    finding = Diagnostic(kind, message, help=_suggest_fix(first, node), at=_at(node))
    return Problem(path, "wrong", finding)


def _at(node: Node) -> Source:
    return node.place() if node.kind == "scalar" else node.head()


def _unknown(details: Any, path: Path, root: Node, spec: type[Spec]) -> Problem:
    name = str(details["loc"][-1])
    holder = node_at(root, path[:-1])
    key = holder.key(name) if holder is not None else None
    noun, allowed = _described_shape(spec, details["loc"][:-1])
    close = find_similar(name, allowed, most=1)
    keys = f"its keys are {format_list(allowed, most=20)}" if allowed else "remove it"
    help = REFUSED_KEYS.get(name) or (f"did you mean {close[0]!r}?" if close else keys)
    at = key.place() if key is not None else None
    return Problem(path, "unknown", Diagnostic("W1002", f"unknown key {name!r} in {noun}", help=help, at=at))


def _missing(details: Any, path: Path, root: Node, spec: type[Spec]) -> Problem:
    name = str(details["loc"][-1])
    holder = node_at(root, path[:-1]) or root
    noun, _ = _described_shape(spec, details["loc"][:-1])
    help = f"add `{name}: ...` here"
    return Problem(path, "missing", Diagnostic("W1003", f"{noun} needs {name!r}", help=help, at=holder.head()))


def _tag(details: Any, path: Path, node: Node, spec: type[Spec]) -> Problem:
    tags = [tag.strip(" '") for tag in str(details["ctx"].get("expected_tags", "")).split(",") if tag.strip()]
    type_node = node.get("type")
    if type_node is None:
        noun, _ = _described_shape(spec, details["loc"])
        words = tags or _tags(spec, details["loc"])
        finding = Diagnostic("W1003", f"{noun} needs 'type'", help=f"write one of {format_list(words)}", at=node.head())
        return Problem((*path, "type"), "missing", finding)
    close = find_similar(str(type_node.value), tags, most=1) if type_node.kind == "scalar" else ()
    help = f"did you mean {close[0]!r}?" if close else f"write for example `type: {tags[0]}`"
    finding = Diagnostic(
        "W1004",
        f"'type' must be one of {format_list(tags)}, not {describe_node(type_node)}",
        help=help,
        at=_at(type_node),
    )
    return Problem((*path, "type"), "wrong", finding)


def _tags(spec: type[Spec], loc: Iterable[str | int]) -> list[str]:
    at = _schema_at(spec, loc)[1]
    return list(at.get("discriminator", {}).get("mapping", {}))


def _subject(path: Path) -> str:
    keys = [step for step in path if isinstance(step, str)]
    if not path:
        return "the file"
    if isinstance(path[-1], int):
        return f"an entry of {keys[-1]!r}" if keys else "an entry"
    return repr(path[-1])


_LINES = "write `name: value` lines below it"
_ENTRIES = "write each entry on its own line, starting with '- '"
_CHANGE = "change the value, or remove the key"
# By the type of an error of pydantic: what is expected, and how to correct the file.
_WORDS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("dataclass_type", "dict_type", "model_type", "model_attributes_type", "union_tag_not_found"),
        ("a mapping", _LINES),
    ),
    **dict.fromkeys(("tuple_type", "list_type"), ("a list", _ENTRIES)),
    "string_type": ("a string", _CHANGE),
    "string_pattern_mismatch": ("a non-blank string", "write a name"),
    "int_type": ("an integer", "write for example 10"),
    "int_from_float": ("an integer", _CHANGE),
    "bool_type": ("true or false", "write true or false"),
    "decimal_type": ("a number", _CHANGE),
    "is_instance_of": ("a number", _CHANGE),
    "greater_than": ("a positive integer", "start at 1"),
    "greater_than_equal": ("zero or more", _CHANGE),
}


def _expected(details: Any) -> str:
    kind = details["type"]
    if kind == "literal_error":
        words = _literals(details)
        return f"one of {', '.join(words)}" if len(words) > 1 else words[0]
    if kind == "too_short":
        return f"a list of at least {details['ctx']['min_length']}"
    if kind == "too_long":
        return f"a list of at most {details['ctx']['max_length']}"
    return _WORDS[kind][0] if kind in _WORDS else str(details["msg"])


def _literals(details: Any) -> list[str]:
    # pydantic passes the allowed words as text only: "'a', 'b' or 'c'".
    return str(details["ctx"]["expected"]).replace(" or ", ", ").split(", ")


def _suggest_fix(details: Any, node: Node) -> str:
    kind = details["type"]
    if kind == "literal_error":
        words = [word.strip("'") for word in _literals(details)]
        close = find_similar(str(node.value), words, most=1) if node.kind == "scalar" else ()
        return f"did you mean {close[0]!r}?" if close else f"write for example {words[0]}"
    if kind == "string_type" and node.kind == "scalar" and node.value:
        return f'put quotes around it: "{node.shown}"'
    # "10" is a string in YAML; without the quotes it would be the number that is expected.
    if kind in ("int_type", "bool_type") and node.style in ("'", '"') and not isinstance(parse_scalar(node.value), str):
        return "write it without quotes"
    if kind == "too_short":
        return "add an entry, or remove the key"
    return _WORDS[kind][1] if kind in _WORDS else _CHANGE


def describe_node(node: Node) -> str:
    """Return a description of the value of a node, for a message.

    >>> from weft.pipelines.model.yaml_nodes import node_from_value
    >>> (
    ...     describe_node(node_from_value("ten")),
    ...     describe_node(node_from_value(10)),
    ...     describe_node(node_from_value(None)),
    ...     describe_node(node_from_value([])),
    ... )
    ("the string 'ten'", 'the integer 10', 'null', 'an empty list')
    """
    if node.kind != "scalar":
        noun = "list" if node.is_list else "mapping"
        return f"a {noun}" if node.value else f"an empty {noun}"
    value = node.shown if is_hidden(node.text, node.start, node.end) else to_python(node)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Whole):
        return f"the integer {value.text}"
    if isinstance(value, Exact):
        return f"the number {value.text}"
    short = value if len(value) <= 60 else value[:57] + "..."
    return f"the string {short!r}"


_NOUNS: Mapping[str, str] = {
    "UpdateOperation": "an update", "AggregateOperation": "an aggregate", "AppendOperation": "an append",
    "DeleteOperation": "a delete", "OutputOperation": "an output", "Update": "an update",
    "Aggregate": "an aggregate", "Append": "an append", "Delete": "a delete",
    "Output": "an output", "RuntimeJoin": "a join", "Assignment": "an assignment",
    "Aggregation": "an aggregation",
    "Grouping": "'aggregation'", "DatasetReference": "a source", "Destination": "a destination",
    "Dataset": "a dataset", "TableDef": "a table", "TableTarget": "a table", "DatasetTarget": "a dataset target",
    "ColumnDef": "a column", "LookupDef": "a lookup", "Condition": "a join condition", "Project": "a project",
    "Resolver": "a resolver", "Rule": "a rule", "PathStrategy": "a path strategy",
    "TableStrategy": "a table strategy", "CatalogStrategy": "a catalog strategy", "WrittenCalendar": "a calendar",
    "WrittenLevel": "a level", "WrittenCalendarPeriod": "a period", "DataSource": "a datasource",
    "Settings": "weft.yml", "SparkSettings": "'spark'", "Sandbox": "'sandbox'",
    "Scenario": "a scenario", "Expect": "'expect'", "Rows": "a table of rows",
    "TraceExpected": "a trace entry", "WrittenPeriod": "a period",
}  # fmt: skip


def _described_shape(spec: type[Spec], loc: Iterable[str | int]) -> tuple[str, tuple[str, ...]]:
    """Return the noun for the mapping at a location, and the keys it can have."""
    name, schema = _schema_at(spec, loc)
    nouns = {"operations": "an operation", "strategy": "a strategy", "target": "a lookup target"}
    noun = _NOUNS.get(name) or next((nouns[s] for s in reversed(tuple(loc)) if s in nouns), "the mapping")
    return noun, tuple(schema.get("properties", ()))


def _schema_at(spec: type[Spec], loc: Iterable[str | int]) -> tuple[str, Mapping[str, Any]]:
    root = _cached_schema(spec)
    name: str = spec.__name__
    at: Mapping[str, Any] = root
    for step in loc:
        name, at = _inner(root, name, at, step)
    return name, at


def _inner(root: Mapping[str, Any], name: str, at: Mapping[str, Any], step: str | int) -> tuple[str, Mapping[str, Any]]:
    mapping = at.get("discriminator", {}).get("mapping", {})
    if step in mapping:
        return _followed(root, name, {"$ref": mapping[step]})
    if isinstance(step, int) and "items" in at:
        return _followed(root, name, at["items"])
    if step in at.get("properties", ()):
        return _followed(root, "", at["properties"][step])
    if isinstance(at.get("additionalProperties"), dict):
        return _followed(root, "", at["additionalProperties"])
    return name, at


def _followed(root: Mapping[str, Any], name: str, at: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Follow the reference of a schema and drop the null of an optional key."""
    while "$ref" in at or "anyOf" in at:
        if "$ref" in at:
            name = str(at["$ref"]).rpartition("/")[2]
            at = root["$defs"][name]
            break
        variants = [v for v in at["anyOf"] if v.get("type") != "null"]
        if len(variants) != 1:
            break
        at = variants[0]
    return name, at


class _Schemas(GenerateJsonSchema):
    """JSON Schemas of specs: a key with a default can be null, and short forms of keys are included."""

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        inner = schema["schema"]
        nullable = inner if inner["type"] == "nullable" else {"type": "nullable", "schema": inner}
        return self.generate_inner(nullable) | {"default": None}

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        form = super().dataclass_schema(schema)
        # Only the first line of a docstring is meant for users.
        form["description"] = str(schema["cls"].__doc__).partition("\n")[0]
        for name, short in schema["cls"].SHORT:
            form["properties"][short] = dict(_REFERENCE)
            if name in form.get("required", ()):
                form["required"] = [other for other in form["required"] if other != name]
                form.setdefault("allOf", []).append({"anyOf": [{"required": [name]}, {"required": [short]}]})
        return form


_REFERENCE: Mapping[str, str] = {"type": "string", "description": "name or id; name@3 pins version 3", "pattern": r"\S"}


# `cache` takes no argument that mypy sees as a class of Spec, so both functions are declared with Any.
get_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
"""Return the pydantic adapter of a spec."""


def build_schema(spec: type[Spec]) -> dict[str, Any]:
    """Return the JSON Schema of a spec."""
    return get_adapter(spec).json_schema(schema_generator=_Schemas)


# Only for reading: callers of `build_schema` change the schema they get.
_cached_schema: Callable[[Any], dict[str, Any]] = cache(build_schema)
