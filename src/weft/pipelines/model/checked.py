"""A file against its shape: every problem, and the part of the file that can still be read.

::

    operations:                               operations:
      - {seq: 10, ..., selecter: x}   ->        - {seq: 10, ...}          an unknown key is passed over
      - {seq: 20, type: update}                                           what lacks a part is left out
      - {seq: 0, name: Drop, ...}               - {seq: 21, name: Drop}   a number or a name is made up
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pydantic import ValidationError

from weft.errors import Diagnostic
from weft.pipelines.model.findings import Path, Problem, problems_of
from weft.pipelines.model.reference import NOT_SAID
from weft.pipelines.model.shapes.base import Shape
from weft.pipelines.model.yaml_nodes import Item, Node, plain

_ROUNDS = 6
_SEQ = re.compile(r"[0-9]{1,18}")
_MADE_UP = ("name", "seq")
"""Keys of an operation whose value does not matter to what the rest of it says."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What is left of a node, None when that is too little, what was found, and what was left out."""

    node: Node | None
    findings: tuple[Diagnostic, ...] = ()
    lost: tuple[Path, ...] = ()


def checked(node: Node, shape: type[Shape]) -> Checked:
    """Return the part of a node that fits the shape, with every finding about the rest."""
    findings: tuple[Diagnostic, ...] = ()
    lost: list[Path] = []
    left: Node | None = node
    for round_number in range(_ROUNDS):
        if left is None:
            break
        try:
            shape.model_validate(plain(left))
        except ValidationError as error:
            problems = problems_of(error, left, shape)
            # What goes missing by leaving parts out is no finding of the file.
            findings = findings if round_number else tuple(p.finding for p in problems)
            left = _pruned(left, problems, lost)
        else:
            return Checked(left, findings, tuple(lost))
    return Checked(None, findings, tuple(lost))


def _pruned(node: Node, problems: tuple[Problem, ...], lost: list[Path]) -> Node | None:
    doomed: set[Path] = set()
    for problem in problems:
        path = problem.path
        if (filled := _with_stand_in(node, path)) is not None:
            node = filled
            continue
        if problem.kind == "missing" or not path or isinstance(path[-1], int):
            path = _part(path)
            if not path or (problem.kind == "missing" and path == problem.path):
                return None
            lost.append(path)
        doomed.add(path)
    return _without(node, (), doomed)


def _with_stand_in(node: Node, path: Path) -> Node | None:
    """Return a project with some input, or an operation with some `name` or `seq`: the rest can be checked.

    The made-up `seq` keeps the operation behind the one listed before it; None when no number is free there.
    """
    if path == ("input_dataset_id",) and node.is_mapping:
        stand_in = replace(node, kind="scalar", value=NOT_SAID, style="text", size=1)
        kept = tuple(item for item in node.pairs() if item.name != path[0])
        return replace(node, value=(*kept, Item("input_dataset_id", stand_in, stand_in)))
    if len(path) != 3 or path[0] != "operations" or path[2] not in _MADE_UP:
        return None
    listed, index, key = node.get("operations"), path[1], str(path[2])
    if listed is None or not isinstance(index, int) or not listed.is_list:
        return None
    operations = list(listed.items())
    said = "unnamed"
    if key == "seq":
        taken = [seq_of(op) for op in operations]
        number = 1 + max((seq for seq in taken[:index] if seq is not None), default=0)
        if number in taken:
            return None
        said = str(number)
    operation = operations[index]
    stand_in = replace(operation, kind="scalar", value=said, style="" if key == "seq" else "text", size=1)
    kept = tuple(item for item in operation.pairs() if item.name != key)
    operations[index] = replace(operation, value=(*kept, Item(key, stand_in, stand_in)))
    whole = replace(listed, value=tuple(operations))
    return replace(
        node, value=tuple(i._replace(value=whole) if i.name == "operations" else i for i in node.pairs())
    )


def seq_of(operation: Node) -> int | None:
    """Return the seq that an operation says, None when that is not a positive whole number."""
    said = operation.get("seq") if operation.is_mapping else None
    if said is None or said.kind != "scalar" or not _SEQ.fullmatch(str(said.value)):
        return None
    return int(said.value) or None


def _part(path: Path) -> Path:
    """Return the outermost entry of a list around a path, else its first key."""
    for i, step in enumerate(path):
        if isinstance(step, int):
            return path[: i + 1]
    return path[:1]


def _without(node: Node, at: Path, doomed: set[Path]) -> Node:
    if node.is_mapping:
        kept = (item for item in node.pairs() if (*at, item.name) not in doomed)
        return replace(
            node,
            value=tuple(i._replace(value=_without(i.value, (*at, i.name), doomed)) for i in kept),
        )
    if node.is_list:
        parts = ((i, part) for i, part in enumerate(node.items()) if (*at, i) not in doomed)
        return replace(node, value=tuple(_without(part, (*at, i), doomed) for i, part in parts))
    return node
