"""Jobs that run on their own: real processes, with a fake job, and one real job on Spark."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import Ran, weft
from killed_streams import java_of
from weft.streams.checkpoint.lock import find_holder, find_process
from weft.streams.checkpoint.supervisor import (
    SupervisorFiles,
    SupervisorRecord,
    read_record,
    try_read_record,
    write_record,
)
from weft.streams.run import supervise as supervising

DATA = Path(__file__).parents[1] / "data" / "streams" / "orders_shipments"
SRC = Path(__file__).parents[2] / "src"
JOB = "orders_shipments"
# The program of the processes: the supervisor is real, the job runs the script next to this file.
STAND_IN = """
import os, sys, time
from pathlib import Path
from weft.streams.run import supervise
from weft.cli.main import main

supervise.PROGRAM = (sys.executable, __file__)
if "--continuous" not in sys.argv:
    main()
folder = Path({folder!r})
lives = folder / "lives"
lives.write_text(str(int(lives.read_text()) + 1) if lives.exists() else "1")
exec((folder / "job.py").read_text())
"""
STOPPABLE = "stop = Path({stop!r})\nwhile not stop.exists(): time.sleep(0.05)\n"
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(0.05)\n"
HARD = "while True: time.sleep(0.05)\n"
FALLS_ONCE = "if lives.read_text() == '1': os.kill(os.getpid(), 9)\n" + STOPPABLE
# Holds the lock of a statement as a real job does.
TAKES_LOCK = """
from weft.streams.checkpoint.lease import lock_statement
holding = lock_statement(Path({lock!r}), "order_status")
holding.__enter__()
"""
REFUSED = """
import json
Path({answer!r}).write_text(json.dumps(
    {{"diagnostics": [{{"code": "W2301", "severity": "error", "message": "not there", "help": "see"}}]}}))
sys.exit(1)
"""


def eventually(what: Callable[[], Any], seconds: float = 60.0, every: float = 0.05) -> Any:
    """Wait until something holds and return it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(every)
    return pytest.fail(f"it did not happen within {seconds} s", pytrace=True)


