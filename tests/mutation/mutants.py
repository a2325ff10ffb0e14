"""Mutants of a module: its text with one small fault at a node of its syntax tree.

A mutant replaces one expression or statement, so that all other lines keep their numbers. Annotations, docstrings,
decorators, assertions, f-strings, type names and options of generated methods are not changed, since most such changes
are undetectable.
"""

import ast
from collections.abc import Iterator
from random import Random

import attrs

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LEFT_ALONE = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)


@attrs.frozen
class Mutant:
    """One fault: `after` replaces the bytes from `start` to `end` of the text."""

    line: int
    before: str
    after: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{_one_line(self.before)!r} becomes {_one_line(self.after)!r}"

    def text(self, original: str) -> str:
        """Return the module's text with this fault."""
        data = original.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()


def mutants(text: str) -> list[Mutant]:
    """Return every mutant of a module that still parses, in the order of its lines."""
    lines = text.splitlines()
    # Only the removal of an element beside a starred one may leave text that does not parse.
    found = [
        mutant
        for mutant in _Finder(text).of_all()
        if mutant.after or "*" not in lines[mutant.line - 1] or _parses(mutant.text(text))
    ]
    return sorted(set(found), key=_place_in_text)


def chosen(found: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Draw this many mutants by the seed, on as many different lines as possible.

    A line gets a second mutant only when every line has one.
    """
    random = Random(seed)
    by_line: dict[int, list[Mutant]] = {}
    for mutant in found:
        by_line.setdefault(mutant.line, []).append(mutant)
    drawn: list[Mutant] = []
    while by_line and len(drawn) < count:
        lines = sorted(by_line)
        random.shuffle(lines)
        for line in lines[: count - len(drawn)]:
            of_line = by_line[line]
            drawn.append(of_line.pop(random.randrange(len(of_line))))
            if not of_line:
                del by_line[line]
    return sorted(drawn, key=_place_in_text)


def _place_in_text(mutant: Mutant) -> tuple[int, int, int, str]:
    return mutant.line, mutant.start, mutant.end, mutant.after


class _Finder:
    def __init__(self, text: str) -> None:
        self._tree = ast.parse(text)
        lines = text.encode().splitlines(keepends=True)
        self._data = b"".join(lines)
        # tuples and lists within brackets of a type: `dict[str, int]`, `Callable[[str, int], None]`
        self._types: set[ast.expr] = set()
        self._begins = [0]  # of each line, in bytes
        for line in lines:
            self._begins.append(self._begins[-1] + len(line))

    def of_all(self) -> Iterator[Mutant]:
        """Yield the mutants of all nodes that can affect a test."""
        waiting: list[ast.AST] = [self._tree]
        while waiting:
            node = waiting.pop()
            yield from self._of_statement(node)
            yield from self._of_expression(node)
            waiting += _looked_at(node)

    def _of_statement(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
                yield self._mutant(node, "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self._mutant(node, "pass")
            case ast.AugAssign(target=target, op=op, value=value):
                yield self._mutant(node, "pass")
                if type(op) in _OPERATORS:
                    yield self._mutant(node, ast.unparse(ast.AugAssign(target, _OPERATORS[type(op)](), value)))
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
                    yield self._mutant(test, f"(not {ast.unparse(test)})")
            case ast.Return(value=None | ast.Constant() | ast.Tuple(elts=[]) | ast.List(elts=[]) | ast.Dict(keys=[])):
                return  # "nothing" in another type, which a type checker detects
            case ast.Return():
                yield self._mutant(node, "return None")

    def _of_expression(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                for number, op in enumerate(ops):
                    flipped = [*ops[:number], _COMPARISONS[type(op)](), *ops[number + 1 :]]
                    yield self._mutant(node, f"({ast.unparse(ast.Compare(left, flipped, others))})")
            case ast.BoolOp(op=op, values=values):
                other = ast.And() if isinstance(op, ast.Or) else ast.Or()
                yield self._mutant(node, f"({ast.unparse(ast.BoolOp(other, values))})")
                for number in range(len(values)):
                    rest = [*values[:number], *values[number + 1 :]]
                    kept = ast.BoolOp(op, rest) if len(rest) > 1 else rest[0]
                    yield self._mutant(node, f"({ast.unparse(kept)})")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._mutant(node, f"({ast.unparse(operand)})")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                yield self._mutant(node, f"({ast.unparse(ast.BinOp(left, _OPERATORS[type(op)](), right))})")
            case ast.IfExp(body=body, orelse=orelse):
                yield self._mutant(node, f"({ast.unparse(body)})")
                yield self._mutant(node, f"({ast.unparse(orelse)})")
            case ast.Constant(value=bool(value)):
                yield self._mutant(node, str(not value))
            case ast.Constant(value=int(value) | float(value)):
                yield self._mutant(node, repr(value + 1))
            case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
                yield self._mutant(node.func, _FUNCTIONS[name])
            case ast.Call(args=arguments) if len(arguments) > 1:
                for argument in arguments:
                    if isinstance(argument, ast.Starred):
                        yield self._without(argument)
            case ast.Subscript(slice=ast.Tuple() as several):
                self._types |= {several, *(each for each in several.elts if isinstance(each, ast.List))}
            case ast.Tuple() | ast.List() if node in self._types:
                return
            case (
                ast.Tuple(elts=elements, ctx=ast.Load())
                | ast.List(elts=elements, ctx=ast.Load())
                | ast.Set(elts=elements)
            ) if len(elements) > 1:
                for element in elements:
                    yield self._without(element)
            case ast.comprehension(ifs=[_, *_]):
                for condition in node.ifs:
                    yield self._mutant(condition, "True")

    def _without(self, element: ast.expr) -> Mutant:
        """Return the mutant without one element of several, and without the comma before or after it."""
        start, end = self._place(element)
        data = self._data
        after = end
        while data[after : after + 1].isspace():
            after += 1
        if data[after : after + 1] == b",":
            return self._cut(element.lineno, start, after + 1, "")
        before = start
        while data[before - 1 : before].isspace():
            before -= 1
        return self._cut(element.lineno, before - (data[before - 1 : before] == b","), end, "")

    def _mutant(self, node: ast.expr | ast.stmt, after: str) -> Mutant:
        return self._cut(node.lineno, *self._place(node), after)

    def _cut(self, line: int, start: int, end: int, after: str) -> Mutant:
        return Mutant(line, self._data[start:end].decode(), after, start, end)

    def _place(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None, "parsed from text"
        assert node.end_col_offset is not None, "parsed from text"
        begin = self._begins[node.lineno - 1] + node.col_offset
        return begin, self._begins[node.end_lineno - 1] + node.end_col_offset


def _looked_at(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the child nodes in which a fault would change behavior."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, _LEFT_ALONE) and not _names_types(child):
                yield child


def _names_types(node: ast.AST) -> bool:
    """Return whether this code matters only to type checkers, to generated methods, or as a check of lengths."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Call(func=ast.Name(id="cast" | "isinstance" | "TypeVar")):
            return True
        case ast.keyword(arg="init" | "repr" | "slots" | "eq" | "strict"):  # of a field or a class; of `zip`
            return True
    return False


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _one_line(text: str) -> str:
    return " ".join(text.split())
