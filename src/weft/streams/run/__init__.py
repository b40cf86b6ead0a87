"""Streaming SQL jobs on Spark: run, supervised, redriven, and the connectors they need."""
