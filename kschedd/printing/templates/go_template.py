r"""Go templates for kubectl's `-o go-template=`, with the usual features of text/template.

    {{.metadata.name}}   {{range .items}}{{.metadata.name}}{{"\n"}}{{end}}   {{range $i, $pod := .items}}{{$i}}{{end}}
    {{if eq .status.phase "Running"}}...{{else if not .spec.nodeName}}...{{end}}   {{with .spec}}{{.nodeName}}{{end}}
    {{$n := len .items}}{{printf "%-20s %v" .kind $n}}   {{index .metadata.labels "app"}}   {{- .x | printf "%q" -}}

The functions are in `go_functions.py`. Named templates (`define`, `template`, `block`) are not supported and are
rejected.
Source: Go's text/template; Kubernetes v1.34, cli-runtime/pkg/printers/template.go. Errors: GoTemplateError.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.errors import KscheddError
from kschedd.printing.templates.go_functions import ABSENT, FUNCTIONS, is_true, shown


@attrs.define(eq=False)
class GoTemplateError(KscheddError):
    """A template that cannot be parsed, or that cannot be applied to this object."""

    template: str
    line: int  # 1-based
    why: str

    def __str__(self) -> str:
        return f"go-template, line {self.line}: {self.why}"


Functions = Mapping[str, Callable[..., Any]]

_NO_MORE: Final[Functions] = {}
_DEEPEST: Final = 100
_MOST_OUTPUT: Final = 64 << 20

# Tokens


@attrs.frozen
class _Token:
    kind: str
    text: str
    line: int


_WORDS: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<string>"(?:\\.|[^"\\\n])*"|`[^`]*`)
    |(?P<char>'(?:\\.|[^'\\\n])+')
    |(?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+))
    |(?P<declare>:=)
    |(?P<field>(?:\.[A-Za-z_]\w*)+)
    |(?P<variable>\$\w*)
    |(?P<dot>\.)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<mark>[|(),=])""",
    re.VERBOSE,
)
_KEYWORDS: Final = frozenset("if else end range with break continue define template block".split())
_ACTION: Final = re.compile(
    r"\{\{(-(?=\s))?"
    r"((?:\"(?:\\.|[^\"\\])*\"|`[^`]*`|'(?:\\.|[^'\\])+'|/\*.*?\*/|[^\"`'}]|\}(?!\}))*?)"
    r"((?<=\s)-)?\}\}",
    re.DOTALL,
)


# Parts of a template


@attrs.frozen
class _Operand:
    """A value, and the fields read from it: `.a.b`, `$x.a`, `(index .a 0).b`, a constant or a function's name."""

    kind: str
    value: Any
    fields: tuple[str, ...]
    line: int


@attrs.frozen
class _Pipeline:
    commands: tuple[tuple[_Operand, ...], ...]
    variables: tuple[str, ...] = ()
    assigns: bool = False  # `=` rather than `:=`
    line: int = 1


@attrs.frozen
class _Text:
    text: str


@attrs.frozen
class _Print:
    pipeline: _Pipeline


@attrs.frozen
class _Branch:
    """An `if`, `with` or `range` with its bodies."""

    word: str
    pipeline: _Pipeline
    body: "tuple[_Part, ...]"
    otherwise: "tuple[_Part, ...]"


@attrs.frozen
class _Jump:
    word: str


_Part = _Text | _Print | _Branch | _Jump


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class GoTemplate:
    """A parsed template. `functions` are available in addition to kubectl's. Raises GoTemplateError."""

    def __init__(self, text: str, functions: Functions = _NO_MORE) -> None:
        self._text = text
        self._functions = {**FUNCTIONS, **functions}
        parser = _Parser(text, self._functions)
        self._parts = parser.parse()

    def evaluate(self, value: Any) -> str:
        """Return the output of the template for this value. Raises GoTemplateError."""
        run = _Run(self._text, value, self._functions)
        run.parts(self._parts, value)
        return "".join(run.output)


