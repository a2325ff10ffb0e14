"""Storage capacity scoring: a node's score as a piecewise linear function of the utilization of each StorageClass.

Source: Kubernetes v1.34, volumebinding/scorer.go and volume_binding.go (Score), plugins/helper/shape_score.go.
Units: bytes; utilization is in percent; scores are 0 to 100, and scores in a configured shape are a tenth of that.
"""

from collections.abc import Sequence
from typing import Final

from kschedd.api.quantity import value
from kschedd.config.scoring_args import ShapePoint, piecewise_linear
from kschedd.storage.claims import class_of, requested_bytes
from kschedd.storage.podvolumes import NodeVolumes

_FULL: Final = 100


def usage(volumes: NodeVolumes, *, of_pools: bool) -> dict[str, tuple[int, int]]:
    """Return the requested amount and the capacity for each StorageClass of the volumes to be bound.

    If no existing volumes are bound and `of_pools` is set, the CSIStorageCapacity pools of the volumes to be
    provisioned are counted instead.
    """
    found: dict[str, tuple[int, int]] = {}
    if volumes.bindings or not of_pools:
        for binding in volumes.bindings:
            name = binding.volume.spec.get("storageClassName") or ""
            requested, there = found.get(name, (0, 0))
            size = value((binding.volume.spec.get("capacity") or {}).get("storage") or 0)
            found[name] = (requested + (requested_bytes(binding.claim) or 0), there + size)
        return found
    for provision in volumes.provisions:
        if provision.capacity is None:
            continue
        name = class_of(provision.claim)
        requested, _ = found.get(name, (0, 0))
        # Claims of one class use the same pool, so the capacity of the pool is counted only once.
        size = value(provision.capacity.obj.raw.get("capacity") or 0)
        found[name] = (requested + (requested_bytes(provision.claim) or 0), size)
    return found


def score(shape: Sequence[ShapePoint], classes: dict[str, tuple[int, int]]) -> int:
    """Return the mean of the classes' scores, rounded half up; 0 without classes."""
    if not classes:
        return 0
    total = sum(piecewise_linear(shape, _utilization(requested, there)) for requested, there in classes.values())
    return (2 * total + len(classes)) // (2 * len(classes))


def _utilization(requested: int, there: int) -> int:
    return _FULL if there == 0 or requested > there else requested * _FULL // there
