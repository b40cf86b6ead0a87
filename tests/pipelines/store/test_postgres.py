from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres import Server, running_server
from store_values import counts, new_run, output, registration
from weft.errors import StoreError
from weft.pipelines.store.open import open_store, upgrade_store
from weft.pipelines.store.writer import Store


@pytest.fixture(scope="module")
def shaky() -> Iterator[Server]:
    """Return a server that a test may stop."""
    with running_server() as server:
        upgrade_store(server.create("team"), Path())
        yield server


@pytest.fixture
def shaky_store(shaky: Server, tmp_path: Path) -> Iterator[Store]:
    with open_store(shaky.url("team"), tmp_path, patience=1.0) as store:
        yield store


def test_a_server_that_is_gone_is_reported_and_nothing_is_half_written(shaky: Server, shaky_store: Store) -> None:
    run = shaky_store.create_run(new_run())
    shaky_store.set_running(run.id)
    shaky_store.begin_publish(run.id, [output(run.id)])
    shaky.stop()
    try:
        with pytest.raises(StoreError, match="cannot be reached") as refused:
            shaky_store.complete(run.id, [registration()])
        assert refused.value.code == "W1601"
    finally:
        shaky.start()
    assert shaky_store.run(run.id).status == "running"
    assert [o.state for o in shaky_store.outputs(run.id)] == ["publishing"]
    assert shaky_store.registered() == ()
    done = shaky_store.complete(run.id, [registration()])
    assert done.status == "completed"
    assert len(shaky_store.registered()) == 1
    shaky_store.remove_run(run.id)


def test_a_short_break_is_waited_for(shaky: Server, tmp_path: Path) -> None:
    with open_store(shaky.url("team"), tmp_path, patience=30.0) as store:
        run = store.create_run(new_run(period="2026-02"))
        shaky.stop()
        back = threading.Timer(0.5, shaky.start)
        back.start()
        store.set_running(run.id)
        back.join()
        store.operation_done(run.id, counts(10))
        assert store.complete(run.id).last_completed_operation == 10


def test_a_heartbeat_survives_a_short_break_and_tells_a_long_one(shaky: Server, shaky_store: Store) -> None:
    run = shaky_store.create_run(new_run(period="2026-03"))
    shaky.stop()
    try:
        with shaky_store.heartbeat(run.id, 0.01) as heartbeat:
            heartbeat._thread.join(30)
            with pytest.raises(StoreError) as refused:
                heartbeat.check()
        assert refused.value.code == "W1601"
    finally:
        shaky.start()
    assert shaky_store.cancel(run.id).status == "cancelled"


def test_a_lost_answer_to_a_commit_changes_nothing(shaky_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit arrived and the line broke before its answer: doing it again comes to the same."""
    run = shaky_store.create_run(new_run(period="2026-04"))
    shaky_store.set_running(run.id)
    shaky_store.begin_publish(run.id, [output(run.id)])
    database = type(shaky_store.database)
    write = database._attempt
    broken: list[str] = []

    def once(self: object, work: object, options: object) -> object:
        answer: object = write(self, work, options)  # type: ignore[arg-type]
        if not broken:
            broken.append("line")
            return write(self, work, options)  # type: ignore[arg-type]
        return answer

    monkeypatch.setattr(database, "_attempt", once)
    done = shaky_store.complete(run.id, [registration("other", period="2026-04")])
    assert done.status == "completed"
    assert [v.dataset.version for v in shaky_store.registered() if v.dataset.name == "other"] == [1]


def test_an_unknown_database_and_a_wrong_user_are_reported(shaky: Server, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as database:
        open_store(shaky.url("nowhere"), tmp_path, patience=0.2)
    assert (database.value.code, database.value.help) == ("W1601", "create the database first: createdb")
    with pytest.raises(StoreError) as user:
        open_store(shaky.url("team").replace("weft@", "eve:geheim@"), tmp_path, patience=0.2)
    assert "PGPASSWORD" in user.value.help
    assert "geheim" not in str(user.value)


def test_runs_that_register_one_name_at_once_get_versions_of_their_own(shaky: Server, tmp_path: Path) -> None:
    periods = [f"2027-{month:02d}" for month in range(1, 7)]
    failures: list[Exception] = []

    def complete(period: str) -> None:
        try:
            with open_store(shaky.url("team"), tmp_path) as store:
                run = store.create_run(new_run(period=period))
                store.set_running(run.id)
                store.begin_publish(run.id, [output(run.id, target=period)])
                store.complete(run.id, [registration("many", period=period)])
        except Exception as failure:  # noqa: BLE001  # reported below
            failures.append(failure)

    threads = [threading.Thread(target=complete, args=(period,)) for period in periods]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with open_store(shaky.url("team"), tmp_path) as store:
        versions = [v.dataset.version for v in store.registered() if v.dataset.name == "many"]
    assert versions == [1, 2, 3, 4, 5, 6]
