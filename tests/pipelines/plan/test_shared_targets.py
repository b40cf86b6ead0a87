"""Outputs that would destroy rows: two with one target, two projects with one target, one that overwrites its input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_line import weft
from engine_data import CONVERT, project_text, sample_workspace
from pipelines import Site, site
from staged_runs import opened, staged_run
from weft.core.calendar import GREGORIAN
from weft.core.source import Source
from weft.errors import ActivationError
from weft.io.spark.session import Session
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.plan.project import check_project
from weft.pipelines.plan.shared_targets import list_sample_periods
from weft.pipelines.run.prepare import prepare
from weft.pipelines.run.resume import rerun, resume
from weft.pipelines.store.records import RunFailure

SOURCES: dict[str, str | None] = {
    "datasources/pg.yml": "datasource: {id: pg, name: pg, type: jdbc, options: {url: 'jdbc:postgresql://DB:5432/d'}}\n",
    "datasources/pg2.yml": "datasource: {id: pg2, name: pg2, type: jdbc, options: {url: 'jdbc:postgresql://db/d', schema: public}}\n",
    "datasources/inside.yml": "datasource: {id: inside, name: inside, type: jdbc, options: {url: 'jdbc:postgresql://db/d?currentSchema=gl,public'}}\n",
    "datasources/path.yml": "datasource: {id: path, name: path, type: jdbc, options: {url: 'jdbc:postgresql://db/d?options=-c%20search_path%3Dgl'}}\n",
    "datasources/lake.yml": "datasource: {id: lake, name: lake, type: table, options: {}}\n",
}
COLUMNS = "columns: [journal_id, _period]"


def output(seq: int, destination: str, more: str = COLUMNS) -> str:
    return f"- {{seq: {seq}, name: Out{seq}, type: output, arguments: {{destination: {destination}, {more}}}}}"


def outputs(tmp_path: Path, *destinations: str) -> Site:
    return site(tmp_path, [output(10 * (i + 1), d) for i, d in enumerate(destinations)], SOURCES)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{path: out/gl}", "{path: out/gl}"),
        ("{path: out/gl}", "{path: ./out//gl/}"),
        ("{path: out/gl, format: csv}", "{path: out/gl, format: json}"),
        ("{path: out/gl}", "{datasource_id: warehouse, table: gl}"),
        ("{path: 'exports/{{period}}'}", "{path: 'exports/{{YYYY}}-{{MM}}'}"),
        ("{path: 'exports/{{period}}.csv'}", "{path: 'exports/{{ period_id }}.csv'}"),
        ("{path: 'exports/{{period}}'}", "{path: 'exports/{{period}}/detail.csv'}"),
        ("{path: 'exports/{{period}}/a'}", "{path: 'exports/{{period}}'}"),
        ("{path: out/link}", "{path: out/gl}"),
        ("{datasource_id: lake, table: GL}", "{datasource_id: lake, table: gl}"),
        ("{datasource_id: lake, table: gl, schema: default}", "{datasource_id: lake, table: gl}"),
        ("{datasource_id: pg, table: gl}", "{datasource_id: pg2, table: gl}"),
        ("{datasource_id: pg, table: t, schema: gl}", "{datasource_id: inside, table: t}"),
        ("{datasource_id: path, table: t}", "{datasource_id: inside, table: t}"),
        ("{datasource_id: pg, table: t}", "{datasource_id: inside, table: t, schema: public}"),
    ],
)
def test_two_outputs_to_one_place_are_refused_with_both_locations(tmp_path: Path, first: str, second: str) -> None:
    found = outputs(tmp_path, first, second)
    (found.root / "out").mkdir()
    (found.root / "out" / "link").symlink_to("gl")
    (failure,) = found.failures()
    finding = failure.diagnostic
    assert (finding.code, failure.operation_order) == ("W1418", 20)
    assert "10 'Out10'" in finding.message
    assert "20 'Out20'" in finding.message
    assert isinstance(finding.at, Source)
    assert finding.at.line == 9
    assert "projects/fx_reporting.yml:8:" in finding.help


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{path: out/gl}", "{path: out/gl2}"),
        ("{path: out}", "{path: out/gl}"),
        ("{path: 'x/{{YYYY}}'}", "{path: 'x/{{MM}}'}"),
        ("{datasource_id: pg, table: GL}", "{datasource_id: pg, table: gl}"),
        ("{datasource_id: pg, table: gl}", "{datasource_id: pg, table: gl, schema: other}"),
        ("{datasource_id: pg, table: gl}", "{datasource_id: lake, table: gl}"),
        ("{datasource_id: pg, table: t}", "{datasource_id: inside, table: t}"),
    ],
)
def test_outputs_to_different_places_are_not(tmp_path: Path, first: str, second: str) -> None:
    assert outputs(tmp_path, first, second).messages() == []


def test_a_clash_of_one_period_is_refused_in_its_run(tmp_path: Path) -> None:
    found = outputs(tmp_path, "{path: 'x/{{period}}'}", "{path: x/1999-12/y.csv}")
    workspace = load_workspace(found.root).workspace
    with opened(found.root) as store:
        with pytest.raises(ActivationError, match="W1418"):
            prepare(workspace, workspace.projects[0], "1999-12", store=store)
        assert prepare(workspace, workspace.projects[0], "2026-01", store=store)


def test_two_outputs_cannot_register_one_dataset(tmp_path: Path) -> None:
    both = [
        output(10, "{path: a}", "register_as_dataset: x"),
        output(20, "{path: b}", "register_as_dataset: x"),
    ]
    assert [c for c, _ in site(tmp_path, both).messages()] == ["W1418"]


def test_the_sandbox_keeps_tables_of_two_databases_apart(tmp_path: Path) -> None:
    found = outputs(tmp_path, "{datasource_id: pg, table: gl}", "{datasource_id: lake, table: gl}")
    made = found.plan(draft=True)
    assert [op.target.location for op in made.operations if isinstance(op, ResolvedOutput)] == [
        ".weft/sandbox/fx_reporting/10/gl/period=2026-01",
        ".weft/sandbox/fx_reporting/20/gl/period=2026-01",
    ]


def test_every_level_of_a_calendar_has_a_sample() -> None:
    assert [p.identifier for p in list_sample_periods(GREGORIAN)] == [
        GREGORIAN.at(p.start, p.level).identifier  # type: ignore[union-attr]
        for p in list_sample_periods(GREGORIAN)
    ]
    assert {p.level for p in list_sample_periods(GREGORIAN)} == {level.name for level in GREGORIAN.levels}


# What the project reads.

READING = """\
- seq: 10
  name: Region
  type: update
  arguments:
    joins: [{alias: fx, dataset_id: exchange_rates, on: "currency = fx.from_currency"}]
    assignments: [{column: region, expression: "CONCAT(cost_centers.region, CAST(fx.rate AS string))"}]
