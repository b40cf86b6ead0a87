"""Results of scenarios, as text, as JSON and as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from xml.sax.saxutils import escape, quoteattr

from weft.core.documents import Document, round_seconds
from weft.errors import Diagnostic, ScenarioError
from weft.pipelines.scenarios.compare import Mismatch, describe_mismatch
from weft.pipelines.scenarios.values import plain

Status = Literal["pass", "fail", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult(Document):
    """One scenario after it ran: ``pass``, ``fail`` with mismatches, ``error`` with diagnostics.

    `key` are the columns by which reports name a row; `actual` the actual rows.
    """

    DOCUMENT: ClassVar = ("name", "file", "status", "seconds", "mismatches", "error", "diagnostics", "snapshot")

    name: str
    file: Path | None
    status: Status
    seconds: Annotated[float, round_seconds]
    mismatches: tuple[Mismatch, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    actual: tuple[Mapping[str, Any], ...] | None = None
    snapshot: Path | None = None
    key: tuple[str, ...] = ()

    @property
    def error(self) -> Diagnostic | None:
        """The first finding of a scenario that could not run."""
        return self.diagnostics[0] if self.diagnostics else None


def count_results(results: Sequence[ScenarioResult]) -> dict[str, int]:
    """Return the number of scenarios that passed, failed, or ended in an error."""
    status = [r.status for r in results]
    return {"passed": status.count("pass"), "failed": status.count("fail"), "errors": status.count("error")}


SHOWN = 5
"""How many differences a report shows of one scenario."""

SNAPSHOTS = Path("scenarios") / ".snapshots"
_WORDS = {"pass": "PASS", "fail": "FAIL", "error": "ERROR"}
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
_WIDTH = 78


def format_results(results: Sequence[ScenarioResult], *, verbose: bool = False) -> str:
    """Return a line for each scenario, its differences below it, and a summary."""
    lines: list[str] = []
    for result in results:
        lines += format_result_lines(result, verbose=verbose)
    lines.append(summary(results))
    return "\n".join(lines)


def format_result_lines(result: ScenarioResult, *, verbose: bool = False) -> list[str]:
    """Return one scenario as lines of text."""
    head = f"{_WORDS[result.status]:<5} {result.name}"
    lines = [f"{head:<{_WIDTH}} {result.seconds:.1f} s"]
    shown = result.mismatches if verbose else result.mismatches[:SHOWN]
    for mismatch in shown:
        lines += [f"  {line}" for line in describe_mismatch(mismatch, result.key)]
    rest = len(result.mismatches) - len(shown)
    if rest:
        lines.append(f"  and {rest} more")
    for diagnostic in result.diagnostics:
        lines += [f"  {line}" for line in str(diagnostic).splitlines()]
    if result.snapshot is not None:
        lines.append(f"  actual rows: {result.snapshot.as_posix()}")
    return lines


def summary(results: Sequence[ScenarioResult]) -> str:
    """Return how many scenarios passed and how many did not.

    >>> summary(())
    'no scenarios'
    """
    if not results:
        return "no scenarios"
    numbers = count_results(results)
    parts = [f"{numbers['passed']} passed"]
    parts += [f"{numbers['failed']} failed"] if numbers["failed"] else []
    parts += [f"{numbers['errors']} with errors"] if numbers["errors"] else []
    return ", ".join(parts)


def to_json(results: Sequence[ScenarioResult]) -> dict[str, Any]:
    """Return the `data` of the document that ``weft test --json`` prints."""
    return {"scenarios": [r.to_dict() for r in results], **count_results(results)}


def format_junit(results: Sequence[ScenarioResult]) -> str:
    """Return the results as JUnit XML."""
    numbers = count_results(results)
    total = sum(r.seconds for r in results)
    head = f'<testsuite name="weft" tests="{len(results)}" failures="{numbers["failed"]}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'{head} errors="{numbers["errors"]}" time="{total:.3f}">']
    for result in results:
        where = "scenarios" if result.file is None else result.file.with_suffix("").as_posix()
        case = f'  <testcase classname={quoteattr(where)} name={quoteattr(result.name)} time="{result.seconds:.3f}"'
        if result.status == "pass":
            lines.append(f"{case}/>")
            continue
        tag = "failure" if result.status == "fail" else "error"
        text = "\n".join(format_result_lines(result)[1:])
        first = result.mismatches[0].kind if result.mismatches else result.diagnostics[0].message
        lines += [
            f"{case}>",
            f"    <{tag} message={quoteattr(_clean(first))}>{escape(_clean(text))}</{tag}>",
            "  </testcase>",
        ]
    return "\n".join([*lines, "</testsuite>"]) + "\n"


def _clean(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "?", text)


def kebab(name: str) -> str:
    """Return a name as a file name.

    >>> kebab("EUR only: ../rates"), kebab("***")
    ('eur-only-rates', 'scenario')
    """
    return _NOT_PLAIN.sub("-", name.lower()).strip("-") or "scenario"


def write_snapshot(result: ScenarioResult, root: Path) -> Path | None:
    """Write the actual rows of a failed scenario to a file and return it."""
    if result.actual is None or result.status == "pass":
        return None
    file = SNAPSHOTS / f"{kebab(result.name)}-actual.yml"
    try:
        (root / SNAPSHOTS).mkdir(parents=True, exist_ok=True)
        (root / file).write_text(rows_yaml(result.actual), encoding="utf-8")
    except OSError as cause:
        raise ScenarioError(
            f"{file} cannot be written: {cause.strerror}", code="W1704", help="pass `--no-snapshot` to write nothing"
        ) from cause
    return file


def rows_yaml(rows: Sequence[Any]) -> str:
    """Return rows as the `rows` of a scenario."""
    lines = ["rows:" if rows else "rows: []", *(f"  - {row_yaml(row)}" for row in rows)]
    return "\n".join(lines) + "\n"


def row_yaml(row: Mapping[str, Any]) -> str:
    """Return a row as YAML in one line."""
    return "{" + ", ".join(f"{name}: {yaml_cell(value)}" for name, value in row.items()) + "}"


def yaml_cell(value: Any) -> str:
    """Return a value as YAML in one line; everything but numbers, booleans and NULL is a quoted string.

    >>> yaml_cell(None), yaml_cell(3), yaml_cell("JE-1"), yaml_cell({"a": "b"})
    ('null', '3', '"JE-1"', '{"a": "b"}')
    """
    simple = plain(value)
    if simple is None:
        return "null"
    if isinstance(simple, bool):
        return "true" if simple else "false"
    if isinstance(simple, int):
        return str(simple)
    if isinstance(simple, dict):
        return "{" + ", ".join(f"{_quoted(k)}: {yaml_cell(v)}" for k, v in sorted(simple.items())) + "}"
    if isinstance(simple, list):
        return "[" + ", ".join(yaml_cell(v) for v in simple) + "]"
    return _quoted(str(simple))


def _quoted(text: str) -> str:
    # Not `json.dumps`: YAML has no surrogate pairs, and its escapes of other planes have eight digits.
    signs = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    out = "".join(signs.get(c, c if c.isprintable() else f"\\U{ord(c):08x}") for c in text)
    return f'"{out}"'
