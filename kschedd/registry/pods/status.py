"""Validation of a pod's status: its fields, and changes of them.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidatePodStatusUpdate and the functions that it
calls). The functions require statuses that match the schema.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, repeats, unsupported
from kschedd.api.selecting.names import between, dns_subdomain, qualified_name
from kschedd.registry.pods.security import BAD_ADDRESS, is_address

Raw = Mapping[str, Any]
Faults = list[FieldError]

_SYSTEM_CONDITIONS: Final = frozenset(("PodScheduled", "Ready", "Initialized"))
_NOT_NEGATIVE: Final = "must be a non-negative integer"
_ID_RANGE: Final = between(0, 2**31 - 1)
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")


def validate_pod_status(status: Raw, path: str = "status") -> Faults:
    """Return the errors in a pod's status."""
    faults: Faults = []
    if (status.get("observedGeneration") or 0) < 0:
        faults.append(invalid(f"{path}.observedGeneration", status["observedGeneration"], _NOT_NEGATIVE))
    for index, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type") or ""
        if (condition.get("observedGeneration") or 0) < 0:
            generation = condition["observedGeneration"]
            faults.append(invalid(f"{path}.conditions[{index}].observedGeneration", generation, _NOT_NEGATIVE))
        if kind not in _SYSTEM_CONDITIONS:
            faults += [invalid(f"{path}.conditions[{index}].Type", kind, why) for why in qualified_name(kind)]
    if nominated := status.get("nominatedNodeName"):
        faults += [invalid(f"{path}.nominatedNodeName", nominated, why) for why in dns_subdomain(nominated)]
    for index, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        if (name := claim.get("resourceClaimName")) is not None:
            here = f"{path}.resourceClaimStatuses[{index}].name"
            faults += [invalid(here, name, why) for why in dns_subdomain(name)]
    if addresses := status.get("podIPs"):
        _validate_addresses(addresses, f"{path}.podIPs", faults)
    if addresses := status.get("hostIPs"):
        first = addresses[0].get("ip") or ""
        if first != (status.get("hostIP") or ""):
            faults.append(invalid(f"{path}.hostIPs[0].ip", first, "must be equal to `hostIP`"))
        _validate_addresses(addresses, f"{path}.hostIPs", faults)
    return faults


def _validate_addresses(addresses: Sequence[Raw], path: str, faults: Faults) -> None:
    """Validate addresses; each address family may occur only once."""
    texts = [address.get("ip") or "" for address in addresses]
    for index, text in enumerate(texts):
        if not is_address(text):
            faults.append(invalid(f"{path}[{index}]", text, BAD_ADDRESS))
    if len(texts) == 1:
        return
    wrong = [(index, text) for index, text in enumerate(texts) if not is_address(text)]
    if wrong:
        why = f"failed to check for dual stack with error:invalid IP[{wrong[0][0]}]: {wrong[0][1]}"
        faults.append(FieldError(path, None, f"Internal error: {why}"))
    if wrong or len(texts) > 2 or len({":" in text for text in texts}) == 1:
        shown = [{"IP": text} for text in texts]
        faults.append(invalid(path, shown, "may specify no more than one IP for each IP family"))
    faults += [duplicate(f"{path}[{index}]", {"IP": text}) for index, text in repeats(texts)]


_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def validate_status_beside_spec(old: Raw, new: Raw, faults: Faults) -> None:
    """Validate a status against the pod's spec and its previous status; `old` and `new` are complete pods."""
    spec, before, after = old.get("spec") or {}, old.get("status") or {}, new.get("status") or {}
    lists = [field for field in _LISTS if after.get(field) or before.get(field)]
    if not lists:
        return
    for field in lists:
        if after.get(field) is not before.get(field):
            _stay_ended(before.get(field) or (), after.get(field) or (), field, spec, faults)
    system = (spec.get("os") or {}).get("name") or "linux"
    for field in lists:
        for index, status in enumerate(after.get(field) or ()):
            if "user" in status:
                _validate_user(status["user"], f"status.{field}[{index}].linux", system, faults)
    for field in lists:
        for index, status in enumerate(after.get(field) or ()):
            if not (allocated := status.get("allocatedResourcesStatus")):
                continue
            here = f"status.{field}[{index}].allocatedResourcesStatus"
            if field == "ephemeralContainerStatuses":
                faults.append(forbidden(here, "must not be specified in container status"))
                continue
            containers = spec.get("initContainers" if field == "initContainerStatuses" else "containers") or ()
            found = [each for each in containers if each.get("name") == (status.get("name") or "")]
            for place, resource in enumerate(allocated):
                _validate_allocated(resource, found, f"{here}[{place}]", faults)


def _stay_ended(before: Sequence[Raw], after: Sequence[Raw], field: str, spec: Raw, faults: Faults) -> None:
    """Check that a terminated container which must never be restarted is not reported as running."""
    restart = "Never" if field == "ephemeralContainerStatuses" else spec.get("restartPolicy")
    if restart == "Always":
        return
    sidecars = {
        each.get("name")
        for each in (spec.get("initContainers") or () if field == "initContainerStatuses" else ())
        if each.get("restartPolicy") == "Always"
    }
    for index, status in enumerate(before):
        ended = (status.get("state") or {}).get("terminated")
        if ended is None or status.get("name") in sidecars:
            continue
        if (ended.get("exitCode") or 0) != 0 and restart == "OnFailure":
            continue
        for other in after:
            again = (other.get("state") or {}).get("terminated") is None
            if again and other.get("name") == status.get("name"):
                why = "may not be transitioned to non-terminated state"
                faults.append(forbidden(f"status.{field}[{index}].state", why))


def _validate_user(user: Raw, path: str, system: str, faults: Faults) -> None:
    if (linux := user.get("linux")) is None:
        return
    if system == "windows":
        faults.append(forbidden(path, "cannot be set for a windows pod"))
    elif system == "linux":
        ids = [(field, linux.get(field) or 0) for field in ("uid", "gid")]
        groups = linux.get("supplementalGroups") or ()
        ids += [(f"supplementalGroups[{index}]", group) for index, group in enumerate(groups)]
        faults += [invalid(f"{path}.{field}", number, _ID_RANGE) for field, number in ids if not 0 <= number < 2**31]


def _validate_allocated(resource: Raw, containers: Sequence[Raw], path: str, faults: Faults) -> None:
    name = resource.get("name") or ""
    if containers:
        resources = containers[0].get("resources") or {}
        if name.startswith("claim:"):
            why = (
                "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
                "'claim:<claimName>' if request is empty"
            )
            known = name in _claims(resources)
        else:
            why = "must match one of the container's resource requests"
            known = name in (resources.get("requests") or {})
        if not known:
            faults.append(invalid(f"{path}.name", name, why))
    seen = set()
    for index, each in enumerate(resource.get("resources") or ()):
        here, health, identity = f"{path}.resources[{index}]", each.get("health") or "", each.get("resourceID") or ""
        if health not in _HEALTH:
            faults.append(unsupported(f"{here}.health", health, _HEALTH))
        if identity in seen:
            faults.append(duplicate(f"{here}.resourceID", identity))
        seen.add(identity)


def _claims(resources: Raw) -> Iterator[str]:
    for claim in resources.get("claims") or ():
        request = claim.get("request")
        yield f"claim:{claim.get('name')}" + (f"/{request}" if request else "")
