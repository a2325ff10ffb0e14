"""Import of objects exactly as they are in another cluster.

Imported objects are defaulted and validated; this does not change objects that an API server has stored. The objects
are neither admitted nor counted in quotas. The objects keep their UID, creation time, status, generation, finalizers
and deletion timestamps. Fields that do not exist in this version are dropped.

Equal pod specs are validated and stored only once. In a real cluster no two specs are equal, because each contains a
volume with a unique name for its service account's token. The name of the token volume is therefore ignored in
comparisons.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

import attrs
import msgpack

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod, intern_signature, intern_with_node_affinity
from kschedd.api.selecting.names import dns_subdomain
from kschedd.api.token_volumes import TOKEN_VOLUME
from kschedd.config.versions.rules import Rules
from kschedd.registry.pods.annotations import is_about_spec
from kschedd.store.admission.chain import PLUGINS, Admission
from kschedd.store.errors import AlreadyExists, ApiError
from kschedd.store.field_validation import known_fields
from kschedd.store.prototypes.pod_strategy import are_plain, typed_pod
from kschedd.store.store import Store
from kschedd.store.trial import key_of
from kschedd.values import run_steps

Raw = dict[str, Any]
OnRefusal = Callable[[Raw, ApiError], None]
OnWarning = Callable[[Raw, str], None]

_ANY_TOKEN: Final = f"{TOKEN_VOLUME}00000"
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_MOST_SPECS: Final = 1 << 13
_NO_SPEC: Raw = {}
_NO_ANNOTATIONS: Mapping[str, str] = {}


class Importer:
    """Importer of objects, one after the other.

    The importer rejects a second object with the same kind, namespace and name, until it forgets the first.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        # Fields of all versions are kept, because the other cluster's API server accepted them.
        off = Admission(dict.fromkeys(PLUGINS, False))
        self._scratch = Store(now=now, admission=off, objects=(), history=1, rules=Rules.of_any_release())
        self._whole_specs: set[bytes] = set()  # packed pod specs without unknown fields
        # Objects that were imported without validation.
        self._names: set[tuple[str, str, str]] = set()  # kind, namespace and name
        self._uids: set[str] = set()
        self._unchanged: dict[tuple[Hashable, str], Object] = {}  # one object for each likeness and namespace

    def take(self, given: Iterable[tuple[Raw, Hashable]], on_refusal: OnRefusal, on_warning: OnWarning) -> list[Object]:
        """Return the accepted objects in the same order; `on_refusal` is called for each rejected object.

        Each object is paired with its likeness: a key that objects share if they differ only in strings that do not
        affect validation. None means that the likeness is unknown. If validation does not change an object, later
        objects with the same likeness are accepted without validation.
        """
        objects: list[Object] = []
        for raw, likeness in given:
            if likeness is not None and (alike := self._alike(raw, likeness)) is not None:
                objects.append(alike)
                continue
            try:
                obj, warnings = self._pod(raw) if raw["kind"] == "Pod" else self._object(raw)
            except ApiError as refusal:
                on_refusal(raw, refusal)
                continue
            objects.append(obj)
            if likeness is not None:
                self._note_likeness(raw, likeness, obj)
            for warning in warnings:
                on_warning(raw, warning)
        return objects

    def forget(self) -> None:
        """Accept later objects with the names of all objects so far. Cached results of validation remain."""
        scratch = self._scratch
        gone = [key_of(obj) for kind in scratch.kinds() for part in scratch.present(kind) for obj in part]
        run_steps(scratch.reflect((), gone))
        self._names.clear()
        self._uids.clear()

    def _alike(self, raw: Raw, likeness: Hashable) -> Object | None:
        """Return the object if its likeness was accepted before; None if the object must be validated."""
        kind, meta = raw["kind"], raw["metadata"]
        name, namespace = meta["name"], meta.get("namespace") or ""
        found = self._unchanged.get((likeness, namespace))
        if found is None or dns_subdomain(name) or not are_plain(meta.get("annotations") or _NO_ANNOTATIONS):
            return None
        key, uid = (kind, namespace, name), meta["uid"]
        if key in self._names or uid in self._uids or self._scratch.find(*key) is not None:
            return None
        if self._scratch.has_uid(uid):
            return None
        self._names.add(key)
        self._uids.add(uid)
        return self._pod_like(found, raw) if isinstance(found, Pod) else parse(raw)

    @staticmethod
    def _pod_like(other: Pod, raw: Raw) -> Pod:
        signature = other.signature
        general = signature.spec.spec_without_node_affinity
        if general is not None:
            own = intern_with_node_affinity(general, raw["spec"]["affinity"]["nodeAffinity"])
            signature = intern_signature(signature.namespace, signature.labels, own)
        return typed_pod(raw, signature, raw["spec"].get("nodeName") or "")

    def _note_likeness(self, raw: Raw, likeness: Hashable, obj: Object) -> None:
        """Remember the object as a pattern for like objects if validation did not change it."""
        meta, annotations = raw["metadata"], raw["metadata"].get("annotations") or _NO_ANNOTATIONS
        if not meta.get("uid") or any(map(is_about_spec, annotations)):
            return
        if {**obj.raw, "metadata": {**obj.metadata, "resourceVersion": meta.get("resourceVersion")}} == raw:
            if len(self._unchanged) >= _MOST_SPECS:
                self._unchanged.clear()
            self._unchanged[likeness, obj.namespace] = obj

    def _object(self, raw: Raw) -> tuple[Object, tuple[str, ...]]:
        known, warnings = known_fields(raw, "Warn", self._scratch)
        return self._created(known), warnings

    def _created(self, raw: Raw) -> Object:
        meta = raw["metadata"]
        namespace, name, uid = meta.get("namespace") or "", meta.get("name"), meta.get("uid")
        if isinstance(namespace, str) and isinstance(name, str) and (raw["kind"], namespace, name) in self._names:
            raise AlreadyExists(raw["kind"], name)
        if isinstance(uid, str) and uid in self._uids:
            raw = {**raw, "metadata": {**meta, "uid": ""}}  # it gets another one
        return self._scratch.create(raw, restore=True)

    def _pod(self, raw: Raw) -> tuple[Object, tuple[str, ...]]:
        spec = raw.get("spec")
        token = _token_volume(spec)
        if not isinstance(spec, dict) or not token:
            return self._object(raw)
        renamed = _renamed(spec, token, _ANY_TOKEN)
        key = _packed(renamed)
        if key is not None and key in self._whole_specs:
            known, warnings = known_fields({**raw, "spec": _NO_SPEC}, "Warn", self._scratch)
            known = {**known, "spec": renamed}
        else:
            known, warnings = known_fields({**raw, "spec": renamed}, "Warn", self._scratch)
            if key is not None and not warnings:
                if len(self._whole_specs) >= _MOST_SPECS:
                    self._whole_specs.clear()
                self._whole_specs.add(key)
        made = self._created(known)
        return attrs.evolve(made, raw={**made.raw, "spec": _renamed(made.raw["spec"], _ANY_TOKEN, token)}), warnings


