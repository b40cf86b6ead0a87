"""Row counts of operations, collected while their outputs are written.

Before::

    update 10 (selector), aggregate 20, delete 30, output 40          no count() anywhere

After: hidden columns record the changes of a row, and one observe before the write counts them::

    __weft_c10   the selector of 10 matched       count_if(__weft_c10)
    __weft_born  20 on the rows that 20 added     count_if(__weft_born = 20)
    __weft_died  30 on the rows that 30 deleted   count_if(__weft_died = 30)
    all rows, so rows before 30 are               count(1), rows before 20 are count(1) - count_if(__weft_born = 20)
"""

from __future__ import annotations

import operator
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from weft.core.types import BOOLEAN, LONG, Field
from weft.expr.spark.frames import functions_of, observation_of
from weft.joins.facts import JoinCounts
from weft.pipelines.plan.operations.resolved import HIDDEN
from weft.pipelines.store.records import OperationCounts as OperationCounts  # noqa: PLC0414  # read with `Counts`

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BORN = Field(f"{HIDDEN}_born", LONG)
DIED = Field(f"{HIDDEN}_died", LONG)
_PATIENCE = 30.0
"""Seconds to wait for the counts of an action that has ended."""


Key = tuple[Any, ...]
"""What one number counts.

``("rows",)`` all rows, ``("out",)`` rows that are written, ``("flag", column)``, ``("born", seq)``, ``("died", seq)``,
``("copies", seq, column)``, and ``("visible", n)`` the rows that were there after n events.
"""
ROWS: Key = ("rows",)
OUT: Key = ("out",)
JoinKeys = tuple[tuple[str, Key, Key | None], ...]
"""For each join its alias, what counts its matched rows, and what counts those with several matches."""


@dataclass(frozen=True, slots=True)
class Event:
    """An operation that changes which rows there are; `flag` marks the copies that a join made."""

    kind: Literal["born", "died", "fan"]
    seq: int
    flag: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """The counts of one operation."""

    seq: int
    rows_in: Key
    rows_out: Key
    changed: Key
    joins: JoinKeys = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """What the hidden columns of a working set count, in the order of its operations."""

    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()

    def update(self, seq: int, flag: str | None, joins: JoinKeys = (), *, fan: str = "") -> Tally:
        """Return the tally with an update; without a flag it changes every visible row."""
        events = (*self.events, Event("fan", seq, fan)) if fan else self.events
        changed = _visible_after(self.events) if flag is None else ("flag", flag)
        return self._with(seq, events, changed, joins)

    def added(self, seq: int) -> Tally:
        """Return the tally with an operation that adds rows."""
        return self._with(seq, (*self.events, Event("born", seq)), ("born", seq))

    def deleted(self, seq: int) -> Tally:
        """Return the tally with an operation that deletes rows."""
        return self._with(seq, (*self.events, Event("died", seq)), ("died", seq))

    def written(self, seq: int) -> Tally:
        """Return the tally with an output."""
        return self._with(seq, self.events, OUT)

    def _with(self, seq: int, events: tuple[Event, ...], changed: Key, joins: JoinKeys = ()) -> Tally:
        entry = Entry(seq, _visible_after(self.events), _visible_after(events), changed, joins)
        return Tally(events, (*self.entries, entry))

    def keys(self, *, out: bool) -> tuple[Key, ...]:
        """Return what must be counted, each once; `out` says whether an output leaves rows out.

        Rows that were there at some moment are computed from all rows and what each event added or took.
        """
        keys: dict[Key, None] = {ROWS: None} if self.entries else {}
        for entry in self.entries:
            for _, matched, multiple in entry.joins:
                keys |= dict.fromkeys(key for key in (matched, multiple) if key is not None)
            if entry.changed[0] == "flag" or (entry.changed == OUT and out):
                keys[entry.changed] = None
        return (*keys, *(_counted(event) for event in self.events if self.entries))

    def numbers(self, counted: Mapping[Key, int]) -> Mapping[Key, int]:
        """Return every number that entries name, from those that were counted."""
        numbers = {OUT: counted.get(ROWS, 0), **counted}
        # Backwards from the end: what is visible then is known, and each event says what it added or took.
        seen = counted.get(ROWS, 0) - sum(counted.get(_counted(e), 0) for e in self.events if e.kind == "died")
        numbers["visible", len(self.events)] = seen
        for epoch in range(len(self.events) - 1, -1, -1):
            event = self.events[epoch]
            change = counted.get(_counted(event), 0)
            seen += change if event.kind == "died" else -change
            numbers["visible", epoch] = seen
        return numbers

    def condition(self, key: Key, F: ModuleType, out: Column | None) -> Column | None:
        """Return which rows count for a key; None for all of them."""
        match key:
            case ("born", int() as seq):
                return _all([F.col(BORN.name) == F.lit(seq), *self._no_copies(seq, F)])
            case ("died", int() as seq):
                return _all([F.col(DIED.name) == F.lit(seq), *self._no_copies(seq, F)])
            case ("copies", int() as seq, str() as name):
                return _all([F.col(name), *self._no_copies(seq, F)])
            case ("flag", str() as name):
                return _all([F.col(name), *self._no_copies(_seq_of(name), F, itself=True)])
            case ("out",):
                return out
            case _:
                return None

    def _no_copies(self, seq: int, F: ModuleType, *, itself: bool = False) -> list[Column]:
        """Return the conditions that exclude copies that later joins made."""
        fans = [e for e in self.events if e.kind == "fan"]
        return [_not(F, e.flag) for e in fans if e.seq > seq or (itself and e.seq == seq)]


