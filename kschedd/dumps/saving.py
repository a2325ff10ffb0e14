"""Writing of a dump: a list as kubectl prints it, in JSON or YAML; the file's name determines format and compression.

Objects are written unchanged, without made-up objects and without the annotations that loading a dump adds.
"""

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import attrs

from kschedd.api.objects import Raw
from kschedd.dumps import dumped_condition
from kschedd.dumps.completion import KUBELET, MADE_UP, SECRET_FIELDS
from kschedd.errors import KscheddError

SUFFIXES: Final = (".json", ".yaml", ".yml")
_OURS: Final = frozenset((KUBELET, dumped_condition.ANNOTATION))


@attrs.define(eq=False)
class DumpError(KscheddError):
    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def dump_objects(objects: Iterable[Raw], *, keep_secrets: bool = False) -> Iterator[Raw]:
    """Yield the objects to save, without kschedd's annotations and without the data of Secrets and ConfigMaps."""
    for raw in objects:
        meta = raw["metadata"]
        notes = meta.get("annotations") or {}
        if MADE_UP in notes:
            continue
        if not _OURS.isdisjoint(notes):
            left = {key: text for key, text in notes.items() if key not in _OURS}
            kept = {field: value for field, value in meta.items() if field != "annotations"}
            raw = {**raw, "metadata": {**kept, "annotations": left} if left else kept}
        hidden = () if keep_secrets else SECRET_FIELDS.get(raw["kind"], ())
        if any(field in raw for field in hidden):
            raw = {field: value for field, value in raw.items() if field not in hidden}
        yield raw


def json_chunks(objects: Iterable[Raw]) -> Iterator[str]:
    """Yield the list as JSON, one object per chunk."""
    yield '{"apiVersion": "v1", "items": ['
    for number, raw in enumerate(objects):
        yield ("\n" if not number else ",\n") + json.dumps(raw, ensure_ascii=False)
    yield '\n], "kind": "List", "metadata": {"resourceVersion": ""}}\n'


def yaml_chunks(objects: Iterable[Raw]) -> Iterator[str]:
    """Yield the list as YAML, one object per chunk."""
    import yaml  # imported on demand, because the import is slow

    yield "apiVersion: v1\nitems:\n"
    for raw in objects:
        text: str = yaml.dump([raw], Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1 << 20)
        yield text
    yield 'kind: List\nmetadata:\n  resourceVersion: ""\n'


def write_dump(path: Path, objects: Iterable[Raw], *, force: bool) -> int:
    """Write the file, completely or not at all, and return the number of objects. Raises DumpError."""
    plain = path.name.removesuffix(".gz")
    if not plain.endswith(SUFFIXES):
        raise DumpError(
            str(path), f"the name must end with {', '.join(SUFFIXES)}, or with one of these and .gz to compress it"
        )
    if path.exists() and not force:
        raise DumpError(str(path), "already exists; --force overwrites it")
    chunks = json_chunks if plain.endswith(".json") else yaml_chunks
    counted = _Counted(objects)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("xb") as raw_file:
            packed = gzip.GzipFile(fileobj=raw_file, mode="wb", mtime=0) if path.name.endswith(".gz") else None
            file = cast(BinaryIO, packed) if packed is not None else raw_file
            for chunk in chunks(counted):
                file.write(chunk.encode())
            if packed is not None:
                packed.close()
        beside.replace(path)
    except OSError as wrong:
        beside.unlink(missing_ok=True)
        raise DumpError(str(path), f"cannot be written: {wrong.strerror or wrong}") from wrong
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return counted.count


class _Counted:
    def __init__(self, objects: Iterable[Raw]) -> None:
        self._objects = objects
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        for raw in self._objects:
            self.count += 1
            yield raw
