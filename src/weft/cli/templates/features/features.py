"""Build training rows that contain only what was known before the label was observed. Type: python features.py"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import weft
from weft import AsofOrder

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


def build_features(labels, plans, purchases):
    """Add the plan and the last purchase of the 30 days before each label.

    `allow_exact_matches=False` excludes what happened at the very moment of the label: it was not known before.
    """
    with_plan = labels.natural_asof(
        plans, order=AsofOrder(left="observed_at", right="changed_at"), allow_exact_matches=False
    )
    return with_plan.natural_asof(
        purchases,
        order=AsofOrder(left="observed_at", right="bought_at"),
        tolerance="30 days",
        allow_exact_matches=False,
    )


def read_tables(spark):
    """Return the labels and the two event tables."""
    return (
        read(spark, "labels.csv", "customer string, observed_at timestamp_ntz, churned boolean"),
        read(spark, "plans.csv", "customer string, changed_at timestamp_ntz, plan string"),
        read(spark, "purchases.csv", "customer string, bought_at timestamp_ntz, amount decimal(10,2)"),
    )


def main():
    """Print the training rows."""
    features = build_features(*read_tables(start_session()))
    features.order_by("customer", "observed_at").show()


if __name__ == "__main__":
    main()
