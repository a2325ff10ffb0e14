"""Manifests as callers of the library pass them: text, paths, maps, and sequences of these."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kschedd.input_files import manifest_files

Raw = Mapping[str, Any]
Manifests = str | Path | Raw | Sequence["Manifests"]
"""YAML or JSON text, the path of a file or folder, one object, or a sequence of these."""

_DEEPEST: Final = 20  # maximum depth of sequences within sequences


def sources(manifests: Sequence[Manifests]) -> list[tuple[str, Any]]:
    """Return the name and the content (text or a list of objects) of each source, in the given order."""
    found: list[tuple[str, Any]] = []
    objects: list[Any] = []
    for each in _flat(manifests):
        if isinstance(each, Mapping):
            objects.append(each)
            continue
        if objects:
            found.append(("objects", objects))
            objects = []
        found.append(each)
    return [*found, ("objects", objects)] if objects else found


def merged(manifests: Sequence[Manifests]) -> Any:
    """Return all manifests as one parameter: a list of objects, or text."""
    contents = [content for _, content in sources(manifests)]
    if all(isinstance(content, list) for content in contents):
        return [each for content in contents for each in content]
    texts = [content if isinstance(content, str) else "\n---\n".join(map(json.dumps, content)) for content in contents]
    return "\n---\n".join(texts)


def _flat(manifests: Iterable[Any], depth: int = 0) -> list[Any]:
    """Return maps, and the names and texts of sources, in one list."""
    found: list[Any] = []
    for each in manifests:
        if isinstance(each, Mapping):
            found.append(each)
        elif isinstance(each, Path):
            found += [(str(file), file.read_text(encoding="utf-8")) for file in manifest_files(each)]
        elif isinstance(each, str):
            if each.strip() and ":" not in each and "\n" not in each.strip():
                raise ValueError(f"{each[:100]!r} is not a manifest; for a file, pass Path({each[:100]!r})")
            found.append(("text", each))
        elif isinstance(each, Iterable) and not isinstance(each, bytes) and depth < _DEEPEST:
            found += _flat(each, depth + 1)
        else:
            raise TypeError(
                f"manifests: maps, text, paths, or sequences of these are required, not {type(each).__name__}"
            )
    return found
