"""The kernel and conditions that are asked row by row reach workers that have neither Weft nor its libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stream_checkpoints import SQL
from weft.streams.plan.kernel_spec import build_task
from weft.streams.plan.resolve import plan_job
from weft.streams.spark.kernel_stage import ship_join
from weft.streams.sql.lower import read_spec

ALONE = """
import pickle, sys
for name in ("weft", "sqlglot"):
    sys.modules[name] = None
make, clock, task, opening = pickle.loads(open(sys.argv[1], "rb").read())
left = [{"k0": "a", "i0_1": 4}, {"k0": "a", "i0_1": 5}]
print(task.residual.rows(left, [{"k0": "a"}, {"k0": "a"}]), clock(left=1, right=2).least, callable(make))
print(opening(sys.argv[2]).path("state/1"))
"""


@pytest.mark.parametrize(
    "condition", ["o.total % 2 = 0", "o.total IN (4, 8) AND o.id LIKE 'a%'", "GREATEST(o.total, 4) = 4"]
)
def test_a_condition_is_asked_where_weft_is_not(tmp_path: Path, condition: str) -> None:
    sql = SQL.replace("ON o.id = s.id", f"ON o.id = s.id AND {condition}")
    plan = plan_job(read_spec(sql, file="job.sql"), tmp_path).statements[0]
    task = build_task(plan, plan.kernel_steps[0])
    assert task.residual is not None
    assert task.residual.rows is not None
    (tmp_path / "carried").write_bytes(ship_join(task, tmp_path).payload)
    run = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path / "carried"), "/data/cp"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["[True, False] 1 True", "/data/cp/state/1"]


def test_the_same_join_is_carried_under_the_same_name(tmp_path: Path) -> None:
    plan = plan_job(read_spec(SQL, file="job.sql"), tmp_path).statements[0]
    one, other = (ship_join(build_task(plan, plan.kernel_steps[0]), Path()) for _ in range(2))
    assert one == other
    wider = plan_job(read_spec(SQL.replace("'10' SECOND", "'11' SECOND"), file="job.sql"), tmp_path).statements[0]
    assert ship_join(build_task(wider, wider.kernel_steps[0]), Path()).name != one.name
