"""A join that matched more than one row, told with the keys that are there more than once."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any

from weft.core.names import quote
from weft.errors import RuntimeJoinError
from weft.expr.spark.frames import functions_of
from weft.joins.spark.contracts import PREFIX
from weft.pipelines.spark.frame import Lowering, Opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_KEYS = 20
_BROKEN = re.compile(
    re.escape(PREFIX) + r" W0501 (.*?): (?P<key>[^:]*?) \(spec [0-9a-f]{12}, join (?P<join>[0-9a-f]{12})\)",
    re.DOTALL,
)


def multiple_matches(failure: BaseException, env: Lowering) -> RuntimeJoinError | None:
    """Return the error for a join with more than one match, None when the job failed for another reason.

    One small job on the joined side finds up to twenty keys that it has more than once.
    """
    found = _BROKEN.search(str(failure))
    if found is None:
        return None
    known = env.opened.get(found["join"], [])
    for opened in known:
        keys = _repeated(opened)
        if keys:
            return _error(opened.alias, ", ".join(keys[:MOST_KEYS]), more=len(keys) > MOST_KEYS)
    alias = known[0].alias if known else "?"
    return _error(alias, found["key"], more=False)


def _error(alias: str, keys: str, *, more: bool) -> RuntimeJoinError:
    return RuntimeJoinError(
        f"Join {alias!r} matches more than one row: {keys}" + (" and more" if more else ""),
        code="W1209",
        help="correct the data, add a term to `on`, or say on_multiple: first or all",
    )


def _repeated(opened: Opened) -> list[str]:
    right: DataFrame = opened.right
    F = functions_of(right)
    columns = [F.col(quote(name)) for name, _ in opened.keys]
    known = right
    for column in columns:
        known = known.filter(column.isNotNull())
    counted = known.groupBy(*columns).agg(F.count(F.lit(1)).alias("__weft_n")).filter(F.col("__weft_n") > 1)
    rows = counted.orderBy(F.col("__weft_n").desc(), *columns).limit(MOST_KEYS + 1).collect()
    return [_shown(row, opened) for row in rows]


def _shown(row: Any, opened: Opened) -> str:
    values = [f"{known} = {_text(row[name])}" for name, known in opened.keys]
    return f"{', '.join(values)} ({row['__weft_n']} rows)"


def _text(value: object) -> str:
    if isinstance(value, str):
        return repr(value)
    return value.isoformat() if isinstance(value, dt.date) else str(value)
