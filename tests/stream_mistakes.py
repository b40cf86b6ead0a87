"""Jobs with one mistake each, by topic; the golden texts contain the findings."""

from __future__ import annotations

STREAMS = """\
CREATE STREAM orders (order_id STRING, customer_id INT, total DECIMAL(10,2), event_time TIMESTAMP)
WITH ('path' = 'orders.csv', 'event.time.field' = 'event_time');
CREATE STREAM shipments (shipment_id STRING, order_id STRING, event_time TIMESTAMP)
WITH ('path' = 'shipments.csv', 'event.time.field' = 'event_time');
CREATE TABLE customers (customer_id INT, name STRING) WITH ('path' = 'customers.csv');
"""
"""What the statements of most cases read."""

JOIN = "SELECT * FROM orders o JOIN shipments s ON o.order_id = s.order_id"

STATEMENTS = {
    "an unknown statement": "SELCT * FROM orders;",
    "a statement of another system": "START JOB orders;",
    "a statement that changes rows": "DELETE FROM orders;",
    "a query named before it is used": "WITH a AS (b) SELECT * FROM a;",
    "create of something else": "CREATE STREM orders (a INT);",
    "create or replace": "CREATE OR REPLACE STREAM a WITH ('path' = 'a.csv');",
    "create if not exists": "CREATE TABLE IF NOT EXISTS a (b INT) WITH ('path' = 'a.csv');",
    "a table of a query": "CREATE TABLE a WITH ('path' = 'a.csv') AS SELECT * FROM orders;",
    "a missing AS": "CREATE STREAM a WITH ('path' = 'a.csv') SELECT * FROM orders;",
    "a missing semicolon": "SELECT * FROM orders\nSELECT * FROM shipments;",
    "a missing name": "CREATE STREAM WITH ('path' = 'a.csv');",
    "a name in single quotes": "CREATE STREAM 'a' (b INT) WITH ('path' = 'a.csv');",
    "an empty name": "CREATE STREAM \"\" (b INT) WITH ('path' = 'a.csv');",
    "insert of rows": "INSERT INTO a VALUES (1, 2);",
    "insert with columns": "INSERT INTO a (b, c) SELECT * FROM orders;",
    "insert without into": "INSERT a SELECT * FROM orders;",
    "explain of a plan": "EXPLAIN SELECT * FROM orders;",
    "set without quotes": "SET trigger = '1s';",
    "an unclosed text": "SELECT * FROM orders WHERE order_id = 'A1;\n",
    "an unclosed comment": "SELECT * FROM orders; /* and so on\n",
    "a stray end of a comment": "SELECT * FROM orders */ WHERE total > 1;",
    "a template": "SELECT {{TOTAL}} AS total FROM orders;",
    "the end of the text": "CREATE STREAM a (b INT",
    "no statement": "-- nothing here",
    "nothing to run": STREAMS,
}

COLUMNS = {
    "an unknown type": "CREATE TABLE a (b MONEY) WITH ('path' = 'a.csv');",
    "no type": "CREATE TABLE a (b, c INT) WITH ('path' = 'a.csv');",
    "a column twice": "CREATE TABLE a (b INT, B STRING) WITH ('path' = 'a.csv');",
    "a primary key": "CREATE TABLE a (b INT PRIMARY KEY) WITH ('path' = 'a.csv');",
    "two mistakes in one list": "CREATE TABLE a (b MONEY, c INT, d) WITH ('path' = 'a.csv');",
    "an unclosed list": "CREATE TABLE a (b INT, c STRING WITH ('path' = 'a.csv');",
    "a stream without columns": "CREATE STREAM a WITH ('path' = 'a.csv');",
    "a table without columns": "CREATE TABLE a WITH ('path' = 'a.csv');",
    "columns of a rate source": "CREATE STREAM a (b INT) WITH ('connector' = 'rate');",
}

