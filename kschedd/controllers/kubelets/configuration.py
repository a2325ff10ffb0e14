"""ConfigMaps and Secrets that must exist before a pod's containers start, and the kubelet's messages if one is missing.

If a ConfigMap, Secret or key of a volume is missing, the volume cannot be mounted, so no container of the pod starts.
If an environment variable refers to a missing object or key, only the container of this variable does not start.
References with `optional: true` are never missing.

Source: Kubernetes v1.36, pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables), pkg/volume/configmap,
pkg/volume/secret, pkg/volume/projected (collectData).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Literal

import attrs

from kschedd.api.objects import Raw
from kschedd.api.pods import Pod, PodSpec
from kschedd.controllers.kubelets.accounts import Key
from kschedd.controllers.running.controller import View

Kind = Literal["ConfigMap", "Secret"]
KINDS: Final = frozenset(("ConfigMap", "Secret"))
_Object = tuple[str, str, str]  # kind, namespace, name
_NONE: Final[Raw] = {}


@attrs.frozen
class _Reference:
    """An object that must exist, with the keys that the object must contain."""

    kind: Kind
    name: str
    keys: tuple[str, ...] = ()


@attrs.frozen
class _References:
    """The required references of a pod spec: those of mounted volumes by volume, all others by container."""

    of_volumes: Mapping[str, tuple[_Reference, ...]]
    of_containers: Mapping[str, tuple[_Reference, ...]]


def mounted(spec: PodSpec) -> set[str]:
    """Return the names of the volumes that a container mounts or uses as block devices."""
    raw = spec.raw
    containers = [*(raw.get("containers") or ()), *(raw.get("initContainers") or ())]
    return {
        mount.get("name") or ""
        for container in containers
        for field in ("volumeMounts", "volumeDevices")
        for mount in container.get(field) or ()
    }


@lru_cache(256)
def _references(spec: PodSpec) -> _References | None:
    """Return the required references of a spec, or None if there are none."""
    raw, used = spec.raw, mounted(spec) if spec.volumes else ()
    volumes = {
        name: found
        for volume in spec.volumes
        if (name := volume.get("name") or "") in used and (found := tuple(_of_volume(volume)))
    }
    containers = {
        container.get("name") or "": found
        for field in ("initContainers", "containers", "ephemeralContainers")
        for container in raw.get(field) or ()
        if (found := tuple(_of_container(container)))
    }
    return _References(volumes, containers) if volumes or containers else None


def _of_volume(volume: Raw) -> Iterator[_Reference]:
    secret = volume.get("secret")
    if secret is not None:
        yield from _items("Secret", {**secret, "name": secret.get("secretName")})
    yield from _items("ConfigMap", volume.get("configMap"))
    for source in (volume.get("projected") or _NONE).get("sources") or ():
        yield from _items("Secret", source.get("secret"))
        yield from _items("ConfigMap", source.get("configMap"))


def _items(kind: Kind, source: Raw | None) -> Iterator[_Reference]:
    if source is not None and not source.get("optional"):
        yield _Reference(
            kind, source.get("name") or "", tuple(item.get("key") or "" for item in source.get("items") or ())
        )


def _of_container(container: Raw) -> Iterator[_Reference]:
    """Yield the references in the container's environment, in the order in which a kubelet reads them."""
    for source in container.get("envFrom") or ():
        yield from _entry("ConfigMap", source.get("configMapRef"))
        yield from _entry("Secret", source.get("secretRef"))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or _NONE
        yield from _entry("ConfigMap", source.get("configMapKeyRef"))
        yield from _entry("Secret", source.get("secretKeyRef"))


def _entry(kind: Kind, reference: Raw | None) -> Iterator[_Reference]:
    if reference is not None and not reference.get("optional"):
        key = reference.get("key")
        yield _Reference(kind, reference.get("name") or "", () if key is None else (key,))


def volume_faults(pod: Pod, view: View) -> Iterator[tuple[str, str]]:
    """Yield the name of each volume whose ConfigMaps or Secrets are incomplete, and the reason."""
    found = _references(pod.pod_spec)
    if found is None:
        return
    for name, references in found.of_volumes.items():
        faults = dict.fromkeys(why for each in references if (why := _fault_of_volume(each, pod.namespace, view)))
        if faults:
            yield name, next(iter(faults)) if len(faults) == 1 else f"[{', '.join(faults)}]"


def _fault_of_volume(wanted: _Reference, namespace: str, view: View) -> str:
    found = view.find(wanted.kind, namespace, wanted.name)
    if found is None:
        return _not_found(wanted)
    for key in wanted.keys:
        if key not in (found.raw.get("data") or ()) and key not in (found.raw.get("binaryData") or ()):
            known = "configmap references non-existent config" if wanted.kind == "ConfigMap" else _NO_SECRET_KEY
            return f"{known} key: {key}"
    return ""


def environment_faults(pod: Pod, view: View) -> Mapping[str, str]:
    """Return why containers cannot start because of their environment, by container name."""
    found = _references(pod.pod_spec)
    if found is None or not found.of_containers:
        return {}
    return {
        name: why
        for name, references in found.of_containers.items()
        if (why := next(filter(None, (_fault_of_variable(each, pod.namespace, view) for each in references)), ""))
    }


def _fault_of_variable(wanted: _Reference, namespace: str, view: View) -> str:
    found = view.find(wanted.kind, namespace, wanted.name)
    if found is None:
        return _not_found(wanted)
    missing = next((key for key in wanted.keys if key not in (found.raw.get("data") or ())), None)
    return "" if missing is None else f"couldn't find key {missing} in {wanted.kind} {namespace}/{wanted.name}"


def _not_found(wanted: _Reference) -> str:
    return f'{wanted.kind.lower()} "{wanted.name}" not found'


_NO_SECRET_KEY: Final = "references non-existent secret"


class UnconfiguredPods:
    """An index of the pods that wait for ConfigMaps or Secrets, by the objects to which they refer."""

    def __init__(self) -> None:
        self._pods: dict[_Object, dict[Key, None]] = {}
        self._objects: dict[Key, tuple[_Object, ...]] = {}

    def add(self, pod: Pod) -> None:
        """Add a pod with all its references, because any referenced object may be missing later."""
        key = pod.namespace, pod.name
        found = _references(pod.pod_spec)
        if found is None or key in self._objects:
            return
        every: Iterable[_Reference] = (
            each for references in (*found.of_volumes.values(), *found.of_containers.values()) for each in references
        )
        objects = tuple(dict.fromkeys((each.kind, pod.namespace, each.name) for each in every))
        self._objects[key] = objects
        for ref in objects:
            self._pods.setdefault(ref, {})[key] = None

    def discard(self, key: Key) -> None:
        for ref in self._objects.pop(key, ()):
            waiting = self._pods[ref]
            del waiting[key]
            if not waiting:
                del self._pods[ref]

    def of_object(self, kind: str, namespace: str, name: str) -> Iterable[Key]:
        """Return the waiting pods that refer to this object."""
        return self._pods.get((kind, namespace, name), ())
