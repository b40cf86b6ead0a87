"""FrozenMap: an immutable mapping, which can be shared, compared and hashed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

K = TypeVar("K")
V_co = TypeVar("V_co", covariant=True)


class FrozenMap(Mapping[K, V_co]):
    """An immutable ordered mapping.

    Two maps are equal when they have the same entries, in any order; equal maps have the same hash.

    >>> a = FrozenMap({"b": 1, "a": 2})
    >>> a, a == {"a": 2, "b": 1}, hash(a) == hash(FrozenMap(a=2, b=1))
    ({'b': 1, 'a': 2}, True, True)
    """

    __slots__ = ("_entries", "_hash")

    def __init__(self, entries: Mapping[K, V_co] | Iterable[tuple[K, V_co]] = (), **named: V_co) -> None:
        self._entries: dict[Any, V_co] = dict(entries, **named)
        self._hash: int | None = None

    def __getitem__(self, key: K) -> V_co:
        return self._entries[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __hash__(self) -> int:
        # On first use: many maps are never hashed, and some hold values that cannot be.
        if self._hash is None:
            self._hash = hash(frozenset(self._entries.items()))
        return self._hash

    def __repr__(self) -> str:
        return repr(self._entries)


EMPTY: FrozenMap[Any, Any] = FrozenMap()
"""The map without entries."""


def freeze(value: Any) -> Any:
    """Return `value` with every mapping in it as a FrozenMap and every list as a tuple.

    >>> freeze({"a": [1, {"b": 2}]})
    {'a': (1, {'b': 2})}
    """
    if isinstance(value, Mapping):
        return FrozenMap({k: freeze(v) for k, v in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(v) for v in value)
    return value


def thaw(value: Any) -> Any:
    """Return `value` with every mapping as a dict and every tuple as a list, as in JSON and YAML.

    >>> thaw(FrozenMap(a=(1, 2)))
    {'a': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {k: thaw(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(v) for v in value]
    return value
