"""A small table with awkward values, and random well-typed expressions over its columns."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Sequence
from decimal import Decimal as Number
from typing import Any

from weft.core.types import Schema
from weft.expr import TableScope

SCHEMA = Schema.of(
    i="integer", l="long", n="short", a="decimal(18,2)", w="decimal(38,10)", p="decimal(5,3)", f="double",
    g="float", s="string", u="string", b="boolean", c="boolean", d="date", e="date", ts="timestamp",
    t2="timestamp", nt="timestamp_ntz", iv="interval", m="map<string,string>",
)  # fmt: skip
SCOPE = TableScope({"t": SCHEMA})
TODAY = dt.date(2026, 1, 15)

_NUMBERS = {
    "i": (0, 1, -1, 7, -13, 2147483647, -2147483648),
    "l": (0, 3, -3, 100, 9007199254740993, -9223372036854775807, 9223372036854775807),
    "n": (0, 5, -7, 32767),
    "a": ("0.00", "12.35", "-12.35", "99.99", "0.01", "9999999999999999.99", "-100.00"),
    "w": ("0.0000000000", "1.0000000001", "-3.3333333333", "1234567890123456789012345678.1234567890"),
    "p": ("0.000", "1.005", "-1.005", "99.999", "-0.001"),
}
_TEXTS = (
    "",
    " ",
    "a",
    "Alpha",
    " alpha\t\r\n",
    "straße",
    "日本語テキスト",
    "a😀b",
    "50% _off\\",
    "it's",
    "İstanbul",
    "12",
    "2026-01-31",
)
_DOUBLES = (0.0, -0.0, 1.5, -2.5, 100.25, 1e10, -1e-5, 0.1, 1e300, float("nan"), float("inf"), float("-inf"))
_DAYS = ("2026-01-31", "2024-02-29", "1999-12-31", "1970-01-01", "1583-03-01", "2026-01-01")
_TIMES = (
    "2026-01-31T10:20:30.123456", "2026-03-29T01:30:00", "2026-11-01T05:30:00.5", "1969-12-31T23:59:59.999999",
    "2024-02-29T00:00:00", "2026-03-08T07:00:00",
)  # fmt: skip
_LENGTHS = (
    dt.timedelta(0),
    dt.timedelta(minutes=5),
    dt.timedelta(days=-3, microseconds=1),
    dt.timedelta(days=400),
)
_MAPS: tuple[dict[str, str | None], ...] = ({}, {"k": "v"}, {"k": None, "": "x"}, {"Alpha": "a", "a": "b"})


def rows(count: int = 30, seed: int = 7) -> list[dict[str, Any]]:
    """Return rows of values and NULLs, one column after another in turn."""
    chance = random.Random(seed)
    times = [dt.datetime.fromisoformat(text) for text in _TIMES]
    zoned = [time.replace(tzinfo=dt.UTC) for time in times]
    days = [dt.date.fromisoformat(text) for text in _DAYS]
    pools: dict[str, Sequence[Any]] = {
        **{c: [Number(v) if isinstance(v, str) else v for v in pool] for c, pool in _NUMBERS.items()},
        "f": _DOUBLES, "g": (0.0, 1.5, -2.5, 100.25, math.nan), "s": _TEXTS, "u": _TEXTS, "b": (True, False),
        "c": (True, False), "d": days, "e": days, "ts": zoned, "t2": zoned, "nt": times, "iv": _LENGTHS, "m": _MAPS,
    }  # fmt: skip
    return [
        {c: None if chance.random() < 0.15 else chance.choice(pools[c]) for c in SCHEMA.names} for _ in range(count)
    ]


class Maker:
    """Makes texts of expressions of a wanted kind."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def make(self, kind: str, depth: int = 3) -> str:
        """Return an expression of the kind: int, dec, dbl, num, str, bool, date, ts, ntz, iv or map."""
        if depth <= 0 or self.chance.random() < 0.12:
            return self.chance.choice(_LEAVES[kind])
        pattern = self.chance.choice(_PATTERNS[kind])
        parts = pattern.split("$")
        made = [parts[0]]
        for part in parts[1:]:
            wanted, rest = part.split("~", 1)
            inner = self.make(wanted, depth - 1)
            loose = " " in inner and wanted not in ("int", "dec", "dbl", "str", "num", "small")
            made.append((f"({inner})" if loose else inner) + rest)
        return "".join(made)

    def any(self, depth: int = 3) -> str:
        """Return an expression of any kind."""
        return self.make(self.chance.choice(tuple(_PATTERNS)), depth)


