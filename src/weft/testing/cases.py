"""Case files: one expected table for every engine, many cases in one file.

A case file is a YAML list.  A table that two cases share is written once, with an anchor::

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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from weft.core.names import format_list, suggest
from weft.core.source import Source
from weft.errors import CODES, CaseFileError, Code, Diagnostic, WeftError
from weft.pipelines.model.compose import compose as compose_any
from weft.pipelines.model.yaml_nodes import Exact, Item, Node
from weft.pipelines.model.yaml_nodes import to_python as exact
from weft.testing.tables import T, Table

_C = TypeVar("_C")
_TYPES = ("join", "natural", "asof", "interval", "window")
_USUAL_HOW = {"join": "inner", "natural": "inner", "asof": "left", "interval": "inner", "window": "inner"}


class SpecParts(NamedTuple):
    """A spec, the kind of join, and the projection."""

    spec: dict[str, Any]
    how: str
    project: dict[str, Any] | None


def expand_spec(short: object) -> SpecParts:
    """Expand the short form of a spec.

    ``keys`` holds names and pairs of names; ``order`` is a pair; a predicate is a fragment,
    a list ``[left, operator, right]`` or a mapping; ``how`` and ``project`` are keys of the mapping.

    >>> expand_spec({"type": "asof", "keys": ["sym"], "order": ["ts", "qts"]}).spec
    {'type': 'asof', 'equal_keys': [['sym', 'sym']], 'order': {'type': 'order', 'left': 'ts', 'right': 'qts'}}
    """
    if not isinstance(short, Mapping) or short.get("type") not in _TYPES:
        raise CaseFileError(
            f"'spec' must be a mapping with a type of {format_list(_TYPES)}", help="spec: {type: join, ...}"
        )
    if "keys" in short and "equal_keys" in short:
        raise CaseFileError("the spec has both 'keys' and 'equal_keys'", help="remove one of them")
    rest = dict(short)
    kind = rest.pop("type")
    how, project = rest.pop("how", _USUAL_HOW[kind]), rest.pop("project", None)
    if not isinstance(how, str):
        raise CaseFileError(f"how must be a string, not {how!r}", help="write for example how: left")
    spec: dict[str, Any] = {"type": kind}
    for name, value in rest.items():
        long_name, expand = _FIELDS.get(name, (name, None))
        spec[long_name] = value if expand is None else expand(value)
    if kind == "join":
        spec.setdefault("equal_keys", [])
    elif "how" in short:
        spec["how"] = how
    return SpecParts(spec, how, None if project is None else _typed(project, "projection"))


def _typed(value: Any, kind: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise CaseFileError(f"{value!r} is not a valid {kind}", help="write it as a mapping")
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
        raise CaseFileError(f"predicates must be a list, not {value!r}", help="write each predicate after a dash")
    return [_predicate(item) for item in value]


def _predicate(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": "expression", "expression": value}
    if isinstance(value, list) and len(value) in (3, 4):
        return {"type": "column", **dict(zip(("left", "operator", "right", "offset"), value, strict=False))}
    if isinstance(value, Mapping):
        return _typed(value, "expression" if "expression" in value else "column")
    raise CaseFileError(f"{value!r} is not a predicate", help="write 'right.a > 1', [left, '>=', right] or a mapping")


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
    if isinstance(value, Exact):  # workspace files keep numbers exact; a case file is plain YAML
        return float(value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


_REQUIRED = ("id", "why", "spec", "left", "right")
_KEYS = (*_REQUIRED, "expect", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One join, its two inputs, and the expected table or error of every engine.

    `spec` is the input of ``weft.joins.spec.from_dict``, `project` that of a projection; `how` is the kind of join.
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
    """Read the case file at `path`; raise `CaseFileError` with every finding, each with its line.

    ``cases = load_cases("tests/cases/orders.yml")``

    Parameters
    ----------
    path
        A YAML file.  Required.
    """
    return read_cases(read_case_text(path), file=str(path))


def read_cases(text: str, *, file: str | None = None) -> tuple[Case, ...]:
    """Read cases from the text of a case file.

    ``cases = read_cases(Path("orders.yml").read_text(), file="orders.yml")``

    Parameters
    ----------
    text
        The text of the file.  Required.
    file
        Its name, for the locations of findings.  None by default.
    """
    reader = _Reader()
    return reader.read(text, file, reader.case)


def read_case_text(path: str | Path) -> str:
    """Return the text of the case file at `path`."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise CaseFileError(
            f"cannot read case file {str(path)!r}: {cause}", help="check the path and the permissions of the file"
        ) from cause


