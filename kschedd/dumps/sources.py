"""The objects of a dump, from files and folders of every usual form.

Taken are `kubectl get -o yaml|json` (single objects, lists, several documents), the folders of `kubectl cluster-info
dump` and of OpenShift's must-gather, the Cluster Autoscaler's /snapshotz, KWOK's YAML and SimKube's .sktrace; each of
them compressed by gzip as well. What cannot be read is told by file and line, and the rest is read; of a file that
breaks off what is whole is taken.

JSON is decoded without the lines of its values; what is not JSON is read again in the slow way, for the fault's line.
"""

import errno
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import attrs

from kschedd.api.json_text import without_lone_surrogates
from kschedd.api.manifests import read_bytes
from kschedd.dumps import sktrace, snapshotz
from kschedd.dumps.assumptions import Assumptions

STDIN: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".json", ".sktrace")
MAX_UNPACKED_BYTES: Final = 8 << 30
_MEMORY_FOR_A_FILE: Final = 4  # times its size
_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_GZIP: Final = b"\x1f\x8b"
_DEEPEST_LIST: Final = 5
_FIRST_ITEM: Final = re.compile(r'"items"\s*:\s*\[\s*')
_YAML_ITEM: Final = re.compile(r"^- ", re.MULTILINE)
_YAML_KIND: Final = re.compile(r"^kind:", re.MULTILINE)
_GAP: Final = re.compile(r"[ \t\r\n]*,?[ \t\r\n]*")
_LONGEST_HEAD: Final = 1 << 16  # of a list, before its items
_LONGEST_TOLD: Final = 1 << 26  # of a file whose fault is looked for
_PART_BYTES: Final = 1 << 24


@attrs.frozen(eq=False)
class DumpedObject:
    """An object of a dump and where it stands, `FILE` or `FILE:items[3]`."""

    raw: dict[str, Any]
    place: str


@attrs.define(eq=False)
class Sources:
    """What was read. `errors` are whole sentences that name the file."""

    found: list[DumpedObject] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    assumptions: Assumptions = attrs.field(factory=Assumptions)
    files: int = 0


def read_sources(
    paths: Iterable[str], stdin: BinaryIO | None = None, check: Callable[[], None] = lambda: None
) -> Sources:
    """The objects in these files and folders; `-` is standard input, if there is one.

    Without standard input, as in the daemon, pipes are not read either: nobody would know when they end. `check` is
    called before each file, and may raise.
    """
    sources = Sources()
    for path in paths:
        if path == STDIN and stdin is not None:
            _take(stdin.read(), "<stdin>", sources)
            continue
        try:
            files = sorted(_files(Path(path))) if Path(path).is_dir() else [Path(path)]
        except OSError as wrong:
            sources.errors.append(f"{path}: cannot be read: {wrong.strerror or wrong}")
            continue
        if not files:
            sources.errors.append(f"{path}: no {', '.join(SUFFIXES)} files here, nor such compressed by gzip")
        for file in files:
            check()
            try:
                data = _read_file(file, pipes=stdin is not None)
            except OSError as wrong:
                sources.errors.append(f"{file}: cannot be read: {wrong.strerror or wrong}")
                continue
            if data is None:
                sources.errors.append(
                    f"{file}: larger than {most_bytes():,} bytes, which memory would not do for: not read"
                )
                continue
            _take(data, str(file), sources)
    return sources


def _read_file(path: Path, *, pipes: bool) -> bytes | None:
    """What is in it, of any kind of file that comes to an end; None if that is too much. Raises OSError."""
    flags = os.O_RDONLY | (0 if pipes else os.O_NONBLOCK)  # to open a pipe would wait for somebody to write
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode) and not (pipes and stat.S_ISFIFO(mode)):
            raise OSError(f"a file is expected, and this is {_KINDS.get(stat.S_IFMT(mode), 'something else')}")
        return file.read() if status.st_size <= most_bytes() else None


