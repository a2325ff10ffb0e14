"""A meter for work without calls: iterations of loops, searches in lists, and copies and comparisons of containers.

A profile function is called only for function calls: `name in names` is not counted, however long the list is. Within
`metered`, functions of kschedd's loaded modules run code compiled from the same source that adds to `Meter.units`: one
for each iteration of a loop, and the length of each container that an operation or a built-in function traverses. The
units depend only on the input. Not counted: the work of C code in comparisons of nested containers, in regular
expressions, in numpy, and in other packages.

The functions of a file are exchanged after the first measurement that calls one of them, because compiling all files
takes half a minute. A measurement that was followed by an exchange has to be repeated (`until_settled`).

All present functions are found once, at the begin of `metered`; then all present objects are frozen, so that each
exchange searches only newer objects. A process of tests has millions.
"""

import ast
import builtins
import gc
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, ClassVar, Final

_CONTAINERS: Final = (list, tuple, dict, set, frozenset, deque)
_TEXTS: Final = (str, bytes)
_SEARCHED: Final = (list, tuple, deque, *_TEXTS)  # `in` goes through these
_TAKING: Final = frozenset("list tuple set frozenset dict sorted min max sum any all deque Counter repr str".split())
_TAKING_METHODS: Final = frozenset(
    "update extend join fromkeys from_iterable union intersection difference symmetric_difference".split()
    + "issubset issuperset isdisjoint dumps encode packb".split()
)
_SHIFTING_METHODS: Final = frozenset("index count remove insert reverse pop".split())
_COPYING_METHODS: Final = frozenset("copy sort union difference symmetric_difference issubset".split())


class Meter:
    """The units counted so far, the files that are not exchanged yet, the number of exchanges, and the functions.

    `functions` are those that existed when `metered` began, by file.
    """

    units = 0
    waiting: ClassVar[set[str]] = set()
    exchanges = 0
    functions: ClassVar[dict[str, list[FunctionType]]] = {}


def _turn() -> bool:
    Meter.units += 1
    return True


def _measured(*types: type) -> Callable[[Any], Any]:
    """Return a function that counts the length of a value of these types, and returns the value."""

    def measure(value: Any) -> Any:
        if isinstance(value, types):
            Meter.units += len(value)
        return value

    return measure


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "metered_turn": _turn,
    "metered_search": _measured(*_SEARCHED),
    "metered_container": _measured(*_CONTAINERS),
    "metered_joined": _measured(*_CONTAINERS, *_TEXTS),
    "metered_shift": _measured(list, tuple),
}


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(f"metered_{name}", ast.Load()), list(arguments), [])


class _Metering(ast.NodeTransformer):
    """A transformer that wraps operands and loops in calls of the functions above.

    It changes no other names or cells of a function.
    """

    def visit_For(self, node: ast.For | ast.AsyncFor | ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("turn")))
        return node

    visit_AsyncFor = visit_While = visit_For

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs.insert(0, _call("turn"))
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for number, op in enumerate(node.ops):
            if isinstance(op, ast.In | ast.NotIn):
                node.comparators[number] = _call("search", node.comparators[number])
            elif isinstance(op, ast.Eq | ast.NotEq):
                node.comparators[number] = _call("container", node.comparators[number])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        node.left, node.right = _call("joined", node.left), _call("joined", node.right)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        node.value = _call("joined", node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Slice):
            return _call("joined", node)
        if isinstance(node.ctx, ast.Del):
            node.value = _call("shift", node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _call("container", node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        node.values = [
            _call("container", value) if key is None else value
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        for keyword in node.keywords:
            if keyword.arg is None:
                keyword.value = _call("container", keyword.value)
        match node.func:
            case ast.Name(id=name) if name in _TAKING:
                self._take(node)
            case ast.Attribute(attr=name, value=value):
                if name in _TAKING_METHODS:
                    self._take(node)
                if name in _SHIFTING_METHODS and (node.args or name == "reverse"):
                    node.func.value = _call("shift", value)
                elif name in _COPYING_METHODS:
                    node.func.value = _call("container", value)
        return node

    def _take(self, node: ast.Call) -> None:
        node.args = [each if isinstance(each, ast.Starred) else _call("container", each) for each in node.args]

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # formats as written


@cache
def _metered_code(file: str) -> Mapping[CodeType, CodeType]:
    """Return the code of each function of a file, and its metered code."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    plain = compile(tree, file, "exec", dont_inherit=True)
    metered = compile(ast.fix_missing_locations(_Metering().visit(tree)), file, "exec", dont_inherit=True)
    return dict(_paired(plain, metered))


@cache
def _plain_code(file: str) -> Mapping[CodeType, CodeType]:
    return {metered: plain for plain, metered in _metered_code(file).items()}


def _paired(plain: CodeType, metered: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    assert (plain.co_qualname, plain.co_freevars) == (metered.co_qualname, metered.co_freevars)
    yield plain, metered
    inner = ([each for each in code.co_consts if isinstance(each, CodeType)] for code in (plain, metered))
    for one, other in zip(*inner, strict=True):
        yield from _paired(one, other)


def _exchange(files: Collection[str], of: Callable[[str], Mapping[CodeType, CodeType]]) -> None:
    """Replace the code of each function of these files by the code that `of` maps it to, if any."""
    newer = _functions_of(files)
    for file in files:
        for each in (*Meter.functions.get(file, ()), *newer.get(file, ())):
            each.__code__ = of(file).get(each.__code__, each.__code__)


def _functions_of(files: Collection[str]) -> dict[str, list[FunctionType]]:
    """Return the functions of these files among all objects that are not frozen."""
    found: dict[str, list[FunctionType]] = {}
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename in files:
            found.setdefault(each.__code__.co_filename, []).append(each)
    return found


@contextmanager
def metered(package: str = "kschedd") -> Iterator[None]:
    """Count the work of functions in the package's loaded modules within the block, once `meter` has exchanged them."""
    modules = [module for name, module in list(sys.modules.items()) if f"{name}.".startswith(f"{package}.")]
    files = {file for module in modules if (file := getattr(module, "__file__", None)) is not None}
    vars(builtins).update(_FUNCTIONS)
    Meter.waiting |= files
    gc.unfreeze()
    Meter.functions = _functions_of(files)
    gc.freeze()
    try:
        yield
    finally:  # functions created within the block have metered code too
        _exchange(files - Meter.waiting, _plain_code)
        Meter.waiting.clear()
        Meter.functions = {}


def meter(called: Collection[str]) -> None:
    """Exchange the functions of these files, if they are not exchanged yet."""
    new = Meter.waiting.intersection(called)
    if new:
        Meter.waiting -= new
        Meter.exchanges += 1
        _exchange(new, _metered_code)


def until_settled() -> Iterator[None]:
    """Yield for each repetition of a loop that measures costs, until one of them is followed by no exchange."""
    before = -1
    while before != Meter.exchanges:
        before = Meter.exchanges
        yield
