"""Short texts of entities for tests: read one, or get its findings."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

from weft.core.source import Source
from weft.errors import Diagnostic
from weft.pipelines.model.build import ReadResult, read_entity
from weft.pipelines.model.compose import compose
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.normalize import Kind
from weft.pipelines.model.operation import Operation
from weft.pipelines.model.project import Project

DATASET = """\
dataset:
  id: ds-orders
  name: orders
  main_table:
    name: orders
    columns:
      - {name: order_id, type: string, nullable: false}
      - {name: amount, type: "decimal(18,2)"}
"""


ORDERS = "project: orders_report\ninput: orders\noperations: [{seq: 1, name: d, type: delete}]\n"


def workspace(root: Path, files: dict[str, str]) -> Path:
    """Write the files of a workspace and return its root."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def reading(kind: Kind, text: str) -> ReadResult:
    return read_entity(kind, compose(dedent(text), f"{kind}s/x.yml"))


def entity(kind: Kind, text: str) -> Any:
    """Return the entity of a text without any finding."""
    found = reading(kind, text)
    assert found.findings == (), "\n".join(map(str, found.findings))
    return found.entity


def reported(kind: Kind, text: str) -> list[tuple[str, str]]:
    """Return the code of each finding with the text under its carets."""
    return [(f.code, under(f)) for f in reading(kind, text).findings]


def under(finding: Diagnostic) -> str:
    assert isinstance(finding.at, Source), finding
    return finding.at.text[finding.at.start : finding.at.end]


def dataset(text: str) -> Dataset:
    found: Dataset = entity("dataset", text)
    return found


def project(operations: str, head: str = "name: p\ninput: orders") -> Project:
    """Return the project whose operations are the entries of a YAML list."""
    found: Project = entity("project", project_text(operations, head))
    return found


def project_text(operations: str, head: str = "name: p\ninput: orders") -> str:
    return f"{dedent(head).rstrip()}\noperations:\n{dedent(operations).strip()}\n"


def operation(text: str) -> Operation:
    """Return the one operation of a project."""
    (found,) = project(text).operations
    return found