def _counted(event: Event) -> Key:
    return ("copies", event.seq, event.flag) if event.kind == "fan" else (event.kind, event.seq)


def _visible_after(events: tuple[Event, ...]) -> Key:
    return ("visible", len(events))


def flag_field(seq: int) -> Field:
    """Return the column that marks the rows an update changed."""
    return Field(f"{HIDDEN}_c{seq}", BOOLEAN)


def join_field(seq: int, index: int, what: Literal["m", "n", "f"]) -> Field:
    """Return the column that marks rows with a match, with several, or that are copies."""
    return Field(f"{HIDDEN}_{what}{seq}_{index}", BOOLEAN)


def _seq_of(flag: str) -> int:
    return int(flag.removeprefix(HIDDEN)[2:].partition("_")[0])


def _not(F: ModuleType, flag: str) -> Column:
    # The flag is NULL on rows that were added after it was computed.
    condition: Column = ~F.coalesce(F.col(flag), F.lit(False))
    return condition


def _all(conditions: list[Column]) -> Column:
    return reduce(operator.and_, conditions)


class Counts:
    """Counts of a run, filled as its outputs and checkpoints are written.

    `observed` wraps the rows of one action; after the action `result` has its numbers.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Any, Tally, dict[Key, str]]] = []
        self._counts: dict[int, OperationCounts] = {}

    def observed(self, df: DataFrame, tally: Tally, out: Column | None = None) -> DataFrame:
        """Return the rows with their counts taken on the way; `out` says which of them are written."""
        keys = tally.keys(out=out is not None)
        if not keys:
            return df
        F = functions_of(df)
        names = {key: f"n{i}" for i, key in enumerate(keys)}
        metrics = []
        for key, name in names.items():
            condition = tally.condition(key, F, out)
            counted = F.count(F.lit(1)) if condition is None else F.count_if(condition)
            metrics.append(counted.alias(name))
        # A name of its own, so that the numbers of two actions of a session are not mixed up.
        observation = observation_of(df, f"weft_{uuid.uuid4().hex}")
        self._waiting.append((observation, tally, names))
        return df.observe(observation, *metrics)

    def result(self) -> Mapping[int, OperationCounts]:
        """Return the counts of every operation whose rows went through a finished action, by seq.

        Call it after an action; before one has run, the call waits for it.
        """
        while self._waiting:
            observation, tally, names = self._waiting.pop(0)
            numbers = _read_observation(observation)
            counted = {key: int(numbers.get(name) or 0) for key, name in names.items()}
            for counts in _read(tally, tally.numbers(counted)):
                self._counts[counts.seq] = counts
        return dict(sorted(self._counts.items()))

    def forget(self) -> None:
        """Drop the observations of a failed action."""
        self._waiting.clear()


def _read_observation(observation: Any) -> Mapping[str, Any]:
    """Return the numbers of an observation; empty when Spark skipped the action because there are no rows."""
    answers: list[Mapping[str, Any]] = []
    failures: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(dict(observation.get))
        except Exception as failure:  # noqa: BLE001  # raised by the thread that waits
            failures.append(failure)

    # `Observation.get` has no timeout, and Spark reports nothing for a plan that it replaced by an empty relation.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    if failures:
        raise failures[0]
    return answers[0] if answers else {}


def _read(tally: Tally, numbers: Mapping[Key, int]) -> Iterator[OperationCounts]:
    for entry in tally.entries:
        changed = numbers[entry.changed]
        joins = tuple(
            JoinCounts(
                alias=alias,
                matched=numbers[matched],
                unmatched=changed - numbers[matched],
                multiple=0 if multiple is None else numbers[multiple],
            )
            for alias, matched, multiple in entry.joins
        )
        yield OperationCounts(
            seq=entry.seq,
            rows_in=numbers[entry.rows_in],
            rows_out=numbers[entry.rows_out],
            rows_changed=changed,
            joins=joins,
        )
