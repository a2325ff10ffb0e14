"""Estimated cost of an expression: an upper limit, from the largest sizes of the values that it reads.

A value's size is its number of characters, bytes, items or entries. Sizes and costs are limited to the largest unsigned
integer of 64 bits. A value of unknown size is treated as having the largest size, so a traversal of the value exceeds
every limit.

Source: cel-go v0.29, checker/cost.go, ext/{lists,sets}.go; Kubernetes v1.37, apiserver/pkg/cel/library/cost.go.
The global function `matches` costs 1, as in Kubernetes up to 1.36.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kschedd.cel.checker import Checker, Resolved
from kschedd.cel.environment import CelEnvironment
from kschedd.cel.functions.network import CIDR, FORMAT, IP, URL
from kschedd.cel.functions.overloads import Overload
from kschedd.cel.syntax import (
    CallExpr,
    Expr,
    Fold,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
    parse,
)
from kschedd.cel.types import DURATION_NAME, OPTIONAL_NAME, TIMESTAMP_NAME, Type
from kschedd.cel.values import QUANTITY, SEMVER

_MOST: Final = (1 << 64) - 1
_TEXT: Final = 0.1  # cost of a character
_PATTERN: Final = 0.25  # cost of a character of a regular expression
_LIST, _MAP, _STRUCT = 10, 30, 40  # costs of creating a value
_FORMAT_PATTERN: Final = 128 * _PATTERN
_SCALARS: Final = frozenset(("bool", "double", "int", "uint", DURATION_NAME, TIMESTAMP_NAME))
_TEXTS: Final = frozenset(("string", "bytes"))
_ORDERS: Final = frozenset(("_<_", "_<=_", "_>_", "_>=_"))
_SEARCHES: Final = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"))
_PARSERS: Final = frozenset(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"))

Size = tuple[int, int]
"""The smallest and the largest size."""
_UNKNOWN: Final[Size] = (0, _MOST)
_ONE: Final[Size] = (1, 1)


@attrs.frozen(eq=False)
class SizedType:
    """A type with the largest size of its values, and the types of the fields, items or entries in it."""

    most: int = 0
    fields: Mapping[str, "SizedType"] = attrs.field(factory=dict)
    item: "SizedType | None" = None
    key: "SizedType | None" = None


@attrs.frozen(eq=False)
class _Path:
    """The path of a value, which begins with a variable.

    Like upstream's paths it is a Go slice: a longer path may use the same memory and then overwrite the end of another
    path. Some estimates depend on this overwriting.
    """

    memory: list[str] = attrs.field(factory=list)
    length: int = 0

    @classmethod
    def of(cls, variable: str) -> "_Path":
        return cls([variable], 1)

    def __bool__(self) -> bool:
        return self.length > 0

    def then(self, part: str) -> "_Path":
        """Return the path followed by this part."""
        memory = self.memory
        if self.length == len(memory):
            memory = [*memory, *[""] * max(len(memory), 1)]
        memory[self.length] = part
        return _Path(memory, self.length + 1)

    @property
    def parts(self) -> list[str]:
        """The parts after the variable."""
        return self.memory[1 : self.length]


_NO_PATH: Final = _Path()


@attrs.frozen
class _Entries:
    """Sizes of the keys and values of a list or map."""

    of_list: bool
    key: Size
    value: Size


@attrs.frozen
class _Local:
    path: _Path
    size: Size | None
    entries: _Entries | None = None


def estimated_cost(expression: str, environment: CelEnvironment, root: SizedType) -> int:
    """Return the largest cost of a valid expression; all its variables have the type `root`."""
    tree = parse(expression, environment.macros)
    checker = Checker(environment)
    checker.whole(tree)
    return _Estimate(checker, root).cost(tree)


def _capped(number: int) -> int:
    return min(number, _MOST)


def _by(size: int, factor: float) -> int:
    return _capped(math.ceil(float(size) * factor))


def _union(one: Size, other: Size) -> Size:
    return min(one[0], other[0]), max(one[1], other[1])


def _of_all(sizes: Sequence[Size]) -> Size:
    return (min(low for low, _ in sizes), max(high for _, high in sizes)) if sizes else (0, 0)


def _sum(one: Size, other: Size) -> Size:
    return _capped(one[0] + other[0]), _capped(one[1] + other[1])


def _product(one: Size, other: Size) -> Size:
    return _capped(one[0] * other[0]), _capped(one[1] * other[1])


class _Estimate:
    def __init__(self, checker: Checker, root: SizedType) -> None:
        self._checker = checker
        self._root = root
        self._paths: dict[int, _Path] = {}  # of nodes, by their id
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    # -- nodes ------------------------------------------------------------------------------------------------

    def cost(self, node: Expr) -> int:
        return _capped(self._cost(node))

    def _cost(self, node: Expr) -> int:
        if isinstance(node, Literal):
            return 0
        if isinstance(node, Ident):
            local = self._local(node)
            self._paths[id(node)] = _Path.of(node.name) if local is None else local.path
            return 1
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, CallExpr):
            return self._call(node)
        if isinstance(node, ListLiteral):
            cost, sizes = 0, list[Size]()
            for item in node.items:
                cost += self.cost(item)
                sizes.append(self._known(item))
            self._entries[id(node)] = _Entries(True, _ONE, _of_all(sizes))
            return cost + _LIST
        if isinstance(node, MapLiteral):
            cost, of_keys, of_values = 0, list[Size](), list[Size]()
            for key, value in node.entries:
                cost += self.cost(key) + self.cost(value)
                of_keys.append(self._known(key))
                of_values.append(self._known(value))
            self._entries[id(node)] = _Entries(False, _of_all(of_keys), _of_all(of_values))
            return cost + _MAP
        if isinstance(node, StructLiteral):
            return sum(self.cost(value) for _, _, value, _ in node.fields) + _STRUCT
        assert isinstance(node, Fold), f"a node of a known class is expected, not {node}"
        return self._bound(node) if _is_binding(node) else self._fold(node)

    def _select(self, node: Select) -> int:
        cost = self.cost(node.operand)
        if node.tests:
            return cost
        if node.optional:
            return cost + 1
        of = self._checker.type_of(node.operand)
        self._paths[id(node)] = self._path(node.operand).then(node.field)
        return cost + (of.name == "map" or of.is_struct)

    def _bound(self, node: Fold) -> int:
        cost = self.cost(node.range) + self.cost(node.init)
        self._push(node.accu, self._path(node.init), self._size(node.init), self._entries_of(node.init))
        cost += self.cost(node.result)
        size, entries = self._size(node.result), self._entries_of(node.result)
        self._locals[node.accu].pop()
        self._set(node, size, entries)
        return cost

    def _fold(self, node: Fold) -> int:
        cost = self.cost(node.range) + self.cost(node.init)
        self._push(node.accu, self._path(node.init), self._size(node.init), self._entries_of(node.init))
        entries, path = self._entries_of(node.range), self._path(node.range)
        of_list = self._checker.type_of(node.range).name == "list" if entries is None else entries.of_list
        key, value = ("@indices", "@items") if of_list else ("@keys", "@values")
        of_key, of_value = (None, None) if entries is None else (entries.key, entries.value)
        if len(node.variables) == 2:
            self._push(node.variables[0], path.then(key), of_key)
            self._push(node.variables[1], path.then(value), of_value)
        elif of_list:
            self._push(node.variables[0], path.then(value), of_value)
        else:
            self._push(node.variables[0], path.then(key), of_key)
        of_step = self.cost(node.condition) + self.cost(node.step)
        stepped = self._entries_of(node.step)
        for name in node.variables:
            self._locals[name].pop()
        cost += self.cost(node.result)
        self._locals[node.accu].pop()
        count = self._known(node.range)
        if isinstance(node.init, Literal):
            self._set(node, self._size(node.init), None)
        elif isinstance(node.init, ListLiteral | MapLiteral):
            self._set(node, count, stepped)
        return cost + _capped(count[1] * of_step)

    # -- sizes ------------------------------------------------------------------------------------------------

    def _push(self, name: str, path: _Path, size: Size | None, entries: _Entries | None = None) -> None:
        self._locals.setdefault(name, []).append(_Local(path, size, entries))

    def _local(self, node: Expr) -> _Local | None:
        found = self._locals.get(node.name) if isinstance(node, Ident) else None
        return found[-1] if found else None

    def _path(self, node: Expr) -> _Path:
        local = self._local(node)
        return self._paths.get(id(node), _NO_PATH) if local is None else local.path

    def _set(self, node: Expr, size: Size | None, entries: _Entries | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size
        if entries is not None:
            self._entries[id(node)] = entries

    def _entries_of(self, node: Expr) -> _Entries | None:
        found, local = self._entries.get(id(node)), self._local(node)
        return local.entries if found is None and local is not None else found

    def _known(self, node: Expr) -> Size:
        return self._size(node) or _UNKNOWN

    def _size(self, node: Expr) -> Size | None:
        """Return the size of a value; None if it is not known."""
        known = self._sizes.get(id(node)) or _stated_size(node)
        if known is not None:
            return known
        declared = self._declared(self._path(node))
        if declared is not None:
            self._sizes[id(node)] = declared
            return declared
        if _is_scalar(self._checker.type_of(node)):
            return _ONE
        local = self._local(node)
        return None if local is None else local.size

    def _declared(self, path: _Path) -> Size | None:
        """Return the size of the values at a path, which begins with a variable."""
        if not path:
            return None
        found = self._root
        for part in path.parts:
            inner = found.key if part == "@keys" else found.item if part in ("@items", "@values") else None
            inner = found.fields.get(part, inner)
            if inner is None:
                return None
            found = inner
        return (0, found.most)

    def _element(self, node: Expr) -> Size:
        """Return the size of the elements of a list."""
        path = self._path(node)
        declared = self._declared(_Path([*path.memory[: path.length], "@items"], path.length + 1)) if path else None
        return declared or _UNKNOWN

    # -- calls ------------------------------------------------------------------------------------------------

    def _call(self, node: CallExpr) -> int:
        call = self._checker.resolved.get(id(node))
        assert isinstance(call, Resolved), "the checker has resolved the call"
        costs = self._costs(node, call.args)
        if call.name == "dyn":
            self._set(node, self._size(call.args[0]), self._entries_of(call.args[0]))
            return sum(costs) + 1
        if call.name in ("_&&_", "_||_"):
            return sum(costs)
        if call.name == "_?_:_":
            _, first, second = call.args
            one, other = self._entries_of(first), self._entries_of(second)
            self._set(node, _union(self._known(first), self._known(second)), _together(one, other))
            return costs[0] + max(costs[1], costs[2])
        most, size = 0, None
        for overload in call.overloads:
            cost, result = self._function(call.name, overload, call.args, node)
            most = max(most, cost)
            if result is not None:
                size = result if size is None else _union(size, result)
            if call.name == "_[_]" and (of := overload.params[0].name) in ("list", "map"):
                entries = self._entries_of(call.args[0])
                size = None if entries is None else entries.value
                part = "@items" if of == "list" else "@values"
                self._paths[id(node)] = self._path(call.args[0]).then(part)
            size = self._size(node) if size is None else size
        self._set(node, size, None)
        return sum(costs) + _capped(most)

    def _costs(self, node: CallExpr, args: Sequence[Expr]) -> list[int]:
        """Return the costs of the arguments. The receiver of a method is estimated last, as in cel-go."""
        costs = [0] * len(args)
        places = list(range(len(args)))
        for place in (*places[1:], 0) if args and args[0] is node.target else places:
            costs[place] = self.cost(args[place])
            self._size(args[place])  # cache the size of the argument now, because later estimates may change its path
        return costs

    def _function(self, name: str, overload: Overload, args: Sequence[Expr], node: Expr) -> tuple[int, Size | None]:
        """Return the cost of one overload without its arguments, and the size of the result (None: unknown here)."""
        of = overload.params[0].name if overload.params else ""
        found = self._of_list(name, overload, args) if name in _OF_LISTS else None
        if found is None and overload.member and args:
            found = self._of_text(name, overload, args)
        if found is None and name in _SEARCHES and overload.member:
            found = self._searched(name, args[0]), None
        if found is not None:
            return found
        first = self._known(args[0]) if args else _ONE
        if name in _PARSERS:
            return (1 if overload.member else _by(first[1], _TEXT)), None
        match name:
            case "url":
                return _by(first[1], _TEXT), first
            case "ip.isCanonical":
                return _by(first[1], 2 * _TEXT), None
            case "bytes" if of == "string":
                return _by(first[1], _TEXT), (first[0], first[1] * 4 & _MOST)
            case "string" if of == "bytes":
                return _by(first[1], _TEXT), (first[0] // 4, first[1])
            case "strings.quote":
                return _by(first[1], _TEXT), (first[0] + 2, first[1] * 2 + 2 & _MOST)
            case "@in" if overload.params[1].name == "list":
                return self._known(args[1])[1], None
            case "_+_" if of in _TEXTS or of == "list":
                size = _sum(first, self._known(args[1]))
                entries = _together(self._entries_of(args[0]), self._entries_of(args[1]))
                self._set(node, None, entries)
                return (1 if of == "list" else _by(size[1], _TEXT)), size
            case "_==_" | "_!=_":
                return self._equality(name, args), None
            case _ if name in _ORDERS and of in _TEXTS:
                return _by(min(first[1], self._known(args[1])[1]), _TEXT), None
        return 1, None

    def _equality(self, name: str, args: Sequence[Expr]) -> int:
        left, right = (self._checker.type_of(each) for each in args)
        if name == "_==_" and left == right and left.name in _EQUALITY:
            return _EQUALITY[left.name]
        if name == "_==_" and left == right and left.name == URL:
            return _by(max(1, (self._size(args[1]) or _ONE)[1]), _TEXT)
        return _by(min(self._known(args[0])[1], self._known(args[1])[1]), _TEXT)

    def _searched(self, name: str, target: Expr) -> int:
        of, size = self._checker.type_of(target), self._known(target)[1]
        if not of.params:
            return size if name == "includes" else _by(size, _TEXT)
        each = 1 + (_by(self._element(target)[1], _TEXT) if of.params[0].name in _TEXTS else 0)
        return _capped(size * _capped(each))

    def _of_text(self, name: str, overload: Overload, args: Sequence[Expr]) -> tuple[int, Size | None] | None:
        """Return the cost and the size of the result of a method of strings, formats and networks."""
        target, sizes = self._known(args[0]), [self._known(each) for each in args[1:]]
        match name:
            case "lowerAscii" | "upperAscii" | "substring" | "trim":
                return _by(target[1], _TEXT), target
            case "replace":
                return _by(target[1], 2 * _TEXT), _replaced(target, *sizes[:2])
            case "split":
                most = args[2].value if len(args) > 2 and isinstance(args[2], Literal) else target[1]
                return _by(target[1], 2 * _TEXT), (0, most & _MOST if isinstance(most, int) else target[1])
            case "join":
                size = _product(target, self._element(args[0]))
                if sizes:
                    size = _sum(size, _product(sizes[0], (max(target[0] - 1, 0), max(target[1] - 1, 0))))
                return _by(size[1], _TEXT), size
            case "find" | "findAll":
                return self._matched(target, sizes[0]), (0, target[1])
            case "matches":
                return self._matched(target, sizes[0]), None
            case "format":
                return _by(target[1], _TEXT), None
            case "startsWith" | "endsWith":
                return _by(sizes[0][1], _TEXT), None
            case "contains":
                return _by(target[1], _TEXT) * _by(sizes[0][1], _TEXT), None
            case "containsIP":
                return 4 + self._parsed(overload, sizes[0]), None
            case "containsCIDR":
                return 7 + self._parsed(overload, sizes[0]), None
            case "validate":
                return _by(_by(sizes[0][1], _TEXT), _FORMAT_PATTERN), None
        return None

    def _parsed(self, overload: Overload, size: Size) -> int:
        return _by(size[1], _TEXT) if overload.params[1].name == "string" else 0

    def _matched(self, text: Size, pattern: Size) -> int:
        return _by(_capped(text[1] + 1), _TEXT) * _by(pattern[1], _PATTERN)

    def _of_list(self, name: str, overload: Overload, args: Sequence[Expr]) -> tuple[int, Size | None]:
        size = self._known(args[0])
        factor = 1.0
        match name:
            case "slice":
                count = (_number(args[2], size[1]) - _number(args[1], 0)) & _MOST
                size = count, count
            case "lists.range":
                count = _number(args[0], _MOST)
                size = count, count
            case "flatten":
                factor = float(_number(args[1], _MOST)) if len(args) > 1 else 1.0
            case "distinct":
                size, factor = _product(size, size), 2.0
            case "sort" | "@sortByAssociatedKeys":
                keys = self._known(args[-1])
                size = _product(keys, keys)
                factor = 2.0 + (_TEXT if overload.params[-1].params[0].name in _TEXTS else 0.0)
            case "sets.contains" | "sets.intersects" | "sets.equivalent":
                product = _product(size, self._known(args[1]))
                return _by(product[1], 2.0 if name == "sets.equivalent" else 1.0) + 1, None
        return _by(size[1], factor) + 1 + _LIST, size


_OF_LISTS: Final = frozenset(
    "slice lists.range reverse flatten distinct sort @sortByAssociatedKeys sets.contains sets.intersects "
    "sets.equivalent".split()
)
_EQUALITY: Final[Mapping[str, int]] = {**dict.fromkeys((IP, CIDR, QUANTITY, SEMVER), 1), FORMAT: 7}


def _is_binding(node: Fold) -> bool:
    """Return whether a fold only gives a name to a value."""
    empty = isinstance(node.range, ListLiteral) and not node.range.items
    return empty and isinstance(node.condition, Literal) and node.condition.value is False


def _is_scalar(of: Type) -> bool:
    return _is_scalar(of.params[0]) if of.name == OPTIONAL_NAME else of.name in _SCALARS


def _stated_size(node: Expr) -> Size | None:
    """Return the size of a literal."""
    if isinstance(node, Literal):
        size = len(node.value) if isinstance(node.value, str | bytes) else 1
    elif isinstance(node, ListLiteral):
        size = len(node.items)
    elif isinstance(node, MapLiteral):
        size = len(node.entries)
    else:
        return None
    return size, size


def _together(one: _Entries | None, other: _Entries | None) -> _Entries | None:
    if one is None or other is None:
        return None
    return _Entries(one.of_list, _union(one.key, other.key), _union(one.value, other.value))


def _number(node: Expr, otherwise: int) -> int:
    value = node.value if isinstance(node, Literal) else None
    return value & _MOST if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _replaced(text: Size, old: Size, new: Size) -> Size:
    """Return the size of a text after replacements."""
    if old[0] == 0:
        most = _capped(_capped(text[1] + 1) * new[1]) + text[1]
    elif new[1] <= old[0]:
        most = text[1]
    else:
        most = _capped(math.ceil(text[1] / old[0]) * new[1])
    if old[1] == 0:
        least = _capped(_capped(text[0] + 1) * new[0]) + text[0]
    elif old[1] <= new[0]:
        least = text[0]
    else:
        least = math.ceil(text[0] / old[1]) * new[0]
    return _capped(least), _capped(most)
