"""Which resolver answers: override, dataset, default; never another one than was named."""

from __future__ import annotations

import pytest

from resolvers import catalog, dataset, project, resolver
from weft.errors import ResolutionError
from weft.pipelines.plan.resolver.locate import choose_resolver

MAIN, TEST, LAKE = (resolver(id=id) for id in ("main", "test", "lake"))
OFF = resolver(id="off", status="disabled")


def test_the_override_of_the_project_goes_first() -> None:
    found = choose_resolver(
        dataset(resolver_id="lake"),
        project(**{"ds-sales": "test"}),
        catalog(MAIN, TEST, LAKE, default="main"),
    )
    assert (found.id, found.source) == ("test", "project_override")


def test_an_override_names_the_dataset_by_name_too_and_the_id_goes_before_it() -> None:
    known = catalog(MAIN, TEST, LAKE)
    assert choose_resolver(dataset(), project(sales="test"), known).id == "test"
    assert choose_resolver(dataset(), project(**{"sales": "test", "ds-sales": "lake"}), known).id == "lake"


def test_the_resolver_of_the_dataset_goes_before_the_default() -> None:
    found = choose_resolver(dataset(resolver_id="lake"), project(), catalog(MAIN, LAKE, default="main"))
    assert (found.id, found.source) == ("lake", "dataset_resolver")


def test_an_override_of_another_dataset_says_nothing() -> None:
    found = choose_resolver(dataset(resolver_id="lake"), project(other="main"), catalog(MAIN, LAKE))
    assert found.id == "lake"


def test_the_default_of_the_workspace_goes_before_one_that_calls_itself_so() -> None:
    own = resolver(id="own", is_default=True)
    assert choose_resolver(dataset(), None, catalog(MAIN, own, default="main")).id == "main"
    found = choose_resolver(dataset(), None, catalog(MAIN, own))
    assert (found.id, found.source) == ("own", "system_default")


def test_the_version_of_the_resolver_is_reported() -> None:
    newer = resolver(id="main", version=4)
    assert choose_resolver(dataset(), None, catalog(MAIN, newer, default="main")).version == 4


def test_a_registered_dataset_is_read_where_runs_published_it() -> None:
    registered = dataset(origin="registered")
    found = choose_resolver(registered, project(), catalog(MAIN, default="main"))
    assert (found.resolver, found.id, found.version, found.source) == (
        None,
        "weft:published",
        1,
        "dataset_resolver",
    )
    assert choose_resolver(registered, project(sales="main"), catalog(MAIN)).id == "main"


@pytest.mark.parametrize(
    ("name", "code", "help"),
    [
        ("tset", "W1301", "did you mean 'test'?"),
        ("nowhere", "W1301", "resolvers are 'main', 'test', 'off'"),
        ("off", "W1302", "no other resolver is used as a fallback"),
    ],
)
def test_a_named_resolver_that_cannot_answer_is_an_error_and_nothing_else_is_tried(
    name: str, code: str, help: str
) -> None:
    for sales, overrides, default in (
        (dataset(resolver_id="main"), project(sales=name), "main"),
        (dataset(resolver_id=name), project(), "main"),
        (dataset(), project(), name),
    ):
        with pytest.raises(ResolutionError) as caught:
            choose_resolver(sales, overrides, catalog(MAIN, TEST, OFF, default=default))
        assert caught.value.code == code
        assert repr(name) in caught.value.message
        assert help in caught.value.help


def test_a_disabled_default_is_an_error() -> None:
    with pytest.raises(ResolutionError) as caught:
        choose_resolver(dataset(), None, catalog(resolver(id="off", status="disabled", is_default=True)))
    assert caught.value.code == "W1302"


def test_without_any_resolver_the_dataset_is_named() -> None:
    with pytest.raises(ResolutionError) as caught:
        choose_resolver(dataset(), project(), catalog(MAIN))
    assert caught.value.code == "W1303"
    assert "sales v1" in caught.value.message
    assert "default_resolver" in caught.value.help
