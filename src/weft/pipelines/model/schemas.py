"""JSON Schemas of the files of a workspace, for completion and checks in editors.

::

    # yaml-language-server: $schema=../.weft/schema/project.json
    project:
      name: gl_reporting
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from weft.pipelines.model.build import SPECS
from weft.pipelines.model.findings import build_schema
from weft.pipelines.model.normalize import KINDS, Kind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
COMMENT = "# yaml-language-server: $schema=../.weft/schema/{kind}.json"
"""The first line of a file, which names its schema for editors."""

_OPERATIONS = ("Update", "Aggregate", "Append", "Delete", "Output")


def json_schema(kind: Kind) -> dict[str, Any]:
    """Return the schema of one kind of file, with all forms that are accepted.

    >>> json_schema("project")["$schema"]
    'https://json-schema.org/draft/2020-12/schema'
    """
    own = build_schema(SPECS[kind])
    definitions = own.pop("$defs", {})
    if kind == "project":
        # Other short forms are keys of the specs; this one renames keys, so no declaration has it.
        _add_alternative_forms(definitions)
    if kind == "scenario":
        definitions["Catalogue"] = _catalogue_schema()
    title = f"Weft {kind}"
    if kind == "settings":
        return {"$schema": DIALECT, "title": title, **_drop_titles(own), "$defs": _drop_titles(definitions)}
    definitions["Entity"] = own
    definitions["Named"] = _name_in_root_key(own, kind)
    forms: list[dict[str, Any]] = [{"$ref": "#/$defs/Entity"}]
    if kind == "scenario":
        forms.append({"$ref": "#/$defs/Catalogue"})
    inside = forms[0] if len(forms) == 1 else {"anyOf": forms}
    wrapped = {"type": "object", "properties": {kind: inside}, "required": [kind], "additionalProperties": False}
    return {
        "$schema": DIALECT,
        "title": title,
        "type": "object",
        "anyOf": [wrapped, *forms, {"$ref": "#/$defs/Named"}],
        "$defs": _drop_titles(definitions),
    }


def export(folder: Path) -> tuple[Path, ...]:
    """Write the schema of each kind of file to a folder; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for kind in KINDS:
        path = folder / f"{kind}.json"
        path.write_text(render_schema(kind), encoding="utf-8")
        paths.append(path)
    return tuple(paths)


def render_schema(kind: Kind) -> str:
    """Return the text of the file with the schema of one kind."""
    return json.dumps(json_schema(kind), indent=2) + "\n"


def _name_in_root_key(own: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Return the flat form, in which the root key contains the name."""
    named = copy.deepcopy(own)
    properties = named["properties"]
    properties.pop("name", None)
    # A scenario also has the key `project`; only its own root key contains the name.
    properties[kind] = {"type": "string"}
    required = [key for key in named.get("required", ()) if key != "name"]
    named["required"] = [kind, *(key for key in required if key != kind)]
    return named


def _add_alternative_forms(definitions: dict[str, Any]) -> None:
    """Also accept operations with order and parameters."""
    for name in _OPERATIONS:
        first = definitions[f"{name}Operation"]
        second = copy.deepcopy(first)
        properties = second["properties"]
        properties["order"] = properties.pop("seq")
        properties["parameters"] = _with_selector(properties.pop("arguments"), definitions)
        properties["alias"] = {"type": "string"}
        # A name is not required in this form, and a delete has no parameters of its own.
        second["required"] = ["order", "type", *(["parameters"] if name != "Delete" else [])]
        definitions[f"{name}Operation"] = {"anyOf": [first, second]}


def _with_selector(arguments: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    ref = next(v for v in (arguments, *arguments.get("anyOf", ())) if "$ref" in v)["$ref"]
    inner: dict[str, Any] = copy.deepcopy(definitions[ref.rpartition("/")[2]])
    inner.setdefault("properties", {})["selector"] = {"type": ["string", "object", "null"]}
    return inner


def _catalogue_schema() -> dict[str, Any]:
    """Return the schema of a scenario in the form of a catalogue."""
    rows = {"type": "object"}
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "description": {"type": "string"},
            "periods": {"type": "array", "items": {"$ref": "#/$defs/WrittenPeriod"}, "minItems": 1},
            "period": {"type": ["string", "number"]},
            "project": {"type": ["string", "object"]},
            "input": {"type": "object", "properties": {"data": {"type": "object", "additionalProperties": rows}}},
            "expected_output": {"type": "object", "properties": {"data": rows}},
            "expected_trace": {"type": "array", "items": {"type": "object"}},
            "config": {"type": "object"},
        },
        "required": ["name", "project", "expected_output"],
    }


def _drop_titles(value: Any) -> Any:
    """Return a schema without titles, which would only repeat the names of classes."""
    if isinstance(value, dict):
        return {
            key: _drop_titles(inner) for key, inner in value.items() if not (key == "title" and isinstance(inner, str))
        }
    if isinstance(value, list):
        return [_drop_titles(inner) for inner in value]
    return value
