"""Files of a workspace and a streaming job, each broken at random: the same seed breaks them in the same way."""

# ruff: noqa: RUF001  # look-alike digits are the point
from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hostile_texts import BROKEN_NAMES, HOSTILE_FRAGMENTS, HOSTILE_NAMES, SNIPPETS
from weft.errors import WeftError
from weft.pipelines.model.compose import compose
from weft.pipelines.model.yaml_nodes import Node

SETTINGS = """\
weft: 1
store: sqlite:///.weft/weft.db
spark: {master: "local[2]", conf: {spark.sql.shuffle.partitions: 4, spark.ui.enabled: false}}
default_resolver: files
sandbox: {path: .weft/sandbox}
conformance: extended
notify: []
"""

CALENDAR = """\
calendar: fiscal
description: Two halves
status: active
is_default: false
levels:
  - {name: year}
  - {name: half, parent: year}
periods:
  - {identifier: FY26, level: year, start_date: 2025-07-01, end_date: 2026-06-30}
  - {identifier: FY26-H1, level: half, start_date: 2025-07-01, end_date: 2025-12-31, parent: FY26}
  - {identifier: FY26-H2, level: half, start_date: 2026-01-01, end_date: 2026-06-30, status: closed}
"""

DATASOURCES = """\
datasource:
  id: ledger
  name: General ledger
  type: jdbc
  options: {url: "jdbc:postgresql://db:5432/ledger", schema: finance, fetch_size: 500}
  status: active
  credential_ref: env:LEDGER_LOGIN
  description: The books
"""

FILES = "datasource: {id: files, type: csv, options: {path_prefix: data, delimiter: ';', has_header: true}}\n"

RESOLVER = """\
resolver:
  id: files
  name: Old, then new
  version: 2
  status: active
  is_default: true
  rules:
    - name: reference
      when: table IN ('customers', 'rates')
      strategy: {type: table, datasource_id: ledger, schema: reference, table: "{{table_name}}"}
    - name: asked
      when: period.level = 'year'
      strategy:
        type: catalog
        endpoint: "https://catalog.example/{{dataset_id}}"
        method: POST
        params: {period: "{{period}}", limit: 5}
        headers: {Accept: application/json}
        auth: env:CATALOG
    - name: months
      data_level: month
      missing: skip
      strategy: {type: path, datasource_id: files, path: "{{YYYY}}/{{MM}}/{{table_name}}.csv"}
"""

DATASET = """\
dataset:
  id: ds-orders
  name: orders
  version: 3
  status: active
  natural_key_columns: [order_id]
  check_keys: warn
  owner: finance
  main_table:
    name: orders
    temporal_mode: period
    columns:
      - {name: order_id, type: string, nullable: false}
      - {name: customer, type: string, previous_name: client}
      - {name: amount, type: "decimal(18,2)"}
      - {name: currency, type: string}
      - {name: placed, type: date}
  lookups:
    - alias: customers
      target:
        type: table
        name: customers
        temporal_mode: bitemporal
        overlap: warn
        columns:
          - {name: code, type: string}
          - {name: region, type: string}
      join_conditions:
        - {source_column: customer, target_column: code}
      as_of: period_end
    - alias: rates
      target: {type: dataset, dataset: rates@1}
      join_conditions:
        - {source_column: currency, target_column: from_currency}
"""

RATES = """\
dataset:
  name: rates
  version: 1
  resolver: files
  main_table:
    name: rates
    temporal_mode: bitemporal
    columns:
      - {name: from_currency, type: string}
      - {name: rate, type: "decimal(18,6)"}
"""

