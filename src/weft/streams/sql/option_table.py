"""The options as a table for the documentation, made from the data that reads them."""

from __future__ import annotations

from weft.streams.sql.option_values import Kind
from weft.streams.sql.options import OPTIONS, Option

_VALUES: dict[Kind, str] = {
    "text": "text",
    "any_text": "text",
    "word": "",
    "flag": "`true` or `false`",
    "count": "whole number, 1 or more",
    "duration": "duration",
    "signed_duration": "duration, may be negative",
    "length": "duration above zero",
    "bounds": "one or two durations",
    "character": "one character",
    "zone": "time zone",
    "offsets": "`earliest`, `latest`, JSON",
    "time_format": "",
    "names": "columns with commas",
}
_TITLES = {"stream": "stream", "table": "table", "sink": "sink", "join": "join", "job": "SET"}


def option_table() -> str:
    """Return the table of `OPTIONS` in Markdown.

    >>> print(option_table().splitlines()[2])
    | `connector` | stream | `files`, `kafka`, `rate`, `memory` |  | where rows come from; ...
    """
    head = ("| option | of | value | default | what it says |", "|---|---|---|---|---|")
    return "\n".join((*head, *map(_row, OPTIONS)))


def _row(option: Option) -> str:
    owners = ", ".join(title for owner, title in _TITLES.items() if owner in option.owners)
    words = ", ".join(f"`{word}`" for word in option.words)
    needs = f" ({', '.join(option.needs)})" if option.needs else ""
    default = "" if option.default is None else "empty" if option.default == "" else f"`{option.default}`"
    value = words or _VALUES[option.kind]
    return f"| `{option.name}` | {owners}{needs} | {value} | {default} | {option.doc} |"
