"""Run a query of Flink SQL over files and print its columns and rows as JSON; a Python with PyFlink runs this script."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections import Counter
from typing import Any

from pyflink.common import Configuration, RowKind
from pyflink.table import EnvironmentSettings, TableEnvironment


def plain(value: Any) -> Any:
    """Return a value as JSON has it; `test_coming_from` reads a time from its text."""
    return value.isoformat() if isinstance(value, dt.datetime | dt.date) else value


def main() -> None:
    """Read ``{"tables": [...], "query": "..."}`` from the standard input."""
    job = json.load(sys.stdin)
    conf = Configuration()
    for name, value in {
        "parallelism.default": "1",
        "table.local-time-zone": "UTC",
        "python.executable": sys.executable,
    }.items():
        conf.set_string(name, value)
    env = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(conf).build()
    )
    for statement in job["tables"]:
        env.execute_sql(statement)
    result = env.execute_sql(job["query"])
    rows: Counter[tuple[Any, ...]] = Counter()
    with result.collect() as found:
        for row in found:
            kind = row.get_row_kind()
            rows[tuple(map(plain, row))] += -1 if kind in (RowKind.UPDATE_BEFORE, RowKind.DELETE) else 1
    columns = list(result.get_resolved_schema().get_column_names())  # a list of the JVM
    print(json.dumps({"columns": columns, "rows": [list(row) for row in rows.elements()]}))  # noqa: T201


if __name__ == "__main__":
    main()
