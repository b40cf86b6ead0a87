"""The places of the parts of a node, by path."""

from __future__ import annotations

from weft.core.frozen import FrozenMap
from weft.core.sites import Sites
from weft.core.source import Source
from weft.pipelines.model.yaml_nodes import Node, scalar_source


def sites_of(node: Node) -> Sites:
    """Return where each part of a node stands; what stands in no file has no places."""
    if not node.text:
        return Sites()
    values: dict[str, Source] = {}
    keys: dict[str, Source] = {}
    _gather(node, "", values, keys)
    return Sites(node.head(), FrozenMap(values), FrozenMap(keys))


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
