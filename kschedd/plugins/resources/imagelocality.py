"""ImageLocality: scores a node by the total size of the pod's images that the node already has.

An image that few nodes have is scaled down, so that these nodes do not attract all pods that use it.

Rules: image_volumes_scored, image_volumes_counted.
Source: Kubernetes v1.34, v1.36 and v1.37, plugins/imagelocality/image_locality.go.
Units: sizes in bytes, as int64; sums overflow as in kube-scheduler.
"""

from collections.abc import Callable
from typing import ClassVar, Self

import attrs
import numpy as np

from kschedd.api.pods import Pod, PodSpec
from kschedd.api.quantity import MAX_INT64, MIN_INT64
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.cache.versions import IMAGES
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE

_MIB = 1024 * 1024
_LEAST = 23 * _MIB
_MOST_PER_CONTAINER = 1000 * _MIB


def of_containers(spec: PodSpec) -> tuple[str, ...]:
    return spec.images


def of_containers_and_volumes(spec: PodSpec) -> tuple[str, ...]:
    return spec.images + spec.volume_images if spec.volumes else spec.images


@attrs.frozen
class ImageLocality:
    name: ClassVar = "ImageLocality"
    depends_on: ClassVar = frozenset({"node"})
    _images: Callable[[PodSpec], tuple[str, ...]]
    _counted: Callable[[PodSpec], tuple[str, ...]]  # returns the images that raise the maximum for scaling

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        rules = handle.rules
        return cls(
            of_containers_and_volumes if rules.image_volumes_scored else of_containers,
            of_containers_and_volumes if rules.image_volumes_counted else of_containers,
        )

    def cache_key(self, cluster: SchedulerCache) -> int:
        return cluster.versions.at[IMAGES]

    def constant_score(self, pod: Pod, table: NodeTable) -> int | None:
        return 0 if table.images.keys().isdisjoint(self._images(pod.pod_spec)) else None

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        sums = np.zeros(len(rows), dtype=np.int64)
        spec = pod.pod_spec
        nodes = table.node_count
        for image in self._images(spec):
            found = table.images.get(image)
            if found is not None:
                there = np.zeros(table.capacity, dtype=np.bool_)
                there[list(found.rows)] = True
                share = int(float(found.size) * (len(found.rows) / nodes))
                sums[there[rows]] += share if share <= MAX_INT64 else MIN_INT64
        most = _MOST_PER_CONTAINER * len(self._counted(spec))
        return MAX_NODE_SCORE * (np.clip(sums, _LEAST, most) - _LEAST) // (most - _LEAST)
