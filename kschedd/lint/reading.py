"""The input of `kschedd lint`: manifests, scripts, and the objects of a dump.

Helm values, kustomizations and other YAML files without a kind are not Kubernetes objects and are skipped, and so are
templates, the patches of a kustomization, and files that `kept` excludes. A file that the user names must be readable.
"""

from collections.abc import Iterable, Iterator, Sequence
from os.path import dirname
from pathlib import Path, PurePath
from typing import BinaryIO, Final

import attrs

from kschedd.api.manifests import SUFFIXES, read_bytes
from kschedd.api.text import text_files
from kschedd.api.text.documents import read_documents
from kschedd.api.text.text_files import NotText
from kschedd.config.versions.kube_releases import Release
from kschedd.dumps.dumped_release import DumpedRelease, kubelet_version
from kschedd.dumps.sources import STDIN, read_sources
from kschedd.input_files import open_input
from kschedd.lint.catalogue.texts import SCRIPT
from kschedd.lint.kept import OLD_CLUSTERS, KeptFiles, pinned_release
from kschedd.lint.rules import OLDEST
from kschedd.lint.subjects import LintedObject, at, entries, strings, text_of

_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml")
_SCRIPTS: Final = (".sh", ".bash", ".py", ".promql", ".rules", ".tf", ".go", ".md")
_CHART: Final = "Chart.yaml"
_PATCHES: Final = "patches"
_MOST_BYTES: Final = 64 << 20  # of one file


@attrs.define
class LintInput:
    """The objects, the files with parts that are not objects, and the errors in files that the user named.

    `kept`: the files that `KeptFiles` excludes, each with the reason. `templates`: files that must be rendered first.
    """

    objects: list[LintedObject] = attrs.field(factory=list)
    passed_over: dict[str, str] = attrs.field(factory=dict)  # by file, the first error
    kept: dict[str, str] = attrs.field(factory=dict)
    templates: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)


def read_files(paths: Iterable[str], stdin: BinaryIO, release: Release | None = None) -> LintInput:
    """Read files, folders with everything below them, and `-` for standard input.

    `release`: the release of the cluster; files for other releases are skipped. None: no file is.
    """
    read = LintInput()
    for name in paths:
        if name == STDIN:
            _take(read, stdin.read(), _FileName("<stdin>"))
            continue
        path = Path(name)
        try:
            files = sorted(each for each in path.rglob("*") if _is_read(each)) if path.is_dir() else [path]
        except OSError as wrong:
            read.errors.append(f"{name}: cannot be read: {wrong.strerror or wrong}")
            continue
        if path.is_dir():
            _read_folder(read, path, files, release)
        else:
            _read_file(read, path, _FileName(name))
    return read


def _read_folder(read: LintInput, folder: Path, files: Sequence[Path], release: Release | None) -> None:
    patches = {patch for file in files if file.name in _KUSTOMIZATIONS for patch in _patches(file)}
    charts = {file.parent for file in files if file.name == _CHART}
    kept = KeptFiles([file.relative_to(folder) for file in files], release) if release is not None else None
    first = len(read.objects)
    pinned: dict[str, int] = {}  # by folder, the newest release
    for file in files:
        below = file.relative_to(folder)
        if file.resolve() in patches or file.parent.name == _PATCHES:
            continue
        if kept is not None and (reason := kept.reason(below)):
            if file.suffix in SUFFIXES:
                read.kept[str(file)] = reason
            continue
        in_chart = any(parent.name == "templates" and parent.parent in charts for parent in file.parents)
        data = _read_file(read, file, _FileName(str(file), below, in_chart=in_chart))
        if kept is not None and (minor := pinned_release(file, data)) is not None:
            pinned[dirname(file)] = max(minor, pinned.get(dirname(file), 0))
    if old := {place for place, minor in pinned.items() if minor < OLDEST.minor}:
        found = read.objects[first:]
        read.kept |= {
            each.source: OLD_CLUSTERS for each in found if dirname(each.source) in old and each.kind != SCRIPT
        }
        read.objects[first:] = [each for each in found if dirname(each.source) not in old]