SELECTS = {
    "an empty list": "SELECT FROM orders;",
    "a comma too many": "SELECT order_id, FROM orders;",
    "no FROM": "SELECT order_id;",
    "a list of sources": "SELECT * FROM orders, shipments;",
    "a query as a source": "SELECT * FROM (SELECT * FROM orders);",
    "a query as a value": "SELECT * FROM orders WHERE total > (SELECT 5);",
    "an aggregate": "SELECT SUM(total), COUNT(*) AS n FROM orders;",
    "a window function": "SELECT total OVER (PARTITION BY order_id) FROM orders;",
    "an aggregate in WHERE": "SELECT * FROM orders WHERE COUNT(*) > 1 AND SUM(total) > 5;",
    "the date of the run": "SELECT TODAY() AS d FROM orders;",
    "the clock": "SELECT NOW() AS t FROM orders;",
    "a star with a name": "SELECT o.* AS all_of_it FROM orders o;",
    "a star as a key": "SELECT * PRIMARY KEY FROM orders;",
    "two event times": "SELECT event_time AS _EVENT_TIME, event_time AS _event_time FROM orders;",
    "two mistakes in one list": "SELECT nope(total), 5m, order_id FROM orders;",
    "distinct": "SELECT DISTINCT order_id FROM orders;",
    "grouping": "SELECT order_id FROM orders GROUP BY order_id;",
    "having": "SELECT order_id FROM orders HAVING total > 1;",
    "sorting": "SELECT order_id FROM orders ORDER BY order_id;",
    "a limit": "SELECT order_id FROM orders LIMIT 10;",
    "a union": "SELECT order_id FROM orders UNION SELECT order_id FROM shipments;",
    "a clause twice": "SELECT * FROM orders WHERE total > 1 WHERE total < 5;",
    "a misspelt clause": "SELECT * FROM orders o WHRE total > 1;",
    "a misspelt clause that reads as an alias": "SELECT * FROM orders WHRE total > 1;",
    "a clause that nothing begins": "SELECT * FROM orders o QUICKLY;",
    "emit early": "SELECT * FROM orders EMIT EARLY;",
    "emit something else": "SELECT * FROM orders EMIT CHANGE;",
    "a mistake in WHERE and one after it": "SELECT * FROM orders WHERE total >> 1 EMIT NOTHING;",
}

JOINS = {
    "no ON": "SELECT * FROM orders o JOIN shipments s WHERE o.total > 1;",
    "using": "SELECT * FROM orders JOIN shipments USING (order_id);",
    "a cross join": "SELECT * FROM orders CROSS JOIN shipments;",
    "a semi join": "SELECT * FROM orders o LEFT SEMI JOIN shipments s ON o.order_id = s.order_id;",
    "an anti join": "SELECT * FROM orders o LEFT ANTI JOIN shipments s ON o.order_id = s.order_id;",
    "a natural join": "SELECT * FROM orders NATURAL JOIN shipments;",
    "an as-of join": "SELECT * FROM orders ASOF JOIN shipments;",
    "a join after WHERE": "SELECT * FROM orders o WHERE total > 1 JOIN shipments s ON o.order_id = s.order_id;",
    "half a condition": "SELECT * FROM orders o JOIN shipments s ON o.order_id = LEFT JOIN customers c ON c.customer_id = o.customer_id;",
    "within of nothing": f"{JOIN} WITHIN EMIT CHANGES;",
    "within of no length": f"{JOIN} WITHIN '5 fortnights';",
    "within of a month": f"{JOIN} WITHIN INTERVAL '1' MONTH;",
    "within that ends before it starts": f"{JOIN} WITHIN ('-1h', '5m');",
    "within one length of two": f"{JOIN} WITHIN ('5m');",
    "within in no join": f"{JOIN} WHERE o.total > 1 WITHIN '5m';",
    "a grace period": f"{JOIN} WITHIN '5m' GRACE PERIOD '1m';",
    "an unknown window": f"{JOIN} WINDOW TUMBLE('1h');",
    "a hopping window": f"{JOIN} WINDOW HOPPING('1h', '10m');",
    "a window without a length": f"{JOIN} WINDOW TUMBLING();",
    "a sliding window without a slide": f"{JOIN} WINDOW SLIDING('1h');",
    "a slide longer than the window": f"{JOIN} WINDOW SLIDING(SIZE '10m', SLIDE '1h');",
    "a window of no length": f"{JOIN} WINDOW TUMBLING('0s');",
    "a window over another column": f"{JOIN} WINDOW TUMBLING(o.total, '1h');",
    "a window after a table": "SELECT * FROM orders o JOIN customers c ON o.customer_id = c.customer_id WINDOW TUMBLING('1h');",
    "a window without a join": "SELECT * FROM orders WHERE total > 1 WINDOW TUMBLING('1h');",
    "a window of one of two joins": f"{JOIN} JOIN shipments t ON o.order_id = t.order_id WHERE o.total > 1 WINDOW TUMBLING('1h');",
    "two forms that differ": f"{JOIN} WITHIN '5m' WINDOW TUMBLING('1h');",
    "a form that options deny": f"{JOIN} WITHIN '5m' WITH ('join.lower_bound' = '0s', 'join.upper_bound' = '1h');",
}

