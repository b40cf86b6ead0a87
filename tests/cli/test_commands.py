"""Commands that start nothing: init, schema, explain, plan, runs, dataset, project, resolver, doctor."""

from __future__ import annotations

import json
import logging
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from command_line import weft
from engine_data import CONVERT, FX, WRITE, project_text, sample_workspace
from weft.cli import main
from weft.cli.commands.explain import RULES, read_section
from weft.cli.commands.init import list_templates
from weft.cli.documents import COMMANDS, document_schema
from weft.cli.envelope import exit_code_for
from weft.errors import (
    CODES,
    ActivationError,
    Code,
    Diagnostic,
    EntityError,
    PeriodError,
    ResolutionError,
    RunError,
    ScenarioError,
    StoreError,
    WeftError,
    WorkspaceError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EntityError("x", help="y"), 3),
        (ActivationError("x", help="y"), 3),
        (ActivationError("x", code="W1105", help="y"), 8),
        (ResolutionError("x", help="y"), 3),
        (ResolutionError("x", code="W1309", help="y"), 1),
        (RunError("x", help="y"), 1),
        (RunError("x", code="W1501", help="y"), 8),
        (RunError("x", code="W1510", help="y"), 8),
        (StoreError("x", help="y"), 1),
        (StoreError("x", code="W1605", help="y"), 8),
        (StoreError("x", code="W1606", help="y"), 2),
        (ScenarioError("x", help="y"), 3),
        (ScenarioError("x", code="W1703", help="y"), 5),
        (PeriodError("x", help="y"), 2),
        (WorkspaceError("x", help="y"), 2),
    ],
)
def test_an_error_has_its_exit_code(error: WeftError, code: int) -> None:
    assert exit_code_for(error) == code


@pytest.mark.parametrize(
    ("codes", "code"),
    [(("W1105", "W1104"), 8), (("W1105", "W1407"), 3), (("W1407", "W1105"), 3)],
    ids=["two conflicts", "a conflict and a mistake", "a mistake and a conflict"],
)
def test_waiting_is_advised_only_if_nothing_else_is_wrong(codes: tuple[Code, ...], code: int) -> None:
    assert exit_code_for(ActivationError([Diagnostic(c, "x", help="y") for c in codes])) == code


def test_init_makes_a_workspace_that_validates(tmp_path: Path) -> None:
    for template in list_templates():
        ran = weft("init", tmp_path / template, "--template", template, "--json")
        assert ran.code == 0, ran.out
        assert (tmp_path / template / "README.md").is_file()
        if (tmp_path / template / "weft.yml").exists():
            assert weft("validate", root=tmp_path / template).out.startswith("no errors")
            assert (tmp_path / template / ".weft" / "schema" / "project.json").is_file()


@pytest.mark.parametrize("template", ["fx", "orders", "stream"])
def test_the_first_step_after_init_succeeds(template: str, tmp_path: Path) -> None:
    root = tmp_path / "with space"
    first = shlex.split(weft("init", root, "--template", template, "--json").document["next"][0])
    assert (first[:3], weft(*first[3:], root=root).code) == (["weft", "-C", str(root)], 0)


def test_the_script_of_a_template_is_the_next_step(tmp_path: Path) -> None:
    steps = weft("init", tmp_path / "new", "--template", "python", "--json").document["next"]
    assert steps == [f"python {tmp_path / 'new' / 'trades.py'}"]


