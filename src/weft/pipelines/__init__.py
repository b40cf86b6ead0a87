"""YAML projects to published tables."""
