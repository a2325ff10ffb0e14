"""A test of the public interface as text, which detects unintended changes.

`KSCHEDD_REWRITE_INTERFACE=1 pytest tests/sdk/test_interface.py` rewrites interface.txt.
"""

import ast
import inspect
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import kschedd

FILE = Path(__file__).with_name("interface.txt")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def declared(found: object) -> ast.stmt:
    """Return the definition of a class or function in its source."""
    return ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]


def signature(function: Function) -> str:
    returns = "" if function.returns is None else f" -> {ast.unparse(function.returns)}"
    return f"{function.name}({ast.unparse(function.args)}){returns}"


def members(kind: type) -> Iterator[str]:
    """Yield the declarations of the public fields, properties and methods of a class and of its bases in kschedd."""
    for base in kind.__mro__:
        if not base.__module__.startswith("kschedd"):
            continue
        body = declared(base)
        assert isinstance(body, ast.ClassDef)
        for each in body.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                yield f"{each.target.id}: {ast.unparse(each.annotation)}"
            elif isinstance(each, Function) and (each.name == "__init__" or not each.name.startswith("_")):
                yield signature(each)


def interface() -> str:
    lines: list[str] = []
    for name in kschedd.__all__:
        found = getattr(kschedd, name)
        if isinstance(found, tuple):
            lines.append(f"{name} = {found}")
        elif inspect.isclass(found):
            named = {line: None for line in members(found) if not line.startswith("_") or line.startswith("__init__")}
            lines += [f"class {name}", *(f"    {line}" for line in sorted(named))]
        else:
            function = declared(found)
            assert isinstance(function, Function)
            lines.append(signature(function))
    return "\n".join(lines) + "\n"


def test_the_interface_is_as_written_down() -> None:
    found = interface()
    if os.environ.get("KSCHEDD_REWRITE_INTERFACE"):
        FILE.write_text(found, encoding="utf-8")
    assert found == FILE.read_text(encoding="utf-8")