def test_git_keeps_the_schemas_and_nothing_else_that_weft_writes(tmp_path: Path) -> None:
    weft("init", tmp_path, "--json")
    (tmp_path / ".weft" / "weft.db").write_text("")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    listed = subprocess.run(
        ["git", "-C", tmp_path, "ls-files", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert ".weft/schema/project.json" in listed
    assert ".weft/weft.db" not in listed


def test_the_fx_template_is_the_sample_workspace(tmp_path: Path) -> None:
    weft("init", tmp_path / "new")
    for file in FX.rglob("*"):
        if file.is_file() and ".weft" not in file.parts:
            text = (tmp_path / "new" / file.relative_to(FX)).read_text()
            lines = [line for line in text.splitlines() if not line.startswith("# yaml-language-server")]
            assert lines == file.read_text().splitlines(), file


def test_init_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "weft.yml").write_text("weft: 1\n")
    ran = weft("init", "--json", root=tmp_path)
    assert (ran.code, ran.codes) == (2, ["W1804"])
    assert (tmp_path / "weft.yml").read_text() == "weft: 1\n"
    assert weft("init", "--force", root=tmp_path).code == 0
    assert "default_resolver" in (tmp_path / "weft.yml").read_text()


def test_an_unknown_template_is_refused(tmp_path: Path) -> None:
    ran = weft("init", tmp_path / "new", "--template", "fxx", "--json")
    assert (ran.code, ran.codes) == (2, ["W1805"])
    assert not (tmp_path / "new").exists()


def test_schemas_are_written_and_accept_the_sample(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    ran = weft("schema", "export", "--json", root=root)
    assert ran.code == 0
    assert len(ran.data["files"]) == 7
    for file in ran.data["files"]:
        jsonschema.Draft202012Validator.check_schema(json.loads(Path(file).read_text()))
    both = weft("schema", "export", tmp_path / "schema", "--documents", "--json", root=root).data["files"]
    assert len(both) == 7 + len(COMMANDS)
    for command in COMMANDS:
        jsonschema.Draft202012Validator.check_schema(document_schema(command))
    shown = weft("schema", "show", "project")
    assert json.loads(shown.out)["$schema"].endswith("2020-12/schema")
    assert weft("schema", "show", "projekt", "--json").code == 2


def test_every_code_has_a_page() -> None:
    missing = [code for code in CODES if not read_section(code).startswith(f"## {code}: ")]
    assert missing == []


def test_a_rule_leads_to_the_page_of_its_code() -> None:
    assert set(RULES.values()) <= set(CODES)
    ran = weft("explain", "vr-007", "--json")
    assert ran.data["code"] == "W1207"
    assert ran.data["text"].startswith("## W1207: ")
    assert weft("explain", "W0207").out.startswith("## W0207: ")


def test_an_unknown_code_is_refused() -> None:
    ran = weft("explain", "W9999", "--json")
    assert (ran.code, ran.codes) == (2, ["W1806"])


def test_a_plan_says_what_a_run_would_do(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    ran = weft("plan", "-p", "2026-01", root=sample_workspace(tmp_path))
    assert ran.code == 0
    golden("cli/plan.txt", ran.out + ran.err)


def test_a_plan_for_no_period_in_particular_names_no_day(tmp_path: Path) -> None:
    ran = weft("plan", root=sample_workspace(tmp_path))
    assert "as of the period's first day, at most 1 match (checked)" in ran.out


def test_a_plan_is_data(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    ran = weft("plan", "fx_reporting", "-p", "2026-01", "--detailed-exitcode", "--json", root=root)
    assert ran.code == 4
    assert ran.document["ok"] is True
    assert ran.data["joins"][0]["alias"] == "fx"
    assert ran.data["writes"][0]["location"] == "out/processed_gl/period=2026-01"
    assert [p["role"] for p in ran.data["pins"]] == ["input", "join"]
    assert not (root / ".weft").exists()


def test_a_plan_can_be_saved(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    ran = weft("plan", "-p", "2026-01", "--out", tmp_path / "plan.json", "--json", root=root)
    assert json.loads((tmp_path / "plan.json").read_text())["fingerprint"] == ran.data["fingerprint"]


def test_mistakes_of_a_project_end_a_plan_with_3(tmp_path: Path) -> None:
    text = project_text(CONVERT.replace("fx.rate_type", "fx.rate_tpe") + WRITE)
    root = sample_workspace(tmp_path, projects__fx_reporting=text)
    ran = weft("plan", "-p", "2026-01", "--json", root=root)
    assert (ran.code, ran.codes) == (3, ["W1207"])


def test_another_broken_project_is_in_nobodys_way(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, projects__other="project: {name: other, operations: 3}\n")
    assert weft("plan", "fx_reporting", "-p", "2026-01", root=root).code == 0
    assert weft("plan", "other", "-p", "2026-01", root=root).code == 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("plan", "fx_reportin", "-p", "2026-01"), "W1802"),
        (("plan", "fx_reporting", "-p", "2026-13"), "W0401"),
        (("run", "fx_reporting"), "W1803"),
        (("run", "fx_reporting", "-p", "2026-01", "--known-at", "soon"), "W1803"),
        (("run", "fx_reporting", "--resume", "LAST"), "W1803"),
        (("project", "resolve", "fx_reporting", "--adapt", "--pin"), "W1803"),
        (("runs", "show", "LAST"), "W1606"),
        (("runs", "--status", "done"), "W1803"),
        (("dataset", "show", "glx"), "W1802"),
        (("resolver", "test", "gl"), "W1803"),
        (("project", "resolve", "fx_reporting"), "W1803"),
    ],
)
def test_invalid_arguments_end_with_2(tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    ran = weft(*words, "--json", root=sample_workspace(tmp_path))
    assert (ran.code, ran.codes) == (2, [code])
    assert ran.document["ok"] is False


def test_an_error_in_a_dataset_is_in_the_way_of_a_run(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    file = root / "datasets" / "gl.v1.yml"
    file.write_text(file.read_text().replace("name: gl", "nam: gl", 1))
    ran = weft("run", "fx_reporting", "-p", "2026-01", "--json", root=root)
    assert ran.code == 3
    assert "W1002" in ran.codes
    assert not (root / ".weft").exists()


def test_a_mistake_of_weft_itself_is_a_document_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("weft.pipelines.model.read_workspace.load_workspace", fail)
    ran = weft("validate", "--json", root=sample_workspace(tmp_path))
    assert (ran.code, ran.data["error"]) == (1, {"type": "ZeroDivisionError", "message": "oops"})
    assert "Traceback" in ran.err


def test_a_call_without_arguments_prints_the_help() -> None:
    for words in ((), ("dataset",)):
        ran = weft(*words)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("Usage: weft")
    assert weft("--help").code == 0


def test_words_that_no_command_has_end_with_2(tmp_path: Path) -> None:
    assert weft("validat").code == 2
    assert "No such option" in weft("validate", "--nope", root=tmp_path).err
    ran = weft("validate", "--nope", "--json", root=tmp_path)
    assert (ran.code, ran.document["schema"]) == (2, "weft/validate/1")


def test_a_folder_that_is_not_a_workspace_is_reported(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "nowhere"):
        ran = weft("validate", "--json", root=root)
        assert (ran.code, ran.codes) == (2, ["W1801"])


def test_options_are_valid_before_and_after_a_command(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    before = weft("--json", "-C", root, "validate")
    after = weft("validate", "-C", root, "--json")
    assert before.data["projects"] == after.data["projects"] == ["fx_reporting"]
    assert weft("validate", "-C").code == 2


def test_runs_of_a_fresh_workspace_are_none(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    assert weft("runs", root=root).out == "no runs yet\n"
    assert weft("runs", "ls", "--json", root=root).data == {"runs": []}
    assert not (root / ".weft").exists()


def test_runs_need_sound_settings_and_no_other_file(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, projects__fx_reporting="project: [\n")
    assert weft("runs", root=root).code == 0
    (root / "weft.yml").write_text("weft: 1\nstor: sqlite:///elsewhere.db\n")
    ran = weft("runs", "--json", root=root)
    assert (ran.code, ran.codes) == (3, ["W1002"])


def test_datasets_are_listed_shown_and_disabled(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    listed = weft("dataset", "ls", "--json", root=root).data["datasets"]
    assert [(d["name"], d["version"]) for d in listed] == [("budgets", 1), ("exchange_rates", 1), ("gl", 1)]
    assert weft("dataset", "show", "gl@1", "--json", root=root).data["name"] == "gl"
    assert "lookup accounts on account_code = accounts.code\n" in weft("dataset", "show", "gl", root=root).out
    assert weft("dataset", "disable", "exchange_rates", root=root).code == 0
    ran = weft("validate", "--json", root=root)
    assert (ran.code, ran.codes) == (3, ["W1202"])
    assert weft("dataset", "enable", "exchange_rates", root=root).code == 0
    assert weft("validate", root=root).code == 0


def test_the_newest_version_of_a_dataset_is_shown_unless_one_is_named(tmp_path: Path) -> None:
    newer = (FX / "datasets" / "gl.v1.yml").read_text().replace("version: 1", "version: 2")
    root = sample_workspace(tmp_path, {"datasets/gl.v2.yml": newer})
    for name, version in {"gl": 2, "gl@1": 1, "gl@2": 2}.items():
        assert weft("dataset", "show", name, "--json", root=root).data["version"] == version
    ran = weft("dataset", "show", "gl@3", root=root)
    assert ran.code == 2
    assert "its versions are '1', '2'" in ran.err


def test_a_dataset_is_published_once(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    first = weft("dataset", "publish", "datasets/gl.v1.yml", "--json", root=root)
    assert (first.code, first.data["is_new"], first.data["version"]) == (0, True, 1)
    assert weft("dataset", "publish", "gl", "--json", root=root).data["is_new"] is False


def test_a_project_is_activated_and_taken_out_of_use(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, projects__fx_reporting=project_text(CONVERT + WRITE, status="draft"))
    ran = weft("project", "activate", "fx_reporting", "--json", root=root)
    assert (ran.code, ran.data["status"], ran.data["failures"]) == (0, "active", [])
    assert "status: active" in (root / "projects" / "fx_reporting.yml").read_text()
    assert weft("project", "versions", "fx_reporting", "--json", root=root).data["versions"][-1]["version"] == 2
    assert weft("project", "deactivate", "fx_reporting", root=root).code == 0
    assert weft("project", "ls", "--json", root=root).data["projects"][0]["status"] == "inactive"
    ran = weft("run", "fx_reporting", "-p", "2026-01", "--json", root=root)
    assert (ran.code, ran.codes) == (8, ["W1104"])
    assert weft("project", "reopen", "fx_reporting", root=root).out == "fx_reporting is draft\n"
    assert "input gl@1\n" in weft("project", "show", "fx_reporting", root=root).out


def test_what_prevents_activation_is_reported_by_rule(tmp_path: Path) -> None:
    text = project_text(CONVERT.replace("fx.rate_type", "fx.rate_tpe") + WRITE, status="draft")
    root = sample_workspace(tmp_path, projects__fx_reporting=text)
    ran = weft("project", "activate", "fx_reporting", "--json", root=root)
    assert ran.code == 3
    assert [(f["rule"], f["type"], f["operation_order"]) for f in ran.data["failures"]] == [
        ("VAL-002", "UnresolvedColumnRef", 10)
    ]
    assert (root / "projects" / "fx_reporting.yml").read_text() == text


def test_a_resolver_is_tried(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    ran = weft("resolver", "test", "gl", "-p", "2026-01", "--json", root=root)
    assert ran.code == 0
    assert ran.data["diagnostic"]["outcome"] == "success"
    assert [place["exists"] for place in ran.data["locations"]] == [True]
    (root / "data" / "transactions.csv").unlink()
    ran = weft("resolver", "test", "gl", "-p", "2026-01", root=root)
    assert ran.code == 1
    assert "MISSING" in ran.out
    assert "path {{table_name}}.csv of files" in weft("resolver", "show", "files", root=root).out
    assert weft("resolver", "ls", "--json", root=root).data["resolvers"][0]["default"] is True


def test_doctor_looks_at_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = sample_workspace(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    ran = weft("doctor", "--json", root=root)
    assert ran.code == 1
    checks = {check["name"]: check for check in ran.data["checks"]}
    assert checks["python"]["ok"] is True
    assert checks["java"]["ok"] is False
    assert "17" in checks["java"]["help"]


def test_doctor_finds_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, weft="spark: {remote: 'sc://127.0.0.1:1'}\ndefault_resolver: files\n")
    ran = weft("doctor", root=root)
    assert ran.code == 1
    assert "sc://127.0.0.1:1 is not reachable" in ran.out


@pytest.mark.parametrize(
    ("options", "message"),
    [("?timeout=5", "missing or damaged tables"), ("?key=hunter2", "has no option 'key'")],
)
def test_the_options_of_a_store_in_sqlite_are_no_part_of_its_file(tmp_path: Path, options: str, message: str) -> None:
    (tmp_path / "weft.yml").write_text(f"weft: 1\nstore: 'sqlite:///runs.db{options}'\n")
    (tmp_path / "runs.db").write_text("no database, but it is there")
    for words in (("runs", "ls"), ("doctor",)):
        ran = weft(*words, root=tmp_path)
        assert message in ran.out + ran.err


def test_the_traceback_of_py4j_is_hidden_and_other_logs_are_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lose_the_jvm(*_: object, **__: object) -> None:
        logging.getLogger().error("Exception while sending command.")
        logging.getLogger().error("the disk is full")

    monkeypatch.setattr(main, "app", lose_the_jvm)
    assert main.run_command(["version"]) == 0
    logging.getLogger().error("Exception while sending command.")
    assert caplog.messages == ["the disk is full", "Exception while sending command."]
