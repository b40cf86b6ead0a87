"""Spark's exceptions turned back into ours."""

from __future__ import annotations

import re

from weft.errors import Code, JoinContractError
from weft.spark.contracts import PREFIX

_CONTRACT = re.compile(
    re.escape(PREFIX) + r" (W050[12]|W2207) (.*?\(spec [0-9a-f]{12}, join [0-9a-f]{12}\))", re.DOTALL
)

_RELAX = "correct the data, or relax relationship= or unmatched="
_NEXT = {"W2207": "correct the data, or leave such rows out: on_null_time='drop'"}


def contract_failure(failure: BaseException) -> JoinContractError | None:
    """Return the broken promise that a failed Spark job tells of, or None.

    ::

        try:
            relation.df.collect()
        except Exception as failure:
            broken = weft.contract_failure(failure)
    """
    found = _CONTRACT.search(str(failure))
    if found is None:
        return None
    code: Code = found[1]  # type: ignore[assignment]  # the pattern names our codes
    return JoinContractError(found[2], code=code, help=_NEXT.get(code, _RELAX))