class CaseReader:
    """Reads a case file and collects findings; shared by join and stream cases."""

    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []

    def read(self, text: str, file: str | None, read_case: Callable[[Node], _C | None]) -> tuple[_C, ...]:
        """Return the cases of a file, or raise with every finding."""
        root = compose(text, file)
        if not root.is_list or not root.value:
            raise CaseFileError(
                "a case file must be a list of cases", help="write '- id: ...' for each case", at=root.place()
            )
        # All cases are read before any error is raised, so that all errors of a file are shown.
        cases = [case for node in root.items() if (case := read_case(node)) is not None]
        self.check_ids(cases)
        if self.findings:
            raise CaseFileError(self.findings)
        return tuple(cases)

    def add(self, message: str, at: Source, help: str = "") -> None:
        """Add a finding."""
        self.findings.append(Diagnostic("W0901", message, help=help, at=at))

    def check_ids(self, cases: Iterable[Any]) -> None:
        """Check that every id is unique."""
        lines: dict[str, int] = {}
        for case in cases:
            if case.id in lines:
                self.add(f"duplicate id {case.id!r}", case.source, f"the case in line {lines[case.id]} has it")
            lines.setdefault(case.id, case.source.line)

    def items(self, node: Node, known: tuple[str, ...], what: str) -> dict[str, Item]:
        """Return the entries of a mapping by key; without `known` any key is valid."""
        if not node.is_mapping:
            keys = f"{what} has {format_list(known)}" if known else ""
            self.add(f"{what} must be a mapping", node.place(), keys)
            return {}
        items: dict[str, Item] = {}
        for item in node.pairs():
            if known and item.name not in known:
                help = suggest(item.name, known, f"{what} has", most=1)
                self.add(f"unknown key {item.name!r} in {what}", item.key.place(), help)
            else:
                items[item.name] = item
        return items

    def case_items(self, node: Node, required: tuple[str, ...], known: tuple[str, ...]) -> dict[str, Item]:
        """Return the entries of a case; it must have the required keys, and either 'expect' or 'error'."""
        items = self.items(node, known, "a case")
        if node.is_mapping:
            for key in required:
                if key not in items:
                    self.add(f"the case has no {key!r}", node.head(), f"a case has {format_list(known)}")
            if ("expect" in items) == ("error" in items):
                self.add("a case has either 'expect' or 'error'", node.head())
        return items

    def text(self, item: Item) -> str:
        """Return a string that is not blank."""
        value = plain(item.value)
        if not isinstance(value, str) or not value.strip():
            self.add(f"{item.name!r} must be a string", item.value.place())
            return ""
        return value.strip()

    def line(self, item: Item) -> str:
        """Return a string as one line."""
        return " ".join(self.text(item).split())

    def code(self, text: str, at: Source) -> Code | None:
        """Return an error code, or None after adding a finding."""
        if text in CODES:
            return text  # type: ignore[return-value]  # checked on the line above
        self.add(f"unknown code {text!r}", at, suggest(text, CODES, "codes are", most=1))
        return None

    def table(self, item: Item) -> Table:
        """Return a table; an empty one after adding a finding."""
        text = plain(item.value)
        if isinstance(text, str):
            try:
                return T(text, source=item.value.block() or Source.whole(text, item.value.file))
            except CaseFileError as cause:
                self.findings.extend(cause.diagnostics)
        else:
            help = f"write {item.name}: | and the table below"
            self.add(f"{item.name!r} must be a table", item.value.place(), help)
        return T("nothing")


class _Reader(CaseReader):
    """Reads cases of joins."""

    def case(self, node: Node) -> Case | None:
        before = len(self.findings)
        items = self.case_items(node, _REQUIRED, _KEYS)
        texts = {key: self.line(items[key]) for key in ("id", "why") if key in items}
        tables = {key: self.table(items[key]) for key in ("left", "right", "expect") if key in items}
        parts = self.spec(items["spec"]) if "spec" in items else None
        error = self.code(self.line(items["error"]), items["error"].value.place()) if "error" in items else None
        if len(self.findings) > before or parts is None:
            return None
        return Case(
            **texts,
            spec=parts.spec,
            how=parts.how,
            project=parts.project,
            left=tables["left"],
            right=tables["right"],
            expect=tables.get("expect"),
            error=error,
            source=items["id"].value.place(),
        )

    def spec(self, item: Item) -> SpecParts | None:
        try:
            return expand_spec(plain(item.value))
        except WeftError as cause:
            self.add(cause.message, item.value.place(), cause.help)
            return None
