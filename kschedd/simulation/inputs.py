"""The inputs of a simulation: manifests from files, directories and standard input, and dumps of live clusters.

Manifests are applied in the given order, but objects on which other objects depend are applied first. An invalid
manifest is reported with file, line and field, and all other manifests are applied. Objects dumped from a live cluster
have UIDs and keep their status, so pods that were running in that cluster also run here.
"""

from collections.abc import Callable, Iterable
from typing import BinaryIO, Final

import attrs

from kschedd.api.manifests import Manifest, ManifestReading, read_bytes, read_paths
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.kinds import kind_of
from kschedd.api.unsupported import Unsupported, grouped, unsupported
from kschedd.controllers.running.awaited import controllers_run_between
from kschedd.dumps.applying import apply_each, in_order
from kschedd.store.errors import ApiError, Invalid, StrictDecodingError
from kschedd.store.store import Store

STDIN: Final = "-"


@attrs.define
class Applied:
    """The result of applying manifests."""

    done: list[tuple[str, str, str]] = attrs.field(factory=list)  # kind, key, created/configured/unchanged
    errors: list[str] = attrs.field(factory=list)  # "file:line: path: why"
    warnings: list[str] = attrs.field(factory=list)


def read_manifests(paths: Iterable[str], stdin: BinaryIO) -> ManifestReading:
    """Read the manifests of these files and directories; `-` is standard input."""
    found = ManifestReading()
    for path in paths:
        found += read_bytes(stdin.read(), "<stdin>") if path == STDIN else read_paths([path])
    return found


def apply_all(
    store: Store,
    reading: ManifestReading,
    *,
    make_namespaces: bool = True,
    validation: FieldValidation = "Strict",
    run_controllers: Callable[[], object] = lambda: None,
) -> Applied:
    """Apply every valid object. `make_namespaces` creates the namespaces of objects if they have no manifest.

    `validation` decides whether unknown fields are errors, warnings or ignored. In a cluster dump, unknown fields only
    cause a warning, because the dump may come from a later Kubernetes version. `run_controllers` is called before an
    object that depends on a status that controllers write.
    """
    applied = Applied(errors=[str(error) for error in reading.errors])
    idle: list[Unsupported] = []
    last: Manifest | None = None

    def prepare(manifest: Manifest) -> None:
        nonlocal last
        if last is not None and controllers_run_between(last.raw, manifest.raw):
            run_controllers()
        last = manifest
        if make_namespaces:
            _make_namespace(store, manifest, kind_of(manifest.raw).namespaced, applied)

    for outcome in apply_each(store, in_order(reading.manifests), validation, prepare, served=True):
        manifest, refusal = outcome.manifest, outcome.refusal
        where = f"{manifest.source}:{manifest.line}"
        if isinstance(refusal, Invalid | StrictDecodingError):
            applied.errors += [_fault_text(manifest, fault) for fault in refusal.faults]
        elif refusal is not None:
            applied.errors.append(f"{where}: {refusal}")
        elif (made := outcome.object) is not None:
            applied.done.append((made.kind, made.key, outcome.action))
            applied.warnings += [f"{where}: {text}" for text in outcome.warnings]
            idle += unsupported(made.raw)
    applied.warnings += grouped(idle)
    return applied


def _fault_text(manifest: Manifest, fault: FieldError) -> str:
    """Return a fault with its file, line and object, in the format of `kschedd apply`."""
    error = manifest.error(fault)
    meta = manifest.raw.get("metadata")
    name = (meta.get("name") or meta.get("generateName") or "") if isinstance(meta, dict) else ""
    path = f"{error.path}: " if error.path else ""
    return f"{error.file}:{error.line}: {manifest.raw['kind']} {name}: {path}{error.why}"


def _make_namespace(store: Store, manifest: Manifest, namespaced: bool, applied: Applied) -> None:
    meta = manifest.raw.get("metadata")
    name = meta.get("namespace") if isinstance(meta, dict) and namespaced else None
    if not isinstance(name, str) or not name or store.find("Namespace", "", name) is not None:
        return
    try:
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    except ApiError:
        return  # all objects of this namespace will be rejected with the reason
    applied.warnings.append(f'no manifest has namespace "{name}" ({manifest.source}:{manifest.line}): it was made')
