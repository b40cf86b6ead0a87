"""Rows and values of scenarios: read from the scenario or a file, converted to the types of their columns, compared.

A file is relative to the scenario; a path that is absolute or leads out of the workspace is rejected.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from weft.core import types
from weft.core.names import find_similar, format_list, suggest
from weft.core.source import Source
from weft.core.types import DType
from weft.errors import Diagnostic, EvaluationError, ScenarioError
from weft.expr.values import fit
from weft.pipelines.model.scenario import Rows, Scenario
from weft.pipelines.model.values import LocatedText

_WHOLE: Mapping[DType, int] = {types.INTEGER: 32, types.LONG: 64}
_BOOLEANS = {"true": True, "false": False}


def typed_value(value: Any, dtype: DType, at: Source | None = None) -> Any:
    """Return a value in the type of a column; raise `ScenarioError` when it is invalid.

    >>> typed_value("1.50", types.Decimal(18, 2)), typed_value("2026-01-31", types.DATE)
    (Decimal('1.50'), datetime.date(2026, 1, 31))
    """
    if value is None:
        return None
    try:
        typed = _read(value, dtype)
    except (ValueError, InvalidOperation, ArithmeticError, TypeError):
        typed = NotImplemented
    if typed is NotImplemented:
        raise _invalid(f"{_format(value)} is not a valid {dtype}", f"write a value of type {dtype}", at)
    return typed


def _invalid(message: str, help: str, at: Source | None) -> ScenarioError:
    return ScenarioError(message, code="W1702", help=help, at=at)


def _format(value: Any) -> str:
    return repr(str(value)) if isinstance(value, str) else str(getattr(value, "text", value))


def _read(value: Any, dtype: DType) -> Any:
    if isinstance(dtype, types.Map):
        entries = value.items() if isinstance(value, Mapping) else json.loads(_text(value)).items()
        return {typed_value(k, dtype.key): typed_value(v, dtype.value) for k, v in entries}
    if isinstance(dtype, types.Array):
        items = value if isinstance(value, Sequence) and not isinstance(value, str) else json.loads(_text(value))
        return [typed_value(v, dtype.element) for v in items]
    if isinstance(value, Mapping | list | tuple):
        return NotImplemented
    if isinstance(dtype, types.Decimal):
        number = Decimal(_text(value))  # the text of a boolean is not a number; NaN and infinity are none of SQL's
        return number if number.is_finite() else NotImplemented
    if dtype in _WHOLE:
        return _whole(value, _WHOLE[dtype])
    return _simple(value, dtype)


def _simple(value: Any, dtype: DType) -> Any:
    if dtype == types.STRING:
        return _text(value)
    if dtype == types.BOOLEAN:
        return value if isinstance(value, bool) else _BOOLEANS.get(_text(value).lower(), NotImplemented)
    if dtype == types.DATE:
        return value if type(value) is dt.date else dt.date.fromisoformat(_text(value))
    if dtype in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        moment = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(_text(value))
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    if dtype in (types.DOUBLE, types.FLOAT):
        return NotImplemented if isinstance(value, bool) else float(_text(value))
    return NotImplemented


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(getattr(value, "text", value))


def _whole(value: Any, bits: int) -> Any:
    if isinstance(value, bool):
        return NotImplemented
    number = Decimal(_text(value))
    if number != number.to_integral_value() or not -(1 << bits - 1) <= number < 1 << bits - 1:
        return NotImplemented
    return int(number)


def fits(value: Any, dtype: DType) -> bool:
    """Whether a column can hold a value without rounding it.

    >>> fits(Decimal("1.005"), types.Decimal(18, 2)), fits(Decimal("1.50"), types.Decimal(18, 2))
    (False, True)
    """
    if value is None or not isinstance(dtype, types.Decimal):
        return True
    try:
        return bool(fit(value, dtype) == value)
    except EvaluationError:
        return False


def equal(expected: Any, actual: Any, tolerance: Decimal | None = None) -> bool:
    """Whether two values of one column are equal; only doubles may differ by a tolerance.

    >>> equal(Decimal("1.0"), Decimal("1.00")), equal(0.1 + 0.2, 0.3), equal(0.1 + 0.2, 0.3, Decimal("0.001"))
    (True, False, True)
    """
    if expected is None or actual is None:
        return expected is actual
    if isinstance(expected, float) and isinstance(actual, float):
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        return expected == actual or (tolerance is not None and abs(expected - actual) <= float(tolerance))
    return bool(expected == actual)


def key_of(value: Any) -> Any:
    """Return a hashable key of a value: equal values have equal keys."""
    if isinstance(value, Mapping):
        return tuple(sorted((k, key_of(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(key_of, value))
    return ("nan",) if isinstance(value, float) and math.isnan(value) else value


def cell_text(value: Any) -> str:
    """Return a value as text for a file or a report."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(plain(value), sort_keys=True)
    return str(value)


def plain(value: Any) -> Any:
    """Return a value as JSON; decimals, dates and times are strings."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return cell_text(value)


def is_row_id(value: Any) -> bool:
    """Whether a value has the shape of a row's id."""
    try:
        return str(uuid.UUID(str(value))) == str(value)
    except ValueError:
        return False