PROJECT = """\
project:
  name: orders_report
  version: 1
  status: draft
  input: orders@3
  calendar: gregorian
  materialization: eager
  checkpoint_every: 20
  selectors: {LARGE: "amount > 100.50"}
  resolver_overrides: {orders: files}
  operations:
    - seq: 10
      name: Convert
      type: update
      selector: "{{LARGE}} AND currency <> 'EUR'"
      arguments:
        joins:
          - alias: fx
            dataset: rates
            on: "orders.currency = fx.from_currency AND fx.rate > 0"
            as_of: period_start
            on_multiple: error
        assignments:
          - {column: amount, expression: "orders.amount * fx.rate"}
          - {column: region, expression: "COALESCE(customers.region, 'none')"}
    - {seq: 20, name: Drop zeros, type: delete, selector: "amount = 0", checkpoint: true}
    - seq: 30
      name: Sum
      type: aggregate
      arguments:
        group_by: [region]
        aggregations:
          - {column: amount, expression: SUM(amount)}
    - seq: 40
      name: More
      type: append
      arguments: {source: {dataset: orders}, source_selector: "amount > 1"}
    - seq: 50
      name: Write
      type: output
      arguments:
        destination: {datasource: files, table: report}
        columns: [order_id, amount, region]
        register_as_dataset: orders_report
        mode: replace_period
        order_by: [region, -amount]
    - {seq: 60, name: Export, type: output, arguments: {destination: {path: "out/{{YYYY}}/{{MM}}", format: csv}}}
"""

SCENARIO = """\
scenario:
  name: Two orders
  project: orders_report
  period: 2026-01
  known_at: 2026-02-01T00:00:00Z
  given:
    orders:
      - {order_id: A, customer: C1, amount: 100.5, currency: USD, placed: 2026-01-05}
      - {order_id: B, customer: C2, amount: "200", currency: EUR, placed: null}
    rates: {csv: "from_currency,rate\\nUSD,1.25\\n"}
    customers: {rows: [{code: C1, region: EMEA}]}
  expect:
    output: 50
    match: exact
    tolerance: 0.01
    count: 2
    rows:
      - {order_id: A, amount: "125.63"}
      - {order_id: B, amount: "200.00"}
    pins: {rates: 1}
    trace:
      - {operation: 10, change: updated, match: {order_id: A}, diff: {amount: ["100.50", "125.63"]}}
"""

JOB = """\
SET 'trigger' = '5s';
SET 'join.default_bound' = '1h';
CREATE STREAM orders (order_id STRING, customer_id INT, total DECIMAL(10,2), placed TIMESTAMP NOT NULL)
WITH ('path' = 'in/orders', 'format' = 'json', 'event.time.field' = 'placed',
      'watermark.max_out_of_orderness' = '30s', 'late' = 'side_output', 'dedup.keys' = 'order_id',
      'max.files.per.trigger' = '10', 'idle.timeout' = '1m');
CREATE STREAM shipments (shipment_id STRING, order_id STRING, sent TIMESTAMP)
WITH ('connector' = 'kafka', 'topic' = 'shipments', 'format' = 'json', 'event.time.field' = 'sent',
      'starting.offsets' = '{"shipments": {"0": 23}}', 'kafka.security.protocol' = 'PLAINTEXT');
CREATE TABLE customers (customer_id INT, name STRING) WITH ('path' = 'customers.csv', 'delimiter' = ';');
CREATE STREAM shipped WITH ('path' = 'out/shipped', 'format' = 'parquet', 'join.s.max_state_rows' = '1000')
AS SELECT o.order_id PRIMARY KEY, o.total * 2 AS double_total, s.shipment_id, c.name, CAST(o.placed AS DATE) AS day
   FROM orders o
   LEFT JOIN shipments s ON o.order_id = s.order_id AND o.total > 10.5 WITHIN ('-5m', '24h')
   JOIN customers c ON o.customer_id = c.customer_id
   WHERE o.total BETWEEN 1 AND 1000 OR c.name LIKE 'A%'
   EMIT FINAL;
CREATE STREAM pairs WITH ('path' = 'out/pairs', 'format' = 'csv', 'header' = 'true');
INSERT INTO pairs SELECT a.order_id, b.shipment_id FROM orders a JOIN shipments b
   ON a.order_id = b.order_id WINDOW TUMBLING (SIZE 10 MINUTES);
EXPLAIN JOIN shipped;
"""

