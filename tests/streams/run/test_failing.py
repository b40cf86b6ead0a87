"""What stopped a query: exceptions of Spark and of workers become codes with a next step."""

from __future__ import annotations

import errno
import sys

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from weft.errors import StreamError
from weft.streams.kernel.spec import KernelProblem
from weft.streams.run.failing import collect_messages, explain_failure

HEADER = """[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/b.csv.  SQLSTATE: KD001
Caused by: org.apache.spark.SparkIllegalArgumentException: CSV header does not conform to the schema.
 Header: id, t, total
 Schema: id, total, t
Expected: total but found: t
CSV file: file:///in/b.csv
"""
WORKER = """Job aborted due to stage failure: Traceback (most recent call last):
  File "<string>", line 1, in run
weft.streams.kernel.spec.KernelProblem: W2206: a row of 'o' is late: 10:00 is below
10:05 (help: write 'late' = 'side_output')

\tat org.apache.spark.api.python
"""
RAISED = """[STREAM_FAILED] Query failed: [PYTHON_EXCEPTION] An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 1920, in read_udfs
%s

\tat org.apache.spark.api.python
"""
NO_PYARROW = RAISED % "ModuleNotFoundError: No module named 'pyarrow'"


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        (RuntimeError(NO_PYARROW), "W1809", "'status' failed: the Python of Spark's workers has no module 'pyarrow'"),
        (RuntimeError(RAISED % "ValueError: no such row"), "W2201", "'status' failed: ValueError: no such row (PYTHON_EXCEPTION)"),
        (RuntimeError(HEADER), "W2302", "'file:///in/b.csv' has the columns id, t, total; earlier files have id, total, t"),
        (RuntimeError(WORKER), "W2206", "a row of 'o' is late: 10:00 is below 10:05"),
        (KernelProblem("W2211", "too large", "more groups"), "W2211", "too large"),
        (RuntimeError("x [STREAM_TABLE] W2303 a row of table 'p' is malformed\n"), "W2303", "a row of table 'p' is malformed"),
        (RuntimeError("x [STREAM_ROW] W2208 a row is malformed SQLSTATE: P0001"), "W2208", "a row is malformed"),
        (OSError(errno.ENOSPC, "No space left on device"), "W2309", "a batch of 'status' cannot be written: No space left on device"),
        (RuntimeError("java.io.IOException: No space left on device"), "W2309", "a batch of 'status' cannot be written: No space left on device"),
        (Py4JNetworkError("Answer from Java side is empty"), "W2214", "'status' lost a worker: Py4JNetworkError"),
        (Py4JError("An error occurred while calling o243.select"), "W2214", "'status' lost a worker: Spark's JVM no longer answers"),
        (Py4JError("PythonUtils does not exist in the JVM"), "W2214", "'status' lost a worker: Spark's JVM no longer answers"),
        (
            Py4JError("An error occurred while calling o243.nothing. Trace:\npy4j.Py4JException: Method nothing([]) does not exist"),
            "W2201",
            "'status' failed: Py4JError: An error occurred while calling o243.nothing. Trace:",
        ),
        (ConnectionResetError(104, "Connection reset by peer"), "W2214", "'status' lost a worker: Connection reset by peer"),
        (RuntimeError("Python worker exited unexpectedly (crashed)"), "W2214", "'status' lost a worker: Python worker exited unexpectedly"),
        (
            RuntimeError("[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading file file:///in/b.parquet. Data type mismatches"),
            "W2303",
            "file:///in/b.parquet has a column whose type differs from that of the earlier files",
        ),
        (RuntimeError("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: x"), "W2301", "a topic that the job reads does not exist"),
        (RuntimeError("[KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITION] gone"), "W2301", "Kafka deleted messages before they were read"),
        (
            RuntimeError("first\norg.apache.kafka.clients.X: Call failed\nCaused by: org.apache.kafka.common.errors.TimeoutException: y"),
            "W2310",
            "a Kafka broker does not answer: clients.X: Call failed",
        ),
        (RuntimeError("org.apache.kafka.common.errors.AuthorizationException: no\nat x"), "W2311", "Kafka reports an error: common.errors.AuthorizationException: no"),
        (
            RuntimeError("java.lang.OutOfMemoryError: Java heap space\n\tat org.apache.kafka.clients.consumer.Fetcher.fetch"),
            "W2214",
            "'status' lost a worker: OutOfMemoryError",
        ),
        (RuntimeError("[PARQUET_COLUMN_DATA_TYPE_MISMATCH] no"), "W2303", "a file has a column whose type differs from that of the earlier files"),
        (
            RuntimeError("[STREAM_FAILED] Query failed: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\nat x"),
            "W2201",
            "'status' failed: Division by zero. (DIVIDE_BY_ZERO)",
        ),
        (RuntimeError("something else\nat x"), "W2201", "'status' failed: RuntimeError: something else"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("W") else "",
)  # fmt: skip
def test_a_failure_becomes_a_code(failure: Exception, code: str, message: str) -> None:
    found = explain_failure(failure, "status")
    assert (found.code, found.message) == (code, message)
    assert found.help


def test_a_worker_of_another_python_is_reported_with_the_setting_to_use() -> None:
    assert (
        f"before Spark starts, type: export PYSPARK_PYTHON={sys.executable}"
        in explain_failure(RuntimeError(NO_PYARROW), "x").help
    )


def test_the_help_of_a_worker_comes_with_its_message() -> None:
    assert explain_failure(RuntimeError(WORKER), "status").help == "write 'late' = 'side_output'"


def test_an_error_of_ours_stays_as_it_is() -> None:
    error = StreamError("as it is", code="W2210", help="keep it")
    assert explain_failure(error, "status") is error


def test_what_led_to_an_exception_is_looked_at_too() -> None:
    outer = RuntimeError("[STREAM_FAILED] Query terminated")
    outer.__cause__ = RuntimeError(HEADER)
    assert "CSV header" in collect_messages(outer)
    assert explain_failure(outer, "status").code == "W2302"
