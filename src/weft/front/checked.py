"""A file against its shape: every problem, and the part of the file that can still be read.

::

    operations:                               operations:
      - {seq: 10, ..., selecter: x}   ->        - {seq: 10, ...}       an unknown key is passed over
      - {seq: 20, type: update}                                        what lacks a part is left out
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import ValidationError

from weft.errors import Diagnostic
from weft.front.findings import Path, Problem, problems_of
from weft.front.shapes.base import Shape
from weft.front.yaml_nodes import Node, plain

_ROUNDS = 6


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
        if problem.kind == "missing" or not path or isinstance(path[-1], int):
            path = _part(path)
            if not path or (problem.kind == "missing" and path == problem.path):
                return None
            lost.append(path)
        doomed.add(path)
    return _without(node, (), doomed)


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
