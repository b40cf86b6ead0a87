"""Orders and shipments as a stream join: check the job, run it in two parts, seal it, compare it with batch."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import weft.streams
from weft.cli.main import run_command

FOLDER = Path(__file__).parents[1] / "build" / "demo" / "streams"
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


def command(*words: str) -> None:
    """Run a command as it would be typed; end when it fails."""
    sys.stdout.write(f"\n$ weft {' '.join(words)}\n")
    sys.stdout.flush()
    code = run_command(["-C", str(FOLDER), *words])
    if code:
        sys.exit(code)


def write(name: str, text: str) -> None:
    """Write a file of the demo."""
    file = FOLDER / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def main() -> None:
    """Run the demo; its files stay below ``build/demo``."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    write(JOB, SQL)
    write("orders/1.csv", ORDERS)
    write("shipments/1.csv", SHIPMENTS)
    # Workers must be of the Python that runs this, wherever `python3` leads to.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("weft demo")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(FOLDER / ".weft" / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    command("stream", "check", JOB)
    sys.stdout.write("\nwhat there is so far; the order without a shipment waits\n")
    command("stream", "run", JOB, "--available")
    write("shipments/2.csv", MORE_SHIPMENTS)
    sys.stdout.write("\none more shipment, then the end of the input\n")
    command("stream", "run", JOB, "--final")
    command("stream", "status", JOB)
    output = FOLDER / "out" / "order_status"
    sys.stdout.write(f"\nthe rows in {output}\n")
    spark.read.parquet(str(output)).orderBy("order_id").show()
    batch = weft.streams.run_as_batch(spark, FOLDER / JOB, root=FOLDER, to=FOLDER / "out" / "as_batch")
    streamed = spark.read.parquet(str(output)).collect()
    same = sorted(map(str, batch.rows("order_status"))) == sorted(map(str, streamed))
    sys.stdout.write(f"the same job as a batch gives {'the same' if same else 'OTHER'} rows\n")
    spark.stop()
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
