"""A tour of Weft in one Spark session: joins in Python, a YAML pipeline, a streaming SQL job.

``make demo`` runs all of it; ``python examples/demo.py joins`` (or ``pipeline``, ``streams``) runs one part.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import weft.streams
from weft import AsofOrder, JoinSpec, explain_join, inspect_keys
from weft.cli.main import run_command
from weft.core.frozen import FrozenMap
from weft.core.names import quote_for_shell
from weft.io.options import SparkSettings
from weft.io.spark.session import session_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1] / "build" / "demo"
PERIOD = "2026-01"
JOB = "order_status.sql"
ORDERS = """\
order_id,customer_id,total_amount,event_time
ORD-001,1001,150.00,2026-01-15T10:00:00Z
ORD-002,1002,275.50,2026-01-15T10:05:00Z
ORD-003,1003,89.99,2026-01-15T10:10:00Z
"""
SHIPMENTS = """\
shipment_id,order_id,carrier,event_time
SHP-001,ORD-001,UPS,2026-01-15T10:30:00Z
SHP-002,ORD-002,FedEx,2026-01-15T10:35:00Z
"""
MORE_SHIPMENTS = """\
shipment_id,order_id,carrier,event_time
SHP-003,ORD-404,DHL,2026-01-15T10:40:00Z
"""
SQL = """\
CREATE STREAM orders (order_id STRING, customer_id INT, total_amount DECIMAL(10,2), event_time TIMESTAMP)
WITH ('path'='orders', 'format'='csv', 'event.time.field'='event_time', 'watermark.max_out_of_orderness'='30s');

CREATE STREAM shipments (shipment_id STRING, order_id STRING, carrier STRING, event_time TIMESTAMP)
WITH ('path'='shipments', 'format'='csv', 'event.time.field'='event_time', 'watermark.max_out_of_orderness'='30s');

CREATE STREAM order_status WITH ('path'='out/order_status', 'format'='parquet') AS
SELECT COALESCE(o.order_id, s.order_id) AS order_id, o.total_amount, s.shipment_id, s.carrier,
       CASE WHEN o.order_id IS NULL THEN 'ORPHAN_SHIPMENT'
            WHEN s.order_id IS NULL THEN 'UNSHIPPED_ORDER' ELSE 'MATCHED' END AS status
FROM orders o FULL OUTER JOIN shipments s
  ON o.order_id = s.order_id AND s.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '24' HOUR
EMIT CHANGES;
"""


def title(text: str) -> None:
    """Print the title of a part."""
    print(f"\n{text}\n{'=' * len(text)}")


def say(sentence: str) -> None:
    """Print what the next step shows; at once, also into a pipe."""
    print(f"\n# {sentence}", flush=True)


def type_command(folder: Path, spark: SparkSession, *words: str) -> None:
    """Run a command in the demo's session as if it were typed; end when it fails."""
    print(f"$ weft {' '.join(words)}", flush=True)
    if code := run_command(["-C", str(folder), *words], spark=spark):
        sys.exit(code)


def make_folder(name: str) -> Path:
    """Return an empty folder for the files of a part."""
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def show_joins(spark: SparkSession) -> None:
    """Join trades with quotes in time, and orders with customers by key."""
    title("Joins in Python")

    def at(time: str) -> datetime:
        return datetime.fromisoformat(f"2026-01-05 {time}")

    trades = weft.relation(
        spark.createDataFrame(
            [("AAPL", at("10:00:03"), 100), ("AAPL", at("10:00:06"), 50), ("MSFT", at("10:00:04"), 75)],
            "symbol string, at timestamp_ntz, quantity int",
        )
    )
    quotes = weft.relation(
        spark.createDataFrame(
            [("AAPL", at("10:00:01"), 189), ("AAPL", at("10:00:05"), 190), ("MSFT", at("09:59:30"), 402)],
            "symbol string, quoted timestamp_ntz, price int",
        )
    )
    say("Each trade with the latest quote of its symbol, at most five seconds old.")
    order = AsofOrder(left="at", right="quoted")
    priced = trades.order_by("at").natural_asof(quotes, order=order, tolerance="5 seconds")
    priced.order_by("at").show()
    say("What that join does, and why in this way.")
    explain_join(priced)

    orders = weft.relation(
        spark.createDataFrame(
            [(1, 100, date(2026, 1, 5)), (2, 200, date(2026, 1, 10)), (3, 100, date(2026, 2, 1)), (4, 999, None)],
            "order_id int, customer_ref int, order_date date",
        )
    )
    customers = weft.relation(
        spark.createDataFrame([(100, "Alice"), (200, "Bob"), (300, "Carol")], "id int, name string")
    )
    say("Every order with its customer; an order without one keeps its row.")
    orders.natural_left(customers, customer_ref="id").order_by("order_id").show()
    say("How many rows each key has on either side.")
    inspect_keys(orders, customers, JoinSpec(equal_keys=[("customer_ref", "id")])).order_by("customer_ref").show()
    say("A mistake is reported before Spark runs, with what to write instead.")
    try:
        orders.natural_left(customers, custmer_ref="id")
    except weft.WeftError as error:
        print(error)


