"""A stream job whose inputs, checkpoint and output are in a store, and the rows that it must give."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable

from weft.io.stores import open_store

BATCHES, ORDERS = 24, 12
SQL = """
SET 'checkpoint' = '{place}/checkpoint';
CREATE STREAM orders (id STRING, t TIMESTAMP) WITH ('path' = '{place}/orders', 'format' = 'json',
  'event.time.field' = 't', 'watermark.max_out_of_orderness' = '5s', 'max.files.per.trigger' = 1);
CREATE STREAM shipments (id STRING, t TIMESTAMP) WITH ('path' = '{place}/shipments', 'format' = 'json',
  'event.time.field' = 't', 'watermark.max_out_of_orderness' = '5s', 'max.files.per.trigger' = 1);
CREATE STREAM status WITH ('path' = '{place}/out', 'format' = 'json') AS
  SELECT o.id, s.t AS shipped FROM orders o LEFT JOIN shipments s
    ON o.id = s.id AND s.t BETWEEN o.t AND o.t + INTERVAL '90' SECOND
"""


def write_inputs(place: str) -> Counter[tuple[str, str | None]]:
    """Write the files of all batches, and return the rows that the join gives; every third order is not shipped."""
    store = open_store(place)
    wanted: Counter[tuple[str, str | None]] = Counter()
    for batch in range(BATCHES):
        orders, shipments = [], []
        for number in range(ORDERS):
            name, second = f"{batch}-{number}", 2 * number
            orders.append({"id": name, "t": f"2026-01-15T10:{batch:02}:{second:02}Z"})
            shipped = None
            if number % 3:
                # Some are shipped in the next minute, which the next batch reads.
                minute = batch + (number % 2)
                shipped = f"2026-01-15T10:{minute:02}:{second + 1:02}Z"
                shipments.append({"id": name, "t": shipped})
            wanted[name, shipped and shipped.replace("Z", ".000000Z")] += 1
        for folder, rows in (("orders", orders), ("shipments", shipments)):
            store.put(f"{folder}/{batch:03}.json", "".join(f"{json.dumps(row)}\n" for row in rows).encode())
        time.sleep(0.02)  # Spark reads files in the order of their times
    return wanted


def read_output(place: str) -> Counter[tuple[str, str | None]]:
    store = open_store(f"{place}/out")
    lines = [line for file in store.list("part-") for line in store.read(file.name).decode().splitlines()]
    rows = map(json.loads, lines)
    return Counter((row["id"], row["shipped"]) for row in rows)


def count_commits(place: str) -> int:
    return sum(
        "/commits/" in file.name and "/spark/" not in file.name for file in open_store(place).list("checkpoint/")
    )


def wait_for(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    """Wait until something is so, or the process has ended."""
    while process.poll() is None and not reached():
        time.sleep(0.05)