_LEAVES: dict[str, tuple[str, ...]] = {
    "int": ("i", "t.l", "n", "0", "3", "-2", "42", "LEN(s)", "NULL", "3000000000"),
    "dec": ("a", "w", "p", "1.5", "0.00", "-0.125", "12345678901234567890.5", "a", "NULL"),
    "dbl": ("f", "CAST(g AS double)", "1e0", "-2.5e1", "1e-3", "CAST(NULL AS double)"),
    "num": ("i", "a", "f", "p", "7", "0.5"),
    "str": ("s", "u", '"x"', "'it''s'", '""', '" pad "', '"日本"', "NULL"),
    "bool": ("b", "c", "TRUE", "false", "NULL", "i > 0"),
    "date": ("d", "e", 'DATE("2026-01-31")', "DATE '2024-02-29'", "TODAY()", "CAST(NULL AS date)"),
    "ts": ("ts", "t2", "TIMESTAMP '2026-01-01 00:00:00Z'", "TIMESTAMP '2026-06-30 12:00:00.25+02:00'"),
    "ntz": ("nt", "TIMESTAMP '2026-01-01 10:00'", "CAST(NULL AS timestamp_ntz)"),
    "iv": ("iv", "INTERVAL '5' MINUTE", "INTERVAL '-1 day 2 hours'", "INTERVAL 90 SECONDS"),
    "map": ("m", "CAST(NULL AS map<string,string>)", "m"),
    "small": ("0", "1", "2", "-1", "3", "-3", "5", "-7", "n", "LEN(u)", "NULL", "2147483648"),
}
_PATTERNS: dict[str, tuple[str, ...]] = {
    "int": (
        "$int~ + $int~", "$int~ - $small~", "$small~ * $small~", "($int~ - $int~)", "-($int~)", "$int~ % $small~",
        "MOD($int~, $int~)", "ABS($small~)", "FLOOR($small~)", "CEIL($int~)", "ROUND($int~, $small~)", "ROUND($int~, -2)",
        "IF($bool~, $int~, $int~)", "COALESCE($int~, $int~, 0)", "NULLIF($int~, $int~)", "MIN($int~, $int~)",
        "GREATEST($int~, $small~, $int~)", "LEN($str~)", "YEAR($date~)", "MONTH($date~)", "DAY($ts~)",
        "DATEDIFF($date~, $date~)", "CASE $int~ WHEN $int~ THEN $int~ WHEN $small~ THEN $int~ END",
        "CAST($small~ AS integer)", "CAST($dec~ AS long)", "CAST(CAST($small~ AS string) AS long)", "FLOOR(1.5e0)",
    ),
    "dec": (
        "$dec~ + $dec~", "$dec~ - $int~", "$dec~ * $dec~", "$dec~ / $dec~", "$int~ / $int~", "$dec~ / $int~",
        "$dec~ % $dec~", "MOD($dec~, $int~)", "-($dec~)", "ABS($dec~)", "FLOOR($dec~)", "CEILING($dec~)", "ROUND($dec~, 2)",
        "ROUND($dec~)", "ROUND($dec~, -2)", "ROUND($dec~, $small~)", "IF($bool~, $dec~, $int~)",
        "COALESCE($dec~, $dec~)", "NULLIF($dec~, $dec~)", "LEAST($dec~, $int~)", "MAX($dec~, $dec~, $dec~)",
        "CASE WHEN $bool~ THEN $dec~ WHEN $bool~ THEN $int~ ELSE $dec~ END", "CAST($int~ AS decimal(20,2))",
        "CAST($dec~ AS decimal(38,4))", "CAST('1.25' AS decimal(10,1))", "CAST(1.5e0 AS decimal(10,3))",
    ),
    "dbl": (
        "$dbl~ + $num~", "$dbl~ - $dbl~", "$dbl~ * $num~", "$dbl~ / $num~", "$num~ / $dbl~", "$dbl~ % $dbl~", "-($dbl~)",
        "ABS($dbl~)", "ROUND($dbl~, 2)", "ROUND($dbl~, -1)", "IF($bool~, $dbl~, $dec~)", "COALESCE($dbl~, $int~)",
        "NULLIF($dbl~, $dbl~)", "MIN($dbl~, $dbl~)", "MAX($dbl~, $num~)", "CAST($num~ AS double)",
        "CAST(' 1.5e3 ' AS double)", "CAST($num~ AS float)",
    ),
    "num": ("$int~", "$dec~", "$dbl~"),
    "str": (
        "CONCAT($str~, $str~, 'z')", "$str~ || $str~", "UPPER($str~)", "LOWER($str~)", "TRIM($str~)", "LEFT($str~, $small~)",
        "RIGHT($str~, $small~)", "SUBSTRING($str~, $small~)", "SUBSTR($str~, $small~, $small~)",
        "REPLACE($str~, $str~, $str~)", "IF($bool~, $str~, $str~)", "COALESCE($str~, '-')", "NULLIF($str~, $str~)",
        "CAST($int~ AS string)", "CAST($dec~ AS string)", "CAST($bool~ AS string)", "CAST($date~ AS string)",
        "CAST($ts~ AS string)", "CAST($ntz~ AS string)", "CAST(f AS string)", "LABEL_GET($map~, $str~)",
        "MAX($str~, $str~)", "CASE $str~ WHEN $str~ THEN $str~ ELSE $str~ END",
    ),
    "bool": (
        "$bool~ AND $bool~", "($bool~ OR $bool~ OR $bool~)", "NOT ($bool~)", "AND($bool~, $bool~)", "OR($bool~, $bool~)",
        "NOT($bool~)", "$int~ = $num~", "$dec~ <> $num~", "$num~ < $num~", "$num~ >= $num~", "$dbl~ <=> $dbl~",
        "$str~ = $str~", "$str~ < $str~", "$str~ <=> $str~", "$date~ <= $date~", "$ts~ > $ts~", "$ntz~ != $ntz~", "$ts~ = $ntz~",
        "$date~ < $ts~", "$date~ = $ntz~", "$iv~ > $iv~", "$bool~ = $bool~", "ISNULL($num~)", "$str~ IS NULL", "$map~ IS NOT NULL",
        "$int~ IN ($int~, $int~, 3)", "$str~ NOT IN ($str~, 'a')", "$dec~ IN ($num~, 1.5)", "$dbl~ IN ($dbl~, $dec~)",
        "$num~ BETWEEN $num~ AND $num~", "$date~ NOT BETWEEN $date~ AND $date~", "$str~ LIKE '%a%'", r"$str~ LIKE '50\% \_o%'",
        "$str~ NOT LIKE '_'", "$str~ LIKE ''", "CONTAINS($str~, $str~)", "IF($bool~, $bool~, $bool~)", "COALESCE($bool~, FALSE)",
        "CASE WHEN $bool~ THEN $bool~ END", "CAST('TRUE' AS boolean)", "MIN($bool~, $bool~)",
    ),
    "date": (
        "$date~ + $small~", "$date~ - $small~", "DATEADD($date~, $small~)", "DATE_TRUNC('month', $date~)",
        "DATE_TRUNC('week', $date~)", "DATE_TRUNC('QUARTER', $date~)", "DATE($ts~)", "TO_DATE($ntz~)", "DATE('2026' || '-01-31')",
        "IF($bool~, $date~, $date~)", "COALESCE($date~, $date~)", "MAX($date~, $date~)", "CAST($ts~ AS date)",
        "DATE(CAST($date~ AS string))",
    ),
    "ts": (
        "$ts~ + $iv~", "$ts~ - INTERVAL '36' HOUR", "$ts~ - $iv~", "DATE_TRUNC('hour', $ts~)", "DATE_TRUNC('day', $ts~)",
        "DATE_TRUNC('year', $ts~)", "DATE_TRUNC('second', $ts~)", "IF($bool~, $ts~, $ts~)", "MIN($ts~, $ts~)",
        "CAST($date~ AS timestamp)", "CAST($ntz~ AS timestamp)", "COALESCE($ts~, $ntz~)", "CAST('2026-01-31 10:00:00Z' AS timestamp)",
    ),
    "ntz": (
        "$ntz~ + $iv~", "$ntz~ - $iv~", "$date~ + $iv~", "DATE_TRUNC('minute', $ntz~)", "DATE_TRUNC('hour', $ntz~)",
        "DATE_TRUNC('second', $ntz~)", "DATE_TRUNC('week', $ntz~)", "DATE_TRUNC('day', $ntz~)", "CAST($date~ AS timestamp_ntz)",
        "CAST($ts~ AS timestamp_ntz)", "COALESCE($ntz~, $date~)", "CAST('2026-01-31T10:00' AS timestamp_ntz)",
    ),
    "iv": ("$ts~ - $ts~", "$ntz~ - $ntz~", "$iv~ + $iv~", "$iv~ - $iv~", "-($iv~)", "IF($bool~, $iv~, $iv~)", "MAX($iv~, $iv~)"),
    "map": (
        "LABEL_SET($map~, $str~, $str~)", "LABEL_SET(m, 'k', $str~)", "LABEL_REMOVE($map~, $str~)", "LABEL_REMOVE(m, 'k')",
        "IF($bool~, $map~, $map~)",
    ),
    "small": ("$small~ + 1", "LEN($str~) % 5", "IF($bool~, $small~, $small~)", "DAY($date~)"),
}  # fmt: skip
