"""Run the job on its sample data and check the ledger. Type: python -m pytest"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_row_is_counted_once():
    command = [sys.executable, "-m", "weft", "-C", str(ROOT), "stream", "run", "orders_shipments"]
    result = subprocess.run([*command, "--final", "--fresh", "--json"], capture_output=True, text=True, check=True)
    (query,) = json.loads(result.stdout)["data"]["queries"]
    for side, counts in query["ledger"].items():
        total = sum(counts[name] for name in ("matched", "waiting", "unmatched", "late", "rejected", "evicted"))
        assert counts["in"] == total, side
        assert counts["waiting"] == 0, side
