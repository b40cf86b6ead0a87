"""Give each trade the latest quote of its symbol that is at most five seconds old. Type: python trades.py"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import weft
from weft import AsofOrder, explain_join

ROOT = Path(__file__).resolve().parent
DATA = ROOT / "data"


def start_session():
    """Return a local Spark session whose workers use this Python, and which logs as conf/log4j2.properties says."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging = f"-Dlog4j2.configurationFile={(ROOT / 'conf' / 'log4j2.properties').as_uri()}"
    builder = SparkSession.builder.master("local[2]").config("spark.driver.extraJavaOptions", logging)
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def read(spark, name, schema):
    """Return a CSV file of the data folder as a relation."""
    return weft.relation(spark.read.schema(schema).csv(str(DATA / name), header=True))


def price_trades(trades, quotes):
    """Join trades with quotes as of the time of the trade."""
    return trades.natural_asof(quotes, order=AsofOrder(left="at", right="quoted"), tolerance="5 seconds")


def main():
    """Print the priced trades and what the join does."""
    spark = start_session()
    trades = read(spark, "trades.csv", "symbol string, at timestamp_ntz, quantity int")
    quotes = read(spark, "quotes.csv", "symbol string, quoted timestamp_ntz, price decimal(10,2)")
    priced = price_trades(trades, quotes)
    priced.order_by("at").show()
    explain_join(priced)


if __name__ == "__main__":
    main()
