"""The public face: its names, pinned, and that each says what it is for."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import weft
import weft.streams
import weft.testing

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
    "read_csv",
    "read_parquet",
    "read_table",
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


# Values that only Weft builds; users read their attributes.
RETURNED = {"BatchReport", "Case", "Diagnostic", "JobExplanation", "JobReport", "JoinExplanation", "QueryReport"}
RETURNED |= {"Crash", "Relation", "RowNumbers", "Table", "Window"}


def public_calls() -> Iterable[tuple[str, Callable[..., Any]]]:
    for module in (weft, weft.streams, weft.testing):
        for name in module.__all__:
            thing = getattr(module, name)
            is_error = isinstance(thing, type) and issubclass(thing, BaseException)
            if callable(thing) and not is_error and name not in RETURNED:
                yield f"{module.__name__}.{name}", thing
    for name, member in inspect.getmembers(weft.Relation, callable):
        if not name.startswith("_"):
            yield f"Relation.{name}", member


def undocumented(call: Callable[..., Any]) -> list[str]:
    """Return what the docstring of a call lacks: parameters, their defaults, an example."""
    doc = inspect.getdoc(call) or ""
    section = re.split(r"\n(?:Returns|Examples)\n-+", doc.partition("Parameters\n----------\n")[2])[0]
    documented: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", section):
        head, _, text = block.partition("\n")
        documented |= {name.strip().lstrip("*"): text for name in head.split(",")}
    problems = [] if re.search(r"``\w+.*\(.*``|>>>|::\n", doc) else ["an example"]
    for name, parameter in inspect.signature(call).parameters.items():
        if name in ("self", "unexpected"):  # `unexpected` collects misspelt arguments, for an error
            continue
        is_single = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if name not in documented:
            problems.append(name)
        elif is_single and not re.search(r"(?i)default|required", documented[name]):
            problems.append(f"the default of {name}")
    return problems


def test_every_parameter_of_a_public_call_is_documented() -> None:
    calls = dict(public_calls())
    assert {"weft.relation", "weft.streams.run", "Relation.natural_asof", "weft.testing.T"} <= set(calls)
    assert {name: problems for name, call in calls.items() if (problems := undocumented(call))} == {}


def test_a_parameter_without_documentation_is_reported() -> None:
    def head(n: int = 5, *, fast: bool = False) -> int:
        """Return rows.

        Parameters
        ----------
        n
            How many.
        """
        return n if fast else 0

    assert undocumented(head) == ["an example", "the default of n", "fast"]


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


def loaded_by(code: str) -> set[str]:
    """Return the names of the modules that a new process has loaded after some code."""
    shown = f"{code}\nimport sys\nprint(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def test_importing_weft_loads_the_specs_and_nothing_that_parses_plans_or_runs() -> None:
    # Not a timing: on one machine the time varies tenfold. Each of these packages takes longer to load than Weft itself.
    loaded = loaded_by("import weft") - loaded_by("")
    folders = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("weft.")}
    assert folders == {"weft.codes", "weft.core", "weft.errors", "weft.expr", "weft.joins", "weft.redaction"}
    others = {top for name in loaded if (top := name.split(".")[0]) not in (*sys.stdlib_module_names, "weft")}
    assert not others
    assert "weft.joins.spec.asof" in loaded
    assert len(loaded) < 150


@pytest.mark.parametrize(
    "used", ["weft.ExpressionPredicate('left.a > 1').tree", "from weft.expr import parse; parse('a')"]
)
def test_the_parser_of_expressions_is_loaded_when_a_text_is_read(used: str) -> None:
    assert "sqlglot" in loaded_by(f"import weft\n{used}")
