"""What a stream join gave: its rows, its pairs and a sum that mix-ups change, read from the files it wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PRIME = 1_000_003


def rows_of(place: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the JSON files below a folder that readers may see."""
    for file in sorted(place.rglob("part-*")):
        if file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(place).parts):
            with file.open(encoding="utf-8") as lines:
                yield from (json.loads(line) for line in lines)


def checksum_of(place: Path) -> dict[str, int]:
    """Return the rows, the pairs and a weighted sum over the pairs; rows without a partner add nothing to it."""
    rows = matched = total = 0
    for row in rows_of(place):
        rows += 1
        if row.get("shipment_id") is not None:
            matched += 1
            total += (int(row["order_id"][1:]) * 31 + int(row["shipment_id"][1:])) % PRIME
    return {"rows": rows, "matched": matched, "sum": total}
