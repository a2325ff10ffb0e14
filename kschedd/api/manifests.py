"""Manifests: objects read from files, directories or text, with their source lines.

The reader supports YAML and JSON, several documents in one file, `kind: List`, and typed lists as printed by kubectl. A
malformed document does not affect others: the result contains the readable objects, and for each fault an error with
file, line and field path. `validation` checks the content of an object.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.api.quantity import shown
from kschedd.api.schemas.fields import FieldError, path_text, steps
from kschedd.api.text.documents import MOST_FAULTS, Document, read_documents
from kschedd.api.text.documents import Path as Steps
from kschedd.api.text.text_files import NotText, text_of
from kschedd.errors import KscheddError

SUFFIXES: Final = (".yaml", ".yml", ".json")
_DEEPEST_LIST: Final = 5


@attrs.define(eq=False)
class ManifestError(KscheddError):
    """An error in a manifest."""

    file: str
    line: int  # 1-based line, or 0 for an error of the file itself
    path: str  # field path, or "" for an error about the whole document
    value: object
    why: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.path}: {self.why}" if self.path else f"{where}: {self.why}"


@attrs.frozen(eq=False)
class Manifest:
    """An object in its source."""

    raw: dict[str, Any]
    source: str
    _document: Document = attrs.field(repr=False)
    _root: Steps = ()  # path of the object within its document

    @property
    def line(self) -> int:
        return self.locate("")

    @property
    def text(self) -> str:
        """The text of the object's document, including comments."""
        return self._document.text

    @property
    def first_line(self) -> int:
        """The line of the source on which the object's text begins."""
        return self._document.first_line

    def locate(self, path: str) -> int:
        """Return the line of the field at `path`, or of its nearest existing ancestor."""
        return self._document.line_of(self._root + steps(path))

    def with_values(self, values: Iterable[tuple[Steps, object]]) -> str | None:
        """Return the document's text with other values at these paths; None if one of them has no scalar there."""
        found = [(self._document.scalar_at((*self._root, *path)), value) for path, value in values]
        lines = self.text.split("\n")
        places = [(place, value) for place, value in found if place is not None]
        if len(places) < len(found):
            return None
        for (line, begin, end, quote), value in sorted(places, key=lambda each: each[0], reverse=True):
            new = f"{quote}{value}{quote}" if isinstance(value, str) else json.dumps(value)
            lines[line] = lines[line][:begin] + new + lines[line][end:]
        return "\n".join(lines)

    def forget_lines(self) -> None:
        """Drop the line numbers of the document, which uses less memory."""
        self._document.forget_lines()

    def error(self, fault: FieldError) -> ManifestError:
        """Return an error about the object with its source file and line."""
        return ManifestError(self.source, self.locate(fault.path), fault.path, fault.value, fault.why)


@attrs.frozen
class ManifestReading:
    """The result of reading: objects and errors, both in source order."""

    manifests: tuple[Manifest, ...] = ()
    errors: tuple[ManifestError, ...] = ()

    def __add__(self, other: "ManifestReading") -> "ManifestReading":
        return ManifestReading(self.manifests + other.manifests, self.errors + other.errors)


def read_text(text: str, source: str, check: Callable[[], None] | None = None) -> ManifestReading:
    """Read the objects in `text`; `source` is its name in errors.

    `check` is called for each document, and may raise an exception.
    """
    manifests: list[Manifest] = []
    errors: list[ManifestError] = []
    for document in read_documents(text.removeprefix("\ufeff")):
        if check is not None:
            check()
        for fault in document.faults:
            errors.append(ManifestError(source, fault.line, path_text(fault.path), fault.value, fault.why))
        if not document.faults:
            _unfold(document.value, (), document, source, manifests, errors)
        if len(errors) > MOST_FAULTS:
            why = f"too many errors ({MOST_FAULTS}); the rest was not read"
            errors[MOST_FAULTS:] = [ManifestError(source, document.first_line, "", None, why)]
            break
    return ManifestReading(tuple(manifests), tuple(errors))


def read_bytes(data: bytes, source: str) -> ManifestReading:
    try:
        text = text_of(data)
    except NotText as wrong:
        return ManifestReading(errors=(ManifestError(source, wrong.line, "", None, wrong.why),))
    return read_text(text, source)


def read_paths(paths: Iterable[str | os.PathLike[str]]) -> ManifestReading:
    """Read the objects in files, and in the .yaml, .yml and .json files of directories, recursively."""
    manifests: list[Manifest] = []
    errors: list[ManifestError] = []
    for path in paths:
        for reading in _read_path(Path(path)):
            manifests += reading.manifests
            errors += reading.errors
    return ManifestReading(tuple(manifests), tuple(errors))


def _read_path(path: Path) -> Iterator[ManifestReading]:
    try:
        files = sorted(_files(path)) if path.is_dir() else [path]
        if not files:
            yield ManifestReading(
                errors=(ManifestError(str(path), 0, "", None, f"contains no {', '.join(SUFFIXES)} files"),)
            )
    except OSError as wrong:
        yield ManifestReading(errors=(_unreadable(path, wrong),))
        return
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as wrong:
            yield ManifestReading(errors=(_unreadable(file, wrong),))
            continue
        yield read_bytes(data, str(file))


def _files(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        yield from (Path(where, name) for name in names if name.endswith(SUFFIXES))


def _unreadable(file: Path, wrong: OSError) -> ManifestError:
    return ManifestError(str(file), 0, "", None, f"cannot be read: {wrong.strerror or wrong}")


def _unfold(
    value: Any,
    root: Steps,
    document: Document,
    source: str,
    found: list[Manifest],
    errors: list[ManifestError],
) -> None:
    """Append the object in `value`, or the items of a List, to `found`; append errors to `errors`."""

    def refuse(path: Steps, culprit: object, why: str) -> None:
        at = document.line_of(root + path)
        errors.append(ManifestError(source, at, path_text(root + path), culprit, why))

    if not isinstance(value, dict):
        refuse((), value, f"{shown(value)}: must be a mapping with apiVersion and kind")
        return
    complete = True
    for field in ("apiVersion", "kind"):
        text = value.get(field)
        if not isinstance(text, str) or not text:
            why = "Required value" if text is None else f"Invalid value: {shown(text)}: must be text"
            refuse((field,), text, why)
            complete = False
    if not complete:
        return
    kind = value["kind"]
    if not kind.endswith("List") or "items" not in value:
        if kind == "List":
            return
        found.append(Manifest(value, source, document, root))
        return
    items = value["items"]
    if items is None:
        return
    if not isinstance(items, list):
        refuse(("items",), items, f"Invalid value: {shown(items)}: must be a list")
        return
    if len(root) >= 2 * _DEEPEST_LIST:
        refuse(("items",), None, f"lists are nested more than {_DEEPEST_LIST} deep")
        return
    for index, item in enumerate(items):
        if kind != "List" and isinstance(item, dict) and "kind" not in item:
            # A typed list states the kind once for all items.
            item = {"apiVersion": value["apiVersion"], "kind": kind.removesuffix("List"), **item}
        _unfold(item, (*root, "items", index), document, source, found, errors)
