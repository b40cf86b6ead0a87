"""Specifications and schemas in, resolved plans out; pure, no data, no JVM."""
