"""``weft stream check`` and ``explain`` need neither a JVM nor numpy, and tell every mistake at its place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import weft
from weft.cli.envelope import exit_code_for
from weft.errors import ConnectorError, StreamError, StreamPlanError, StreamSqlError, WeftError

ACCEPTANCE = Path(__file__).parents[1] / "data" / "streams" / "orders_shipments"
SRC = Path(__file__).parents[2] / "src"
BROKEN = """
CREATE STREAM orders (id STRING, at TIMESTAMP) WITH ('path' = 'o', 'format' = 'json', 'event.time.field' = 'at');
CREATE STREAM bills (id STRING, at TIMESTAMP) WITH ('path' = 'b', 'fromat' = 'json', 'event.time.field' = 'at');
CREATE STREAM paid WITH ('path' = 'out', 'format' = 'json')
  AS SELECT o.id, b.nr FROM orders o JOIN bills b ON o.id = b.id;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ACCEPTANCE, tmp_path / "job")
    return tmp_path / "job"


def test_a_valid_job_is_printed_with_its_bounds(folder: Path) -> None:
    ran = weft("stream", "check", "orders_shipments.sql", root=folder)
    assert ran.code == 0
    assert "bound      s.event_time - o.event_time in [0s, 1d], both ends inclusive (ON)" in ran.out
    assert "unmatched  o is emitted when the watermark has passed event_time + 1d" in ran.out


def test_programs_get_the_joins_as_data(folder: Path) -> None:
    data = weft("stream", "check", "orders_shipments.sql", "--json", root=folder).data
    assert data["job"] == "orders_shipments"
    (join,) = data["statements"][0]["joins"]
    assert (join["how"], join["bound"]) == ("full", {"lower_us": 0, "upper_us": 86_400_000_000})
    assert join["executor"] == "kernel"


def test_every_mistake_is_reported_at_its_location(folder: Path) -> None:
    (folder / "broken.sql").write_text(BROKEN)
    ran = weft("stream", "check", "broken.sql", "--json", root=folder)
    assert ran.code == 3
    found, other = ran.document["diagnostics"]
    assert (found["code"], found["file"], other["code"]) == ("W2005", "broken.sql", "W0207")
    line = BROKEN.splitlines()[2]
    assert found["range"]["start"] == {"line": 2, "character": line.index("'fromat'")}
    assert found["range"]["end"] == {"line": 2, "character": line.index("'fromat'") + len("'fromat'")}
    assert "'format'" in found["help"]
    (folder / "broken.sql").write_text(BROKEN.replace("fromat", "format"))
    ran = weft("stream", "check", "broken.sql", "--json", root=folder)
    assert (ran.code, sorted(ran.codes)) == (3, ["W0207", "W2104"])


def test_warnings_are_errors_when_that_is_wanted(folder: Path) -> None:
    text = (folder / "orders_shipments.sql").read_text().replace("'event.time.field'='event_time', ", "", 1)
    (folder / "guessed.sql").write_text(text)
    ran = weft("stream", "check", "guessed.sql", "--json", root=folder)
    assert ran.code == 0, ran.out
    severities = {d["severity"] for d in ran.document["diagnostics"]}
    strict = weft("stream", "check", "guessed.sql", "--strict", root=folder)
    assert strict.code == (3 if "warning" in severities else 0)


def test_explain_tells_one_statement_with_inputs_and_output(folder: Path) -> None:
    ran = weft("stream", "explain", "orders_shipments.sql", "order_status", root=folder)
    assert ran.code == 0
    assert "input   orders o: files data/orders.csv (csv)" in ran.out
    assert "output  order_id string" in ran.out
    wrong = weft("stream", "explain", "orders_shipments.sql", "order_statu", "--json", root=folder)
    assert (wrong.code, wrong.codes) == (2, ["W1802"])
    assert "order_status" in wrong.document["diagnostics"][0]["help"]


def test_a_job_is_found_by_its_name_below_streams(folder: Path) -> None:
    (folder / "streams").mkdir()
    (folder / "weft.yml").write_text("weft: 1\n")
    (folder / "orders_shipments.sql").rename(folder / "streams" / "ship.sql")
    assert weft("stream", "check", "ship", root=folder).code == 0
    assert weft("stream", "check", "ship", root=folder / "streams").code == 0
    ran = weft("stream", "check", "shp", "--json", root=folder)
    assert (ran.code, ran.codes) == (2, ["W1802"])
    assert "'ship'" in ran.document["diagnostics"][0]["help"]


def test_variables_come_from_the_command_and_from_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (folder / "orders_shipments.sql").read_text().replace("INTERVAL '24' HOUR", "INTERVAL '${HOURS}' HOUR")
    (folder / "job.sql").write_text(text)
    assert weft("stream", "check", "job.sql", "--json", root=folder).codes == ["W2011"]
    assert "[0s, 2h]" in weft("stream", "check", "job.sql", "-D", "HOURS=2", root=folder).out
    monkeypatch.setenv("HOURS", "3")
    assert "[0s, 3h]" in weft("stream", "check", "job.sql", root=folder).out
    assert "[0s, 2h]" in weft("stream", "check", "job.sql", "-D", "HOURS=2", root=folder).out
    wrong = weft("stream", "check", "job.sql", "-D", "HOURS", "--json", root=folder)
    assert (wrong.code, wrong.codes) == (2, ["W1803"])


def test_check_starts_no_jvm_and_loads_neither_pyspark_nor_numpy(folder: Path) -> None:
    code = (
        "import sys\n"
        "from weft.cli.main import run_command\n"
        f"code = run_command(['-C', {str(folder)!r}, 'stream', 'check', 'orders_shipments.sql', '--json'])\n"
        "print([m for m in ('pyspark', 'py4j', 'numpy', 'pyarrow', 'sqlalchemy') if m in sys.modules])\n"
        "sys.exit(code)"
    )
    empty = folder / "bin"
    empty.mkdir()
    env = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | {
        "PATH": str(empty),
        "PYTHONPATH": str(SRC),
    }
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert ran.returncode == 0, ran.stderr
    document, _, loaded = ran.stdout.rpartition("\n[")
    assert json.loads(document)["ok"] is True
    assert loaded.strip() == "]"


@pytest.mark.parametrize(
    ("words", "code", "codes"),
    [
        (("--final", "--batch"), 2, ["W1803"]),
        (("--keep", "everything"), 2, ["W1803"]),
        (("--keep", "state", "--fresh"), 2, ["W1803"]),
        (("--to", "x"), 2, ["W1803"]),
        (("--only", "nothing"), 2, ["W1802"]),
        (("--nonsense",), 2, []),
    ],
)
def test_words_that_mean_nothing_are_refused(folder: Path, words: tuple[str, ...], code: int, codes: list[str]) -> None:
    ran = weft("stream", "run", "orders_shipments.sql", *words, "--json", root=folder)
    assert (ran.code, ran.codes) == (code, codes)
    assert not (folder / ".weft").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StreamSqlError("x", help="y"), 3),
        (StreamPlanError("x", help="y"), 3),
        (StreamError("x", help="y"), 1),
        (StreamError("x", code="W2210", help="y"), 1),
        (ConnectorError("x", help="y"), 1),
        (StreamError("x", code="W2203", help="y"), 8),
        (StreamError("x", code="W2204", help="y"), 8),
        (StreamError("x", code="W2205", help="y"), 8),
        (StreamError("x", code="W2215", help="y"), 8),
    ],
)
def test_an_error_of_a_stream_has_its_exit_code(error: WeftError, code: int) -> None:
    assert exit_code_for(error) == code