def _packed(spec: Raw) -> bytes | None:
    """Return bytes that are equal for equal specs, ignoring the node; None if the spec cannot be packed."""
    try:
        packed: bytes = msgpack.packb({name: value for name, value in spec.items() if name != "nodeName"})
    except (OverflowError, ValueError, TypeError):
        return None
    return packed


def _token_volume(spec: Any) -> str:
    """Return the name of the volume for the service account's token; "" if there is none."""
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    for volume in reversed(volumes) if isinstance(volumes, list) else ():
        name = volume.get("name") if isinstance(volume, dict) else None
        if isinstance(name, str) and name.startswith(TOKEN_VOLUME):
            return name
    return ""


def _renamed(spec: Mapping[str, Any], old: str, new: str) -> Raw:
    """Return the spec with a new name for this volume."""
    changed = {**spec, "volumes": [_with_name(volume, old, new) for volume in spec["volumes"]]}
    for field in _CONTAINERS:
        containers = spec.get(field)
        if isinstance(containers, list):
            changed[field] = [_with_mount(container, old, new) for container in containers]
    return changed


def _with_mount(container: Any, old: str, new: str) -> Any:
    mounts = container.get("volumeMounts") if isinstance(container, Mapping) else None
    if not isinstance(mounts, list):
        return container
    return {**container, "volumeMounts": [_with_name(mount, old, new) for mount in mounts]}


def _with_name(entry: Any, old: str, new: str) -> Any:
    return {**entry, "name": new} if isinstance(entry, Mapping) and entry.get("name") == old else entry
