"""No name, link or ``..`` leads an output, a stream or a checkpoint out of the workspace; absolute paths may.

Names: projects, periods of calendars and scenarios, tables of destinations, streams, tables and sinks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import weft
from engine_data import sample_workspace
from entity_texts import entity, reported
from pipelines import Site, site
from staged_runs import TARGETS, TWO_OUTPUTS, contents, killed, opened, staged_run
from weft.core.listed_calendar import calendar_from_dict
from weft.core.paths import escapes_folder, name_problem, resolve_outside
from weft.errors import ActivationError, ConnectorError, RunError, StreamPlanError, StreamSqlError
from weft.pipelines.model.build import entity_from_dict
from weft.pipelines.model.project import Project
from weft.pipelines.plan.project import resolve_project
from weft.pipelines.run.publish import recover
from weft.streams.plan.resolve import plan_text
from weft.streams.spark.paths import resolve_path
from weft.streams.sql.lower import read_spec

WRITE = "- {seq: 20, name: Write, type: output, arguments: {destination: %s}}"
WAREHOUSE = "{datasource_id: warehouse, table: gl}"
JOB = """\
CREATE STREAM orders (id STRING, at TIMESTAMP) WITH ('path' = '%s', 'format' = 'json', 'event.time.field' = 'at');
CREATE STREAM copy WITH ('path' = '%s', 'format' = 'json') AS SELECT id FROM orders;
"""
BAD_NAMES = {
    "../../../x": "contains '/'", "a/b": "contains '/'", "/etc": "contains '/'", "a\\b": "contains '\\\\'",
    "..": "refers to another folder", ".": "refers to another folder", "a\nb": "contains a control character",
    "a\x7fb": "contains a control character", "\x1b[2J": "contains a control character", "é" * 128: "is longer than 255 bytes",
}  # fmt: skip
GOOD_NAMES = ("gl", "GL 2026 (draft)", "v1..v2", ".hidden", "größe", "GL [old]", "100 %", "~", "-")


def yaml_text(name: str) -> str:
    quoted = name.encode("unicode_escape").decode().replace('"', '\\"')
    return f'"{quoted}"'


@pytest.mark.parametrize(("name", "why"), BAD_NAMES.items(), ids=lambda text: repr(text)[:30])
def test_a_name_that_cannot_be_a_folder_is_refused_where_it_is_written(name: str, why: str) -> None:
    assert name_problem(name) == why
    operations = "operations: [{seq: 1, name: d, type: delete}]"
    for key in ("name", "id"):
        assert [code for code, _ in reported("project", f"{key}: {yaml_text(name)}\ninput: orders\n{operations}\n")] == [
            "W1030"
        ]  # fmt: skip
    calendar = """\
calendar: fiscal
levels: [{name: year}]
periods: [{identifier: %s, level: year, start_date: 2025-07-01, end_date: 2026-06-30}]
"""
    assert ("W1030", yaml_text(name)) in reported("calendar", calendar % yaml_text(name))
    scenario = """\
