"""Templates: every token, every malformed one, and values that try to get out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers import dataset, table
from weft.core.calendar import GREGORIAN
from weft.core.source import Source
from weft.errors import ResolutionError
from weft.pipelines.plan.resolver.templates import TOKENS, Kind, check_template, render, tokens_for

JANUARY = tokens_for(dataset(version=3), table("sales report"), GREGORIAN.parse("2026-01"), datasource_id="files")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{table_name}}.csv", "sales report.csv"),
        ("{{ dataset_id }}/{{dataset_name}}/v{{dataset_version}}", "ds-sales/sales/v3"),
        ("{{datasource_id}}/{{period}}", "files/2026-01"),
        ("{{period_id}}{{period_name}}{{identifier}}", "2026-012026-012026-01"),
        ("{{YYYY}}/{{QQ}}/{{MM}}", "2026/Q1/01"),
        ("{table_name}/{x}", "{table_name}/{x}"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_tokens_become_their_values_and_single_braces_stay(template: str, text: str) -> None:
    assert render(template, JANUARY, kind="path") == text


def test_every_token_is_known_for_a_month() -> None:
    assert set(JANUARY) == set(TOKENS)


@pytest.mark.parametrize(
    ("period", "token", "message"),
    [
        ("2026-Q1", "MM", "a quarter has no MM"),
        ("2026", "QQ", "a year has no QQ"),
        ("2026-W01", "YYYY", "a week has no YYYY"),
    ],
)
def test_a_token_that_the_level_lacks_is_reported(period: str, token: str, message: str) -> None:
    at = GREGORIAN.parse(period)
    tokens = tokens_for(dataset(), table(), at, datasource_id="files")
    with pytest.raises(ResolutionError) as caught:
        render(f"{{{{{token}}}}}.csv", tokens, kind="path", level=at.level)
    assert (caught.value.code, caught.value.message) == ("W1310", message)
    assert "data_level: " in caught.value.help


@pytest.mark.parametrize(
    ("template", "message", "help"),
    [
        ("{{tabel_name}}", "unknown token 'tabel_name'", "did you mean 'table_name'?"),
        ("{{ZZZ}}", "unknown token 'ZZZ'", "'table_name', 'dataset_id'"),
        ("{{yyyy}}", "unknown token 'yyyy'", "'YYYY'"),
        ("{{}}", "empty token '{{}}'", "'YYYY'"),
        ("{{  }}", "empty token", "'YYYY'"),
        ("{{a-b}}", "invalid token '{{a-b}}'", "'YYYY'"),
        ("{{{YYYY}}}", "invalid token '{{{YYYY}}'", "'YYYY'"),
        ("x{{YYYY", "'{{' has no matching '}}'", "{{YYYY}}"),
        ("YYYY}}x", "'}}' has no matching '{{'", "{{YYYY}}"),
    ],
)
def test_unknown_and_malformed_tokens_are_reported_with_their_location(template: str, message: str, help: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        render(template, JANUARY, kind="path", at=Source.whole(template, "r.yml"))
    assert caught.value.code == "W1310"
    assert message in caught.value.message
    assert help in caught.value.help
    assert caught.value.diagnostics[0].at is not None
    assert [d.message for d in check_template(template)][:1] == [caught.value.message]


def test_all_problems_of_a_template_are_reported_each_at_its_location() -> None:
    template = "{{ONE}}/{{YYYY}}/{{TWO}}"
    with pytest.raises(ResolutionError) as caught:
        render(template, JANUARY, kind="path", at=Source.whole(template))
    places = [d.at for d in caught.value.diagnostics]
    assert [p.range["start"]["character"] for p in places if p is not None] == [0, 17]
    assert check_template("{{YYYY}}/{{MM}}") == ()


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("path", "../secret", "contains '..'"),
        ("path", "..", "contains '..'"),
        ("path", "a/b", "contains a separator"),
        ("path", "a\\b", "contains a separator"),
        ("path", "*", "separator or a wildcard"),
        ("path", "{a,b}", "separator or a wildcard"),
        ("path", "a\nb", "control character"),
        ("path", "", "is empty"),
        ("table", "a/b", "separator or a quote"),
        ("table", 'a"; DROP TABLE x --', "separator or a quote"),
        ("table", "a`b", "separator or a quote"),
        ("table", " a", "starts or ends with a space"),
        ("table", "a\x00", "control character"),
        ("url", "a\r\nHost: x", "control character"),
        ("url", "..", "contains '..'"),
        ("text", "a\nb", "control character"),
    ],
)
def test_values_that_try_to_leave_their_place_are_refused(kind: Kind, value: str, reason: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        render("x/{{table_name}}", {"table_name": value}, kind=kind)
    assert caught.value.code == "W1311"
    assert reason in caught.value.message
    assert "table_name" in caught.value.message


def test_a_url_is_encoded_and_a_file_path_is_not() -> None:
    tokens = {"table_name": "sales report/é&x=1"}
    assert render("{{table_name}}", tokens, kind="url") == "sales%20report%2F%C3%A9%26x%3D1"
    assert render("{{table_name}}", {"table_name": "sales report é"}, kind="path") == "sales report é"
    assert render("{{table_name}}", {"table_name": "sales report"}, kind="table") == "sales report"


def test_a_value_is_not_read_as_a_template_again() -> None:
    tokens = {"table_name": "{{YYYY}}", "YYYY": "2026"}
    assert render("{{table_name}}", tokens, kind="table") == "{{YYYY}}"


@given(st.text(max_size=30), st.text(max_size=10))
def test_a_rendered_path_has_the_parts_of_its_template_or_is_refused(template: str, value: str) -> None:
    try:
        rendered = render(f"a/{template}", {"table_name": value}, kind="path")
    except ResolutionError as refused:
        assert refused.code in ("W1310", "W1311")
    else:
        assert rendered.count("/") == template.count("/") + 1


@given(st.text(min_size=1, max_size=10))
def test_a_value_stays_one_part_of_a_path(value: str) -> None:
    try:
        rendered = render("a/{{table_name}}/b", {"table_name": value}, kind="path")
    except ResolutionError as refused:
        assert refused.code == "W1311"
    else:
        assert rendered.split("/") == ["a", value, "b"]
        assert ".." not in rendered
