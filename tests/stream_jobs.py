"""Small streaming jobs for tests: four streams and a table of one shape."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from weft.errors import WeftError
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import JobPlan, StatementPlan
from weft.streams.sql.lower import read_spec

STREAMS = ("a", "b", "c", "d")
COLUMNS = "id STRING, k BIGINT, n INT, f DOUBLE, s STRING, v DECIMAL(10,2), t TIMESTAMP"


def job_text(select: str, *, delays: Mapping[str, str] | None = None, before: str = "") -> str:
    """Return a job with streams a, b, c, d, a table tab, and one statement."""
    lines = [
        f"CREATE STREAM {name} ({COLUMNS}) WITH ('connector'='memory', 'event.time.field'='t',"
        f" 'watermark.max_out_of_orderness'='{(delays or {}).get(name, '0s')}');"
        for name in STREAMS
    ]
    lines.append("CREATE TABLE tab (k BIGINT, name STRING, s STRING) WITH ('connector'='memory');")
    lines.append(before)
    lines.append(f"CREATE STREAM x WITH ('connector'='memory') AS\n{select};")
    return "\n".join(lines)


def job(select: str, *, delays: Mapping[str, str] | None = None, before: str = "") -> JobPlan:
    """Return the plan of such a job."""
    text = job_text(select, delays=delays, before=before)
    return plan_job(read_spec(text, file="job.sql", env={}), Path())


def planned(select: str, *, delays: Mapping[str, str] | None = None, before: str = "") -> StatementPlan:
    """Return the plan of the statement of such a job."""
    return job(select, delays=delays, before=before).statements[0]


def refused(select: str, *, before: str = "") -> WeftError:
    """Return the error that planning such a job raises."""
    try:
        job(select, before=before)
    except WeftError as cause:
        return cause
    raise AssertionError(f"planned: {select}")