name: s
project: p
period: FY26
periods: [{identifier: %s, level: year, start_date: 2025-07-01, end_date: 2026-06-30}]
expect: {count: 1}
"""
    assert ("W1030", yaml_text(name)) in reported("scenario", scenario % yaml_text(name))


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_an_ordinary_name_is_a_folder(name: str) -> None:
    text = f"name: {yaml_text(name)}\ninput: orders\noperations: [{{seq: 1, name: d, type: delete}}]\n"
    assert entity("project", text).name == name


def test_a_period_that_a_reader_would_take_for_a_pattern_is_refused() -> None:
    calendar = "calendar: c\nlevels: [{name: year}]\nperiods: [{identifier: 'FY*', level: year, start_date: 2025-07-01, end_date: 2026-06-30}]\n"
    assert reported("calendar", calendar) == [("W1030", "'FY*'")]


def test_a_project_that_the_store_holds_stays_readable() -> None:
    text = "name: fx\ninput: orders\noperations: [{seq: 1, name: d, type: delete}]\n"
    stored = entity("project", text).to_dict()
    stored = {**stored, "name": "FX / GL"}
    assert entity_from_dict(Project, stored).name == "FX / GL"


def refused(found: Site, **options: Any) -> list[str]:
    with pytest.raises(ActivationError) as caught:
        found.plan(**options)
    return [d.code for d in caught.value.diagnostics]


@pytest.mark.parametrize("destination", [WAREHOUSE, "{path: exports/gl}", "{path: /tmp/gl.csv}"])
def test_a_draft_whose_name_leaves_the_sandbox_is_not_planned(tmp_path: Path, destination: str) -> None:
    found = site(tmp_path, WRITE % destination, status="draft")
    hostile = replace(found, project=replace(found.project, name="../../../x"))
    assert refused(hostile, draft=True) == ["W1311"]
    nested = replace(found, project=replace(found.project, name="FX / GL"))
    assert ".weft/sandbox/FX / GL/" in nested.plan(draft=True).operations[-1].target.location  # type: ignore[union-attr]


@pytest.mark.parametrize("destination", [WAREHOUSE, "{path: exports/gl}"])
@pytest.mark.parametrize("draft", [True, False])
def test_a_period_whose_name_leaves_its_target_is_not_planned(tmp_path: Path, destination: str, *, draft: bool) -> None:
    found = site(tmp_path, WRITE % destination)
    days = {"start_date": "2026-01-01", "end_date": "2026-01-31"}
    calendar = calendar_from_dict(
        {
            "name": "c",
            "levels": [{"name": "month"}],
            "periods": [{"identifier": "x/../../../../../../y", "level": "month", **days}],
        }
    )
    with pytest.raises(ActivationError) as caught:
        resolve_project(found.project, found.catalog, period=calendar.periods[0], calendar=calendar, draft=draft)
    assert {d.code for d in caught.value.diagnostics} == {"W1311"}


@pytest.mark.parametrize(
    ("link", "destination"),
    [
        ("out", WAREHOUSE),
        ("out/gl", WAREHOUSE),
        ("out/gl/period=2026-01", WAREHOUSE),
        ("exports", "{path: exports/gl}"),
        ("exports/gl", "{path: exports/gl}"),
        ("exports/gl.csv", "{path: exports/gl.csv}"),
    ],
)
def test_a_link_that_leaves_the_workspace_is_refused(tmp_path: Path, link: str, destination: str) -> None:
    found = site(tmp_path / "w", WRITE % destination)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = found.root / link
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        place.rename(tmp_path / "old")
    place.symlink_to(elsewhere, target_is_directory=True)
    assert refused(found) == ["W1311"]
    assert list(elsewhere.iterdir()) == []


def test_a_link_inside_the_workspace_and_an_absolute_path_are_fine(tmp_path: Path) -> None:
    found = site(tmp_path / "w", WRITE % "{path: exports/gl}")
    (found.root / "real").mkdir()
    (found.root / "exports").symlink_to("real", target_is_directory=True)
    found.plan()
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "link").symlink_to(elsewhere, target_is_directory=True)
    for folder in (elsewhere, tmp_path / "link"):
        site(tmp_path / f"of {folder.name}", WRITE % f"{{path: {folder}/gl}}").plan()


def test_a_link_that_appears_while_the_run_works_is_found_before_anything_moves(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path / "w", {"projects/fx_reporting.yml": TWO_OUTPUTS})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with opened(root) as store:
        run = staged_run(root, store)
        place = (root / TARGETS[0]).parent
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(elsewhere, target_is_directory=True)
        with pytest.raises(RunError, match="W1311"):
            run.publish()
        assert {o.state for o in store.outputs(run.run_id)} == {"staged"}
        assert (list(elsewhere.iterdir()), contents(root, TARGETS[1])) == ([], [])


def test_recovery_follows_no_link_that_leaves_the_workspace(tmp_path: Path) -> None:
    place = tmp_path / "w" / "fx" / "exports" / "gl"
    text = TWO_OUTPUTS.replace("path: exports/gl", f"path: {place}")
    root = sample_workspace(tmp_path / "w", {"projects/fx_reporting.yml": text})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    killed(root, "marked:2")
    place.rmdir()
    place.symlink_to(elsewhere, target_is_directory=True)
    with opened(root) as store:
        assert [r.outcome for r in recover(store, root)] == ["failed"]
    assert (list(elsewhere.iterdir()), contents(root, TARGETS[0])) == ([], [])


def test_a_sandbox_outside_needs_an_absolute_path() -> None:
    assert reported("settings", "sandbox: {path: ../../x}") == [("W1311", "../../x")]
    assert reported("settings", "sandbox: {path: /var/tmp/x}") == []


# Streams.


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda text: repr(text)[:30])
@pytest.mark.parametrize("statement", ["CREATE STREAM {0} (id STRING) WITH ('path' = 'a.json'); SELECT id FROM {0};",
    "CREATE STREAM {0} WITH ('path' = 'a', 'format' = 'json') AS SELECT id FROM o;",
    "CREATE TABLE {0} (id STRING) WITH ('path' = 'a.csv'); SELECT o.id FROM o JOIN {0} ON o.id = {0}.id;"])  # fmt: skip
def test_a_stream_or_table_whose_name_cannot_be_a_folder_is_refused(name: str, statement: str) -> None:
    text = "CREATE STREAM o (id STRING) WITH ('path' = 'o.json');\n" + statement.format(f"`{name}`")
    with pytest.raises(StreamSqlError) as caught:
        read_spec(text)
    assert "W2016" in {d.code for d in caught.value.diagnostics}
    assert all(d.at is not None for d in caught.value.diagnostics)


@pytest.mark.parametrize(
    "path",
    ["../x", "../../x/*.json", "a/../../x", "./../x", "{..,in}/x", "s3a://b/../x", "file:x", "file:../x", "FILE:../x"],
)
def test_a_stream_path_that_climbs_out_is_refused_at_its_place(tmp_path: Path, path: str) -> None:
    assert escapes_folder(path)
    for text in (
        JOB % (path, "out"),
        JOB % ("in", path),
        f"SET 'checkpoint' = '{path}';\n" + JOB % ("in", "out"),
    ):
        (tmp_path / "job.sql").write_text(text)
        ran = weft("stream", "check", "job.sql", "--json", root=tmp_path)
        (finding,) = ran.document["diagnostics"]
        assert (ran.code, finding["code"]) == (3, "W2017")
        start, end = (finding["range"][k] for k in ("start", "end"))
        assert text.splitlines()[start["line"]][start["character"] : end["character"]] == f"'{path}'"


@pytest.mark.parametrize(
    "path",
    [
        "in",
        "file:/data/orders",
        "FILE:///data/orders",
        "in/../orders",
        "/data/../x",
        "/data/orders",
        "s3a://b/x",
        "a..b",
        "x/..y",
        "{a,b}/x",
    ],
)
def test_a_stream_path_that_stays_or_is_absolute_is_fine(tmp_path: Path, path: str) -> None:
    assert not escapes_folder(path)
    assert plan_text(JOB % (path, "out"), tmp_path).statements


@pytest.mark.parametrize("what", ["source", "sink", "checkpoint"])
def test_a_stream_path_through_a_link_that_leaves_the_workspace_is_refused(tmp_path: Path, what: str) -> None:
    root, elsewhere = tmp_path / "w", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / "link").symlink_to(elsewhere, target_is_directory=True)
    text = JOB % ("link/a" if what == "source" else "in", "link/b" if what == "sink" else "out")
    text = ("SET 'checkpoint' = 'link/state';\n" if what == "checkpoint" else "") + text
    with pytest.raises(StreamPlanError) as caught:
        plan_text(text, root)
    assert [d.code for d in caught.value.diagnostics] == ["W2017"]
    with pytest.raises(ConnectorError, match="W2017"):  # the link may have come after the plan
        resolve_path("link/a", root)


def test_a_job_is_not_looked_for_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / ".weft" / "streams").mkdir(parents=True)
    ran = weft("stream", "status", "../../other", "--json", root=tmp_path)
    assert (ran.code, ran.codes) == (2, ["W1802"])


def test_outside_follows_links_of_both(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to(tmp_path / "a", target_is_directory=True)
    assert resolve_outside(tmp_path / "b", tmp_path / "a" / "x") is None
    assert resolve_outside(tmp_path / "a", tmp_path / "c") == (tmp_path / "c").resolve()
