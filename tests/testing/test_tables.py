"""Tables in tests: what cells mean, which types they suggest, and that printing reads back."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core import types
from weft.core.source import Source
from weft.core.types import DType, Field, Schema
from weft.errors import CaseFileError
from weft.testing import CRASH, Crash, T, Table, assert_rows_equal

UTC = dt.UTC


def test_types_are_inferred_from_all_cells_of_a_column() -> None:
    table = T("""
        i    | d     | f   | b     | day        | t        | stamp               | s   | mixed | empty
        1    | 1.50  | 1e3 | true  | 2024-01-31 | 10:00:05 | 2024-01-31T10:00:05 | x   | 1     |
        null | 20    | nan | false | 2024-02-01 | 09:30    | 2024-02-01          | 1.5 | a     | null
    """)
    assert [str(f.dtype) for f in table.schema] == [
        "long", "decimal(18,2)", "double", "boolean", "date", "timestamp", "timestamp", "string", "string", "string",
    ]  # fmt: skip
    assert table.rows[0] == (
        1, Decimal("1.50"), 1000.0, True, dt.date(2024, 1, 31), dt.datetime(2024, 1, 1, 10, 0, 5, tzinfo=UTC),
        dt.datetime(2024, 1, 31, 10, 0, 5, tzinfo=UTC), "x", "1", None,
    )  # fmt: skip
    assert table.rows[1][0] is None
    assert math.isnan(table.rows[1][2])
    assert table.rows[1][6] == dt.datetime(2024, 2, 1, tzinfo=UTC)


def test_types_may_be_declared_in_the_header() -> None:
    table = T("""
        px: decimal(10,2) | n: integer | t: timestamp_ntz | bin: binary | gap: interval | x: float
        1.5               | 7          | 10:00:05         | 0x00ff      | 1h 30m        | 0.1
    """)
    assert table.rows == (
        (
            Decimal("1.50"), 7, dt.datetime(2024, 1, 1, 10, 0, 5), b"\x00\xff", dt.timedelta(minutes=90),  # noqa: DTZ001
            struct.unpack("f", struct.pack("f", 0.1))[0],
        ),
    )  # fmt: skip
    assert str(table.rows[0][0]) == "1.50"


def test_nested_values_are_json() -> None:
    table = T("""
        a: array<long> | m: map<string,decimal(4,1)> | s: struct<d:date,t:string>
        [1, null]      | {"x | y": 1.5}              | ["2024-01-01", "null"]
    """)
    assert table.rows == (([1, None], {"x | y": Decimal("1.5")}, (dt.date(2024, 1, 1), "null")),)


def test_quoted_text_is_text_whatever_it_says() -> None:
    table = T("""
        a    | b      | c       | d
        ""   | "null" | "a | b" | " x\\n"
        null | 1      | c       | d     <- a note, | and more of it
    """)
    assert table.rows == (("", "null", "a | b", " x\n"), (None, "1", "c", "d"))


def test_comment_lines_and_blank_lines_are_left_out() -> None:
    table = T("""
        # orders
        id | n

        1  | 2

        # the end
    """)
    assert table.rows == ((1, 2),)


def test_offsets_are_turned_into_utc() -> None:
    table = T("t \n 2024-01-31T10:00:05+01:00 \n 10:00:05+02:00")
    assert [v.isoformat() for v in table.column("t")] == [
        "2024-01-31T09:00:05+00:00",
        "2024-01-01T08:00:05+00:00",
    ]


def test_names_may_hold_anything_in_backticks() -> None:
    table = T("`a.b` | `c``d` | order id | class | `x | y`: long | `t:ime` \n 1 | 2 | 3 | 4 | 5 | 6")
    assert table.schema.names == ("a.b", "c`d", "order id", "class", "x | y", "t:ime")
    assert T(table.format()) == table


def test_a_string_with_the_sign_of_a_comment_is_written_in_quotes() -> None:
    table = Table.of([{"s": "a <- b"}, {"s": "a < - b"}])
    assert table.format().split("\n")[1:] == ['"a <- b"', "a < - b"]
    assert T(table.format()) == table


def test_the_batch_column_says_when_rows_arrive() -> None:
    table = T("""
        id | __batch__
        1  | 1
        2  | 3
        3  | 1
    """)
    assert table.schema.names == ("id",)
    assert table.batches == (1, 3, 1)
    assert [t.rows for t in table.arrivals()] == [((1,), (3,)), ((2,),)]
    assert T("id \n 1").arrivals() == (T("id \n 1"),)
    assert T(table.format()) == table


def test_a_table_without_rows_has_a_schema() -> None:
    table = T("id: long | s")
    assert (table.rows, len(table)) == ((), 0)
    assert [str(f.dtype) for f in table.schema] == ["long", "string"]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "the table is empty", (1, 1)),
        ("a | b\n1", "the row has 1 cells, the header 2", (2, 1)),
        ("a | b\n1 | 2 | 3", "the row has 3 cells, the header 2", (2, 1)),
        ("a | \n1 | 2", "a column has no name", (1, 5)),
        ("a: lnog\n1", "invalid type ' lnog' at 'lnog'", (1, 1)),
        ("a: long\nx", "column 'a': 'x' is not a value of type long", (2, 1)),
        ("a: byte\n128", "column 'a': '128' is not a value of type byte", (2, 1)),
        ("n | a: decimal(4,1)\n1 | 1.25", "column 'a': '1.25' is not a value of type decimal(4,1)", (2, 5)),
        ("a: decimal(4,1)\n1234.5", "column 'a': '1234.5' is not a value of type decimal(4,1)", (2, 1)),
        ("a: date\n2024-02-30", "column 'a': '2024-02-30' is not a value of type date", (2, 1)),
        ("a: timestamp_ntz\n10:00Z", "column 'a': '10:00Z' is not a value of type timestamp_ntz", (2, 1)),
        ("a: long\n\"1\"", "column 'a': '1' is not a value of type long", (2, 1)),
        ('a\n"x', 'invalid quoted string "x', (2, 1)),
        ("a: array<long>\n[1", "column 'a': '[1' is not a value of type array<long>", (2, 1)),
        ("a: interval\nsoon", "column 'a': 'soon' is not a value of type interval", (2, 1)),
        ("a | A\n1 | 2", "columns 'a' and 'A' have the same name but for case", (1, 1)),
        ("a | __batch__\n1 | ", "a row has no batch number", (2, 5)),
    ],
)  # fmt: skip
def test_an_invalid_table_is_an_error_with_its_location(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(CaseFileError) as caught:
        T(text)
    assert caught.value.message == message
    at = caught.value.diagnostics[0].at
    assert isinstance(at, Source)
    assert (at.line, at.column) == place


def test_every_bad_cell_is_reported() -> None:
    with pytest.raises(CaseFileError) as caught:
        T("a: long | b: date \n x | y \n 1 | z")
    assert len(caught.value.diagnostics) == 3


def test_a_bad_cell_is_shown_with_a_caret() -> None:
    with pytest.raises(CaseFileError) as caught:
        T("a: date\n2024-13-01")
    assert str(caught.value) == (
        "error[W0901]: column 'a': '2024-13-01' is not a value of type date\n"
        "  --> <text>:2:1\n"
        "   |\n"
        " 2 | 2024-13-01\n"
        "   | ^^^^^^^^^^\n"
        " = help: write for example 2024-01-31"
    )


def test_rows_and_batches_must_fit_the_schema() -> None:
    schema = Schema.of(a="long")
    with pytest.raises(CaseFileError, match="2 values"):
        Table(schema, ((1, 2),))
    with pytest.raises(CaseFileError, match="1 batch numbers for 2 rows"):
        Table(schema, ((1,), (2,)), (1,))
    with pytest.raises(CaseFileError, match="__batch__"):
        Table(Schema.of(__batch__="long"), ())


def test_dictionaries_turn_into_a_table_and_back() -> None:
    records = [{"id": 1, "px": Decimal("1.5"), "__batch__": 1}, {"id": 2, "name": "x", "__batch__": 2}]
    table = Table.of(records)
    assert [str(f) for f in table.schema] == ["id: long", "px: decimal(38,1)", "name: string"]
    assert table.batches == (1, 2)
    assert table.to_dicts() == [
        {"id": 1, "px": Decimal("1.5"), "name": None},
        {"id": 2, "px": None, "name": "x"},
    ]


def test_dictionaries_with_mixed_values_need_a_schema() -> None:
    with pytest.raises(CaseFileError, match="'integer', 'string'"):
        Table.of([{"a": 1}, {"a": "x"}])
    with pytest.raises(CaseFileError, match="no column 'b'"):
        Table.of([{"b": 1}], Schema.of(a="long"))
    assert Table.of([{}], Schema.of(a="long")).rows == ((None,),)


def test_a_crash_is_one_value_that_prints_as_itself() -> None:
    assert repr([1, CRASH]) == "[1, CRASH]"
    assert CRASH is Crash("crash")


LEAVES: dict[DType, st.SearchStrategy[Any]] = {
    types.STRING: st.text(),
    types.LONG: st.integers(-(1 << 63), (1 << 63) - 1),
    types.BOOLEAN: st.booleans(),
    types.DOUBLE: st.floats(allow_nan=False),
    types.FLOAT: st.floats(width=32, allow_nan=False),
    types.Decimal(38, 10): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -10))
    ),
    types.DATE: st.dates(),
    types.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    types.TIMESTAMP_NTZ: st.datetimes(),
    types.INTERVAL: st.timedeltas(dt.timedelta(days=-(10**6)), dt.timedelta(days=10**6)),
    types.BINARY: st.binary(),
}
LEAVES |= {
    types.Array(types.STRING): st.lists(st.none() | LEAVES[types.STRING]),
    types.Map(types.STRING, types.DATE): st.dictionaries(st.text(), LEAVES[types.DATE]),
    types.Struct((Field("a", types.LONG), Field("b", types.STRING))): st.tuples(
        st.none() | LEAVES[types.LONG], LEAVES[types.STRING]
    ),
}
NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1).filter(
    lambda name: name.strip() and name != "__batch__"
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.casefold))
    dtypes = draw(st.lists(st.sampled_from(list(LEAVES)), min_size=len(names), max_size=len(names)))
    row = st.tuples(*(st.none() | LEAVES[dtype] for dtype in dtypes))
    rows = draw(st.lists(row, max_size=4))
    numbers = st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows)).map(tuple)
    schema = Schema(tuple(Field(n, d) for n, d in zip(names, dtypes, strict=True)))
    return Table(schema, tuple(rows), draw(st.none() | numbers))


@given(tables())
def test_a_printed_table_reads_back_equal(table: Table) -> None:
    again = T(table.format())
    assert again == table
    assert_rows_equal(again, table, ordered=True)


@given(st.text(alphabet=st.sampled_from('ab|"`\\<-#[]{}:,.0123456789 \n\tlong nul'), max_size=60))
def test_any_text_is_a_table_or_a_case_file_error(text: str) -> None:
    try:
        table = T(text)
    except CaseFileError as error:
        assert error.diagnostics[0].code == "W0901"
    else:
        assert T(table.format()) == table