def most_bytes() -> int:
    """The largest file that is read: decoding takes several times as much memory, and who runs out of it is killed."""
    available = 0
    try:
        with open("/proc/meminfo", encoding="ascii") as told:
            available = next(int(line.split()[1]) << 10 for line in told if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return min(MAX_UNPACKED_BYTES, available // _MEMORY_FOR_A_FILE)


def _files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        if file.name.removesuffix(".gz").endswith(SUFFIXES) and file.is_file():
            yield file


def _take(data: bytes, source: str, sources: Sources) -> None:
    """Add what one file holds."""
    sources.files += 1
    if data[:2] == _GZIP:
        unpacked, wrong = unpack(data, most_bytes())
        if wrong:
            sources.errors.append(f"{source}: {wrong}")
        data = unpacked
    if source.removesuffix(".gz").endswith(".sktrace"):
        _add_trace(data, source, sources)
    elif data.lstrip()[:1] in (b"{", b"["):
        _add_json(data, source, sources)
    else:
        _add_yaml(data, source, sources)


def unpack(data: bytes, limit: int) -> tuple[bytes, str]:
    """Gzip data unpacked, and what was wrong with it ("": nothing); of a damaged file what comes before the damage."""
    parts: list[bytes] = []
    size = 0
    while data:
        member = zlib.decompressobj(wbits=31)
        while data and not member.eof:
            try:
                parts.append(member.decompress(data, _PART_BYTES))
            except zlib.error as error:
                return b"".join(parts), f"damaged gzip data after {size:,} bytes: {error}"
            size += len(parts[-1])
            if size > limit:
                return b"", f"unpacked it is larger than {limit:,} bytes: it was not read"
            data = member.unconsumed_tail
        if not member.eof:
            return b"".join(parts), f"the gzip data breaks off after {size:,} bytes"
        data = member.unused_data.lstrip(b"\0")
    return b"".join(parts), ""


# --- JSON ----------------------------------------------------------------------------------------------------------


def _add_json(data: bytes, source: str, sources: Sources) -> None:
    try:
        text = without_lone_surrogates(data.decode("utf-8"))
        value, is_whole = _decoded(text)
    except (UnicodeDecodeError, ValueError, RecursionError):
        _add_reading(data, source, sources)  # several documents, or a fault, whose line is told
        return
    if not is_whole:
        sources.errors += [str(error) for error in read_bytes(data[:_LONGEST_TOLD], source).errors[:1]]
        sources.assumptions.note("of a file that breaks off what is whole was taken", source)
    if isinstance(value, dict) and snapshotz.is_snapshot(value):
        for name, raw in snapshotz.objects(value):
            sources.found.append(DumpedObject(raw, f"{source}:{name}"))
        return
    for number, item in enumerate(value) if isinstance(value, list) else ((None, value),):
        _unfold(item, source if number is None else f"{source}[{number}]", sources)


def _decoded(text: str) -> tuple[Any, bool]:
    """The value of JSON, and whether it is whole: of a list that breaks off the whole items.

    The items of a list are decoded one by one, so that a thread that does it lets go of the interpreter between them.
    Raises ValueError and RecursionError.
    """
    start = _FIRST_ITEM.search(text, 0, _LONGEST_HEAD)
    if start is None:
        return json.loads(text), True
    items, position = _items(text, start.end())
    if text[position : position + 1] != "]":
        return {"apiVersion": "v1", "kind": "List", "items": items}, False
    whole = json.loads(f'{text[: start.start()]}"items": []{text[position + 1 :]}')
    if not isinstance(whole, dict) or not str(whole.get("kind")).endswith("List"):
        return json.loads(text), True
    return {**whole, "items": items}, True


def _items(text: str, position: int) -> tuple[list[Any], int]:
    """The whole values from a position on, with commas between them, and where they end."""
    decoder = json.JSONDecoder()
    items: list[Any] = []
    while True:
        try:
            item, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return items, position
        items.append(item)
        gap = _GAP.match(text, position)
        assert gap is not None, "a gap may be empty"
        position = gap.end()


# --- YAML ----------------------------------------------------------------------------------------------------------


def _add_yaml(data: bytes, source: str, sources: Sources) -> None:
    if not _add_reading(data, source, sources):
        cut = _last_whole(data)
        if cut is not None and (reading := read_bytes(cut, source)).manifests:
            sources.assumptions.note("of a file that breaks off what is whole was taken", source)
            sources.found += [DumpedObject(manifest.raw, source) for manifest in reading.manifests]


def _add_reading(data: bytes, source: str, sources: Sources) -> bool:
    """Add what the reader of manifests finds; whether there was anything, or nothing to complain about."""
    reading = read_bytes(data, source)
    sources.errors += [str(error) for error in reading.errors]
    sources.found += [DumpedObject(manifest.raw, source) for manifest in reading.manifests]
    return bool(reading.manifests) or not reading.errors


def _last_whole(data: bytes) -> bytes | None:
    """A list of YAML without its last item, in which it breaks off."""
    text = data.decode("utf-8", "replace")
    items = [match.start() for match in _YAML_ITEM.finditer(text)]
    if len(items) < 2:
        return None
    kind = "" if _YAML_KIND.search(text) else "kind: List\n"  # which kubectl writes at the end
    return f"{text[: items[-1]]}{kind}".encode()


# --- what they hold ------------------------------------------------------------------------------------------------


def _unfold(value: Any, place: str, sources: Sources, depth: int = 0) -> None:
    """Add the object, or the items of a list."""
    if not isinstance(value, dict):
        sources.errors.append(f"{place}: an object is a map with apiVersion and kind, not {type(value).__name__}")
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
        sources.errors.append(f"{place}: items must be a list of objects")
        return
    for number, item in enumerate(items or ()):
        if kind != "List" and isinstance(item, dict) and "kind" not in item:
            item = {"apiVersion": api_version, "kind": kind.removesuffix("List"), **item}
        _unfold(item, f"{place}:items[{number}]", sources, depth + 1)


def _add_trace(data: bytes, source: str, sources: Sources) -> None:
    try:
        raws = sktrace.objects(data)
    except sktrace.NotATrace as wrong:
        sources.errors.append(f"{source}: {wrong}")
        return
    sources.assumptions.note("the objects of a trace are taken as they are at its end", source)
    sources.found += [DumpedObject(raw, f"{source}[{number}]") for number, raw in enumerate(raws)]
