"""Tests that no two public classes share a name, and that retired words do not occur."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PUBLIC_CLASS = re.compile(r"^class ([^_]\w*)", re.MULTILINE)


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for top in ("kschedd", "repl/kschedd_repl"):
        for file in sorted((ROOT / top).rglob("*.py")):
            for name in PUBLIC_CLASS.findall(file.read_text(encoding="utf-8")):
                places[name].append(str(file.relative_to(ROOT)))
    assert places, "the packages are expected beside the tests"
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


# Words that were replaced by Kubernetes' or the field's terms. No name may contain them.
RETIRED = frozenset(
    """
    complain crowd crowded crowds desk errand errands followers furnish happening happenings homeless indifferent intake
    kin kinship lazily leash leashed minding narrowing settle settled settles settling sifted sifting slimmed spoken
    stranger strangers surroundings trunk underway unqueue unsettle vain vanish wish witness
    """.split()
)
ALLOWED = {"in_vain"}  # an English idiom, and a key of published data
WORD = re.compile(r"\w+")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _identifiers(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module introduces or uses, including attributes and keywords."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield name
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.alias | ast.ExceptHandler):
            yield node.name or ""


@cache
def _parts(identifier: str) -> frozenset[str]:
    """Return the words of the name in lower case, split at underscores and capitals."""
    return frozenset(part.lower() for part in PART.findall(identifier))


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("kin", {"kin"}),
        ("_of_kin", {"of", "kin"}),
        ("SiftedNodes", {"sifted", "nodes"}),
        ("RPCErrand", {"rpc", "errand"}),
        ("_MOST_CROWDS", {"most", "crowds"}),
        ("kind", {"kind"}),
    ],
)
def test_the_parts_of_an_identifier(identifier: str, parts: set[str]) -> None:
    assert _parts(identifier) == parts


def test_no_retired_word_is_a_part_of_a_name() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for top in ("kschedd", "repl"):
        for file in sorted((ROOT / top).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            is_mentioned = any(_parts(word) & RETIRED for word in set(WORD.findall(text)))
            names = {file.stem, *(_identifiers(ast.parse(text)) if is_mentioned else ())}  # parsing is slow
            for name in names - ALLOWED:
                if _parts(name) & RETIRED:
                    found[str(file.relative_to(ROOT))].add(name)
    assert found == {}
