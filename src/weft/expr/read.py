"""From text to tree: sqlglot's nodes are let through one kind at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from weft.core.duration import Duration
from weft.core.names import listed
from weft.core.source import Source
from weft.core.types import BOOLEAN, DATE, INTERVAL, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, parse_type
from weft.errors import ArgumentError, Code, Diagnostic, ExpressionError, WeftError
from weft.expr import functions
from weft.expr.ast import (
    Between,
    Binary,
    BinaryOp,
    Call,
    Case,
    Cast,
    Expr,
    In,
    IsNull,
    Like,
    Lit,
    Logic,
    LogicOp,
    Negate,
    Not,
    Origin,
    Placeholder,
    Ref,
    Selector,
    Span,
    When,
)
from weft.expr.dialect import DIALECTS, Dialect, tokenize, without_comments
from weft.expr.grammar import syntax_tree, syntax_tree_from
from weft.expr.literals import read_date, read_number, read_time
from weft.expr.patterns import pattern_problem
from weft.expr.words import describe_refused

LONGEST = 10_000
"""How many characters an expression may have."""

_MOST_ERRORS = 20  # a text full of refused tokens needs no message of megabytes
_T = TypeVar("_T")
_BINARY: dict[type[exp.Expr], BinaryOp] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_LOGIC: dict[type[exp.Expr], LogicOp] = {exp.And: "AND", exp.Or: "OR"}


def parse(text: str, *, dialect: Dialect = "pipeline", source: Source | None = None) -> Expr:
    """Read one expression; whatever is wrong with the text is an `ExpressionError`.

    ``pipeline`` is the language of operations: both quotes are text, ``{{NAME}}`` names a
    selector.  ``fragment`` is the language of join predicates: double quotes are names, ``?``
    and ``:name`` are filled in by `bind`.  ``stream`` is the language of streaming SQL: names as in
    fragments, no placeholders, and comments.  `source` says where the text stands, for messages.

    >>> parse("a.x = 1")
    Binary(op='=', left=Ref(qualifier='a', name='x'), right=Lit(value=1, dtype=Scalar(name='integer', collation='')))
    >>> parse("a.x = ")
    Traceback (most recent call last):
        ...
    weft.errors.ExpressionError: error[W0201]: expected a value: a column, a number, a text, ...
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"an expression is a text, not {type(text).__name__}", help="write for example 'price * 2'"
        )
    if dialect not in DIALECTS:
        raise ArgumentError(f"unknown dialect {dialect!r}", help=f"dialects are {listed(DIALECTS)}")
    if dialect == "stream":
        text = _uncommented(text, source)
    origin = Origin(text, source)
    return _read(origin, dialect, lambda: (_syntax_tree(origin, dialect), 0))[0]


def parse_prefix(tokens: list[Token], index: int, origin: Origin) -> tuple[Expr, int]:
    """Read the expression that starts at a token of a statement; return it and the token after it.

    >>> text = "o.total > 5 EMIT CHANGES"
    >>> expr, after = parse_prefix(tokenize(text, "stream")[0], 0, Origin(text))
    >>> after
    5
    """
    return _read(origin, "stream", lambda: syntax_tree_from(tokens, index, origin))


def _read(origin: Origin, dialect: Dialect, tree: Callable[[], tuple[exp.Expr, int]]) -> tuple[Expr, int]:
    reader = _Reader(origin, dialect)
    try:
        found, after = tree()
        expr = reader.read(found)
    except (SqlglotError, RecursionError) as cause:
        raise ExpressionError(
            f"the expression does not read: {cause}", help="write it in smaller parts", at=_whole(origin)
        ) from cause
    if expr is None or reader.errors:
        raise ExpressionError(reader.errors)
    return expr, after


def _uncommented(text: str, source: Source | None) -> str:
    """Return the text with blanks for its comments."""
    plain, unclosed = without_comments(text)
    if unclosed is not None:
        raise ExpressionError(
            "the comment that starts here is not closed",
            code="W0202",
            help="add the missing */",
            at=Span(unclosed, len(text), Origin(text, source)).place,
        )
    return plain


def _syntax_tree(origin: Origin, dialect: Dialect) -> exp.Expr:
    text = origin.text
    if not text.strip():
        raise ExpressionError(
            "the expression is empty", help="write a value or a condition", at=_whole(origin)
        )
    if len(text) > LONGEST:
        raise ExpressionError(
            f"the expression has {len(text):,} characters; the most is {LONGEST:,}",
            help="compute a part of it in a column of its own",
            at=_whole(origin),
        )
    tokens, complete = tokenize(text, dialect)
    errors = []
    for token in tokens:
        if refused := describe_refused(token):
            at = Span(token.start, token.end + 1, origin).place
            errors.append(Diagnostic("W0205", f"{refused[0]} is not allowed", help=refused[1], at=at))
        if len(errors) == _MOST_ERRORS:
            break
    if errors:
        raise ExpressionError(errors)
    if not complete:
        raise _unclosed(origin, tokens[-1].end + 1 if tokens else 0)
    return syntax_tree(tokens, origin, fragment=dialect == "fragment")