WORKSPACE = {
    "weft.yml": SETTINGS,
    "calendars/fiscal.yml": CALENDAR,
    "datasources/ledger.yml": DATASOURCES,
    "datasources/files.yml": FILES,
    "resolvers/files.yml": RESOLVER,
    "datasets/orders.yml": DATASET,
    "datasets/rates.yml": RATES,
    "projects/orders_report.yml": PROJECT,
    "scenarios/two.yml": SCENARIO,
}
JOB_FILE = "streams/job.sql"

_DIGITS = "9" * 5000
HOSTILE_VALUES = (
    "1.5", "-1", "0", "1", "1e99999999999999999999", "1e-99999999999999999999", _DIGITS, "-" + _DIGITS, "0." + _DIGITS,
    "1" + "0" * 400, "0x" + "f" * 5000, "0o777", "0o8", ".inf", "-.Inf", ".nan", "1_000", "+5", "1.", ".5", "1e400", "9" * 19,
    "9223372036854775808", "2147483648", "0.1e-400", "true", "FALSE", "yes", "null", "~", "''", '""', "'   '", "[]", "{}",
    "[[]]", "[null]", "{a: }", "{null: null}", "{? [a]: b}", "[1, two, 3.5]", "{a: {b: {c: d}}}", "2026-13-45", "0000-00-00",
    "9999-12-31", "10000-01-01", "2026-01-01T99:00:00Z", "!!python/object/apply:os.system [ls]", "!!int x", "!x y", "&a [*a]", "*a",
    "&a b", "<<: *a", "|\n  a\n   b\n", ">-\n  a\n", '"\\x00"', '"\\ud800"', '"\\uFFFF"', '"\\U00110000"', "'\\'", "\"{{period}}\"",
    '"{{"', '"{{YYYY"', '"{{ }}"', '"${HOME}"', "../../../x", "'../../../x'", "/etc/passwd", "file:///etc/passwd", "s3a://k:s@b/x",
    "C:\\x", "a/b", "'a\\b'", "con", ".", "..", "'*'", "'[a-z]*'", "a@0", "a@-1", "a@1@2", "orders@99999999999999999999", "@",
    "env:", "file:", "env:NO_SUCH", "file:/dev/zero", "x" * 10_000, "'" + "é" * 3000 + "'", "'\u202e'", "'\u0130'", "'ß'", "-",
    "- a", "? a", ": a", "# a", "%", "`", "@x", "'''", '"', "{", "[", "}", "]", ",", "[" * 200 + "]" * 200, "{a: " * 120 + "1" + "}" * 120,
    "decimal(99999999999999999999,2)", "decimal(38,39)", "'decimal(-1,0)'", "decimal", "'array<int>'", "'array<' ", "struct", "'map<string'",
    "'timestamp(9)'", "P1Y", "9999999999999999999999 weeks", "-5m..", "..", "[0s, 1h", "%Q", "'%'", "sqlite://", "sqlite:///:memory:",
    "postgresql://u:p@[::1/db", "postgresql://h:99999999/db", "mysql://h/db", "'://'", "local[-1]", "local[99999999999]", "sc://", "spark://h:x",
)  # fmt: skip
_WORDS = re.compile(r"[A-Za-z_]\w*|\d[\d.]*|'[^']*'|\"[^\"]*\"|[^\s\w]")
_LOOSE = (
    "\t", "\r", "\x00", "\x85", "\u2028", "\ufeff", ":", ": ", "- ", "  ", "\n", "#", "---\n", "...\n", "%YAML 9.9\n---\n", "{", "}", "[", "]", ",",
    "&a ", "*a ", "!!str ", "<<: ", "? ", "|", ">", "'", '"', "{{", "}}", "${", "\\",
)  # fmt: skip


