"""The selectors that a project names: read once, checked where operations use them, else on the input."""

from __future__ import annotations

from collections.abc import Mapping

from weft.core.types import BOOLEAN, NULL
from weft.errors import Diagnostic, ExpressionError
from weft.expr import Expr, Lit, check, interpolate, parse
from weft.expr import selectors as selectors_in
from weft.pipelines.model.project import Project
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.resolved import Working
from weft.pipelines.plan.scopes import OperationScope


def named_selectors(project: Project, failures: list[Failure]) -> Mapping[str, Expr]:
    """Return the named selectors as trees; one that does not read stands for anything, so that it is told once."""
    found: dict[str, Expr] = {}
    for name, said in project.selectors.items():
        try:
            found[name] = parse(said.text, source=said.at)
        except ExpressionError as problem:
            failures += [Failure.of(d, None, named_selector=True) for d in problem.diagnostics]
            found[name] = Lit(None, NULL)
    return found


def check_unused(project: Project, working: Working, context: PlanContext, failures: list[Failure]) -> None:
    """Check the selectors that no operation uses on the columns of the input."""
    used = _used_selectors(project, context.selectors)
    scope = OperationScope(working=working, lookups=context.lookups, elsewhere=context.aliases)
    for name, tree in context.selectors.items():
        if name in used or isinstance(tree, Lit):
            continue
        try:
            typed = check(interpolate(tree, context.selectors), scope)
        except ExpressionError as problem:
            failures += [Failure.of(d, None, named_selector=True) for d in problem.diagnostics]
            continue
        if typed.dtype not in (BOOLEAN, NULL):
            finding = Diagnostic(
                "W1406",
                f"selector {name!r} gives {typed.dtype}, a condition is wanted",
                help="compare it with something, as in ... = 1",
                at=project.selectors[name].at,
            )
            failures.append(Failure.of(finding, None, named_selector=True))


def _used_selectors(project: Project, selectors: Mapping[str, Expr]) -> set[str]:
    texts = str([op.to_dict() for op in project.operations])
    used = {name for name in selectors if f"{{{{{name}}}}}" in texts.replace(" ", "")}
    reached: set[str] = set()
    while used - reached:
        name = (used - reached).pop()
        reached.add(name)
        used |= {s.name for s in selectors_in(selectors[name]) if s.name in selectors}
    return used
