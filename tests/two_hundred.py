"""A project of two hundred operations with mistakes planted among them: code, and the text that is wrong."""

from __future__ import annotations

from engine_data import project_text

_RATES = "{alias: fx, dataset_id: exchange_rates, on: 'currency = fx.from_currency'}"


def _set(column: str, expression: str, more: str = "", joins: str = "") -> str:
    joined = f"joins: [{joins}], " if joins else ""
    return f'type: update, {more}arguments: {{{joined}assignments: [{{column: {column}, expression: "{expression}"}}]}}'


def _sum(by: str, expression: str) -> str:
    return (
        f'type: aggregate, arguments: {{group_by: [{by}], aggregations: [{{column: t, expression: "{expression}"}}]}}'
    )


def _join(given: str) -> str:
    return _set("x", "1", joins=given)


PLANTED: dict[int, tuple[str, str, str]] = {
    3: (_set("x", "amont_local * 2"), "W0207", "amont_local"),
    8: (_set("x", "transactions.curency"), "W0207", "transactions.curency"),
    14: (_set("x", "tranactions.currency"), "W1208", "tranactions.currency"),
    20: (_set("x", "amount_local * )"), "W0201", ")"),
    27: (_set("x", "CONCAT('open)"), "W0202", "'open)"),
    33: (_set("x", "currency + 1"), "W0209", "currency + 1"),
    39: (_set("line_number", "amount_local"), "W0209", "amount_local"),
    45: (_set("x", "1 + SUM(amount_local)"), "W0210", "SUM(amount_local)"),
    51: (_set("x", "MEDIAN(1)"), "W0206", "MEDIAN"),
    57: (_set("x", "ROUND()"), "W0208", "ROUND()"),
    63: (_set("x", "DATE('2026-02-30')"), "W0204", "DATE('2026-02-30')"),
    69: (_set("x", "1", "selector: '{{NOBODY}}', "), "W0212", "{{NOBODY}}"),
    75: (_set("x", "1", "selector: currency, "), "W1406", "currency"),
    81: (_set("_row_id", "'a'"), "W1402", "_row_id"),
    87: (_set("Currency", "'EUR'"), "W1409", "Currency"),
    93: (_set("y", "NULL"), "W1404", '"NULL"'),
    99: (_join(_RATES.replace("exchange_rates", "exchange_rate")), "W1201", "exchange_rate"),
    105: (_join(_RATES.replace("on:", "dataset_version: 9, on:")), "W1203", "exchange_rates"),
    111: (_join(f"{_RATES}, {_RATES}"), "W1204", "fx"),
    117: (_join(_RATES.replace("fx", "transactions")), "W1205", "transactions"),
    123: (_join(_RATES.replace("currency = fx.from_currency", "currency")), "W1206", "currency"),
    129: (_join(_RATES.replace("from_currency", "from_currncy")), "W1207", "fx.from_currncy"),
    135: (_set("x", "amount_local * fx.rte", joins=_RATES), "W1208", "fx.rte"),
    141: (_sum("curency", "COUNT(*)"), "W0207", "curency"),
    147: (_sum("_row_id", "COUNT(*)"), "W1408", "_row_id"),
    153: (_sum("currency", "amount_local"), "W0218", "amount_local"),
    159: (_sum("currency", "SUM(SUM(amount_local))"), "W0211", "SUM(amount_local)"),
    165: ("type: append, arguments: {source: {dataset_id: budget}}", "W1213", "budget"),
    171: ("type: append, arguments: {source: {dataset_id: budgets}}", "W1410", "{dataset_id: budgets}"),
    177: ("type: delete, selector: 'amount_local = '", "W0201", ""),
    183: ("type: output, arguments: {destination: {path: a}, columns: [curency]}", "W1412", "curency"),
    189: ("type: output, arguments: {destination: {datasource_id: lake, table: a}}", "W1020", "lake"),
    195: (_set("x", "1", "selecter: TRUE, "), "W1002", "selecter"),
    198: ("type: filter, arguments: {}", "W1005", "filter"),
}
"""The mistakes by the operation that has them."""


def project(*, planted: bool) -> str:
    """Return the file of the project, with its mistakes or without."""
    wrong = {seq: text for seq, (text, _, _) in PLANTED.items()} if planted else {}
    return project_text(
        [
            f"- {{seq: {seq}, name: Step {seq}, {wrong.get(seq) or _set(f'c{seq}', f'amount_local * {seq}')}}}"
            for seq in range(1, 200)
        ]
        + ["- {seq: 200, name: Write, type: output, arguments: {destination: {path: out/gl}}}"]
    )
