"""What a simulation is given: manifests from files, folders and standard input, and recorded clusters.

Manifests are applied in the order they come in, but for the kinds that others need to be there first. One that is
broken is told with file, line and field, and the rest goes on. What was printed from a live cluster (it has uids) keeps
its status, so pods that ran there run here.
"""

from collections.abc import Iterable, Sequence
from typing import BinaryIO, Final

import attrs

from kschedd.api.decoding import FieldValidation
from kschedd.api.kinds import kind_of
from kschedd.api.manifests import Manifest, Reading, read_bytes, read_paths
from kschedd.api.unsupported import Unsupported, grouped, unsupported
from kschedd.store.errors import ApiError, Invalid, StrictDecodingError
from kschedd.store.field_validation import known_fields
from kschedd.store.store import Store

STDIN: Final = "-"
_FIRST: Final = ("CustomResourceDefinition", "Namespace", "PriorityClass", "RuntimeClass")


@attrs.define
class Applied:
    """What became of some manifests."""

    done: list[tuple[str, str, str]] = attrs.field(factory=list)  # kind, key, created/configured/unchanged
    errors: list[str] = attrs.field(factory=list)  # "file:line: path: why"
    warnings: list[str] = attrs.field(factory=list)


def read_manifests(paths: Iterable[str], stdin: BinaryIO) -> Reading:
    """All that stands in these files and folders; `-` is standard input."""
    found = Reading()
    for path in paths:
        found += read_bytes(stdin.read(), "<stdin>") if path == STDIN else read_paths([path])
    return found


def apply_all(
    store: Store, reading: Reading, *, make_namespaces: bool = True, validation: FieldValidation = "Strict"
) -> Applied:
    """Apply everything that can be; `make_namespaces` makes those that are used and nowhere stated.

    Fields that a kind does not have are treated as `validation` says; in a cluster's dump they are no more than warned
    of, since it may be of a later version.
    """
    applied = Applied(errors=[str(error) for error in reading.errors])
    idle: list[Unsupported] = []
    for manifest in _in_order(reading.manifests):
        kind = kind_of(manifest.raw)
        if make_namespaces:
            _make_namespace(store, manifest, kind.namespaced, applied)
        try:
            restore = bool((manifest.raw.get("metadata") or {}).get("uid"))
            raw, warnings = known_fields(manifest.raw, "Warn" if restore and validation == "Strict" else validation)
            made, action = store.apply(raw, restore=restore, as_client=not restore)
        except (Invalid, StrictDecodingError) as refusal:
            applied.errors += [str(manifest.error(fault)) for fault in refusal.faults]
        except ApiError as refusal:
            applied.errors.append(f"{manifest.source}:{manifest.line}: {refusal}")
        else:
            applied.done.append((made.kind, made.key, action))
            applied.warnings += [f"{manifest.source}:{manifest.line}: {text}" for text in warnings]
            idle += unsupported(made.raw)
    applied.warnings += grouped(idle)
    return applied


def _in_order(manifests: Sequence[Manifest]) -> list[Manifest]:
    def place(manifest: Manifest) -> int:
        kind = manifest.raw.get("kind")
        return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)

    return sorted(manifests, key=place)


def _make_namespace(store: Store, manifest: Manifest, namespaced: bool, applied: Applied) -> None:
    meta = manifest.raw.get("metadata")
    name = meta.get("namespace") if isinstance(meta, dict) and namespaced else None
    if not isinstance(name, str) or not name or store.find("Namespace", "", name) is not None:
        return
    try:
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    except ApiError:
        return  # the object that uses it will be refused with the reason
    applied.warnings.append(f'no manifest has namespace "{name}" ({manifest.source}:{manifest.line}): it was made')
