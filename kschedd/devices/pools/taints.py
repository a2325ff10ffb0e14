"""Device taints: a tainted device is given only to requests that tolerate its taints.

Taints stand in the ResourceSlice. NoSchedule and NoExecute keep a device back; other effects say something only.

Source: Kubernetes v1.36, dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
(taintPreventsAllocation), resourceclaim/devicetoleration.go (ToleratesTaint).
"""

from collections.abc import Iterable
from typing import Final

from kschedd.api.objects import Raw

_KEEPS_BACK: Final = ("NoSchedule", "NoExecute")


def untolerated(taints: Iterable[Raw], tolerations: Iterable[Raw]) -> bool:
    """Whether one of the taints keeps the device from requests with these tolerations."""
    tolerations = tuple(tolerations)
    return any(
        taint.get("effect") in _KEEPS_BACK and not any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def _tolerates(toleration: Raw, taint: Raw) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    if (effect and effect != taint.get("effect")) or (key and key != taint.get("key")):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return operator == "Exists"
