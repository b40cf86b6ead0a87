"""Data types, fields and schemas, independent of Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Literal, get_args

from weft.core.names import fold, format_list, suggest
from weft.errors import AmbiguousColumnError, ArgumentError, JoinSpecError, UnknownColumnError

ScalarName = Literal[
    "string", "binary", "boolean", "byte", "short", "integer", "long", "float", "double",
    "date", "timestamp", "timestamp_ntz", "time", "interval", "interval_ym", "variant", "null",
]  # fmt: skip
_SCALARS: frozenset[str] = frozenset(get_args(ScalarName))
_SYNONYMS: dict[str, ScalarName] = {
    "str": "string", "text": "string", "varchar": "string", "char": "string", "bool": "boolean",
    "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long",
    "real": "float", "timestamp_ltz": "timestamp", "datetime": "timestamp", "void": "null",
}  # fmt: skip
_INTEGERS: tuple[ScalarName, ...] = ("byte", "short", "integer", "long")
_INTEGER_DIGITS: dict[str, int] = {"byte": 3, "short": 5, "integer": 10, "long": 20}
MAX_PRECISION = 38
MAX_NESTING = 100


class DType:
    """Base class of data types; see `Scalar`, `Decimal`, `Array`, `Map`, `Struct`."""

    __slots__ = ()

    @property
    def is_integer(self) -> bool:
        """Whether values are integers of a fixed width."""
        return isinstance(self, Scalar) and self.name in _INTEGERS

    @property
    def is_fraction(self) -> bool:
        """Whether values are binary floating point numbers."""
        return isinstance(self, Scalar) and self.name in ("float", "double")

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers of any kind."""
        return isinstance(self, Decimal) or self.is_integer or self.is_fraction

    @property
    def is_temporal(self) -> bool:
        """Whether values are points in time that a duration can be added to."""
        return isinstance(self, Scalar) and self.name in ("date", "timestamp", "timestamp_ntz")

    @property
    def is_nested(self) -> bool:
        """Whether values are arrays, maps or structs."""
        return isinstance(self, Array | Map | Struct)

    @property
    def is_orderable(self) -> bool:
        """Whether Spark can sort by values of this type."""
        if isinstance(self, Map):
            return False
        if isinstance(self, Array):
            return self.element.is_orderable
        if isinstance(self, Struct):
            return all(f.dtype.is_orderable for f in self.fields)
        return self != Scalar("variant")


@dataclass(frozen=True, slots=True)
class Scalar(DType):
    """A type without parameters; ``timestamp`` is an instant, ``timestamp_ntz`` has no time zone."""

    name: ScalarName
    collation: str = ""

    def __post_init__(self) -> None:
        if self.name not in _SCALARS:
            raise JoinSpecError(
                f"unknown type {self.name!r}", help=f"types are {format_list(sorted(_SCALARS), most=30)}"
            )

    def __str__(self) -> str:
        return f"{self.name} collate {self.collation}" if self.collation else self.name


@dataclass(frozen=True, slots=True)
class Decimal(DType):
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int = MAX_PRECISION
    scale: int = 10

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= MAX_PRECISION and 0 <= self.scale <= self.precision):
            raise JoinSpecError(
                f"decimal({self.precision},{self.scale}) is not a valid type",
                help=f"precision is 1 to {MAX_PRECISION}, scale 0 to the precision",
            )

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array(DType):
    """A list of elements of one type."""

    element: DType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map(DType):
    """Keys of one type to values of another; never comparable."""

    key: DType
    value: DType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A named column of a type."""

    name: str
    dtype: DType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}" + ("" if self.nullable else " not null")


@dataclass(frozen=True, slots=True)
class Struct(DType):
    """Named fields in one value."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return "struct<" + ",".join(f"{f.name}:{f.dtype}" for f in self.fields) + ">"


