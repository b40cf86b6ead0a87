"""The SQL that the documentation and the demo show is SQL that Weft reads, and means what they say."""

from __future__ import annotations

import re
from pathlib import Path

from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import KernelStep
from weft.streams.sql.lower import read_spec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "streams.md").read_text(encoding="utf-8")
JOB, BOUNDS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[:2]
DAY = 86_400_000_000


def step_of(sql: str) -> KernelStep:
    (statement,) = plan_job(read_spec(sql), ROOT).statements
    (step,) = statement.kernel_steps
    return step


def test_the_job_of_the_page_is_planned() -> None:
    step = step_of(JOB)
    assert (step.how, step.reach.least, step.reach.greatest) == ("left", 0, DAY)


def test_every_way_to_write_the_bound_means_the_same() -> None:
    on = JOB.index("  ON o.order_id")
    for line in BOUNDS.splitlines():
        given, _, options = line.partition(" ... ")
        step = step_of(f"{JOB[:on]}  {given} {options};")
        assert (step.reach.least, step.reach.greatest) == (0, DAY), line


def test_windows_are_written_as_the_page_says() -> None:
    on = JOB.index("  ON o.order_id")
    for window in re.findall(r"`(WINDOW\s+(?:TUMBLING|SLIDING|SESSION)\([^`]*\))`", PAGE):
        step = step_of(f"{JOB[:on]}  ON o.order_id = s.order_id {window};")
        assert step.emit == "final", window


def test_the_job_of_the_demo_is_planned() -> None:
    text = (ROOT / "examples" / "demo.py").read_text(encoding="utf-8")
    (sql,) = re.findall(r'^SQL = """\\\n(.*?)^"""', text, re.MULTILINE | re.DOTALL)
    assert step_of(sql).how == "full"


def test_every_policy_word_on_the_page_is_one_that_an_option_takes() -> None:
    from weft.streams.sql.options import OPTIONS

    words = {o.name: o.words for o in OPTIONS}
    for option, value in re.findall(r"`([a-z]+(?:\.[a-z_]+)*)=([a-z_]+)`", PAGE):
        assert value in words[option], f"{option}={value}"
