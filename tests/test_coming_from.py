"""The pages in docs/coming_from: each call of another tool and the call of Weft below it return the same rows.

A block marked with the name of a tool, such as ``python pandas`` or ``sql duckdb``, is run, and so is the block marked
``weft`` that follows it.  Its result is the value of its last expression, or the rows of its query.  A ``text`` block
below either of them is the table that both return.  If each of them has a ``text`` block, the two must differ: that is
a difference which the page explains.  A block that raises has the error as its table.  Blocks marked ``python`` prepare
both sides, and a block marked with a path, such as ``json orders/1.json``, is a file.

Flink and dbt cannot be installed beside Weft.  They run where ``make coming-from`` has installed them; elsewhere a table
below their block, which a run of theirs wrote, stands for them.  ksqlDB is not run, and its page says so.
"""

from __future__ import annotations

import ast
import datetime as dt
import json
import math
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import weft.streams
from test_docs import ROOT
from weft.core.types import STRING
from weft.errors import WeftError
from weft.testing import assert_rows_equal, cells
from weft.testing.tables import align

PAGES = sorted(page for page in (ROOT / "docs" / "coming_from").glob("*.md") if page.name != "index.md")
_FENCE = re.compile(r"^```(?P<mark>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_TEXT = "text"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+")
_REF = re.compile(r"\{\{ ref\('(\w+)'\) \}\}")
DBT = ROOT / "bench" / ".venv-dbt" / "bin" / "dbt"
FLINK = ROOT / "bench" / ".venv-flink" / "bin" / "python"


