"""Objects as they stood in another cluster, as this store would hold them.

They are defaulted and checked, which changes nothing of what an API server has kept, and neither admitted nor counted
against quotas; uid, creation time, status, generation, finalizers and deletion timestamps are theirs. Fields that this
version does not know are dropped.

Equal pod specs are checked and held once. In a real cluster no two would be equal, as each has a volume for its service
account's token with a name of its own: that name is set aside for the check.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs
import msgpack

from kschedd.api.objects import Object
from kschedd.config.kube_versions import V1_36
from kschedd.store.admission import PLUGINS, Admission
from kschedd.store.errors import ApiError
from kschedd.store.field_validation import known_fields
from kschedd.store.store import Store

Raw = dict[str, Any]
OnRefusal = Callable[[Raw, ApiError], None]
OnWarning = Callable[[Raw, str], None]

TOKEN_VOLUME: Final = "kube-api-access-"
_ANY_TOKEN: Final = f"{TOKEN_VOLUME}00000"
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_MOST_SPECS: Final = 1 << 13
_NO_SPEC: Raw = {}


class Standing:
    """Takes objects one after the other, and knows their names: a second one of a name is refused."""

    def __init__(self, now: Callable[[], float]) -> None:
        # Fields of any version are kept: the server they stood in has let them in.
        off = Admission(dict.fromkeys(PLUGINS, False))
        self._scratch = Store(now=now, admission=off, objects=(), history=1, rules=V1_36.rules)
        self._whole_specs: set[bytes] = set()  # packed pod specs without unknown fields

    def take(self, raws: Iterable[Raw], on_refusal: OnRefusal, on_warning: OnWarning) -> list[Object]:
        """The objects in the same order; those that are refused are left out, and `on_refusal` is told of each."""
        objects: list[Object] = []
        for raw in raws:
            try:
                obj, warnings = self._pod(raw) if raw["kind"] == "Pod" else self._object(raw)
            except ApiError as refusal:
                on_refusal(raw, refusal)
                continue
            objects.append(obj)
            for warning in warnings:
                on_warning(raw, warning)
        return objects

    def _object(self, raw: Raw) -> tuple[Object, tuple[str, ...]]:
        known, warnings = known_fields(raw, "Warn")
        return self._scratch.create(known, restore=True), warnings

    def _pod(self, raw: Raw) -> tuple[Object, tuple[str, ...]]:
        spec = raw.get("spec")
        token = _token_volume(spec)
        if not isinstance(spec, dict) or not token:
            return self._object(raw)
        renamed = _renamed(spec, token, _ANY_TOKEN)
        key = _packed(renamed)
        if key is not None and key in self._whole_specs:
            known, warnings = known_fields({**raw, "spec": _NO_SPEC}, "Warn")
            known = {**known, "spec": renamed}
        else:
            known, warnings = known_fields({**raw, "spec": renamed}, "Warn")
            if key is not None and not warnings:
                if len(self._whole_specs) >= _MOST_SPECS:
                    self._whole_specs.clear()
                self._whole_specs.add(key)
        made = self._scratch.create(known, restore=True)
        return attrs.evolve(made, raw={**made.raw, "spec": _renamed(made.raw["spec"], _ANY_TOKEN, token)}), warnings


def _packed(spec: Raw) -> bytes | None:
    """Equal for equal specs, whatever their node; None where it cannot be told."""
    try:
        packed: bytes = msgpack.packb({name: value for name, value in spec.items() if name != "nodeName"})
    except (OverflowError, ValueError, TypeError):
        return None
    return packed


def _token_volume(spec: Any) -> str:
    """The name of the volume for the service account's token; "" without one."""
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    for volume in reversed(volumes) if isinstance(volumes, list) else ():
        name = volume.get("name") if isinstance(volume, dict) else None
        if isinstance(name, str) and name.startswith(TOKEN_VOLUME):
            return name
    return ""


def _renamed(spec: Mapping[str, Any], old: str, new: str) -> Raw:
    """The spec with another name of this volume."""
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
