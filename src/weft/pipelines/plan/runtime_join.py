"""The condition of a runtime join: terms that are keys, filters of the joined side, and all others.

Before::

    transactions.currency = fx.from_currency AND fx.to_currency = 'USD' AND transactions.amount > fx.least

After::

    keys       transactions.currency = fx.from_currency
    own        fx.to_currency = 'USD'                 filters fx before the join
    residual   transactions.amount > fx.least         an extension, tested on each pair
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.core.names import WORD, fold
from weft.core.source import Source
from weft.core.types import BOOLEAN, NULL
from weft.errors import Code, Diagnostic, ExpressionError, RuntimeJoinError, SourceLocation, WeftError
from weft.expr import Binary, Column, Expr, Logic, Ref, Scope, check, references
from weft.expr.render import source_text
from weft.pipelines.model.operation import RuntimeJoin
from weft.pipelines.model.values import LocatedText
from weft.pipelines.plan.catalog import MissingDataset
from weft.pipelines.plan.scopes import Slot

LONGEST_ALIAS = 64
_KEPT = ("W1207", "W0212", "W0213", "W1213")
"""Codes that findings keep inside a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionParts:
    """The terms of a condition by their role; a key is a pair of a working expression and a column of the alias."""

    keys: tuple[tuple[Expr, Ref], ...]
    own: Expr | None
    residual: Expr | None
    extensions: tuple[str, ...]


def compile_failure(message: str, help: str = "", at: SourceLocation | None = None) -> Diagnostic:
    """Return the finding for a condition that does not compile."""
    return Diagnostic("W1206", f"Join condition failed to compile: {message}", help=help, at=at)


def as_condition_findings(problem: WeftError) -> tuple[Diagnostic, ...]:
    """Return findings of an expression as findings of a join condition."""
    return tuple(d if d.code in _KEPT else compile_failure(d.message, d.help, d.at) for d in problem.diagnostics)


def read_condition(on: Expr, alias: str, scope: Scope, *, strict: bool = False) -> ConditionParts:
    """Return the terms of a condition; raise `RuntimeJoinError` with all findings.

    `strict` rejects extensions of the specification: terms across both sides that are not an equality of two columns,
    lookups, and earlier joins.
    """
    try:
        typed = check(on, scope)
    except ExpressionError as problem:
        raise RuntimeJoinError(as_condition_findings(problem)) from problem
    if typed.dtype not in (BOOLEAN, NULL):
        raise RuntimeJoinError(
            [compile_failure(f"it is of type {typed.dtype}, not boolean", "compare two columns", _at(on))]
        )
    keys: list[tuple[Expr, Ref]] = []
    own: list[Expr] = []
    residual: list[Expr] = []
    extensions: list[str] = []
    findings: list[Diagnostic] = []
    for term in _terms(on):
        sides = _sides(term, alias, scope)
        if alias not in sides:
            findings.append(
                compile_failure(
                    f"the term {source_text(term)} never mentions {alias!r}",
                    "move it into the selector of the operation",
                    _at(term),
                )
            )
        elif sides == {alias}:
            own.append(term)
        elif (key := _key(term, alias, scope)) is not None:
            keys.append(key)
            extensions += _key_extensions(key[0], scope)
        else:
            residual.append(term)
            extensions.append(f"a term across both sides: {source_text(term)}")
    if strict and extensions:
        findings += [
            compile_failure(
                f"{extension} (conformance: strict)",
                "write AND between equalities of two columns and terms on the alias alone, "
                "or set `conformance: extended` in weft.yml",
                _at(on),
            )
            for extension in dict.fromkeys(extensions)
        ]
    if not keys and not findings:
        message = f"it needs an equality between a working column and a column of {alias!r}"
        findings.append(compile_failure(message, f"add for example currency = {alias}.code", _at(on)))
    if findings:
        raise RuntimeJoinError(findings)
    return ConditionParts(
        keys=tuple(keys),
        own=_conjunction(own),
        residual=_conjunction(residual),
        extensions=tuple(dict.fromkeys(extensions)),
    )


