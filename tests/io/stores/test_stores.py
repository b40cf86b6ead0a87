"""The same promises of every store: a local folder, an S3 server, HDFS, and obstore's store in memory."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from hdfs_cluster import Hdfs
from memory_files import MemoryFiles
from s3_gateway import BUCKET, Gateway
from weft.errors import FileStoreError
from weft.io.stores import FileStore, hdfs, local, open_store
from weft.io.stores.address import parse_address
from weft.io.stores.hdfs import HdfsFiles
from weft.io.stores.local import LocalFiles

_NUMBERS = count()


@pytest.fixture(params=["local", "memory", "s3", pytest.param("hdfs", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    """Return an empty store of each kind."""
    name = f"test-{next(_NUMBERS)}"
    if request.param == "local":
        return open_store(str(tmp_path / name))
    if request.param == "memory":
        return MemoryFiles(name)
    if request.param == "hdfs":
        cluster: Hdfs = request.getfixturevalue("hdfs")
        return open_store(f"{cluster.address}/{name}", cluster.settings)
    gateway: Gateway = request.getfixturevalue("s3_gateway")
    for key, value in gateway.environment.items():
        monkeypatch.setenv(key, value)
    return open_store(f"s3a://{BUCKET}/{name}", {"timeout": "10", "retries": "1"})


ODD_NAMES = (
    "a b/c d.txt", "ü/日本/é.json", "e\u0301", "50%/a%20b", "k=v/part-0", "x+y&z?q=1#top", "'single' \"double\"", "~a", ".hidden",
    "a,b;c@d!$()", "[x]*{y}",
)  # fmt: skip


def test_a_file_is_what_was_put(store: FileStore) -> None:
    assert store.list() == []
    assert store.stat("a/b") is None
    with pytest.raises(FileNotFoundError):
        store.read("a/b")
    store.put("a/b", b"first")
    before = store.stat("a/b")
    store.put("a/b", memoryview(b"the second"))
    after = store.stat("a/b")
    assert store.read("a/b") == b"the second"
    assert before is not None
    assert after is not None
    assert (before.size, after.size, after.name) == (5, 10, "a/b")
    assert before.version != after.version
    assert store.list() == [after]
    store.put("empty", b"")
    assert store.read("empty") == b""
    assert [info.size for info in store.list("empty")] == [0]


def test_a_range_is_a_slice(store: FileStore) -> None:
    store.put("digits", b"0123456789")
    for start, length in ((0, 10), (2, 3), (8, 10), (9, 1), (10, 1), (12, 3), (3, 0)):
        assert store.read_range("digits", start, length) == b"0123456789"[start : start + length], (start, length)
    with pytest.raises(FileNotFoundError):
        store.read_range("others", 0, 3)


def test_a_file_is_created_once(store: FileStore) -> None:
    store.create("commits/1", b"mine")
    for data in (b"theirs", b"mine"):
        with pytest.raises(FileExistsError):
            store.create("commits/1", data)
    assert store.read("commits/1") == b"mine"
    store.delete(["commits/1"])
    store.create("commits/1", b"theirs")
    assert store.read("commits/1") == b"theirs"


def test_of_eight_threads_exactly_one_creates_a_file(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(thread: int) -> bool:
        try:
            store.create(f"commits/{number}", b"%d" % thread * 10_000)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        for number in range(5):
            won = list(pool.map(create, range(8)))
            assert won.count(True) == 1, won
            assert store.read(f"commits/{number}") == b"%d" % won.index(True) * 10_000
    assert [info.name for info in store.list()] == [f"commits/{n}" for n in range(5)]
    # Those that lost have removed what they had written under another name.
    monkeypatch.setattr(local, "_TEMPORARY", "other-")
    monkeypatch.setattr(hdfs, "_TEMPORARY", "other-")
    assert [info.name for info in store.list()] == [f"commits/{n}" for n in range(5)]


CREATE = """
import pickle, sys
store, who = pickle.loads(bytes.fromhex(sys.argv[1])), sys.argv[2].encode()
for number in range(20):
    try:
        store.create(f"commits/{number:02}", who)
        print(number)
    except FileExistsError:
        pass
