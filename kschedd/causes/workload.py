"""The examined workload: its object, its pods, its wanted number of pods, and its template.

The workload is the outermost owner, such as the Deployment of a ReplicaSet's pod. A pod without an owner is a workload
by itself. A PodGroup is a workload if its pods wait for each other.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import FINISHED, Pod
from kschedd.api.schemas.kinds import POD_TEMPLATES, lookup
from kschedd.api.selecting.selectors import from_map, parse_label_selector
from kschedd.cache.pod_groups import KIND as POD_GROUP
from kschedd.cache.pod_groups import min_count
from kschedd.store.cluster_api import ClusterReader

Raw = Mapping[str, Any]
Edit = Callable[[dict[str, Any], dict[str, Any]], None]
"""Changes a copy of the workload's manifest (first) or of the pod's spec in it (second) in place."""

WANTED: Final = "kschedd.io/wanted-pods"  # annotation with the wanted number of pods of a sampled workload
_DEEPEST: Final = 4  # owners above a pod


@attrs.frozen(eq=False)
class ExaminedWorkload:
    """`pods` contains the unfinished pods, sorted by name. `jobs`: of a CronJob."""

    obj: Object
    pods: Sequence[Pod]
    jobs: Sequence[Object] = ()

    @property
    def kind(self) -> str:
        return self.obj.kind

    @property
    def label(self) -> str:
        """`deployment/web`."""
        return label_of(self.obj)

    @property
    def path(self) -> tuple[str, ...]:
        """The fields of the manifest on the path to the pod's spec."""
        return (*POD_TEMPLATES[self.kind], "spec") if self.kind in POD_TEMPLATES else ("spec",)

    @property
    def pod_spec(self) -> Raw:
        found: Any = self.obj.raw
        for field in self.path:
            found = found.get(field) or {}
        return cast(Raw, found)

    @property
    def pod_labels(self) -> Mapping[str, str]:
        if self.kind not in POD_TEMPLATES:
            return self.obj.labels
        found: Any = self.obj.raw
        for field in self.path[:-1]:
            found = found.get(field) or {}
        return cast(Mapping[str, str], (found.get("metadata") or {}).get("labels") or {})

    @property
    def spec(self) -> Raw:
        return cast(Raw, self.obj.raw.get("spec") or {})

    @property
    def wanted(self) -> int:
        """Return the number of pods that the workload wants now."""
        spec, status = self.spec, self.obj.raw.get("status") or {}
        if (whole := self.obj.annotations.get(WANTED)) is not None:
            return int(whole)
        match self.kind:
            case "Pod":
                return 1
            case "DaemonSet":
                return int(status.get("desiredNumberScheduled") or len(self.pods))
            case "CronJob":
                return len(self.pods)
            case _ if self.kind == POD_GROUP:
                return min_count(self.obj) or len(self.pods)
            case "Job":
                if spec.get("suspend"):
                    return 0
                parallel = spec.get("parallelism")
                most = 1 if parallel is None else int(parallel)
                left = spec.get("completions")
                return most if left is None else max(0, min(most, int(left) - int(status.get("succeeded") or 0)))
        count = spec.get("replicas")
        return 1 if count is None else int(count)

    @property
    def missing(self) -> int:
        """Return the number of wanted pods that the controller has not created."""
        return max(0, self.wanted - len(self.pods))

    @property
    def outdated(self) -> int:
        """Return the number of pods that a Deployment's rollout must still create; 0 if the rollout is paused."""
        status, spec = self.obj.raw.get("status") or {}, self.spec
        if self.kind != "Deployment" or spec.get("paused") or self.pending:
            return 0
        return max(0, self.wanted - int(status.get("updatedReplicas") or 0))

    def edited(self, *edits: Edit) -> dict[str, Any]:
        """Return a copy of the workload's manifest after these edits, applied in order."""
        manifest: dict[str, Any] = copy.deepcopy(dict(self.obj.raw))
        spec = manifest
        for field in self.path:
            spec = spec.setdefault(field, {})
        for edit in edits:
            edit(manifest, spec)
        return manifest

    @property
    def scheduled(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.node_name and not pod.deleting]

    @property
    def pending(self) -> list[Pod]:
        return [pod for pod in self.pods if not pod.node_name and not pod.deleting]


def root_of(store: ClusterReader, obj: Object) -> Object:
    """Return the outermost owner of an object; the object itself if it has none."""
    for _ in range(_DEEPEST):
        owner = _owner(store, obj)
        if owner is None:
            break
        obj = owner
    return obj


def roots_of(store: ClusterReader, pods: Iterable[Pod]) -> list[Object]:
    """Return the outermost owners of these pods without duplicates, in the order of the pods."""
    found: dict[str, Object] = {}
    seen: set[str] = set()
    for pod in pods:
        own = pod.uid
        for each in pod.raw["metadata"].get("ownerReferences") or ():
            if each.get("controller"):
                own = each["uid"]
                break
        if own not in seen:
            seen.add(own)
            root = root_of(store, pod)
            found.setdefault(root.uid, root)
    return [*found.values()]


def label_of(obj: Object) -> str:
    """Return `deployment/web`."""
    return f"{lookup(obj.kind).singular.partition('.')[0]}/{obj.name}"


def workload_of(store: ClusterReader, obj: Object) -> ExaminedWorkload:
    """Return the workload that this object is, or to which it belongs."""
    obj = root_of(store, obj)
    if isinstance(obj, Pod):
        pods = [obj]
    elif obj.kind == POD_GROUP:
        pods = [pod for pod in store.list("Pod", obj.namespace) if isinstance(pod, Pod) and _names(pod, obj)]
    else:
        pods = list(pods_below(store, obj)) or _selected(store, obj)
    jobs = [each for each in store.owned_by(obj.uid) if each.kind == "Job"] if obj.kind == "CronJob" else []
    unfinished = sorted((pod for pod in pods if pod.phase not in FINISHED), key=lambda pod: pod.name)
    return ExaminedWorkload(obj, unfinished, jobs)


def _names(pod: Pod, group: Object) -> bool:
    return pod.pod_spec.pod_group_name == group.name


def _owner(store: ClusterReader, obj: Object) -> Object | None:
    for reference in (obj.raw.get("metadata") or {}).get("ownerReferences") or ():
        if reference.get("controller") and reference.get("kind") in POD_TEMPLATES:
            found = store.find(str(reference["kind"]), obj.namespace, str(reference.get("name")))
            if found is not None and found.uid == reference.get("uid"):
                return found
    return None


def _selected(store: ClusterReader, owner: Object) -> list[Pod]:
    """Return the pods without an owner that the workload's selector matches."""
    stated = owner.spec.get("selector")
    if not stated:
        return []
    selector = from_map(stated) if owner.kind == "ReplicationController" else parse_label_selector(stated)
    found = store.list("Pod", owner.namespace, selector)
    return [pod for pod in found if isinstance(pod, Pod) and pod.owner is None]


def pods_below(store: ClusterReader, owner: Object) -> Iterator[Pod]:
    """Yield the pods that the owner, or a workload that it owns, controls."""
    owners, seen = [owner], {owner.uid}
    while owners:
        for owned in store.owned_by(owners.pop().uid):
            if isinstance(owned, Pod):
                yield owned
            elif owned.kind in POD_TEMPLATES and owned.uid not in seen:  # workloads may own each other
                seen.add(owned.uid)
                owners.append(owned)
