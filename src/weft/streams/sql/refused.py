"""What other SQL has and streams do not, with the reason or what to write instead."""

from __future__ import annotations

_AGGREGATE = "a job joins rows and does not aggregate them: aggregate its output in a project or in Spark"
_FILTER = "the rows of a stream never end, so they have no order and no last one: leave it out"

_ABSENT: dict[str, tuple[str, str]] = {
    "GROUP": ("GROUP BY", _AGGREGATE),
    "HAVING": ("HAVING", _AGGREGATE),
    "ORDER": ("ORDER BY", _FILTER),
    "LIMIT": ("LIMIT", _FILTER),
    "FETCH": ("FETCH", _FILTER),
    "OFFSET": ("OFFSET", _FILTER),
    "UNION": ("UNION", "write one INSERT INTO for each query, each with a sink of its own"),
    "INTERSECT": ("INTERSECT", "write a JOIN on all columns"),
    "EXCEPT": ("EXCEPT", "write a LEFT JOIN and keep the rows without a match: WHERE key IS NULL"),
    "DISTINCT": ("DISTINCT", "the stream option 'dedup.keys' removes repeated rows as they come"),
    "OVER": ("a window function (OVER)", "an expression sees one joined row"),
    "CROSS": ("CROSS JOIN", "a join of streams needs a key: write JOIN .. ON a.key = b.key"),
    "SEMI": ("SEMI JOIN", "write JOIN and select the columns of the left side"),
    "ANTI": ("ANTI JOIN", "write LEFT JOIN and keep the rows without a match: WHERE right.key IS NULL"),
    "NATURAL": ("NATURAL JOIN", "name the keys: JOIN .. ON a.key = b.key"),
    "ASOF": ("ASOF JOIN", "write an interval: ON a.key = b.key WITHIN '5m'"),
    "LATERAL": ("LATERAL", "write JOIN .. ON"),
    "USING": ("USING", "write ON a.key = b.key"),
    "HOPPING": ("HOPPING", "write SLIDING(SIZE .., SLIDE ..): it is the same window"),
    "QUALIFY": ("QUALIFY", "an expression sees one joined row"),
    "VALUES": ("VALUES", "put the rows into a file and read it with CREATE TABLE"),
    "INTO": (
        "SELECT .. INTO",
        "write INSERT INTO sink SELECT .., or CREATE STREAM sink WITH (..) AS SELECT ..",
    ),
    "GRACE": (
        "GRACE PERIOD",
        "how late rows may come is said by the stream: 'watermark.max_out_of_orderness' = '30s'",
    ),
    "PARTITION": ("PARTITION BY", "rows are spread by the keys of the join"),
}
_ABSENT_PAIRS: dict[tuple[str, str], tuple[str, str]] = {
    ("OR", "REPLACE"): ("CREATE OR REPLACE", "a job says each time what is there: leave out OR REPLACE"),
    ("IF", "NOT"): ("IF NOT EXISTS", "a job says each time what is there: leave out IF NOT EXISTS"),
    ("EMIT", "EARLY"): ("EMIT EARLY", "write EMIT CHANGES: a pair comes as soon as both rows are there"),
}
_SECOND = {"GROUP": "BY", "ORDER": "BY", "PARTITION": "BY", "GRACE": "PERIOD"}
_BEFORE_JOIN = frozenset({"CROSS", "SEMI", "ANTI", "NATURAL", "ASOF"})
_STOPS = frozenset(
    "SELECT FROM WHERE ON JOIN INNER LEFT RIGHT FULL OUTER CROSS SEMI ANTI NATURAL ASOF USING WINDOW WITHIN EMIT "
    "WITH GROUP HAVING ORDER LIMIT UNION INTERSECT EXCEPT OVER INTO AS PRIMARY AND OR NOT LATERAL GRACE".split()
)
STATEMENTS: dict[str, tuple[str, str]] = {
    "START": ("START JOB", "`weft stream start JOB.sql` starts a job"),
    "STOP": ("STOP JOB", "`weft stream stop JOB` stops a job"),
    "DEPLOY": ("DEPLOY JOB", "`weft stream start JOB.sql` starts a job"),
    "PAUSE": ("PAUSE JOB", "`weft stream stop JOB` stops a job; start goes on where it stopped"),
    "RESUME": ("RESUME JOB", "`weft stream start JOB` goes on where it stopped"),
    "SHOW": ("SHOW", "`weft stream status` shows the jobs"),
    "LIST": ("LIST", "`weft stream status` shows the jobs"),
    "DESCRIBE": ("DESCRIBE", "`weft stream explain JOB.sql` describes a job"),
    "UPDATE": ("UPDATE", "a stream is only read and appended to"),
    "DELETE": ("DELETE", "a stream is only read and appended to"),
    "MERGE": ("MERGE", "a stream is only read and appended to"),
    "DROP": ("DROP", "a job says each time what is there: leave the statement out"),
    "ALTER": ("ALTER", "a job says each time what is there: change its CREATE"),
    "WITH": ("WITH before SELECT", "write the query as a stream of its own: CREATE STREAM .. AS SELECT .."),
}
"""How other statements begin, and what to do instead."""


def describe_absent(word: str, following: str) -> tuple[str, str, int] | None:
    """Return what stands here that streams do not have, what to do, and of how many words it is.

    >>> describe_absent("GROUP", "BY")[0], describe_absent("JOIN", "")
    ('GROUP BY', None)
    """
    pair = _ABSENT_PAIRS.get((word, following))
    if pair is not None:
        return *pair, 3 if word == "IF" else 2
    if word in _BEFORE_JOIN and following not in ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER"):
        return None
    found = _ABSENT.get(word)
    if found is None or (word in _SECOND and following != _SECOND[word]):
        return None  # a column may be called group or order
    return *found, 2 if word in _SECOND or following == "JOIN" else 1


def stops_a_name(word: str) -> bool:
    """Whether a bare word begins the next clause and is not a name.

    >>> stops_a_name("WHERE"), stops_a_name("orders")
    (True, False)
    """
    return word in _STOPS
