"""YAML of case files: nodes that know where they stand, numbers with a point as floats."""

from __future__ import annotations

from typing import Any

from weft.errors import CaseFileError
from weft.pipelines.model.compose import compose as compose_any
from weft.pipelines.model.yaml_nodes import Exact, Item, Node
from weft.pipelines.model.yaml_nodes import plain as exact

__all__ = ["Item", "Node", "compose", "plain"]


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
