"""Random plain joins as plans: what the reference reads, and the call that runs it on relations.

A test of one kind of join must meet every trait that joins have: a relation joined with itself, NULL
keys that are equal, no key to four keys, predicates of both sorts, dotted and quoted names.  Seeds are
therefore chosen by trait first and then one after another, see `covering`.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from strategies import CASE, RandomJoin, seeded_join
from weft.core.names import canonical_name
from weft.core.types import common_type
from weft.errors import JoinKeyWarning, WeftError
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import infer_natural_keys
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec import ColumnPredicate, ExpressionPredicate, JoinProjection, JoinSpec, from_dict

if TYPE_CHECKING:
    from weft.joins.relation import Relation

DIRECTED = {
    "inner": "inner_join",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "semi": "semi_join",
    "anti": "anti_join",
}
HOWS = ("inner", "left", "right", "full", "semi", "anti")
MULTIPLY = int(os.environ.get("WEFT_EXAMPLES", "1"))


@dataclass(frozen=True)
class Plan:
    """A pack as one join: what the reference reads, and the call that runs it on relations."""

    pack: RandomJoin
    join: ResolvedJoin
    call: Callable[[Relation, Relation], Relation]


def projection(pack: RandomJoin, how: str) -> JoinProjection:
    given = dict(pack.project)
    if how in ("semi", "anti"):
        given.pop("indicator", None)
    return JoinProjection.from_dict(given)


def directed(pack: RandomJoin, how: Any) -> Plan:
    spec: JoinSpec = from_dict(pack.spec)
    if len(spec.equal_keys) == 1 and (pack.seed or 0) % 2:
        # Without another key the number may as well be a predicate: a join that has no key at all.
        same = ColumnPredicate(CASE, "=", CASE)
        spec = replace(spec, equal_keys=(), predicates=(same, *spec.predicates))
    project = projection(pack, how)
    join = resolve_join(spec, pack.left.schema, pack.right.schema, how=how, project=project)
    return Plan(pack, join, lambda left, right: getattr(left, DIRECTED[how])(right, spec, project=project))


def natural(pack: RandomJoin, how: Any) -> Plan:
    """Join on the names that both sides share and on the pairs of the spec, some shared ones left out."""
    rng = random.Random(f"{pack.seed}/natural")  # no secret
    left, right, spec = pack.left.schema, pack.right.schema, from_dict(pack.spec)
    pairs = [(a, b) for a, b in spec.equal_keys if a != b]
    shared = [f for f in left if f.name in right and f.name != CASE]
    excluded = [
        canonical_name(f.name)
        for f in shared
        if common_type(f.dtype, right[f.name].dtype) is None or rng.random() < 0.6
    ]
    found = infer_natural_keys(left, right, keys=tuple(pairs), exclude_shared=excluded)
    given = JoinSpec(found.pairs, spec.predicates, nulls_equal=spec.nulls_equal)
    project = projection(pack, how)
    join = resolve_join(given, left, right, how=how, project=project, inference=found)

    def call(one: Relation, other: Relation) -> Relation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JoinKeyWarning)  # shared keys of fractions are wanted here
            result: Relation = getattr(one, f"natural_{how}")(
                other,
                keys=pairs,
                exclude_shared=excluded,
                predicates=spec.predicates,
                nulls_equal=spec.nulls_equal,
                project=project,
            )
        return result

    return Plan(pack, join, call)


STYLES: dict[str, Callable[[RandomJoin, Any], Plan]] = {"directed": directed, "natural": natural}
_ALWAYS = (
    "self-join", "nulls equal", *(f"{n} keys" for n in range(5)), "column predicate", "expression predicate",
    "dotted key", "quoted key",
)  # fmt: skip
TRAITS = {"directed": (*_ALWAYS, "no equality at all"), "natural": _ALWAYS}
PACKS, DATASETS = 26, 20
LEAST = 2
"""How many of the packs of one kind of join have a trait at least."""


def traits(plan: Plan) -> set[str]:
    """Return what a plan meets, by the words of `TRAITS`; the number of the data set is not a key."""
    keys = [k for k in plan.join.keys if k.left]
    names = [plan.join.left.fields[k.left].name for k in keys] + [plan.join.right.fields[k.right].name for k in keys]
    given = from_dict(plan.pack.spec).predicates
    met = {f"{len(keys)} keys"}
    met |= set() if plan.join.keys else {"no equality at all"}
    met |= {"self-join"} if plan.pack.self_join else set()
    met |= {"nulls equal"} if plan.join.nulls_equal and keys else set()
    met |= {"column predicate"} if any(isinstance(p, ColumnPredicate) for p in given) else set()
    met |= {"expression predicate"} if any(isinstance(p, ExpressionPredicate) for p in given) else set()
    met |= {"dotted key"} if any("." in n for n in names) else set()
    met |= {"quoted key"} if any("`" in n or " " in n for n in names) else set()
    return met


def resolving(make: Callable[[RandomJoin], Plan], datasets: int, start: int) -> Iterator[Plan]:
    """Yield plans seed by seed; a pack whose names cannot be settled is passed over."""
    seed = start
    while True:
        try:
            yield make(seeded_join(seed, "join", datasets))
        except WeftError as error:
            assert error.code in ("W0103", "W0307"), f"seed {seed}: {error}"
        seed += 1


def plans(make: Callable[[RandomJoin], Plan], count: int, datasets: int, start: int) -> list[Plan]:
    """Return the first `count` plans that resolve."""
    found = resolving(make, datasets, start)
    return [next(found) for _ in range(count * MULTIPLY)]


def covering(how: Any, style: str, count: int = PACKS, *, least: int = LEAST, start: int = 0) -> list[Plan]:
    """Return `count` plans of one kind of join in which every trait is met `least` times.

    Natural joins start at other seeds than directed ones, so that the two meet different packs.
    """
    first = start + 10_000 * HOWS.index(how) + (5_000 if style == "natural" else 0)
    found = resolving(lambda pack: STYLES[style](pack, how), DATASETS, first)
    chosen: list[Plan] = []
    needed = Counter(dict.fromkeys(TRAITS[style], least))
    while len(chosen) < count * MULTIPLY:
        plan, places = next(found), count * MULTIPLY - len(chosen)
        left = needed - Counter(traits(plan))
        # A plan is taken when it does its share of what is missing, and number of keys by number of
        # keys, of which a plan has one, can still be met by those that follow.
        does_its_share = (needed.total() - left.total()) * places >= needed.total()
        if does_its_share and sum(n for t, n in left.items() if t.endswith(" keys")) < places:
            chosen.append(plan)
            needed = left
    return chosen