"""


def test_of_two_processes_exactly_one_creates_each_file(store: FileStore) -> None:
    if isinstance(store, MemoryFiles):
        assert store.root == str(parse_address(store.root))  # there is nothing to share
        return
    sent = pickle.dumps(store).hex()
    running = [
        subprocess.Popen([sys.executable, "-c", CREATE, sent, who], stdout=subprocess.PIPE, text=True)
        for who in ("one", "two")
    ]
    won = [set(process.communicate(timeout=60)[0].split()) for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert not won[0] & won[1]
    assert won[0] | won[1] == {str(n) for n in range(20)}
    for number in range(20):
        assert store.read(f"commits/{number:02}") == (b"one" if str(number) in won[0] else b"two")


def test_a_listing_has_every_file_once_in_order(store: FileStore) -> None:
    # More than a page of the store; those of S3 have 1,000 files, those of the HDFS of the tests 10.
    many = 55 if isinstance(store, HdfsFiles) else 1_050
    names = [f"parts/{n:04}" for n in range(many)] + ["part", "partsother", "parts-x/1", "z/y/x"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.put(name, b"x"), names))
    assert [info.name for info in store.list()] == sorted(names)
    assert [info.name for info in store.list("parts/")] == sorted(n for n in names if n.startswith("parts/"))
    assert [info.name for info in store.list("parts/00")] == sorted(n for n in names if n.startswith("parts/00"))
    assert [info.name for info in store.list("part")] == sorted(n for n in names if n.startswith("part"))
    assert [info.name for info in store.list("z/")] == ["z/y/x"]
    assert store.list("nothing/there") == []
    # In one call; those that do not exist are ignored.
    store.delete(["gone", *names[: many - 10], "gone/too"])
    assert [info.name for info in store.list("parts/")] == names[many - 10 : many]


def test_names_may_hold_any_plain_character(store: FileStore) -> None:
    for name in ODD_NAMES:
        store.create(name, name.encode())
    assert [info.name for info in store.list()] == sorted(ODD_NAMES)
    assert [store.read(name).decode() for name in ODD_NAMES] == list(ODD_NAMES)
    store.delete(ODD_NAMES)
    assert store.list() == []


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", ".", "../a", "a/../b", "a\\b", "a\nb", "x" * 256])
def test_a_name_that_some_store_cannot_hold_is_refused_by_all(name: str, tmp_path: Path) -> None:
    for files in (open_store(str(tmp_path)), MemoryFiles("names")):
        for call in (files.read, files.stat, lambda n, f=files: f.put(n, b""), lambda n, f=files: f.delete([n])):
            with pytest.raises(FileStoreError) as failure:
                call(name)
            assert failure.value.code == "W1901"


def test_only_a_local_file_is_mapped_into_memory(store: FileStore) -> None:
    store.put("a", b"content")
    store.put("empty", b"")
    mapped = store.open_local("a")
    if isinstance(store, LocalFiles):
        assert mapped is not None
        assert bytes(mapped) == b"content"
        assert bytes(store.open_local("empty") or b"-") == b"-"  # an empty view is false
        store.put("a", b"other")
        assert bytes(mapped) == b"content"
    else:
        assert mapped is None


def test_a_killed_server_is_reported_and_used_again_when_it_is_back(
    s3_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in s3_gateway.environment.items():
        monkeypatch.setenv(key, value)
    store = open_store(f"s3://{BUCKET}/killed", {"timeout": "2", "retries": "1"})
    store.put("a", b"content")
    s3_gateway.kill()
    try:
        for call in (
            lambda: store.read("a"),
            lambda: store.put("b", b""),
            lambda: store.create("b", b""),
            store.list,
            lambda: store.delete(["a"]),
        ):
            with pytest.raises(FileStoreError) as failure:
                call()
            assert failure.value.code == "W1905"
            assert store.root in str(failure.value)
    finally:
        s3_gateway.start()
    assert store.read("a") == b"content"
    store.create("b", b"b")
    assert [info.name for info in store.list()] == ["a", "b"]


def test_a_missing_bucket_and_a_wrong_password_have_their_own_codes(
    s3_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in s3_gateway.environment.items():
        monkeypatch.setenv(key, value)
    calls: tuple[Callable[[FileStore], object], ...] = (
        lambda s: s.put("a", b""),
        lambda s: s.create("a", b""),
        lambda s: s.list(),
        lambda s: s.read("a"),
    )
    for call in calls:
        with pytest.raises(FileStoreError) as failure:
            call(open_store("s3://nowhere/a", {"retries": "0"}))
        assert failure.value.code == "W1907"
    monkeypatch.setenv("OTHER_SECRET", "hunter2-and-more")
    store = open_store(f"s3://{BUCKET}/a", {"secret_key": "env:OTHER_SECRET", "retries": "0"})
    for call in calls:
        with pytest.raises(FileStoreError) as failure:
            call(store)
        assert failure.value.code == "W1906"
        assert "hunter2" not in f"{failure.value} {store!r} {store.root} {pickle.dumps(store)!r}"
