"""Scenarios: given and expected rows, run by the real engine."""
