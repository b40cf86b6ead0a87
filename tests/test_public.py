"""The public face: its names, pinned, and that each says what it is for."""

from __future__ import annotations

import importlib.metadata
import inspect
import tomllib
from pathlib import Path
from typing import Any

import pytest

import weft

# Names that users and other tools rely on; none of them may go.
CONTRACT = (
    "AsofOrder",
    "AsofSpec",
    "ColumnPredicate",
    "ExpressionPredicate",
    "IntervalSpec",
    "JoinProjection",
    "JoinSpec",
    "Relation",
    "WindowSpec",
    "asof_strategies",
    "build_join_spec",
    "explain_join",
    "relation",
)
# The rest of the public face: errors and warnings to catch, values that calls return.
BESIDES = (
    "AmbiguousColumnError",
    "ArgumentError",
    "AsofOrderWarning",
    "ColumnCollisionError",
    "ConnectorError",
    "Diagnostic",
    "JoinContractError",
    "JoinExplanation",
    "JoinKeyWarning",
    "JoinPredicate",
    "JoinSpecError",
    "JoinTypeError",
    "MatchCounts",
    "MatchStats",
    "NoJoinKeysError",
    "Picture",
    "SessionMismatchError",
    "StreamError",
    "StreamPlanError",
    "StreamSqlError",
    "UnknownColumnError",
    "WeftError",
    "WorkerError",
    "coded_errors",
    "contract_failure",
    "inspect_keys",
    "inspect_matches",
    "streams",
)
JOINS = (
    "natural_inner natural_left natural_right natural_full natural_semi natural_anti "
    "left_inner left_outer left_right inner_join outer_join right_outer full_outer semi_join anti_join cross_join"
).split()
TEMPORAL = "natural_asof asof_join asof_join_all interval_join window_join".split()
SHIMS = "join left_join join_on join_asof".split()
SPECS = ("JoinSpec", "AsofSpec", "IntervalSpec", "WindowSpec")


def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(weft.__all__) == sorted((*CONTRACT, *BESIDES))
    assert dir(weft) == sorted(weft.__all__)


@pytest.mark.parametrize("name", sorted((*CONTRACT, *BESIDES)))
def test_a_public_name_is_there_and_says_what_it_is_for(name: str) -> None:
    _assert_documented(name, getattr(weft, name))


def _assert_documented(name: str, thing: Any) -> None:
    first = (inspect.getdoc(thing) or "").split("\n")[0]
    if isinstance(thing, type) or callable(thing):
        assert first, f"{name} has no docstring"
        assert not first.startswith(f"{name}("), f"{name} has only the docstring that Python made for it"


@pytest.mark.parametrize("name", [*JOINS, *TEMPORAL, *SHIMS])
def test_a_join_method_is_there_and_says_what_it_is_for(name: str) -> None:
    _assert_documented(name, getattr(weft.Relation, name))


@pytest.mark.parametrize("name", [*JOINS, *TEMPORAL])
def test_columns_called_self_and_other_can_still_be_aliases(name: str) -> None:
    first, second, *_ = inspect.signature(getattr(weft.Relation, name)).parameters.values()
    assert first.kind is second.kind is inspect.Parameter.POSITIONAL_ONLY


def test_every_public_method_of_a_relation_says_what_it_is_for() -> None:
    for name, member in inspect.getmembers(weft.Relation):
        # A slot of a dataclass is documented with its class.
        if not name.startswith("_") and not inspect.ismemberdescriptor(member):
            assert inspect.getdoc(member), f"Relation.{name} has no docstring"


@pytest.mark.parametrize("name", SPECS)
def test_every_spec_can_be_written_down_and_read_again(name: str) -> None:
    missing = {"to_dict", "from_dict", "to_json", "from_json", "fingerprint"} - set(dir(getattr(weft, name)))
    assert not missing


def test_a_name_that_is_not_there_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'weft' has no attribute 'relatoin'"):
        weft.relatoin  # noqa: B018


def test_the_version_is_that_of_the_installed_package() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    try:
        importlib.metadata.version("weft")
    except importlib.metadata.PackageNotFoundError:
        assert weft.__version__ == "0+unknown"
    else:
        assert weft.__version__ == project["version"]