"""


@pytest.mark.parametrize(
    ("destination", "what"),
    [
        ("{path: data/transactions.csv}", "its input"),
        ("{path: ./data//transactions.csv}", "its input"),
        ("{path: linked/transactions.csv}", "its input"),
        ("{path: data/exchange_rates.csv}", "'10.fx'"),
        ("{path: data/cost_centers.csv}", "'lookup.cost_centers'"),
        ("{path: 'data/transactions.csv/{{period}}.csv'}", "its input"),
    ],
)
def test_an_output_never_overwrites_what_its_project_reads(tmp_path: Path, destination: str, what: str) -> None:
    found = site(tmp_path, [READING, output(20, destination)])
    (found.root / "linked").symlink_to(found.root / "data")
    messages = found.messages()
    assert [code for code, _ in messages] == ["W1420"]
    assert what in messages[0][1]
    workspace = load_workspace(found.root).workspace
    with opened(found.root) as store, pytest.raises(ActivationError, match="W1420"):
        prepare(workspace, workspace.projects[0], "2026-01", store=store)


def test_an_input_that_is_named_by_a_url_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "data" / "transactions.csv"
    rule = BY_FOLDER.replace("PATTERN", f"file://{tmp_path}/data/{{{{table_name}}}}.csv")
    files = "datasource: {id: files, name: files, type: csv, options: {has_header: true}}\n"
    changes = {"resolvers/files.yml": rule, "datasources/files.yml": files}
    found = site(tmp_path / "w", [output(20, f"{{path: {file}}}")], changes)
    assert [code for code, _ in found.messages()] == ["W1420"]


BY_FOLDER = """\
resolver:
  id: files
  name: Folders
  version: 1
  status: active
  rules:
    - name: all
      data_level: any
      strategy: {type: path, datasource_id: files, path: "PATTERN"}
