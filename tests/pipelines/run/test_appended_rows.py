"""Rows that a run has added to a table, and reruns and resumed runs of the same family that compute other rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_data import project_text, sample_workspace
from engine_runs import loaded
from staged_runs import StagedRun, opened, staged_run
from weft.errors import RunError
from weft.io.spark.session import Session
from weft.pipelines.run.publish import moves_of
from weft.pipelines.run.resume import rerun, resume
from weft.pipelines.store.records import RunFailure, short_id
from weft.pipelines.store.writer import Store

ADDED = """\
- {seq: 20, name: Table, type: output, arguments: {destination: {datasource_id: pg, table: added}, mode: append, columns: [journal_id]}}
"""
PG = "datasource: {id: pg, name: pg, type: jdbc, options: {url: 'jdbc:postgresql://db/d'}}\n"


class StartedError(Exception):
    """Everything was checked, and the run would begin."""


def started(**_: object) -> Session:
    raise StartedError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    changes = {"projects/fx_reporting.yml": project_text([ADDED]), "datasources/pg.yml": PG}
    return sample_workspace(tmp_path, {**changes, "scenarios/ts03_fx.yml": None})


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with opened(root) as store:
        yield store


def published(root: Path, store: Store, number: int, rerun_of: str | None = None) -> str:
    run = staged_run(root, store, number=number, rerun_of=rerun_of)
    store.begin_publish(run.run_id, [move.output for move in run.moves])
    store.complete(run.run_id, ())
    return run.run_id


def failed(root: Path, store: Store, number: int, rerun_of: str | None = None) -> StagedRun:
    run = staged_run(root, store, number=number, rerun_of=rerun_of)
    store.fail(run.run_id, RunFailure(operation_order=None, code="W1502", message="it died", detail=""))
    return run


def change_input(root: Path) -> None:
    data = root / "data" / "transactions.csv"
    data.write_text(data.read_text(encoding="utf-8").replace("8500.00", "1000.00"), encoding="utf-8")


def repeat(root: Path, store: Store, run: str, *, allow: bool = False) -> None:
    rerun(run, workspace=loaded(root), store=store, session=started, allow_changed_inputs=allow)


def proceed(root: Path, store: Store, run: str, *, allow: bool = False) -> None:
    resume(run, root=root, store=store, session=started, allow_changed_inputs=allow)


def test_a_failed_rerun_with_changed_inputs_finds_the_rows_of_its_first_run(root: Path, store: Store) -> None:
    first = published(root, store, 1)
    second = failed(root, store, 2, first).run_id
    for again in (repeat, proceed):
        with pytest.raises(StartedError):
            again(root, store, second)
    change_input(root)
    for again in (repeat, proceed):
        with pytest.raises(RunError, match=rf"W1515.*{short_id(first)} added its rows to pg:added"):
            again(root, store, second, allow=True)


def test_a_failed_run_whose_rerun_was_published_with_other_rows_is_not_resumed(root: Path, store: Store) -> None:
    first = failed(root, store, 1).run_id
    data = root / "data" / "transactions.csv"
    before = data.read_text(encoding="utf-8")
    change_input(root)
    second = published(root, store, 2, first)
    data.write_text(before, encoding="utf-8")
    for again in (repeat, proceed):
        with pytest.raises(RunError, match=rf"W1515.*{short_id(second)} added"):
            again(root, store, first)


def test_a_failed_run_whose_rerun_was_published_adds_only_what_is_missing(root: Path, store: Store) -> None:
    run = failed(root, store, 1)
    assert not moves_of([m.output for m in run.moves], {20: "append"}, store.run(run.run_id), store)[0].again
    published(root, store, 2, run.run_id)
    assert moves_of([m.output for m in run.moves], {20: "append"}, store.run(run.run_id), store)[0].again


def test_changed_inputs_are_allowed_as_long_as_nothing_was_added(root: Path, store: Store) -> None:
    first = failed(root, store, 1).run_id
    second = failed(root, store, 2, first).run_id
    change_input(root)
    for again in (repeat, proceed):
        with pytest.raises(StartedError):
            again(root, store, second, allow=True)
