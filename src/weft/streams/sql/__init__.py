"""Streaming SQL: from the text of a job to its specs; every mistake of a file comes at once."""
