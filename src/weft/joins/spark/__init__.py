"""Resolved joins on Spark: one strategy per file, each ``lower(left, right, join)``."""
