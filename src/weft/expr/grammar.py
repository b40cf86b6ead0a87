"""The grammar: precedence climbing from sqlglot's tokens to our tree.

sqlglot's own parser calls some twenty methods for each pair of parentheses, guesses missing operands and
loses the locations of most nodes; its compiled build cannot be subclassed.  This one has a table of precedences,
rejects everything else, and keeps every location.

::

    lowest   OR
             AND
             NOT x
             = <> < <= > >= <=>  IS [NOT] NULL  [NOT] IN  [NOT] BETWEEN  [NOT] LIKE    (no chains)
             + - ||
             * / %
    highest  -x
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlglot.tokenizer_core import Token, TokenType

from weft.core.types import STRING, parse_type
from weft.expr import ast, functions
from weft.expr.literals import pattern_problem
from weft.expr.operands import Operands, Part
from weft.expr.tokens import BEGINNINGS, VALUE, ends
from weft.expr.words import NEGATABLE, NEVER_NAMES, OPENERS, Dialect

_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _UNARY = range(1, 8)
_SYMBOLS: dict[TokenType, tuple[int, ast.BinaryOp]] = {
    TokenType.EQ: (_COMPARE, "="),
    TokenType.NEQ: (_COMPARE, "<>"),
    TokenType.LT: (_COMPARE, "<"),
    TokenType.LTE: (_COMPARE, "<="),
    TokenType.GT: (_COMPARE, ">"),
    TokenType.GTE: (_COMPARE, ">="),
    TokenType.NULLSAFE_EQ: (_COMPARE, "<=>"),
    TokenType.PLUS: (_ADD, "+"),
    TokenType.DASH: (_ADD, "-"),
    TokenType.DPIPE: (_ADD, "||"),
    TokenType.STAR: (_MULTIPLY, "*"),
    TokenType.SLASH: (_MULTIPLY, "/"),
    TokenType.MOD: (_MULTIPLY, "%"),
}
_WORDS = {"OR": _OR, "AND": _AND, "IS": _COMPARE, **dict.fromkeys(NEGATABLE, _COMPARE)}


class Grammar(Operands):
    """Parses the tokens of an expression; unsupported constructs are added to `findings`, syntax errors raise.

    `statement` means that the expression is part of a statement, whose next clause ends it.
    """

    def __init__(self, tokens: list[Token], origin: ast.Origin, dialect: Dialect, *, statement: bool = False) -> None:
        super().__init__(tokens, origin)
        self.fragment = dialect == "fragment"
        self.stream = dialect == "stream"
        self.statement = statement
        self.cases = 0

    def longest(self, index: int) -> ast.Expr | None:
        """Parse the longest expression that starts at a token."""
        self.index = index
        return self._climb(0, 1).expr

    def whole(self) -> ast.Expr | None:
        """Parse an expression that ends where the text does."""
        tree = self._climb(0, 1).expr
        if self.curr:
            self.unexpected("an operator or the end of the expression")
        return tree

    def _over(self, make: Callable[..., ast.Expr], start: int, *below: Part) -> Part:
        """Return the node built from parts; its expression is None when that of a part is."""
        exprs = [part.expr for part in below]
        refused = any(expr is None for expr in exprs)
        return self.part(None if refused else make(*exprs, span=self.span(start)), start, *below)

    # -- operators

    def _rank(self) -> int:
        """Return the rank of the operator at the cursor, 0 when there is none."""
        symbol = _SYMBOLS.get(self.curr.token_type)
        if symbol is not None:
            return symbol[0]
        word = self.word()
        if word == "NOT":  # after an operand it belongs to NOT IN, NOT BETWEEN or NOT LIKE
            word = self.word(self.next) if self.word(self.next) in NEGATABLE else ""
        return _WORDS.get(word, 0)

    def _climb(self, floor: int, depth: int) -> Part:
        """Parse operators of rank `floor` and above."""
        self.check_depth(depth)
        left = self._prefix(floor, depth)
        # The right operand of an operator of rank n has operators above n, so that a - b - c is (a - b) - c.
        while (rank := self._rank()) and rank >= floor:
            if rank in (_OR, _AND):
                left = self._logic(left, rank, depth)
            elif rank == _COMPARE:
                left = self._comparison(left, depth)
                self._refuse_chain()
            else:
                op = _SYMBOLS[self.curr.token_type][1]
                self.advance()
                right = self._climb(rank + 1, depth + 1)
                left = self._over(partial(ast.Binary, op), left.span.start, left, right)
        return left

    def _refuse_chain(self) -> None:
        if self._rank() == _COMPARE:
            operator = self.origin.text[self.curr.start : self.curr.end + 1]
            self.fail(
                "W0201",
                f"comparisons cannot be chained: {operator!r} follows another comparison",
                *ends(self.curr),
                "join them with AND (a < b AND b < c), or put the first in parentheses",
            )

    def _prefix(self, floor: int, depth: int) -> Part:
        # `not.x` is a column of a table called not; in `a = NOT b` the NOT binds looser than the operator before it.
        if self.word() == "NOT" and self.next.token_type != TokenType.DOT and floor <= _NOT:
            start = self.curr.start
            self.advance()
            return self._over(ast.Not, start, self._climb(_NOT, depth + 1))
        return self._operand(depth)

    def _logic(self, left: Part, rank: int, depth: int) -> Part:
        """Parse a chain of ANDs or ORs as one node, so that a long chain is not deep."""
        op: ast.LogicOp = "OR" if rank == _OR else "AND"
        parts = [left]
        while self._rank() == rank:
            self.advance()
            parts.append(self._climb(rank + 1, depth + 1))
        return self._over(lambda *args, span: ast.Logic(op, args, span=span), left.span.start, *parts)

    def _comparison(self, left: Part, depth: int) -> Part:
        start, symbol = left.span.start, _SYMBOLS.get(self.curr.token_type)
        negated = self.word() == "NOT"
        word = self.word(self.next) if negated else self.word()
        self.advance(2 if negated else 1)
        if symbol is not None:
            node = self._over(partial(ast.Binary, symbol[1]), start, left, self._climb(_ADD, depth + 1))
        elif word == "IS":
            negated = self.word() == "NOT"
            if negated:
                self.advance()
            self.take_word("NULL", "NULL after IS")
            node = self._over(ast.IsNull, start, left)
        elif word == "IN":
            items = self._list(depth)
            node = self._over(lambda arg, *rest, span: ast.In(arg, rest, span=span), start, left, *items)
        elif word == "BETWEEN":
            low = self._climb(_ADD, depth + 1)
            self.take_word("AND", "AND between the two bounds of BETWEEN")
            node = self._over(ast.Between, start, left, low, self._climb(_ADD, depth + 1))
        else:
            node = self._like(left, depth)
        return self._over(ast.Not, start, node) if negated else node

    def _list(self, depth: int) -> list[Part]:
        if self.curr.token_type != TokenType.L_PAREN:
            self.unexpected("( after IN")
        opening = self.curr
        self.advance()
        items = self._items(depth)
        self.close(opening)
        return items

    def _items(self, depth: int) -> list[Part]:
        items = [self._climb(0, depth + 1)]
        while self.match(TokenType.COMMA):
            items.append(self._climb(0, depth + 1))
        return items

    def _like(self, left: Part, depth: int) -> Part:
        before = len(self.findings)
        pattern = self._climb(_ADD, depth + 1)
        # Only a string literal is a pattern: findings inside another expression add nothing.
        del self.findings[before:]
        lit = pattern.expr if pattern.deep == 1 else None
        if not (isinstance(lit, ast.Lit) and lit.dtype == STRING):
            help = "write the pattern as a string; use CONTAINS(text, part) to search for a value"
            self.note("W0205", "a LIKE pattern must be a string literal", pattern.span, help)
            return self.part(None, left.span.start, left, pattern)
        text = str(lit.value)
        if problem := pattern_problem(text):
            help = r"write \\ for a backslash, \% for % and \_ for _"
            self.note("W0201", problem, pattern.span, help)
            return self.part(None, left.span.start, left, pattern)
        return self._over(lambda arg, _, span: ast.Like(arg, text, span=span), left.span.start, left, pattern)

    # -- operands

    def _operand(self, depth: int) -> Part:
        token = self.curr
        if self.at_number:
            return self.number()
        match token.token_type:
            case TokenType.STRING:
                return self.text()
            case TokenType.VAR | TokenType.IDENTIFIER:
                return self._named(depth)
            case TokenType.L_PAREN:
                self.advance()
                inner = self._climb(0, depth + 1)
                self.close(token)
                return self.part(inner.expr, token.start, inner)
            case TokenType.DASH:
                return self._minus(depth)
            case TokenType.PLACEHOLDER | TokenType.COLON if self.fragment:
                return self.placeholder()
            case TokenType.BLOCK_START if not (self.fragment or self.statement):
                return self.selector()
            case TokenType.STAR:
                self.fail("W0205", "* is not allowed in an expression", *ends(token), "only COUNT(*) has it")
        return self.unexpected(VALUE)

    def _minus(self, depth: int) -> Part:
        minus = self.curr
        self.advance()
        if self.at_number:  # -5 is one literal: 9223372036854775808 alone would not be a long
            self.check_depth(depth + 1)
            return self.number(minus)
        return self._over(ast.Negate, minus.start, self._climb(_UNARY, depth + 1))

    def _named(self, depth: int) -> Part:
        """Parse an operand that begins with a name: a call, a CASE, a constant, a date or a column."""
        token, following = self.curr, self.next.token_type
        word = "" if following == TokenType.DOT else self.word()
        if word == "CASE":
            return self._case(depth)
        if following == TokenType.L_PAREN and word not in ("SELECT", "IS", "IN", "BETWEEN", "LIKE"):
            return self._cast(depth) if word == "CAST" else self._call(depth)
        if word in ("NULL", "TRUE", "FALSE"):
            return self.constant(word)
        if word in ("DATE", "TIMESTAMP") and following == TokenType.STRING:
            return self.typed_text(word)
        if word == "INTERVAL" and following in (TokenType.STRING, TokenType.NUMBER):
            return self.interval()
        if word in NEVER_NAMES or (self.cases and word in ("WHEN", "THEN", "ELSE", "END")):
            if word == "NOT":
                help = "put NOT and what follows in parentheses"
                self.fail("W0201", "NOT is not allowed after this operator", *ends(token), help)
            self.unexpected(VALUE)
        if word == "SELECT" or (word in OPENERS and following in BEGINNINGS):
            self.unexpected(VALUE)
        if self.statement and self.begins_clause(word):
            self.fail("W0201", f"expected {VALUE}, found {token.text!r}", *ends(token))
        return self.column()

    # -- calls, CAST and CASE

    def _call(self, depth: int) -> Part:
        name, opening = self.curr, self.next
        if name.token_type == TokenType.IDENTIFIER:
            self.fail("W0205", "the name of a function must not be quoted", *ends(name))
        self.advance(2)
        function = self._function(name)
        args: list[Part] = []
        starred = self.curr.token_type == TokenType.STAR and self.next.token_type == TokenType.R_PAREN
        if starred:
            args.append(self._star(function))
        elif self.curr.token_type != TokenType.R_PAREN:
            args.extend(self._items(depth))
        self.close(opening)
        expr, span = None, self.span(name.start)
        exprs = tuple(part.expr for part in args if part.expr is not None)
        if function is not None and len(exprs) == len(args):
            expr = ast.Call("COUNT_ALL", (), span=span) if starred else self._known_call(function, exprs, span)
        call = self.part(expr, name.start, *args)
        if self.word() in ("OVER", "FILTER", "WITHIN") and not self.statement:
            self.unexpected("an operator")
        return call

    def _function(self, name: Token) -> functions.Function | None:
        """Return the function of that name; add a finding and return None when it is unknown."""
        function = functions.find(name.text)
        if function is None:
            at = ast.Span(*ends(name), self.origin)
            if refused := functions.refused(name.text, fragment=self.fragment, stream=self.stream):
                self.note("W0205", f"{name.text} {refused[0]}", at, refused[1])
            else:
                close = functions.nearest(name.text, fragment=self.fragment or self.stream)
                self.note("W0206", f"unknown function {name.text!r}", at, close)
        return function

    def _star(self, function: functions.Function | None) -> Part:
        """Parse the ``*`` of ``COUNT(*)``, which no other function takes."""
        start = self.curr.start
        self.advance()
        if function is not None and function.name == "COUNT":
            return self.part(ast.Call("COUNT_ALL", (), span=self.span(start)), start)
        self.note("W0205", "* is not allowed here", self.span(start), "only COUNT(*) has it")
        return self.part(None, start)

    def _known_call(self, function: functions.Function, args: tuple[ast.Expr, ...], span: ast.Span) -> ast.Expr | None:
        """Return the call, or the operator it is an alias of."""
        if len(args) < function.least or (function.most is not None and len(args) > function.most):
            message = f"{function.name} takes {function.arity} arguments, not {len(args)}"
            help = f"write {function.name}({function.takes})"
            if function.name in ("MIN", "MAX") and len(args) == 1 and not self.fragment:
                help = f"{function.name}_AGG(x) is the aggregate over rows; " + help
            self.note("W0208", message.replace(" 1 arguments", " 1 argument"), span, help)
            return None
        match function.name, args:
            case ("AND" | "OR") as op, _:
                return ast.Logic(op, args, span=span)
            case "NOT", (arg,):
                return ast.Not(arg, span=span)
            case "ISNULL", (arg,):
                return ast.IsNull(arg, span=span)
            case "MOD", (left, right):
                return ast.Binary("%", left, right, span=span)
            case "DATE", (ast.Lit(value=str() as text),):
                return self.date(text, span)
            case name, _:
                return ast.Call(name, args, span=span)

    def _cast(self, depth: int) -> Part:
        start, opening = self.curr.start, self.next
        self.advance(2)
        arg = self._climb(0, depth + 1)
        self.take_word("AS", "AS and a type")
        # The type is read as text up to the closing parenthesis, because `parse_type` has its own grammar.
        first, level = self.curr, 0
        while self.curr and (level or self.curr.token_type != TokenType.R_PAREN):
            level += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self.curr.token_type, 0)
            self.advance()
        if self.curr is first:
            self.unexpected("a type after AS")
        to = self.part(None, first.start)
        name = self.origin.text[to.span.start : to.span.end]
        self.close(opening)
        dtype = self.attempt(to.span, "W0205", lambda: parse_type(name))
        expr = None
        if arg.expr is not None and dtype is not None:
            expr = ast.Cast(arg.expr, dtype, span=self.span(start))
        return self.part(expr, start, arg, to)

    def _case(self, depth: int) -> Part:
        case = self.curr
        self.advance()
        self.cases += 1
        first = [] if self.word() == "WHEN" else [self._climb(0, depth + 1)]
        if self.word() != "WHEN":
            self.unexpected("WHEN")
        whens: list[Part] = []
        while self.word() == "WHEN":
            start = self.curr.start
            self.advance()
            condition = self._climb(0, depth + 2)
            self.take_word("THEN", "THEN or an operator")
            whens.append(self._over(ast.When, start, condition, self._climb(0, depth + 2)))
        last: list[Part] = []
        if self.word() == "ELSE":
            self.advance()
            last.append(self._climb(0, depth + 1))
        if not self.curr:
            self.fail("W0201", "this CASE has no END", *ends(case), "add the missing END")
        self.take_word("END", "WHEN, ELSE, END or an operator")
        self.cases -= 1

        def build(*exprs: ast.Expr, span: ast.Span) -> ast.Expr:
            operand = exprs[0] if first else None
            conditions = tuple(e for e in exprs if isinstance(e, ast.When))
            return ast.Case(operand, conditions, exprs[-1] if last else None, span=span)

        return self._over(build, case.start, *first, *whens, *last)