"""


@pytest.mark.parametrize(
    ("pattern", "destination", "refused"),
    [
        ("{{table_name}}", "{path: 'data/transactions/{{period}}.csv'}", True),
        ("{{table_name}}", "{path: 'data/transactions'}", True),
        ("{{table_name}}/day=1", "{path: 'data/{{period}}/..'}", None),
        ("{{table_name}}/*.csv", "{path: 'data/transactions/{{period}}.csv'}", True),
        ("{{table_name}}/*.csv", "{path: 'data/transactions/{{period}}.json'}", False),
        ("{{table_name}}", "{path: 'data/transactions/_out/{{period}}.csv'}", False),
        ("{{table_name}}", "{path: 'data/transactions/_day=1/{{period}}.csv'}", True),
        ("{{table_name}}/in/x.csv", "{path: 'data/{{YYYY}}'}", False),
    ],
)
def test_folders_and_patterns_are_read_too(
    tmp_path: Path, pattern: str, destination: str, *, refused: bool | None
) -> None:
    text = BY_FOLDER.replace("PATTERN", pattern)
    found = site(tmp_path, [output(20, destination)], {"resolvers/files.yml": text})
    codes = [code for code, _ in found.messages()]
    assert codes == (["W1311"] if refused is None else ["W1420"] if refused else [])


def test_a_table_that_is_read_is_not_written(tmp_path: Path) -> None:
    rule = BY_FOLDER.replace(
        'type: path, datasource_id: files, path: "PATTERN"',
        'type: table, datasource_id: pg, table: "{{table_name}}"',
    )
    changes = {**SOURCES, "resolvers/files.yml": rule}
    for destination, codes in (
        ("{datasource_id: pg2, table: transactions}", ["W1420"]),
        ("{datasource_id: pg2, table: other}", []),
    ):
        found = site(tmp_path / destination[-4:-1], [output(20, destination)], changes)
        assert [code for code, _ in found.messages()] == codes


# Several projects.


def two_projects(tmp_path: Path, first: str, second: str, status: str = "active") -> Path:
    other = project_text([second], id="6f1f7c1e-0000-4000-8000-0000000000f2", name="other", status=status)
    changes = {
        **SOURCES,
        "projects/fx_reporting.yml": project_text([first]),
        "projects/other.yml": other,
        "scenarios/ts03_fx.yml": None,  # it is about other columns
    }
    return sample_workspace(tmp_path, changes)


@pytest.mark.parametrize(
    ("first", "second", "status", "severity"),
    [
        (output(10, "{path: out/x}"), output(10, "{path: ./out/x/}"), "active", "error"),
        (output(10, "{path: out/x}"), output(10, "{path: out/x}"), "draft", "warning"),
        (output(10, "{path: out/x}"), output(10, "{path: out/x}"), "inactive", None),
        (
            output(10, "{path: out/x}", "mode: append"),
            output(10, "{path: out/x}", "mode: append"),
            "active",
            "note",
        ),
        (output(10, "{path: out/x}", "mode: append"), output(10, "{path: out/x}"), "active", "error"),
        (
            output(10, "{path: 'o/{{period}}'}", "mode: append"),
            output(10, "{path: 'o/{{period}}/x'}", "mode: append"),
            "active",
            "error",
        ),
        (  # A project that does not run takes nothing away.
            output(10, "{path: 'o/{{period}}'}"),
            output(10, "{path: 'o/{{period}}/x'}"),
            "inactive",
            None,
        ),
        (  # A single file is replaced as a whole, whatever the mode.
            output(10, "{path: 'o/{{period}}.csv'}", "mode: fail_if_exists"),
            output(10, "{path: 'o/{{period}}.csv'}", "mode: fail_if_exists"),
            "active",
            "error",
        ),
        (
            output(10, "{datasource_id: pg, table: t}"),
            output(10, "{datasource_id: pg2, table: t}"),
            "active",
            "error",
        ),
    ],
)
def test_two_projects_with_one_target_are_reported(
    tmp_path: Path, first: str, second: str, status: str, severity: str | None
) -> None:
    root = two_projects(tmp_path, first, second, status)
    ran = weft("validate", "--json", root=root)
    found = [(d["code"], d["severity"], d["file"]) for d in ran.document["diagnostics"]]
    assert found == ([] if severity is None else [("W1419", severity, "projects/other.yml")])
    assert ran.code == (3 if severity == "error" else 0)
    if severity is not None:
        assert "projects/fx_reporting.yml:8:" in ran.document["diagnostics"][0]["help"]
    # A run is refused as well, before anything is written.
    workspace = load_workspace(root).workspace
    with opened(root) as store:
        if severity == "error":
            for project in workspace.projects:
                with pytest.raises(ActivationError, match="W1419"):
                    prepare(workspace, project, "2026-01", store=store)
        else:
            assert prepare(workspace, workspace.projects[0], "2026-01", store=store)


def test_a_run_is_not_repeated_where_another_project_writes_by_now(tmp_path: Path) -> None:
    root = two_projects(tmp_path, output(10, "{path: out/x}"), output(10, "{path: out/y}"))
    with opened(root) as store:
        run = staged_run(root, store).run_id
        store.fail(run, RunFailure(operation_order=None, code="W1502", message="it died", detail=""))

        def started(**_: object) -> Session:
            raise StartedError

        def repeat() -> None:
            rerun(run, workspace=load_workspace(root).workspace, store=store, session=started)

        for again in (repeat, lambda: resume(run, root=root, store=store, session=started)):
            write_elsewhere(root, "{path: out/y}")
            with pytest.raises(StartedError):
                again()
            for same in ("{path: out/x}", "{datasource_id: late, table: x}"):  # which the run does not know
                write_elsewhere(root, same)
                with pytest.raises(ActivationError, match=r"W1419.*'other'"):
                    again()


class StartedError(Exception):
    """Everything was checked, and the run would begin."""


def write_elsewhere(root: Path, destination: str) -> None:
    file = root / "projects" / "other.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"destination: \{.*?\}", f"destination: {destination}", text), encoding="utf-8")
    late = "datasource: {id: late, name: late, type: parquet, options: {path_prefix: out}}\n"
    (root / "datasources" / "late.yml").write_text(late, encoding="utf-8")


def test_what_an_earlier_release_began_is_still_planned_for_recovery(tmp_path: Path) -> None:
    found = site(tmp_path, [CONVERT, output(20, "{path: out/x}"), output(30, "{path: out/x}")])
    assert len(found.plan().operations) == 3


def test_a_draft_that_would_share_a_target_cannot_be_activated_but_hinders_nobody(tmp_path: Path) -> None:
    same = output(10, "{path: out/x}")
    workspace = load_workspace(two_projects(tmp_path, same, same, "draft")).workspace
    active, draft = sorted(workspace.projects, key=lambda project: project.status)
    assert (active.status, draft.status) == ("active", "draft")
    assert [f.diagnostic.code for f in check_project(draft, Catalog.of(workspace))] == ["W1419"]
    assert check_project(active, Catalog.of(workspace)) == ()
