"""Runs: prepare, execute, publish, resume."""