STRING, BOOLEAN, BINARY = Scalar("string"), Scalar("boolean"), Scalar("binary")
INTEGER, LONG, FLOAT, DOUBLE = Scalar("integer"), Scalar("long"), Scalar("float"), Scalar("double")
DATE, TIMESTAMP, TIMESTAMP_NTZ = Scalar("date"), Scalar("timestamp"), Scalar("timestamp_ntz")
INTERVAL, NULL = Scalar("interval"), Scalar("null")


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in order, with lookup by name, case-sensitive or not.

    >>> s = Schema.of(id="long", Name="string")
    >>> s.index("NAME"), s["name"].name
    (1, 'Name')
    """

    fields: tuple[Field, ...]
    case_sensitive: bool = False
    _positions: dict[str, int] = dataclass_field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for i, field in enumerate(self.fields):
            key = fold(field.name, case_sensitive=self.case_sensitive)
            if key in self._positions:
                first = self.fields[self._positions[key]].name
                raise AmbiguousColumnError(
                    f"columns {first!r} and {field.name!r} have the same name"
                    + ("" if first == field.name else " but for case"),
                    code="W0106",
                    help="rename one of them before joining",
                )
            self._positions[key] = i

    @classmethod
    def of(cls, **columns: DType | str) -> Schema:
        """Build a schema from names and types, for tests and examples."""
        return cls(tuple(Field(n, parse_type(t) if isinstance(t, str) else t) for n, t in columns.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(f.name for f in self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def find(self, name: str) -> int | None:
        """Return the index of the column, or None."""
        return self._positions.get(fold(name, case_sensitive=self.case_sensitive))

    def index(self, name: str, *, side: str = "relation", hint: str = "") -> int:
        """Return the index of the column, or raise `UnknownColumnError` with similar names."""
        index = self.find(name)
        if index is None:
            nearest = suggest(name, self.names, "it has")
            raise UnknownColumnError(
                f"the {side} has no column {name!r}", help="\n".join(filter(None, (nearest, hint)))
            )
        return index

    def __getitem__(self, name: str) -> Field:
        return self.fields[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None


def parse_type(text: str) -> DType:
    """Parse a type in the syntax of SQL and dataset files.

    >>> str(parse_type("DECIMAL(18, 2)")), str(parse_type("array<struct<a:int>>"))
    ('decimal(18,2)', 'array<struct<a:integer>>')
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"a type must be a string, not {type(text).__name__}", help="write for example 'long' or 'decimal(10,2)'"
        )
    if text.count("<") > MAX_NESTING:  # the parser is recursive, and so is every function of a type
        raise JoinSpecError(
            f"type {text[:40]!r}... has more than {MAX_NESTING} nested types",
            help="split the column into several columns",
        )
    reader = _TypeReader(text)
    dtype = reader.type()
    reader.end()
    return dtype


class _TypeReader:
    """Parses one type; the grammar has five rules and needs no parser library."""

    _TOKEN = re.compile(r"\s*(?:(`[^`]*`|[A-Za-z_][A-Za-z0-9_]*)|(\d+)|([<>(),:]))", re.ASCII)

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self) -> JoinSpecError:
        return JoinSpecError(
            f"invalid type {self.text!r} at {self.text[self.at :].strip()[:20]!r}",
            help="types are string, integer, long, decimal(p,s), double, boolean, date, timestamp, "
            "timestamp_ntz, binary, array<t>, map<k,v>, struct<name:t>",
        )

    def take(self, expected: str | None = None) -> str:
        token = self._TOKEN.match(self.text, self.at)
        if token is None or (expected is not None and token[0].strip() != expected):
            raise self.fail()
        self.at = token.end()
        return token[0].strip()

    def peek(self) -> str:
        token = self._TOKEN.match(self.text, self.at)
        return token[0].strip() if token else ""

    def end(self) -> None:
        if self.text[self.at :].strip():
            raise self.fail()

    def type(self) -> DType:
        start, word = self.at, self.take().lower()
        if word in ("decimal", "numeric", "dec"):
            return self.decimal()
        if word == "array":
            self.take("<")
            element = self.type()
            self.take(">")
            return Array(element)
        if word == "map":
            self.take("<")
            key = self.type()
            self.take(",")
            value = self.type()
            self.take(">")
            return Map(key, value)
        if word == "struct":
            return self.struct()
        if word in ("varchar", "char") and self.peek() == "(":
            self.take("(")
            self.number()
            self.take(")")
        name = _SYNONYMS.get(word, word)
        if name not in _SCALARS:
            self.at = start
            raise self.fail()
        return Scalar(name)  # type: ignore[arg-type]  # checked on the line above

    def decimal(self) -> Decimal:
        if self.peek() != "(":
            return Decimal()
        self.take("(")
        precision, scale = self.number(), 0
        if self.peek() == ",":
            self.take(",")
            scale = self.number()
        self.take(")")
        return Decimal(precision, scale)

    def number(self) -> int:
        text = self.take()
        if not text.isdigit() or len(text) > 9:
            raise self.fail()
        return int(text)

    def struct(self) -> Struct:
        fields: list[Field] = []
        self.take("<")
        while self.peek() != ">":
            if fields:
                self.take(",")
            name = self.take()
            if not (name[0] in "`_" or name[0].isalpha()):
                raise self.fail()
            name = name.strip("`")
            self.take(":")
            fields.append(Field(name, self.type()))
        self.take(">")
        return Struct(tuple(fields))


