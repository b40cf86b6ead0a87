"""Listener: what a program may hear of a streaming run while it goes."""

from __future__ import annotations

from weft.streams.run.report import BatchReport, QueryReport


class Listener:
    """Base of listeners; override what you want to hear.

    Every call comes after the fact: a batch that is told of is committed.  An exception of a listener
    stops the run and comes out of it as it is.

    >>> class Counting(Listener):
    ...     rows = 0
    ...
    ...     def on_batch(self, report):
    ...         self.rows += report.rows_out
    """

    def on_batch(self, report: BatchReport) -> None:
        """Hear of a committed batch, the flush included."""

    def on_sealed(self, report: QueryReport) -> None:
        """Hear that the input of a statement has ended and everything is out."""

    def on_failed(self, error: Exception) -> None:
        """Hear why a run stops; the error is raised afterwards."""
