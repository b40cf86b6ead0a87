"""Random joins meet what joins can meet, for each kind of join and each way to write it."""

from __future__ import annotations

from collections import Counter

import pytest

from random_plans import DATASETS, HOWS, LEAST, MULTIPLY, PACKS, STYLES, TRAITS, covering, traits


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("how", HOWS)
def test_every_kind_of_join_meets_every_trait(how: str, style: str) -> None:
    chosen = covering(how, style)
    met = Counter(trait for plan in chosen for trait in traits(plan))
    assert len(chosen) == PACKS * MULTIPLY
    assert {plan.pack.datasets for plan in chosen} == {DATASETS}
    assert {trait: met[trait] for trait in TRAITS[style] if met[trait] < LEAST} == {}


@pytest.mark.parametrize("how", HOWS)
def test_natural_joins_meet_other_packs_than_directed_ones(how: str) -> None:
    seeds = [{plan.pack.seed for plan in covering(how, style)} for style in STYLES]
    assert not seeds[0] & seeds[1]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("how", HOWS)
def test_few_packs_still_meet_every_trait_once(how: str, style: str) -> None:
    met = {t for plan in covering(how, style, 6, least=1, start=1000) for t in traits(plan)}
    assert met >= set(TRAITS[style])