EXTREMES: tuple[tuple[str, str, str], ...] = (
    ("datasets/orders.yml", '"decimal(18,2)"', f'"decimal({_DIGITS},2)"'),
    ("datasets/orders.yml", '"decimal(18,2)"', f'"decimal(18,-{_DIGITS})"'),
    ("datasets/orders.yml", "rates@1", f'"rates@{_DIGITS}"'),
    ("projects/orders_report.yml", "orders@3", f"orders@{_DIGITS}"),
    ("projects/orders_report.yml", "seq: 10", f"seq: '{_DIGITS}'"),
    ("projects/orders_report.yml", "amount > 100.50", f"amount > {_DIGITS}"),
    ("projects/orders_report.yml", "amount > 100.50", "amount > 1e999999999"),
    ("projects/orders_report.yml", "amount > 100.50", f"amount > 0.{_DIGITS}"),
    ("projects/orders_report.yml", "SUM(amount)", f"ROUND(SUM(amount), {_DIGITS})"),
    ("projects/orders_report.yml", "SUM(amount)", f"CAST(SUM(amount) AS decimal({_DIGITS},2))"),
    ("calendars/fiscal.yml", "2025-07-01", "0001-01-01"),
    ("calendars/fiscal.yml", "2026-06-30", "9999-12-31"),
    ("calendars/fiscal.yml", "2025-07-01", "'２０２５-07-01'"),
    ("scenarios/two.yml", "amount: 100.5", "amount: 1e38"),
    ("scenarios/two.yml", "amount: 100.5", f"amount: '{_DIGITS}'"),
    ("scenarios/two.yml", "amount: 100.5", "amount: '1234567890123456789012345678.1234567890'"),
    ("scenarios/two.yml", "tolerance: 0.01", "tolerance: .nan"),
    ("scenarios/two.yml", "tolerance: 0.01", "tolerance: -1"),
    ("scenarios/two.yml", "tolerance: 0.01", "tolerance: 1e900"),
    ("scenarios/two.yml", "pins: {rates: 1}", "pins: {rates: 1.0}"),
    ("scenarios/two.yml", "count: 2", "count: " + "9" * 900),
    ("scenarios/two.yml", "period: 2026-01", "period: 0000-00"),
    ("scenarios/two.yml", "2026-02-01T00:00:00Z", "0001-01-01T00:00:00+14:00"),
    ("scenarios/two.yml", "2026-02-01T00:00:00Z", "9999-12-31T23:59:59-14:00"),
    ("scenarios/two.yml", "operation: 10", "operation: " + "9" * 999),
    ("projects/orders_report.yml", "checkpoint_every: 20", "checkpoint_every: " + "9" * 999),
    ("weft.yml", "weft: 1", "weft: 1.0"),
    ("weft.yml", "local[2]", "local[" + _DIGITS + "]"),
    ("weft.yml", "sqlite:///.weft/weft.db", "sqlite:///" + "x" * 5000),
    ("weft.yml", "sqlite:///.weft/weft.db", "sqlite:////dev/null/x.db"),
    ("weft.yml", "sqlite:///.weft/weft.db", '"sqlite:///a\\0b"'),
    ("weft.yml", "store: sqlite:///.weft/weft.db", 'store: "env:A=B"'),
    ("weft.yml", "store: sqlite:///.weft/weft.db", 'store: "env:\\0"'),
    ("weft.yml", ".weft/sandbox", '"a\\0b"'),
    ("weft.yml", ".weft/sandbox", "x" * 5000),
    ("datasources/files.yml", "path_prefix: data", 'path_prefix: "a\\0b"'),
    ("datasources/files.yml", "path_prefix: data", "path_prefix: " + "x/" * 3000),
    ("datasources/files.yml", "path_prefix: data", 'path_prefix: "file://["'),
    ("datasources/files.yml", "path_prefix: data", 'path_prefix: "http://[::1/x"'),
    ("datasources/files.yml", "path_prefix: data", "path_prefix: 5"),
    ("datasources/files.yml", "path_prefix: data", "path_prefix: [a]"),
    ("datasources/files.yml", "delimiter: ';'", 'delimiter: "\\0"'),
    ("datasources/files.yml", "delimiter: ';'", "delimiter: 5"),
    ("datasources/files.yml", "has_header: true", "has_header: maybe"),
    ("datasources/ledger.yml", "jdbc:postgresql://db:5432/ledger", "jdbc:postgresql://[::1/x"),
    ("datasources/ledger.yml", "fetch_size: 500", "fetch_size: " + "9" * 900),
    ("datasources/ledger.yml", "env:LEDGER_LOGIN", '"env:\\0"'),
    ("resolvers/files.yml", "https://catalog.example/{{dataset_id}}", "https://[::1/{{dataset_id}}"),
    ("resolvers/files.yml", "{{YYYY}}/{{MM}}/{{table_name}}.csv", "[z-a]/{{YYYY}}"),
    ("resolvers/files.yml", "{{YYYY}}/{{MM}}/{{table_name}}.csv", "a\\0b"),
    ("resolvers/files.yml", "{{YYYY}}/{{MM}}/{{table_name}}.csv", "x" * 5000),
    ("resolvers/files.yml", "{{YYYY}}/{{MM}}/{{table_name}}.csv", "**/" * 30 + "x"),
    ("projects/orders_report.yml", "out/{{YYYY}}/{{MM}}", "x" * 5000),
    ("projects/orders_report.yml", "out/{{YYYY}}/{{MM}}", "a\\0b"),
    ("projects/orders_report.yml", "out/{{YYYY}}/{{MM}}", "file://["),
    ("projects/orders_report.yml", "out/{{YYYY}}/{{MM}}", "~/x"),
    ("projects/orders_report.yml", "table: report", "table: " + "x" * 5000),
    (JOB_FILE, "DECIMAL(10,2)", f"DECIMAL({_DIGITS},2)"),
    (JOB_FILE, "'30s'", f"'{_DIGITS}s'"),
    (JOB_FILE, "'-5m'", f"'-{_DIGITS}m'"),
    (JOB_FILE, "10 MINUTES", f"{_DIGITS} MINUTES"),
    (JOB_FILE, "'1000'", f"'{_DIGITS}'"),
    (JOB_FILE, "10.5", f"1e{_DIGITS}"),
    (JOB_FILE, "10.5", "1e999999999"),
    (JOB_FILE, '{"0": 23}', '{"0": ' + _DIGITS + "}"),
    (JOB_FILE, '\'{"shipments": {"0": 23}}\'', "'" + "[" * 5000 + "'"),
    (JOB_FILE, "'in/orders'", "'a\0b'"),
    (JOB_FILE, "'in/orders'", "'" + "x" * 5000 + "'"),
    (JOB_FILE, "'in/orders'", "'[z-a]'"),
    (JOB_FILE, "AS day", "AS `" + "x" * 5000 + "`"),
    (JOB_FILE, "CREATE STREAM pairs", "CREATE STREAM " + "p" * 5000),
    (JOB_FILE, "* 2", "* " + "(2 * " * 3000 + "1" + ")" * 3000),
    (JOB_FILE, "TIMESTAMP NOT NULL", "ARRAY<" * 3000 + "INT" + ">" * 3000),
    (JOB_FILE, "'A%'", "'" + "%_" * 5000 + "'"),
    (JOB_FILE, "'delimiter' = ';'", "'delimiter' = ''''"),
    (JOB_FILE, "'5s'", "'${A:-${B}}'"),
)
"""Values at the end of what a place can hold: the file, its value, the value that replaces it."""


