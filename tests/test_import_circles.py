"""No module of kschedd imports another that, by any way, imports it: each can be read after those it builds on."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import kschedd

ROOT = Path(kschedd.__file__).parent


def module_of(file: Path) -> str:
    parts = ["kschedd", *file.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(file: Path, modules: set[str]) -> set[str]:
    """The modules of ours that a file imports, at its top or within a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return (found & modules) - {module_of(file)}


def test_imports_go_round_in_no_circle() -> None:
    files = {module_of(file): file for file in ROOT.rglob("*.py")}
    graph = {name: imported(file, set(files)) for name, file in files.items()}
    assert len(graph) > 300
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail(" <- ".join(circle.args[1]))
