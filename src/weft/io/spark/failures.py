"""Failures of Spark that are about data, turned back into ours."""

from __future__ import annotations

import re
from urllib.parse import unquote

from weft.errors import Code, ResolutionError
from weft.io.spark.strict import MARK

_OURS = re.compile(re.escape(MARK) + r" (W13\d\d) (.*?)(?: SQLSTATE: \w+|\n|$)", re.DOTALL)
_HELP: dict[str, str] = {
    "W1317": "correct the value, or declare the column in a type that holds it",
    "W1318": "correct the line; a text with a line end needs `multiline: true` in the options of the datasource",
    "W1320": "correct the data, or the `natural_key_columns` of the dataset",
}
_NOT_THERE = re.compile(
    r"\[(?:PATH_NOT_FOUND|FAILED_READ_FILE\.FILE_NOT_EXIST|TABLE_OR_VIEW_NOT_FOUND)\] (.*?)(?: SQLSTATE|\n|$)"
)
_UNREADABLE = re.compile(
    r"\[((?:FAILED_READ_FILE|CANNOT_READ_FILE|FAILED_JDBC|UNABLE_TO_INFER_SCHEMA|MALFORMED_RECORD|"
    r"FAILED_PARSE|PARQUET_|UNSUPPORTED_DATASOURCE|INVALID_JSON|JSON_)[A-Z_.]*)\] (.*?)(?: SQLSTATE|\n|$)",
    re.DOTALL,
)
_NO_DRIVER = re.compile(r"ClassNotFoundException: (\S+)|No suitable driver")
_SQL = re.compile(r"(?:PSQLException|SQLException): (.*?)(?:\n|$)")


def data_failure(failure: BaseException) -> ResolutionError | None:
    """Return what a failed Spark job tells of the data it read, or None when it tells of something else.

    ::

        try:
            frame.collect()
        except Exception as failure:
            told = data_failure(failure)
    """
    text = str(failure)
    if (found := _OURS.search(text)) is not None:
        code: Code = found[1]  # type: ignore[assignment]  # the mark is written with a code of ours
        return ResolutionError(unquote(found[2].strip()), code=code, help=_HELP[found[1]])
    if (found := _NOT_THERE.search(text)) is not None:
        return ResolutionError(
            found[1].strip(), code="W1309", help="see where the data should lie: `weft resolver test`"
        )
    if (found := _NO_DRIVER.search(text)) is not None:
        return ResolutionError(
            f"Spark has no JDBC driver {found[1] or ''}".rstrip(),
            code="W1314",
            help="put the jar of the driver into `spark: {conf: {spark.jars: ...}}` of weft.yml",
        )
    if (found := _UNREADABLE.search(text)) is not None:
        return ResolutionError(
            f"the data does not read: {found[2].strip()} ({found[1]})",
            code="W1318",
            help="see that the file is whole and has the format of its datasource",
        )
    if (found := _SQL.search(text)) is not None:
        return ResolutionError(
            f"the database says: {found[1].strip()}",
            code="W1318",
            help="see the url, the schema and the credential_ref of the datasource",
        )
    return None
