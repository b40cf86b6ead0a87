"""Old ways to say a join, each answered with the exact call that replaces it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.names import canonical
from weft.errors import ArgumentError
from weft.joins.relation.frame import Frame
from weft.joins.relation.notices import notice
from weft.joins.spec.join import JoinSpec, key_pairs
from weft.joins.spec.predicates import JoinPredicate

REMOVED_IN = "0.3"


def warn_deprecated(old: str, new: str) -> None:
    """Warn that `old` goes away and name the call to write instead."""
    notice(f"{old} is deprecated and will be removed in weft {REMOVED_IN}: call {new}", DeprecationWarning)


def pairs_of(on: Any) -> tuple[tuple[str, str], ...]:
    """Return the key pairs that an ``on=`` argument says: a name, names, pairs or a mapping."""
    if isinstance(on, str):
        on = [on]
    if isinstance(on, Mapping):
        on = list(on.items())
    if not isinstance(on, Sequence):
        raise ArgumentError(
            f"on must be a name, names, pairs or a mapping, not {type(on).__name__}",
            help="write JoinSpec(equal_keys=[('left_column', 'right_column')]) and leave on= out",
        )
    return key_pairs([(k, k) if isinstance(k, str) else k for k in on])


def spec_call(pairs: Sequence[tuple[str, str]], predicates: Sequence[JoinPredicate] = ()) -> str:
    """Return the expression that builds the spec, for a message."""
    told = [*map(repr, pairs)]
    if predicates:
        told.append(f"predicates=[{', '.join(map(repr, predicates))}]")
    return f"JoinSpec.from_tuples({', '.join(told)})"


def deprecated_on(left: Frame, right: Frame, method: str, spec: object, on: Any) -> JoinSpec:
    """Return the spec for ``method(other, on=...)`` and warn."""
    if spec is not None:
        raise ArgumentError(
            f"{method} takes a JoinSpec or on=, not both",
            code="W0305",
            help="leave on= out: it is deprecated",
        )
    shared = [canonical(n) for n in left.columns if n in right.schema]
    pairs = pairs_of(shared if on is None else on)
    warn_deprecated(f"{method}(other, on=...)", f"{method}(other, {spec_call(pairs)})")
    return JoinSpec(pairs)
