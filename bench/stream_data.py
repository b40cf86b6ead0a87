"""Orders and shipments for the streaming benchmark: seeded JSON files, the same for every engine.

A day of orders; four of five are shipped, 1 to 50 minutes later.  Each file is a stretch of time, and rows come
up to 20 seconds out of order.  Files are written with growing times of writing: Spark reads them in that order.
Flink's file source reads files in an order of its own, which makes most rows late; so the same rows are in two files
a side too, one for each slot, each in the order of time, as two partitions of a topic would hold them.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data import folder

SEED = 20260115
START = 1_768_435_200_000
"""2026-01-15 in milliseconds, where all times begin."""
DAY = 86_400_000
SHIPPED = 0.8
DISORDER = 20_000
FILES = 22
SLOTS = 2
CARRIERS = ("FedEx", "UPS", "USPS", "DHL")


@dataclass(frozen=True, slots=True)
class StreamData:
    """The files of both sides, and the result that a join of them must have."""

    place: Path
    rows: tuple[int, int]

    def folders(self, *, slots: bool = False) -> dict[str, str]:
        """Return the folders of both sides: cut by time, or a file for each slot."""
        below = self.place / "slots" if slots else self.place
        return {side: str((below / side).resolve()) for side in ("orders", "shipments")}

    @property
    def events(self) -> int:
        """Rows of both sides."""
        return sum(self.rows)


def stream_data(orders: int, *, stretches: int | None = None) -> StreamData:
    """Return both sides, writing them when they are not there yet.

    Files hold equal numbers of rows, or with `stretches` equal stretches of time, so that both sides keep step.
    """
    place = folder() / "-".join(map(str, ("streams", orders, SEED, *filter(None, [stretches]))))
    about = place / "about.json"
    if not about.exists():
        unfinished = place.with_name(f".tmp-{place.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        rows = _write(unfinished, orders, stretches)
        (unfinished / "about.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        unfinished.rename(place)
    first, second = json.loads(about.read_text(encoding="utf-8"))["rows"]
    return StreamData(place, (first, second))


def _write(place: Path, orders: int, stretches: int | None) -> tuple[int, int]:
    rng = np.random.default_rng(SEED)
    times = np.sort(rng.integers(0, DAY, orders))
    ids = np.arange(orders)
    amounts = rng.integers(100, 100_000, orders)
    shipped = np.flatnonzero(rng.random(orders) < SHIPPED)
    later = times[shipped] + rng.integers(60_000, 3_000_000, len(shipped))
    if stretches is not None:  # both sides end with the day, so that neither runs on alone
        shipped, later = shipped[later < DAY], later[later < DAY]
    carriers = rng.integers(0, len(CARRIERS), len(shipped))

    def order(i: int) -> str:
        return (
            f'{{"order_id":"O{ids[i]:07}","customer_id":{ids[i] % 9973},"amount":{amounts[i] / 100:.2f},'
            f'"event_time":{START + times[i]}}}'
        )

    def shipment(i: int) -> str:
        return (
            f'{{"shipment_id":"S{i:07}","order_id":"O{shipped[i]:07}","carrier":"{CARRIERS[carriers[i]]}",'
            f'"event_time":{START + later[i]}}}'
        )

    for side, line, at in (("orders", order, times), ("shipments", shipment, later)):
        came = at + rng.integers(0, DISORDER, len(at))
        arrival = np.argsort(came, kind="stable")
        _files(place, side, [line(i) for i in arrival], _cuts(came[arrival], stretches))
    return orders, len(shipped)


def _cuts(came: NDArray[np.int64], stretches: int | None) -> NDArray[np.int64]:
    """Return where the files begin, but for the first."""
    if stretches is None:
        return np.cumsum([len(part) for part in np.array_split(came, FILES)])[:-1]
    return np.searchsorted(came, np.linspace(0, DAY, stretches + 1)[1:-1])


def _files(place: Path, side: str, lines: list[str], cuts: NDArray[np.int64]) -> None:
    (place / side).mkdir()
    for number, part in enumerate(np.split(np.arange(len(lines)), cuts)):
        _file(place / side / f"{number:03}.json", [lines[i] for i in part], number)
    (place / "slots" / side).mkdir(parents=True)
    for slot in range(SLOTS):
        _file(place / "slots" / side / f"{slot}.json", lines[slot::SLOTS], slot)


def _file(file: Path, lines: list[str], number: int) -> None:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
