"""JSON Schemas: valid themselves, true of every form we read, and of no form we refuse."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from engine_data import DATA, FX
from entity_texts import DATASET
from weft.pipelines.model.compose import compose
from weft.pipelines.model.normalize import KINDS, Kind
from weft.pipelines.model.schemas import COMMENT, export, json_schema
from weft.pipelines.model.yaml_nodes import to_python

FOLDERS: dict[str, Kind] = {f"{kind}s": kind for kind in KINDS}


def kind_of(path: Path) -> Kind:
    return "settings" if path.name == "weft.yml" else FOLDERS[path.parent.name]


def as_json(text: str) -> Any:
    """Return a file as an editor hands it to a schema."""
    return json.loads(json.dumps(to_python(compose(text)), default=lambda v: float(v) if isinstance(v, Decimal) else v))


def problems(kind: Kind, text: str) -> list[str]:
    validator = jsonschema.Draft202012Validator(json_schema(kind))
    return [error.message for error in validator.iter_errors(as_json(text))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_valid_and_is_json(kind: Kind) -> None:
    schema = json_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("path", sorted(FX.rglob("*.yml")), ids=lambda p: p.stem)
def test_the_sample_fits_its_schemas(path: Path) -> None:
    assert problems(kind_of(path), path.read_text()) == []


OPERATIONS = [
    "{seq: 1, name: d, type: delete}",
    "{order: 1, type: delete}",
    "{order: 1, type: delete, alias: x, parameters: {selector: a = 1}}",
    "{seq: 1, name: u, type: update, selector: {source: a}, arguments: {assignments: [{column: a, expression: 0}]}}",
    "{order: 1, type: update, parameters: {selector: a, assignments: [{column: a, expression: b}]}}",
    "{seq: 1, name: u, type: update, arguments: {joins: [{alias: x, dataset: d@2, on: a}], assignments: []}}",
    "{seq: 1, name: o, type: output, arguments: {destination: {datasource: w, table: t}}}",
]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("head", ["project: p\ninput: gl@3\n", "name: p\ninput_dataset_id: gl\n"])
def test_every_form_of_a_project_fits(head: str, operation: str) -> None:
    assert problems("project", f"{head}operations: [{operation}]") == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("project", "project: {name: p, input: gl, operations: []}"),
        ("project", "project: {name: p, operations: [{seq: 1, name: d, type: delete}]}"),
        ("project", "project: {name: p, input: gl, operations: [{seq: 0, name: d, type: delete}]}"),
        ("project", "project: {name: p, input: gl, operations: [{seq: 1, name: d, type: filter}]}"),
        (
            "project",
            "project: {name: p, input: gl, operations: [{seq: 1, name: d, type: delete, selecter: a}]}",
        ),
        (
            "project",
            "project: {name: p, input: gl, colour: red, operations: [{seq: 1, name: d, type: delete}]}",
        ),
        ("dataset", DATASET.replace("type: string", "typ: string")),
        ("dataset", DATASET.replace("name: amount", "nam: amount")),
        ("resolver", "resolver: {name: r, rules: [{name: a, strategy: {type: path, path: x}}]}"),
        ("datasource", "datasource: {name: d, type: postgres}"),
        ("settings", "stor: x"),
        ("settings", "weft: 2"),
        ("calendar", "calendar: {name: c, levels: []}"),
        ("scenario", "scenario: {name: s, period: 2026-01}"),
    ],
)
def test_what_is_refused_does_not_fit(kind: Kind, text: str) -> None:
    assert problems(kind, text) != []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("dataset", DATASET),
        ("dataset", DATASET.replace("  name: orders\n  m", "  name: orders\n  resolver: files\n  m")),
        ("resolver", "resolver: r\nrules: [{name: a, when: {source: x}, strategy: {type: path, datasource: d, path: x}}]"),
        ("datasource", "datasource: {name: d, type: database, options: {url: x}}"),
        ("settings", "weft: 1\nspark: {conf: {a: 8}}"),
        (
            "calendar",
            "calendar: c\nlevels: [{name: y}]\nperiods: [{identifier: 2026, level: y, start_date: 2026-01-01, end_date: 2026-12-31}]",
        ),
        ("scenario", "scenario: s\nproject: p\nperiod: 2026\ngiven: {t: [{a: 1}]}\nexpect: {rows: [{a: 1}], tolerance: 0.01}"),
        ("scenario", ("scenario: {name: s, project: {id: p, version: 1}, periods: [{identifier: 2026-01, level: month, "
         "start_date: 2026-01-01, end_date: 2026-01-31}], input: {data: {t: {rows: []}}}, expected_output: {data: {rows: []}}}")),
    ],
)  # fmt: skip
def test_what_is_read_fits(kind: Kind, text: str) -> None:
    assert problems(kind, text) == []


def test_the_schemas_are_written_where_the_comment_points(tmp_path: Path) -> None:
    written = export(tmp_path / ".weft" / "schema")
    assert [path.name for path in written] == [f"{kind}.json" for kind in KINDS]
    assert json.loads(written[0].read_text()) == json_schema("settings")
    assert COMMENT.format(kind="project").endswith("../.weft/schema/project.json")


def test_no_planted_file_of_a_wrong_shape_fits() -> None:
    shaped = {
        "projects/shapes.yml",
        "datasets/gl.v1.yml",
        "datasources/base.yml",
        "resolvers/tables.yml",
        "weft.yml",
    }
    for name in shaped:
        path = DATA / "planted" / name
        assert problems(kind_of(path), path.read_text()), name
