"""What Spark's exceptions tell of rows that a job refuses, turned back into coded errors."""

from __future__ import annotations

import re

from weft.errors import Code, ConnectorError, StreamError, WeftError

ROW = "[STREAM_ROW]"
"""Begins the message of a row that a policy refuses: the code follows, then what is wrong."""
TABLE = "[STREAM_TABLE]"
"""Begins the message of a row that a table cannot hold."""

_TOLD = re.compile(
    r"\[(STREAM_ROW|STREAM_TABLE)\] (W2207|W2208|W2303) (.*?)(?:\s*SQLSTATE: \w+|\n|\Z)", re.DOTALL
)
_NEXT: dict[str, str] = {
    "W2207": "correct the data, or write 'join.missing_event_time'='reject'",
    "W2208": "correct the data, or write 'malformed'='reject'",
    "W2303": "correct the row, or declare the column with the type that its values have",
}


def told_by_spark(failure: BaseException) -> WeftError | None:
    """Return the refused row that a failed Spark job tells of, or None.

    >>> print(told_by_spark(RuntimeError("[STREAM_TABLE] W2303 table 'p': row {} SQLSTATE: P0001")))
    error[W2303]: table 'p': row {}
     = help: correct the row, or declare the column with the type that its values have
    """
    found = _TOLD.search(str(failure))
    if found is None:
        return None
    code: Code = found[2]  # type: ignore[assignment]  # the pattern names our codes
    kind = ConnectorError if found[1] == "STREAM_TABLE" else StreamError
    return kind(found[3].strip(), code=code, help=_NEXT[code])