def common_type(a: DType, b: DType) -> DType | None:
    """Return the type in which values of both can be compared, or None.

    A string has no common type with a number, a date or a boolean: an implicit cast would fail
    on the first value that is not one.

    >>> str(common_type(INTEGER, Decimal(10, 2))), common_type(INTEGER, STRING)
    ('decimal(12,2)', None)
    """
    if a == b:
        return a if a.is_orderable else None  # Spark compares no maps and no variants
    if NULL in (a, b):  # the type of a column that is only NULL
        return b if a == NULL else a
    if a.is_numeric and b.is_numeric:
        return _common_number(a, b)
    if a.is_temporal and b.is_temporal:
        return _common_time(a, b)
    if isinstance(a, Scalar) and isinstance(b, Scalar) and a.name == b.name == "string":
        return None  # two collations: equality depends on which one is used
    return _common_nested(a, b)


def _common_number(a: DType, b: DType) -> DType | None:
    if a.is_fraction or b.is_fraction:
        return FLOAT if {a, b} <= {FLOAT} else DOUBLE
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return a if _INTEGERS.index(a.name) > _INTEGERS.index(b.name) else b
    x, y = as_decimal(a), as_decimal(b)
    scale = max(x.scale, y.scale)
    digits = max(x.precision - x.scale, y.precision - y.scale)
    # Without a decimal for every value of both, a comparison would round or overflow.
    return Decimal(digits + scale, scale) if digits + scale <= MAX_PRECISION else None


def as_decimal(dtype: DType) -> Decimal:
    """Return the smallest decimal that holds every value of an exact numeric type."""
    if isinstance(dtype, Decimal):
        return dtype
    if isinstance(dtype, Scalar) and dtype.name in _INTEGER_DIGITS:
        return Decimal(_INTEGER_DIGITS[dtype.name], 0)
    raise ArgumentError(f"{dtype} is not an exact number", help="use an integer or a decimal type")


def _common_time(a: DType, b: DType) -> DType:
    if TIMESTAMP in (a, b):
        return TIMESTAMP  # date and timestamp_ntz are read in the session's zone
    return TIMESTAMP_NTZ


def _common_nested(a: DType, b: DType) -> DType | None:
    if isinstance(a, Array) and isinstance(b, Array):
        element = common_type(a.element, b.element)
        return Array(element, a.contains_null or b.contains_null) if element else None
    if isinstance(a, Struct) and isinstance(b, Struct) and len(a.fields) == len(b.fields):
        pairs: Sequence[tuple[Field, Field]] = tuple(zip(a.fields, b.fields, strict=True))
        common = [common_type(x.dtype, y.dtype) for x, y in pairs]
        # Spark compares structs by position; names that differ are more likely a mistake.
        if all(common) and all(x.name == y.name for x, y in pairs):
            return Struct(tuple(Field(x.name, c) for (x, _), c in zip(pairs, common, strict=True) if c))
    return None
