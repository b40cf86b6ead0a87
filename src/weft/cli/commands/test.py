"""``weft test``: run the scenarios of a workspace; ``test record`` creates one from a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from weft.cli.call import (
    Call,
    RunArgument,
    check_choice,
    get_call,
    lazy_session,
    read_store,
    require_store,
    unknown_name,
    write_report,
)
from weft.cli.envelope import INVALID, OK, UNMET, Envelope
from weft.cli.terminal import format_count, print_stderr
from weft.core.names import quote_for_shell
from weft.errors import EntityError, WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.scenario import Scenario
    from weft.pipelines.model.workspace import Workspace
    from weft.pipelines.scenarios.reports import ScenarioResult
FORMATS = ("human", "json", "junit")


def run_tests(
    context: Context,
    names: Annotated[
        list[str] | None, Argument(metavar="NAME", help="Scenario names or files; all by default.")
    ] = None,
    *,
    format: Annotated[str, Option("--format", metavar="FORMAT", help="human, json or junit.")] = "human",
    out: Annotated[Path | None, Option("--out", metavar="FILE", help="Write the report to a file.")] = None,
    snapshot: Annotated[
        bool, Option("--snapshot/--no-snapshot", help="Keep the actual rows of failed scenarios.")
    ] = True,
) -> Envelope:
    """Run scenarios. Compares the rows of a project with the expected ones. To create one: weft test record."""
    call = get_call(context)
    check_choice("--format", format, FORMATS)
    loaded = call.load()
    # An invalid project fails its own scenarios; other invalid files fail all of them.
    errors = [f for f in loaded.errors if not (f.at and f.at.file and f.at.file.startswith("projects/"))]
    if errors:
        raise EntityError(errors)
    workspace = loaded.workspace
    scenarios = select_scenarios(workspace.scenarios, names or ())
    results = _run(call, workspace, scenarios, snapshot=snapshot)
    return _report(call, results, format, out)


def select_scenarios(scenarios: Sequence[Scenario], names: Sequence[str]) -> tuple[Scenario, ...]:
    """Return the scenarios of the given names or files, by default all."""
    selected: list[Scenario] = []
    for name in names:
        matches = [s for s in scenarios if name in (s.name, *_file_names(s))]
        if not matches:
            known = [s.name for s in scenarios]
            raise unknown_name("scenario", name, known, empty="add a file to scenarios/")
        selected += matches
    return tuple(dict.fromkeys(selected)) if names else tuple(scenarios)


def _file_names(scenario: Scenario) -> tuple[str, ...]:
    file = scenario.file
    return () if file is None else (file.as_posix(), file.name, file.stem)


def _run(
    call: Call, workspace: Workspace, scenarios: Sequence[Scenario], *, snapshot: bool
) -> tuple[ScenarioResult, ...]:
    from weft.pipelines.scenarios.execute import run_scenarios
    from weft.pipelines.scenarios.reports import format_result_lines, write_snapshot

    def print_result(result: ScenarioResult) -> None:
        if not (call.json or call.quiet):
            print_stderr(format_result_lines(result)[0])

    with read_store(workspace) as reader, lazy_session(call, workspace) as session:
        # With --verbose each result is printed as soon as it is known; the report comes at the end.
        results = run_scenarios(
            scenarios, workspace, reader=reader, session=session, on_result=print_result if call.verbose else None
        )
    kept = {s.name for s in scenarios if s.snapshot} if snapshot else set()
    return tuple(replace(r, snapshot=write_snapshot(r, workspace.root)) if r.name in kept else r for r in results)


def _report(call: Call, results: Sequence[ScenarioResult], format: str, out: Path | None) -> Envelope:
    from weft.pipelines.scenarios.reports import format_junit, format_results, to_json

    envelope = Envelope(
        command="test",
        data=to_json(results),
        diagnostics=tuple(d for r in results for d in r.diagnostics) if call.json else (),
        exit_code=OK if all(r.status == "pass" for r in results) else UNMET,
        shows_rows=True,
        next=() if results else ("add a file to scenarios/, or `weft test record RUN --keys COLUMN=VALUE`",),
    )
    summary = format_results(results, verbose=call.verbose)
    text = {"human": summary, "json": envelope.to_json(), "junit": format_junit(results)}[format]
    if out is None:
        return replace(envelope, text=text)
    write_report(out, text)
    return replace(envelope, text=summary if format != "human" else str(out))


def record(
    context: Context,
    run: RunArgument,
    *,
    keys: Annotated[
        str, Option("--keys", metavar="COLUMN=VALUE,...", help="Rows to keep, for example journal_id=JE-002.")
    ],
    name: Annotated[str | None, Option("--name", metavar="NAME", help="Name of the new scenario.")] = None,
    out: Annotated[Path | None, Option("--out", metavar="FILE", help="File of the scenario, in the workspace.")] = None,
) -> Envelope:
    """Create a scenario from a few rows of a run, and run it once."""
    from weft.pipelines.scenarios.record import record as record_scenario

    call = get_call(context)
    selected = parse_keys(keys)
    workspace = call.workspace()
    with read_store(workspace) as reader, lazy_session(call, workspace) as session:
        store = require_store(reader)
        store.run(run)  # an unknown run is reported before Spark starts
        scenario = record_scenario(run, selected, workspace, reader=store, session=session(), name=name, out=out)
    result = scenario.result
    return Envelope(
        command="test",
        data={"file": scenario.file.as_posix(), "rows": scenario.rows, "scenario": result.to_dict()},
        diagnostics=result.diagnostics,
        text=f"{scenario.file} ({format_count(scenario.rows, 'row')}): {result.status}",
        exit_code=OK if result.status == "pass" else INVALID,
        next=(f"weft test {quote_for_shell(result.name)}",),
    )


def parse_keys(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the values of each column in COLUMN=VALUE,COLUMN=VALUE.

    >>> parse_keys("journal_id=JE-002,journal_id=JE-003,line_number=1")
    {'journal_id': ('JE-002', 'JE-003'), 'line_number': ('1',)}
    """
    keys: dict[str, tuple[str, ...]] = {}
    for part in text.split(","):
        column, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not column:
            raise WorkspaceError(
                f"invalid key {part!r} for --keys",
                code="W1803",
                help="write COLUMN=VALUE, for example --keys journal_id=JE-002,line_number=1",
            )
        keys[column] = (*keys.get(column, ()), value)
    return keys
