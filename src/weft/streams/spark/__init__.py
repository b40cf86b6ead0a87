"""Streams as Spark frames: sources, the stages of a batch, and sinks."""
