"""Files of both sides that come at a steady pace, and how long each pair took from its later file to the output.

Two files of 2,000 orders and 1,600 shipments come each second.  A shipment comes in the file after its order's, so a
pair can be known when that file is there.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from pathlib import Path
from typing import Any

ORDERS = 2_000
SHIPPED = 1_600
START = 1_768_435_200_000
WARM_UP = 20
"""Files at the start that are not counted: code is compiled while they are read, and the backlog of that is worked off."""
REST_SECONDS = 10.0


class Pace:
    """Feeds the files of a run and reads from its output when each pair came out."""

    def __init__(self, scratch: Path, seconds: int) -> None:
        self.seconds = seconds
        self.sides = {name: scratch / name for name in ("orders", "shipments")}
        self.out = scratch / "out"
        for side in self.sides.values():
            side.mkdir()
        self._came: list[float] = []
        self._fed = threading.Event()

    def start(self) -> None:
        """Begin to write files, a pair of them each second."""
        threading.Thread(target=self._feed, daemon=True).start()

    def is_over(self) -> bool:
        """Whether everything has come, and a rest has passed in which pairs could come out."""
        return self._fed.is_set() and time.time() - self._came[-1] > REST_SECONDS

    def reported(self, there: dict[Path, float]) -> dict[str, Any]:
        """Return the waits of all pairs, given the output files and when each could be read."""
        waits = sorted(self._waits(there))
        return {
            "pairs": len(waits),
            "wanted": SHIPPED * (len(self._came) - 1 - WARM_UP),
            "p50_seconds": round(statistics.median(waits), 3) if waits else None,
            "p99_seconds": round(waits[int(len(waits) * 0.99)], 3) if waits else None,
            "events_a_second": ORDERS + SHIPPED,
        }

    def _feed(self) -> None:
        for number in range(self.seconds):
            began = time.monotonic()
            self._file("orders", number, [_order(number, i) for i in range(ORDERS)])
            if number:
                self._file("shipments", number, [_shipment(number, i) for i in range(SHIPPED)])
            self._came.append(time.time())
            time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))
        self._fed.set()

    def _file(self, side: str, number: int, rows: list[dict[str, Any]]) -> None:
        beside = self.sides[side] / f".{number:05}"
        beside.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        beside.rename(self.sides[side] / f"{number:05}.json")

    def _waits(self, there: dict[Path, float]) -> list[float]:
        waits = []
        for file, when in there.items():
            for line in file.read_text(encoding="utf-8").splitlines():
                shipment = json.loads(line).get("shipment_id")
                if shipment is not None and (number := int(shipment[1:5])) > WARM_UP:
                    waits.append(when - self._came[number])
        return waits


def _order(number: int, i: int) -> dict[str, Any]:
    at = START + number * 1000 + i % 1000
    return {"order_id": f"O{number:04}{i:05}", "customer_id": i, "amount": 1.5, "event_time": at}


def _shipment(number: int, i: int) -> dict[str, Any]:
    at = START + number * 1000 + i % 1000
    return {
        "shipment_id": f"S{number:04}{i:05}",
        "order_id": f"O{number - 1:04}{i:05}",
        "carrier": "UPS",
        "event_time": at,
    }
