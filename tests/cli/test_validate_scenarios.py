"""`weft validate` finds in scenarios what `weft test` finds before it computes a row; nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import weft
from engine_data import CONVERT, WRITE, project_text, sample_workspace

GIVEN = """\
  given:
    gl:
      - {journal_id: J1, line_number: 1, posting_date: 2026-01-05, account_code: "4100",
         cost_center_code: CC-100, currency: EUR, amount_local: "10.00", source_system: ERP}
    exchange_rates:
      - {from_currency: EUR, to_currency: USD, rate: "1.5", rate_type: closing}
"""
EXPECT = """\
  expect:
    rows: [{journal_id: J1, amount_reporting: "15.00"}]
"""
TRACE = '    trace: [{operation: 10, change: updated, match: {journal_id: J1}, diff: {amount_reporting: [null, "15.00"]}}]\n'


def text(given: str = GIVEN, expect: str = EXPECT, period: str = "2026-01") -> str:
    return f"scenario:\n  name: s\n  project: fx_reporting\n  period: {period}\n{given}{expect}"


def test_a_sound_scenario_passes(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, scenarios__s=text(expect=EXPECT + TRACE))
    assert weft("validate", "--json", root=root).codes == []


@pytest.mark.parametrize(
    ("scenario", "code", "marked"),
    [
        (text(period="2026-13"), "W0401", "2026-13"),
        (text(GIVEN.replace("exchange_rates:", "exchange_rate:")), "W1702", "exchange_rate"),
        (text(GIVEN.replace('amount_local: "10.00"', "amount_local: ten")), "W1702", "ten"),
        (text(GIVEN.replace('amount_local: "10.00"', 'amount_local: "10.001"')), "W1702", '"10.001"'),
        (text(GIVEN.replace("currency: EUR, amount", "curency: EUR, amount")), "W1702", "EUR"),
        (text("  given: {gl: {file: no.csv}}\n"), "W1704", "no.csv"),
        (text("  given: {gl: {file: no.parquet}}\n"), "W1704", "no.parquet"),
        (text(expect=EXPECT + "    output: 10\n"), "W1701", "10"),
        (text(expect=EXPECT.replace("amount_reporting", "amount_reportin")), "W1702", '"15.00"'),
        (text(expect=EXPECT.replace('"15.00"', "much")), "W1702", "much"),
        (text(expect=EXPECT + TRACE.replace("operation: 10", "operation: 20")), "W1705", "20"),
        (text(expect=EXPECT + TRACE.replace("match: {journal_id", "match: {journal")), "W1705", ""),
    ],
)
def test_a_mistake_is_found_at_its_place(tmp_path: Path, scenario: str, code: str, marked: str) -> None:
    root = sample_workspace(tmp_path, scenarios__s=scenario)
    ran = weft("validate", "--json", root=root)
    assert (ran.code, ran.codes) == (3, [code])
    (found,) = ran.document["diagnostics"]
    if marked:
        assert found["file"] == "scenarios/s.yml"
        start, end = found["range"]["start"], found["range"]["end"]
        assert scenario.split("\n")[start["line"]][start["character"] : end["character"]] == marked


def test_an_error_that_is_expected_is_none(tmp_path: Path) -> None:
    inner = project_text(CONVERT.replace("fx.from_currency", "fx.from_currncy") + WRITE, name="broken", id="b")
    project = inner.replace("project:\n", "", 1).replace("\n", "\n  ").rstrip()
    scenario = f"""\
scenario:
  name: s
  period: 2026-01
  project:
  {project}
  expect:
    errors: [VR-007]
"""
    root = sample_workspace(tmp_path, scenarios__s=scenario)
    assert weft("validate", "--json", root=root).codes == []
    (root / "scenarios" / "s.yml").write_text(scenario.replace("VR-007", "W1209"))
    assert weft("validate", "--json", root=root).codes == ["W1703"]


def test_errors_of_a_project_are_not_repeated_for_its_scenarios(tmp_path: Path) -> None:
    wrong = project_text(CONVERT.replace("fx.from_currency", "fx.from_currncy") + WRITE)
    ran = weft("validate", "--json", root=sample_workspace(tmp_path, projects__fx_reporting=wrong))
    assert ran.codes == ["W1207"]
