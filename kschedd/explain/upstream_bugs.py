"""Bugs of kube-scheduler that kschedd reproduces: `explain` names such a bug for each affected pod.

Sources: the named issues, and the modules with the bugs (InterPodAffinity, the allocator, quantities).
"""

from collections.abc import Collection, Iterator

from kschedd.api.amounts import amount
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.quantity import MAX_INT64, nanos
from kschedd.api.selecting.selectors import SelectorError
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.config.versions.rules import Rules
from kschedd.devices.claims import ClaimError, allocation, pod_claims, read_claim
from kschedd.devices.extended_resources import IMPLICIT, DeviceClassResolver
from kschedd.plugins.topology.interpodaffinity import as_asked
from kschedd.storage.claims import claims_used


def notes(
    pod: Pod, cluster: SchedulerCache, rules: Rules = DEFAULT.default_rules, balanced: Collection[str] = ()
) -> list[str]:
    """Return sentences about upstream bugs that affect this pod; usually none.

    `rules` are the rules of the Kubernetes version in use. `balanced` contains the resources that
    NodeResourcesBalancedAllocation scores.
    """
    found = [*_overflows(pod)]
    if not rules.namespace_selector_kept:
        found += _namespaces(pod)
    if not rules.alternatives_kept_apart:
        found += _alternatives(pod, cluster)
    if rules.partitionable_devices and not rules.pool_counters_apart:
        found += _pools_of_one_name(pod, cluster)
    if rules.capacity_scored:
        found += _pools_without_capacity(pod, cluster)
    if rules.extended_resources:
        found += _classes_without_resource(pod, cluster)
        found += _crashes(pod, cluster, balanced)
    return found


def _namespaces(pod: Pod) -> Iterator[str]:
    signature = pod.signature
    if not signature.spec.has_pod_affinity:
        return
    try:
        terms = [*signature.required_affinity, *signature.required_anti_affinity]
        terms += [weighted.term for weighted in (*signature.preferred_affinity, *signature.preferred_anti_affinity)]
    except SelectorError:
        return
    changed = {str(term.namespace_selector) for term in terms if as_asked(term) != term}
    for selector in sorted(changed):
        yield (
            f"its affinity to pods in namespaces with {selector} counts pods of every namespace, as in kube-scheduler "
            "before 1.37 (kubernetes#141526)"
        )


def _alternatives(pod: Pod, cluster: SchedulerCache) -> Iterator[str]:
    if not pod.pod_spec.resource_claims:
        return
    try:
        claims = pod_claims(pod, cluster.of_kind("ResourceClaim"))
    except ClaimError:
        return
    for claim in map(read_claim, [claim for claim in claims if allocation(claim) is None]):
        for request in claim.requests:
            if any(subrequest.mode == "All" for subrequest in request.subrequests[1:]):
                yield (
                    f"claim {claim}, request {request.name}: an alternative after the first wants all devices; as in "
                    "kube-scheduler 1.34.1, once it has one the search goes on as if it were the first alternative"
                )


def _open_claims(pod: Pod, cluster: SchedulerCache) -> bool:
    """Return whether any claim of the pod has no allocation of devices yet."""
    if not pod.pod_spec.resource_claims:
        return False
    try:
        return any(allocation(claim) is None for claim in pod_claims(pod, cluster.of_kind("ResourceClaim")))
    except ClaimError:
        return False


def _pools_of_one_name(pod: Pod, cluster: SchedulerCache) -> Iterator[str]:
    if not _open_claims(pod, cluster):
        return
    drivers: dict[str, set[str]] = {}
    for one in cluster.of_kind("ResourceSlice").values():
        if one.spec.get("sharedCounters"):
            pool = (one.spec.get("pool") or {}).get("name") or ""
            drivers.setdefault(pool, set()).add(one.spec.get("driver") or "")
    for pool, of_pool in sorted(drivers.items()):
        if len(of_pool) > 1:
            yield (
                f"the pools named {pool} of {', '.join(sorted(of_pool))} share their counters, namely those of the "
                "pool evaluated first: kube-scheduler 1.36.3 stores counters by the pool's name, without the driver"
            )


def _pools_without_capacity(pod: Pod, cluster: SchedulerCache) -> Iterator[str]:
    classes = {claim.spec.get("storageClassName") for claim in _claims_to_provision(pod, cluster)}
    for one in cluster.of_kind("CSIStorageCapacity").values():
        raw = one.raw
        if raw.get("maximumVolumeSize") and not raw.get("capacity") and raw.get("storageClassName") in classes:
            yield (
                f"CSIStorageCapacity {one.key} has maximumVolumeSize but no capacity: kube-scheduler 1.37.0 to 1.37.2 "
                "crashes when it scores nodes for such a claim, here its capacity counts as 0"
            )


def _claims_to_provision(pod: Pod, cluster: SchedulerCache) -> Iterator[Object]:
    for use in claims_used(pod):
        claim = cluster.get("PersistentVolumeClaim", use.key)
        if claim is not None and not claim.spec.get("volumeName"):
            yield claim


def _classes_without_resource(pod: Pod, cluster: SchedulerCache) -> Iterator[str]:
    requested = [name for name, amount in pod.pod_spec.requests.items() if amount and name.startswith(IMPLICIT)]
    if not requested:
        return
    known = DeviceClassResolver(cluster).classes()
    for name in sorted(requested):
        device_class = cluster.get("DeviceClass", name.removeprefix(IMPLICIT))
        if device_class is not None and name not in known:
            yield (
                f"{name} has no DeviceClass behind it: another class that names "
                f"{device_class.spec['extendedResourceName']} was preferred, and kube-scheduler 1.36.3 then does not "
                "know this one by its own name either"
            )


def _crashes(pod: Pod, cluster: SchedulerCache, balanced: Collection[str]) -> Iterator[str]:
    classes = DeviceClassResolver(cluster).classes()
    for name in sorted(set(balanced) & set(classes)):
        if pod.pod_spec.requests.get(name) and classes[name].spec.get("selectors"):
            yield (
                f"NodeResourcesBalancedAllocation scores {name}, and DeviceClass {classes[name].name} behind it has "
                "selectors: kube-scheduler 1.36.3 crashes there, here its devices are counted"
            )


def _overflows(pod: Pod) -> Iterator[str]:
    spec = pod.pod_spec.raw
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    stated = [(container.get("resources") or {}).get("requests") or {} for container in containers]
    stated += [(spec.get("resources") or {}).get("requests") or {}, spec.get("overhead") or {}]
    for name, counted in sorted(pod.pod_spec.requests.items()):
        unit = 10**6 if name == "cpu" else 10**9
        # A sum within int64 is not reported, because it differs only by rounding.
        if sum(nanos(part[name]) for part in stated if name in part) > MAX_INT64 * unit and counted < MAX_INT64:
            yield f"its {name} requests do not fit 64 bits and count as {amount(name, counted)}, as in kube-scheduler"
