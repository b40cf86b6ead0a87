"""What `weft doctor --cluster` says about workers: answers that are fine, each problem, and a job on real workers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from command_line import weft
from weft.cli.cluster import check_survey, list_places
from weft.core.frozen import FrozenMap
from weft.errors import FileStoreError
from weft.io.stores import open_store
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.run.cluster import (
    ASKED,
    Offset,
    Place,
    StoreAnswer,
    Survey,
    WorkerReport,
    measure_clocks,
    merge_reports,
    pack_question,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = ".".join(map(str, sys.version_info[:3]))
LAKE = "s3://lake/gl"
PLACES = (Place(address="/data", writes=True), Place(address=LAKE, writes=True, is_stream=True))
WORKER = WorkerReport(
    host="node1",
    folder="/work/app/0",
    python=NOW,
    path="/opt/python",
    packages=FrozenMap({"numpy": "2.4.6", "pyarrow": "26.0.1", "obstore": None, "pyspark": "4.3.0"}),
    clock=Offset(-0.1, 0.2),
    folders=FrozenMap({"/data": True}),
    stores=FrozenMap({LAKE: StoreAnswer()}),
)
DENIED = StoreAnswer(code="W1906", message="s3://lake/gl: access denied", help="check the credentials")


def checks(*workers: WorkerReport, places: tuple[Place, ...] = PLACES, **changes: Any) -> list[tuple[str, bool, str]]:
    survey = Survey(workers=workers, driver=WORKER, spark="4.3.0", spark_stores={LAKE: None}, problems={})
    found = [*check_survey(replace(survey, **changes), places)]
    assert all(check.ok or check.help for check in found)
    return [(check.name, check.ok, check.found) for check in found]


def failed(*workers: WorkerReport, **changes: Any) -> list[tuple[str, str]]:
    return [(name, found) for name, ok, found in checks(*workers, **changes) if not ok]


def test_workers_that_are_fine_have_a_line_each() -> None:
    has = f"Python {NOW} at /opt/python, numpy 2.4.6, pyarrow 26.0.1, obstore missing, Spark 4.3.0, clock within 0.2 s of this machine"
    assert checks(WORKER, replace(WORKER, folder="/work/app/1"), replace(WORKER, host="node2")) == [
        ("worker", True, f"node1 (executor 0): {has}"),
        ("worker", True, f"node1 (executor 1): {has}"),
        ("worker", True, f"node2: {has}"),
        ("shared", True, "/data is the same folder on all workers"),
        ("files", True, f"{LAKE} can be read and written by all workers, and read by Spark"),
    ]


def test_a_worker_with_another_python_or_spark_is_a_finding() -> None:
    bare = replace(WORKER, packages=FrozenMap({"numpy": None, "pyarrow": "26.0.1", "pyspark": "4.3.0"}))
    assert failed(bare) == [("worker", f"W1809: node1: Python {NOW} at /opt/python has no numpy")]
    ((_, found),) = failed(replace(WORKER, python="3.2.1"))
    assert found.startswith("W1809: node1: the workers run Python 3.2.1 at /opt/python and the driver runs Python 3.")
    assert failed(WORKER, spark="4.1.4") == [("worker", "W1809: node1: its PySpark is 4.3.0 and Spark is 4.1.4")]


def test_clocks_are_a_finding_only_when_they_differ_for_certain() -> None:
    assert failed(replace(WORKER, clock=Offset(-3.0, 1.9))) == []
    assert failed(replace(WORKER, clock=Offset(-9.0, -7.5))) == [
        ("clock", "W1810: the clock of node1 is at least 7.5 s behind that of this machine")
    ]
    early = replace(WORKER, stores=FrozenMap({LAKE: StoreAnswer(clock=Offset(4.0, 5.0))}))
    assert failed(early) == [("clock", f"W1810: the clock of node1 is at least 4.0 s ahead of that of {LAKE}")]


def test_a_folder_that_a_worker_does_not_see_is_a_finding() -> None:
    blind = replace(WORKER, host="node2", folders=FrozenMap({"/data": False}))
    ((name, found),) = failed(WORKER, blind)
    assert (name, found) == (
        "shared",
        "W1811: /data is not shared: a file that this machine wrote there is missing on 'node2'",
    )


def test_a_store_is_a_finding_when_those_who_use_it_cannot_reach_it() -> None:
    without = replace(WORKER, stores=FrozenMap({LAKE: DENIED}))
    assert failed(without) == [("files", "W1906: s3://lake/gl: access denied (on 'node1')")]
    by_spark = (Place(address=LAKE),)
    assert failed(without, places=by_spark) == []
    refused = {LAKE: FileStoreError("no answer", code="W1905", help="start it")}
    assert failed(WORKER, places=by_spark, spark_stores=refused) == [
        ("files", f"W1905: Spark cannot read {LAKE}: no answer")
    ]


def test_clocks_are_bounded_by_all_tasks_of_a_worker() -> None:
    tasks = [{"host": "a", "folder": "0", "start": s, "end": s + 0.5} for s in (110.2, 110.8)]
    offset = measure_clocks(tasks, 100.0, 102.0)["a", "0"]
    assert (round(offset.least, 3), round(offset.most, 3)) == (9.3, 10.2)


def test_a_problem_of_one_task_is_one_of_its_worker() -> None:
    plain = {"host": "a", "folder": "0", "python": NOW, "path": "p", "packages": {}, "start": 0.0, "end": 0.0}
    fine, bad = (
        {"folders": {"/data": True}, "stores": {LAKE: {}}},
        {"folders": {"/data": False}, "stores": {LAKE: DENIED.to_dict()}},
    )
    for answers in ([fine, bad], [bad, fine]):
        (report,) = merge_reports([plain | answer for answer in answers], {})
        assert (report.folders["/data"], report.stores[LAKE].code) == (False, "W1906")


def test_the_places_are_those_of_datasources_outputs_and_streams(tmp_path: Path) -> None:
    root = tmp_path / "fx"
    assert weft("init", root).code == 0
    (root / "datasources" / "lake.yml").write_text(
        "datasource:\n  id: lake\n  type: parquet\n  options: {path_prefix: 's3a://lake/gl'}\n"
    )
    (root / "streams").mkdir()
    (root / "streams" / "bad.sql").write_text("CREATE\n")
    (root / "streams" / "job.sql").write_text(
        "SET 'checkpoint' = '/ck/job';\n"
        "CREATE STREAM a (id INT, t TIMESTAMP) WITH ('connector' = 'files', 'path' = '/in/*/a.json', 'format' = 'json');\n"
        "CREATE STREAM b WITH ('connector' = 'files', 'path' = 'out/b', 'format' = 'json');\n"
        "INSERT INTO b SELECT * FROM a;\n"
    )
    places, unread = list_places(load_workspace(root).workspace)
    assert {place.address: (place.writes, place.is_stream) for place in places} == {
        "/in": (False, False),
        "/ck/job": (True, True),
        str(root / "data"): (False, False),
        str(root / "out"): (True, True),
        "s3a://lake/gl": (False, False),
    }
    assert [check.found.split(":")[0] for check in unread] == ["streams/bad.sql is not checked"]


def test_the_question_needs_no_weft_where_it_is_asked(tmp_path: Path) -> None:
    (tmp_path / "marker").write_text("mark")
    folders = {"here": str(tmp_path / "marker"), "there": str(tmp_path / "other")}
    stores = {
        str(tmp_path): (open_store(str(tmp_path)), True),
        "s3://nowhere/gl": (open_store("s3://nowhere/gl"), True),
    }
    (tmp_path / "asked").write_bytes(pack_question(ASKED, "mark", folders, stores))
    script = (
        "import json, pickle, sys; sys.modules['weft'] = sys.modules['obstore'] = None\n"
        "function, arguments = pickle.load(open(sys.argv[1], 'rb')); print(json.dumps(function(*arguments, 0.0)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "asked"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    (report,) = merge_reports([json.loads(ran.stdout)], {})
    assert (report.python, report.packages["obstore"]) == (NOW, None)
    assert report.folders == {"here": True, "there": False}
    assert report.stores["s3://nowhere/gl"].code == "W1904"
    clock = report.stores[str(tmp_path)].clock
    assert clock is not None
    assert not clock.is_beyond(2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked", "marker"]


def test_the_doctor_asks_the_workers_of_a_session(tmp_path: Path, spark: SparkSession) -> None:
    root = tmp_path / "fx"
    assert weft("init", root).code == 0
    ran = weft("doctor", "--cluster", "--json", root=root, spark=spark)
    assert ran.code == 0, ran.out
    (worker,) = ran.data["workers"]
    assert (worker["python"], worker["packages"]["pyspark"]) == (NOW, spark.version)
    assert worker["folders"] == {str(root / "data"): True, str(root / "out"): True}
    found = {check["name"]: check["found"] for check in ran.data["checks"]}
    assert found["shared"].endswith(" is the same folder on all workers")
    assert "workers" not in found
    assert not [*root.rglob(".weft-doctor*")]