@dataclass(frozen=True)
class Mutation:
    """A file with one to three faults; `content` is bytes because a fault may break the encoding."""

    seed: int
    file: str
    content: bytes


def mutation(seed: int) -> Mutation:
    """Return the mutation of a seed; one in four is of the streaming job."""
    chance = random.Random(seed)
    file = JOB_FILE if seed % 4 == 0 else chance.choice(sorted(WORKSPACE))
    text = JOB if file == JOB_FILE else WORKSPACE[file]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text = (_broken_sql if file == JOB_FILE else _broken_yaml)(text, chance)
    content = text.encode("utf-8", errors="surrogatepass")
    if chance.random() < 0.02:
        at = chance.randrange(len(content) + 1)
        content = content[:at] + bytes([chance.randrange(128, 256)]) + content[at:]
    return Mutation(seed, file, content)


def _broken_yaml(text: str, chance: random.Random) -> str:
    if chance.random() < 0.6:
        nodes = list(_nodes(text))
        if nodes:
            node, is_key = chance.choice(nodes)
            return text[: node.start] + _value(chance, is_key=is_key) + text[node.end :]
    return _broken_text(text, chance, _LOOSE)


def _nodes(text: str) -> Iterator[tuple[Node, bool]]:
    try:
        waiting = [(compose(text), False)]
    except WeftError:
        return
    while waiting:
        node, is_key = waiting.pop()
        yield node, is_key
        if node.is_mapping:
            for item in node.pairs():
                waiting += [(item.key, True), (item.value, False)]
        elif node.is_list:
            waiting += [(part, False) for part in node.items()]


