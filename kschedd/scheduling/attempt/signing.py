"""Batch signatures of pods: the fields of a pod that its plugins read.

Two pods with the same batch signature get the same verdict and score on a node in the same state. A pod has no
signature if a plugin of its profile reads more than the pod and the node, such as devices, other pods or topology. As
in kube-scheduler, the signature has the number of a host port but not its protocol and address, and no namespace. A
batch signature differs from `PodSignature`, kschedd's key for cached answers, which is finer and exists for every pod.

Source: Kubernetes v1.36, kube-scheduler/framework/signers.go, the plugins' SignPod, framework/runtime (SignPod).
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSignature, intern_signature, intern_spec
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.devices.extended_resources import DeviceClassResolver
from kschedd.plugins.devices.nodedeclaredfeatures import needed_by
from kschedd.plugins.topology.interpodaffinity import InterPodAffinityArgs
from kschedd.plugins.topology.podtopologyspread_args import PodTopologySpreadArgs
from kschedd.scheduling.profiles.profile import Framework

Fragments = Mapping[str, Any]
Classes = Mapping[str, Object]
"""The DeviceClass of each extended resource."""
Signer = Callable[[PodSignature, Framework, Classes], Fragments | None]
"""The pod fields that a plugin reads, under names shared between plugins; None if the pod cannot be signed."""

_NOTHING: Final[Fragments] = {}
_SYNTHETIC: Final = ("configMap", "secret")  # kinds of volumes that scheduling ignores


def _tolerations(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments:
    given = signature.spec.raw.get("tolerations") or ()
    return {"tolerations": sorted(given, key=lambda one: (one.get("key") or "", one.get("value") or ""))}


def _node_affinity(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments:
    affinity = signature.spec.raw.get("affinity") or {}
    return {"nodeAffinity": affinity.get("nodeAffinity"), "nodeSelector": signature.spec.node_selector}


def _host_ports(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments:
    raw = signature.spec.raw
    containers = [*(raw.get("containers") or ()), *(raw.get("initContainers") or ())]
    ports = (port.get("hostPort") for container in containers for port in container.get("ports") or ())
    return {"hostPorts": sorted({port for port in ports if port})}


def _resources(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments | None:
    requests = signature.spec.requests
    if framework.rules.extended_resources and any(map(classes.__contains__, filter(requests.get, requests))):
        return None
    return {"resources": dict(requests)}


def _images(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments:
    return {"images": sorted(signature.spec.images)}


def _volumes(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments:
    sources = [{key: value for key, value in volume.items() if key != "name"} for volume in signature.spec.volumes]
    return {"volumes": [source for source in sources if not any(kind in source for kind in _SYNTHETIC)]}


def _pod_affinity(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments | None:
    affinity = signature.spec.raw.get("affinity") or {}
    if "podAffinity" in affinity or "podAntiAffinity" in affinity:
        return None
    args = cast(InterPodAffinityArgs, framework.profile.args("InterPodAffinity"))
    return _NOTHING if args.ignore_preferred_terms_of_existing_pods else {"labels": dict(signature.labels)}


def _spread(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments | None:
    args = cast(PodTopologySpreadArgs, framework.profile.args("PodTopologySpread"))
    return None if args.constraints or signature.spec.raw.get("topologySpreadConstraints") else _NOTHING


def _devices(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments | None:
    return None if signature.spec.resource_claims else _NOTHING


def _features(signature: PodSignature, framework: Framework, classes: Classes) -> Fragments:
    return {"features": sorted(needed_by(signature.spec))}


SIGNERS: Final[Mapping[str, Signer]] = {
    "NodeUnschedulable": _tolerations,
    "NodeName": lambda signature, framework, classes: _NOTHING,  # an unscheduled pod has no node name
    "TaintToleration": _tolerations,
    "NodeAffinity": _node_affinity,
    "NodePorts": _host_ports,
    "NodeResourcesFit": _resources,
    "NodeResourcesBalancedAllocation": _resources,
    "ImageLocality": _images,
    "VolumeRestrictions": _volumes,
    "NodeVolumeLimits": _volumes,
    "VolumeBinding": _volumes,
    "VolumeZone": _volumes,
    "InterPodAffinity": _pod_affinity,
    "PodTopologySpread": _spread,
    "DynamicResources": _devices,
    "NodeDeclaredFeatures": _features,
}
"""Signers by plugin name. A profile with any other plugin at these extension points signs no pod."""

_POINTS: Final = ("pre_filter", "filter", "pre_score", "score")
_PLAIN_POD: Final = intern_signature("", {}, intern_spec({}))


def signer_of(framework: Framework, cluster: SchedulerCache) -> Callable[[Pod], str | None] | None:
    """Return the function that signs the pods of a profile, or None if no pod of the profile can have a signature."""
    names = dict.fromkeys(ref.name for point in _POINTS for ref in framework.profile.at(point))
    if any(name not in SIGNERS or name not in framework.in_tree for name in names):
        return None
    signers = list(dict.fromkeys(SIGNERS[name] for name in names))
    resolver = DeviceClassResolver(cluster)

    def signed(signature: PodSignature) -> str | None:
        fragments: dict[str, Any] = {}
        classes = resolver.classes()
        for signer in signers:
            found = signer(signature, framework, classes)
            if found is None:
                return None
            fragments.update(found)
        return json.dumps(fragments, sort_keys=True)

    return None if signed(_PLAIN_POD) is None else lambda pod: signed(pod.signature)
