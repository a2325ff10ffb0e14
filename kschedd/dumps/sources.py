"""The objects of a dump, from files and folders in all common formats.

The formats are `kubectl get -o yaml|json` (single objects, lists, several documents), the folders of `kubectl
cluster-info dump` and of OpenShift's must-gather, the Cluster Autoscaler's /snapshotz, KWOK's YAML and SimKube's
.sktrace. Each format may be compressed with gzip. Unreadable parts are reported with file and line, and all other parts
are read. Of a truncated file, the complete objects are used.

JSON is decoded without the line numbers of its values, and lists item by item (`json_lists`). If a text is not valid
JSON, it is read again by the slower reader, which finds the line of the error.
"""

import json
import os
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import attrs

from kschedd.api.manifests import ManifestError, ManifestReading, read_bytes
from kschedd.api.schemas.unmarshal_errors import json_kind
from kschedd.api.text.json_text import without_lone_surrogates
from kschedd.dumps import sktrace
from kschedd.dumps.assumptions import Assumptions, LoadErrors
from kschedd.input_files import open_input

if TYPE_CHECKING:
    from kschedd.dumps.json_lists import JsonList

Data = bytes | bytearray

STDIN: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".json", ".sktrace")
MAX_UNPACKED_BYTES: Final = 8 << 30
_MEMORY_FOR_A_FILE: Final = 4  # memory needed to read a file, as a multiple of its size
_GZIP: Final = b"\x1f\x8b"
_DEEPEST_LIST: Final = 5
_JSON: Final = re.compile(rb"\s*[{\[]")
_YAML_ITEM: Final = re.compile(r"^- ", re.MULTILINE)
_YAML_END: Final = re.compile(r"^\S", re.MULTILINE)  # of an item
_YAML_KIND: Final = re.compile(r"^kind:", re.MULTILINE)
_LONGEST_SHOWN: Final = 1 << 26  # maximum number of bytes of a file in which the line of an error is sought
_MOST_LEFT_OUT: Final = 16  # maximum number of unreadable items of one list
_PART_BYTES: Final = 1 << 24


@attrs.frozen(eq=False)
class DumpedObject:
    """An object of a dump and its place in the form `FILE` or `FILE:items[3]`."""

    raw: dict[str, Any]
    place: str
    likeness: Hashable = None  # equal for objects that differ only in strings that no validation distinguishes


@attrs.define(eq=False)
class Sources:
    """The objects read from all sources, with errors and assumptions."""

    found: list[DumpedObject] = attrs.field(factory=list)
    faults: LoadErrors = attrs.field(factory=LoadErrors)
    assumptions: Assumptions = attrs.field(factory=Assumptions)
    files: int = 0

    @property
    def errors(self) -> list[str]:
        """The errors as complete sentences that contain the name of the file."""
        return self.faults.texts()


def read_sources(
    paths: Iterable[str], stdin: BinaryIO | None = None, check: Callable[[], None] = lambda: None
) -> Sources:
    """Return the objects in these files and folders; `-` is standard input, if available.

    If standard input is not available, as in the daemon, pipes are not read either, because they might never end.
    `check` is called before each file, and may raise an error.
    """
    sources = Sources()
    for path in paths:
        if path == STDIN and stdin is not None:
            _take(stdin.read(), "<stdin>", sources)
            continue
        try:
            files = sorted(_files(Path(path))) if Path(path).is_dir() else [Path(path)]
        except OSError as wrong:
            sources.faults.add(f"{path}: cannot be read: {wrong.strerror or wrong}")
            continue
        if not files:
            sources.faults.add(f"{path}: no {', '.join(SUFFIXES)} files here, compressed by gzip or not")
        for file in files:
            check()
            try:
                data = _read_file(file, pipes=stdin is not None)
            except OSError as wrong:
                sources.faults.add(f"{file}: cannot be read: {wrong.strerror or wrong}")
                continue
            if data is None:
                sources.faults.add(
                    f"{file}: larger than {most_bytes():,} bytes, the most that fits into memory: not read"
                )
                continue
            _take(data, str(file), sources)
    return sources


def _read_file(path: Path, *, pipes: bool) -> bytes | None:
    """Return the content of any kind of file that has an end; None if the file is too large. Raises OSError."""
    with open_input(path, pipes=pipes) as file:
        return file.read() if os.fstat(file.fileno()).st_size <= most_bytes() else None


