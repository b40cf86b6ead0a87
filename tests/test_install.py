"""What `pip install weft` brings is enough: joins, runs and streams work with nothing else; each extra, added alone, brings what it needs."""

from __future__ import annotations

import shutil
import tomllib
import venv
from pathlib import Path
from typing import Any

import pytest

from installs import ROOT, Environment

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
NAMES_ONLY = ("arrow", "pipelines", "testing")
# `make setup` installs these, and all other tests run with them.
DEVELOPMENT = ("dev", "docs")

JOIN = """
import weft
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
trades = weft.relation(spark.sql("SELECT * FROM VALUES ('A', 3L), ('A', 6L), ('B', 4L) AS t(symbol, at)"))
quotes = weft.relation(spark.sql("SELECT * FROM VALUES ('A', 1L, 189), ('A', 5L, 190) AS q(symbol, quoted, price)"))
for strategy in ("auto", "kernel"):
    joined = trades.natural_asof(quotes, order=weft.AsofOrder(left="at", right="quoted"), strategy=strategy)
    print(sorted((row.symbol, row.at, row.price) for row in joined.df.collect()))
spark.stop()
"""
JOINED = "[('A', 3, 189), ('A', 6, 190), ('B', 4, None)]\n" * 2

STREAM = """\
CREATE STREAM orders (id STRING, at TIMESTAMP) WITH ('path'='orders', 'format'='csv', 'event.time.field'='at');
CREATE STREAM parcels (id STRING, at TIMESTAMP) WITH ('path'='parcels', 'format'='csv', 'event.time.field'='at');
CREATE STREAM sent WITH ('path'='out/sent', 'format'='csv') AS
SELECT o.id, p.at AS sent_at FROM orders o JOIN parcels p ON o.id = p.id WITHIN '1 hour';
"""


@pytest.fixture
def no_python(tmp_path: Path) -> Path:
    """Return a folder for the start of PATH whose `python3` is not one: nobody may rely on it."""
    (tmp_path / "bin").mkdir()
    for name in ("python", "python3"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\necho the python3 of the PATH was started >&2\nexit 97\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path / "bin"


@pytest.mark.slow
@pytest.mark.usefixtures("jvm")
def test_a_join_runs_in_a_plain_install(plain: Environment) -> None:
    assert not plain.packages() & {"psycopg", "grpcio", "deltalake", "pyiceberg"}
    assert plain.run("python", "-c", JOIN).stdout == JOINED


@pytest.mark.slow
@pytest.mark.usefixtures("jvm")
def test_a_run_and_the_doctor_work_in_a_plain_install(plain: Environment, no_python: Path, tmp_path: Path) -> None:
    root = tmp_path / "fx"
    plain.run("weft", "init", root, first=no_python)
    assert "ok  workers" in plain.run("weft", "-C", root, "doctor", first=no_python).stdout
    assert "completed in" in plain.run("weft", "-C", root, "run", "-p", "2026-01", first=no_python).stdout
    assert list(root.glob("out/processed_gl/period=2026-01/*.parquet"))


@pytest.mark.slow
@pytest.mark.usefixtures("jvm")
def test_a_stream_runs_in_a_plain_install_and_goes_on_after_workers_without_packages(
    plain: Environment, no_python: Path, tmp_path: Path
) -> None:
    write_stream(tmp_path)
    run = ("-C", tmp_path, "stream", "run", "job.sql", "--final")
    venv.create(tmp_path / "bare", symlinks=True)
    settings = tmp_path / "weft.yml"
    settings.write_text(f"spark: {{conf: {{spark.pyspark.python: {tmp_path}/bare/bin/python}}}}\n")
    ran = plain.run("weft", *run, first=no_python, fails=True)
    assert ran.returncode == 1
    assert "error[W1809]: 'sent' failed: the Python of Spark's workers has no module 'pyarrow'" in ran.stderr
    assert f"export PYSPARK_PYTHON={plain.programs / 'python'} " in ran.stderr
    assert "Traceback" not in ran.stderr
    settings.unlink()
    plain.run("weft", *run, first=no_python)
    assert sent(tmp_path) == ["b,2026-01-05T10:10:00.000000Z"]


def sent(folder: Path) -> list[str]:
    """Return the rows of the sink."""
    (file,) = (folder / "out" / "sent").glob("*.csv")
    return file.read_text().splitlines()[1:]


def write_stream(folder: Path) -> None:
    for name, text in (
        ("job.sql", STREAM),
        ("orders/1.csv", "id,at\na,2026-01-05T10:00:00Z\nb,2026-01-05T10:05:00Z\n"),
        ("parcels/1.csv", "id,at\nb,2026-01-05T10:10:00Z\nb,2026-01-05T12:00:00Z\n"),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize("extra", NAMES_ONLY)
def test_a_name_whose_packages_moved_into_the_core_still_installs(plain: Environment, extra: str) -> None:
    before = plain.packages()
    plain.add(f"weft[{extra}] @ {plain.wheel.as_uri()}")
    assert plain.packages() == before


@pytest.mark.slow
@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {*DEVELOPMENT, *NAMES_ONLY}))
def test_an_extra_alone_runs(plain: Environment, tmp_path: Path, extra: str) -> None:
    made = plain.with_extra(extra, tmp_path / "env")
    if extra == "connect":
        write_stream(tmp_path)
        made.run("weft", "init", tmp_path / "fx")
    # A copy: Python adds the folder of a script to its path, and ours holds the modules of the tests.
    script = shutil.copy(ROOT / "tests" / "extra_process.py", tmp_path)
    assert made.run("python", script, extra, tmp_path).stdout.endswith("all of it ran\n")
    if extra == "connect":
        assert list((tmp_path / "fx").glob("out/processed_gl/period=2026-01/*.parquet"))
        assert sent(tmp_path) == ["b,2026-01-05T10:10:00.000000Z"]
