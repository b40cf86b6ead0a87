"""The grammar: precedence climbing over sqlglot's tokens to sqlglot's tree.

sqlglot's own ladder calls some twenty methods for each pair of parentheses, guesses at missing
operands and forgets where most nodes stand; its compiled build refuses to be extended.  This one
takes the rungs of SQL from a table, refuses what it does not know, and notes every place.

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

from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from weft.expr.ast import Origin
from weft.expr.cursor import DEEPEST, Cursor, ends
from weft.expr.words import (
    AFTER_NUMBER,
    BEGINNINGS,
    CLAUSE_WORDS,
    JOIN_KINDS,
    NEGATABLE,
    NEVER_NAMES,
    OPENERS,
    UNITS,
    VALUE,
)

_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _UNARY = range(1, 8)
_SYMBOLS: dict[TokenType, tuple[int, type[exp.Expr]]] = {
    TokenType.EQ: (_COMPARE, exp.EQ),
    TokenType.NEQ: (_COMPARE, exp.NEQ),
    TokenType.LT: (_COMPARE, exp.LT),
    TokenType.LTE: (_COMPARE, exp.LTE),
    TokenType.GT: (_COMPARE, exp.GT),
    TokenType.GTE: (_COMPARE, exp.GTE),
    TokenType.NULLSAFE_EQ: (_COMPARE, exp.NullSafeEQ),
    TokenType.PLUS: (_ADD, exp.Add),
    TokenType.DASH: (_ADD, exp.Sub),
    TokenType.DPIPE: (_ADD, exp.DPipe),
    TokenType.STAR: (_MULTIPLY, exp.Mul),
    TokenType.SLASH: (_MULTIPLY, exp.Div),
    TokenType.MOD: (_MULTIPLY, exp.Mod),
}
_WORDS: dict[str, tuple[int, type[exp.Expr]]] = {
    "OR": (_OR, exp.Or),
    "AND": (_AND, exp.And),
    "IS": (_COMPARE, exp.Is),
    "IN": (_COMPARE, exp.In),
    "BETWEEN": (_COMPARE, exp.Between),
    "LIKE": (_COMPARE, exp.Like),
}


def syntax_tree(tokens: list[Token], origin: Origin, *, fragment: bool) -> exp.Expr:
    """Return the sqlglot tree of the tokens, each node with its start, end and depth in `meta`."""
    return _Grammar(tokens, origin, fragment=fragment).whole()


def syntax_tree_from(tokens: list[Token], index: int, origin: Origin) -> tuple[exp.Expr, int]:
    """Return the tree of the longest expression that starts at a token of a statement, and where it stops."""
    grammar = _Grammar(tokens, origin, statement=True)
    grammar.index = index
    return grammar.part(), grammar.index


class _Grammar(Cursor):
    def __init__(
        self, tokens: list[Token], origin: Origin, *, fragment: bool = False, statement: bool = False
    ) -> None:
        super().__init__(tokens, origin)
        self.fragment = fragment
        self.statement = statement
        self.cases = 0

    def part(self) -> exp.Expr:
        return self._climb(0, 1)

    def whole(self) -> exp.Expr:
        tree = self._climb(0, 1)
        if self.curr:
            self.unexpected("an operator or the end of the expression")
        return tree

    # -- operators

    def _operator(self) -> tuple[int, type[exp.Expr]] | None:
        found = _SYMBOLS.get(self.curr.token_type) or _WORDS.get(self.word())
        if found is None and self.word() == "NOT" and self.word(self.next) in NEGATABLE:
            return _WORDS[self.word(self.next)]
        return found

    def _climb(self, floor: int, depth: int) -> exp.Expr:
        """Read operators of rank `floor` and above."""
        if depth > DEEPEST:
            self.too_deep(self.curr.start if self.curr else len(self.origin.text))
        left = self._prefix(floor, depth)
        while (found := self._operator()) is not None and found[0] >= floor:
            rank, kind = found
            if rank != _COMPARE:
                self.advance()
                right = self._climb(rank + 1, depth + 1)
                left = self.node(kind(this=left, expression=right), left.meta["start"])
                continue
            left = self._comparison(left, kind, depth)
            following = self._operator()
            if following is not None and following[0] == _COMPARE:
                found_text = self.origin.text[self.curr.start : self.curr.end + 1]
                self.fail(
                    "W0201",
                    f"comparisons cannot be chained: {found_text!r} follows another comparison",
                    *ends(self.curr),
                    "join them with AND (a < b AND b < c), or put the first in parentheses",
                )
        return left

    def _prefix(self, floor: int, depth: int) -> exp.Expr:
        if self.word() == "NOT" and self.next.token_type != TokenType.DOT and floor <= _NOT:
            start = self.curr.start
            self.advance()
            return self.node(exp.Not(this=self._climb(_NOT, depth + 1)), start)
        return self._operand(depth)

    def _comparison(self, left: exp.Expr, kind: type[exp.Expr], depth: int) -> exp.Expr:
        start = int(left.meta["start"])
        negated = self.word() == "NOT"
        self.advance(2 if negated else 1)
        if kind is exp.Is:
            negated = self.word() == "NOT"
            if negated:
                self.advance()
            self.take_word("NULL", "NULL after IS")
            null = self.node(exp.Null(), self.prev.start)
            node = self.node(exp.Is(this=left, expression=null), start)
        elif kind is exp.In:
            node = self.node(exp.In(this=left, expressions=self._list(depth)), start)
        elif kind is exp.Between:
            low = self._climb(_ADD, depth + 1)
            self.take_word("AND", "AND between the two bounds of BETWEEN")
            node = self.node(exp.Between(this=left, low=low, high=self._climb(_ADD, depth + 1)), start)
        else:
            node = self.node(kind(this=left, expression=self._climb(_ADD, depth + 1)), start)
        return self.node(exp.Not(this=node), start) if negated else node

    def _list(self, depth: int) -> list[exp.Expr]:
        if self.curr.token_type != TokenType.L_PAREN:
            self.unexpected("( after IN")
        opening = self.curr
        self.advance()
        items = [self._climb(0, depth + 1)]
        while self.match(TokenType.COMMA):
            items.append(self._climb(0, depth + 1))
        self.close(opening)
        return items

    # -- operands

    def _operand(self, depth: int) -> exp.Expr:
        token = self.curr
        match token.token_type:
            case TokenType.NUMBER:
                return self._number(token.start)
            case TokenType.DOT if self.next.token_type == TokenType.NUMBER:
                self.advance()
                return self._number(token.start)
            case TokenType.STRING:
                return self._literal()
            case TokenType.VAR | TokenType.IDENTIFIER:
                return self._named(depth)
            case TokenType.L_PAREN:
                self.advance()
                inner = self._climb(0, depth + 1)
                self.close(token)
                return self.node(exp.Paren(this=inner), token.start)
            case TokenType.DASH:
                self.advance()
                return self.node(exp.Neg(this=self._climb(_UNARY, depth + 1)), token.start)
            case TokenType.PLACEHOLDER | TokenType.COLON if self.fragment:
                return self._placeholder()
            case TokenType.BLOCK_START if not (self.fragment or self.statement):
                return self._selector()
            case TokenType.STAR:
                self.fail("W0205", "* is not allowed in an expression", *ends(token), "only COUNT(*) has it")
        return self.unexpected(VALUE)

    def _number(self, start: int) -> exp.Expr:
        self.advance()
        if self.curr.token_type in AFTER_NUMBER and self.connected:
            text = self.origin.text[start : self.curr.end + 1]
            self.fail("W0203", f"{text!r} is not a number", start, self.curr.end + 1)
        return self.node(exp.Literal.number(self.origin.text[start : self.prev.end + 1]), start)

    def _literal(self) -> exp.Expr:
        """Read a text; within it only its own quote is doubled, which sqlglot reads more widely."""
        token = self.curr
        self.advance()
        raw = self.origin.text[token.start : token.end + 1]
        return self.node(exp.Literal.string(raw[1:-1].replace(raw[0] * 2, raw[0])), token.start)

    def _placeholder(self) -> exp.Expr:
        start = self.curr
        self.advance()
        if start.token_type == TokenType.PLACEHOLDER:
            return self.node(exp.Placeholder(), start.start)
        if self.curr.token_type != TokenType.VAR or not self.connected:
            self.unexpected("a name directly after the colon, as in :limit")
        name = self.bare_name()
        return self.node(exp.Placeholder(this=name), start.start)

    def _selector(self) -> exp.Expr:
        opening = self.curr
        self.advance()
        if self.curr.token_type == TokenType.BLOCK_END:
            self.fail("W0201", "the selector has no name", opening.start, self.curr.end + 1, "write {{NAME}}")
        if self.curr.token_type != TokenType.VAR:
            self.unexpected("the name of a selector after {{")
        name = self.bare_name()
        if not self.curr:
            self.fail("W0201", "this {{ is not closed", *ends(opening), "add the missing }}")
        if not self.match(TokenType.BLOCK_END):
            self.unexpected("}} after the name of the selector")
        return self.node(exp.Parameter(this=exp.Var(this=name)), opening.start)

    # -- names, calls and words that begin something

    def _named(self, depth: int) -> exp.Expr:
        token, following = self.curr, self.next.token_type
        word = "" if following == TokenType.DOT else self.word()
        if word == "CASE":
            return self._case(depth)
        if following == TokenType.L_PAREN and word not in ("SELECT", "IS", "IN", "BETWEEN", "LIKE"):
            return self._cast(depth) if word == "CAST" else self._call(depth)
        if word in ("NULL", "TRUE", "FALSE"):
            self.advance()
            return self.node(exp.Null() if word == "NULL" else exp.Boolean(this=word == "TRUE"), token.start)
        if word in ("DATE", "TIMESTAMP") and following == TokenType.STRING:
            self.advance()
            return self.node(exp.Introducer(this=word, expression=self._literal()), token.start)
        if word == "INTERVAL" and following in (TokenType.STRING, TokenType.NUMBER):
            return self._interval()
        if word in NEVER_NAMES or (self.cases and word in ("WHEN", "THEN", "ELSE", "END")):
            if word == "NOT":
                help = "put NOT and what follows in parentheses"
                self.fail("W0201", "NOT cannot stand after this operator", *ends(token), help)
            self.unexpected(VALUE)
        if word == "SELECT" or (word in OPENERS and following in BEGINNINGS):
            self.unexpected(VALUE)
        if self.statement and self._begins_clause(word):
            self.fail("W0201", f"expected {VALUE}, found {token.text!r}", *ends(token))
        return self._column()

    def _begins_clause(self, word: str) -> bool:
        following = self.word(self.next)
        return word in CLAUSE_WORDS or (word in JOIN_KINDS and following in ("JOIN", "OUTER", *JOIN_KINDS))

    def _column(self) -> exp.Expr:
        start, parts = self.curr.start, [self._identifier()]
        while self.match(TokenType.DOT):
            if self.curr.token_type == TokenType.STAR:
                self._unexpected_star()
            if self.curr.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
                self.unexpected("a column name after the dot")
            parts.append(self._identifier())
        if len(parts) > 2 or self.curr.token_type == TokenType.L_PAREN:
            what = "a function with a prefix" if len(parts) <= 2 else "a name with more than one dot"
            help = "put a name that holds a dot in backticks, as in `a.b`" if len(parts) > 2 else ""
            self.fail("W0205", f"{what} is not allowed in an expression", start, self.prev.end + 1, help)
        table = parts[0] if len(parts) == 2 else None
        return self.node(exp.Column(this=parts[-1], table=table), start)

    def _unexpected_star(self) -> NoReturn:
        self.fail("W0205", "* is not allowed in an expression", *ends(self.curr), "name one column")

    def _identifier(self) -> exp.Identifier:
        token = self.curr
        if token.token_type == TokenType.VAR:
            return exp.Identifier(this=self.bare_name(), quoted=False)
        self.advance()
        raw = self.origin.text[token.start : token.end + 1]
        name = raw[1:-1].replace(raw[0] * 2, raw[0])
        if not name:
            self.fail("W0201", "the name in quotes is empty", *ends(token))
        return exp.Identifier(this=name, quoted=True)

    def _call(self, depth: int) -> exp.Expr:
        name, opening = self.curr, self.next
        if name.token_type == TokenType.IDENTIFIER:
            self.fail("W0205", "the name of a function stands without quotes", *ends(name))
        self.advance(2)
        args: list[exp.Expr] = []
        if self.curr.token_type == TokenType.STAR and self.next.token_type == TokenType.R_PAREN:
            star = self.curr
            self.advance()
            args.append(self.node(exp.Star(), star.start))
        elif self.curr.token_type != TokenType.R_PAREN:
            args.append(self._climb(0, depth + 1))
            while self.match(TokenType.COMMA):
                args.append(self._climb(0, depth + 1))
        self.close(opening)
        node = self.node(exp.Anonymous(this=name.text, expressions=args), name.start)
        node.meta["name_end"] = name.end + 1
        if self.word() in ("OVER", "FILTER", "WITHIN") and not self.statement:
            self.unexpected("an operator")
        return node

    def _cast(self, depth: int) -> exp.Expr:
        start, opening = self.curr.start, self.next
        self.advance(2)
        arg = self._climb(0, depth + 1)
        self.take_word("AS", "AS and a type")
        first, level = self.curr, 0
        while self.curr and (level or self.curr.token_type != TokenType.R_PAREN):
            level += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self.curr.token_type, 0)
            self.advance()
        if self.curr is first:
            self.unexpected("a type after AS")
        to = self.node(exp.Var(this=self.origin.text[first.start : self.prev.end + 1]), first.start)
        self.close(opening)
        return self.node(exp.Cast(this=arg, to=to), start)

    def _case(self, depth: int) -> exp.Expr:
        case = self.curr
        self.advance()
        self.cases += 1
        operand = None if self.word() == "WHEN" else self._climb(0, depth + 1)
        if self.word() != "WHEN":
            self.unexpected("WHEN")
        whens: list[exp.Expr] = []
        while self.word() == "WHEN":
            start = self.curr.start
            self.advance()
            condition = self._climb(0, depth + 2)
            self.take_word("THEN", "THEN or an operator")
            whens.append(self.node(exp.If(this=condition, true=self._climb(0, depth + 2)), start))
        default = None
        if self.word() == "ELSE":
            self.advance()
            default = self._climb(0, depth + 1)
        if not self.curr:
            self.fail("W0201", "this CASE has no END", *ends(case), "add the missing END")
        self.take_word("END", "WHEN, ELSE, END or an operator")
        self.cases -= 1
        return self.node(exp.Case(this=operand, ifs=whens, default=default), case.start)

    def _interval(self) -> exp.Expr:
        start = self.curr.start
        self.advance(2)
        if self.word() in UNITS:
            self.advance()
            if self.word() == "TO" and self.word(self.next) in UNITS:
                self.advance(2)
        text = self.origin.text[start : self.prev.end + 1]
        return self.node(exp.Interval(this=exp.Literal.string(text)), start)
