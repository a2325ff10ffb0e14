"""Conversion of an allocation to the `status.allocation` of its claims.

In Kubernetes, the id of a device's share is random; in kschedd, it is derived from the claim and the device's position.

Source: Kubernetes v1.34, v1.36 and v1.37, dynamic-resource-allocation/structured (Allocate: results, configs,
createNodeSelector).
Errors: AllocationError for a slice whose node selector has several terms.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.devices.allocation.solution import AllocatedDevice, Allocation, AllocationError
from kschedd.devices.claims import Claim, DeviceRequest, DeviceSubRequest

_SHARES: Final = uuid.UUID("5a8f3f1c-6d0e-4a53-9d43-0c8c9f1f6b7e")


def allocations(
    solution: Allocation,
    claims: Sequence[Claim],
    classes: Callable[[str], Object | None],
    node_name: str,
    *,
    collapsed: bool = False,
) -> list[dict[str, Any]]:
    """Return `status.allocation` of each claim for these devices; see `_configs` for `collapsed`."""
    return [
        _allocation(claim, solution.given[place], solution.chosen[place], classes, node_name, collapsed)
        for place, claim in enumerate(claims)
    ]


def _allocation(
    claim: Claim,
    given: Sequence[AllocatedDevice],
    chosen: Sequence[DeviceSubRequest],
    classes: Callable[[str], Object | None],
    node_name: str,
    collapsed: bool,
) -> dict[str, Any]:
    devices: dict[str, Any] = {"results": [_result(one, f"{claim.obj.uid}/{n}") for n, one in enumerate(given)]}
    config = _configs(claim, chosen, classes, collapsed)
    if config:
        devices["config"] = config
    made: dict[str, Any] = {"devices": devices}
    selector = _node_selector(claim, given, node_name)
    if selector is not None:
        made["nodeSelector"] = selector
    return made


def _result(given: AllocatedDevice, place: str) -> dict[str, Any]:
    """Return the result for one device; `place` is unique among the results of all claims."""
    device = given.device.id
    result: dict[str, Any] = {
        "request": given.request.full_name(given.subrequest),
        "driver": device.driver,
        "pool": device.pool,
        "device": device.name,
    }
    if given.subrequest.admin_access:
        result["adminAccess"] = True
    if given.subrequest.tolerations:
        result["tolerations"] = list(given.subrequest.tolerations)
    for field in ("bindingConditions", "bindingFailureConditions"):
        if given.device.raw.get(field):
            result[field] = list(given.device.raw[field])
    if given.share is not None:
        result["shareID"] = str(uuid.uuid5(_SHARES, place))
        if given.share:
            result["consumedCapacity"] = dict(given.share)
    return result


def _configs(
    claim: Claim, chosen: Sequence[DeviceSubRequest], classes: Callable[[str], Object | None], collapsed: bool
) -> list[dict[str, Any]]:
    """Return the configurations of the device classes, each class once, followed by those of the claim.

    Upstream writes a claim's configuration once for each of its requests. With `collapsed` (rule
    config_requests_collapsed), it is written once; if it applies to all requests, its list of requests is omitted.
    """
    pairs = list(zip(claim.requests, chosen, strict=True))
    found: list[tuple[str, Sequence[str], Raw]] = []  # source, requests, configuration
    of_class: dict[str, list[str]] = {}
    for request, subrequest in pairs:
        of_class.setdefault(subrequest.device_class, []).append(request.full_name(subrequest))
    for name, named in of_class.items():
        device_class = classes(name)
        for raw in (device_class.spec.get("config") or ()) if device_class is not None else ():
            found.append(("FromClass", named, raw))
    for raw in claim.config:
        named = list(raw.get("requests") or ())
        concerned = sum(_names(named, request, subrequest) for request, subrequest in pairs) if named else 1
        found += [("FromClaim", named, raw)] * (min(concerned, 1) if collapsed else concerned)
    return [
        {"source": source, **_for([] if collapsed and _names_all(named, pairs) else named), **_rest(raw)}
        for source, named, raw in found
    ]


def _names(named: Sequence[str], request: DeviceRequest, subrequest: DeviceSubRequest) -> bool:
    return request.name in named or request.full_name(subrequest) in named


def _names_all(named: Sequence[str], pairs: Sequence[tuple[DeviceRequest, DeviceSubRequest]]) -> bool:
    return all(_names(named, request, subrequest) for request, subrequest in pairs)


def _for(named: Sequence[str]) -> dict[str, Any]:
    """Return the `requests` field of a configuration; it is omitted if the configuration applies to all requests."""
    return {"requests": list(named)} if named else {}


def _rest(raw: Raw) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key != "requests"}


def _node_selector(claim: Claim, given: Sequence[AllocatedDevice], node_name: str) -> dict[str, Any] | None:
    """Return the nodes that can use the devices: one node, the nodes that all slices select, or all nodes (None)."""
    fields: list[Any] = []
    expressions: list[Any] = []
    for one in given:
        reach = one.device.reach
        if reach.node_name or one.device.raw.get("bindsToNode"):
            only = {"key": "metadata.name", "operator": "In", "values": [node_name]}
            return {"nodeSelectorTerms": [{"matchFields": [only]}]}
        terms = (reach.raw_selector or {}).get("nodeSelectorTerms") or ()
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.obj.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _add_new(fields, term.get("matchFields") or ())
            _add_new(expressions, term.get("matchExpressions") or ())
    if not fields and not expressions:
        return None
    term = {}
    if expressions:
        term["matchExpressions"] = expressions
    if fields:
        term["matchFields"] = fields
    return {"nodeSelectorTerms": [term]}


def _add_new(known: list[Any], requirements: Sequence[Any]) -> None:
    def meaning(requirement: Any) -> Any:
        return (requirement.get("key"), requirement.get("operator"), frozenset(requirement.get("values") or ()))

    meanings = {meaning(requirement) for requirement in known}
    known.extend(requirement for requirement in requirements if meaning(requirement) not in meanings)
