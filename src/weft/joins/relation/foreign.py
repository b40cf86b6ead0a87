"""Arguments of pandas ``merge_asof``, polars ``join_asof`` and Tempo ``asofJoin``, translated into a call of Weft.

A keyword that is also a column of the left side is a key alias.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from weft.core.duration import Duration
from weft.core.names import format_list
from weft.errors import ArgumentError
from weft.joins.relation.frame import Frame
from weft.joins.spec.projection import DEFAULT_SUFFIXES
from weft.joins.spec.values import Direction

_PANDAS = ("on", "left_on", "right_on", "by", "left_by", "right_by", "left_index", "right_index")
_POLARS = (
    "on", "left_on", "right_on", "by", "by_left", "by_right", "suffix", "coalesce", "allow_parallel",
    "force_parallel", "check_sortedness",
)  # fmt: skip
_TEMPO = (
    "left_prefix", "right_prefix", "tsPartitionVal", "fraction", "skipNulls", "sql_join_opt", "suppress_null_warning",
)  # fmt: skip
FOREIGN = {"pandas merge_asof": _PANDAS, "polars join_asof": _POLARS, "Tempo asofJoin": _TEMPO}


def is_foreign(name: str, left: Frame) -> bool:
    """Whether a keyword belongs to another library and is not a column of the left side."""
    return name not in left.schema and any(name in names for names in FOREIGN.values())


def check_foreign(
    method: str, left: Frame, right: Frame, arguments: Mapping[str, Any], own: Sequence[str] = ()
) -> None:
    """Raise if a keyword belongs to another library, with the call to write instead; `own` ones are Weft's too."""
    foreign = [name for name in arguments if name not in own and is_foreign(name, left)]
    direction = arguments.get("strategy") in get_args(Direction)
    if not foreign and not direction:
        return
    named = [*foreign, *(["strategy"] if direction else [])]
    raise ArgumentError(
        f"{method} takes no {format_list(f'{name}=' for name in named)}: "
        f"{'that is an argument' if len(named) == 1 else 'those are arguments'} of {_library(named)}",
        code="W0310",
        help=_Translation(arguments, left, right).call(),
    )


def missing_order(method: str, left: Frame, right: Frame, arguments: Mapping[str, Any]) -> ArgumentError:
    """Return the error for an as-of join without order columns."""
    return ArgumentError(
        f"{method} needs order=: the columns that order the rows of both sides",
        code="W0310",
        help=_Translation(arguments, left, right).call(),
    )


def _library(names: list[str]) -> str:
    counted = {lib: sum(n in known for n in names) for lib, known in FOREIGN.items()}
    # Weft has a strategy= too; a direction as its value is an argument of polars.
    if "strategy" in names:
        counted["polars join_asof"] += 1
    return max(counted, key=lambda lib: counted[lib])


@dataclass(frozen=True)
class _Translation:
    """The arguments of a call and the AsofSpec they translate to."""

    arguments: Mapping[str, Any]
    left: Frame
    right: Frame
    options: dict[str, str] = field(default_factory=dict)

    def call(self) -> str:
        """Return the call to paste."""
        keys = ", ".join(f"({a!r}, {b!r})" for a, b in self._keys())
        order = ", ".join(repr(name) for name in self._order())
        self._translate()
        after = {n: v for n, v in self.options.items() if n == "suffixes"}
        inside = {n: v for n, v in self.options.items() if n not in after}
        spec = "".join(f", {n}={v}" for n, v in inside.items())
        rest = "".join(f", {n}={v}" for n, v in after.items())
        return f"write asof_join(other, AsofSpec([{keys}], order=AsofOrder({order}){spec}){rest})"

    def _names(self, *candidates: str) -> list[str]:
        for name in candidates:
            value = self.arguments.get(name)
            if value is not None and name not in self.left.schema:
                return [str(v) for v in value] if isinstance(value, list | tuple) else [str(value)]
        return []

    def _keys(self) -> list[tuple[str, str]]:
        lefts = self._names("left_by", "by_left", "by")
        rights = self._names("right_by", "by_right", "by")
        if lefts or rights or self._names("on", "left_on", "right_on"):
            return list(zip(lefts or rights, rights or lefts, strict=False))
        times = set(self._order())  # no keys are given: the help names those of a natural join
        shared = [n for n in self.left.columns if n in self.right.schema and n not in times]
        return [(n, n) for n in shared]

    def _order(self) -> tuple[str, str]:
        left, right = self._names("left_on", "on"), self._names("right_on", "on")
        return (left[0] if left else self._time(self.left), right[0] if right else self._time(self.right))

    @staticmethod
    def _time(side: Frame) -> str:
        """Return the first time column of a side: probably the order column."""
        return next((f.name for f in side.schema.fields if f.dtype.is_temporal), "event_ts")

    def _counts_seconds(self) -> bool:
        """Whether a number as tolerance means seconds: Tempo counts them, and no time has a distance without a unit."""
        order = self.left.schema.find(self._order()[0])
        is_time = order is not None and self.left.schema.fields[order].dtype.is_temporal
        return is_time or any(n in _TEMPO for n in self.arguments)

    def _collide(self) -> bool:
        """Whether the two sides share a column that is neither a key nor a time, and needs a suffix."""
        resolved = {b for _, b in self._keys()} | {self._order()[1]}
        return any(n in self.left.schema for n in self.right.columns if n not in resolved)

    def _translate(self) -> None:
        arguments, options = self.arguments, self.options
        direction = (
            arguments.get("strategy")
            if arguments.get("strategy") in get_args(Direction)
            else arguments.get("direction")
        )
        if direction not in (None, "backward"):
            options["direction"] = repr(direction)
        if arguments.get("tolerance") is not None:
            options["tolerance"] = _distance(arguments["tolerance"], seconds=self._counts_seconds())
        elif direction == "nearest":  # other libraries allow any distance by default
            options["tolerance"] = "'unbounded'"
        if arguments.get("allow_exact_matches") is False:
            options["allow_exact_matches"] = "False"
        if arguments.get("skipNulls") is True:
            keys = {b for _, b in self._keys()} | {self._order()[1]}
            options["skip_nulls"] = repr(tuple(n for n in self.right.columns if n not in keys))
        if arguments.get("suffixes") is not None:
            options["suffixes"] = repr(tuple(arguments["suffixes"]))
        elif isinstance(arguments.get("suffix"), str):
            options["suffixes"] = repr(("", arguments["suffix"]))
        elif isinstance(arguments.get("right_prefix"), str):
            options["suffixes"] = repr(("", f"_{arguments['right_prefix']}"))
        elif self._collide():
            options["suffixes"] = repr(DEFAULT_SUFFIXES)


def _distance(value: Any, *, seconds: bool) -> str:
    """Return a tolerance as Weft writes it."""
    if type(value).__name__ == "timedelta64":  # numpy's, which need not be imported to be recognised
        value = value.astype("timedelta64[us]").item()
    if seconds and not isinstance(value, bool) and isinstance(value, int | float):
        return repr(f"{value} seconds")
    if isinstance(value, dt.timedelta):
        return repr(str(Duration(value // dt.timedelta(microseconds=1))))
    return repr(value)
