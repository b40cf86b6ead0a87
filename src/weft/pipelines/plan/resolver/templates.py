"""Templates of paths, tables and requests: ``{{TOKEN}}`` is replaced with a value that is safe there.

Before::

    {{YYYY}} / {{table_name}} / {{MM}}.parquet

After::

    2026/orders/01.parquet

A value is a single name.  In a path it contains no separator and no wildcard, in a table name no quote; in a request it is
percent-encoded.  A single brace is literal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal
from urllib.parse import quote

from weft.core.calendar import Period
from weft.core.names import WORD, format_list, is_plain_text, suggest
from weft.core.source import Source
from weft.errors import Diagnostic, ResolutionError
from weft.pipelines.model.dataset import Dataset, TableDef

Kind = Literal["path", "table", "url", "text"]

PERIOD_TOKENS = ("period", "period_id", "period_name", "identifier", "YYYY", "QQ", "MM")
TOKENS = ("table_name", "dataset_id", "dataset_name", "dataset_version", "datasource_id", *PERIOD_TOKENS)
"""All tokens that a template may contain."""

# Also braces without a partner, which are errors: a typing mistake must not become part of a path.
_BRACES = re.compile(r"\{\{(.*?)\}\}|\{\{|\}\}", re.DOTALL)
_SEPARATORS = "/\\"
_REFUSED: dict[Kind, tuple[str, str]] = {
    "path": (_SEPARATORS + "*?[]{}", "a separator or a wildcard"),
    "table": (_SEPARATORS + "'\"`", "a separator or a quote"),
    "url": ("", ""),
    "text": ("", ""),
}


def tokens_for(dataset: Dataset, table: TableDef, period: Period, *, datasource_id: str) -> dict[str, str]:
    """Return the value of each token that `period` has.

    ``YYYY``, ``QQ`` and ``MM`` are included when the period is within one year, quarter or month.
    """
    return {
        "table_name": table.name,
        "dataset_id": dataset.id,
        "dataset_name": dataset.name,
        "dataset_version": str(dataset.version),
        "datasource_id": datasource_id,
        **period_tokens(period),
    }


def period_tokens(period: Period) -> dict[str, str]:
    """Return the value of each token that depends on the period alone."""
    return {**dict.fromkeys(("period_id", "period_name", "identifier"), period.identifier), **period.tokens()}


def render(
    template: str, tokens: Mapping[str, str], *, kind: Kind, at: Source | None = None, level: str = "period"
) -> str:
    """Return the template with each token replaced by its value.

    `level` is the level of the period, for the message about a token that it does not have.

    >>> render("{{YYYY}}/{{ table_name }}.csv", {"YYYY": "2026", "table_name": "sales report"}, kind="path")
    '2026/sales report.csv'
    >>> render("{{MM}}", {"YYYY": "2026"}, kind="path", level="quarter")
    Traceback (most recent call last):
        ...
    weft.errors.ResolutionError: error[W1310]: a quarter has no MM
     = help: give the rule `data_level: month`, or use 'YYYY'
    """
    problems: list[Diagnostic] = []

    def value(match: re.Match[str]) -> str:
        name = (match[1] or "").strip()
        problem = check_token(match, tokens, level) or _unsafe(name, tokens[name], kind)
        if problem is None:
            return quote(tokens[name], safe="") if kind == "url" else tokens[name]
        problems.append(_place(problem, template, match, at))
        return ""

    # In one pass, so that braces inside a value are not read as a token.
    rendered = _BRACES.sub(value, template)
    if problems:
        raise ResolutionError(problems)
    return rendered


def check_template(template: str, at: Source | None = None) -> tuple[Diagnostic, ...]:
    """Return the findings about a template that hold for any period: unknown or invalid tokens."""
    findings = []
    known = dict.fromkeys(TOKENS, "")
    for braces in _BRACES.finditer(template):
        problem = check_token(braces, known, "period")
        if problem is not None:
            findings.append(_place(problem, template, braces, at))
    return tuple(findings)


def _place(problem: Diagnostic, template: str, braces: re.Match[str], at: Source | None) -> Diagnostic:
    return problem if at is None else replace(problem, at=at.inner(template, braces.start(), braces.end()))


def check_token(match: re.Match[str], tokens: Mapping[str, str], level: str) -> Diagnostic | None:
    """Return why the braces do not contain a token with a value, or None."""
    inner = match[1]
    if inner is None:
        other = "}}" if match[0] == "{{" else "{{"
        return Diagnostic("W1310", f"{match[0]!r} has no matching {other!r}", help="write a token as {{YYYY}}")
    name = inner.strip()
    if not WORD.fullmatch(name):
        what = f"{'invalid' if name else 'empty'} token {match[0]!r}"
        return Diagnostic("W1310", what, help=f"tokens are {format_list(TOKENS)}")
    if name in tokens:
        return None
    if name in TOKENS:
        article = "an" if level[:1] in "aeiou" else "a"
        finer = {"MM": "month", "QQ": "quarter", "YYYY": "year"}.get(name, "month")
        # What to use instead must be a token that this period has.
        there = [t for t in PERIOD_TOKENS if t in tokens and t in ("YYYY", "QQ")] or ["period"]
        return Diagnostic(
            "W1310",
            f"{article} {level} has no {name}",
            help=f"give the rule `data_level: {finer}`, or use {' or '.join(map(repr, there))}",
        )
    return Diagnostic("W1310", f"unknown token {name!r}", help=suggest(name, TOKENS, "tokens are", most=1))


def _unsafe(name: str, value: str, kind: Kind) -> Diagnostic | None:
    """Return why the value of a token is not allowed in a template of that kind, or None."""
    signs, what = _REFUSED[kind]
    if not value:
        reason = "is empty"
    elif not is_plain_text(value):
        reason = "contains a control character"
    elif ".." in value:
        reason = "contains '..'"
    elif any(sign in value for sign in signs):
        reason = f"contains {what}"
    elif kind == "table" and value != value.strip():
        reason = "starts or ends with a space"
    else:
        return None
    return Diagnostic(
        "W1311",
        f"the value {value!r} of {name} {reason}",
        help=f"a value in a {kind} is one plain name: rename it, or write the {kind} without the token",
    )
