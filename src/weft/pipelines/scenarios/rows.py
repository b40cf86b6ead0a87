"""The rows that a scenario writes out or names in a file, before they have types.

A file lies beside the scenario; a path that is absolute or leads out of the workspace is refused.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from weft.core.names import find_similar, format_list
from weft.core.source import Source
from weft.core.types import DType
from weft.errors import Diagnostic, ScenarioError
from weft.pipelines.model.scenario import Rows, Scenario
from weft.pipelines.model.values import LocatedText
from weft.pipelines.scenarios.values import fits, typed_value

FILES = (".csv", ".json", ".jsonl", ".parquet")
ReadParquet = Callable[[Path], Sequence[Mapping[str, Any]]]


def written_rows(
    said: Rows, scenario: Scenario, root: Path, read_parquet: ReadParquet
) -> tuple[Mapping[str, Any], ...]:
    """Return rows as they are written: in the scenario, as CSV text, or in a file."""
    if said.rows is not None:
        return tuple(dict(row) for row in said.rows)
    if said.csv is not None:
        return _csv_rows(said.csv.text, said.csv.at)
    assert said.file is not None  # noqa: S101  # one of the three is there
    path = file_of(said.file, scenario, root)
    if path.suffix == ".parquet":
        return tuple(read_parquet(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as cause:
        raise _path_error(
            said.file, f"cannot be read: {cause}", "check its rights and its encoding"
        ) from cause
    return _csv_rows(text, said.file.at) if path.suffix == ".csv" else _json_rows(text, said.file)


def file_of(said: LocatedText, scenario: Scenario, root: Path) -> Path:
    """Return the file that a scenario names; raise W1704 when it may not be read or is not there."""
    name = said.text
    if scenario.file is None:
        raise _path_error(said, "has no folder to start from", "a scenario without a file has rows only")
    if Path(name).is_absolute():
        raise _path_error(said, "is absolute", "write it relative to the scenario")
    path = (root / scenario.file).parent / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise _path_error(said, "leads out of the workspace", "put the file into the workspace")
    if path.suffix not in FILES:
        raise _path_error(said, f"ends in {path.suffix!r}", f"files are {format_list(FILES)}")
    if not path.is_file():
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        close = find_similar(path.name, beside, most=1)
        hint = f"did you mean {close[0]!r}?" if close else "write it relative to the scenario"
        raise _path_error(said, "is not there", hint)
    return path


def _path_error(said: LocatedText, why: str, help: str) -> ScenarioError:
    return ScenarioError(f"the file {said.text!r} {why}", code="W1704", help=help, at=said.at)


def _csv_rows(text: str, at: Source | None) -> tuple[Mapping[str, Any], ...]:
    lines = list(csv.reader(io.StringIO(text.strip("\n")), skipinitialspace=True))
    if not lines or not any(lines[0]):
        raise ScenarioError("the CSV has no line with column names", code="W1702", help="write one", at=at)
    names = [name.strip() for name in lines[0]]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ScenarioError(
            f"the CSV has the column {twice[0]!r} twice", code="W1702", help="keep one of them", at=at
        )
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        if len(line) != len(names):
            raise ScenarioError(
                f"line {number} of the CSV has {len(line)} fields, its head has {len(names)}",
                code="W1702",
                help="an empty field is NULL; quote a text that holds a comma",
                at=at,
            )
        rows.append({name: value if value != "" else None for name, value in zip(names, line, strict=True)})
    return tuple(rows)


def _json_rows(text: str, said: LocatedText) -> tuple[Mapping[str, Any], ...]:
    try:
        whole = text.strip()
        found = (
            json.loads(whole, parse_float=Decimal)
            if whole.startswith("[")
            else [json.loads(line, parse_float=Decimal) for line in whole.splitlines() if line.strip()]
        )
    except ValueError as cause:
        raise ScenarioError(
            f"the file {said.text!r} is no JSON: {cause}", code="W1702", help="one object a line", at=said.at
        ) from cause
    if not all(isinstance(row, dict) for row in found):
        raise ScenarioError(
            f"the file {said.text!r} holds something else than rows",
            code="W1702",
            help="one object a line",
            at=said.at,
        )
    return tuple(found)


def typed_rows(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, DType], said: Rows, what: str, *, given: bool
) -> tuple[dict[str, Any], ...]:
    """Return rows with values in the types of their columns; raise W1702 with everything that does not fit.

    Given rows must fit as they are; an expected value may have more digits than any actual one.
    """
    problems: dict[tuple[str, str], Diagnostic] = {}
    found = []
    for i, row in enumerate(rows):
        values = {}
        for name, value in row.items():
            at = said.at.of(f"rows.{i}.{name}") if said.rows is not None else _place(said)
            if name not in columns:
                close = find_similar(name, columns, most=1)
                hint = f"did you mean {close[0]!r}?" if close else f"columns are {format_list(columns)}"
                problem = Diagnostic("W1702", f"{what} has no column {name!r}", help=hint, at=at)
                problems.setdefault((name, "column"), problem)
                continue
            try:
                values[name] = typed_value(value, columns[name])
            except ScenarioError as error:
                where = f"row {i + 1} of {what}, column {name!r}: "
                text = where + error.message
                problems[name, str(i)] = Diagnostic("W1702", text, help=error.help, at=at)
                continue
            if given and not fits(values[name], columns[name]):
                text = f"row {i + 1} of {what}, column {name!r}: {value} does not fit into {columns[name]}"
                problems[name, str(i)] = Diagnostic("W1702", text, help="nothing is rounded", at=at)
        found.append(values)
    if problems:
        raise ScenarioError(problems.values())
    return tuple(found)


def _place(said: Rows) -> Source | None:
    part = said.file or said.csv
    return said.at.whole if part is None else part.at
