"""Results of scenarios for people, programs and build servers."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from weft.errors import Diagnostic
from weft.pipelines.model.compose import compose
from weft.pipelines.model.yaml_nodes import to_python
from weft.pipelines.scenarios.compare import Mismatch
from weft.pipelines.scenarios.reports import (
    ScenarioResult,
    format_junit,
    format_results,
    kebab,
    rows_yaml,
    to_json,
    write_snapshot,
)

PASSED = ScenarioResult(name="All is well", file=Path("scenarios/a.yml"), status="pass", seconds=0.94)
FAILED = ScenarioResult(
    name="EUR <only>",
    file=Path("scenarios/b.yml"),
    status="fail",
    seconds=0.71,
    key=("id",),
    mismatches=tuple(
        Mismatch(
            kind="value_mismatch",
            expected={"id": i, "amount": Decimal("9282.01")},
            actual={"id": i, "amount": Decimal("9282.00")},
            columns=("amount",),
        )
        for i in range(7)
    ),
    actual=({"id": 1, "note": 'say "no"\n', "labels": {"b": "1", "a": None}, "amount": Decimal("1.50")},),
)
BROKEN = ScenarioResult(
    name="Broken",
    file=None,
    status="error",
    seconds=0.0,
    diagnostics=(Diagnostic("W1702", "a \x00 in it", help="correct it"),),
)


def test_people_see_five_differences_and_the_sum() -> None:
    lines = format_results([PASSED, FAILED, BROKEN]).splitlines()
    assert lines[0].split() == ["PASS", "All", "is", "well", "0.9", "s"]
    assert lines[2:4] == ["  value_mismatch  id 0", "      amount   expected 9282.01   actual 9282.00"]
    assert "  and 2 more" in lines
    assert "  error[W1702]: a \x00 in it" in lines
    assert lines[-1] == "1 passed, 1 failed, 1 with errors"
    assert "more" not in format_results([FAILED], verbose=True)


def test_build_servers_get_xml_that_reads() -> None:
    suite = ET.fromstring(format_junit([PASSED, FAILED, BROKEN]))  # noqa: S314  # it is our own
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert suite.get("time") == "1.650"
    names = [(case.get("classname"), case.get("name"), case.get("time")) for case in suite]
    assert names[1] == ("scenarios/b", "EUR <only>", "0.710")
    failure, error = suite[1].find("failure"), suite[2].find("error")
    assert failure is not None
    assert "expected 9282.01" in str(failure.text)
    assert error is not None
    assert error.get("message") == "a ? in it"


def test_programs_get_a_document() -> None:
    document = to_json([PASSED, FAILED, BROKEN])
    assert (document["passed"], document["failed"], document["errors"]) == (1, 1, 1)
    first = document["scenarios"][1]["mismatches"][0]
    assert (first["kind"], first["expected"]) == ("value_mismatch", {"id": 0, "amount": "9282.01"})
    assert document["scenarios"][2]["error"]["code"] == "W1702"


def test_what_came_out_is_kept_as_rows_that_read_back(tmp_path: Path) -> None:
    file = write_snapshot(FAILED, tmp_path)
    assert file == Path("scenarios/.snapshots/eur-only-actual.yml")
    text = (tmp_path / file).read_text(encoding="utf-8")
    assert to_python(compose(text, "x.yml")) == {
        "rows": [{"id": 1, "note": 'say "no"\n', "labels": {"a": None, "b": "1"}, "amount": "1.50"}]
    }
    assert write_snapshot(PASSED, tmp_path) is None
    assert write_snapshot(replace(FAILED, name="It passes now", status="pass"), tmp_path) is None
    assert write_snapshot(BROKEN, tmp_path) is None
    assert rows_yaml(()) == "rows: []\n"


def test_a_name_cannot_leave_the_folder() -> None:
    assert kebab("../../etc/passwd") == "etc-passwd"
    assert kebab("Überweisung (EUR)") == "berweisung-eur"
