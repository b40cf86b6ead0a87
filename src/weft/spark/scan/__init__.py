"""Data of a workspace as DataFrames."""

from weft.spark.scan.failures import data_failure
from weft.spark.scan.read import read_table

__all__ = ["data_failure", "read_table"]