def _whole(origin: Origin) -> Source:
    return Span(0, len(origin.text), origin).place


def _unclosed(origin: Origin, after: int) -> ExpressionError:
    start = after + len(origin.text[after:]) - len(origin.text[after:].lstrip())
    mark = origin.text[start : start + 1]
    at = Span(start, len(origin.text), origin).place
    what = "name" if mark == "`" else "text"
    return ExpressionError(
        f"the {what} that starts here is not closed",
        code="W0202",
        help=f"add the missing {mark}; inside it is written twice",
        at=at,
    )


class _Reader:
    """Turns sqlglot's tree into ours and gathers what is not allowed."""

    def __init__(self, origin: Origin, dialect: Dialect) -> None:
        self.origin = origin
        self.fragment = dialect == "fragment"
        self.stream = dialect == "stream"
        self.errors: list[Diagnostic] = []

    def span(self, node: exp.Expr) -> Span:
        return Span(node.meta["start"], node.meta["end"], self.origin)

    def fail(self, code: Code, message: str, at: Span, help: str = "") -> None:
        self.errors.append(Diagnostic(code, message, help=help, at=at.place))

    def attempt(self, node: exp.Expr, code: Code, read: Callable[[], _T]) -> _T | None:
        """Run a reader of literals or types and give its error the place of the node."""
        try:
            return read()
        except WeftError as error:
            code = error.code if error.code in ("W0203", "W0204") else code
            self.fail(code, error.message, self.span(node), error.help)
            return None

    def read(self, node: exp.Expr) -> Expr | None:
        """Return our node, or None after noting why there is none."""
        read = _READERS.get(type(node))
        if read is None:
            self.fail("W0205", f"{type(node).__name__} is not allowed in an expression", self.span(node))
            return None
        return read(self, node)

    def all(self, nodes: list[exp.Expr]) -> tuple[Expr, ...] | None:
        """Return our nodes, or None when one was refused; all are looked at."""
        found = [self.read(n) for n in nodes]
        good = tuple(n for n in found if n is not None)
        return good if len(good) == len(found) else None

    def paren(self, node: Any) -> Expr | None:
        return self.read(node.this)

    def literal(self, node: Any) -> Expr | None:
        if node.is_string:
            return Lit(node.this, STRING, span=self.span(node))
        return self.number(node, node.this, negative=False)

    def number(self, node: exp.Expr, text: str, *, negative: bool) -> Expr | None:
        found = self.attempt(node, "W0203", lambda: read_number(text, negative=negative))
        return None if found is None else Lit(*found, span=self.span(node))

    def negation(self, node: Any) -> Expr | None:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self.number(node, node.this.this, negative=True)
        arg = self.read(node.this)
        return arg and Negate(arg, span=self.span(node))

    def typed_literal(self, node: Any) -> Expr | None:
        text = node.expression.this
        if node.this == "DATE":
            return self.date(node, text)
        time = self.attempt(node, "W0204", lambda: read_time(text))
        if time is None:
            return None
        return Lit(time, TIMESTAMP if time.tzinfo else TIMESTAMP_NTZ, span=self.span(node))

    def date(self, node: exp.Expr, text: str) -> Expr | None:
        day = self.attempt(node, "W0204", lambda: read_date(text))
        return None if day is None else Lit(day, DATE, span=self.span(node))

    def interval(self, node: Any) -> Expr | None:
        length = self.attempt(
            node, "W0204", lambda: Duration.parse(node.this.this, signed=True).to_timedelta()
        )
        return None if length is None else Lit(length, INTERVAL, span=self.span(node))

    def constant(self, node: Any) -> Expr | None:
        value = None if isinstance(node, exp.Null) else node.this
        return Lit(value, NULL if value is None else BOOLEAN, span=self.span(node))

    def column(self, node: Any) -> Expr | None:
        return Ref(node.table or None, node.name, span=self.span(node))

    def binary(self, node: Any) -> Expr | None:
        operands = self.all([node.this, node.expression])
        return None if operands is None else Binary(_BINARY[type(node)], *operands, span=self.span(node))

    def logic(self, node: Any) -> Expr | None:
        """Read a chain of ANDs, or of ORs, as one node: it may be long without being deep."""
        kind, chain, first = type(node), [], node
        while type(first) is kind:
            chain.append(first.expression)
            first = first.this
        args = self.all([first, *reversed(chain)])
        return None if args is None else Logic(_LOGIC[kind], args, span=self.span(node))

    def opposite(self, node: Any) -> Expr | None:
        arg = self.read(node.this)
        return arg and Not(arg, span=self.span(node))

    def is_null(self, node: Any) -> Expr | None:
        arg = self.read(node.this)
        return arg and IsNull(arg, span=self.span(node))

    def within(self, node: Any) -> Expr | None:
        nodes = self.all([node.this, *node.expressions])
        return None if nodes is None else In(nodes[0], nodes[1:], span=self.span(node))

    def between(self, node: Any) -> Expr | None:
        nodes = self.all([node.this, node.args["low"], node.args["high"]])
        return None if nodes is None else Between(*nodes, span=self.span(node))

    def like(self, node: Any) -> Expr | None:
        arg, pattern = self.read(node.this), node.expression
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            help = "write the pattern as a text; use CONTAINS(text, part) to look for a value"
            self.fail("W0205", "a LIKE pattern that is not a text is not allowed", self.span(pattern), help)
            return None
        if problem := pattern_problem(pattern.this):
            self.fail(
                "W0201", problem, self.span(pattern), r"write \\ for a backslash, \% and \_ for the signs"
            )
            return None
        return arg and Like(arg, pattern.this, span=self.span(node))

    def case(self, node: Any) -> Expr | None:
        operand = self.read(node.this) if node.this is not None else None
        whens = [self.all([w.this, w.args["true"]]) for w in node.args["ifs"]]
        default = node.args.get("default")
        otherwise = self.read(default) if default is not None else None
        good = tuple(
            When(*w, span=self.span(n)) for w, n in zip(whens, node.args["ifs"], strict=True) if w is not None
        )
        lost = len(good) < len(whens) or (node.this is not None and operand is None)
        if lost or (default is not None and otherwise is None):
            return None
        return Case(operand, good, otherwise, span=self.span(node))

    def cast(self, node: Any) -> Expr | None:
        arg, to = self.read(node.this), node.args["to"]
        dtype = self.attempt(to, "W0205", lambda: parse_type(to.this))
        return Cast(arg, dtype, span=self.span(node)) if arg is not None and dtype is not None else None

    def placeholder(self, node: Any) -> Expr | None:
        return Placeholder(node.this or None, span=self.span(node))

    def selector(self, node: Any) -> Expr | None:
        return Selector(node.this.this, span=self.span(node))

    def star(self, node: Any) -> Expr | None:
        self.fail("W0205", "* is not allowed here", self.span(node), "only COUNT(*) has it")
        return None

    def call(self, node: Any) -> Expr | None:
        name = Span(node.meta["start"], node.meta["name_end"], self.origin)
        function = functions.find(node.this)
        if function is None:
            if refused := functions.refused(node.this, fragment=self.fragment, stream=self.stream):
                self.fail("W0205", f"{node.this} {refused[0]}", name, refused[1])
            else:
                close = functions.nearest(node.this, fragment=self.fragment or self.stream)
                self.fail("W0206", f"there is no function {node.this!r}", name, close)
        starred = len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star)
        if starred and function is not None and function.name == "COUNT":
            return Call("COUNT_ALL", (), span=self.span(node))
        args = self.all(node.expressions)
        if function is None or args is None:
            return None
        if len(args) < function.least or (function.most is not None and len(args) > function.most):
            message = f"{function.name} takes {function.arity} arguments, not {len(args)}"
            help = f"write {function.name}({function.takes})"
            if function.name in ("MIN", "MAX") and len(args) == 1 and not self.fragment:
                help = f"{function.name}_AGG(x) is the aggregate over rows; " + help
            self.fail("W0208", message.replace(" 1 arguments", " 1 argument"), self.span(node), help)
            return None
        return self.known_call(node, function.name, args)

    def known_call(self, node: Any, name: str, args: tuple[Expr, ...]) -> Expr | None:
        """Return the call, or the operator that it is another spelling of."""
        span = self.span(node)
        match name, args:
            case ("AND" | "OR") as op, _:
                return Logic(op, args, span=span)
            case "NOT", (arg,):
                return Not(arg, span=span)
            case "ISNULL", (arg,):
                return IsNull(arg, span=span)
            case "MOD", (left, right):
                return Binary("%", left, right, span=span)
            case "DATE", (Lit(value=str() as text),):
                return self.date(node, text)
            case _:
                return Call(name, args, span=span)


_READERS: dict[type[exp.Expr], Callable[[_Reader, Any], Expr | None]] = {
    exp.Paren: _Reader.paren,
    exp.Literal: _Reader.literal,
    exp.Neg: _Reader.negation,
    exp.Introducer: _Reader.typed_literal,
    exp.Interval: _Reader.interval,
    exp.Null: _Reader.constant,
    exp.Boolean: _Reader.constant,
    exp.Column: _Reader.column,
    **dict.fromkeys(_BINARY, _Reader.binary),
    **dict.fromkeys(_LOGIC, _Reader.logic),
    exp.Not: _Reader.opposite,
    exp.Is: _Reader.is_null,
    exp.In: _Reader.within,
    exp.Between: _Reader.between,
    exp.Like: _Reader.like,
    exp.Case: _Reader.case,
    exp.Cast: _Reader.cast,
    exp.Placeholder: _Reader.placeholder,
    exp.Parameter: _Reader.selector,
    exp.Star: _Reader.star,
    exp.Anonymous: _Reader.call,
}
"""The allow-list: a node that is not here is refused."""