def evaluate(template: str, value: Any) -> str:
    return GoTemplate(template).evaluate(value)


class _Parser:
    def __init__(self, text: str, functions: Functions) -> None:
        self._text = text
        self._functions = functions
        self._tokens: list[_Token] = []
        self._at = 0
        self._loops = 0
        self._known: list[str] = ["$"]

    def parse(self) -> tuple[_Part, ...]:
        self._pieces = list(self._split())
        self._next = 0
        parts, ended = self._body(0)
        if ended is not None:
            raise self._wrong(f"unexpected {{{{{ended[0].text}}}}}", ended[0].line)
        return tuple(parts)

    def _wrong(self, why: str, line: int) -> GoTemplateError:
        return GoTemplateError(self._text, line, why)

    def _split(self) -> Iterator[_Text | list[_Token]]:
        """Yield texts and actions, with white space trimmed if an action requires it."""
        at, trim = 0, False
        for action in _ACTION.finditer(self._text):
            text = self._text[at : action.start()]
            if "{{" in text:
                break
            if trim:
                text = text.lstrip(" \t\r\n")
            if action[1]:
                text = text.rstrip(" \t\r\n")
            if text:
                yield _Text(text)
            trim = bool(action[3])
            at = action.end()
            inside = action[2].strip()
            if not (inside.startswith("/*") and inside.endswith("*/")):
                yield self._words(action[2], action.start(2))
        rest = self._text[at:]
        if "{{" in rest:
            where = at + rest.index("{{")
            raise self._wrong("an action is not closed: }} is missing", self._line(where))
        rest = rest.lstrip(" \t\r\n") if trim else rest
        if rest:
            yield _Text(rest)

    def _line(self, at: int) -> int:
        return self._text.count("\n", 0, at) + 1

    def _words(self, text: str, start: int) -> list[_Token]:
        found: list[_Token] = []
        at = 0
        while at < len(text):
            match = _WORDS.match(text, at)
            line = self._line(start + at)
            if match is None:
                raise self._wrong(f"unexpected {text[at]!r} in an action", line)
            kind = match.lastgroup or ""
            if kind == "field" and found and at and not text[at - 1].isspace() and text[at - 1] != "(":
                kind = "chain"  # fields of the preceding operand
            if kind != "space":
                found.append(_Token(kind, match[0], line))
            at = match.end()
        if not found:
            raise self._wrong("missing value for command", self._line(start))
        return found

    def _body(self, depth: int) -> tuple[list[_Part], list[_Token] | None]:
        """Return the parts up to an `else` or `end`, and the tokens of the `else` or `end`."""
        if depth > _DEEPEST:
            raise self._wrong("nested too deeply", 1)
        parts: list[_Part] = []
        scope = len(self._known)
        while self._next < len(self._pieces):
            piece = self._pieces[self._next]
            self._next += 1
            if isinstance(piece, _Text):
                parts.append(piece)
                continue
            first = piece[0]
            if first.kind == "word" and first.text in ("else", "end"):
                del self._known[scope:]
                return parts, piece
            parts.append(self._action(piece, depth))
        del self._known[scope:]
        return parts, None

    def _action(self, tokens: list[_Token], depth: int) -> _Part:
        first = tokens[0]
        word = first.text if first.kind == "word" else ""
        if word in ("if", "with", "range"):
            return self._branch(word, tokens[1:], first.line, depth)
        if word in ("break", "continue"):
            if not self._loops:
                raise self._wrong(f"{{{{{word}}}}} outside {{{{range}}}}", first.line)
            return _Jump(word)
        if word in ("define", "template", "block"):
            raise self._wrong(f"{{{{{word}}}}}: named templates are not supported here", first.line)
        return _Print(self._pipeline(tokens, first.line))

    def _branch(self, word: str, tokens: list[_Token], line: int, depth: int) -> _Branch:
        scope = len(self._known)
        pipeline = self._pipeline(tokens, line, loop=word == "range")
        self._loops += word == "range"
        body, ended = self._body(depth + 1)
        self._loops -= word == "range"
        otherwise: list[_Part] = []
        if ended is not None and ended[0].text == "else":
            if len(ended) > 1:
                again = ended[1].text
                if again not in ("if", "with") or word == "range":
                    raise self._wrong(f"unexpected {ended[1].text} after else", ended[1].line)
                otherwise = [self._branch(again, ended[2:], ended[1].line, depth + 1)]
                del self._known[scope:]
                return _Branch(word, pipeline, tuple(body), tuple(otherwise))
            otherwise, ended = self._body(depth + 1)
        if ended is None:
            raise self._wrong(f"{{{{{word}}}}} has no {{{{end}}}}", line)
        if ended[0].text != "end" or len(ended) > 1:
            raise self._wrong(f"unexpected {ended[-1].text}", ended[0].line)
        del self._known[scope:]
        return _Branch(word, pipeline, tuple(body), tuple(otherwise))

    def _pipeline(self, tokens: list[_Token], line: int, *, loop: bool = False) -> _Pipeline:
        names, rest = _declared(tokens)
        assigns = False
        if names:
            mark = tokens[len(tokens) - len(rest) - 1].text
            assigns = mark == "="
            if len(names) > (2 if loop else 1):
                raise self._wrong("too many declarations", line)
            for name in names:
                if assigns and name not in self._known:
                    raise self._wrong(f'undefined variable "{name}"', line)
        self._tokens, self._at = rest, 0
        commands = self._commands(line)
        if self._at < len(self._tokens):
            raise self._wrong(f"unexpected {self._tokens[self._at].text!r}", line)
        self._known += [] if assigns else list(names)
        return _Pipeline(commands, tuple(names), assigns, line)

    def _commands(self, line: int) -> tuple[tuple[_Operand, ...], ...]:
        commands: list[tuple[_Operand, ...]] = []
        current: list[_Operand] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.text == ")" and token.kind == "mark":
                break
            self._at += 1
            if token.text == "|" and token.kind == "mark":
                if not current:
                    raise self._wrong("missing value for command", line)
                commands.append(tuple(current))
                current = []
            elif token.kind == "chain":
                if not current:
                    raise self._wrong(f"unexpected {token.text!r}", line)
                last = current[-1]
                current[-1] = attrs.evolve(last, fields=(*last.fields, *_fields(token.text)))
            else:
                current.append(self._operand(token))
        if not current:
            raise self._wrong("missing value for command", line)
        commands.append(tuple(current))
        for command in commands[1:]:
            if command[0].kind != "function":
                raise self._wrong("non executable command in pipeline", line)
        return tuple(commands)

    def _operand(self, token: _Token) -> _Operand:
        line = token.line
        match token.kind:
            case "field":
                return _Operand("dot", None, _fields(token.text), line)
            case "dot":
                return _Operand("dot", None, (), line)
            case "variable":
                if token.text not in self._known:
                    raise self._wrong(f'undefined variable "{token.text}"', line)
                return _Operand("variable", token.text, (), line)
            case "string" | "char":
                return _Operand("constant", self._quoted(token), (), line)
            case "number":
                number = _number(token.text)
                if number is None:
                    raise self._wrong(f'bad number syntax: "{token.text[:60]}"', line)
                return _Operand("constant", number, (), line)
            case "word":
                return self._word(token)
            case "mark" if token.text == "(":
                commands = self._commands(line)
                if self._at >= len(self._tokens):
                    raise self._wrong("unclosed left paren", line)
                self._at += 1
                return _Operand("pipeline", _Pipeline(commands, line=line), (), line)
        raise self._wrong(f"unexpected {token.text!r} in operand", line)

    def _word(self, token: _Token) -> _Operand:
        constants = {"true": True, "false": False, "nil": None}
        if token.text in constants:
            return _Operand("constant", constants[token.text], (), token.line)
        if token.text in _KEYWORDS:
            raise self._wrong(f"unexpected {token.text}", token.line)
        if token.text not in self._functions and token.text not in ("and", "or"):
            known = ", ".join(sorted({*self._functions, "and", "or"}))
            raise self._wrong(f'function "{token.text}" not defined; there are: {known}', token.line)
        return _Operand("function", token.text, (), token.line)

    def _quoted(self, token: _Token) -> Any:
        if token.text[0] == "`":
            return token.text[1:-1]
        try:
            text = json.loads(f'"{_unescaped(token.text[1:-1])}"', strict=False)
        except ValueError:
            raise self._wrong(f"cannot read {token.text}", token.line) from None
        if token.kind == "char":
            if len(text) != 1:
                raise self._wrong(f"malformed character constant: {token.text}", token.line)
            return ord(text)
        return text


