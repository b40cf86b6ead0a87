"""Resolved joins as Spark plans: one strategy per file, each ``lower(left, right, join)``."""
