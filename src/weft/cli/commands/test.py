"""``weft test``: run the scenarios of a workspace; ``test record`` makes one of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.call import Call, call_of, reading, sessions
from weft.cli.commands.runs import reader_of
from weft.cli.envelope import INVALID, OK, UNMET, Envelope
from weft.cli.said import Run
from weft.cli.terminal import say
from weft.core.names import find_similar, format_list, quote_for_shell
from weft.errors import EntityError, WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.scenario import Scenario
    from weft.pipelines.model.workspace import Workspace
    from weft.pipelines.scenarios.result import ScenarioResult
FORMATS = ("human", "json", "junit")


def scenarios(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Names or files; all by default.")
    ] = None,
    *,
    format: Annotated[str, typer.Option("--format", help="human, json or junit.")] = "human",
    out: Annotated[Path | None, typer.Option("--out", help="Write the report to a file.")] = None,
    snapshot: Annotated[
        bool, typer.Option("--snapshot/--no-snapshot", help="Keep what came out of failures.")
    ] = True,
) -> Envelope:
    """Run scenarios: what is given, a period, and what is expected to come out."""
    call = call_of(context)
    if format not in FORMATS:
        raise WorkspaceError(
            f"there is no format {format!r}", code="W1803", help=f"it is one of {format_list(FORMATS)}"
        )
    loaded = call.loaded()
    unread = [f for f in loaded.errors if not _is_a_project(f.at.file if f.at else None)]
    if unread:
        raise EntityError(unread)
    workspace = loaded.workspace
    wanted = chosen(workspace.scenarios, names or ())
    results = _results(call, workspace, wanted, snapshot=snapshot)
    return _answer(call, results, format, out)


def _is_a_project(file: str | None) -> bool:
    return file is not None and file.startswith("projects/")


def chosen(known: Sequence[Scenario], names: Sequence[str]) -> tuple[Scenario, ...]:
    """Return the scenarios of the given names or files, all when none is given."""
    found: list[Scenario] = []
    for name in names:
        by_name = [s for s in known if name in (s.name, *_files(s))]
        if not by_name:
            close = find_similar(name, [s.name for s in known], most=1)
            raise WorkspaceError(
                f"there is no scenario {name!r}",
                code="W1802",
                help=f"did you mean {close[0]!r}?"
                if close
                else f"scenarios are {format_list([s.name for s in known]) or 'written in scenarios/'}",
            )
        found += by_name
    return tuple(dict.fromkeys(found)) if names else tuple(known)


def _files(scenario: Scenario) -> tuple[str, ...]:
    file = scenario.file
    return () if file is None else (file.as_posix(), file.name, file.stem)


def _results(
    call: Call, workspace: Workspace, wanted: Sequence[Scenario], *, snapshot: bool
) -> tuple[ScenarioResult, ...]:
    from weft.pipelines.scenarios.execute import run_scenarios
    from weft.pipelines.scenarios.reports import format_result_lines, write_snapshot

    def on_result(result: ScenarioResult) -> None:
        if not (call.json or call.quiet):
            say(format_result_lines(result)[0])

    with (
        reading(workspace.settings, workspace.root) as reader,
        sessions(call, workspace) as opener,
    ):
        # On a terminal people wait: each scenario is told when it is done, the report comes at the end.
        results = run_scenarios(
            wanted, workspace, reader=reader, session=opener, on_result=on_result if call.verbose else None
        )
    kept = {s.name for s in wanted if s.snapshot} if snapshot else set()
    return tuple(
        replace(r, snapshot=write_snapshot(r, workspace.root)) if r.name in kept else r for r in results
    )


def _answer(call: Call, results: Sequence[ScenarioResult], format: str, out: Path | None) -> Envelope:
    from weft.pipelines.scenarios.reports import format_junit, format_results, to_json

    code = OK if all(r.status == "pass" for r in results) else UNMET
    envelope = Envelope(
        command="test",
        data=to_json(results),
        diagnostics=tuple(d for r in results for d in r.diagnostics) if call.json else (),
        exit_code=code,
        shows_rows=True,
        next=("write one in scenarios/, or `weft test record RUN --keys COLUMN=VALUE`",)
        if not results
        else (),
    )
    people = format_results(results, verbose=call.verbose)
    text = {"human": people, "json": envelope.to_json(), "junit": format_junit(results)}[format]
    if out is None:
        return replace(envelope, text=text)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    except OSError as cause:
        raise WorkspaceError(
            f"{out} cannot be written: {cause.strerror}", code="W1803", help="name another file with --out"
        ) from cause
    return replace(envelope, text=people if format != "human" else str(out))


def record(
    context: typer.Context,
    run: Run,
    *,
    keys: Annotated[
        str, typer.Option("--keys", metavar="COLUMN=VALUE,...", help="Which rows, as in journal_id=JE-002.")
    ],
    name: Annotated[str | None, typer.Option("--name", help="Of the scenario.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Its file, below the workspace.")] = None,
) -> Envelope:
    """Write a scenario with a few rows of a run, and run it once."""
    from weft.pipelines.scenarios.record import record as recorded

    call = call_of(context)
    chosen_keys = keys_of(keys)
    workspace = call.workspace()
    with reading(workspace.settings, workspace.root) as reader, sessions(call, workspace) as opener:
        store = reader_of(reader)
        store.run(run)
        made = recorded(run, chosen_keys, workspace, reader=store, session=opener(), name=name, out=out)
    return Envelope(
        command="test",
        data={"file": made.file.as_posix(), "rows": made.rows, "scenario": made.result.to_dict()},
        diagnostics=made.result.diagnostics,
        text=f"{made.file} ({made.rows} rows): {made.result.status}",
        exit_code=OK if made.result.status == "pass" else INVALID,
        next=(f"weft test {quote_for_shell(made.result.name)}",),
    )


def keys_of(said: str) -> Mapping[str, tuple[str, ...]]:
    """Return the values of columns that an option says.

    >>> keys_of("journal_id=JE-002,journal_id=JE-003,line_number=1")
    {'journal_id': ('JE-002', 'JE-003'), 'line_number': ('1',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in said.split(","):
        column, equals, value = part.partition("=")
        if not equals or not column.strip():
            raise WorkspaceError(
                f"--keys {part!r} is no column and value",
                code="W1803",
                help="as in --keys journal_id=JE-002,line_number=1",
            )
        found[column.strip()] = (*found.get(column.strip(), ()), value.strip())
    return found
