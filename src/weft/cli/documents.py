"""JSON Schemas of the documents that ``--json`` prints, one for each command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_COUNT = {"type": ["integer", "null"]}


def _object(properties: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    return found | {"required": list(properties)} if required else found


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_SPOT = _object({"line": _NUMBER, "character": _NUMBER})
_DIAGNOSTIC = _object(
    {
        "code": {"type": "string", "pattern": "^W[0-9]{4}$"},
        "severity": {"enum": ["error", "warning", "note"]},
        "file": {"type": ["string", "null"]},
        "range": {"anyOf": [{"type": "null"}, _object({"start": _SPOT, "end": _SPOT})]},
        "message": _TEXT,
        "help": _TEXT,
    }
)
_JOIN = _object({"alias": _TEXT, "matched": _NUMBER, "unmatched": _NUMBER, "multiple": _NUMBER})
_OPERATION = _object(
    {
        "seq": _NUMBER,
        "name": _TEXT,
        "type": _TEXT,
        "rows_in": _COUNT,
        "rows_out": _COUNT,
        "rows_changed": _COUNT,
        "joins": _list(_JOIN),
    }
)
_OUTPUT = _object(
    {
        "seq": _NUMBER,
        "location": _TEXT,
        "format": _TEXT,
        "rows": _NUMBER,
        "columns": _list(_TEXT),
        "dataset": {"type": ["string", "null"]},
        "dataset_version": _COUNT,
    }
)
_PINNED = _object({"alias": _TEXT, "dataset_id": _TEXT, "dataset_version": _NUMBER, "resolver_source": _TEXT})
_RUN = {
    "run_id": _TEXT,
    "status": {"enum": ["queued", "running", "completed", "failed", "cancelled"]},
    "period": _TEXT,
    "known_at": _TEXT,
    "sandbox": {"type": "boolean"},
    "operations": _list(_OPERATION),
    "outputs": _list(_OUTPUT),
    "resolver_snapshot": _object(
        {"input_dataset_id": _TEXT, "input_dataset_version": _NUMBER, "join_datasets": _list(_PINNED)}
    ),
}
_DATA: Mapping[str, Mapping[str, Any]] = {
    "init": {"root": _TEXT, "template": _TEXT, "files": _list(_TEXT)},
    "validate": {
        "files": _NUMBER,
        "projects": _list(_TEXT),
        "datasets": _list(_TEXT),
        "errors": _NUMBER,
        "warnings": _NUMBER,
        "seconds": {"type": "number"},
    },
    "plan": {
        "project": _TEXT,
        "version": _NUMBER,
        "status": _TEXT,
        "period": {"type": ["string", "null"]},
        "operations": _list({"type": "object"}),
        "pins": _list({"type": "object"}),
        "joins": _list({"type": "object"}),
        "writes": _list({"type": "object"}),
        "stages": _list({"type": "object"}),
        "changes": _list({"type": "object"}),
        "fingerprint": _TEXT,
    },
    "run": _RUN,
    "rerun": _RUN | {"rerun_of": _TEXT, "identical": {"type": ["boolean", "null"]}},
    "preview": {
        "columns": _list(_TEXT),
        "before": _list({"type": ["object", "null"]}),
        "after": _list({"type": "object"}),
        "changed": _list(_list(_TEXT)),
    },
    "test": {},
    "runs": {},
    "dataset": {},
    "resolver": {},
    "project": {},
    "doctor": {"checks": _list(_object({"name": _TEXT, "ok": {"type": "boolean"}, "found": _TEXT}))},
    "explain": {},
    "schema": {},
    "stream": {},
    "connectors": {},
}
COMMANDS = tuple(_DATA)
"""The commands whose documents have a schema."""


def document_schema(command: str) -> dict[str, Any]:
    """Return the schema of the document of a command.

    What `data` must hold is said of documents that are ok; one of a refused command may hold less.

    >>> document_schema("run")["properties"]["schema"]
    {'const': 'weft/run/1'}
    """
    whole = _object(
        {
            "schema": {"const": f"weft/{command}/1"},
            "ok": {"type": "boolean"},
            "data": {"type": "object"},
            "diagnostics": _list(_DIAGNOSTIC),
            "next": _list(_TEXT),
        }
    )
    return {
        "$schema": DIALECT,
        "title": f"weft {command} --json",
        **whole,
        "additionalProperties": False,
        "if": {"properties": {"ok": {"const": True}}},
        "then": {"properties": {"data": _object(_DATA[command])}},
    }


def export_documents(folder: Path) -> tuple[Path, ...]:
    """Write the schema of every document; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for command in COMMANDS:
        file = folder / f"{command}.json"
        file.write_text(json.dumps(document_schema(command), indent=2) + "\n", encoding="utf-8")
        files.append(file)
    return tuple(files)