OPTIONS = {
    "an unknown option": "CREATE TABLE a (b INT) WITH ('pth' = 'a.csv', 'format' = 'csv');",
    "an option nothing resembles": "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'xyzzy' = '1');",
    "an option of something else": "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'late' = 'drop');",
    "an option of another connector": "CREATE STREAM a (b INT) WITH ('path' = 'a.csv', 'topic' = 'a');",
    "an option of another format": "CREATE TABLE a (b INT) WITH ('path' = 'a.json', 'delimiter' = ';');",
    "an option twice": "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'path' = 'b.csv');",
    "an option without quotes": "CREATE TABLE a (b INT) WITH (path = 'a.csv');",
    "a value without quotes": "CREATE TABLE a (b INT) WITH ('connector' = files);",
    "no value": "CREATE TABLE a (b INT) WITH ('path' = );",
    "no options": "CREATE TABLE a (b INT) WITH ();",
    "an unknown word": "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'format' = 'jsn');",
    "no flag": "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'header' = 'yes');",
    "no count": f"{JOIN} WITH ('join.max_state_rows' = 'many');",
    "no duration": "CREATE STREAM a (b INT) WITH ('path' = 'a.csv', 'watermark.max_out_of_orderness' = '30 parsecs');",
    "a negative delay": "CREATE STREAM a (b INT) WITH ('path' = 'a.csv', 'watermark.max_out_of_orderness' = '-30s');",
    "an empty path": "CREATE TABLE a (b INT) WITH ('path' = '', 'format' = 'csv');",
    "no zone": "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'timestamp.zone' = 'Europe/Pari');",
    "two characters": "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'delimiter' = '||');",
    "no offsets": "CREATE STREAM a (b INT) WITH ('topic' = 'a', 'format' = 'json', 'starting.offsets' = 'middle');",
    "no directive": "CREATE STREAM a (b STRING) WITH ('path' = 'a.csv', 'event.time.field' = 'b', 'event.time.format' = '%Q');",
    "no connector": "CREATE TABLE a (b INT) WITH ('format' = 'csv');",
    "no path": "CREATE TABLE a (b INT) WITH ('connector' = 'files', 'format' = 'csv');",
    "no topic": "CREATE STREAM a (b INT) WITH ('connector' = 'kafka', 'format' = 'json');",
    "no format": "CREATE TABLE a (b INT) WITH ('path' = 'data/a');",
    "parquet in Kafka": "CREATE STREAM a (b INT) WITH ('topic' = 'a', 'format' = 'parquet');",
    "an event time that is not a column": "CREATE STREAM a (b INT, at TIMESTAMP) WITH ('path' = 'a.csv', 'event.time.field' = 'att');",
    "an event time that is not a time": "CREATE STREAM a (b DECIMAL(5,2)) WITH ('path' = 'a.csv', 'event.time.field' = 'b');",
    "a number as event time": "CREATE STREAM a (b BIGINT) WITH ('path' = 'a.csv', 'event.time.field' = 'b');",
    "a number in a format of texts": "CREATE STREAM a (b BIGINT) WITH ('path' = 'a.csv', 'event.time.field' = 'b', "
    "'event.time.format' = 'iso8601');",
    "the time of a message that is none": "CREATE STREAM a (b INT) WITH ('path' = 'a.csv', 'event.time.field' = '_TIMESTAMP');",
    "keys that are not columns": "CREATE STREAM a (b INT) WITH ('path' = 'a.csv', 'dedup.keys' = 'b, c');",
    "a timeout as a bound": f"{JOIN} WITH ('join.timeout' = '30s');",
    "a strategy": "CREATE STREAM a (b INT) WITH ('path' = 'a.csv', 'watermark.strategy' = 'ascending');",
    "late rows as elsewhere": "CREATE STREAM a (b INT) WITH ('path' = 'a.csv', 'late.data.strategy' = 'dead_letter');",
    "a cache": "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'cache.enabled' = 'true');",
    "a dead letter queue": "SET 'job.enable_dlq' = 'true';",
    "a type of a source": "CREATE STREAM a (b INT) WITH ('a.type' = 'kafka_source', 'topic' = 'a', 'format' = 'json');",
    "an option of a sink as elsewhere": "CREATE STREAM a (b INT) WITH ('a.topic.name' = 'a', 'topic' = 'a', 'format' = 'json');",
    "an option of ksqlDB": "CREATE STREAM a (b INT) WITH ('kafka_topic' = 'a', 'value_format' = 'JSON');",
    "an option of Flink": "CREATE STREAM a (b INT) WITH ('topic' = 'a', 'format' = 'json', 'properties.acks' = 'all');",
    "half a form": f"{JOIN} WITH ('join.type' = 'sliding', 'join.size' = '1h');",
    "half a bound": f"{JOIN} WITH ('join.upper_bound' = '1h');",
    "lengths of two forms": f"{JOIN} WITH ('join.type' = 'tumbling', 'join.size' = '1h', 'join.gap' = '5m');",
    "a bound that ends before it starts": f"{JOIN} WITH ('join.lower_bound' = '1h', 'join.upper_bound' = '0s');",
    "a default that ends before it starts": "SET 'join.default_bound' = '1h..-5m';",
    "rows of windows without windows": f"{JOIN} WITHIN '5m' WITH ('join.rows' = 'window');",
    "a join that is not there": f"{JOIN} WITH ('join.x.size' = '1h');",
    "a join option without a join": "SELECT * FROM orders WITH ('join.size' = '1h');",
    "an option of the sink after the query": f"{JOIN} WITH ('path' = 'out');",
    "a setting twice": "SET 'trigger' = '1s'; SET 'trigger' = '2s';",
    "no setting": "SET 'triger' = '1s';",
    "one option, two values": f"CREATE STREAM out WITH ('connector' = 'memory', 'join.retention' = '1h') AS {JOIN} "
    "WITHIN '5m' WITH ('join.retention' = '2h');",
}

