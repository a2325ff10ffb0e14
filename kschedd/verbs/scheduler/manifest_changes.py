"""The change that a remedy makes, as a diff of the user's own file instead of the stored object."""

import copy
import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kschedd.printing import documents

if TYPE_CHECKING:
    from kschedd.api.manifests import Manifest

Raw = Mapping[str, Any]
_SHOWN_LINES: Final = 3  # of context
_SCALARS: Final = (str, int, float, bool)


def file_diff(manifest: "Manifest", changes: Sequence[Raw]) -> str:
    """Return the JSON patch as a unified diff of the file; "" if the file does not contain what the patch changes.

    Replaced values are replaced in the text. Other changes are shown in the object as YAML, without comments.
    """
    after = _patched(manifest.raw, changes)
    if after is None:
        return ""
    edited = None
    if all(_is_replaced_scalar(change) for change in changes):
        edited = manifest.with_values((tuple(_steps(manifest.raw, change)), change["value"]) for change in changes)
    if edited is None:
        return _diff(manifest.source, documents.as_yaml(dict(manifest.raw)), documents.as_yaml(after))
    above = "\n" * (manifest.first_line - 1)  # so that the diff has the line numbers of the file
    return _diff(manifest.source, above + manifest.text, above + edited)


def _diff(name: str, before: str, after: str) -> str:
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(difflib.unified_diff(old, new, name, name, n=_SHOWN_LINES))


def _is_replaced_scalar(change: Raw) -> bool:
    return change["op"] == "replace" and isinstance(change["value"], _SCALARS)


def _steps(raw: Raw, change: Raw) -> list[str | int]:
    """Return the keys and indices of the change's path."""
    steps: list[str | int] = []
    value: Any = raw
    for part in str(change["path"]).split("/")[1:]:
        step: str | int = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and part.isdigit():
            step = int(part)
        steps.append(step)
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            value = None
    return steps


def _patched(raw: Raw, changes: Sequence[Raw]) -> dict[str, Any] | None:
    """Return the object after the patch; None if the object lacks something that the patch changes."""
    after: dict[str, Any] = copy.deepcopy(dict(raw))
    for change in changes:
        *outer, last = _steps(after, change)
        parent: Any = after
        for step, following in zip(outer, [*outer[1:], last], strict=True):
            if isinstance(parent, dict) and change["op"] == "add":
                parent = parent.setdefault(step, [] if following == "-" else {})
                continue
            try:
                parent = parent[step]
            except (KeyError, IndexError, TypeError):
                return None
        if isinstance(parent, list) and last == "-":
            parent.append(change["value"])
        elif change["op"] == "add" and isinstance(parent, dict):
            parent[last] = change["value"]
        elif _has(parent, last):
            if change["op"] == "remove":
                del parent[last]
            else:
                parent[last] = change["value"]
        else:
            return None
    return after


def _has(parent: Any, step: str | int) -> bool:
    if isinstance(parent, list):
        return isinstance(step, int) and step < len(parent)
    return isinstance(parent, dict) and step in parent
