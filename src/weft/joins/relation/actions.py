"""Actions on a relation: they run a Spark job, and what fails in it is an error of Weft where Weft can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.joins.relation.frame import Frame
from weft.joins.spark.failures import coded_errors
from weft.joins.spark.streams import check_not_streaming

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import Row


class Actions(Frame):
    """``count``, ``collect``, ``head``, ``show``, ``to_pandas`` and ``to_arrow``.

    ``.df`` has the actions of Spark; a promise that is broken there ends in Spark's own exception, of which
    `weft.coded_errors` makes ours.
    """

    __slots__ = ()

    def count(self) -> int:
        """Return the number of rows."""
        check_not_streaming(self.df, "count")
        with coded_errors():
            return self.df.count()

    def collect(self) -> list[Row]:
        """Return all rows."""
        check_not_streaming(self.df, "collect")
        with coded_errors():
            return self.df.collect()

    def head(self, n: int = 5) -> list[Row]:
        """Return up to `n` rows."""
        limited = self.limit(n)
        check_not_streaming(self.df, "head")
        with coded_errors():
            return limited.df.collect()

    def show(self, n: int = 20) -> None:
        """Print up to `n` rows as a table, as Spark does."""
        check_not_streaming(self.df, "show")
        with coded_errors():
            self.df.show(n)

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a pandas DataFrame."""
        check_not_streaming(self.df, "to_pandas")
        with coded_errors():
            return self.df.toPandas()

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table."""
        check_not_streaming(self.df, "to_arrow")
        with coded_errors():
            return self.df.toArrow()
