"""Failures of Spark jobs that are about data, as errors of Weft."""

from __future__ import annotations

import re
from urllib.parse import unquote

from weft.errors import Code, ResolutionError
from weft.io.spark.strict import MARK
from weft.joins.spark.failures import FailureRule, explain_failure


def _own(code: Code, help: str) -> FailureRule:
    """Return the rule for values that `weft.io.spark` rejects inside a query."""
    text = re.compile(rf"{re.escape(MARK)} {code} (.*?)(?: SQLSTATE: \w+|\n|$)", re.DOTALL)
    return FailureRule(error=ResolutionError, code=code, message="{0}", help=help, text=text, clean=_readable)


def _readable(text: str) -> str:
    # Spark names files by URL, in which a space is %20.
    return unquote(text.strip())


# Exceptions of Hadoop's clients, which have no condition.
STORES = (
    FailureRule(
        error=ResolutionError,
        code="W1904",
        message="Spark has no client for the file store: {0}{1}",
        help="`weft connectors install s3` fetches that of S3; for another store put its jars into `spark: {{conf: {{spark.jars: ...}}}}`",
        text=re.compile(r"(Class org\.apache\.hadoop\.fs\.\S+ not found)|(No FileSystem for scheme \"?[\w+.-]+)"),
    ),
    FailureRule(
        error=ResolutionError,
        code="W1907",
        message="the bucket of {0} does not exist",
        help="create it, or correct the address; Weft creates folders, but no buckets",
        text=re.compile(r"UnknownStoreException: `?([a-z0-9]+://[^\s']+)"),
    ),
    FailureRule(
        error=ResolutionError,
        code="W1906",
        message="access denied: {0}{1}",
        help="check the credentials of Spark, in its environment or in `spark: {{conf: ...}}`, and what they permit",
        text=re.compile(
            r"AccessDeniedException: ([a-z0-9]+://\S+)(?=:\s)|AccessControlException: (Permission denied: [^\n]{1,200})"
        ),
    ),
    FailureRule(
        error=ResolutionError,
        code="W1905",
        message="the file store cannot be reached: {0}{1}",
        help="check that the store runs and that this machine can reach it",
        text=re.compile(
            r"SdkClientException: (Unable to execute HTTP request: [^\n]{1,200}?)(?: \(SDK|\n|$)|ConnectException: (Call From [^\n]{1,200})"
        ),
    ),
)

DATA = (
    *STORES,
    _own("W1317", "correct the value, or declare the column in a type that holds it"),
    _own(
        "W1318", "correct the line; a string with a line end needs `multiline: true` in the options of the datasource"
    ),
    _own("W1320", "correct the data, or the `natural_key_columns` of the dataset"),
    FailureRule(
        error=ResolutionError,
        code="W1309",
        message="{message}",
        help="check where the data is expected: `weft resolver test`",
        conditions=("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST", "TABLE_OR_VIEW_NOT_FOUND"),
    ),
    # Java looks for the class of the driver, and java.sql for one that takes the url: neither has a condition.
    FailureRule(
        error=ResolutionError,
        code="W1314",
        message="Spark has no JDBC driver {0}",
        help="put the jar of the driver into `spark: {{conf: {{spark.jars: ...}}}}` of weft.yml",
        text=re.compile(r"ClassNotFoundException: (\S+)|No suitable driver"),
    ),
    FailureRule(
        error=ResolutionError,
        code="W1318",
        message="cannot read the data: {message} ({condition})",
        help="check that the file is complete and has the format of its datasource",
        conditions=(
            "FAILED_READ_FILE",
            "CANNOT_READ_FILE",
            "FAILED_JDBC",
            "UNABLE_TO_INFER_SCHEMA",
            "MALFORMED_RECORD",
            "FAILED_PARSE",
            "PARQUET_",
            "UNSUPPORTED_DATASOURCE",
            "INVALID_JSON",
            "JSON_",
        ),
    ),
    # Errors of a database are exceptions of its driver, which have no condition.
    FailureRule(
        error=ResolutionError,
        code="W1318",
        message="the database reported: {0}",
        help="check the url, the schema and the credential_ref of the datasource",
        text=re.compile(r"(?:PSQLException|SQLException): (.*?)(?:\n|$)"),
    ),
)


def data_failure(failure: BaseException) -> ResolutionError | None:
    """Return the error about the data that a failed Spark job read, or None for other failures.

    ::

        try:
            frame.collect()
        except Exception as failure:
            known = data_failure(failure)
    """
    known = explain_failure(failure, DATA)
    return known if isinstance(known, ResolutionError) else None
