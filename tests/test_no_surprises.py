"""Tests that the code neither evaluates text, nor unpickles, nor starts shells.

Two modules are excluded: one runs the plugin files that the user names, and one pickles messages between the daemon and
its own worker processes, over private pipes.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LEFT_OUT = {
    "kschedd/framework/plugin_file.py": ["exec()", "compile()"],
    "kschedd/framework/guarding/sending.py": ["import pickle"],
}
_CALLS = frozenset(("eval", "exec", "compile", "__import__"))
_MODULES = frozenset(("pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"))
_DOTTED = frozenset(
    ("os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "subprocess.getoutput")
)
_MENTIONED = re.compile(
    rf"(?<![.\w])(?:{'|'.join(_CALLS)})\(|{'|'.join(map(re.escape, _DOTTED))}|\b(?:{'|'.join(_MODULES)})\b|\bshell="
)


def found_in(text: str) -> Iterator[str]:
    if not _MENTIONED.search(text):  # parsing is slow, and few files need it
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call():
                yield from _of_call(node)
            case ast.Import(names=names):
                for each in names:
                    if each.name.partition(".")[0] in _MODULES:
                        yield f"import {each.name}"
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in _MODULES:
                yield f"from {module} import"


def _of_call(call: ast.Call) -> Iterator[str]:
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    name = ast.unparse(call.func)
    safe = name == "yaml.load" and given.get("Loader", "").endswith("SafeLoader")  # makes plain values only
    if name in _CALLS or (name in _DOTTED and not safe):
        yield f"{name}()"
    if given.get("shell", "False") != "False":
        yield f"{name}(shell={given['shell']})"


def test_nothing_is_evaluated_unpickled_or_given_to_a_shell() -> None:
    files = [*(ROOT / "kschedd").rglob("*.py"), *(ROOT / "repl").rglob("*.py")]
    assert len(files) > 500
    found = {
        str(file.relative_to(ROOT)): reported
        for file in files
        if (reported := list(found_in(file.read_text(encoding="utf-8"))))
    }
    assert found == _LEFT_OUT


def test_the_test_finds_what_it_looks_for() -> None:
    text = (
        "import pickle\nfrom marshal import loads\neval('1')\nyaml.load(x)\nsubprocess.run('x', shell=True)\n"
        "subprocess.run('x', shell=False)\nos.system('x')\nre.compile('x')\nyaml.safe_load(x)\n"
        "yaml.load(x, Loader=yaml.CSafeLoader)\nyaml.load(x, Loader=yaml.Loader)\n"
    )
    assert sorted(found_in(text)) == [
        "eval()",
        "from marshal import",
        "import pickle",
        "os.system()",
        "subprocess.run(shell=True)",
        "yaml.load()",
        "yaml.load()",
    ]