FILES = (".csv", ".json", ".jsonl", ".parquet")
ReadParquet = Callable[[Path], Sequence[Mapping[str, Any]]]


def written_rows(
    source: Rows, scenario: Scenario, root: Path, read_parquet: ReadParquet
) -> tuple[Mapping[str, Any], ...]:
    """Return rows as written: in the scenario, as CSV text, or in a file."""
    if source.rows is not None:
        return tuple(dict(row) for row in source.rows)
    if source.csv is not None:
        return _csv_rows(source.csv.text, source.csv.at)
    assert source.file is not None  # noqa: S101  # one of the three is set
    path = file_of(source.file, scenario, root)
    if path.suffix == ".parquet":
        return tuple(read_parquet(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as cause:
        raise _path_error(source.file, f"cannot be read: {cause}", "check its permissions and its encoding") from cause
    return _csv_rows(text, source.file.at) if path.suffix == ".csv" else _json_rows(text, source.file)


def file_of(source: LocatedText, scenario: Scenario, root: Path) -> Path:
    """Return the file that a scenario names; raise W1704 when it may not be read or does not exist."""
    name = source.text
    if scenario.file is None:
        raise _path_error(source, "has no folder to start from", "a scenario without a file has rows only")
    if Path(name).is_absolute():
        raise _path_error(source, "is absolute", "write it relative to the scenario")
    path = (root / scenario.file).parent / name
    # Links are followed: a link in the workspace may lead out of it.
    if not path.resolve().is_relative_to(root.resolve()):
        raise _path_error(source, "leads out of the workspace", "put the file into the workspace")
    if path.suffix not in FILES:
        raise _path_error(source, f"ends in {path.suffix!r}", f"files are {format_list(FILES)}")
    if not path.is_file():
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        close = find_similar(path.name, beside, most=1)
        hint = f"did you mean {close[0]!r}?" if close else "write it relative to the scenario"
        raise _path_error(source, "does not exist", hint)
    return path


def _path_error(source: LocatedText, why: str, help: str) -> ScenarioError:
    return ScenarioError(f"the file {source.text!r} {why}", code="W1704", help=help, at=source.at)


def _csv_rows(text: str, at: Source | None) -> tuple[Mapping[str, Any], ...]:
    lines = list(csv.reader(io.StringIO(text.strip("\n")), skipinitialspace=True))
    if not lines or not any(lines[0]):
        raise _invalid("the CSV has no header", "write the column names in the first line", at)
    names = [name.strip() for name in lines[0]]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _invalid(f"the CSV has the column {twice[0]!r} twice", "keep one of them", at)
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        if len(line) != len(names):
            raise _invalid(
                f"line {number} of the CSV has {len(line)} fields, its header has {len(names)}",
                "an empty field is NULL; quote a string that contains a comma",
                at,
            )
        rows.append({name: value if value != "" else None for name, value in zip(names, line, strict=True)})
    return tuple(rows)


def _json_rows(text: str, source: LocatedText) -> tuple[Mapping[str, Any], ...]:
    try:
        whole = text.strip()
        rows = (
            json.loads(whole, parse_float=Decimal)
            if whole.startswith("[")
            else [json.loads(line, parse_float=Decimal) for line in whole.splitlines() if line.strip()]
        )
    except ValueError as cause:
        raise _invalid(
            f"the file {source.text!r} is not valid JSON: {cause}", "write one object per line", source.at
        ) from cause
    if not all(isinstance(row, dict) for row in rows):
        raise _invalid(f"the file {source.text!r} does not contain rows", "write one object per line", source.at)
    return tuple(rows)


def typed_rows(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, DType], source: Rows, what: str, *, given: bool
) -> tuple[dict[str, Any], ...]:
    """Return rows with values in the types of their columns; raise W1702 with every invalid value.

    Given rows must fit as they are; an expected value may have more digits than any actual one.
    """
    problems: dict[tuple[str, str], Diagnostic] = {}
    typed = []
    for i, row in enumerate(rows):
        values = {}
        for name, value in row.items():
            at = source.at.of(f"rows.{i}.{name}") if source.rows is not None else _location(source)
            if name not in columns:
                hint = suggest(name, columns, "columns are", most=1)
                problem = Diagnostic("W1702", f"{what} has no column {name!r}", help=hint, at=at)
                problems.setdefault((name, "column"), problem)
                continue
            try:
                values[name] = typed_value(value, columns[name])
            except ScenarioError as error:
                text = f"row {i + 1} of {what}, column {name!r}: {error.message}"
                problems[name, str(i)] = Diagnostic("W1702", text, help=error.help, at=at)
                continue
            if given and not fits(values[name], columns[name]):
                text = f"row {i + 1} of {what}, column {name!r}: {value} does not fit {columns[name]}"
                problems[name, str(i)] = Diagnostic("W1702", text, help="write a value that needs no rounding", at=at)
        typed.append(values)
    if problems:
        raise ScenarioError(problems.values())
    return tuple(typed)


def _location(source: Rows) -> Source | None:
    part = source.file or source.csv
    return source.at.whole if part is None else part.at