def _terms(on: Expr) -> Iterator[Expr]:
    if isinstance(on, Logic) and on.op == "AND":
        for arg in on.args:
            yield from _terms(arg)
    else:
        yield on


def _conjunction(terms: Sequence[Expr]) -> Expr | None:
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else Logic("AND", tuple(terms))


def _sides(term: Expr, alias: str, scope: Scope) -> set[str]:
    """Return the sources of the columns in a term: the alias itself, or ``w``, ``l``, ``j`` for all others."""
    sides = set()
    for ref in references(term):
        slot = slot_of(ref, scope)
        sides.add(alias if slot[:2] == ("j", alias) else slot[0])
    return sides


def slot_of(ref: Ref, scope: Scope) -> Slot:
    """Return the slot of a column in a condition that was checked before."""
    column = scope.resolve(ref.qualifier, ref.name)
    assert isinstance(column, Column)  # noqa: S101  # the whole condition was checked before
    assert isinstance(column.slot, tuple)  # noqa: S101  # every scope of an operation has such slots
    return column.slot


def _key(term: Expr, alias: str, scope: Scope) -> tuple[Expr, Ref] | None:
    if not isinstance(term, Binary) or term.op != "=":
        return None
    # The working side may be computed, since it is added as a column before the join; the other is read as it is.
    for mine, theirs in ((term.left, term.right), (term.right, term.left)):
        if isinstance(theirs, Ref) and slot_of(theirs, scope)[:2] == ("j", alias):
            return None if alias in _sides(mine, alias, scope) else (mine, theirs)
    return None


def _key_extensions(mine: Expr, scope: Scope) -> Iterator[str]:
    if not isinstance(mine, Ref):
        yield f"a computed key: {source_text(mine)}"
    for ref in references(mine):
        kind = slot_of(ref, scope)[0]
        if kind == "l":
            yield f"a lookup in the condition: {source_text(ref)}"
        elif kind == "j":
            yield f"an earlier join: {source_text(ref)}"


def _at(node: Expr) -> Source | None:
    if node.span is not None:
        return node.span.place
    inner = [n.span for n in references(node) if n.span is not None]
    return inner[0].place if inner else None


def missing_join_dataset_error(missing: MissingDataset, at: Source | None) -> RuntimeJoinError:
    """Return the error VR-001, VR-002 or VR-003 for the dataset of a join."""
    name, version = missing.name, missing.version
    code: Code
    # The words of these messages are fixed by the specification, also where others of Weft read differently.
    if missing.kind == "dataset":
        code, message = "W1201", f"Dataset {name} not found in MetadataStore"
    elif missing.kind == "disabled":
        code, message = "W1202", f"Dataset {name} is disabled and cannot be used in joins"
    else:
        code, message = "W1203", f"Dataset {name} version {version} not found"
    return RuntimeJoinError(message, code=code, help=missing.next_step(), at=at)


def check_alias(join: RuntimeJoin, before: Sequence[str], tables: Sequence[str]) -> Iterator[Diagnostic]:
    """Yield findings about an alias: its format, VR-004 and VR-005."""
    text: LocatedText = join.alias
    alias = text.text
    if not WORD.fullmatch(alias) or len(alias) > LONGEST_ALIAS:
        yield Diagnostic(
            "W1210",
            f"invalid alias {alias!r}",
            help=f"an alias has up to {LONGEST_ALIAS} letters, digits and underscores and does not start with a digit",
            at=text.at,
        )
    if fold(alias) in map(fold, before):
        yield Diagnostic(
            "W1204",
            f"Join alias '{alias}' is already used in this operation",
            help="give each join of an operation its own alias",
            at=text.at,
        )
    if fold(alias) in map(fold, tables):
        yield Diagnostic(
            "W1205",
            f"Join alias '{alias}' conflicts with working dataset table name",
            help="choose an alias that is not a table or a lookup of the input dataset",
            at=text.at,
        )