def show_pipeline(spark: SparkSession) -> None:
    """Make a workspace, check a project, run it for a period and look at its rows."""
    folder = make_folder("fx")
    title("A pipeline in YAML")
    say("A new workspace, with a project that converts ledger lines to the reporting currency.")
    type_command(folder, spark, "init", "--template", "fx", "--quiet")
    say("Every file is checked without Spark.")
    type_command(folder, spark, "validate")
    say("The plan shows each operation and each join before anything runs.")
    type_command(folder, spark, "plan", "fx_reporting", "-p", PERIOD)
    say("The run keeps what it read and what it wrote, so that it can be repeated and compared.")
    type_command(folder, spark, "run", "fx_reporting", "-p", PERIOD)
    output = folder / "out" / "processed_gl" / f"period={PERIOD}"
    say(f"The rows in build/demo/{output.relative_to(ROOT)}")
    spark.read.parquet(str(output)).orderBy("journal_id", "line_number").show()
    say("A scenario states the rows that go in and the rows that must come out.")
    type_command(folder, spark, "test")


def show_streams(spark: SparkSession) -> None:
    """Join two streams in two parts, end them, and compare the rows with the same job as a batch."""
    folder = make_folder("streams")
    title("A stream join in SQL")
    for name, text in ((JOB, SQL), ("orders/1.csv", ORDERS), ("shipments/1.csv", SHIPMENTS)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    say("The job is read and its state bounded without Spark.")
    type_command(folder, spark, "stream", "check", JOB)
    say("The files that are there are joined; the order without a shipment waits.")
    type_command(folder, spark, "stream", "run", JOB, "--available")
    (folder / "shipments/2.csv").write_text(MORE_SHIPMENTS, encoding="utf-8")
    say("One more shipment arrives, then the input ends: rows without a match come out.")
    type_command(folder, spark, "stream", "run", JOB, "--final")
    say("Every row that came in is accounted for.")
    type_command(folder, spark, "stream", "status", JOB)
    streamed = spark.read.parquet(str(folder / "out" / "order_status")).orderBy("order_id")
    streamed.show()
    batch = weft.streams.run_as_batch(spark, folder / JOB, root=folder, to=folder / "out" / "as_batch")
    same = sorted(map(str, batch.rows("order_status"))) == sorted(map(str, streamed.collect()))
    say(f"The same job as a batch gives {'the same' if same else 'OTHER'} rows.")
    if not same:
        sys.exit(1)


PARTS: dict[str, Callable[[SparkSession], None]] = {
    "joins": show_joins,
    "pipeline": show_pipeline,
    "streams": show_streams,
}
NEXT = {
    "weft init my_project --template orders": "a workspace of your own; its README says what to type",
    "weft doctor --fast-start": "from now on Spark starts a third faster",
    "weft explain W1001": "the page of an error code",
    "docs/joins.md": "joins in Python, from the first one on",
}


def main() -> None:
    """Run the parts that the command names, or all of them, in one session."""
    names = sys.argv[1:] or list(PARTS)
    if unknown := set(names) - set(PARTS):
        sys.exit(f"no part named {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    print("starting Spark ...", flush=True)
    begun = time.monotonic()
    settings = SparkSettings(master="local[2]", conf=FrozenMap({"spark.sql.shuffle.partitions": "2"}))
    with session_for(settings, make_folder("session")) as session:
        print(f"Spark {session.spark.version} started in {time.monotonic() - begun:.0f} seconds", flush=True)
        for name in names:
            PARTS[name](session.spark)
    title("Try next")
    steps = dict(NEXT)
    if shutil.which("weft") is None:  # as after `make demo`, whose environment is not active
        activate = Path(sys.prefix, "bin", "activate")
        steps = {f". {quote_for_shell(activate)}": "so that the shell finds weft", **steps}
    for what, why in steps.items():
        print(f"  {what:<{max(map(len, steps))}}   {why}")


if __name__ == "__main__":
    main()
