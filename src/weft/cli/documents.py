"""JSON Schemas of the documents that ``--json`` prints, one for each command.

A command with several forms, such as ``runs ls`` and ``runs show``, has a document for each: `data` is one
of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_FLAG = {"type": "boolean"}
_SECONDS = {"type": ["number", "null"]}
_COUNT = {"type": ["integer", "null"]}
_TEXT_OR_NONE = {"type": ["string", "null"]}


def _object(properties: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    return found | {"required": list(properties)} if required else found


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _or_none(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, dict(schema)]}


_SPOT = _object({"line": _NUMBER, "character": _NUMBER})
_DIAGNOSTIC = _object(
    {
        "code": {"type": "string", "pattern": "^W[0-9]{4}$"},
        "severity": {"enum": ["error", "warning", "note"]},
        "file": _TEXT_OR_NONE,
        "range": _or_none(_object({"start": _SPOT, "end": _SPOT})),
        "message": _TEXT,
        "help": _TEXT,
    }
)
_STATUS = {"enum": ["queued", "running", "completed", "failed", "cancelled"]}
_JOIN = _object({"alias": _TEXT, "matched": _NUMBER, "unmatched": _NUMBER, "multiple": _NUMBER})
_OPERATION = _object(
    {
        "seq": _NUMBER,
        "name": _TEXT,
        "type": {"enum": ["update", "aggregate", "append", "delete", "output"]},
        "status": {"enum": ["pending", "running", "completed", "failed"]},
        "rows_in": _COUNT,
        "rows_out": _COUNT,
        "rows_changed": _COUNT,
        "joins": _list(_JOIN),
    }
)
_WRITTEN = {
    "seq": _NUMBER,
    "location": _TEXT,
    "format": _TEXT,
    "rows": _NUMBER,
    "columns": _list(_TEXT),
    "dataset": _TEXT_OR_NONE,
    "dataset_version": _COUNT,
}
_PINNED = _object({"alias": _TEXT, "dataset_id": _TEXT, "dataset_version": _NUMBER, "resolver_source": _TEXT})
_RESOLVER_SNAPSHOT = _object(
    {"input_dataset_id": _TEXT, "input_dataset_version": _NUMBER, "join_datasets": _list(_PINNED)}
)
_ERROR = _object({"operation_order": _COUNT, "code": _TEXT, "message": _TEXT, "detail": _TEXT})
_RUN = {
    "run_id": _TEXT,
    "status": _STATUS,
    "project": _TEXT,
    "project_version": _NUMBER,
    "period": _TEXT,
    "known_at": _TEXT,
    "sandbox": _FLAG,
    "snapshot": _TEXT,
    "seconds": _SECONDS,
    "attempt": _NUMBER,
    "operations": _list(_OPERATION),
    "outputs": _list(_object(_WRITTEN)),
    "resolver_snapshot": _RESOLVER_SNAPSHOT,
}
_RECORD = {
    "run_id": _TEXT,
    "project": _TEXT,
    "project_id": _TEXT,
    "project_version": _NUMBER,
    "period": _TEXT,
    "status": _STATUS,
    "sandbox": _FLAG,
    "trigger": {"enum": ["manual", "scheduled", "test"]},
    "triggered_by": _TEXT,
    "known_at": _TEXT,
    "started_at": _TEXT_OR_NONE,
    "completed_at": _TEXT_OR_NONE,
    "seconds": _SECONDS,
    "last_completed_operation": _COUNT,
    "attempt": _NUMBER,
    "rerun_of": _TEXT_OR_NONE,
    "snapshot": _TEXT,
    "error": _or_none(_ERROR),
}
_SHOWN_RUN = _RECORD | {
    "operations": _list(_OPERATION),
    "outputs": _list(
        _object(_WRITTEN | {"state": {"enum": ["staged", "publishing", "published", "discarded"]}})
    ),
    "resolver_snapshot": _RESOLVER_SNAPSHOT,
}
_CHANGE = {"part": _TEXT, "what": _TEXT, "seq": _COUNT}
_PLAN = {
    "project": _TEXT,
    "version": _NUMBER,
    "status": _TEXT,
    "period": _TEXT_OR_NONE,
    "sandbox": _FLAG,
    "operations": _list(_object({"seq": _NUMBER, "name": _TEXT, "type": _TEXT, "selector": _TEXT_OR_NONE})),
    "pins": _list(
        _object({"role": _TEXT, "dataset_id": _TEXT, "dataset_version": _NUMBER, "resolver_source": _TEXT})
    ),
    "joins": _list(
        _object(
            {
                "seq": _NUMBER,
                "alias": _TEXT,
                "dataset": _TEXT,
                "dataset_version": _NUMBER,
                "as_of": _TEXT_OR_NONE,
                "on": _TEXT,
                "on_multiple": {"enum": ["error", "first", "all"]},
                "strategy": _TEXT,
                "reason": _TEXT,
                "extensions": _list(_TEXT),
            }
        )
    ),
    "writes": _list(_object({"seq": _NUMBER, "location": _TEXT, "mode": _TEXT})),
    "stages": _list(_object({"kind": _TEXT, "seq": _COUNT, "title": _TEXT, "detail": _list(_TEXT)})),
    "changes": _list(_object(_CHANGE)),
    "fingerprint": _TEXT,
}
_MISMATCH = _object(
    {"kind": _TEXT, "expected": {}, "actual": {}, "columns": _list(_TEXT), "operation": _COUNT, "text": _TEXT}
)
_SCENARIO = _object(
    {
        "name": _TEXT,
        "file": _TEXT_OR_NONE,
        "status": {"enum": ["pass", "fail", "error"]},
        "seconds": {"type": "number"},
        "mismatches": _list(_MISMATCH),
        "error": _or_none(_DIAGNOSTIC),
        "diagnostics": _list(_DIAGNOSTIC),
        "snapshot": _TEXT_OR_NONE,
    }
)
_NAMED = {"id": _TEXT, "name": _TEXT, "version": _NUMBER, "status": _TEXT}
_CONFLICT = _object(
    {
        "dataset_id": _TEXT,
        "dataset_version_from": _NUMBER,
        "dataset_version_to": _NUMBER,
        "breaking_changes": _list(
            _object({"column": _TEXT, "change_type": _TEXT, "affected_operations": _list(_NUMBER)})
        ),
    }
)
_PUBLISHED = _object({"period": _TEXT, "path": _TEXT, "format": _TEXT, "run_id": _TEXT, "version": _NUMBER})
_TRACED = _object(
    {
        "resolver_id": _TEXT,
        "resolver_source": _TEXT,
        "evaluated_rules": _list(
            _object({"rule_name": _TEXT, "matched": {"type": ["boolean", "null"]}, "reason": _TEXT})
        ),
        "outcome": {
            "enum": ["success", "no_matching_rule", "period_expansion_failure", "template_render_error"]
        },
        "expanded_periods": _list(_TEXT),
        "missing_periods": _list(_TEXT),
    }
)
_PLACE = _object(
    {
        "datasource_id": _TEXT,
        "path": _TEXT_OR_NONE,
        "table": _TEXT_OR_NONE,
        "period_identifier": _TEXT,
        "exists": {"type": ["boolean", "null"]},
        "full_path": _TEXT_OR_NONE,
    }
)
_FAILURE = _object({"rule": _TEXT, "type": _TEXT, "operation_order": _COUNT, "detail": _TEXT})
_PROJECT = {"name": _TEXT, "version": _NUMBER, "status": _TEXT}
_COUNTS = ("in", "matched", "waiting", "unmatched", "late", "rejected", "evicted")
_LEDGER = {"type": "object", "additionalProperties": _object(dict.fromkeys(_COUNTS, _NUMBER))}
_EXPLAINED = _object({"sink": _TEXT, "inputs": _list({}), "joins": _list({"type": "object"})})
_QUERY = _object(
    {
        "sink": _TEXT,
        "location": _TEXT_OR_NONE,
        "format": _TEXT_OR_NONE,
        "rows": _NUMBER,
        "ledger": _or_none(_LEDGER),
        "sides": {"type": "object", "additionalProperties": _TEXT},
        "batches": _NUMBER,
        "watermark": _TEXT_OR_NONE,
        "sealed": _FLAG,
        "joins": _list({"type": "object"}),
    }
)
_STREAM_STATUS = {
    "job": _TEXT,
    "state": {"enum": ["running", "stopped", "failed", "sealed"]},
    "pid": _COUNT,
    "restarts": _NUMBER,
    "error": _or_none({"type": "object"}),
    "checkpoint": _TEXT,
    "statements": _list(_object({"sink": _TEXT, "state": _TEXT, "rows": _NUMBER, "ledger": _LEDGER})),
}
_REDRIVEN = _object(
    {
        "sink": _TEXT,
        "taken": _NUMBER,
        "plus": _NUMBER,
        "minus": _NUMBER,
        "undecided": _NUMBER,
        "location": _TEXT,
    }
)
_CONNECTOR = {
    "name": _TEXT,
    "installed": _FLAG,
    "version": _TEXT_OR_NONE,
    "spark": _TEXT_OR_NONE,
    "folder": _TEXT,
    "jars": _list(_TEXT),
}
_DATA: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "init": ({"root": _TEXT, "template": _TEXT, "files": _list(_TEXT)},),
    "validate": (
        {
            "files": _NUMBER,
            "projects": _list(_TEXT),
            "datasets": _list(_TEXT),
            "errors": _NUMBER,
            "warnings": _NUMBER,
            "seconds": {"type": "number"},
        },
    ),
    "plan": (_PLAN,),
    "run": (_RUN,),
    "rerun": (_RUN | {"rerun_of": _TEXT, "identical": {"type": ["boolean", "null"]}},),
    "preview": (
        {
            "seq": _NUMBER,
            "name": _TEXT,
            "type": _TEXT,
            "columns": _list(_TEXT),
            "before": _list({"type": ["object", "null"]}),
            "after": _list({"type": "object"}),
            "changed": _list(_list(_TEXT)),
        },
    ),
    "test": (
        {"passed": _NUMBER, "failed": _NUMBER, "errors": _NUMBER, "scenarios": _list(_SCENARIO)},
        {"file": _TEXT, "rows": _NUMBER, "scenario": _SCENARIO},
    ),
    "runs": (
        {"runs": _list(_object(_RECORD | {"rows": _NUMBER}))},
        _SHOWN_RUN,
        _RECORD,
        {"run_id": _TEXT},
    ),
    "dataset": (
        {"datasets": _list(_object(_NAMED))},
        _NAMED | {"origin": _TEXT, "main_table": {"type": "object"}, "published": _list(_PUBLISHED)},
        {
            "id": _TEXT,
            "name": _TEXT,
            "version": _NUMBER,
            "is_new": _FLAG,
            "raised": _FLAG,
            "conflicts": _list(_object({"project": _TEXT, "conflict": _CONFLICT})),
        },
    ),
    "resolver": (
        {"resolvers": _list(_object(_NAMED | {"default": _FLAG, "rules": _list(_TEXT)}))},
        _NAMED | {"rules": _list({"type": "object"})},
        {"diagnostic": _TRACED, "locations": _list(_PLACE)},
    ),
    "project": (
        {"projects": _list(_object(_NAMED | {"conflict": _or_none(_CONFLICT)}))},
        _NAMED | {"failures": _list(_FAILURE), "project": {"type": "object"}},
        {
            "name": _TEXT,
            "versions": _list(
                _object({"version": _NUMBER, "status": _TEXT, "fingerprint": _TEXT, "recorded_at": _TEXT})
            ),
        },
        _PROJECT,
    ),
    "doctor": ({"checks": _list(_object({"name": _TEXT, "ok": _FLAG, "found": _TEXT, "help": _TEXT}))},),
    "explain": ({"code": _TEXT, "title": _TEXT, "text": _TEXT}, {"codes": {"type": "object"}}),
    "schema": ({"files": _list(_TEXT)}, {"kind": _TEXT, "schema": {"type": "object"}}),
    "stream": (
        {"job": _TEXT, "statements": _list(_EXPLAINED), "explains": _list({"type": "object"})},
        {"job": _TEXT, "queries": _list(_QUERY), "sealed": _FLAG, "checkpoint": _TEXT_OR_NONE},
        {"job": _TEXT, "state": _TEXT, "pid": _COUNT, "child": _COUNT, "checkpoint": _TEXT, "log": _TEXT},
        _STREAM_STATUS,
        {"jobs": _list(_object(_STREAM_STATUS))},
        {"job": _TEXT, "stopped": _TEXT},
        {"dry_run": _FLAG, "redriven": _list(_REDRIVEN)},
    ),
    "connectors": ({"connectors": _list(_object(_CONNECTOR))}, _CONNECTOR),
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
    # A short form holds nothing else: otherwise a longer one that lacks something would pass for it.
    forms = [
        _object(form) | ({"maxProperties": len(form)} if len(form) < 3 else {}) for form in _DATA[command]
    ]
    return {
        "$schema": DIALECT,
        "title": f"weft {command} --json",
        **whole,
        "additionalProperties": False,
        "if": {"properties": {"ok": {"const": True}}},
        "then": {"properties": {"data": forms[0] if len(forms) == 1 else {"anyOf": forms}}},
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
