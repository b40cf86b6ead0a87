"""Sites: where each part of something that came from a file was written."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.frozen import EMPTY, FrozenMap
from weft.core.source import Source


@dataclass(frozen=True, slots=True)
class Sites:
    """Places by path: ``arguments.joins.0.on`` is the `on` of the first join.

    `values` holds the places of what was written, `keys` those of the names in front of it.

    >>> text = "seq: 10"
    >>> sites = Sites(
    ...     Source.whole(text), FrozenMap(seq=Source(text, 5, 7)), FrozenMap(seq=Source(text, 0, 3))
    ... )
    >>> (
    ...     sites.of("seq").column,
    ...     sites.key("seq").column,
    ...     sites.of("seq.deeper").column,
    ...     sites.of("name").column,
    ... )
    (6, 1, 6, 1)
    """

    whole: Source | None = None
    values: FrozenMap[str, Source] = EMPTY
    keys: FrozenMap[str, Source] = EMPTY

    def of(self, path: str) -> Source | None:
        """Return the place of the value at `path`, else of the nearest part around it, else of the whole."""
        return self._nearest(self.values, path)

    def key(self, path: str) -> Source | None:
        """Return the place of the key at `path`, else of the nearest part around it, else of the whole."""
        return self.keys.get(path) or self._nearest(self.values, path)

    def below(self, prefix: str) -> Sites:
        """Return the places of the part at `prefix`, under paths that start there."""
        dotted = f"{prefix}."
        return Sites(
            self.of(prefix),
            FrozenMap({p[len(dotted) :]: s for p, s in self.values.items() if p.startswith(dotted)}),
            FrozenMap({p[len(dotted) :]: s for p, s in self.keys.items() if p.startswith(dotted)}),
        )

    def _nearest(self, places: FrozenMap[str, Source], path: str) -> Source | None:
        while path:
            if (found := places.get(path)) is not None:
                return found
            path = path.rpartition(".")[0]
        return self.whole


NOWHERE = Sites()
"""The places of something that came from no file."""