@dataclass(frozen=True)
class Rows:
    """A result: the names of its columns and its rows, or the error instead of them."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    text: str = ""
    """An error, or a table that an earlier run wrote into the page."""

    def show(self) -> str:
        """Return the table of the page: sorted rows, because a join has no order."""
        if self.text or not self.columns:
            return self.text
        lines = sorted([cells.write(v, STRING) for v in row] for row in self.rows)
        return "\n".join(line.rstrip() for line in align([list(self.columns), *lines]).splitlines()) + "\n"


@dataclass(frozen=True)
class Side:
    """A block of one tool: where it stands and the table that the page shows for it."""

    language: str
    tool: str
    body: str
    line: int
    shown: tuple[int, int] | None = None
    """Where the body of its ``text`` block begins and ends in the page."""


@dataclass
class Group:
    """A block of another tool and the block of Weft below it; Python blocks before them prepare both."""

    setup: list[Side] = field(default_factory=list)
    sides: list[Side] = field(default_factory=list)


def groups(text: str) -> Iterator[Group]:
    """Yield the pairs of a page in their order; the last one may have set-up alone."""
    group = Group()
    for found in _FENCE.finditer(text):
        language, _, tool = found["mark"].partition(" ")
        line = text.count("\n", 0, found.start("body"))
        if found["mark"] == _TEXT and group.sides and not text[: found.start()].rpartition("```")[2].strip():
            group.sides[-1] = Side(**{**vars(group.sides[-1]), "shown": found.span("body")})
            continue
        if group.sides and group.sides[-1].tool == "weft":
            yield group
            group = Group()
        if found["mark"] == "python":
            assert not group.sides, f"line {line}: a block between those of a pair"
            group.setup.append(Side(language, "", found["body"], line))
        elif "." in tool:
            group.setup.append(Side("file", tool, found["body"], line))
        elif language == "sh" and tool:
            group.setup.append(Side(language, tool, found["body"], line))
        elif tool and language in ("python", "sql"):
            group.sides.append(Side(language, tool, found["body"], line))
    yield group


def evaluate(side: Side, page: Path, names: dict[str, Any]) -> Any:
    """Run a block of Python and return the value of its last expression."""
    tree = ast.parse("\n" * side.line + side.body, str(page))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(page), "exec", dont_inherit=True), names)  # noqa: S102
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), str(page), "eval", dont_inherit=True), names)  # noqa: S307
    return None


def prepare(block: Side, page: Path, names: dict[str, Any]) -> None:
    """Run a block that prepares both sides or one of them, or write its file."""
    if block.language == "file":
        path = names["root"] / block.tool
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.body, encoding="utf-8")
    elif block.language == "sh":
        run_dbt(block, names["root"])
    else:
        evaluate(block, page, names)


def rows_of(result: Any) -> Rows:
    """Return the rows of a result of any tool; a missing value is None in all of them."""
    if result is None or isinstance(result, Rows):
        return result or Rows()
    kind = type(result).__module__.partition(".")[0]
    if kind == "pandas":
        return _plain(result.columns, result.itertuples(index=False, name=None))
    if kind == "polars":
        return _plain(result.columns, result.rows())
    if kind in ("duckdb", "_duckdb"):
        return _plain(result.columns, result.fetchall())
    if kind in ("weft", "tempo"):
        return rows_of(result.df)
    return _plain(result.columns, result.collect())


def _plain(columns: Any, rows: Any) -> Rows:
    return Rows(tuple(columns), tuple(tuple(map(_value, row)) for row in rows))


def _value(value: Any) -> Any:
    """Return a Python value: missing ones are None, whole floats are integers, times have no zone."""
    if (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NaTType", "NAType")
    ):
        return None
    if hasattr(value, "item"):
        value = value.item()
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    # pandas turns a column of integers with a missing value into one of floats.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def run_nothing(side: Side, page: Path, names: dict[str, Any]) -> None:
    """Return None, as for each tool that is not there."""
    del side, page, names


def run_duckdb(side: Side, page: Path, names: dict[str, Any]) -> Any:
    """Run a query on the connection that the page opened."""
    del page
    return names["db"].sql(side.body)


def run_weft(side: Side, page: Path, names: dict[str, Any]) -> Any:
    """Keep the streams that a block declares; run a query over the files of the page."""
    del page
    if "SELECT" not in side.body:
        names.setdefault("streams", []).append(side.body)
        return Rows()
    out = f"out/{side.line}"
    sink = f"CREATE STREAM result WITH ('path'='{out}', 'format'='parquet') AS\n"
    sql = "".join(names["streams"]) + sink + side.body
    report = weft.streams.run_as_batch(names["spark"], sql, root=names["root"])
    return names["spark"].read.parquet(*map(str, report.query("result").files))


def run_flink(side: Side, page: Path, names: dict[str, Any]) -> Any:
    """Run a query in the environment of Flink, if there is one; the files of the page are its /data."""
    del page
    body = side.body.replace("/data/", f"file://{names['root']}/")
    if "SELECT" not in body:
        names.setdefault("tables", []).extend(body.split(";"))
        return Rows()
    if not FLINK.exists():
        return _recorded(side, names)
    job = json.dumps({"tables": names["tables"], "query": body})
    ran = subprocess.run(
        [FLINK, Path(__file__).parent / "flink_query.py"], input=job, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr.strip().rpartition("\n")[2]
    found = json.loads(ran.stdout.splitlines()[-1])
    return Rows(tuple(found["columns"]), tuple(tuple(map(_time, row)) for row in found["rows"]))


def _time(value: Any) -> Any:
    return dt.datetime.fromisoformat(value) if isinstance(value, str) and _TIME.fullmatch(value) else value


DBT_FILES = {
    "dbt_project.yml": "name: rates\nversion: '1.0'\nprofile: rates\n",
    "profiles.yml": "rates:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: rates.duckdb}\n",
}


def run_dbt(block: Side, root: Path) -> None:
    """Run the commands of a block in the environment of dbt, if there is one."""
    if not DBT.exists():
        return
    for name, text in DBT_FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    for line in block.body.splitlines():
        words = shlex.split(line)
        assert words[0] == "dbt"
        ran = subprocess.run(
            [DBT, "--no-send-anonymous-usage-stats", *words[1:], "--profiles-dir", "."],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-2000:]


def query_dbt(side: Side, page: Path, names: dict[str, Any]) -> Any:
    """Run a query of a dbt model on the database that dbt has written."""
    del page
    if not DBT.exists():
        return _recorded(side, names)
    import duckdb

    with duckdb.connect(names["root"] / "rates.duckdb", read_only=True) as db:
        db.execute(f"SET file_search_path = '{names['root']}'")
        return rows_of(db.sql(_REF.sub(r"\1", side.body)))


def _recorded(side: Side, names: dict[str, Any]) -> Rows | None:
    """Return the table below a block, which a run of the tool wrote; None if there is none."""
    return None if side.shown is None else Rows(text=names["text"][slice(*side.shown)])


ELSEWHERE = ("dbt", "flink", "ksqldb")
RUNNERS: dict[tuple[str, str], Callable[[Side, Path, dict[str, Any]], Any]] = {
    ("sql", "duckdb"): run_duckdb,
    ("sql", "weft"): run_weft,
    ("sql", "flink"): run_flink,
    ("sql", "dbt"): query_dbt,
    ("sql", "ksqldb"): run_nothing,
}


def run(side: Side, page: Path, names: dict[str, Any]) -> Rows | None:
    """Run a block of any tool, None if the tool is not there; an error is its result where the page shows one."""
    try:
        result = RUNNERS.get((side.language, side.tool), evaluate)(side, page, names)
        return None if result is None and side.tool in ELSEWHERE else rows_of(result)
    except Exception as error:
        # An AssertionError is a failure of this test, such as an environment that does not work.
        if side.shown is None or isinstance(error, AssertionError):
            raise
        told = str(error) if isinstance(error, WeftError) else f"{type(error).__name__}: {error}".partition("\n")[0]
        return Rows(text=told.rstrip("\n") + "\n")


def check(page: Path, names: dict[str, Any], *, rewrite: bool = False) -> int:
    """Run a page, compare its pairs and its tables, and return how many pairs it has."""
    text = names["text"] = page.read_text(encoding="utf-8")
    tables: list[tuple[tuple[int, int], str]] = []
    problems: list[str] = []
    pairs = 0
    for group in groups(text):
        for block in group.setup:
            prepare(block, page, names)
        if not group.sides:
            continue
        pairs += 1
        try:
            tables += check_pair(group, page, names)
        except Exception as error:  # noqa: BLE001  # the other pairs are checked too
            problems.append(f"{page.name}:{group.sides[0].line}: {type(error).__name__}: {error}")
    for (start, end), table in sorted(tables, reverse=True):
        if table != text[start:end] and not rewrite:
            line = text.count("\n", 0, start)
            problems.append(f"{page.name}:{line}: the result is\n{table}and the page shows\n{text[start:end]}")
        text = text[:start] + table + text[end:]
    if rewrite:
        page.write_text(text, encoding="utf-8")
    assert not problems, "\n\n".join(problems)
    return pairs


def check_pair(group: Group, page: Path, names: dict[str, Any]) -> list[tuple[tuple[int, int], str]]:
    """Run both sides and return the tables for the page; raise if they differ where the page has one table."""
    assert [s.tool == "weft" for s in group.sides] == [False, True], "a pair is one block of each side"
    theirs, ours = (run(side, page, names) for side in group.sides)
    assert ours is not None, "Weft's side was not run"
    if theirs is not None:
        compare(group, theirs, ours)
    results = zip(group.sides, (theirs, ours), strict=True)
    return [(side.shown, found.show()) for side, found in results if side.shown is not None and found is not None]


def compare(group: Group, theirs: Rows, ours: Rows) -> None:
    """Raise unless both sides return the same rows, or differ where the page shows two tables."""
    if all(side.shown is not None for side in group.sides):
        assert theirs.show() != ours.show(), "both return the same, so one table is enough"
        return
    if theirs.text or ours.text:
        assert ours.show() == theirs.show(), f"Weft returns\n{ours.show()}and {group.sides[0].tool}\n{theirs.show()}"
        return
    assert theirs.columns == ours.columns, f"the columns are {theirs.columns} and {ours.columns}"
    assert_rows_equal(ours.rows, theirs.rows, ours.columns, exact_types=False)


@pytest.mark.golden
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_both_calls_of_a_pair_return_what_the_page_says(
    page: Path, spark: object, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pairs = check(page, {"spark": spark, "root": tmp_path}, rewrite=request.config.getoption("--rewrite-golden"))
    assert pairs >= 3, f"{page.name} has {pairs} pairs"


PAGE = """
```python
rows = [(1, "a"), (2, None)]
class Frame:
    columns = ("id", "name")
    def __init__(self, rows): self.rows = rows
    def collect(self): return self.rows
```

