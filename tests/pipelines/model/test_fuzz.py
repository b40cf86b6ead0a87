"""Reading any file gives an entity or findings, never a traceback."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_data import FX
from weft.core.source import Source
from weft.errors import EntityError
from weft.pipelines.model.build import SPECS, read_entity
from weft.pipelines.model.compose import compose
from weft.pipelines.model.findings import build_schema
from weft.pipelines.model.normalize import KINDS, Kind
from weft.pipelines.model.yaml_nodes import to_python

FOLDERS: dict[str, Kind] = {f"{kind}s": kind for kind in KINDS}
SHORT = ["project", "dataset", "input", "order", "parameters", "source", "alias", "given", "input", "config",
         "expected_output", "expected_trace", "data", "datasource", "resolver"]  # fmt: skip
KEYS = sorted(
    {
        *SHORT,
        *(key for spec in SPECS.values() for key in build_schema(spec)["properties"]),
        *(key for spec in SPECS.values() for d in build_schema(spec).get("$defs", {}).values() for key in d["properties"])
    }
)  # fmt: skip
SCALARS = st.sampled_from(
    [None, True, 0, 1, -3, 2026, 1.5, "", " ", "gl", "gl@3", "x@0", "update", "delete", "table", "path", "dataset",
     "active", "2026-01", "2026-02-30", "a = 1", "{{X}}", "decimal(18,2)", "integer", "workspace", "_a", "a b"]
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
SAMPLES = {path.stem: (FOLDERS[path.parent.name], to_python(compose(path.read_text()))) for path in FX.glob("*/*.yml")}


def reported(kind: Kind, value: Any) -> None:
    """Read a value as a file and look at everything that is found."""
    text = json.dumps(value, default=float)
    try:
        reading = read_entity(kind, compose(text, "x.yml"))
    except EntityError:
        return
    for finding in reading.findings:
        assert isinstance(finding.at, Source), finding
        assert finding.help, finding
        assert str(finding)
        assert finding.at.range["start"]["line"] >= 0
    assert reading.is_valid or reading.findings or reading.entity is None
    if reading.entity is None:
        assert reading.findings


@pytest.mark.parametrize("kind", KINDS)
@given(value=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6) | VALUES)
def test_any_file_is_read_or_explained(kind: Kind, value: Any) -> None:
    reported(kind, value)


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[Kind, Any]:
    """Return a good file in which one to three places hold something else."""
    kind, value = copy.deepcopy(SAMPLES[draw(st.sampled_from(sorted(SAMPLES)))])
    for _ in range(draw(st.integers(1, 3))):
        holder, at = draw(st.sampled_from(list(places(value))))
        change = draw(st.sampled_from(["value", "remove", "key"]))
        if change == "value" or (change == "key" and isinstance(holder, list)):
            holder[at] = draw(VALUES)
        elif change == "key":
            holder[draw(st.sampled_from(KEYS))] = holder.pop(at)
        else:
            del holder[at]
        if not list(places(value)):
            break
    return kind, value


def places(value: Any) -> Any:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for at, inner in list(steps):
        yield value, at
        yield from places(inner)


@given(spoiled())
def test_a_good_file_that_was_spoiled_is_explained(file: tuple[Kind, Any]) -> None:
    reported(*file)


@given(st.text(alphabet="ab: -[]{}\n\t'\"|>&*!#,?%@\\0", max_size=60))
def test_any_text_composes_or_is_explained(text: str) -> None:
    try:
        root = compose(text, "x.yml")
    except EntityError as error:
        assert all(d.code in ("W1001", "W1022") and d.help for d in error.diagnostics)
        assert str(error)
        return
    to_python(root)
    read_entity("project", root)


def test_a_key_that_is_named_like_the_type_of_its_mapping_is_distinguished() -> None:
    strategy = {"type": "path", "datasource_id": "files", "path": {"input": "x"}, "output": "y"}
    text = json.dumps({"name": "r", "rules": [{"name": "a", "strategy": strategy}]})
    found = read_entity("resolver", compose(text)).findings
    places = [f.at.text[f.at.start : f.at.end] for f in found if isinstance(f.at, Source)]
    assert sorted(zip((f.code for f in found), places, strict=True)) == [
        ("W1002", '"output"'),
        ("W1004", '{"input": "x"}'),
    ]


def test_there_are_samples_of_every_kind_with_a_folder() -> None:
    assert {kind for kind, _ in SAMPLES.values()} == {
        "datasource",
        "resolver",
        "dataset",
        "project",
        "scenario",
    }
    assert Path(FX).is_dir()
