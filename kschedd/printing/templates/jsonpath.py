"""JSONPath in kubectl's `-o jsonpath=` syntax: a template of text and `{expressions}`.

    {.metadata.name}   {.items[*].spec.nodeName}   {.items[?(@.status.phase=="Pending")].metadata.name}
    {range .items[*]}{.metadata.name}{"\\n"}{end}   {..image}   {.items[0:2]}   {.items[-1:]}   {['a','b']}

A missing field produces no output, as in kubectl. Multiple results are separated by a space.

Source: Kubernetes v1.34, client-go/util/jsonpath. Errors: JsonPathError, with the position and the expected
input.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class JsonPathError(KscheddError):
    """A template that cannot be parsed."""

    template: str
    at: int  # offset in characters
    why: str

    def __str__(self) -> str:
        return f"jsonpath {self.template!r}: at character {self.at + 1}: {self.why}"


@attrs.frozen
class _Text:
    text: str


@attrs.frozen
class _Field:
    names: tuple[str, ...]  # several names: a union


@attrs.frozen
class _Every:
    pass


@attrs.frozen
class _Deep:
    """`..`: a value and all its descendants."""


@attrs.frozen
class _Root:
    """`$`: the root of the document, even if the present value is another one."""


@attrs.frozen
class _Slices:
    slices: tuple[slice | int, ...]


@attrs.frozen
class _Filter:
    left: "_Path | _Constant"
    operator: str  # "" tests for existence
    right: "_Path | _Constant"


@attrs.frozen
class _Constant:
    value: Any


Step = _Field | _Every | _Deep | _Root | _Slices | _Filter


@attrs.frozen
class _Path:
    steps: tuple[Step, ...]


@attrs.frozen
class _Range:
    path: _Path
    body: "tuple[_Part, ...]"


_Part = _Text | _Path | _Range
CompiledPath = _Path

_NAME = re.compile(r"(?:\\.|[^\s.\[\]{}()'\"=!<>|&,@*?:$])+")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_LONGEST_INTEGER = 18
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">")


def compile_template(template: str) -> tuple[_Part, ...]:
    """Parse a template. A path without braces is one expression, as in kubectl."""
    text = template if "{" in template else "{" + (template if template[:1] in (".", "[", "$", "@") else "." + template)
    if "{" not in template:
        text += "}"
    return _Reader(text, template).template()


def evaluate(parts: Sequence[_Part], document: Any) -> str:
    """Return the output of the template for `document`."""
    return "".join(_written(parts, document, document))


def compile_path(path: str) -> CompiledPath:
    """Parse a single path: `x.y`, `.x.y`, `{x.y}` and `{.x.y}` are accepted, as in kubectl. Raises JsonPathError."""
    bare = path[1:-1] if path.startswith("{") and path.endswith("}") else path
    if not bare:
        raise JsonPathError(path, 0, "one path is expected, such as .metadata.name")
    parts = compile_template(bare if bare[0] == "{" else f"{{{bare if bare[0] in '.[$@' else f'.{bare}'}}}")
    if len(parts) != 1 or not isinstance(parts[0], _Path):
        raise JsonPathError(path, 0, "one path is expected, such as .metadata.name")
    return parts[0]


def values_at(path: CompiledPath, document: Any) -> list[Any]:
    """Return all values that the path matches."""
    return _follow(path, document, document)


def find(path: str, document: Any) -> list[Any]:
    """Return all values that a single path matches. Raises JsonPathError."""
    return values_at(compile_path(path), document)


class _Reader:
    def __init__(self, text: str, shown: str) -> None:
        self.text = text
        self.shown = shown
        self.at = 0

    def fail(self, why: str) -> JsonPathError:
        return JsonPathError(self.shown, self.at, why)

    def template(self) -> tuple[_Part, ...]:
        parts, ended = self._parts()
        if ended:
            raise self.fail("{end} without a {range}")
        return tuple(parts)

    def _parts(self) -> tuple[list[_Part], bool]:
        parts: list[_Part] = []
        while self.at < len(self.text):
            if self.text[self.at] != "{":
                end = self.text.find("{", self.at)
                end = len(self.text) if end < 0 else end
                parts.append(_Text(self.text[self.at : end]))
                self.at = end
                continue
            self.at += 1
            self._blanks()
            if self._word("end"):
                self._expect("}")
                return parts, True
            if self._word("range"):
                path = self._path()
                self._expect("}")
                body, ended = self._parts()
                if not ended:
                    raise self.fail("a {range} needs an {end}")
                parts.append(_Range(path, tuple(body)))
                continue
            while not self._take("}"):
                if self.at >= len(self.text):
                    raise self.fail('"}" is missing')
                if self._peek() in "'\"":
                    parts.append(_Text(self._string()))
                else:
                    parts.append(self._path())
                self._blanks()
        return parts, False

    def _path(self) -> _Path:
        self._blanks()
        steps: list[Step] = []
        start = self.at
        if self._take("$"):
            steps.append(_Root())
        else:
            self._take("@")
        while True:
            if self.text.startswith("..", self.at):
                self.at += 2
                steps.append(_Deep())
                if self._peek() not in ("[", "*"):
                    steps.append(self._name())
                elif self._take("*"):
                    steps.append(_Every())
            elif self._take("."):
                if self._take("*"):
                    steps.append(_Every())
                elif self._peek() not in ("[", "}", ")", " ", ""):
                    steps.append(self._name())
            elif self._take("["):
                steps.append(self._bracket())
            elif self.at == start and _NAME.match(self.text, self.at):
                steps.append(self._name())
            else:
                break
        if self.at == start:
            raise self.fail("a path such as .metadata.name is expected")
        return _Path(tuple(steps))

    def _name(self) -> _Field:
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self.fail("a field's name is expected")
        self.at = match.end()
        return _Field((re.sub(r"\\(.)", r"\1", match.group()),))

    def _bracket(self) -> Step:
        self._blanks()
        if self._take("?"):
            self._expect("(")
            left = self._operand()
            operator = next((op for op in _OPERATORS if self.text.startswith(op, self.at)), "")
            self.at += len(operator)
            right: _Path | _Constant = self._operand() if operator else _Constant(None)
            self._blanks()
            self._expect(")")
            self._expect("]")
            return _Filter(left, operator, right)
        if self._take("*"):
            self._expect("]")
            return _Every()
        if self._peek() in "'\"":
            names = [self._string()]
            self._blanks()
            while self._take(","):
                self._blanks()
                names.append(self._string())
                self._blanks()
            self._expect("]")
            return _Field(tuple(names))
        slices = [self._slice()]
        while self._take(","):
            slices.append(self._slice())
        self._expect("]")
        return _Slices(tuple(slices))

    def _slice(self) -> slice | int:
        bounds: list[int | None] = [self._integer()]
        while self._take(":"):
            bounds.append(self._integer())
        if len(bounds) == 1:
            if bounds[0] is None:
                raise self.fail("a number, a slice, '*', a quoted name or ?(...) is expected")
            return bounds[0]
        if len(bounds) > 3 or (len(bounds) == 3 and bounds[2] is not None and bounds[2] < 1):
            raise self.fail("a slice is [start:end] or [start:end:step] with a positive step")
        return slice(*bounds)

    def _integer(self) -> int | None:
        self._blanks()
        match = re.compile(r"-?[0-9]+").match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        self._blanks()
        if len(match.group()) > _LONGEST_INTEGER:
            raise self.fail(f"a number has at most {_LONGEST_INTEGER} characters")
        return int(match.group())

    def _operand(self) -> "_Path | _Constant":
        self._blanks()
        found: _Path | _Constant
        if self._peek() in "'\"" and self._peek():
            found = _Constant(self._string())
        elif (number := _NUMBER.match(self.text, self.at)) is not None:
            self.at = number.end()
            found = _Constant(json.loads(number.group()))
        elif self._word("true"):
            found = _Constant(True)
        elif self._word("false"):
            found = _Constant(False)
        elif self._word("null"):
            found = _Constant(None)
        else:
            found = self._path()
        self._blanks()
        return found

    def _string(self) -> str:
        quote = self._peek()
        if quote == "" or quote not in "'\"":
            raise self.fail("quoted text is expected")
        end = self.at + 1
        while end < len(self.text) and self.text[end] != quote:
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise self.fail(f"closing {quote} is missing")
        inner = self.text[self.at + 1 : end]
        self.at = end + 1
        escapes = {"n": "\n", "t": "\t", "r": "\r"}
        return re.sub(r"\\(.)", lambda match: escapes.get(match.group(1), match.group(1)), inner)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, char: str) -> bool:
        if self._peek() == char:
            self.at += 1
            return True
        return False

    def _expect(self, char: str) -> None:
        self._blanks()
        if not self._take(char):
            raise self.fail(f'"{char}" is expected')

    def _word(self, word: str) -> bool:
        end = self.at + len(word)
        if self.text.startswith(word, self.at) and not re.match(r"\w", self.text[end : end + 1]):
            self.at = end
            return True
        return False

    def _blanks(self) -> None:
        while self._peek().isspace():
            self.at += 1


def _written(parts: Sequence[_Part], here: Any, root: Any) -> Iterator[str]:
    for part in parts:
        match part:
            case _Text(text):
                yield text
            case _Range(path, body):
                for value in _follow(path, here, root):
                    yield from _written(body, value, root)
            case _Path():
                yield " ".join(_text(value) for value in _follow(part, here, root))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _follow(path: _Path, here: Any, root: Any) -> list[Any]:
    values = [here]
    for step in path.steps:
        values = [found for value in values for found in _step(step, value, root)]
    return values


def _step(step: Step, value: Any, root: Any) -> list[Any]:
    match step:
        case _Root():
            return [root]
        case _Field(names):
            return [value[name] for name in names if name in value] if isinstance(value, dict) else []
        case _Every():
            return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
        case _Deep():
            return list(_within(value))
        case _Slices(slices):
            return [found for part in slices for found in _sliced(value, part)] if isinstance(value, list) else []
        case _Filter():
            items = value if isinstance(value, list) else [value]
            return [item for item in items if _holds(step, item, root)]


def _within(value: Any) -> Iterator[Any]:
    yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        if isinstance(child, dict | list):
            yield from _within(child)


def _sliced(value: list[Any], part: slice | int) -> list[Any]:
    if isinstance(part, slice):
        return value[part]
    return [value[part]] if -len(value) <= part < len(value) else []


def _holds(step: _Filter, item: Any, root: Any) -> bool:
    left = _operand_value(step.left, item, root)
    if not step.operator:
        return bool(left)
    right = _operand_value(step.right, item, root)
    if not left or not right:
        return False
    a, b = left[0], right[0]
    if step.operator == "==":
        return bool(a == b)
    if step.operator == "!=":
        return bool(a != b)
    if isinstance(a, str) != isinstance(b, str) or isinstance(a, dict | list) or isinstance(b, dict | list):
        return False
    if a is None or b is None:
        return False
    return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[step.operator])


def _operand_value(operand: _Path | _Constant, item: Any, root: Any) -> list[Any]:
    return [operand.value] if isinstance(operand, _Constant) else _follow(operand, item, root)
