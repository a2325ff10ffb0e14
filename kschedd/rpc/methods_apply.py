"""What `objects.apply` does: manifests as text or maps go in, objects are created or changed, every fault is told.

One bad document never spoils the others, unless `atomic`. A fault has the line it is on where the manifest came as
text. Atomic and dry runs are tried on a copy of the store first, so that objects in them may depend on each other.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from kschedd.api.decoding import FieldValidation
from kschedd.api.fields import FieldError
from kschedd.api.manifests import Manifest, ManifestError, read_text
from kschedd.api.quantity import shown
from kschedd.api.unsupported import unsupported
from kschedd.store.errors import ApiError, Invalid, StrictDecodingError
from kschedd.store.field_validation import known_fields
from kschedd.store.store import Store

Raw = dict[str, Any]


@attrs.frozen(eq=False)
class Wanted:
    """One object to apply, and where it was written."""

    raw: Raw
    source: str
    manifest: Manifest | None = None

    @property
    def line(self) -> int:
        return 0 if self.manifest is None else self.manifest.line

    def fault(self, wrong: FieldError) -> ManifestError:
        if self.manifest is not None:
            return self.manifest.error(wrong)
        return ManifestError(self.source, 0, wrong.path, wrong.value, wrong.why)


@attrs.frozen(eq=False)
class Parsed:
    wanted: tuple[Wanted, ...]
    errors: tuple[dict[str, Any], ...]


def parse(manifests: Any, source: str) -> Parsed:
    """The objects in text, in a map, or in an array of maps."""
    if isinstance(manifests, str):
        reading = read_text(manifests, source)
        return Parsed(
            tuple(Wanted(manifest.raw, source, manifest) for manifest in reading.manifests),
            tuple(_told(error) for error in reading.errors),
        )
    wanted: list[Wanted] = []
    errors: list[dict[str, Any]] = []
    several = isinstance(manifests, list)
    for number, value in enumerate(manifests if several else [manifests]):
        _unfold(value, f"{source}[{number}]" if several else source, wanted, errors)
    return Parsed(tuple(wanted), tuple(errors))


def _unfold(value: Any, source: str, wanted: list[Wanted], errors: list[dict[str, Any]], depth: int = 0) -> None:
    faults = []
    for field in ("apiVersion", "kind"):
        text = value.get(field)
        if not isinstance(text, str) or not text:
            why = "Required value" if text is None else f"Invalid value: {shown(text)}: must be text"
            faults.append(_told(ManifestError(source, 0, field, text, why)))
    if faults:
        errors += faults
        return
    items = value.get("items")
    if not value["kind"].endswith("List") or "items" not in value:
        wanted.append(Wanted(value, source))
        return
    if not isinstance(items, list | None) or depth > 4:
        errors.append(_told(ManifestError(source, 0, "items", None, "Invalid value: must be a list of objects")))
        return
    for number, item in enumerate(items or ()):
        where = f"{source}.items[{number}]"
        if not isinstance(item, dict):
            errors.append(_told(ManifestError(where, 0, "", item, f"{shown(item)}: an object is a map")))
            continue
        if value["kind"] != "List" and "kind" not in item:
            item = {"apiVersion": value["apiVersion"], "kind": value["kind"].removesuffix("List"), **item}
        _unfold(item, where, wanted, errors, depth + 1)


def _told(error: ManifestError, wanted: Wanted | None = None, code: str = "invalid") -> dict[str, Any]:
    told = {
        "source": error.file,
        "line": error.line,
        "path": error.path,
        "value": error.value,
        "why": error.why,
        "message": str(error),
        "code": code,
    }
    if wanted is not None:
        meta = wanted.raw.get("metadata")
        told["kind"] = str(wanted.raw.get("kind"))
        told["namespace"] = str(meta.get("namespace") or "") if isinstance(meta, dict) else ""
        told["name"] = str(meta.get("name") or meta.get("generateName") or "") if isinstance(meta, dict) else ""
    return told


@attrs.frozen(eq=False)
class Terms:
    """How manifests are taken: fields that a kind does not have, and where objects go that name no namespace."""

    validation: FieldValidation = "Strict"
    namespace: str = "default"


@attrs.define(eq=False)
class Outcome:
    results: list[dict[str, Any]] = attrs.field(factory=list)
    errors: list[dict[str, Any]] = attrs.field(factory=list)
    warnings: list[str] = attrs.field(factory=list)
    unsupported: list[dict[str, Any]] = attrs.field(factory=list)

    def add(self, other: "Outcome") -> None:
        self.results.extend(other.results)
        self.errors.extend(other.errors)
        self.warnings.extend(text for text in other.warnings if text not in self.warnings)
        self.unsupported.extend(other.unsupported)


def apply_all(wanted: Iterable[Wanted], store: Store, terms: Terms = Terms()) -> Outcome:
    """Apply one after the other; those that are refused are told, the others applied."""
    outcome = Outcome()
    for one in wanted:
        try:
            raw, warnings = known_fields(in_namespace(store, one.raw, terms.namespace), terms.validation)
            obj, action = store.apply(raw, as_client=True)
        except (Invalid, StrictDecodingError) as refusal:
            outcome.errors += [_told(one.fault(fault), one) for fault in refusal.faults]
            continue
        except ApiError as refusal:
            error = ManifestError(one.source, one.line, "", None, str(refusal))
            outcome.errors.append(_told(error, one, refusal.rpc_code))
            continue
        made = {"kind": obj.kind, "namespace": obj.namespace, "name": obj.name, "action": action}
        outcome.results.append({**made, "resource": store.kind_of(obj.raw).resource})
        where = f"{one.source}:{one.line}: " if one.line else ""
        outcome.warnings += [f"{where}{obj.kind} {obj.name}: {text}" for text in warnings]
        outcome.unsupported += [attrs.asdict(each) for each in unsupported(obj.raw)]
    return outcome


def in_namespace(store: Store, raw: Raw, namespace: str) -> Raw:
    """The manifest with the namespace it is meant for, if it names none and its kind lives in one."""
    meta = raw.get("metadata")
    if (
        namespace == "default"
        or not isinstance(meta, dict)
        or meta.get("namespace")
        or not store.kind_of(raw).namespaced
    ):
        return raw
    return {**raw, "metadata": {**meta, "namespace": namespace}}


def apply_atomically(wanted: Sequence[Wanted], store: Store, terms: Terms = Terms()) -> Outcome:
    """Apply all, or nothing if any of them is refused."""
    tried = apply_all(wanted, copy_of(store), terms)
    if tried.errors:
        return Outcome([], tried.errors, tried.warnings, tried.unsupported)
    return apply_all(wanted, store, terms)


def try_all(wanted: Sequence[Wanted], store: Store, terms: Terms = Terms()) -> Outcome:
    """What applying would do; nothing is changed."""
    return apply_all(wanted, copy_of(store), terms)


def copy_of(store: Store) -> Store:
    """A store of its own with the same objects, which are shared: nobody changes them."""
    objects = (obj for kind in store.kinds() for obj in store.list(kind))
    return Store(now=lambda: store.now, objects=objects, version=store.version, admission=store.admission)
