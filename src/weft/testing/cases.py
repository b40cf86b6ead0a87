"""Case files: one expected table for every engine, many cases in one file.

A case file is a YAML list.  A table that two cases share is written once and named with an anchor::

    - id: ASOF-BWD-003
      why: 10:00:05 takes the quote of the same instant; GOOG has none
      spec: {type: asof, keys: [sym], order: [ts, qts], how: left}
      left: &trades |
        sym  | ts       | qty
        AAPL | 10:00:05 | 100
        GOOG | 09:59:59 | 30
      right: |
        sym  | qts      | px
        AAPL | 10:00:05 | 2.0
      expect: |
        sym  | ts       | qty | qts      | px
        AAPL | 10:00:05 | 100 | 10:00:05 | 2.0
        GOOG | 09:59:59 | 30  |          |

Instead of ``expect`` a case may have ``error: W0103``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from weft.core.names import format_list, suggest
from weft.core.source import Source
from weft.errors import CODES, CaseFileError, Code, Diagnostic, WeftError
from weft.pipelines.model.compose import compose as compose_any
from weft.pipelines.model.yaml_nodes import Exact, Item, Node
from weft.pipelines.model.yaml_nodes import to_python as exact
from weft.testing.tables import T, Table

_TYPES = ("join", "natural", "asof", "interval", "window")
_USUAL_HOW = {"join": "inner", "natural": "inner", "asof": "left", "interval": "inner", "window": "inner"}


class SpecParts(NamedTuple):
    """A spec, the kind of join, and the projection."""

    spec: dict[str, Any]
    how: str
    project: dict[str, Any] | None


def long_form(said: object) -> SpecParts:
    """Return the parts of a spec that was written in short.

    ``keys`` holds names and pairs of names; ``order`` is a pair; a predicate is a fragment,
    a list ``[left, operator, right]`` or a mapping; ``how`` and ``project`` stand with the rest.

    >>> long_form({"type": "asof", "keys": ["sym"], "order": ["ts", "qts"]}).spec
    {'type': 'asof', 'equal_keys': [['sym', 'sym']], 'order': {'type': 'order', 'left': 'ts', 'right': 'qts'}}
    """
    if not isinstance(said, Mapping) or said.get("type") not in _TYPES:
        raise CaseFileError(
            f"'spec' must be a mapping with a type of {format_list(_TYPES)}", help="spec: {type: join, ...}"
        )
    if "keys" in said and "equal_keys" in said:
        raise CaseFileError("the spec has both 'keys' and 'equal_keys'", help="leave one of them out")
    rest = dict(said)
    kind = rest.pop("type")
    how, project = rest.pop("how", _USUAL_HOW[kind]), rest.pop("project", None)
    if not isinstance(how, str):
        raise CaseFileError(f"how must be a text, not {how!r}", help="write for example how: left")
    spec: dict[str, Any] = {"type": kind}
    for name, value in rest.items():
        long_name, turn = _FIELDS.get(name, (name, _as_it_is))
        spec[long_name] = turn(value)
    if kind == "join":
        spec.setdefault("equal_keys", [])
    elif "how" in said:
        spec["how"] = how
    return SpecParts(spec, how, None if project is None else _typed(project, "projection"))


def _as_it_is(value: Any) -> Any:
    return value


def _typed(value: Any, kind: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise CaseFileError(
            f"{value!r} must be a mapping that says the {kind}", help="write it as names and values"
        )
    return {"type": kind, **value}


def _keys(value: Any) -> list[list[Any]]:
    if not isinstance(value, list):
        raise CaseFileError(f"keys must be a list, not {value!r}", help="write keys: [sym, [order_id, id]]")
    return [_key(key) for key in value]


def _key(value: Any) -> list[Any]:
    if not isinstance(value, str | list):
        raise CaseFileError(f"{value!r} is not a key", help="write a name or a pair of names")
    return [value, value] if isinstance(value, str) else value


def _order(value: Any) -> dict[str, Any]:
    if isinstance(value, list) and len(value) == 2:
        return {"type": "order", "left": value[0], "right": value[1]}
    return _typed(value, "order")


def _predicates(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise CaseFileError(
            f"predicates must be a list, not {value!r}", help="write each predicate after a dash"
        )
    return [_predicate(item) for item in value]


def _predicate(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": "expression", "expression": value}
    if isinstance(value, list) and len(value) in (3, 4):
        return {"type": "column", **dict(zip(("left", "operator", "right", "offset"), value, strict=False))}
    if isinstance(value, Mapping):
        return _typed(value, "expression" if "expression" in value else "column")
    raise CaseFileError(
        f"{value!r} is not a predicate", help="write 'right.a > 1', [left, '>=', right] or a mapping"
    )


_FIELDS: dict[str, Any] = {
    "keys": ("equal_keys", _keys),
    "equal_keys": ("equal_keys", _keys),
    "order": ("order", _order),
    "predicates": ("predicates", _predicates),
    "range_predicates": ("range_predicates", _predicates),
}


def compose(text: str, file: str | None = None) -> Node:
    """Return the root of the one document in `text`."""
    return compose_any(text, file, CaseFileError)


def plain(node: Node) -> Any:
    """Return the value of a node: dict, list, str, int, float, bool or None."""
    return _with_floats(exact(node))


def _with_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_floats(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_floats(inner) for inner in value]
    if isinstance(value, Exact):
        return float(value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


_NEEDED = ("id", "why", "spec", "left", "right")
_KEYS = (*_NEEDED, "expect", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One join, its two inputs, and the table or the error that every engine must give.

    `spec` is the form that ``weft.joins.spec.from_dict`` reads, `project` the one of a projection;
    `how` is the kind of join, said by the spec where it has that field.
    """

    id: str
    why: str
    spec: Mapping[str, Any]
    how: str
    project: Mapping[str, Any] | None
    left: Table
    right: Table
    expect: Table | None = None
    error: Code | None = None
    source: Source = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.id}: {self.why}"


