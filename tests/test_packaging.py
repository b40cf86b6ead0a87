"""What is uploaded and what is built from it: metadata, the files of the wheel and the sdist, the image, the recipe."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from installs import ROOT, build_sdist, build_wheel

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE: dict[str, Any] = YAML(typ="safe").load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_sdist(tmp_path_factory.mktemp("sdist"))


def read_metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        (name,) = (n for n in files.namelist() if n.endswith(".dist-info/METADATA"))
        return Parser().parsestr(files.read(name).decode())


@pytest.mark.slow
def test_an_index_would_take_the_wheel_and_the_sdist(wheel: Path, sdist: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", wheel, sdist], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.sub(r"\x1b\[\d+m", "", ran.stdout).count("PASSED") == 2


@pytest.mark.slow
def test_the_metadata_says_what_a_page_of_an_index_shows(wheel: Path) -> None:
    metadata = read_metadata(wheel)
    assert metadata["Summary"] == PROJECT["description"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    classifiers = metadata.get_all("Classifier", [])
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.11", "Topic :: Database"} <= set(classifiers)
    assert metadata["Description-Content-Type"] == "text/markdown"


@pytest.mark.slow
def test_the_wheel_has_what_commands_read_and_the_manual_page(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    data = f"weft-{PROJECT['version']}.data/data/"
    assert f"{data}share/man/man1/weft.1" in names
    assert {f"weft/cli/errors/{page.name}" for page in (ROOT / "docs" / "errors").glob("*.md")} <= names
    templates = ROOT / "src" / "weft" / "cli" / "templates"
    files_of_templates = [f for f in templates.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    assert {f"weft/cli/templates/{f.relative_to(templates).as_posix()}" for f in files_of_templates} <= names
    assert "weft/py.typed" in names
    assert not [n for n in names if n.startswith(("tests/", "bench/")) or n.endswith(".pyc")]


@pytest.mark.slow
def test_the_sdist_has_all_that_builds_tests_and_documents(sdist: Path) -> None:
    with tarfile.open(sdist) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    wanted = (
        "pyproject.toml README.md LICENSE CHANGELOG.md CONTRIBUTING.md Makefile Dockerfile constraints.txt docs/weft.1"
    )
    assert set(wanted.split()) <= names
    assert {"tests/conftest.py", "scripts/setup", "conda/recipe.yaml", "examples/demo.py"} <= names
    assert not [name for name in names if "/.venv" in name or name.startswith((".venv", ".git/"))]


def in_conda_order(requirement: str) -> tuple[str, str]:
    """Return the name and the versions of a requirement as a recipe writes them."""
    found = re.match(r"([A-Za-z0-9._-]+) ?(.*)", requirement)
    assert found is not None
    return found[1].lower(), found[2]


def test_the_recipe_has_the_version_and_the_dependencies_of_the_package() -> None:
    assert RECIPE["context"]["version"] == PROJECT["version"]
    assert f">={RECIPE['context']['python_min']}" == PROJECT["requires-python"]
    run = dict(map(in_conda_order, RECIPE["requirements"]["run"]))
    assert run.pop("openjdk") == ">=17"
    assert run.pop("python") == ">=${{ python_min }}"
    assert run == dict(map(in_conda_order, PROJECT["dependencies"]))
    host = dict(map(in_conda_order, RECIPE["requirements"]["host"]))
    assert f"hatchling{host['hatchling']}" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (entry,) = RECIPE["build"]["python"]["entry_points"]
    assert entry.split(" = ") == ["weft", PROJECT["scripts"]["weft"]]
    assert RECIPE["about"].get("homepage") == PROJECT.get("urls", {}).get("Homepage")
    assert RECIPE["about"]["summary"] == PROJECT["description"]


def test_the_image_copies_what_the_build_of_the_wheel_reads() -> None:
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]
    }
    assert all((ROOT / path).exists() for path in copied)
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    read = {"pyproject.toml", "README.md", "LICENSE", "src", *build["force-include"], *build["shared-data"]}
    assert read <= copied
    kept = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    assert copied == kept
    assert re.search(r"^USER \d+$", DOCKERFILE, re.MULTILINE), "a container of Weft does not run as root"
