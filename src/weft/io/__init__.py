"""Where bytes are: sources, formats and sinks that pipelines and streams share."""
