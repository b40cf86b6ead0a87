"""A request that took effect although its answer was lost, and writers that are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError

from hdfs_cluster import Hdfs
from memory_files import MemoryFiles
from weft.errors import FileStoreError
from weft.io.stores import base, open_store
from weft.io.stores.base import unreachable_error
from weft.io.stores.hdfs import HdfsFiles

Plan = list[str]
"""What happens to each request in turn: ``lost`` takes effect, ``failed`` does not; neither is answered.

``conflict`` is what S3 answers when another request for the name is under way, which may fail.
"""


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_FIRST_WAIT", 0.0)


def lose_answers(monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    """Let the next uploads fare as planned."""
    put = obstore.put

    def unreliable(*args: Any, **options: Any) -> Any:
        step = plan.pop(0) if plan else ""
        if step == "conflict":
            raise AlreadyExistsError("409 ConditionalRequestConflict")
        if step != "failed":
            put(*args, **options)
        if step:
            raise GenericError("HTTP error: connection reset")

    monkeypatch.setattr(obstore, "put", unreliable)


@pytest.mark.parametrize("plan", [["lost"], ["failed"], ["failed", "lost"], ["lost", "failed", "failed"], ["conflict"]])
def test_a_repeated_request_does_not_find_its_own_file(monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    store = MemoryFiles()
    lose_answers(monkeypatch, plan)
    store.create("commits/1", b"mine")
    assert not plan
    assert store.read("commits/1") == b"mine"
    with pytest.raises(FileExistsError):  # the first request of another call
        store.create("commits/1", b"mine")


@pytest.mark.parametrize("plan", [[], ["failed"], ["failed", "failed"]])
def test_a_repeated_request_finds_the_file_of_another(monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    store = MemoryFiles()
    store.put("commits/1", b"theirs")
    lose_answers(monkeypatch, plan)
    with pytest.raises(FileExistsError):
        store.create("commits/1", b"mine")
    assert store.read("commits/1") == b"theirs"


def test_stores_that_delete_one_by_one_delete_all_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    store, delete = MemoryFiles(), obstore.delete

    def one_by_one(files: Any, names: Any) -> None:
        for name in [names] if isinstance(names, str) else names:
            obstore.head(files, name)  # raises for a file that does not exist
            delete(files, name)

    monkeypatch.setattr(obstore, "delete", one_by_one)
    for name in ("a", "b", "c"):
        store.put(name, b"")
    store.delete(["a", "gone", "b", "gone/too"])
    assert [info.name for info in store.list()] == ["c"]


def test_a_store_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ["failed"] * 10
    lose_answers(monkeypatch, plan)
    with pytest.raises(FileStoreError) as failure:
        MemoryFiles(retries="2").create("commits/1", b"mine")
    assert failure.value.code == "W1905"
    assert len(plan) == 7


@pytest.mark.slow
@pytest.mark.parametrize("write", [HdfsFiles.create, HdfsFiles.put])
def test_a_repeated_rename_of_hdfs_finds_its_own_file(
    hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch, write: Callable[[HdfsFiles, str, bytes], None]
) -> None:
    store = open_store(f"{hdfs.address}/lost-{write.__name__}", hdfs.settings)
    assert isinstance(store, HdfsFiles)
    once, plan = HdfsFiles._once, ["lost", "failed"]

    def unreliable(self: HdfsFiles, method: str, url: str, *rest: Any) -> bytes:
        step = plan.pop(0) if plan and "op=RENAME" in url else ""
        answer = once(self, method, url, *rest) if step != "failed" else b""
        if step:
            raise unreachable_error(self.root, "connection reset")
        return answer

    monkeypatch.setattr(HdfsFiles, "_once", unreliable)
    write(store, "commits/1", b"mine")
    assert not plan
    assert store.read("commits/1") == b"mine"
    assert [info.name for info in store.list()] == ["commits/1"]


def test_a_link_whose_answer_was_lost_is_our_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    link = os.link

    def unreliable(*paths: Path) -> None:
        link(*paths)
        link(*paths)  # what a network file system makes of a request that it repeats

    monkeypatch.setattr(os, "link", unreliable)
    open_store(str(tmp_path)).create("commits/1", b"mine")
    assert [path.name for path in (tmp_path / "commits").iterdir()] == ["1"]


def test_a_forked_process_reports_that_it_has_no_threads_instead_of_waiting() -> None:
    code = (
        "import os, sys\n"
        "from memory_files import MemoryFiles\n"
        "store = MemoryFiles()\n"
        "store.put('a', b'x')\n"
        "if os.fork() == 0:\n"
        "    store.read('a')\n"
        "os.wait()\n"
    )
    path = os.pathsep.join((str(Path(__file__).parents[2]), *sys.path))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"error[W1908]: this process was forked" in done.stderr


KILLED = """
import os, sys
from weft.io.stores import open_store
os.fsync = lambda number: os.kill(os.getpid(), 9)
getattr(open_store(sys.argv[1]), sys.argv[2])("commits/1", b"new")
"""


@pytest.mark.parametrize("method", ["put", "create"])
def test_a_killed_writer_leaves_no_part_of_a_file(tmp_path: Path, method: str) -> None:
    store = open_store(str(tmp_path))
    store.put("commits/0" if method == "create" else "commits/1", b"old")
    before = store.list()
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), method], check=False)
    assert done.returncode == -9
    assert store.list() == store.list("commits/") == before
    assert len(list((tmp_path / "commits").iterdir())) == len(before) + 1, "the killed process had begun to write"
    store.put("commits/1", b"next")
    assert store.read("commits/1") == b"next"