NAMES = {
    "an unknown stream": "SELECT * FROM ordrs;",
    "a stream nothing resembles": "SELECT * FROM xyzzy;",
    "an unknown sink": "INSERT INTO order_status SELECT * FROM orders;",
    "a table as a sink": "INSERT INTO customers SELECT * FROM orders;",
    "a name twice": "CREATE TABLE Orders (a INT) WITH ('path' = 'a.csv');",
    "a sink twice": "CREATE STREAM out WITH ('connector' = 'memory'); INSERT INTO out SELECT * FROM orders; "
    "INSERT INTO out SELECT * FROM shipments;",
    "an alias twice": "SELECT * FROM orders JOIN orders ON orders.order_id = orders.order_id;",
    "explain of nothing": "EXPLAIN JOIN nothing; SELECT * FROM orders;",
}

VARIABLES = {
    "no value": "CREATE TABLE a (b INT) WITH ('path' = '${DATA}/a.csv');",
    "a message": "CREATE TABLE a (b INT) WITH ('path' = '${DATA:?set the folder of the data}/a.csv');",
    "no name": "CREATE TABLE a (b INT) WITH ('path' = '${1}/a.csv');",
    "not closed": "CREATE TABLE a (b INT) WITH ('path' = '${DATA/a.csv');",
    "a near name": "CREATE TABLE a (b INT) WITH ('path' = '${FOLDR}/a.csv');",
    "a value that is wrong": "CREATE TABLE a (b INT) WITH ('path' = 'a.csv', 'format' = '${FOLDER}');",
    "a mistake beside it": "CREATE TABLE a (b INT) WITH ('path' = '${DATA}', 'formt' = 'csv');",
}

TOPICS: dict[str, tuple[dict[str, str], str]] = {
    "statements": (STATEMENTS, ""),
    "columns": (COLUMNS, ""),
    "selects": (SELECTS, STREAMS),
    "joins": (JOINS, STREAMS),
    "options": (OPTIONS, STREAMS),
    "names": (NAMES, STREAMS),
    "variables": (VARIABLES, ""),
}
"""The cases of each topic, and what is put before each of them."""
