"""LimitPodHardAntiAffinityTopology: required pod anti-affinity may use only the hostname topology key.

With another topology key, a single pod could keep other pods out of a whole zone.
Source: Kubernetes v1.34, plugin/pkg/admission/antiaffinity/admission.go.
"""

from typing import Final

from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.errors import Forbidden

HOSTNAME: Final = "kubernetes.io/hostname"


def validate(attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> None:
    if attributes.subresource:
        return
    anti = (raw["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    for term in anti.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        key = term.get("topologyKey")
        if key != HOSTNAME:
            why = (
                f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} "
                f"but only key {HOSTNAME} is allowed"
            )
            raise Forbidden("Pod", attributes.name, why)