class Job:
    """A job in a folder of its own, whose process is fake."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        shutil.copytree(DATA, folder, dirs_exist_ok=True)
        self.files = SupervisorFiles(folder / ".weft" / "streams" / JOB)
        program = folder / "program.py"
        program.write_text(STAND_IN.format(folder=str(folder)))
        monkeypatch.setenv("PYTHONPATH", str(SRC))

        monkeypatch.setattr(supervising, "PROGRAM", (sys.executable, str(program)))

    def does(self, text: str) -> None:
        script = text.format(stop=str(self.files.stop), answer=str(self.files.answer), lock=str(self.lock))
        (self.folder / "job.py").write_text(script)

    def weft(self, *words: str) -> Ran:
        return weft("stream", *words, root=self.folder)

    @property
    def lock(self) -> Path:
        return self.files.job / "order_status" / "lock"

    @property
    def record(self) -> SupervisorRecord:
        found = read_record(self.files)
        assert found is not None
        return found

    @property
    def lives(self) -> int:
        lives = self.folder / "lives"
        return int(lives.read_text() or 0) if lives.exists() else 0

    def end(self) -> None:
        found = try_read_record(self.files)
        for one in () if found is None else (found.supervisor, found.child):
            if one.runs:
                os.kill(one.pid, signal.SIGKILL)


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    found = Job(tmp_path / "job", monkeypatch)
    yield found
    found.end()


def test_a_job_is_started_listed_and_stopped(job: Job) -> None:
    job.does(STOPPABLE)
    ran = job.weft("start", f"{JOB}.sql", "--json")
    assert ran.code == 0, ran.out
    assert ran.data["state"] == "running"
    assert ran.data["log"] == str(job.files.log)
    status = job.weft("status", f"{JOB}.sql", "--json").data
    assert (status["state"], status["supervisor"], status["restarts"]) == ("running", ran.data["pid"], 0)
    assert status["pid"] == ran.data["child"] == job.record.child_pid
    again = job.weft("start", f"{JOB}.sql", "--json")
    assert (again.code, again.codes) == (8, ["W2215"])
    stopped = job.weft("stop", f"{JOB}.sql", "--json")
    assert (stopped.code, stopped.data["stopped"]) == (0, "after its batch")
    assert job.record.state == "stopped"
    assert job.weft("status", f"{JOB}.sql", "--json").data["state"] == "stopped"
    once_more = job.weft("stop", f"{JOB}.sql", "--json")
    assert (once_more.code, once_more.codes) == (8, ["W2215"])


def test_a_job_that_is_killed_comes_back_and_says_how_often(job: Job) -> None:
    job.does(FALLS_ONCE)
    assert job.weft("start", f"{JOB}.sql").code == 0
    eventually(lambda: job.record.state == "running" and len(job.record.restarts) == 1)
    eventually(lambda: job.lives == 2)
    status = job.weft("status", f"{JOB}.sql", "--json").data
    assert (status["restarts"], status["error"]["code"]) == (1, "W2214")
    assert job.weft("stop", f"{JOB}.sql").code == 0


def test_a_job_that_is_refused_stays_down_with_its_error(job: Job) -> None:
    job.does(REFUSED)
    job.weft("start", f"{JOB}.sql")
    eventually(lambda: job.record.state == "failed")
    ran = job.weft("status", f"{JOB}.sql")
    assert "orders_shipments is failed" in ran.out
    assert "error[W2301]: not there" in ran.out
    assert job.lives == 1


def test_a_job_that_does_not_hear_is_ended_and_one_that_resists_is_killed(job: Job) -> None:
    job.does(HARD)
    job.weft("start", f"{JOB}.sql")
    eventually(lambda: job.lives == 1)
    ended = job.weft("stop", f"{JOB}.sql", "--timeout", "500ms", "--json")
    assert (ended.code, ended.data["stopped"]) == (0, "ended")
    job.does(DEAF)
    job.weft("start", f"{JOB}.sql")
    child = eventually(lambda: job.record.child if job.record.child.runs else None)
    eventually(lambda: job.lives == 2)
    resists = job.weft("stop", f"{JOB}.sql", "--timeout", "500ms", "--json")
    assert (resists.code, resists.codes) == (8, ["W2215"])
    assert child.runs
    killed = job.weft("stop", f"{JOB}.sql", "--timeout", "500ms", "--force", "--json")
    assert (killed.code, killed.data["stopped"]) == (0, "killed")
    assert not child.runs


def test_a_supervisor_that_is_ended_ends_its_job_after_the_batch(job: Job) -> None:
    job.does(STOPPABLE)
    job.weft("start", f"{JOB}.sql")
    supervisor, child = job.record.supervisor, job.record.child
    os.kill(supervisor.pid, signal.SIGTERM)
    eventually(lambda: not supervisor.runs and not child.runs)
    assert job.record.state == "stopped"


def test_a_job_whose_supervisor_died_is_still_stopped(job: Job) -> None:
    job.does(STOPPABLE)
    job.weft("start", f"{JOB}.sql")
    supervisor, child = job.record.supervisor, job.record.child
    os.kill(supervisor.pid, signal.SIGKILL)
    eventually(lambda: not supervisor.runs)
    assert job.weft("status", f"{JOB}.sql", "--json").data["state"] == "running"
    assert job.weft("start", f"{JOB}.sql", "--json").codes == ["W2215"]
    assert job.weft("stop", f"{JOB}.sql").code == 0
    assert not child.runs


def test_of_two_starts_at_the_same_moment_one_is_refused(job: Job) -> None:
    job.does(STOPPABLE)
    words = [
        sys.executable,
        str(job.folder / "program.py"),
        "-C",
        str(job.folder),
        "stream",
        "start",
        f"{JOB}.sql",
    ]
    both = [subprocess.Popen([*words, "--json"], stdout=subprocess.PIPE) for _ in range(2)]
    documents = [json.loads(one.communicate()[0]) for one in both]
    assert sorted(one.returncode for one in both) == [0, 8]
    (won,) = [one["data"] for one in documents if one["ok"]]
    assert [d["code"] for one in documents for d in one["diagnostics"] if not one["ok"]] == ["W2215"]
    assert (job.record.pid, job.record.child_pid) == (won["pid"], won["child"])
    eventually(lambda: job.lives == 1)
    assert job.weft("stop", f"{JOB}.sql").code == 0
    assert job.lives == 1


def test_a_job_that_was_killed_with_its_supervisor_is_failed_and_starts_again(job: Job) -> None:
    job.does(STOPPABLE)
    job.weft("start", f"{JOB}.sql")
    supervisor, child = job.record.supervisor, job.record.child
    for one in (supervisor, child):
        os.kill(one.pid, signal.SIGKILL)
    eventually(lambda: not supervisor.runs and not child.runs)
    status = job.weft("status", f"{JOB}.sql", "--json").data
    assert (status["state"], status["pid"], status["supervisor"]) == ("failed", None, None)
    assert status["error"]["code"] == "W2225"
    assert "error[W2225]" in job.weft("status", f"{JOB}.sql").out
    refused = job.weft("stop", f"{JOB}.sql", "--json")
    assert (refused.code, refused.codes) == (8, ["W2215"])
    assert "were killed" in refused.document["diagnostics"][0]["message"]
    assert job.weft("start", f"{JOB}.sql").code == 0
    assert job.weft("status", f"{JOB}.sql", "--json").data["error"] is None
    assert job.weft("stop", f"{JOB}.sql").code == 0


def test_a_child_that_no_record_names_holds_its_job_and_is_killed_when_it_does_not_hear(job: Job) -> None:
    """The supervisor was killed after it had started the child and before it could write that down."""
    job.does(TAKES_LOCK + DEAF)
    job.weft("start", f"{JOB}.sql")
    supervisor, child = job.record.supervisor, job.record.child
    eventually(lambda: find_holder(job.lock))
    os.kill(supervisor.pid, signal.SIGKILL)
    eventually(lambda: not supervisor.runs)
    write_record(job.files, replace(job.record, state="starting", child_pid=0, child_began=""))
    status = job.weft("status", f"{JOB}.sql")
    assert "is running" in status.out
    assert "its supervisor has ended" in status.out
    assert job.weft("start", f"{JOB}.sql", "--json").codes == ["W2215"]
    stopped = job.weft("stop", f"{JOB}.sql", "--timeout", "300ms", "--force", "--json")
    assert (stopped.code, stopped.data["stopped"]) == (0, "killed")
    assert not child.runs
    assert job.record.state == "stopped"


def test_a_supervisor_that_hangs_is_killed_with_force(job: Job) -> None:
    job.does(STOPPABLE)
    job.weft("start", f"{JOB}.sql")
    supervisor, child = job.record.supervisor, job.record.child
    os.kill(supervisor.pid, signal.SIGSTOP)
    stays = job.weft("stop", f"{JOB}.sql", "--timeout", "300ms", "--json")
    assert (stays.code, stays.codes) == (8, ["W2215"])
    killed = job.weft("stop", f"{JOB}.sql", "--timeout", "300ms", "--force", "--json")
    assert (killed.code, killed.data["stopped"]) == (0, "killed")
    assert not supervisor.runs
    assert not child.runs
    assert job.weft("status", f"{JOB}.sql", "--json").data["state"] == "stopped"


def test_a_damaged_record_is_reported_and_hides_neither_the_job_nor_its_end(job: Job) -> None:
    job.does(STOPPABLE)
    job.weft("start", f"{JOB}.sql")
    child = job.record.child
    whole = job.files.record.read_text()
    job.files.record.write_text(whole.replace(str(child.pid), str(os.getpid())))
    status = job.weft("status", f"{JOB}.sql", "--json")
    assert (status.code, status.codes, status.data["state"]) == (0, ["W2226"], "running")
    assert job.weft("status", "--json").codes == ["W2226"]
    assert job.weft("start", f"{JOB}.sql", "--json").codes == ["W2215"]
    assert job.weft("stop", f"{JOB}.sql").code == 0
    assert not child.runs
    job.files.record.write_text("")
    refused = job.weft("stop", f"{JOB}.sql", "--json")
    assert (refused.code, refused.codes) == (8, ["W2215"])
    assert job.weft("status", f"{JOB}.sql", "--json").codes == ["W2226"]
    assert job.weft("start", f"{JOB}.sql", "--json").data["state"] == "running"
    assert job.weft("stop", f"{JOB}.sql").code == 0


def test_a_job_with_mistakes_is_not_started(job: Job) -> None:
    file = job.folder / f"{JOB}.sql"
    file.write_text(file.read_text().replace("'path'", "'pth'"))
    ran = job.weft("start", f"{JOB}.sql", "--json")
    assert ran.code == 3
    assert not job.files.root.exists()


def test_jobs_that_have_not_run_are_listed_as_such(job: Job) -> None:
    assert "no jobs have run yet" in job.weft("status").out
    ran = job.weft("status", f"{JOB}.sql", "--json")
    assert (ran.code, ran.codes) == (8, ["W2215"])
    assert job.weft("status", "nothing", "--json").code == 2
    for words in (("--rejects",), ("--rejects", "5"), ("--rejects=5",)):
        assert job.weft("status", f"{JOB}.sql", *words, "--json").codes == ["W2215"]
        assert job.weft("status", *words, f"{JOB}.sql", "--json").codes == ["W2215"]


def add_a_match(folder: Path) -> None:
    """Add a file to each stream: an order and its shipment, both at the latest time of the shipments."""
    shipments = (folder / "shipments.csv").read_text().splitlines()
    latest = max(int(line.rpartition(",")[2]) for line in shipments[1:])
    head = (folder / "orders.csv").read_text().splitlines()[0]
    (folder / "orders2.csv").write_text(f"{head}\nORD-900,1,9.00,confirmed,{latest}\n")
    (folder / "shipments2.csv").write_text(f"{shipments[0]}\nSHP-900,ORD-900,UPS,1Z,{latest}\n")


@pytest.mark.usefixtures("jvm")
def test_a_real_job_is_killed_comes_back_goes_on_where_it_was_and_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    shutil.copytree(DATA, tmp_path / "job")
    root = tmp_path / "job"
    (root / "weft.yml").write_text(
        "spark:\n  master: local[2]\n  conf: {spark.driver.memory: 512m, spark.sql.shuffle.partitions: '2'}\n"
    )

    file = root / f"{JOB}.sql"
    file.write_text(file.read_text().replace(".csv'", "*.csv'"))

    def read_status() -> Any:
        return weft("stream", "status", f"{JOB}.sql", "--json", root=root).data

    started = weft("stream", "start", f"{JOB}.sql", "--json", root=root)
    assert started.code == 0, started.out
    child = find_process(started.data["child"])
    try:
        found = eventually(lambda: next((s for s in read_status()["statements"] if s["batches"]), None), 400, 1)
        assert (found["rows"], found["state"]) == (8, "running")
        assert found["ledger"]["left"] | {"evicted": 0} == {
            "in": 10, "matched": 8, "waiting": 2, "unmatched": 0, "late": 0, "rejected": 0, "evicted": 0,
        }  # fmt: skip
        assert found["held_back_by"] in ("orders", "shipments")
        with monkeypatch.context() as without:  # that a job runs is seen before Spark starts
            without.delattr("weft.io.spark.session._started")
            busy = weft("stream", "run", f"{JOB}.sql", "--available", "--json", root=root)
        assert (busy.code, busy.codes) == (8, ["W2205"])
        java = java_of(child.pid)
        assert java is not None
        jvm = find_process(java)
        # Python alone: the supervisor ends the JVM before it starts another.
        os.kill(child.pid, signal.SIGKILL)
        add_a_match(root / "data")
        eventually(lambda: not jvm.runs)
        found = eventually(lambda: next((s for s in read_status()["statements"] if s["rows"] > 8), None), 400, 1)
        assert (found["rows"], found["ledger"]["left"]["in"]) == (9, 11)
        assert read_status()["restarts"] == 1
        child = find_process(read_status()["pid"])
    finally:
        stopped = weft("stream", "stop", f"{JOB}.sql", "--timeout", "120s", "--force", "--json", root=root)
    assert stopped.data["stopped"] == "after its batch", (SupervisorFiles(root / ".weft/streams" / JOB).log).read_text()
    assert not child.runs
    assert read_status()["state"] == "stopped"
