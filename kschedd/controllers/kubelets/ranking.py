"""Ranking of pods for eviction from a node that is short of memory, disk or process ids.

For memory and disk, pods that use more than they request come first, then pods of lower priority, then pods with the
largest excess over their request. For process ids, pods of lower priority come first, then pods with more processes. A
pod without statistics comes before pods with statistics. Pods that compare equal keep their order of arrival.

Source: Kubernetes v1.34, pkg/kubelet/eviction/helpers.go (rankMemoryPressure, rankDiskPressureFunc, rankPIDPressure).
Units: bytes; counts.
"""

from collections.abc import Sequence
from typing import Final, Literal

import attrs

from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.resources import amounts
from kschedd.api.simulation.annotations import pod_settings

StarvedResource = Literal["memory", "ephemeral-storage", "inodes", "pids"]
ASSUMED_MEMORY: Final = 10 * 1024 * 1024
"""Assumed usage of a container without a request and an annotation, since every process uses some memory."""


@attrs.frozen
class ContainerUsage:
    name: str
    memory: int = 0
    storage: int = 0
    inodes: int = 0
    pids: int = 0

    def of(self, resource: StarvedResource) -> int:
        used = {
            "memory": self.memory,
            "ephemeral-storage": self.storage,
            "inodes": self.inodes,
            "pids": self.pids,
        }
        return used[resource]


PodUsage = tuple[ContainerUsage, ...]


def counted_containers(pod: Pod) -> list[Raw]:
    """Return all containers except init containers that end."""
    spec = pod.pod_spec.raw
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    return [*(spec.get("containers") or ()), *sidecars]


def usage_of(pod: Pod) -> PodUsage:
    """Return the pod's usage from its annotations, or else its requests."""
    settings = pod_settings(pod.annotations)
    found = []
    for container in counted_containers(pod):
        name = container.get("name") or ""
        requested = amounts((container.get("resources") or {}).get("requests"))
        memory, storage = settings.of("memory-usage", name), settings.of("storage-usage", name)
        pids = settings.of("pids", name)
        found.append(
            ContainerUsage(
                name,
                int(memory) if memory is not None else requested.get("memory") or ASSUMED_MEMORY,
                int(storage) if storage is not None else requested.get("ephemeral-storage", 0),
                pids=1 if pids is None else int(pids),
            )
        )
    return tuple(found)


@attrs.frozen(eq=False)
class EvictionCandidate:
    """A pod that may be evicted; `usage` is None for a pod without statistics."""

    pod: Pod
    usage: PodUsage | None

    def uses(self, resource: StarvedResource) -> int:
        return sum(container.of(resource) for container in self.usage or ())


def ranked(candidates: Sequence[EvictionCandidate], resource: StarvedResource) -> list[EvictionCandidate]:
    """Return the candidates in the order of their eviction."""
    if resource == "pids":
        return sorted(candidates, key=_by_processes)
    return sorted(candidates, key=lambda candidate: _by_excess(candidate, resource))


def _by_processes(candidate: EvictionCandidate) -> tuple[int, bool, int]:
    return candidate.pod.priority, candidate.usage is not None, -candidate.uses("pids")


def _by_excess(candidate: EvictionCandidate, resource: StarvedResource) -> tuple[bool, bool, int, int]:
    pod = candidate.pod
    if candidate.usage is None:
        return False, False, pod.priority, 0
    used = candidate.uses(resource)
    exceeds = used > _requested(pod, resource)  # False for inodes, which no pod requests
    # Upstream compares the number of inodes with the storage request.
    request = _requested(pod, "ephemeral-storage" if resource == "inodes" else resource)
    return True, not exceeds, pod.priority, request - used


def _requested(pod: Pod, resource: str) -> int:
    """Return the pod's request of a resource; overhead is added only if the containers or the pod also request it.

    Source: pkg/api/v1/resource/helpers.go (GetResourceRequestQuantity).
    """
    total = pod.requests.get(resource, 0)
    return 0 if total == amounts(pod.pod_spec.raw.get("overhead")).get(resource, 0) else total