def load_cases(path: str | Path) -> tuple[Case, ...]:
    """Read the case file at `path`; raise `CaseFileError` with every finding, each with its line."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise CaseFileError(
            f"case file {str(path)!r} cannot be read: {cause}",
            help="check the path and the rights of the file",
        ) from cause
    return read_cases(text, file=str(path))


def read_cases(text: str, *, file: str | None = None) -> tuple[Case, ...]:
    """Read cases from the text of a case file."""
    root = compose(text, file)
    if not root.is_list or not root.value:
        raise CaseFileError(
            "a case file is a list of cases", help="write '- id: ...' for each case", at=root.place()
        )
    reader = _Reader()
    found = [reader.case(node) for node in root.items()]
    cases = [case for case in found if case is not None]
    reader.check_ids(cases)
    if reader.findings:
        raise CaseFileError(reader.findings)
    return tuple(cases)


class _Reader:
    """Reads cases and keeps what is wrong with them."""

    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []

    def find(self, message: str, at: Source, help: str = "") -> None:
        self.findings.append(Diagnostic("W0901", message, help=help, at=at))

    def check_ids(self, cases: Iterable[Case]) -> None:
        seen: dict[str, Case] = {}
        for case in cases:
            if case.id in seen:
                first = seen[case.id].source.line
                self.find(f"the id {case.id!r} is taken", case.source, f"the case in line {first} has it")
            seen.setdefault(case.id, case)

    def case(self, node: Node) -> Case | None:
        before = len(self.findings)
        items = dict(self.items(node))
        for key in _NEEDED:
            if key not in items and node.is_mapping:
                self.find(f"the case has no {key!r}", node.head(), f"a case has {format_list(_KEYS)}")
        if node.is_mapping and ("expect" in items) == ("error" in items):
            self.find("a case has either 'expect' or 'error'", node.head())
        texts = {key: self.text(items[key]) for key in ("id", "why", "error") if key in items}
        tables = {key: self.table(items[key]) for key in ("left", "right", "expect") if key in items}
        parts = self.spec(items["spec"]) if "spec" in items else None
        if "error" in texts and texts["error"] not in CODES:
            help = suggest(texts["error"], CODES, "codes are", most=1)
            self.find(f"there is no code {texts['error']!r}", items["error"].value.place(), help)
        left, right = tables.get("left"), tables.get("right")
        if len(self.findings) > before or parts is None or left is None or right is None:
            return None
        error: Any = texts.get("error")
        return Case(
            id=texts["id"],
            why=texts["why"],
            spec=parts.spec,
            how=parts.how,
            project=parts.project,
            left=left,
            right=right,
            expect=tables.get("expect"),
            error=error,
            source=items["id"].value.place(),
        )

    def items(self, node: Node) -> Iterator[tuple[str, Item]]:
        if not node.is_mapping:
            self.find("a case is a mapping", node.place(), f"a case has {format_list(_KEYS)}")
            return
        for item in node.pairs():
            if item.name not in _KEYS:
                help = suggest(item.name, _KEYS, "a case has", most=1)
                self.find(f"a case has no {item.name!r}", item.key.place(), help)
            yield item.name, item

    def text(self, item: Item) -> str:
        value = plain(item.value)
        if not isinstance(value, str) or not value.strip():
            self.find(f"{item.name!r} must be a text", item.value.place())
            return ""
        return " ".join(value.split())

    def table(self, item: Item) -> Table | None:
        text = plain(item.value)
        if not isinstance(text, str):
            self.find(
                f"{item.name!r} must be a table",
                item.value.place(),
                f"write {item.name}: | and the table below",
            )
            return None
        try:
            return T(text, source=item.value.block() or Source.whole(text, item.value.file))
        except CaseFileError as cause:
            self.findings.extend(cause.diagnostics)
            return None

    def spec(self, item: Item) -> SpecParts | None:
        try:
            return long_form(plain(item.value))
        except WeftError as cause:
            self.find(cause.message, item.value.place(), cause.help)
            return None