def _value(chance: random.Random, *, is_key: bool) -> str:
    kind = chance.random()
    if kind < 0.7:
        return chance.choice(HOSTILE_VALUES)
    found = chance.choice((*HOSTILE_NAMES, *BROKEN_NAMES) if kind < 0.8 else HOSTILE_FRAGMENTS)
    quoted = '"' + "".join(_escaped(c) for c in found) + '"'
    return quoted if is_key or chance.random() < 0.7 else found


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if " " <= character <= "~" else f"\\U{ord(character):08x}"


def _broken_sql(text: str, chance: random.Random) -> str:
    tokens = list(_WORDS.finditer(text))
    if not tokens or chance.random() < 0.35:
        return _broken_text(text, chance, SNIPPETS)
    at, other = chance.choice(tokens), chance.choice(tokens)
    kind = chance.random()
    if kind < 0.2:
        new = ""
    elif kind < 0.35:
        new = f"{at[0]} {at[0]}"
    elif kind < 0.55:
        new = other[0]
    elif kind < 0.8:
        value = chance.choice((*HOSTILE_VALUES, *HOSTILE_NAMES, *BROKEN_NAMES))
        new = "'" + value.replace("'", "''") + "'" if at[0].startswith("'") or chance.random() < 0.4 else value
        new = f"`{value}`" if chance.random() < 0.15 else new
    else:
        new = chance.choice(HOSTILE_FRAGMENTS)
    return text[: at.start()] + new + text[at.end() :]


def _broken_text(text: str, chance: random.Random, loose: tuple[str, ...]) -> str:
    """Return a text with a line or a stretch of characters moved, repeated, cut out or put in."""
    lines = text.splitlines(keepends=True)
    kind = chance.randrange(8)
    at = chance.randrange(len(text) + 1)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + chance.choice(loose) + text[at:]
    if kind == 2:
        return text[:at] + text[at + chance.randrange(1, 20) :]
    if kind == 3:
        return text[:at] + chance.choice(SNIPPETS) + text[at + chance.randrange(3) :]
    if not lines:
        return chance.choice(loose)
    one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
    if kind == 4:
        lines[one], lines[two] = lines[two], lines[one]
    elif kind == 5:
        lines.insert(two, lines[one])
    elif kind == 6:
        lines[one] = " " * chance.randrange(12) + lines[one].lstrip()
    else:
        lines[one] = lines[one] * chance.choice((2, 50, 300))
    return "".join(lines)
