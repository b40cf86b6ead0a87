"""Files with random faults: every finding has a code and a place, and nothing raises or hangs.

A failure names its seed: ``mutation(seed)`` makes the same file again.  ``--mutations-long`` tries 10,000
of them and prints the slowest.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from command_line import weft
from entity_texts import workspace
from mutations import EXTREMES, JOB, JOB_FILE, WORKSPACE, Mutation, mutation
from weft.cli.commands.validate import collect_findings
from weft.errors import CODES, Diagnostic, WeftError
from weft.pipelines.model import read_workspace as loading
from weft.pipelines.model.compose import compose
from weft.streams.plan.explain import explain_job
from weft.streams.plan.resolve import plan_text
from weft.streams.sql.job import read_job_text

SHARE, ALL, TOGETHER = 240, 10_000, 20
BY_COMMAND = 12  # one in so many also goes through the command
HANGS_AFTER = 30  # seconds of CPU, which a busy machine does not use up; nothing takes two
LONGEST_MESSAGE = 12_000  # an expression may have 10,000 characters
PLAN = ("plan", "orders_report", "-p", "2026-01")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first_seed" in metafunc.fixturenames:
        count = ALL if metafunc.config.getoption("--mutations-long") else SHARE
        metafunc.parametrize("first_seed", range(0, count, TOGETHER))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the workspace before anything is broken; files that stay the same are parsed once."""
    patch = pytest.MonkeyPatch()
    patch.setattr(loading, "compose", cache(compose))
    yield workspace(tmp_path_factory.mktemp("mutations"), {**WORKSPACE, JOB_FILE: JOB})
    patch.undo()


@pytest.fixture(scope="module")
def slowest() -> Iterator[list[tuple[float, int]]]:
    times: list[tuple[float, int]] = []
    yield times
    worst = ", ".join(f"{seconds:.2f} s (seed {seed})" for seconds, seed in sorted(times)[-5:])
    print(f"\n{len(times)} mutations; slowest: {worst}")  # noqa: T201


@contextmanager
def no_hang(seed: int) -> Iterator[None]:
    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"seed {seed} hangs")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, HANGS_AFTER)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def found_in(broken: Mutation, root: Path) -> tuple[Diagnostic, ...]:
    """Return the findings about a broken file; a job or project without errors is also planned."""
    if broken.file == JOB_FILE:
        try:
            plan = plan_text(read_job_text(root / JOB_FILE, JOB_FILE), root, file=JOB_FILE, env={})
        except WeftError as error:
            return error.diagnostics
        assert explain_job(plan).long
        return plan.warnings
    found = collect_findings(loading.load_workspace(root))
    if not any(f.severity == "error" for f in found):
        check_command(weft(*PLAN, root=root))
    return found


def check_command(ran: Any) -> None:
    assert "Traceback" not in ran.err, ran.err
    # An invalid store has a code of its own: files can be checked without it.
    assert ran.code in (0, 2, 3, 4) or "error[W1601]" in ran.err, ran


def check_finding(found: Diagnostic) -> None:
    assert found.code in CODES
    text = str(found)
    assert text.encode(), "what is printed can be encoded"
    assert len(found.message) < LONGEST_MESSAGE, found.message[:200]
    if found.severity == "error":
        assert found.at is not None, text
        assert found.at.file in (*WORKSPACE, JOB_FILE), text
        assert found.at.range["start"]["line"] >= 0


def test_the_files_that_are_broken_are_good_ones(root: Path) -> None:
    for file in (*WORKSPACE, JOB_FILE):
        whole = JOB if file == JOB_FILE else WORKSPACE[file]
        assert found_in(Mutation(-1, file, whole.encode()), root) == ()
    assert weft(*PLAN, root=root).code in (0, 4)


def test_an_invalid_file_is_reported_with_codes_and_locations(
    root: Path, first_seed: int, slowest: list[tuple[float, int]]
) -> None:
    for seed in range(first_seed, first_seed + TOGETHER):
        broken = mutation(seed)
        (root / broken.file).write_bytes(broken.content)
        started = time.process_time()
        try:
            with no_hang(seed):
                for found in found_in(broken, root):
                    check_finding(found)
                if seed % BY_COMMAND == 0:
                    words = ("stream", "check", JOB_FILE) if broken.file == JOB_FILE else ("validate",)
                    check_command(weft(*words, root=root))
        except Exception as problem:
            raise AssertionError(f"seed {seed} ({broken.file}): {problem!r}") from problem
        finally:
            slowest.append((time.process_time() - started, seed))
            (root / broken.file).write_text(
                JOB if broken.file == JOB_FILE else WORKSPACE[broken.file], encoding="utf-8"
            )


@pytest.mark.parametrize("case", range(len(EXTREMES)))
def test_an_extreme_value_is_reported_or_accepted(root: Path, case: int) -> None:
    file, old, new = EXTREMES[case]
    whole = JOB if file == JOB_FILE else WORKSPACE[file]
    assert old in whole
    broken = Mutation(-1, file, whole.replace(old, new, 1).encode())
    (root / file).write_bytes(broken.content)
    try:
        with no_hang(case):
            for found in found_in(broken, root):
                check_finding(found)
            check_command(weft(*(("stream", "check", JOB_FILE) if file == JOB_FILE else ("validate",)), root=root))
    finally:
        (root / file).write_text(whole, encoding="utf-8")


def test_the_same_seed_breaks_the_same_file_in_the_same_way() -> None:
    assert mutation(7) == mutation(7)
    assert len({mutation(seed).content for seed in range(200)}) > 190
    assert {mutation(seed).file for seed in range(200)} == {*WORKSPACE, JOB_FILE}


TRACEBACKS = {
    "spark: {conf: 1.5}\n": ("W1004", "1.5"),
    "spark: {conf: {a: 1.5}}\n": None,
    "weft: " + "9" * 5000 + "\n": ("W1022", "9" * 5000),
    "notify: [1e99999999999999999999]\n": ("W1022", "1e99999999999999999999"),
    "store: \"\\U00110000\"\n": ("W1001", "\\U00110000"),
    "store: \"a\\ud800\"\n": ("W1001", '"a\\ud800"'),
}  # fmt: skip


@pytest.mark.parametrize("text", TRACEBACKS, ids=lambda text: text[:30])
def test_what_once_ended_in_a_traceback_is_a_finding(text: str, tmp_path: Path) -> None:
    root = workspace(tmp_path, {**WORKSPACE, "weft.yml": text})
    ran = weft("validate", "weft.yml", "--json", root=root)
    assert "Traceback" not in ran.err
    wanted = TRACEBACKS[text]
    found = [] if wanted is None else [wanted]
    places = []
    for reported in ran.document["diagnostics"]:
        start, end = (reported["range"][key] for key in ("start", "end"))
        places.append((reported["code"], text.splitlines()[start["line"]][start["character"] : end["character"]]))
    assert places == found
