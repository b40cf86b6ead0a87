"""Relation: a DataFrame with its schema and strictly checked joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pyspark.sql import SparkSession

from weft.errors import ArgumentError
from weft.expr.spark.frames import require_dataframe, schema_of
from weft.joins.relation.arguments import DIRECTED
from weft.joins.relation.directed import DirectedJoins, pairs_of, spec_call, warn_deprecated
from weft.joins.relation.foreign import check_foreign, missing_order
from weft.joins.relation.frame import Actions, Frame, JoinLineage
from weft.joins.relation.joining import check_relation
from weft.joins.relation.local import is_local, send_table
from weft.joins.relation.natural import NaturalJoins
from weft.joins.relation.temporal import TemporalJoins
from weft.joins.spec.asof import AsofOrder
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.predicates import JoinPredicate
from weft.joins.spec.values import check_choice

ShimHow = Literal["inner", "left", "right", "full", "semi", "anti"]


class Shims(NaturalJoins, DirectedJoins, TemporalJoins, Actions):
    """Deprecated spellings; each warns with the exact replacement."""

    __slots__ = ()

    def join(self, other: Frame, /, *, how: ShimHow = "inner", on: Any = None) -> Self:
        """Join on shared columns, or on the columns of `on`; deprecated.

        ``orders.join(customers, how="left")`` is ``orders.natural_left(customers)``.

        Parameters
        ----------
        other
            The right relation.  Required.
        how
            ``"inner"`` (default), ``"left"``, ``"right"``, ``"full"``, ``"semi"`` or ``"anti"``.
        on
            A name, names, pairs or a mapping.  None (default) joins on the shared columns.
        """
        return self._shim("join", other, how, on)

    def left_join(self, other: Frame, /, *, on: Any = None) -> Self:
        """Left join on shared columns, or on the columns of `on`; deprecated.

        ``orders.left_join(customers)`` is ``orders.natural_left(customers)``.

        Parameters
        ----------
        other
            The right relation.  Required.
        on
            A name, names, pairs or a mapping.  None (default) joins on the shared columns.
        """
        return self._shim("left_join", other, "left", on)

    def _shim(self, old: str, other: Frame, how: ShimHow, on: Any) -> Self:
        check_choice(how, ShimHow, "how")
        check_relation(other, old)
        if on is None:
            warn_deprecated(f"Relation.{old}", f"natural_{how}(other)")
            natural: Self = getattr(self, f"natural_{how}")(other)
            return natural
        pairs = pairs_of(on)
        warn_deprecated(f"Relation.{old}", f"{DIRECTED[how]}(other, {spec_call(pairs)})")
        directed: Self = getattr(self, DIRECTED[how])(other, JoinSpec(pairs))
        return directed

    def join_on(self, *keys: Any, on: Any = None, predicates: Sequence[JoinPredicate] | None = None) -> JoinSpec:
        """Return the `JoinSpec` of key tuples; deprecated.

        ``orders.join_on(("customer_id", "id"))`` is ``JoinSpec([("customer_id", "id")])``.

        Parameters
        ----------
        *keys
            Pairs of a left and a right column.
        on
            The same as names, pairs or a mapping, instead of `keys`.  None by default.
        predicates
            Further conditions.  None by default.
        """
        pairs = [k for k in keys if not isinstance(k, Frame)]
        if pairs and on is not None:
            raise ArgumentError(
                "join_on takes keys or on=, not both", code="W0305", help="leave out on= and give the keys"
            )
        spec = JoinSpec(pairs_of(pairs or on), predicates or ())
        warn_deprecated("Relation.join_on", spec_call(spec.equal_keys, spec.predicates))
        return spec

    def join_asof(self, other: Frame, /, *, order: AsofOrder | None = None, **named: Any) -> Self:
        """As-of join on shared columns and aliases; deprecated.

        ``trades.join_asof(quotes, order=at)`` is ``trades.natural_asof(quotes, order=at)``.

        Parameters
        ----------
        other
            The right relation.  Required.
        order
            The order columns, an `AsofOrder`.  Required.
        **named
            Options and key aliases of `natural_asof`.
        """
        right = check_relation(other, "join_asof")
        check_foreign("join_asof", self, right, named)
        if order is None:
            raise missing_order("join_asof", self, right, named)
        arguments = ", ".join(f"{k}={v!r}" for k, v in {"order": order, **named}.items())
        warn_deprecated("Relation.join_asof", f"natural_asof(other, {arguments})")
        return self.natural_asof(other, order=order, **named)


class Relation(Shims):
    """An immutable DataFrame with its schema, order marker and lineage.

    `weft.relation` creates one, and ``.df`` is its DataFrame.  Joins are checked in Python before
    Spark is called, so classic and Connect sessions raise the same errors at the same line.
    """

    __slots__ = ()


def relation(df: Any, *, session: SparkSession | None = None) -> Relation:
    """Make a relation of a Spark DataFrame, batch or streaming, or of a pandas, Polars or Arrow table.

    Parameters
    ----------
    df
        A DataFrame of a classic or Connect session, or a local table: a pandas or Polars DataFrame, an Arrow table,
        or an object that exports one (``__arrow_c_stream__``).  Two columns whose names are equal under the case
        sensitivity of the session are an error.  Required.

        A local table is sent to Spark as it is now, and columns keep their types: times without a zone become
        timestamp_ntz, unsigned integers the next larger type, categories their values.  NaN of pandas is NULL.  A
        named index of pandas becomes columns.
    session
        For a local table the session that gets it; None (default) takes the active one.  For a DataFrame only needed
        inside foreachBatch: None takes the session of `df`.

    Examples
    --------
    ::

        trades = weft.relation(spark.read.parquet("trades"))
        trades.natural_left(instruments).show()

        rates = weft.relation(pandas.DataFrame({"currency": ["EUR"], "rate": [1.09]}))
    """
    if is_local(df):
        sent, preview = send_table(df, session)
        return Relation(sent, schema_of(sent), sent.sparkSession, preview=preview)
    frame = require_dataframe(df)
    # Inside foreachBatch Spark runs the batch in a clone of the session: frames from outside belong to the original.
    return Relation(frame, schema_of(frame), session or frame.sparkSession)


__all__ = ["Frame", "JoinLineage", "Relation", "relation"]