def _patches(kustomization: Path) -> Iterator[Path]:
    """Yield the files that a kustomization uses as patches: they contain only parts of objects."""
    try:
        documents = list(read_documents(text_files.text_of(kustomization.read_bytes())))
    except (OSError, NotText):
        return  # reading the file itself reports it
    for document in documents:
        names = strings(at(document.value, "patchesStrategicMerge"))
        for field in ("patches", "patchesJson6902"):
            names += [text_of(patch.get("path")) for _, patch in entries(document.value, field)]
        yield from ((kustomization.parent / name).resolve() for name in names if name and "\n" not in name)


def _is_read(path: Path) -> bool:
    return path.suffix in (*SUFFIXES, *_SCRIPTS) and path.is_file() and not any(part == ".git" for part in path.parts)


@attrs.frozen
class _FileName:
    """The name of a file in messages.

    `below`: the path below the folder that the user named; None if the user named the file itself.

    `in_chart`: the file is a template of a Helm chart.
    """

    source: str
    below: PurePath | None = None
    in_chart: bool = False


def _read_file(read: LintInput, file: Path, name: _FileName) -> bytes:
    """Read the objects of a file, or its text. Return its data, empty if it cannot be read."""
    try:
        with open_input(file, pipes=True) as opened:
            data = opened.read(_MOST_BYTES + 1)
    except OSError as wrong:
        read.errors.append(f"{file}: cannot be read: {wrong.strerror or wrong}")
        return b""
    if len(data) > _MOST_BYTES:
        read.errors.append(f"{file}: is larger than {_MOST_BYTES >> 20} MiB; use --from for the dump of a cluster")
        return b""
    if file.suffix in SUFFIXES:
        _take(read, data, name)
    else:
        _take_script(read, data, name.source)
    return data


def _take(read: LintInput, data: bytes, name: _FileName) -> None:
    source = name.source
    if b"{{" in data and name.in_chart:
        read.templates.append(source)
        _take_script(read, data, source)
        return
    reading = read_bytes(data, source)
    read.objects += [attrs.evolve(LintedObject.of(manifest), below=name.below) for manifest in reading.manifests]
    faults = [str(error) for error in reading.errors]
    if b"{{" in data and name.below is not None and any("not YAML" in fault for fault in faults):
        read.templates.append(source)
    elif name.below is None and not reading.manifests:
        read.errors += faults
    elif faults:
        read.passed_over.setdefault(source, faults[0])
    if faults and not reading.manifests:
        _take_script(read, data, source)


def _take_script(read: LintInput, data: bytes, source: str) -> None:
    """Add a file without objects, whose text some rules check."""
    try:
        lines = text_files.text_of(data).split("\n")
    except NotText as wrong:
        read.passed_over.setdefault(source, f"{source}: {wrong.why}")
        return
    raw = {"kind": SCRIPT, "metadata": {"name": Path(source).name}, "lines": lines}
    read.objects.append(LintedObject(raw, source, _line_of_script, "\n".join(lines)))


def _line_of_script(path: str) -> int:
    """Return the line for a path such as `lines[4]`."""
    number = path.partition("[")[2].rstrip("]")
    return int(number) + 1 if number.isdecimal() else 1


def read_dump_objects(paths: Sequence[str], stdin: BinaryIO) -> LintInput:
    """Read the objects of a dump."""
    sources = read_sources(paths, stdin)
    return LintInput([LintedObject(found.raw, found.place) for found in sources.found], errors=sources.errors)


def release_of_nodes(objects: Iterable[LintedObject]) -> int | None:
    """Return the minor release that the nodes report; None without one."""
    return DumpedRelease.of(kubelet_version(each.raw) for each in objects if each.kind == "Node").minor