```python other
Frame(rows)
```

```python weft
Frame(rows[::-1])
```

```text
id | name
1  | a
2  | null
```

```python other
Frame(rows[:1])
```
```text
id | name
1  | a
```

```python weft
1 / 0
```

```text
ZeroDivisionError: division by zero
```
"""


def test_pairs_are_compared_with_each_other_and_with_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    assert check(page, {}) == 2


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("rows[::-1]", "rows[1:]", "1 missing"),
        ("2  | null", "2  | b", "the page shows"),
        ("Frame(rows[:1])", "Frame(rows)", "the page shows"),
        ("1 / 0", "Frame(rows[:1])", "one table is enough"),
        ("```python weft\n1 / 0\n```\n", "", "one block of each side"),
        ("```\n\n```python weft\n1 / 0", "```\n\n```python\n1", "a block between those of a pair"),
        ("```python other\nFrame(rows)", "```python other\n1 / 0", "division by zero"),
    ],
)
def test_a_pair_that_does_not_hold_is_reported(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in PAGE
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(AssertionError, match=problem):
        check(page, {})


def test_rewriting_puts_the_tables_of_both_sides_into_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("2  | null", "2  | b").replace("ZeroDivisionError: ", ""), encoding="utf-8")
    check(page, {}, rewrite=True)
    assert page.read_text(encoding="utf-8") == PAGE
