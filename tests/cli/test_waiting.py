"""What a command shows while it waits: on a terminal at once and until it is done, else one line, and never in the log."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from weft.cli.terminal import show_waiting

CODE = """
import os, sys, time
from pathlib import Path
from weft.cli.terminal import show_waiting
from weft.io.spark.session import _logged
with show_waiting("starting Spark", hint="(a hint)"), _logged(Path(sys.argv[1])):
    os.write(2, b"a message of the JVM\\n")
    print("progress", file=sys.stderr)
    time.sleep(0.3)
os.write(2, b"afterwards\\n")
"""


def test_without_a_terminal_a_line_says_what_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with show_waiting("starting Spark", hint="(a hint)"):
        assert capsys.readouterr().err == "starting Spark ...\n"
    with show_waiting("reading the workspace", has_line=False):
        pass
    assert capsys.readouterr().err == ""


def test_a_pipe_gets_the_line_and_the_log_gets_the_messages_of_java(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "spark.log"
    ran = subprocess.run([sys.executable, "-c", CODE, log], capture_output=True, text=True, check=True)
    assert ran.stderr == "starting Spark ...\nprogress\nafterwards\n"
    assert log.read_text() == "a message of the JVM\n"


def test_a_terminal_shows_it_while_the_messages_of_java_go_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    ours, theirs = pty.openpty()
    settings = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen([sys.executable, "-c", CODE, log], stderr=theirs, env=settings) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # how a terminal ends
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"starting Spark" in shown
    assert b"(a hint)" in shown
    assert b"a message of the JVM" not in shown
    assert shown.rstrip().endswith(b"afterwards")
    assert log.read_text() == "a message of the JVM\n"


def test_pandas_is_loaded_while_spark_starts() -> None:
    code = (
        "import sys; from weft.io.spark.session import _import_early; _import_early(); print('pandas' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("True\n", "")
