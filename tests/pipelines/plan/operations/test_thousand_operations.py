"""A project of a thousand operations is planned in seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipelines import WRITE_ALL, Site, join, site, update
from weft.pipelines.model.operation import Operation, Update
from weft.pipelines.model.values import LocatedText


def thousand(found: Site) -> Site:
    """Return the project with its two updates repeated a thousand times, each with columns of its own."""
    joined, plain, output = found.project.operations
    operations: list[Operation] = []
    for n in range(1000):
        op = joined if n % 10 == 0 else plain
        assert isinstance(op.arguments, Update)
        first = op.arguments.assignments[0]
        column = replace(first, column=LocatedText(f"x{n % 40}"))
        arguments = replace(op.arguments, assignments=(column,))
        operations.append(replace(op, id=f"op-{n}", seq=n + 1, arguments=arguments))
    project = replace(found.project, operations=(*operations, replace(output, seq=2000)))
    return replace(found, project=project)


def test_a_thousand_operations_are_planned(tmp_path: Path) -> None:
    fx = join("fx", "exchange_rates", "currency = fx.from_currency AND fx.rate_type = 'closing'")
    found = thousand(
        site(
            tmp_path,
            [
                update(joins=fx, x="amount_local * fx.rate"),
                update(20, selector="currency = 'EUR' AND {{BIG}}", x="amount_local * 1.05 + line_number"),
                WRITE_ALL,
            ],
            selectors={"BIG": "'amount_local > 100 OR line_number = 1'"},
        )
    )
    assert len(found.plan().operations) == 1001
