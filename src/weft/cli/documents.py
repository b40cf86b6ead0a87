"""JSON Schemas of the documents that ``--json`` prints, one for each command.

A command with several forms, such as ``runs ls`` and ``runs show``, has one document whose `data` is any of
them.  The fields of a report follow from its class; this module lists the reports of each command and their keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.cli.machine import Check
from weft.core.documents import json_schema
from weft.errors import Diagnostic
from weft.io.location import Location
from weft.pipelines.plan.explain import PlanReport
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.impact import ConflictReport
from weft.pipelines.plan.resolver.rules import ResolverDiagnostic
from weft.pipelines.run.cluster import WorkerReport
from weft.pipelines.run.report import RecordedOutput, RerunReport, RunReport
from weft.pipelines.scenarios.reports import ScenarioResult
from weft.pipelines.store.records import OperationRecord, ResolverSnapshot, RunRecord
from weft.streams.checkpoint.recover import RedriveReport
from weft.streams.checkpoint.status import JobStatus
from weft.streams.run.connectors import InstalledConnector
from weft.streams.run.report import QueryReport

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]
Texts = tuple[str, ...]
Anything = Mapping[str, Any]


def _form(*reports: type, **more: Any) -> Schema:
    """Return the schema of an object with the fields of reports and further keys, each a type or a schema."""
    properties: Schema = {}
    for report in reports:
        properties |= json_schema(report)["properties"]
    properties |= {key: value if isinstance(value, dict) else json_schema(value) for key, value in more.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _entity(**more: Any) -> Schema:
    return _form(id=str, name=str, version=int, status=str, **more)


_RESOLVED_LOCATION = _form(Location, exists=bool | None, full_path=str | None)
_PUBLISHED = _form(period=str, path=str, format=str, run_id=str, version=int)
_VERSION = _form(version=int, status=str, fingerprint=str, recorded_at=str)
_EXPLAINED = _form(sink=str, inputs=list[Any], joins=list[Anything])
_DATA: Mapping[str, tuple[Schema, ...]] = {
    "init": (_form(root=str, template=str, files=Texts),),
    "validate": (_form(files=int, projects=Texts, datasets=Texts, errors=int, warnings=int, seconds=float),),
    "plan": (_form(PlanReport),),
    "run": (_form(RunReport, seconds=float | None),),
    "rerun": (_form(RerunReport, seconds=float | None),),
    "preview": (
        _form(
            seq=int,
            name=str,
            type=str,
            columns=Texts,
            before=list[Anything | None],
            after=list[Anything],
            changed=list[Texts],
        ),
    ),
    "test": (
        _form(passed=int, failed=int, errors=int, scenarios=list[ScenarioResult]),
        _form(file=str, rows=int, scenario=ScenarioResult),
    ),
    "runs": (
        _form(runs=_list(_form(RunRecord, rows=int))),
        _form(
            RunRecord,
            operations=list[OperationRecord],
            outputs=list[RecordedOutput],
            resolver_snapshot=ResolverSnapshot,
        ),
        _form(RunRecord),
        _form(run_id=str),
    ),
    "dataset": (
        _form(datasets=_list(_entity())),
        _entity(origin=str, main_table=Anything, published=_list(_PUBLISHED)),
        _form(
            id=str,
            name=str,
            version=int,
            is_new=bool,
            raised=bool,
            conflicts=_list(_form(project=str, conflict=ConflictReport)),
        ),
    ),
    "resolver": (
        _form(resolvers=_list(_entity(default=bool, rules=Texts))),
        _entity(rules=list[Anything]),
        _form(diagnostic=ResolverDiagnostic, locations=_list(_RESOLVED_LOCATION)),
    ),
    "project": (
        _form(projects=_list(_entity(conflict=ConflictReport | None))),
        _entity(failures=list[Failure], project=Anything),
        _form(name=str, versions=_list(_VERSION)),
        _form(name=str, version=int, status=str),
    ),
    "doctor": (_form(checks=list[Check], workers=list[WorkerReport]),),
    "explain": (_form(code=str, title=str, text=str), _form(codes=Anything)),
    "schema": (_form(files=Texts), _form(kind=str, schema=Anything)),
    "stream": (
        _form(job=str, statements=_list(_EXPLAINED), explains=list[Anything]),
        _form(
            job=str,
            queries=_list(_form(QueryReport, location=str | None, format=str | None, joins=list[Anything])),
            sealed=bool,
            checkpoint=str | None,
        ),
        _form(job=str, state=str, pid=int | None, child=int | None, checkpoint=str, log=str),
        _form(JobStatus),
        _form(jobs=list[JobStatus]),
        _form(job=str, stopped=str),
        _form(dry_run=bool, redriven=list[RedriveReport]),
    ),
    "connectors": (_form(connectors=list[InstalledConnector]), _form(InstalledConnector)),
}
COMMANDS = tuple(_DATA)
"""The commands whose documents have a schema."""


def document_schema(command: str) -> Schema:
    """Return the schema of the document of a command.

    `data` is checked in documents that are ok: a command that failed may omit keys.

    >>> document_schema("run")["properties"]["schema"]
    {'const': 'weft/run/1'}
    """
    whole = _form(
        schema={"const": f"weft/{command}/1"}, ok=bool, data=Anything, diagnostics=list[Diagnostic], next=list[str]
    )
    # A short form has no other keys: otherwise an incomplete longer one would pass as the short one.
    forms = [
        form | ({"maxProperties": len(form["properties"])} if len(form["properties"]) < 3 else {})
        for form in _DATA[command]
    ]
    return {
        "$schema": DIALECT,
        "title": f"weft {command} --json",
        **whole,
        # Only here: `data` may get more keys in later versions.
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
