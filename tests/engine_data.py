"""The sample workspace of the pipeline tests: the FX reporting project on small files.

``tests/data/fx`` holds it; a test takes a copy and changes what it is about.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
FX = DATA / "fx"

GL_ID = "6f1f7c1e-0000-4000-8000-000000000001"
RATES_ID = "6f1f7c1e-0000-4000-8000-000000000002"
BUDGETS_ID = "6f1f7c1e-0000-4000-8000-000000000003"
PROJECT_ID = "6f1f7c1e-0000-4000-8000-0000000000f1"

FX_ON = "transactions.currency = fx.from_currency AND fx.to_currency = 'USD' AND fx.rate_type = \\\"closing\\\""

CONVERT = f"""\
- seq: 10
  name: Convert to USD
  type: update
  arguments:
    joins:
      - alias: fx
        dataset_id: {RATES_ID}
        on: "{FX_ON}"
    assignments:
      - {{column: amount_reporting, expression: "transactions.amount_local * fx.rate"}}
"""
WRITE = """\
- seq: 20
  name: Write
  type: output
  arguments:
    destination: {datasource_id: warehouse, table: processed_gl}
    columns: [journal_id, line_number, currency, amount_local, amount_reporting]
    register_as_dataset: gl_usd
"""


def sample_workspace(folder: Path, changes: Mapping[str, str | None] | None = None, /, **named: str | None) -> Path:
    """Copy the FX workspace to ``folder/fx`` and return its root.

    `changes` gives files by their path in the workspace a new text; None removes the file.
    `named` says the same of files directly below a folder: ``projects__fx_reporting="..."``
    is ``projects/fx_reporting.yml``, ``data__rates_csv="..."`` is ``data/rates.csv``.
    """
    root = folder / "fx"
    shutil.copytree(FX, root)
    for path, text in {**(changes or {}), **{_path(n): t for n, t in named.items()}}.items():
        file = root / path
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return root


def _path(name: str) -> str:
    path = name.replace("__", "/")
    for ending in ("csv", "json"):
        if path.endswith(f"_{ending}"):
            return f"{path.removesuffix(f'_{ending}')}.{ending}"
    return f"{path}.yml"


def project_text(
    operations: str | Sequence[str] = (CONVERT, WRITE),
    *,
    selectors: Mapping[str, str] | None = None,
    **keys: Any,
) -> str:
    """Return a project file on the GL dataset; `operations` are YAML list entries, `keys` further keys.

    >>> print(project_text(["- {seq: 10, name: All, type: delete}"], status="draft"))
    project:
      id: 6f1f7c1e-0000-4000-8000-0000000000f1
      name: fx_reporting
      version: 1
      status: draft
      input_dataset_id: 6f1f7c1e-0000-4000-8000-000000000001
      operations:
        - {seq: 10, name: All, type: delete}
    <BLANKLINE>
    """
    head: dict[str, Any] = {
        "id": PROJECT_ID,
        "name": "fx_reporting",
        "version": 1,
        "status": "active",
        "input_dataset_id": GL_ID,
        **keys,
    }
    lines = ["project:", *(f"  {key}: {value}" for key, value in head.items())]
    if selectors:
        lines += ["  selectors:", *(f"    {name}: {text}" for name, text in selectors.items())]
    entries = [operations] if isinstance(operations, str) else operations
    lines.append("  operations:")
    lines += [f"    {line}" for entry in entries for line in entry.rstrip("\n").split("\n")]
    return "\n".join(lines) + "\n"
