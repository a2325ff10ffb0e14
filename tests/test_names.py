"""One word means one thing in the whole program: no two public classes share a name."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for top in ("kschedd", "repl/kschedd_repl"):
        for file in sorted((ROOT / top).rglob("*.py")):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(file.relative_to(ROOT)))
    assert places, "the packages are expected beside the tests"
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
