"""CEL parser: converts the text of an expression to a syntax tree.

The Common Expression Language is small: literals, operators, `a.b`, `a[b]`, `a.?b`, `a[?b]`, calls, lists and maps.
Operators are calls with CEL's function names (`_==_`, `_&&_`), so the tree contains only calls. The parser passes each
call to the macros of the environment (`cel.macros`), which may replace it. Nesting and tree height are limited, so that
recursive traversals of the tree cannot overflow the stack.

Source: cel-spec doc/langdef.md (Syntax); messages and positions as in cel-go's parser.
Errors: CelSyntaxError, with the line, the column and the source line.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from kschedd.errors import KscheddError

DEEPEST_NESTING: Final = 100
HIGHEST_TREE: Final = 250
MOST_CODE_POINTS: Final = 100_000
_LONGEST_SHOWN: Final = 16_384  # bytes of a line

_SPACE: Final = re.compile(r"(?:[ \t\r\n\f]+|//[^\n]*)*")
_NUMBER: Final = re.compile(
    r"0[xX](?P<hex>[0-9a-fA-F]+)(?P<hexu>[uU]?)"
    r"|(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<int>[0-9]+)(?P<intu>[uU]?)"
)
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_QUOTE: Final = re.compile(r"""([rRbB]{0,2})(\"{3}|'{3}|"|')""")
_MARK: Final = re.compile(r"==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}]")
_SIMPLE_ESCAPES: Final = {
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "?": 63, '"': 34, "'": 39, "`": 96
}  # fmt: skip
_RESERVED: Final = frozenset(
    "as break const continue else for function if import let loop package namespace return var void while in".split()
)
_BINARY: Final = {
    "||": 1, "&&": 2,
    "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3, "in": 3,
    "+": 4, "-": 4,
    "*": 5, "/": 5, "%": 5,
}  # fmt: skip


@attrs.frozen(eq=False)
class Expr:
    at: int  # offset in the text


@attrs.frozen(eq=False)
class Literal(Expr):
    value: object  # bool, int, Uint, float, str, bytes or None


@attrs.frozen(eq=False)
class Ident(Expr):
    name: str


@attrs.frozen(eq=False)
class Select(Expr):
    operand: Expr
    field: str
    optional: bool = False
    tests: bool = False  # has(operand.field)


@attrs.frozen(eq=False)
class CallExpr(Expr):
    """A call of a function, macro or operator, or with `target` a method call `target.name(...)`."""

    name: str
    args: tuple[Expr, ...]
    target: Expr | None = None


@attrs.frozen(eq=False)
class ListLiteral(Expr):
    items: tuple[Expr, ...]
    optional: frozenset[int] = frozenset()  # places of items such as `?x`


@attrs.frozen(eq=False)
class MapLiteral(Expr):
    entries: tuple[tuple[Expr, Expr], ...]
    optional: frozenset[int] = frozenset()  # places of entries such as `?key: value`


@attrs.frozen(eq=False)
class StructLiteral(Expr):
    """A value of a named type: `Object.spec{replicas: 1}`. A field is its offset, name, value, and True for `?name`."""

    name: str
    fields: tuple[tuple[int, str, Expr, bool], ...]


@attrs.frozen(eq=False)
class Fold(Expr):
    """A comprehension: `accu` starts as `init`, and becomes `step` for each item while `condition` holds."""

    range: Expr
    variables: tuple[str, ...]  # one or two
    accu: str
    init: Expr
    condition: Expr
    step: Expr
    result: Expr


class Uint(int):
    """CEL's unsigned integer, which is a separate type from int."""


@attrs.define(eq=False)
class CelSyntaxError(KscheddError):
    """Text that is not a valid CEL expression."""

    text: str
    at: int
    why: str

    def __str__(self) -> str:
        return located(self.text, self.at, self.why)


def located(text: str, at: int, why: str) -> str:
    """Return `why` with its position in the text, in the format of cel-go's issues; -1 is no position."""
    if at < 0:
        return f"ERROR: <input>:-1:0: {why}"
    if not text:
        return f"ERROR: <input>:1:0: {why}"
    line = text.count("\n", 0, at) + 1
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    column = at - start
    shown = text[start : len(text) if end < 0 else end]
    where = f"ERROR: <input>:{line}:{column + 1}: {why}"
    return where if len(shown.encode(errors="replace")) > _LONGEST_SHOWN else f"{where}\n | {shown}\n | {'.' * column}^"


Macro = Callable[[CallExpr], "Expr | MacroFault | None"]
Macros = dict[tuple[str, int, bool], Macro]
"""Macros by name, number of arguments, and whether they are methods."""


@attrs.frozen
class MacroFault:
    at: int
    why: str


def parse(text: str, macros: Macros | None = None) -> Expr:
    """Return the tree of an expression. Raises CelSyntaxError."""
    if len(text) > MOST_CODE_POINTS:
        why = f"expression code point size exceeds limit: size: {len(text)}, limit {MOST_CODE_POINTS}"
        raise CelSyntaxError(text, -1, why)
    return _Parser(text, tokens(text), macros or {}).whole()


@attrs.frozen
class CelToken:
    """A token and its offset in the text; a literal also has its value."""

    kind: str  # "mark", "word", "literal" or "end"
    text: str
    at: int
    value: object = None


def tokens(text: str) -> list[CelToken]:
    """Return the tokens of an expression; the last token is of kind "end". Raises CelSyntaxError."""
    found = []
    at = _after_space(text, 0)
    while at < len(text):
        if (quote := _QUOTE.match(text, at)) is not None:
            value, end = _quoted(text, at, quote)
            found.append(CelToken("literal", text[at:end], at, value))
        elif (word := _WORD.match(text, at)) is not None:
            end = word.end()
            found.append(_word(word[0], at))
        elif (number := _NUMBER.match(text, at)) is not None:
            end = number.end()
            found.append(CelToken("literal", number[0], at, _number(text, at, number)))
        elif (mark := _MARK.match(text, at)) is not None:
            end = mark.end()
            found.append(CelToken("mark", mark[0], at))
        else:
            raise CelSyntaxError(text, at, f"Syntax error: token recognition error at: '{text[at]}'")
        at = _after_space(text, end)
    found.append(CelToken("end", "<EOF>", len(text)))
    return found


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None, "no space at all matches, too"
    return space.end()


def _word(word: str, at: int) -> CelToken:
    if word in ("true", "false"):
        return CelToken("literal", word, at, word == "true")
    if word == "null":
        return CelToken("literal", word, at, None)
    return CelToken("mark" if word == "in" else "word", word, at)


def _number(text: str, at: int, match: re.Match[str]) -> object:
    if match["float"] is not None:
        return float(match["float"])
    digits, unsigned = (match["hex"], match["hexu"]) if match["hex"] is not None else (match["int"], match["intu"])
    value = int(digits, 16 if match["hex"] is not None else 10) if len(digits) <= 64 else 1 << 64
    if unsigned:
        if value >= 1 << 64:
            raise CelSyntaxError(text, at, "invalid uint literal")
        return Uint(value)
    if value > 1 << 63:  # 2**63 itself is valid after a unary minus
        raise CelSyntaxError(text, at, "invalid int literal")
    return value


def _quoted(text: str, at: int, opening: re.Match[str]) -> tuple[str | bytes, int]:
    """Return the string or bytes literal that begins at `at`, and the offset of its end."""
    prefix, quote = opening[1].lower(), opening[2]
    if prefix in ("rr", "bb"):
        raise CelSyntaxError(text, at, f"Syntax error: token recognition error at: '{opening[0]}'")
    raw, is_bytes = "r" in prefix, "b" in prefix
    pieces: list[str] = []
    octets = bytearray()
    place = opening.end()
    while True:
        if place >= len(text) or (len(quote) == 1 and text[place] in "\r\n"):
            raise CelSyntaxError(text, at, f"Syntax error: token recognition error at: '{text[at:place]}'")
        if text.startswith(quote, place):
            return (bytes(octets) if is_bytes else "".join(pieces)), place + len(quote)
        char = text[place]
        place += 1
        if char == "\\" and not raw:
            code, is_octet, place = _escape(text, place)
            if is_bytes and is_octet:
                octets.append(code)
                continue
            if 0xD800 <= code < 0xE000:
                raise CelSyntaxError(text, at, "invalid unicode code point")
            char = chr(code)
        if is_bytes:
            octets += char.encode(errors="surrogatepass")
        else:
            pieces.append(char)


def _escape(text: str, at: int) -> tuple[int, bool, int]:
    """Return the escape after the backslash at `at` - 1: code, whether it is one octet in bytes, and end offset."""
    kind = text[at : at + 1]
    if kind in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[kind], False, at + 1
    length, base = {"x": (2, 16), "X": (2, 16), "u": (4, 16), "U": (8, 16)}.get(kind, (3, 8))
    start = at + 1 if base == 16 else at
    digits = text[start : start + length]
    try:
        code = int(digits, base) if len(digits) == length and digits.isalnum() else -1
    except ValueError:
        code = -1
    if code < 0 or code > 0x10FFFF or (base == 8 and code > 0o377):
        raise CelSyntaxError(text, at - 1, "Syntax error: invalid escape sequence")
    return code, base == 8 or kind in "xX", start + length


_OPERANDS: Final = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"


@attrs.define(eq=False)
class _Parser:
    text: str
    tokens: list[CelToken]
    macros: Macros
    place: int = 0
    nesting: int = 0
    heights: dict[int, int] = attrs.field(factory=dict)  # for each node, by its id: the height of its subtree
    alive: list[Expr] = attrs.field(factory=list)  # keeps the nodes alive, so that the ids in `heights` are not reused

    def whole(self) -> Expr:
        tree = self.expression()
        if self.now.kind != "end":
            raise self.unexpected("extraneous input", " expecting <EOF>")
        return tree

    @property
    def now(self) -> CelToken:
        return self.tokens[self.place]

    def unexpected(self, what: str = "mismatched input", expected: str = "") -> CelSyntaxError:
        token = self.now
        return CelSyntaxError(self.text, token.at, f"Syntax error: {what} '{token.text}'{expected}")

    def no_operand(self) -> CelSyntaxError:
        """Return the error for a missing or wrong operand."""
        closing = ""
        before = self.tokens[self.place - 1] if self.place else None
        if before is not None and before.kind == "mark" and before.text == "(" and self.place > 1:
            closing = "')', " if self.tokens[self.place - 2].kind == "word" else ""
        if before is not None and before.kind == "mark" and before.text == ".":
            token = self.now
            return CelSyntaxError(self.text, token.at, "Syntax error: no viable alternative at input '.'")
        expected = f" expecting {{'[', '{{', '(', {closing}'.', '-', '!', {_OPERANDS}}}"
        return self.unexpected(expected=expected)

    def take(self, mark: str) -> bool:
        token = self.now
        if token.kind == "mark" and token.text == mark:
            self.place += 1
            return True
        return False

    def expect(self, mark: str) -> None:
        if self.take(mark):
            return
        if mark == ",":
            raise self.unexpected(expected=" expecting {'}', ','}")
        token = self.now
        raise CelSyntaxError(self.text, token.at, f"Syntax error: missing '{mark}' at '{token.text}'")

    def made(self, node: Expr, *under: Expr) -> Expr:
        height = 1 + max((self.heights[id(child)] for child in under), default=0)
        if height > HIGHEST_TREE:
            raise CelSyntaxError(self.text, node.at, f"expression recursion limit exceeded: {HIGHEST_TREE}")
        self.heights[id(node)] = height
        self.alive.append(node)
        return node

    def expression(self) -> Expr:
        self.nesting += 1
        if self.nesting > DEEPEST_NESTING:
            raise CelSyntaxError(self.text, self.now.at, f"expression recursion limit exceeded: {DEEPEST_NESTING}")
        condition = self.binary(1)
        at = self.now.at
        if self.take("?"):
            then = self.binary(1)
            self.expect(":")
            otherwise = self.expression()
            condition = self.made(CallExpr(at, "_?_:_", (condition, then, otherwise)), condition, then, otherwise)
        self.nesting -= 1
        return condition

    def binary(self, least: int) -> Expr:
        left = self.unary()
        while True:
            token = self.now
            binds = _BINARY.get(token.text, 0) if token.kind == "mark" else 0
            if binds < least or binds == 0:
                return left
            name = f"_{token.text}_" if token.text != "in" else "@in"
            at, operands = token.at, [left]
            if binds <= 2 and isinstance(left, CallExpr) and left.name == name:
                at, operands = left.at, list(left.args)
            while self.take(token.text):
                operands.append(self.binary(binds + 1))
                if binds > 2:  # only a chain of && or || becomes one node, so that it does not increase the height
                    break
            left = self.made(CallExpr(at, name, tuple(operands)), *operands)

    def unary(self) -> Expr:
        token = self.now
        for mark, name in (("!", "!_"), ("-", "-_")):
            times = 0
            while self.take(mark):
                times += 1
            if not times:
                continue
            if mark == "-" and times == 1 and (number := self.negative(token.at)) is not None:
                return self.postfix(number)
            operand = self.postfix(self.primary())
            return self.made(CallExpr(token.at, name, (operand,)), operand) if times % 2 else operand
        return self.postfix(self.primary())

    def negative(self, at: int) -> Expr | None:
        token = self.now
        if token.kind == "literal" and (type(token.value) is int or type(token.value) is float):
            self.place += 1
            return self.made(Literal(at, -token.value))
        return None

    def postfix(self, node: Expr) -> Expr:
        while True:
            at = self.now.at
            if self.take("."):
                optional = self.take("?")
                field = self.now
                if field.kind != "word":
                    raise self.no_operand() if field.kind == "end" else self.unexpected()
                self.place += 1
                bracket = self.now.at
                if not optional and self.take("("):
                    args, _ = self.arguments(")")
                    node = self.call(CallExpr(bracket, field.text, args, node), node, *args)
                else:
                    node = self.made(Select(at, node, field.text, optional), node)
            elif self.take("["):
                optional = self.take("?")
                index = self.expression()
                self.expect("]")
                node = self.made(CallExpr(at, "_[?_]" if optional else "_[_]", (node, index)), node, index)
            elif self.now.text == "{" and self.now.kind == "mark" and (name := dotted(node)):
                self.place += 1
                node = self.struct_literal(at, name)
            else:
                return node

    def call(self, node: CallExpr, *under: Expr) -> Expr:
        """Return the node of a call, after its macro if it is the call of a macro."""
        macro = self.macros.get((node.name, len(node.args), node.target is not None))
        expanded = None if macro is None else macro(node)
        if isinstance(expanded, MacroFault):
            raise CelSyntaxError(self.text, expanded.at, expanded.why)
        return self.made(node if expanded is None else expanded, *under)

    def struct_literal(self, at: int, name: str) -> Expr:
        fields: list[tuple[int, str, Expr, bool]] = []
        while not self.take("}"):
            if fields:
                self.expect(",")
                if self.take("}"):
                    break
            optional = self.take("?")
            field = self.now
            if field.kind != "word":
                raise self.unexpected()
            self.place += 1
            colon = self.now.at
            self.expect(":")
            fields.append((colon, field.text, self.expression(), optional))
        return self.made(StructLiteral(at, name, tuple(fields)), *(value for _, _, value, _ in fields))

    def primary(self) -> Expr:
        token = self.now
        if token.kind == "literal":
            self.place += 1
            if type(token.value) is int and token.value == 1 << 63:
                raise CelSyntaxError(self.text, token.at, "invalid int literal")
            return self.made(Literal(token.at, token.value))
        if self.take("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self.take("["):
            items, optional = self.arguments("]")
            return self.made(ListLiteral(token.at, items, optional), *items)
        if self.take("{"):
            return self.map_literal(token.at)
        self.take(".")  # a leading dot refers to the root namespace, which is the only namespace here
        word = self.now
        if word.kind != "word":
            raise self.no_operand() if word.kind == "end" else self.unexpected()
        if word.text in _RESERVED:
            raise CelSyntaxError(self.text, word.at, f"reserved identifier: {word.text}")
        self.place += 1
        at = self.now.at
        if self.take("("):
            args, _ = self.arguments(")")
            return self.call(CallExpr(at, word.text, args), *args)
        return self.made(Ident(word.at, word.text))

    def arguments(self, closing: str) -> tuple[tuple[Expr, ...], frozenset[int]]:
        """Parse the items up to `closing`. Return them, and the places of optional items of a list."""
        found: list[Expr] = []
        optional: set[int] = set()
        while not self.take(closing):
            if found and not self.take(","):
                raise self.unexpected(expected=f" expecting {{'{closing}', ','}}")
            if found and closing != ")" and self.take(closing):
                break
            if closing == "]" and self.take("?"):
                optional.add(len(found))
            found.append(self.expression())
        return tuple(found), frozenset(optional)

    def map_literal(self, at: int) -> Expr:
        entries: list[tuple[Expr, Expr]] = []
        optional: set[int] = set()
        while not self.take("}"):
            if entries:
                self.expect(",")
                if self.take("}"):
                    break
            if self.take("?"):
                optional.add(len(entries))
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression()))
        under = (node for entry in entries for node in entry)
        return self.made(MapLiteral(at, tuple(entries), frozenset(optional)), *under)


def dotted(node: Expr) -> str:
    """Return the qualified name that the node consists of, such as `a.b`; "" for any other node."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.optional and not node.tests and (before := dotted(node.operand)):
        return f"{before}.{node.field}"
    return ""


def subtree(node: Expr) -> Iterator[Expr]:
    """Yield a node and all nodes under it."""
    yield node
    under: tuple[Expr, ...] = ()
    if isinstance(node, Select):
        under = (node.operand,)
    elif isinstance(node, CallExpr):
        under = node.args if node.target is None else (node.target, *node.args)
    elif isinstance(node, ListLiteral):
        under = node.items
    elif isinstance(node, MapLiteral):
        under = tuple(part for entry in node.entries for part in entry)
    elif isinstance(node, StructLiteral):
        under = tuple(value for _, _, value, _ in node.fields)
    elif isinstance(node, Fold):
        under = (node.range, node.init, node.condition, node.step, node.result)
    for each in under:
        yield from subtree(each)
