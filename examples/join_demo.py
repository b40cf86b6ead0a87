"""The join API on sample data: joins by key and in time, their tables and explanations."""

from __future__ import annotations

import datetime as dt
import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import weft
from weft import (
    AsofOrder,
    ColumnPredicate,
    ExpressionPredicate,
    JoinProjection,
    JoinSpec,
    explain_join,
    inspect_keys,
)


def session(folder: Path) -> SparkSession:
    """Return a small local session that writes below `folder` only."""
    # Workers must be of the Python that runs this, wherever `python3` leads to.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.master("local[2]")
        .appName("weft demo")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


def main() -> None:
    """Join sample orders with customers, and trades with quotes."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder))
        day = dt.date.fromisoformat
        orders = weft.relation(
            spark.createDataFrame(
                [
                    (1, 100, day("2026-01-05"), "open"),
                    (2, 200, day("2026-01-10"), "paid"),
                    (3, 100, day("2026-02-01"), "open"),
                    (4, 999, day("2026-02-03"), "open"),
                    (5, None, day("2026-02-04"), "open"),
                ],
                "order_id int, customer_ref int, order_date date, status string",
            )
        )
        customers = weft.relation(
            spark.createDataFrame(
                [
                    (100, "Alice", day("2025-12-15"), "gold"),
                    (200, "Bob", day("2026-01-20"), "basic"),
                    (300, "Carol", day("2024-03-01"), "basic"),
                ],
                "id int, name string, since date, status string",
            )
        )

        heading("Every order with its customer: natural_left, one alias, one suffix")
        enriched = orders.natural_left(
            customers, exclude_shared=("status",), suffixes=("", "_customer"), customer_ref="id"
        )
        enriched.order_by("order_id").df.show()
        explain_join(enriched)

        heading("The same said as a spec, with a date predicate and a checked fragment")
        spec = JoinSpec(
            equal_keys=[("customer_ref", "id")],
            predicates=[
                ColumnPredicate("order_date", ">=", "since"),
                ExpressionPredicate("right.status IN (?, ?)", args=["gold", "silver"]),
            ],
        )
        orders.left_outer(customers, spec, project=JoinProjection(drop=["right.status"], indicator="found")).order_by(
            "order_id"
        ).df.show()

        heading("What the keys would do, before joining: inspect_keys")
        inspect_keys(orders, customers, spec).order_by("customer_ref").df.show()

        heading("Each trade with the latest quote at most five seconds old: natural_asof")
        clock = "CAST(CONCAT('2026-01-05 ', {}) AS timestamp_ntz)".format
        trades = weft.relation(
            spark.createDataFrame(
                [("AAPL", "10:00:03", 100), ("AAPL", "10:00:06", 50), ("MSFT", "10:00:04", 75)],
                "symbol string, at string, quantity int",
            )
        ).with_columns(at=clock("at"))
        quotes = weft.relation(
            spark.createDataFrame(
                [("AAPL", "10:00:01", 189), ("AAPL", "10:00:05", 190), ("MSFT", "09:59:30", 402)],
                "symbol string, quoted string, price int",
            )
        ).with_columns(quoted=clock("quoted"))
        order = AsofOrder(left="at", right="quoted")
        priced = trades.order_by("at").natural_asof(quotes, order=order, tolerance="5 seconds")
        priced.order_by("at").df.show()
        explain_join(priced)

        heading("A mistake, as you meet it")
        try:
            orders.natural_left(customers, custmer_ref="id")
        except weft.WeftError as error:
            print(error)
        spark.stop()


if __name__ == "__main__":
    main()
