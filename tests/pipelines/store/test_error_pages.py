"""The pages of the store's codes show the messages that the store gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine_data import CONVERT, FX, WRITE, project_text, sample_workspace
from store_values import NOW, dataset, new_run, project
from weft.errors import Code, WeftError
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.store.lifecycle import activate, admit, build_catalog, deactivate
from weft.pipelines.store.open import open_store, too_old
from weft.pipelines.store.publishing import disable_dataset, publish_dataset
from weft.pipelines.store.tables import LOCKS
from weft.pipelines.store.writer import Store

ERRORS = Path(__file__).parents[3] / "docs" / "errors"
PROJECT = "projects/fx_reporting.yml"
GL = "datasets/gl.v1.yml"
RUN = "019a86f6-3800-7000-8000-00000000000a"


def page(code: str) -> str:
    (family,) = ERRORS.glob(f"{code[:3]}-*.md")
    text = family.read_text(encoding="utf-8")
    found = re.search(rf"^## {code}: .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"{family.name} has no section {code}"
    return found[0]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sample_workspace(tmp_path, {PROJECT: project_text(status="draft")})


@pytest.fixture
def here(root: Path) -> Iterator[Store]:
    with open_store("sqlite:///.weft/weft.db", root) as store:
        store.clock = lambda: NOW
        yield store


def broken(root: Path, store: Store) -> None:
    text = project_text([CONVERT.replace("* fx.rate", "* fx.rat"), WRITE], status="draft")
    (root / PROJECT).write_text(text, encoding="utf-8")
    workspace = load_workspace(root).workspace
    activate(workspace, workspace.projects[0], store)


def not_active(root: Path, store: Store) -> None:
    workspace = load_workspace(root).workspace
    deactivate(workspace, workspace.projects[0], store)


def changed(root: Path, store: Store) -> None:
    workspace = load_workspace(root).workspace
    activate(workspace, workspace.projects[0], store)
    text = (root / PROJECT).read_text(encoding="utf-8")
    (root / PROJECT).write_text(text.replace("* fx.rate", "* fx.rate * 2"), encoding="utf-8")
    workspace = load_workspace(root).workspace
    admit(workspace.projects[0], build_catalog(workspace, store), store)


def inactive(root: Path, store: Store) -> None:
    (root / PROJECT).write_text(project_text(status="inactive"), encoding="utf-8")
    workspace = load_workspace(root).workspace
    admit(workspace.projects[0], build_catalog(workspace, store), store)


def conflict(root: Path, store: Store) -> None:
    workspace = load_workspace(root).workspace
    publish_dataset(workspace, "gl", store)
    activate(workspace, workspace.projects[0], store)
    lines = (FX / GL).read_text(encoding="utf-8").replace("version: 1", "version: 2").splitlines(keepends=True)
    text = "".join(line for line in lines if "name: currency," not in line)
    (root / "datasets/gl.v2.yml").write_text(text, encoding="utf-8")
    publish_dataset(load_workspace(root).workspace, "gl", store)
    workspace = load_workspace(root).workspace
    admit(workspace.projects[0], build_catalog(workspace, store), store)


def locked(_root: Path, store: Store) -> None:
    store.create_run(new_run(run_id=RUN, host="build-3", pid=7))
    store.create_run(new_run())


def lost(_root: Path, store: Store) -> None:
    store.create_run(new_run(run_id=RUN))
    store.database.write(lambda c: c.execute(LOCKS.delete()))
    store.cancel(RUN)
    store.set_running(RUN)


def unset(root: Path, _store: Store) -> None:
    open_store("env:WEFT_STORE", root)


def sql(text: str) -> Callable[[Path, Store], None]:
    def change(root: Path, store: Store) -> None:
        store.database.write(lambda c: c.exec_driver_sql(text))
        try:
            open_store("sqlite:///.weft/weft.db", root)
        except WeftError as found:
            raise WeftError(
                [type(d)(d.code, d.message.replace(str(root), "/home/ann/fx"), d.help) for d in found.diagnostics]
            ) from found

    return change


def old(_root: Path, _store: Store) -> None:
    raise too_old("postgresql://ann@db/weft", None)


def another(_root: Path, store: Store) -> None:
    store.record(dataset("gl", 1, "journal_id"))
    store.record(dataset("gl", 1, "journal_id", "currency"))


def unknown(_root: Path, store: Store) -> None:
    store.create_run(new_run(run_id=RUN))
    store.run("0200")


def several(_root: Path, store: Store) -> None:
    store.create_run(new_run(run_id=RUN))
    store.create_run(new_run(project("orders"), run_id=RUN[:-1] + "b"))
    store.run("019a")


def no_version(root: Path, store: Store) -> None:
    disable_dataset(load_workspace(root).workspace, "gl@3", store)


PAGES: dict[Code, Callable[[Path, Store], None]] = {
    "W1101": broken,
    "W1102": not_active,
    "W1103": changed,
    "W1104": inactive,
    "W1105": conflict,
    "W1501": locked,
    "W1502": lost,
    "W1601": unset,
    "W1602": sql("DROP TABLE locks"),
    "W1603": old,
    "W1604": sql("UPDATE store_version SET version_num = '0002'"),
    "W1605": another,
    "W1606": unknown,
    "W1607": several,
    "W1608": no_version,
}


@pytest.mark.parametrize("code", PAGES)
def test_the_page_of_a_code_shows_its_message(code: Code, root: Path, here: Store) -> None:
    with pytest.raises(WeftError) as found:
        PAGES[code](root, here)
    assert found.value.code == code
    reported = "\n".join(line.rstrip() for line in str(found.value).splitlines())
    assert f"```text\n{reported}\n```\n" in page(code), f"{ERRORS} shows another text for {code}:\n{reported}"
