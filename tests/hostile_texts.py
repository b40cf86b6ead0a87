"""Hostile texts by kind: names, distances, fragments, parameters, stored specs."""

# ruff: noqa: RUF001  # look-alike characters are the point
from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

HOSTILE_NAMES = (
    "id; DROP TABLE orders",
    "id -- comment",
    "id /* x */",
    "id OR 1 = 1",
    "1 = 1",
    "id) OR (1 = 1",
    "id` OR `1` = `1",
    "`id` OR 1",
    "id' OR '1' = '1",
    'id" OR "1" = "1',
    "id\\",
    "\\'; SELECT 1; --",
    "*",
    "id AS x",
    "count(*)",
    "(SELECT password FROM users)",
    "${spark.sql.warehouse.dir}",
    "$(reboot)",
    "{{ config }}",
    "{% for x in y %}",
    "%s%n",
    "__weft_l0",
    "__weft_r0",
    "ｉｄ；",
    "іd",  # the first letter is Cyrillic
    "id\u200b",
    "\u202eid",
    "id\u2028x",
    "‘id’",
    "＇ OR ＇",
    "i\u0307d",
    "\ufeffid",
    "\U000e0001",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "x" * 3000,
    "`" * 999,
    "'" * 999,
)
BROKEN_NAMES = (
    "",
    " ",
    "\t",
    "\n",
    "\0",
    "id\0",
    "id\nFROM x",
    "id\r\n--",
    "\x1b[2J",
    "\x7f",
    "\ud800",
    "id\udfff",
)
HOSTILE_DISTANCES = (
    "1 OR TRUE", "1; DROP TABLE x", "5 seconds -- x", "5 seconds /* x */", "' OR '1'='1", "INTERVAL '5' SECOND OR 1=1",
    "INTERVAL '5 SECOND", "INTERVAL 5' SECOND", "INTERVAL (SELECT 1) SECOND", "(SELECT 1)", "5 seconds)", "NULL", "TRUE",
    "nan", "inf", "infinity", "-inf", "1e9 s", "0x10 s", "1_000 s", "１ s", "٣ s", "5\u00a0s\u00a0", "5 s\0", "5 \u200bs",
    "{{ x }}", "${x}", "5 months", "1 year", "P1Y", "P1M", "P", "PT", "PT5", "P5", "5", "s", "", " ", "5 s 5 s", "--5 s",
    "+-5 s", "9" * 5000 + " s", "9" * 200 + " weeks", "1 s" + " " * 5000 + "x", "1" * 190 + "." + "1" * 5, "5 second s",
    "5 s; 6 s", "5 s\nDROP TABLE x", "`5 s`", '"5 s"', "'5 s'", "INTERVAL ''", "INTERVAL '5' MONTH", "5 s and", ", 5 s",
    "unbounded; x", "Unbounded", "<5 s>", "5 s%00", "%35 s", "&#53; s", "\\u0035 s", "5 s|x", "5 s&&x", "$(5) s",
)  # fmt: skip
HOSTILE_FRAGMENTS = (
    # statements, separators, comments
    "1 = 1; DROP TABLE orders", ";", "left.id = 1;", "1 = 1 -- ", "1 = 1 --", "-- x", "1 = 1 /* x */", "/* x */ 1 = 1",
    "/*! 1 = 1 */", "1 /**/ = 1", "1 = 1 # x", "1 = 1 // x", "left.id = 1\n; SELECT 1", "*/ 1 = 1 /*",
    # queries
    "SELECT 1", "(SELECT 1) = 1", "left.id = (SELECT MAX(id) FROM t)", "left.id IN (SELECT id FROM t)", "EXISTS (SELECT 1)",
    "1 = 1 UNION SELECT 1", "WITH x AS (SELECT 1) SELECT * FROM x", "VALUES (1)", "TABLE orders", "FROM orders",
    "left.id = ANY (SELECT 1)", "left.id > ALL (ARRAY(1))", "CREATE TABLE x (a int)", "DELETE FROM x", "SET x = 1",
    # stars, aliases, structure
    "*", "left.*", "COUNT(*) > 1", "left.id AS x", "left.id = 1 AS x", "left.id, right.id", "(left.id, 1) = (1, 2)",
    "left.id = 1 ORDER BY 1", "left.id = 1 LIMIT 1", "left.id = 1 WHERE 2 = 2", "left.id = 1 JOIN x", "left.id = 1 HAVING 1",
    "a.b.c = 1", "left.a.b = 1", "orders.id = 1", "spark.sql.x = 1", "left..id = 1", ".id = 1", "left. = 1",
    "left.v[0] = 'x'", "left.v.field.x = 1", "left.id::string = '1'", "left.v -> 'a' = 1", "x -> x + 1", "left.v => 1",
    # functions
    "rand() > 0", "uuid() = 'x'", "current_timestamp() > 1", "now() > 1", "sleep(10)", "java_method('java.lang.System', 'exit')",
    "reflect('java.lang.Runtime', 'getRuntime')", "input_file_name() = 'x'", "monotonically_increasing_id() = 1",
    "explode(left.v)", "transform(left.v, x -> x)", "my_udf(left.id)", "`sum`(left.id) > 1", "from_json(left.v, 'a')",
    "assert_true(1 = 1)", "raise_error('x')", "ai_query('x')", "version() = 'x'", "session_user() = 'x'", "secret('x') = 'y'",
    "sum(left.id) > 1", "row_number() OVER (ORDER BY 1) = 1", "sum(left.id) OVER () > 1", "count(DISTINCT left.id) > 1",
    "try_cast(left.v AS int) = 1", "CAST(left.v AS java) = 1", "CAST(left.v AS int; DROP) = 1", "IF(1 = 1, sleep(1), 2) = 2",
    # templates, variables, hints, placeholders
    "{{ 7 * 7 }} = 49", "{% if 1 %}1 = 1{% endif %}", "{# x #} 1 = 1", "${x} = 1", "$1 = 1", "@x = 1", "@@version = 1", "#{x} = 1",
    "/*+ BROADCAST(r) */ 1 = 1", "? = 1", ":x = 1", "%s = 1", "%(x)s = 1", ":1 = 1", "?1 = 1", "::x",
    # quotes and escapes
    "left.v = 'x", "left.v = x'", "left.v = ''' OR 1 = 1", "left.v = '\\' OR 1 = 1 --'", "left.v = \"x", "left.`v = 'x'", "left.v = `x``",
    "left.v = ‘x’", "left.v = “x”", "left.v = ＇x＇", "left.v = N'x", "left.v = U&'\\0041'", "left.v = r'x'", "left.v = 0x41", "left.v = b'x'",
    "left.v = $$x$$", "left.v = q'[x]'", "left.v = 'x' 'y'", "left.v = 'a' || ", "left.v = %27x%27", "left.v = &apos;x&apos;",
    # unicode, control characters, numbers
    "left.id\0 = 1", "left.id = 1\0", "left.id = 1\x1a", "left.id\u2028= 1;", "left.id ＝ 1", "left.id = １", "left.id = 1；", "left․id = 1",
    "left.id = ٣", "\ud800 = 1", "left.id = 1e999", "left.id = 1_000", "left.id = 0b1", "left.id = 1..2", "left.id = 1e", "left.id = .",
    "left.id ≠ 1", "left.id ⁄ 1 = 1", "left.id = 1%3BDROP", "left.id = 1&#59;", "left.id = 1\\u003b", "left.id = 1\\n--",
    # incomplete, doubled, empty
    "", " ", "\n", "()", "(", ")", "((1 = 1)", "1 = 1)", "AND", "1 = 1 AND", "OR 1 = 1", "NOT", "1 = = 1", "1 = 1 = 1", "< 1", "left.id IN ()",
    "left.id BETWEEN 1", "left.id BETWEEN 1 AND", "left.id LIKE", "left.id IS", "left.id IS 1", "CASE END", "CASE WHEN THEN END", "CASE 1 WHEN 1",
    "CAST(left.id AS", "DATE '2024-13-01' = left.id", "DATE 'x' = 1", "TIMESTAMP '2024-01-01 25:00:00' = 1", "INTERVAL '1' MONTH > 1", "INTERVAL 'x' DAY = 1",
)  # fmt: skip
LONG_FRAGMENTS: dict[str, str] = {
    "parentheses": "(" * 5000 + "1 = 1" + ")" * 5000,
    "open parentheses": "(" * 9000,
    "not": "NOT " * 2000 + "TRUE",
    "minus": "left.id = " + "- " * 3000 + "1",
    "and": " AND ".join(["left.id = 1"] * 700),
    "and beyond the limit": " AND ".join(["left.id = 1"] * 5000),
    "case": "CASE WHEN TRUE THEN " * 400 + "1" + " END" * 400 + " = 1",
    "functions": "UPPER(" * 1000 + "left.v" + ")" * 1000 + " = 'x'",
    "in": "left.id IN (" + ", ".join(map(str, range(1500))) + ")",
    "plus": "left.id = " + " + ".join(["1"] * 2000),
    "text": "left.v = '" + "x" * 9000 + "'",
    "quotes": "left.v = '" + "''" * 4000 + "'",
    "name": "left.`" + "x" * 9000 + "` = 1",
    "number": "left.id = " + "9" * 9000,
    "fraction": "left.id = 0." + "0" * 9000 + "1",
    "exponent": "left.id = 1e" + "9" * 200,
    "placeholders": "left.id IN (" + ", ".join("?" * 1000) + ")",
    "blanks": " " * 9000 + "1 = 1",
    "a megabyte": "1 = 1 OR " * 120_000 + "1 = 1",
    "brackets": "[" * 5000,
    "braces": "{{" * 3000,
    "comments": "/*" * 4000,
}
GOOD_FRAGMENTS = (
    "left.id = right.id AND v LIKE 'a%' OR NOT flag",
    "left.v || 'x' IN ('a', 'b''c', \"w\")",
    "CASE WHEN left.id > 1.5 THEN right.w ELSE 'z' END = COALESCE(v, 'q')",
    "left.id BETWEEN 1 AND 10 AND CAST(left.v AS decimal(10,2)) <=> 1e3",
    "DATE '2024-01-31' < TO_DATE(left.v) AND INTERVAL '5' MINUTE > INTERVAL '1' HOUR",
    "ROUND(left.id / 3, 2) <> ABS(-right.id) AND ok IS NOT NULL",
)
SNIPPETS = (
    ";", "--", "/*", "*/", "'", '"', "`", "\\", "\0", "\n", "\r", "\u2028", "\u00a0", "\ufeff", "{{", "}}", "{%", "${", "?", ":x", "(", ")", "SELECT 1",
    " OR 1=1", " UNION ", "*", ".", "..", ",", "=", "＝", "’", "“", "；", "%00", "%27", "&apos;", "\\u0027", "\\x27", "0x", "::", "->", "[0]", "@", "#",
    "rand()", "sum(1)", " AS x", "\ud83d", "\U0001f600", "\u202e", "ﬀ", "İ", "ß", "\x85", "\x1c", "9" * 50, "1e", "$$", "N'", "r'", "b'", "X'",
)  # fmt: skip
EXTREME_VALUES: tuple[Any, ...] = (
    Decimal("1e999999999"), Decimal("1e-999999999"), Decimal("sNaN"), Decimal("-Infinity"), 10**39, -(10**39), 1e308, 5e-324, -0.0,
    dt.datetime.min, dt.datetime.max, dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))),  # noqa: DTZ901
    dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-5))), dt.date.min, dt.date.max, dt.timedelta.min, dt.timedelta.max,
    "\0", "\ud800", "x" * 100_000, b"\0", {}, [], (), set(), object(), Exception, len, "?", ":x",
)  # fmt: skip
HOSTILE_JSON = (
    "null", "true", "[]", "{}", '""', "5", "NaN", "Infinity", "{", "[1,", "\ufeff{}", '{"type": "join"}', '{"type": "__init__"}',
    '{"type": "object", "version": 1}', '{"type": ["join"]}', '{"type": {"type": "join"}}', '{"type": "join", "version": 99, "equal_keys": []}',
    '{"type": "join", "version": 1e400, "equal_keys": []}', '{"type": "join", "equal_keys": 5}', '{"type": "join", "equal_keys": {"a": "b"}}',
    '{"type": "join", "equal_keys": [["a"]]}', '{"type": "join", "equal_keys": [[1, 2]]}', '{"type": "join", "equal_keys": [["a; DROP", "b\\u0000"]]}',
    '{"type": "join", "equal_keys": [["a", "b"]], "__class__": "x"}', '{"type": "join", "equal_keys": [["a", "b"]], "tree": 1}',
    '{"type": "join", "equal_keys": [["a", "b"]], "TYPE": "x"}', '{"type": "join", "equal_keys": [["a", "b"]], "_binder": "x"}',
    '{"type": "join", "equal_keys": [["a", "b"]], "predicates": ["1 = 1"]}', '{"type": "join", "equal_keys": [["a", "b"]], "predicates": [{"type": "join"}]}',
    '{"type": "join", "equal_keys": [["a", "b"]], "predicates": [{"type": "expression", "expression": "1 = 1; DROP TABLE x"}]}',
    '{"type": "join", "equal_keys": [["a", "b"]], "predicates": [{"type": "expression", "expression": "a = ?", "args": [{"$bytes": "eA=="}]}]}',
    '{"type": "join", "equal_keys": [["a", "b"]], "predicates": [{"type": "column", "left": "a", "operator": "= 1 OR 1 =", "right": "b"}]}',
    '{"type": "join", "equal_keys": [["a", "b"]], "predicates": [{"type": "column", "left": "a", "operator": "=", "right": "b", "offset": "1 OR TRUE"}]}',
    '{"type": "expression", "expression": "a = ?", "args": [{"$python": "os.system"}]}', '{"type": "expression", "expression": "a = ?", "args": {"__reduce__": 1}}',
    '{"type": "expression", "expression": {"$bytes": "MQ=="}}', '{"type": "expression", "expression": "a = ?", "args": [NaN]}',
    '{"type": "expression", "expression": "a = ?", "args": [1e999]}', '{"type": "expression", "expression": "a = ?", "args": [{"$decimal": "1e999999999"}]}',
    '{"type": "expression", "expression": "a = ?", "args": [{"$timestamp": "9999-99-99"}]}', '{"type": "asof", "order": null}', '{"type": "asof", "order": 5}',
    '{"type": "asof", "order": {"left": "a", "right": "b"}}', '{"type": "asof", "order": {"type": "column", "left": "a", "operator": "=", "right": "b"}}',
    '{"type": "asof", "order": {"type": "order", "left": "a", "right": "b"}, "tolerance": {"$decimal": "NaN"}}',
    '{"type": "asof", "order": {"type": "order", "left": "a", "right": "b"}, "tolerance": {"$microseconds": "-1"}}',
    '{"type": "asof", "order": {"type": "order", "left": "a", "right": "b"}, "how": "cross"}',
    '{"type": "asof", "order": {"type": "order", "left": "a", "right": "b"}, "tolerance": Infinity}',
    '{"type": "interval", "order": {"type": "order", "left": "a", "right": "b"}, "lower": [], "upper": {}}',
    '{"type": "window", "order": {"type": "order", "left": "a", "right": "b"}, "window": "tumbling", "size": true}',
    '{"type": "projection", "suffixes": "ab"}', '{"type": "projection", "suffixes": ["", "\\n"]}', '{"type": "projection", "rename": {"a": 5}}',
    '{"type": "projection", "rename": [["a", "\\ud800"]]}', '{"type": "projection", "keep": {"$map": {}}}', '{"type": "projection", "indicator": {"$date": "x"}}',
)  # fmt: skip
