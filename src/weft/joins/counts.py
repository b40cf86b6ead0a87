"""JoinCounts: how many rows of an operation have a match in a joined table."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.documents import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCounts(Document):
    """How many of the rows that an operation changed have a match, none, or more than one.

    >>> JoinCounts(alias="fx", matched=9, unmatched=1, multiple=0).to_dict()
    {'alias': 'fx', 'matched': 9, 'unmatched': 1, 'multiple': 0}
    """

    alias: str
    matched: int
    unmatched: int = 0
    multiple: int = 0
