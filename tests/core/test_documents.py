"""Reports as documents: values, reading back, and the JSON Schema that every document fulfils."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypedDict

import jsonschema
import pytest

from weft.core.documents import OPEN_WORD, Document, Key, json_schema, round_seconds, to_json
from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Document):
    name: str
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Document):
    DOCUMENT: ClassVar = (
        "in_",
        "state",
        "kind",
        "seconds",
        "parts",
        "first",
        "by_name",
        "at",
        "total",
        "note",
    )
    UNLISTED: ClassVar = ("total",)
    OPTIONAL: ClassVar = ("note",)

    in_: Annotated[int, Key("in")]
    state: Literal["on", "off"]
    kind: Annotated[Literal["a", "b"], OPEN_WORD] = "a"
    seconds: Annotated[float, round_seconds] | None = None
    parts: tuple[Part, ...] = ()
    first: Part | None = None
    by_name: FrozenMap[str, int] = EMPTY
    at: dt.datetime | None = None
    note: str | None = None
    hidden: str = "never shown"

    @property
    def total(self) -> int:
        return sum(part.rows or 0 for part in self.parts)


FULL = Report(
    in_=3,
    state="on",
    seconds=0.12345,
    parts=(Part(name="x", rows=2), Part(name="y")),
    first=Part(name="x", rows=2),
    by_name=FrozenMap(a=1),
    at=dt.datetime(2026, 1, 31, 13, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    note="late",
)
BARE = Report(in_=0, state="off")


def test_a_document_has_the_chosen_keys_in_order() -> None:
    assert json.dumps(FULL.to_dict()) == (
        '{"in": 3, "state": "on", "kind": "a", "seconds": 0.123, '
        '"parts": [{"name": "x", "rows": 2}, {"name": "y", "rows": null}], "first": {"name": "x", "rows": 2}, '
        '"by_name": {"a": 1}, "at": "2026-01-31T12:00:00Z", "total": 2, "note": "late"}'
    )


def test_an_optional_key_is_left_out_when_there_is_nothing_to_say() -> None:
    assert "note" not in BARE.to_dict()
    assert BARE.to_dict()["at"] is None


def test_a_schema_accepts_the_documents_and_nothing_less() -> None:
    schema = json_schema(Report)
    jsonschema.Draft202012Validator.check_schema(schema)
    for report in (FULL, BARE):
        jsonschema.validate(report.to_dict(), schema)
    assert set(schema["required"]) == set(BARE.to_dict()) - {"total"}
    assert not {"total", "note", "hidden"} & set(schema["properties"])
    for key in schema["required"]:
        less = {k: v for k, v in FULL.to_dict().items() if k != key}
        assert not jsonschema.Draft202012Validator(schema).is_valid(less), key


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({"state": "broken"}, False),
        ({"kind": "a word of a later version"}, True),
        ({"kind": 1}, False),
        ({"seconds": None}, True),
        ({"first": {"name": "x"}}, False),
        ({"parts": [{"name": "x", "rows": "2"}]}, False),
        ({"by_name": {"a": "1"}}, False),
        ({"more": 1}, True),
    ],
)
def test_a_schema_says_what_each_value_is(change: dict[str, Any], valid: bool) -> None:  # noqa: FBT001
    found = jsonschema.Draft202012Validator(json_schema(Report)).is_valid(FULL.to_dict() | change)
    assert found is valid


def test_a_document_reads_back() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Kept(Document):
        parts: tuple[Part, ...]
        first: Part | None = None
        facts: FrozenMap[str, Any] = EMPTY
        in_: Annotated[int, Key("in")] = 0

    kept = Kept(parts=(Part(name="x"),), first=Part(name="y", rows=1), facts=FrozenMap(a=(1, 2)), in_=4)
    stored = json.loads(json.dumps(kept.to_dict()))
    assert Kept.from_dict(stored) == kept
    assert Kept.from_dict(stored | {"of a later version": 1}) == kept
    with pytest.raises(TypeError, match="parts"):
        Kept.from_dict({})


def test_values_are_plain() -> None:
    assert to_json(
        {"path": Path("a/b"), "price": Decimal("1.50"), "day": dt.date(2026, 1, 31), "rows": ((1,), None)}
    ) == {"path": "a/b", "price": "1.50", "day": "2026-01-31", "rows": [[1], None]}


def test_a_finding_has_a_schema() -> None:
    finding = Diagnostic("W0101", "the right side has no column 'sym'")
    assert to_json([finding]) == [finding.to_dict()]
    jsonschema.validate(finding.to_dict(), json_schema(Diagnostic))
    assert not jsonschema.Draft202012Validator(json_schema(Diagnostic)).is_valid(finding.to_dict() | {"code": "101"})


class Spot(TypedDict):
    line: int
    rest: Any


def test_types_of_dictionaries_have_a_schema() -> None:
    assert json_schema(Spot) == {
        "type": "object",
        "properties": {"line": {"type": "integer"}, "rest": {}},
        "required": ["line", "rest"],
    }
