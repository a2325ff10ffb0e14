"""The public interface as text, a line for each name, so that a diff shows each change."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final, cast

from kschedd.answers import returned
from kschedd.cli import FAILED, INTERRUPTED, WRONG_USE
from kschedd.methods import daemon_methods
from kschedd.metrics.catalogue import OWN as OWN_METRICS
from kschedd.metrics.catalogue import UPSTREAM
from kschedd.recording.format import FORMAT
from kschedd.recording.notes import NoteKind
from kschedd.rpc.sessions.built_in import method_table
from kschedd.scenarios.commands import OWN
from kschedd.service.errors import CODES
from kschedd.service.table import Method
from kschedd.serving import BUG
from kschedd.store.journal.format import FORMATS
from kschedd.store.journal.snapshot_file import SNAPSHOT_FORMAT
from kschedd.verbs.command_line.parsing import NotingParser
from kschedd.verbs.table import VERBS
from tests.command_parsers import command_parsers

MODULES: Final = ("kschedd", "kschedd.plugin", "kschedd.testing.strategies")
Function = ast.FunctionDef | ast.AsyncFunctionDef
_TOKEN: Final = re.compile(r"[^\s{}\[\]:,]+|[{}\[\]:]")


def interface() -> str:
    """Return the whole interface."""
    sections = (
        *map(_names, MODULES),
        _methods(),
        _codes(),
        _commands(),
        _statuses(),
        _scenarios(),
        _metrics(),
        _formats(),
    )
    return "\n".join(dict.fromkeys(line for section in sections for line in section)) + "\n"


def _names(module_name: str) -> Iterator[str]:
    module = import_module(module_name)
    yield f"module {module_name}"
    for name in _public(module):
        yield from _lines(name, getattr(module, name))


def _public(module: ModuleType) -> Iterable[str]:
    own = (name for name, found in vars(module).items() if getattr(found, "__module__", "") == module.__name__)
    listed: Iterable[str] = getattr(module, "__all__", None) or sorted(name for name in own if not name.startswith("_"))
    return listed


def _lines(name: str, found: object) -> Iterator[str]:
    if inspect.isclass(found):
        yield f"class {name}"
        named = {line: None for line in _members(found) if not line.startswith("_") or line.startswith("__init__")}
        yield from (f"    {name}.{line}" for line in sorted(named))
    elif inspect.isfunction(found) and found.__code__.co_filename.startswith("<"):  # made by Hypothesis
        yield f"{name}({', '.join(inspect.signature(found).parameters)})"
    elif inspect.isfunction(found):
        function = _declared(found)
        assert isinstance(function, Function)
        yield _signature(function)
    else:
        yield f"{name} = {found}" if isinstance(found, tuple | int | str) else name


def _declared(found: object) -> ast.stmt:
    """Return the definition of a class or function in its source."""
    return ast.parse(textwrap.dedent(inspect.getsource(cast(Any, found)))).body[0]


def _signature(function: Function) -> str:
    returns = "" if function.returns is None else f" -> {ast.unparse(function.returns)}"
    return f"{function.name}({ast.unparse(function.args)}){returns}"


def _members(kind: type) -> Iterator[str]:
    """Yield the declarations of the public fields, properties and methods of a class and of its bases in kschedd."""
    for base in kind.__mro__:
        if not base.__module__.startswith("kschedd"):
            continue
        body = _declared(base)
        assert isinstance(body, ast.ClassDef)
        for each in body.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                yield f"{each.target.id}: {ast.unparse(each.annotation)}"
            elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                yield f"{each.targets[0].id} = {ast.unparse(each.value)}"
            elif isinstance(each, Function) and (each.name == "__init__" or not each.name.startswith("_")):
                yield _signature(each)


def _methods() -> Iterator[str]:
    nobody = cast(Any, None)
    for method in method_table(daemon_methods(nobody, nobody)).values():
        yield f"method {method.name}{' (reads)' if method.reads else ''}"
        for param in method.params:
            given = "" if param.required else f" = {param.default!r}"
            choices = f", one of {' '.join(map(str, param.choices))}" if param.choices else ""
            yield f"    {method.name}({param.name}: {param.type}{given}{choices})"
        yield from (f"    {method.name} -> {key}" for key in _keys(method))


def _keys(method: Method) -> Iterator[str]:
    """Yield the keys of a method's answers and of its stream's items, each with its path."""
    for prefix, answer in (("", method.answer), ("item: ", method.item)):
        if answer is not None:
            yield from (f"{prefix}{path}" for path in sorted(set(paths(returned(answer)))))


def paths(shape: str) -> Iterator[str]:
    """Yield the keys in a shape: `{pod, nodes: [{name}]}` has the keys `pod`, `nodes`, `nodes[].name`."""
    for part in re.findall(r"`(.*?)`", shape) or [shape]:
        path, before, opened = [""], "", list[str]()
        for token in _TOKEN.findall(part):
            if token in "{[":
                path.append(path[-1].removesuffix(".") + ("[]" if token == "[" else "."))
                opened.append(token)
            elif token in "}]":
                path.pop()
                opened.pop()
            elif token != ":" and before != ":" and opened[-1:] == ["{"]:  # other words describe values
                path[-1] = path[-1][: path[-1].rfind(".") + 1] + token
                yield path[-1].removeprefix(".")
            before = token


def _codes() -> Iterator[str]:
    yield from (f"error code {code}" for code in CODES)


def _commands() -> Iterator[str]:
    for name, parser in command_parsers():
        yield from _flags(name, parser)
    for verb in VERBS:
        whole = verb.whole or verb.name
        yield from _flags(whole, verb.parser(), f", exit status of failures {verb.failed}")
        yield from (f"    {whole} has the alias {alias}" for alias in verb.aliases)


def _flags(name: str, parser: NotingParser, status: str = "") -> Iterator[str]:
    yield f"command {name}{status}"
    for flag in (each for each in parser.noted if "--help" not in each.names):
        words = " ".join((", ".join(flag.names), flag.metavar)).strip()
        choices = f", one of {' '.join(flag.choices)}" if flag.choices else ""
        yield f"    {name} {words}{choices}"


def _statuses() -> Iterator[str]:
    for status, meaning in ((FAILED, "failure or no"), (WRONG_USE, "wrong usage"), (INTERRUPTED, "interrupted")):
        yield f"exit status {status}: {meaning}"
    yield f"exit status {BUG}: fault of the daemon"


def _scenarios() -> Iterator[str]:
    yield from (f"scenario command {name}" for name in OWN)


def _metrics() -> Iterator[str]:
    for metric in (*UPSTREAM, *OWN_METRICS):
        yield f"metric {metric.name} {metric.kind}({', '.join(metric.labels)})"


def _formats() -> Iterator[str]:
    yield f"journal formats {', '.join(map(str, FORMATS))}"
    yield f"snapshot format {SNAPSHOT_FORMAT}"
    yield f"recording format {FORMAT}"
    yield from (f"recording note {kind.value} {kind.name}" for kind in NoteKind)
