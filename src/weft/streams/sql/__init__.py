"""Streaming SQL: the text of a job becomes its specs; all errors of a file are reported together."""