def most_bytes() -> int:
    """Return the maximum size of a file that is read.

    Decoding takes several times as much memory as the file, and a process that runs out of memory is killed.
    """
    available = 0
    try:
        with open("/proc/meminfo", encoding="ascii") as mentioned:
            available = next(int(line.split()[1]) << 10 for line in mentioned if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return min(MAX_UNPACKED_BYTES, available // _MEMORY_FOR_A_FILE)


def _files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        if file.name.removesuffix(".gz").endswith(SUFFIXES) and file.is_file():
            yield file


def _take(given: bytes, source: str, sources: Sources) -> None:
    """Add the objects of one file."""
    sources.files += 1
    data: Data = given
    if given[:2] == _GZIP:
        data, wrong = unpack(given, most_bytes())
        if wrong:
            sources.faults.add(f"{source}: {wrong}")
    if source.removesuffix(".gz").endswith(".sktrace"):
        _add_trace(bytes(data), source, sources)
    elif _JSON.match(data):
        _add_json(data, source, sources)
    else:
        _add_yaml(data, source, sources)


def unpack(data: bytes, limit: int) -> tuple[Data, str]:
    """Return the unpacked gzip data and an error; "" without an error.

    For a damaged file, return the data before the damage.
    """
    unpacked = bytearray()  # extended in place, because joining parts would block all other threads
    while data:
        member = zlib.decompressobj(wbits=31)
        while data and not member.eof:
            try:
                unpacked += member.decompress(data, _PART_BYTES)
            except zlib.error as error:
                return unpacked, f"damaged gzip data after {len(unpacked):,} bytes: {error}"
            if len(unpacked) > limit:
                return b"", f"larger than {limit:,} bytes when unpacked: it was not read"
            data = member.unconsumed_tail
        if not member.eof:
            return unpacked, f"the gzip data is truncated after {len(unpacked):,} bytes"
        data = member.unused_data.lstrip(b"\0")
    return unpacked, ""


# --- JSON ----------------------------------------------------------------------------------------------------------


def _add_json(data: Data, source: str, sources: Sources) -> None:
    from kschedd.dumps.json_lists import read_list  # slow to import

    try:
        found = read_list(data)
        value = json.loads(without_lone_surrogates(data.decode())) if found is None else None
    except (UnicodeDecodeError, ValueError, RecursionError):
        _add_reading(data, source, sources)  # several documents, or an error whose line the slower reader finds
        return
    if found is not None:
        _add_list(found, data, source, sources)
        return
    if isinstance(value, dict) and _is_snapshot(value):
        for name, raw in _snapshot_objects(value):
            sources.found.append(DumpedObject(raw, f"{source}:{name}"))
        return
    for number, item in enumerate(value) if isinstance(value, list) else ((None, value),):
        _unfold(item, source if number is None else f"{source}[{number}]", sources)


def _add_list(found: "JsonList", data: Data, source: str, sources: Sources) -> None:
    around = found.around
    if around is None:
        for error in read_bytes(bytes(data[:_LONGEST_SHOWN]), source).errors[:1]:
            sources.faults.add(str(error))
        sources.assumptions.note("only the complete objects of a truncated file are loaded", source)
        around = {"apiVersion": "v1", "kind": "List"}
    if not isinstance(around.get("apiVersion"), str):
        _unfold({**around, "items": [item.raw for item in found.items]}, source, sources)
        return
    for number, item in enumerate(found.items):
        place = f"{source}:items[{number}]"
        if item.likeness is not None:
            sources.found.append(DumpedObject(item.raw, place, item.likeness))
        else:
            _unfold(_with_kind(item.raw, around), place, sources, 1)


# --- YAML ----------------------------------------------------------------------------------------------------------


def _add_yaml(data: Data, source: str, sources: Sources) -> None:
    reading = _add_reading(data, source, sources)
    for _ in range(_MOST_LEFT_OUT):
        if reading.manifests or not reading.errors:
            return
        faulty = _without_faulty(data, reading.errors[0])
        cut = _last_whole(data) if faulty is None else faulty
        if cut is None:
            return
        what = "only the complete objects of a truncated file are loaded"
        if faulty is not None:
            what = "the objects of a list beside one that cannot be read were taken"
        reading, data = read_bytes(cut, source), cut
        if reading.manifests:
            sources.assumptions.note(what, source)
            sources.found += [DumpedObject(manifest.raw, source) for manifest in reading.manifests]
        elif faulty is None:
            return


def _add_reading(data: Data, source: str, sources: Sources) -> ManifestReading:
    """Add the objects that the manifest reader finds."""
    reading = read_bytes(bytes(data), source)
    for error in reading.errors:
        sources.faults.add(str(error))
    sources.found += [DumpedObject(manifest.raw, source) for manifest in reading.manifests]
    return reading


def _without_faulty(data: Data, error: ManifestError) -> bytes | None:
    """Return a YAML list without the item in which parsing failed; None if parsing failed outside of all items."""
    if not error.path.startswith("items["):
        return None
    text = data.decode("utf-8", "replace")
    at = sum(map(len, text.splitlines(keepends=True)[: error.line - 1]))
    items = [match.start() for match in _YAML_ITEM.finditer(text)]
    place = bisect_right(items, at) - 1
    if len(items) < 2 or place < 0:
        return None
    rest = _YAML_END.search(text, items[place] + 1)
    return f"{text[: items[place]]}{text[rest.start() :] if rest else ''}".encode()


def _last_whole(data: Data) -> bytes | None:
    """Return a truncated YAML list without its last, incomplete item; None if the list has fewer than two items."""
    text = data.decode("utf-8", "replace")
    items = [match.start() for match in _YAML_ITEM.finditer(text)]
    if len(items) < 2:
        return None
    kind = "" if _YAML_KIND.search(text) else "kind: List\n"  # kubectl writes the kind at the end of a list
    return f"{text[: items[-1]]}{kind}".encode()


# --- objects and lists -------------------------------------------------------------------------------------------


def _unfold(value: Any, place: str, sources: Sources, depth: int = 0) -> None:
    """Add the object or, if it is a list, its items."""
    if not isinstance(value, dict):
        given = "null" if value is None else f"a JSON {json_kind(value)}"
        sources.faults.add(f"{place}: an object is a map with apiVersion and kind, not {given}")
        return
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if not isinstance(kind, str) or not kind or not isinstance(api_version, str) or not api_version:
        sources.assumptions.note("not objects of Kubernetes, left out", place)
        return
    if not kind.endswith("List") or "items" not in value:
        sources.found.append(DumpedObject(value, place))
        return
    items = value["items"]
    if not isinstance(items, list | None) or depth > _DEEPEST_LIST:
        sources.faults.add(f"{place}: items must be a list of objects")
        return
    for number, item in enumerate(items or ()):
        _unfold(_with_kind(item, value), f"{place}:items[{number}]", sources, depth + 1)


def _with_kind(item: Any, around: Mapping[str, Any]) -> Any:
    """Return an item of a list, with its kind: in a list of one kind, items may omit it."""
    kind: str = around["kind"]
    if kind == "List" or not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": around["apiVersion"], "kind": kind.removesuffix("List"), **item}


def _add_trace(data: bytes, source: str, sources: Sources) -> None:
    try:
        raws = sktrace.objects(data)
    except sktrace.UnusableTrace as wrong:
        sources.faults.add(f"{source}: {wrong}")
        return
    sources.assumptions.note("the objects of a trace are loaded as they are at its end", source)
    sources.found += [DumpedObject(raw, f"{source}[{number}]") for number, raw in enumerate(raws)]


_PENDING: Final = "UnscheduledPodsCanBeScheduled"


def _is_snapshot(value: Mapping[str, Any]) -> bool:
    """Return whether the value is a debugging snapshot of the Cluster Autoscaler (`curl …:8085/snapshotz`)."""
    return "kind" not in value and isinstance(value.get("NodeList"), list)


def _snapshot_objects(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the content of each object in the snapshot; each pod only once.

    Objects in a snapshot have neither kind nor apiVersion. Templates of node groups are not nodes, and are omitted.

    Source: kubernetes/autoscaler, cluster-autoscaler/debuggingsnapshot.
    """
    mentioned: set[str] = set()

    def pods(place: str, found: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        for number, pod in enumerate(found if isinstance(found, list) else ()):
            raw = pod.get("Pod", pod) if isinstance(pod, dict) else None  # newer versions wrap it
            meta = raw.get("metadata") if isinstance(raw, dict) else None
            uid = meta.get("uid") if isinstance(meta, dict) else None
            if isinstance(raw, dict) and uid not in mentioned:
                if isinstance(uid, str):
                    mentioned.add(uid)
                yield f"{place}[{number}]", {**raw, "apiVersion": "v1", "kind": "Pod"}

    for number, entry in enumerate(snapshot["NodeList"]):
        node = entry.get("Node") if isinstance(entry, dict) else None
        if isinstance(node, dict):
            yield f"NodeList[{number}].Node", {**node, "apiVersion": "v1", "kind": "Node"}
            yield from pods(f"NodeList[{number}].Pods", entry.get("Pods"))
    yield from pods(_PENDING, snapshot.get(_PENDING))
