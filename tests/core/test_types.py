"""Types and schemas: read, printed, compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core import types
from weft.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTERVAL,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    DType,
    Field,
    Map,
    Scalar,
    Schema,
    Struct,
    as_decimal,
    common_type,
    parse_type,
)
from weft.errors import AmbiguousColumnError, ArgumentError, JoinSpecError, UnknownColumnError, WeftError

BYTE, SHORT, VARIANT = Scalar("byte"), Scalar("short"), Scalar("variant")

scalar_types = st.sampled_from(sorted(types._SCALARS)).map(Scalar)  # type: ignore[arg-type]
decimal_types = st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p)))
column_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)


def _nested(inner: st.SearchStrategy[DType]) -> st.SearchStrategy[DType]:
    fields = st.lists(st.builds(Field, column_names, inner), max_size=3).map(tuple)
    return st.builds(Array, inner) | st.builds(Map, inner, inner) | st.builds(Struct, fields)


any_type: st.SearchStrategy[DType] = st.recursive(scalar_types | decimal_types, _nested, max_leaves=5)
exact_numbers = st.sampled_from([BYTE, SHORT, INTEGER, LONG]) | decimal_types


@given(any_type)
def test_a_printed_type_reads_back(dtype: DType) -> None:
    assert parse_type(str(dtype)) == dtype
    assert parse_type(str(dtype).upper().replace(",", " , ")) == _upper(dtype)


def _upper(dtype: DType) -> DType:
    """Return the type with field names in upper case: words fold, names do not."""
    if isinstance(dtype, Array):
        return Array(_upper(dtype.element))
    if isinstance(dtype, Map):
        return Map(_upper(dtype.key), _upper(dtype.value))
    if isinstance(dtype, Struct):
        return Struct(tuple(Field(f.name.upper(), _upper(f.dtype)) for f in dtype.fields))
    return dtype


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("int", INTEGER),
        ("bigint", LONG),
        ("text", STRING),
        ("varchar(10)", STRING),
        ("char ( 3 )", STRING),
        ("bool", BOOLEAN),
        ("real", FLOAT),
        ("datetime", TIMESTAMP),
        ("timestamp_ltz", TIMESTAMP),
        ("void", NULL),
        ("decimal", Decimal(38, 10)),
        ("numeric(5)", Decimal(5, 0)),
        (" DEC ( 18 , 2 ) ", Decimal(18, 2)),
        ("struct<>", Struct(())),
        ("struct<`order id`: int>", Struct((Field("order id", INTEGER),))),
        ("map<string,array<double>>", Map(STRING, Array(DOUBLE))),
    ],
)
def test_a_type_may_be_written_in_several_ways(text: str, dtype: DType) -> None:
    assert parse_type(text) == dtype


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "number",
        "int int",
        "int,",
        "decimal(",
        "decimal()",
        "decimal(a)",
        "decimal(10,2",
        "decimal(10,2,1)",
        "decimal(-1)",
        "decimal(0)",
        "decimal(39,2)",
        "decimal(5,6)",
        "decimal(" + "9" * 5000 + ")",
        "varchar(many)",
        "varchar()",
        "array",
        "array<>",
        "array<int",
        "array<int>>",
        "map<string>",
        "map<string,int,int>",
        "struct<a>",
        "struct<a:int,>",
        "struct<,a:int>",
        "struct<5:int>",
        "struct<(:int>",
        "struct<a int>",
        "строка",
        "int\x00",
        "int; drop table t",
        "array<" * 5000,
        "array<" * 150 + "int" + ">" * 150,
    ],
)
def test_an_invalid_type_is_refused(text: str) -> None:
    with pytest.raises(JoinSpecError) as caught:
        parse_type(text)
    assert len(str(caught.value)) < 6000


@given(st.text() | st.text(alphabet="arymapstuctdeimln<>(),: `0123"))
def test_any_text_is_a_type_or_an_error_of_ours(text: str) -> None:
    try:
        found = parse_type(text)
    except WeftError as refused:
        assert refused.code == "W0302"
    else:
        assert isinstance(found, DType)


@pytest.mark.parametrize("value", [None, 5, b"int", INTEGER])
def test_a_type_is_read_from_text_only(value: object) -> None:
    with pytest.raises(ArgumentError, match="a type must be a string"):
        parse_type(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (39, 0), (5, 6), (5, -1), (-3, 0)])
def test_a_decimal_that_no_engine_has_cannot_be_built(precision: int, scale: int) -> None:
    with pytest.raises(JoinSpecError, match=r"is not a valid type"):
        Decimal(precision, scale)


def test_a_scalar_of_an_unknown_name_cannot_be_built() -> None:
    with pytest.raises(JoinSpecError, match="unknown type 'money'"):
        Scalar("money")  # type: ignore[arg-type]


def test_kinds_of_types() -> None:
    assert [t.is_integer for t in (BYTE, LONG, DOUBLE, Decimal())] == [True, True, False, False]
    assert [t.is_fraction for t in (FLOAT, DOUBLE, LONG, Decimal())] == [True, True, False, False]
    assert [t.is_numeric for t in (SHORT, FLOAT, Decimal(), STRING, NULL)] == [True, True, True, False, False]
    assert [t.is_temporal for t in (DATE, TIMESTAMP, TIMESTAMP_NTZ, INTERVAL)] == [True, True, True, False]
    assert [t.is_nested for t in (Array(INTEGER), Struct(()), STRING)] == [True, True, False]


def test_maps_and_variants_have_no_order_at_any_depth() -> None:
    mapping = Map(STRING, INTEGER)
    assert not any(t.is_orderable for t in (mapping, VARIANT, Array(mapping), Struct((Field("v", VARIANT),))))
    assert all(t.is_orderable for t in (STRING, BINARY, Decimal(), Array(DATE), Struct((Field("d", DATE),))))


@pytest.mark.parametrize(
    ("a", "b", "met"),
    [
        (INTEGER, INTEGER, INTEGER),
        (BYTE, LONG, LONG),
        (INTEGER, DOUBLE, DOUBLE),
        (LONG, FLOAT, DOUBLE),
        (FLOAT, FLOAT, FLOAT),
        (Decimal(10, 2), DOUBLE, DOUBLE),
        (INTEGER, Decimal(10, 2), Decimal(12, 2)),
        (LONG, Decimal(10, 2), Decimal(22, 2)),
        (Decimal(10, 2), Decimal(12, 4), Decimal(12, 4)),
        (Decimal(38, 0), Decimal(38, 38), None),
        (Decimal(38, 10), LONG, Decimal(38, 10)),
        (DATE, TIMESTAMP, TIMESTAMP),
        (DATE, TIMESTAMP_NTZ, TIMESTAMP_NTZ),
        (TIMESTAMP, TIMESTAMP_NTZ, TIMESTAMP),
        (NULL, STRING, STRING),
        (Array(INTEGER), Array(LONG), Array(LONG)),
        (Array(INTEGER, contains_null=False), Array(INTEGER), Array(INTEGER)),
        (Struct((Field("a", INTEGER),)), Struct((Field("a", LONG),)), Struct((Field("a", LONG),))),
        (STRING, INTEGER, None),
        (STRING, DATE, None),
        (STRING, BOOLEAN, None),
        (STRING, BINARY, None),
        (BOOLEAN, INTEGER, None),
        (DATE, INTEGER, None),
        (INTERVAL, TIMESTAMP, None),
        (STRING, Scalar("string", "UTF8_LCASE"), None),
        (Map(STRING, STRING), Map(STRING, STRING), None),
        (Array(Map(STRING, STRING)), Array(Map(STRING, STRING)), None),
        (VARIANT, VARIANT, None),
        (Array(INTEGER), Array(STRING), None),
        (Array(INTEGER), INTEGER, None),
        (Struct((Field("a", INTEGER),)), Struct((Field("b", INTEGER),)), None),
        (Struct((Field("a", INTEGER),)), Struct(()), None),
    ],
)
def test_two_types_meet_in_one_or_in_none(a: DType, b: DType, met: DType | None) -> None:
    assert common_type(a, b) == met
    assert common_type(b, a) == met


@given(any_type, any_type)
def test_meeting_does_not_depend_on_the_side(a: DType, b: DType) -> None:
    assert common_type(a, b) == common_type(b, a)


@given(any_type)
def test_a_type_meets_itself_when_it_can_be_compared(dtype: DType) -> None:
    assert common_type(dtype, dtype) == (dtype if dtype.is_orderable else None)


@given(exact_numbers, exact_numbers)
def test_exact_numbers_meet_where_38_digits_hold_every_value_of_both(a: DType, b: DType) -> None:
    met, x, y = common_type(a, b), as_decimal(a), as_decimal(b)
    digits, scale = max(x.precision - x.scale, y.precision - y.scale), max(x.scale, y.scale)
    if met is None:
        assert digits + scale > 38
    else:
        m = as_decimal(met)
        assert m.precision - m.scale >= digits
        assert m.scale >= scale


@pytest.mark.parametrize(("dtype", "digits"), [(BYTE, 3), (SHORT, 5), (INTEGER, 10), (LONG, 20)])
def test_an_integer_fits_its_decimal(dtype: DType, digits: int) -> None:
    assert as_decimal(dtype) == Decimal(digits, 0)


@pytest.mark.parametrize("dtype", [DOUBLE, STRING, DATE, NULL])
def test_only_an_exact_number_has_a_decimal(dtype: DType) -> None:
    with pytest.raises(ArgumentError, match=f"{dtype} is not an exact number"):
        as_decimal(dtype)


def test_a_schema_finds_columns_in_any_case_and_keeps_their_spelling() -> None:
    schema = Schema.of(Id="long", Name=STRING)
    assert (schema.names, len(schema), [f.name for f in schema]) == (("Id", "Name"), 2, ["Id", "Name"])
    assert (schema.find("NAME"), schema.index("name"), schema["NAME"].name) == (1, 1, "Name")
    assert "ID" in schema
    assert "x" not in schema
    assert 5 not in schema


def test_a_case_sensitive_schema_takes_names_as_written() -> None:
    schema = Schema((Field("a", INTEGER), Field("A", STRING)), case_sensitive=True)
    assert (schema.index("a"), schema.index("A")) == (0, 1)
    exact = Schema((Field("a", INTEGER),), case_sensitive=True)
    assert exact.find("A") is None


@pytest.mark.parametrize(("first", "second", "says"), [("id", "ID", "but for case"), ("id", "id", "the same name")])
def test_two_columns_of_one_name_are_refused(first: str, second: str, says: str) -> None:
    with pytest.raises(AmbiguousColumnError, match=says) as caught:
        Schema((Field(first, INTEGER), Field(second, STRING)))
    assert caught.value.code == "W0106"
    assert repr(first) in caught.value.message


def test_two_columns_of_one_name_are_refused_where_case_counts_too() -> None:
    with pytest.raises(AmbiguousColumnError, match="'a' and 'a'"):
        Schema((Field("a", INTEGER), Field("a", INTEGER)), case_sensitive=True)


def test_a_missing_column_is_named_with_the_nearest_ones() -> None:
    schema = Schema.of(customer_id="long", total="decimal(10,2)")
    with pytest.raises(UnknownColumnError) as caught:
        schema.index("custmer_id", side="left relation", hint="or use keys=")
    assert str(caught.value).splitlines() == [
        "error[W0101]: the left relation has no column 'custmer_id'",
        " = help: did you mean 'customer_id'?",
        " = help: or use keys=",
    ]
    with pytest.raises(KeyError, match="it has 'customer_id', 'total'"):
        schema["zzz"]


def test_schemas_and_types_are_values() -> None:
    assert Schema.of(a="int") == Schema.of(a=INTEGER)
    assert len({Schema.of(a="int"), Schema.of(a="integer"), Schema.of(a="long")}) == 2
    assert str(Field("a", Decimal(5, 2), nullable=False)) == "a: decimal(5,2) not null"
    assert str(Scalar("string", "UTF8_LCASE")) == "string collate UTF8_LCASE"
