"""Where kube-scheduler 1.34.1 decides by a bug of its own, and so do we: said to whoever asks about such a pod.

Sources: the issues named, and the modules that follow upstream there (InterPodAffinity, the allocator, quantities).
"""

from collections.abc import Iterator

from kschedd.api.amounts import amount
from kschedd.api.pods import Pod
from kschedd.api.quantity import MAX_INT64, nanos
from kschedd.api.selectors import SelectorError
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.devices.claims import ClaimError, allocation, pod_claims, read_claim
from kschedd.plugins.interpodaffinity import as_asked


def notes(pod: Pod, cluster: SchedulerCache) -> list[str]:
    """Sentences about this pod; none for most."""
    return [*_namespaces(pod), *_alternatives(pod, cluster), *_overflows(pod)]


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
            "1.34.1 (kubernetes#141526)"
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


def _overflows(pod: Pod) -> Iterator[str]:
    spec = pod.pod_spec.raw
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    stated = [(container.get("resources") or {}).get("requests") or {} for container in containers]
    stated += [(spec.get("resources") or {}).get("requests") or {}, spec.get("overhead") or {}]
    for name, counted in sorted(pod.pod_spec.requests.items()):
        unit = 10**6 if name == "cpu" else 10**9
        # No sum that fits is told: it is more than the parts together only by rounding.
        if sum(nanos(part[name]) for part in stated if name in part) > MAX_INT64 * unit and counted < MAX_INT64:
            yield f"its {name} requests do not fit 64 bits and count as {amount(name, counted)}, as in kube-scheduler"
