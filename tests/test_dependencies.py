"""What the source imports is what a plain install brings, or what an extra brings to those who ask for it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from test_layers import COMPUTED, MODULES, imported
from weft.joins.spark.workers import DRIVER_NEEDS, WORKERS_NEED

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
PROJECT: dict[str, Any] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_OLDEST = re.compile(r">=([0-9.]+)")
# Packages of a dependency that is declared, which brings them itself.
BROUGHT = {"py4j": "pyspark", "pydantic_core": "pydantic"}
# Modules of extras and the only files that may import them; each asks for the module when it is needed, and refuses without it.
OF_EXTRAS = {
    "matplotlib": ("plot", {"weft.joins.picture"}),
    "polars": ("polars", {"weft.joins.relation.frame"}),
    "psycopg": ("postgres", {"weft.io.spark.database", "weft.pipelines.run.tables"}),
    "deltalake": ("delta", {"weft.io.spark.lakehouse"}),
    "pyiceberg": ("iceberg", {"weft.io.spark.lakehouse"}),
    "obstore": ("stores", {"weft.io.stores.objects"}),
}


def distribution(requirement: str) -> str:
    """Return the name of a requirement, spelt as indexes do."""
    found = _NAME.match(requirement)
    assert found is not None, requirement
    return canonical(found[0])


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


INSTALLED = packages_distributions()
IMPORTS = [(m.name, line, name.split(".")[0]) for m in MODULES for line, name in imported(ast.walk(m.tree))]
CORE = {distribution(text) for text in PROJECT["dependencies"]}


def undeclared(imports: Iterable[tuple[str, int, str]], core: set[str]) -> Iterator[str]:
    """Yield a sentence for each import that neither the core nor an extra declares."""
    for module, line, top in imports:
        if top in sys.stdlib_module_names or top in ("weft", COMPUTED):
            continue
        if top in OF_EXTRAS and module in OF_EXTRAS[top][1]:
            continue
        if not {canonical(d) for d in INSTALLED.get(BROUGHT.get(top, top), ())} & core:
            yield f"{module}:{line} imports {top}, which is not among the dependencies in pyproject.toml"


def test_every_import_is_a_declared_dependency() -> None:
    problems = list(undeclared(IMPORTS, CORE))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("missing", sorted(CORE))
def test_no_dependency_can_be_left_out(missing: str) -> None:
    # pandas is imported by PySpark, when a function is sent to workers, and not by us.
    assert list(undeclared(IMPORTS, CORE - {missing})) or missing == "pandas"


def test_an_import_that_nobody_declares_is_seen() -> None:
    for top in ("hypothesis", "jsonschema", "psycopg"):
        assert len(list(undeclared([("weft.pipelines.plan.a", 1, top)], CORE))) == 1


def test_extras_declare_what_is_asked_for_when_it_is_needed() -> None:
    extras = PROJECT["optional-dependencies"]
    for name, (extra, _) in OF_EXTRAS.items():
        assert name in {distribution(text) for text in extras[extra]}
    # Requirements that were written before these packages moved into the core.
    assert extras["arrow"] == extras["pipelines"] == extras["testing"] == []


def test_the_doctor_asks_for_the_releases_that_the_install_asks_for() -> None:
    oldest = {distribution(text): found[1] for text in PROJECT["dependencies"] if (found := _OLDEST.search(text))}
    assert {name: oldest[name] for name in DRIVER_NEEDS} == dict(DRIVER_NEEDS)
    assert set(WORKERS_NEED) <= set(DRIVER_NEEDS)