def _declared(tokens: list[_Token]) -> tuple[list[str], list[_Token]]:
    """Return the variables of a leading `$a :=`, `$i, $a :=` or `$a =`, and the remaining tokens."""
    names: list[str] = []
    for place, token in enumerate(tokens):
        if token.kind == "variable":
            names.append(token.text)
        elif token.kind == "declare" or token.text == "=":
            return names, tokens[place + 1 :]
        elif token.text != ",":
            break
    return [], tokens


def _fields(text: str) -> tuple[str, ...]:
    return tuple(text[1:].split("."))


def _number(text: str) -> int | float | None:
    """Return the number; None if the text is not a number or exceeds a float64."""
    try:
        number: int | float = int(text, 0)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            return None
    return number if abs(number) <= sys.float_info.max else None


_ESCAPES: Final = {"a": "\\u0007", "v": "\\u000b", "'": "'"}


def _unescaped(text: str) -> str:
    r"""Convert Go's escapes to JSON's: `\a`, `\v`, `\'`, `\x41`."""
    text = re.sub(r"\\x([0-9a-fA-F]{2})", r"\\u00\1", text)
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text)


# Evaluation


class _Run:
    def __init__(self, template: str, root: Any, functions: Functions) -> None:
        self._template = template
        self._functions = functions
        self._variables: list[tuple[str, Any]] = [("$", root)]
        self.output: list[str] = []
        self._size = 0

    def parts(self, parts: Sequence[_Part], dot: Any) -> None:
        for part in parts:
            match part:
                case _Text(text=text):
                    self._write(text, 1)
                case _Print(pipeline=pipeline):
                    value = self._pipeline(pipeline, dot)
                    if not pipeline.variables:
                        self._write(shown(value), pipeline.line)
                case _Branch():
                    self._branch(part, dot)
                case _Jump(word=word):
                    raise _Break if word == "break" else _Continue

    def _write(self, text: str, line: int) -> None:
        self._size += len(text)
        if self._size > _MOST_OUTPUT:
            raise self._wrong("the output is too long", line)
        self.output.append(text)

    def _wrong(self, why: str, line: int) -> GoTemplateError:
        return GoTemplateError(self._template, line, why)

    def _branch(self, branch: _Branch, dot: Any) -> None:
        scope = len(self._variables)
        try:
            if branch.word == "range":
                self._range(branch, dot)
                return
            value = self._pipeline(branch.pipeline, dot)
            inner = value if branch.word == "with" and is_true(value) else dot
            self.parts(branch.body if is_true(value) else branch.otherwise, inner)
        finally:
            del self._variables[scope:]

    def _range(self, branch: _Branch, dot: Any) -> None:
        pipeline = branch.pipeline
        value = self._pipeline(attrs.evolve(pipeline, variables=()), dot)
        pairs = self._pairs(value, pipeline.line)
        if not pairs:
            self.parts(branch.otherwise, dot)
            return
        scope = len(self._variables)
        for key, item in pairs:
            names = pipeline.variables
            values = (key, item) if len(names) == 2 else (item,)
            for name, each in zip(names, values, strict=False):
                self._set(name, each, assigns=pipeline.assigns)
            try:
                self.parts(branch.body, item)
            except _Break:
                break
            except _Continue:
                continue
            finally:
                del self._variables[scope:]

    def _pairs(self, value: Any, line: int) -> list[tuple[Any, Any]]:
        if isinstance(value, Mapping):
            return [(key, value[key]) for key in sorted(value)]
        if isinstance(value, list | tuple):
            return list(enumerate(value))
        if value is None or value is ABSENT:
            return []
        if isinstance(value, int) and not isinstance(value, bool):
            return [(number, number) for number in range(min(value, 1_000_000))]
        raise self._wrong(f"range can't iterate over {shown(value)}", line)

    def _set(self, name: str, value: Any, *, assigns: bool) -> None:
        if assigns:
            for place in range(len(self._variables) - 1, -1, -1):
                if self._variables[place][0] == name:
                    self._variables[place] = (name, value)
                    return
        self._variables.append((name, value))

    def _pipeline(self, pipeline: _Pipeline, dot: Any) -> Any:
        value: Any = None
        for place, command in enumerate(pipeline.commands):
            value = self._command(command, dot, [value] if place else [])
        for name in pipeline.variables:
            self._set(name, value, assigns=pipeline.assigns)
        return value

    def _command(self, command: tuple[_Operand, ...], dot: Any, last: list[Any]) -> Any:
        first, *rest = command
        if first.kind != "function":
            if rest or last:
                raise self._wrong("can't give argument to non-function", first.line)
            return self._value(first, dot)
        if first.value in ("and", "or"):
            return self._and_or(first, rest, dot, last)
        arguments = [self._value(each, dot) for each in rest] + last
        try:
            found = self._functions[first.value](*arguments)
        except TypeError as wrong:
            raise self._wrong(f"error calling {first.value}: {_type_words(wrong)}", first.line) from None
        except (ValueError, LookupError, OverflowError) as wrong:
            raise self._wrong(f"error calling {first.value}: {wrong}", first.line) from None
        return self._taken(found, first)

    def _and_or(self, first: _Operand, rest: list[_Operand], dot: Any, last: list[Any]) -> Any:
        if not rest and not last:
            raise self._wrong(f"wrong number of args for {first.value}: want at least 1 got 0", first.line)
        value: Any = None
        for each in rest:
            value = self._value(each, dot)
            if is_true(value) is (first.value == "or"):
                return value
        return last[0] if last else value

    def _value(self, operand: _Operand, dot: Any) -> Any:
        match operand.kind:
            case "constant":
                return self._taken(operand.value, operand)
            case "dot":
                return self._taken(dot, operand)
            case "variable":
                found = next(value for name, value in reversed(self._variables) if name == operand.value)
                return self._taken(found, operand)
            case "pipeline":
                return self._taken(self._pipeline(operand.value, dot), operand)
        return self._command((operand,), dot, [])

    def _taken(self, value: Any, operand: _Operand) -> Any:
        for field in operand.fields:
            if isinstance(value, Mapping):
                value = value.get(field, ABSENT)
            elif value is None:
                raise self._wrong(f"nil pointer evaluating interface {{}}.{field}", operand.line)
            elif value is ABSENT:
                return ABSENT  # the fields of an absent value are absent, too
            else:
                raise self._wrong(f"can't evaluate field {field} in {shown(value)[:40]}", operand.line)
        return value


def _type_words(wrong: TypeError) -> str:
    """Return the error text for a wrong number or type of arguments, without names of Python functions."""
    text = str(wrong)
    return "wrong number of args" if "positional argument" in text else text
