"""Targets of outputs: a folder for each period, one file, or a table.

::

    {datasource_id: warehouse, table: gl}       out/gl/period=2026-01        files of the datasource's type
    {path: exports/gl, format: csv}             exports/gl/period=2026-01
    {path: "exports/{{YYYY}}/{{MM}}"}           exports/2026/01              the path contains the period
    {path: gl.csv}                              gl.csv                       one file, replaced by each run
    a draft project                             .weft/sandbox/<project>/...  regardless of the destination
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from weft.core.names import is_plain_text, suggest
from weft.core.paths import name_problem, resolve_outside
from weft.core.source import Source
from weft.errors import ResolutionError
from weft.io.connectors import file_kinds, find_connector
from weft.io.datasource import DataSource
from weft.io.location import plain_path
from weft.io.options import POSTGRES_BYTES, csv_options
from weft.pipelines.model.operation import Destination, Operation, Output
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.resolved import Target
from weft.pipelines.plan.resolver.templates import PERIOD_TOKENS, check_template, period_tokens, render

_TOKEN = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_UNSAFE = "/\\'\"`"


def resolve_target(op: Operation, output: Output, context: PlanContext) -> Target | None:
    """Return the target of an output; None when it is invalid, which is reported."""
    destination = output.destination
    site = op.at.of("arguments.destination")
    if destination.path is not None:
        if destination.datasource is not None or destination.table is not None:
            return _report_invalid("it names a path and a table", "leave one of them out", site, context)
        return _path_target(destination, context, destination.at.of("path") or site)
    if destination.datasource is None or not destination.datasource.strip():
        return _report_invalid("it names no datasource", "write {datasource_id, table} or {path}", site, context)
    if destination.table is None or not destination.table.strip():
        return _report_invalid("it names no table", "write {datasource_id, table} or {path}", site, context)
    source = context.catalog.datasource(destination.datasource)
    at = destination.at.of("datasource_id") or site
    if source is None:
        names = [s.id for s in context.catalog.workspace.datasources]
        help = suggest(destination.datasource, names, "datasources are", most=1)
        context.report("W1020", f"unknown datasource {destination.datasource!r}", help, at)
        return None
    if source.status == "disabled":
        context.report("W1315", f"datasource {source.id!r} is disabled", "set `status: active` in its file", at)
        return None
    return _table_target(source, destination, context, site)


def _report_invalid(problem: str, help: str, at: Source | None, context: PlanContext) -> Target | None:
    context.report("W1417", f"invalid destination: {problem}", help, at)
    return None


def _table_target(
    source: DataSource, destination: Destination, context: PlanContext, at: Source | None
) -> Target | None:
    table = str(destination.table)
    schema = destination.schema or str(source.options.get("schema", "")) or None
    sink = find_connector(source.type).sink
    for name in filter(None, (table, schema)):
        if not _is_plain(name) or (sink == "files" and name_problem(name, patterns=False)):
            context.report(
                "W1311",
                f"invalid table name {name!r}",
                "a name contains no separator, no quote and no '..'",
                destination.at.of("table") or at,
            )
            return None
    if destination.format is not None and destination.format != source.type:
        context.report(
            "W1417",
            f"the destination has format {destination.format!r}, but datasource {source.id!r} is {source.type}",
            "leave `format` out, or name another datasource",
            destination.at.of("format") or at,
        )
        return None
    if not _is_writable(source, (table, schema), context, destination.at.of("datasource_id") or at):
        return None
    period = _period(context)
    encoding = str(source.options.get("encoding") or "UTF-8")
    if context.draft:
        format = source.type if sink == "files" else "parquet"
        kept = _sandbox_target(table, format, context, at)
        return None if kept is None else replace(kept, csv=csv_options(source), encoding=encoding)
    if sink == "files":
        prefix = str(source.options.get("path_prefix", ""))
        if not _is_local(prefix, at, context):
            return None
        folder = _join_path(plain_path(prefix), table)
        location = _join_path(folder, f"period={period or '{{period}}'}")
        if not _check_inside(location, folder, context, at):
            return None
        return Target(
            kind="files",
            location=location,
            format=source.type,
            datasource_id=source.id,
            table=table,
            period=period,
            csv=csv_options(source),
            encoding=encoding,
        )
    where = ".".join(filter(None, (schema, table)))
    return Target(
        kind="jdbc" if sink == "jdbc" else "table",
        location=f"{source.id}:{where}" if sink == "jdbc" else where,
        format=source.type,
        datasource_id=source.id,
        table=table,
        schema=schema,
        period=period,
    )


def _is_writable(source: DataSource, names: tuple[str | None, ...], context: PlanContext, at: Source | None) -> bool:
    """Whether Weft can write to a datasource; if not, the reason is reported."""
    connector = find_connector(source.type)
    if connector.sink is None:
        context.report(
            "W1509",
            f"datasource {source.id!r} is of type {source.type}, which Weft can only read",
            "write files, a table of Spark's catalog or a table of PostgreSQL",
            at,
        )
        return False
    if (refusal := connector.refuses(source)) is not None:
        context.report(refusal.code, refusal.message, refusal.help, at)
        return False
    return connector.sink != "jdbc" or check_names(tuple(filter(None, names)), context, at)


def check_names(names: Iterable[str], context: PlanContext, at: Source | None) -> bool:
    """Report names that PostgreSQL would truncate: it keeps 63 bytes, so two long names can become the same."""
    long = [name for name in names if len(name.encode()) > POSTGRES_BYTES]
    for name in long:
        context.report(
            "W1421",
            f"{name!r} has {len(name.encode())} bytes, and PostgreSQL cuts names off after {POSTGRES_BYTES}",
            "choose a shorter name; a character outside of ASCII has two bytes or more",
            at,
        )
    return not long


def _path_target(destination: Destination, context: PlanContext, at: Source | None) -> Target | None:
    path = str(destination.path).strip()
    if not path.strip("/"):
        return _report_invalid("its path is empty", "write a folder or a file", at, context)
    ending = PurePosixPath(path).suffix.removeprefix(".")
    single = ending in file_kinds()
    format = destination.format or (ending if single else "parquet")
    if single and format != ending:
        context.report("W1417", f"the path ends in .{ending}, the format is {format}", "leave `format` out", at)
        return None
    if not _is_local(path, at, context):
        return None
    named = any(token in PERIOD_TOKENS for token in _TOKEN.findall(path))
    rendered = _render_path(plain_path(path), context, at)
    if rendered is None:
        return None
    if ".." in PurePosixPath(rendered).parts or not is_plain_text(rendered):
        context.report(
            "W1311", f"invalid path {rendered!r}: it contains '..' or a control character", "write it without", at
        )
        return None
    if single and not named:
        context.warn(
            "W1511", f"{rendered} is one file: a run of another period replaces it", "put {{period}} into its name", at
        )
    period = _period(context)
    folder = rendered
    # Also an absolute path: a draft must not be able to overwrite anything outside of the sandbox.
    if context.draft:
        folder = context.catalog.settings.sandbox.path
        rendered = _join_path(folder, context.project.name, rendered.lstrip("/"))
    if not single and not named:
        rendered = _join_path(rendered, f"period={period or '{{period}}'}")
    if not _check_inside(rendered, folder, context, at):
        return None
    holds_all_periods = single and not named
    return Target(
        kind="file" if single else "files",
        location=rendered,
        format=format,
        period=None if holds_all_periods else period,
    )


def _render_path(path: str, context: PlanContext, at: Source | None) -> str | None:
    if context.period is None:
        problems = check_template(path, at)
        if problems:
            context.errors.add(ResolutionError(problems))
            return None
        return path
    period = context.period
    # Without tokens of a dataset or a table: an output has neither before it is registered.
    try:
        return render(path, period_tokens(period), kind="path", at=at, level=period.level)
    except ResolutionError as problem:
        context.errors.add(problem)
        return None


def _sandbox_target(table: str, format: str, context: PlanContext, at: Source | None) -> Target | None:
    period, sandbox = _period(context), context.catalog.settings.sandbox.path
    folder = _join_path(sandbox, context.project.name, table, f"period={period or '{{period}}'}")
    if not _check_inside(folder, sandbox, context, at):
        return None
    return Target(kind="files", location=folder, format=format, table=table, period=period)


def _check_inside(location: str, folder: str, context: PlanContext, at: Source | None) -> bool:
    """Whether a target is below its folder and, if that is relative, in the workspace; links are followed.

    Names are checked when files are parsed; this check also covers plans that were not built from files.
    """
    root = context.catalog.workspace.root
    # An absolute destination may be anywhere, but a link inside it may not lead elsewhere.
    lexical = os.path.normpath(location), os.path.normpath(folder)
    inside = PurePosixPath(lexical[0]).is_relative_to(lexical[1])
    base = root / folder if PurePosixPath(folder).is_absolute() else root
    led = resolve_outside(base, root / location)
    if inside and led is None:
        return True
    context.report(
        "W1311",
        f"the output {location!r} is outside of {str(base) if inside else folder!r}"
        + (f": a link leads to {str(led)!r}" if inside else ""),
        "remove '..' or the link from the path, or write an absolute path",
        at,
    )
    return False


def _period(context: PlanContext) -> str | None:
    return None if context.period is None else context.period.identifier


def _join_path(*parts: str) -> str:
    return "/".join(p.rstrip("/") if i == 0 else p.strip("/") for i, p in enumerate(parts) if p)


def _is_plain(name: str) -> bool:
    plain = is_plain_text(name) and ".." not in name and name == name.strip()
    return plain and not any(sign in name for sign in _UNSAFE)


def _is_local(path: str, at: Source | None, context: PlanContext) -> bool:
    scheme = _SCHEME.match(path)
    if scheme is None or scheme[0].lower() == "file://":
        return True
    context.report(
        "W1509",
        f"files in {scheme[0]} cannot be replaced atomically",
        "write to a folder of this machine or of a mounted disk, or to a table",
        at,
    )
    return False
