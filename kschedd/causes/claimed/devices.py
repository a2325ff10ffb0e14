"""Causes of pending pods: missing resource claims, selectors that match no device, devices on other nodes or in use."""

import copy
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import HOSTNAME_LABEL
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.requirements import SelectorError
from kschedd.api.selecting.selectors import parse_node_selector
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.claimed.claims import as_many_as_scheduled
from kschedd.causes.claimed.device_requests import EXTENDED, Devices, asking, label, request_at_fault
from kschedd.causes.claimed.places import demanded
from kschedd.causes.claimed.storage import skips_scheduler
from kschedd.causes.demands.excluding import clashing, meeting
from kschedd.causes.demands.new_nodes import more_nodes
from kschedd.causes.findings import ADD_OBJECT, FoundCause, RemedyOption, named, spec_edit
from kschedd.causes.near import nearest
from kschedd.causes.steps import as_new, created
from kschedd.causes.words import counted, joined, some, suitable
from kschedd.causes.workload import ExaminedWorkload, workload_of
from kschedd.devices.claims import ClaimError, allocation, claim_name, generated_claim, read_claim, reserved_for
from kschedd.devices.dra_manager import DRAManager
from kschedd.devices.extended_resources import extended_resource_claim, may_be_devices, node_claim
from kschedd.store.cluster_api import ClusterReader

Spec = dict[str, Any]
Raw = Mapping[str, Any]
_PLUGIN: Final = "DynamicResources"
_CLAIM: Final = "ResourceClaim"
_TEMPLATE: Final = "ResourceClaimTemplate"
_FIELD: Final = {_CLAIM: "resourceClaimName", _TEMPLATE: "resourceClaimTemplateName"}


@attrs.frozen(eq=False)
class _Used:
    """An entry of the pod's resourceClaims, and its claim."""

    entry: Raw
    claim: Object

    @property
    def label(self) -> str:
        """The claim, or the template from which it is created."""
        return label(self.entry, self.claim)


def by_claims(case: Case) -> Case:
    """Return the case with the pod's extended resources replaced by a claim, if a DeviceClass provides them."""
    handle = case.engine.machine.handle
    manager = handle.shared(DRAManager)
    requested = None
    if handle.rules.extended_resources:
        requested = extended_resource_claim(case.pod, manager.resolver, manager.extended_claim)
    if requested is None:
        return case
    classes = manager.resolver.classes()
    offered = case.cluster.resources
    resources = [name for name in requested.resources if name in classes and name not in offered]
    if not resources:
        return case
    raw = copy.deepcopy(dict(case.pod.raw))
    for part in ("containers", "initContainers"):
        for container in raw["spec"].get(part) or ():
            for held in (container.get("resources") or {}).values():
                for name in resources:
                    if isinstance(held, dict):
                        held.pop(name, None)
    claim = node_claim(requested, case.pod, resources, classes).obj
    return attrs.evolve(case, pod=Pod.from_raw(raw), extended=claim, extended_names=tuple(resources))


def no_such_device_resource(case: Case) -> FoundCause | None:
    """Return a requested resource that no node offers, if a DeviceClass provides a resource with a similar name."""
    handle = case.engine.machine.handle
    if not handle.rules.extended_resources:
        return None
    classes = handle.shared(DRAManager).resolver.classes()
    for resource in case.pod.requests:
        if resource in classes or case.cluster.offers(resource):
            continue
        likely = nearest(resource, classes)
        if likely is None or not may_be_devices(resource):
            continue
        device_class = classes[likely]
        return FoundCause(
            "ResourceMisspelled",
            f"no node offers the resource `{resource}`; DeviceClass {device_class.name} stands for `{likely}`",
            [named(device_class)],
            [f"{'.'.join(case.workload.path)}.containers[].resources.requests[{resource}]"],
            options=[RemedyOption(f"request {likely}", edit=spec_edit(_requesting(resource, likely)))],
        )
    return None


def _requesting(wrong: str, right: str) -> Any:
    def edit(spec: Spec) -> None:
        for part in ("containers", "initContainers"):
            for container in spec.get(part) or ():
                for held in (container.get("resources") or {}).values():
                    if isinstance(held, dict) and wrong in held:
                        held[right] = held.pop(wrong)

    return edit


def _entries(case: Case) -> Sequence[Raw]:
    return tuple(case.pod.pod_spec.raw.get("resourceClaims") or ())


def _asks(case: Case) -> bool:
    return bool(_entries(case)) or case.extended is not None


def _used(case: Case) -> list[_Used]:
    """Return the pod's existing claims."""
    found = [] if case.extended is None else [_Used({EXTENDED: case.extended_names}, case.extended)]
    for entry in _entries(case):
        try:
            name, _ = claim_name(case.pod, entry)
        except ClaimError:
            continue
        claim = case.store.find(_CLAIM, case.pod.namespace, name) if name else None
        if claim is not None:
            found.append(_Used(entry, claim))
    return found


# -- claims and templates that are not there --------------------------------------------------------------------------


def device_claims_at_fault(case: Case) -> Iterator[FoundCause]:
    """Yield the fault of each resource claim of the pod that no node can satisfy."""
    if not _asks(case):
        return
    for entry in _entries(case):
        finding = _missing(case, entry)
        if finding is not None:
            yield finding
    devices = Devices.of(case)
    for used in _used(case):
        if used.claim.deleting:
            yield FoundCause(
                "ClaimBeingDeleted",
                f"{_CLAIM} {used.claim.name} is being deleted, so no further pod may use it",
                [named(used.claim)],
                ["spec.resourceClaims"],
            )
        elif allocation(used.claim) is None:
            for request in read_claim(used.claim).requests:
                found = request_at_fault(case, devices, used.entry, used.claim, request)
                if found is not None:
                    yield found
                    break


def _missing(case: Case, entry: Raw) -> FoundCause | None:
    template = entry.get("resourceClaimTemplateName")
    if template is not None:
        if generated_claim(case.pod, str(entry.get("name")))[0]:
            return None
        return _no_object(case, entry, _TEMPLATE, str(template), "ClaimTemplateMissing")
    return _no_object(case, entry, _CLAIM, str(entry.get("resourceClaimName")), "DeviceClaimMissing")


def _no_object(case: Case, entry: Raw, kind: str, wanted: str, code: str) -> FoundCause | None:
    namespace = case.pod.namespace
    if case.store.find(kind, namespace, wanted) is not None:
        return None
    there = [each.name for each in case.store.list(kind, namespace)]
    other = _TEMPLATE if kind == _CLAIM else _CLAIM
    likely = nearest(wanted, there)
    options = []
    hint = f" ({likely} does)" if likely else ""
    objects = [ObjectNamed(kind, namespace, wanted)]
    if case.store.find(other, namespace, wanted) is not None:
        hint = f"; {wanted} is a {other}"
        options.append(RemedyOption(f"name it as {_FIELD[other]}", edit=spec_edit(_naming(entry, other, wanted))))
        objects.append(ObjectNamed(other, namespace, wanted))
    elif likely is not None:
        objects.append(ObjectNamed(kind, namespace, likely))
        options.append(RemedyOption(f"use {kind} {likely}", edit=spec_edit(_naming(entry, kind, likely))))
    elsewhere = [each for each in case.store.list(kind) if each.name == wanted]
    if elsewhere and not hint:
        hint = f"; namespace {elsewhere[0].namespace} has one of that name, and pods use those of their own namespace"
        made = as_new(elsewhere[0].raw)
        made["metadata"]["namespace"] = namespace
        label = f"{kind.lower()}/{wanted}"
        options.append(
            RemedyOption(f"create {kind} {wanted} in {namespace}", ADD_OBJECT, steps=[created(made)], target=label)
        )
    return FoundCause(
        code,
        f"{kind} {wanted} does not exist in namespace {namespace}{hint}",
        objects,
        [f"{'.'.join(case.workload.path)}.resourceClaims[].{_FIELD[kind]}"],
        [f"there: {some(there)}" if there else f"there is no {kind} in {namespace}"],
        options,
    )


def _naming(entry: Raw, kind: str, name: str) -> Any:
    def edit(spec: Spec) -> None:
        for each in spec.get("resourceClaims") or ():
            if each.get("name") == entry.get("name"):
                for field in _FIELD.values():
                    each.pop(field, None)
                each[_FIELD[kind]] = name

    return edit


# -- nodes ------------------------------------------------------------------------------------------------------------


def _nodes_of(case: Case, used: _Used) -> set[str]:
    """Return the nodes that can use the devices allocated to the claim."""
    raw = (allocation(used.claim) or {}).get("nodeSelector")
    if raw is None:
        return set(case.nodes)
    try:
        selector = parse_node_selector(raw)
        return {name for name, node in case.nodes.items() if selector.matches(node.labels, name)}
    except SelectorError:
        return set()


def devices_reach(case: Case) -> set[str]:
    """Return the nodes that have the claims' allocated devices, or devices that would suit if none was in use."""
    nodes = set(case.nodes)
    if not _asks(case):
        return nodes
    used = _used(case)
    for each in used:
        if allocation(each.claim) is not None:
            nodes &= _nodes_of(case, each)
    open_claims = [each.claim for each in used if allocation(each.claim) is None]
    if not open_claims:
        return nodes
    refused = nodes & case.rejected_by(_PLUGIN)
    return (nodes - refused) | Devices.of(case).possible(open_claims, refused)


def device_elsewhere(case: Case) -> FoundCause | None:
    """Return the cause, or None: the pod's devices are only on nodes where the pod may not run."""
    if not _asks(case):
        return None
    for used in _used(case):
        if allocation(used.claim) is not None and not _nodes_of(case, used) & case.selected:
            return _allocated_elsewhere(case, used)
    reach = set(case.nodes) - case.deviceless
    if reach & case.selected:
        return None
    open_ = [used for used in _used(case) if allocation(used.claim) is None]
    if not open_:
        return None
    if not reach:
        return _together(case, open_)
    against = clashing(case, reach)
    option = meeting(case, reach, against, "where the devices are")
    required = joined([demanded(each, HOSTNAME_LABEL) for each in against]) if against else "other nodes"
    return FoundCause(
        "ResourceOnOtherNodes",
        f"the devices that {open_[0].label} requests are on {some(reach)} only, the pod requires {required}",
        [named(open_[0].claim), *(ObjectNamed("Node", "", name) for name in sorted(reach)[:3])],
        [each.field for each in against],
        [f"nodes with such devices: {some(reach)}", f"nodes that the pod selects: {some(case.selected)}"],
        [option] if option is not None else [],
    )


def _allocated_elsewhere(case: Case, used: _Used) -> FoundCause:
    nodes = _nodes_of(case, used)
    against = clashing(case, nodes) if nodes else []
    option = meeting(case, nodes, against, "where its devices are")
    required = joined([demanded(each, HOSTNAME_LABEL) for each in against]) if against else some(case.selected)
    users = [str(each.get("name")) for each in reserved_for(used.claim)]
    place = f"node {next(iter(nodes))}" if len(nodes) == 1 else some(nodes) if nodes else "a node that does not exist"
    return FoundCause(
        "DeviceClaimElsewhere",
        f"{_CLAIM} {used.claim.name} is allocated on {place}, the pod requires {required}",
        [named(used.claim), *(ObjectNamed("Node", "", name) for name in sorted(nodes)[:3])],
        [each.field for each in against],
        [f"used by {some(users)}"] if users else [],
        [option] if option is not None else [],
    )


def _together(case: Case, open_: Sequence[_Used]) -> FoundCause:
    """Return the cause: devices exist for each request, but no node has devices for all requests together."""
    devices = Devices.of(case)
    constrained = [used for used in open_ if used.claim.spec.get("devices", {}).get("constraints")]
    for used in constrained:
        free = [_without_constraints(each.claim) if each is used else each.claim for each in open_]
        if devices.possible(free, set(case.nodes)):
            raw = used.claim.spec["devices"]["constraints"]
            attributes = joined([f"`{c.get('matchAttribute') or c.get('distinctAttribute')}`" for c in raw])

            def without(spec: Spec) -> None:
                spec["devices"].pop("constraints")

            return FoundCause(
                "DeviceConstraintUnmet",
                f"no node has devices that meet the constraint of {used.label} on {attributes}",
                [named(used.claim)],
                ["spec.devices.constraints"],
                options=asking(case, used.entry, used.claim, "drop the constraint", without),
            )
    apart = [f"request {name}: {some(nodes)}" for used in open_ for name, nodes in _by_request(devices, used.claim)]
    return FoundCause(
        "RequestAboveEveryNode",
        f"no node has the devices of all requests of {joined([used.label for used in open_])} together",
        [named(used.claim) for used in open_],
        ["spec.devices.requests"],
        [f"nodes with the devices of {each}" for each in apart],
    )


def _by_request(devices: Devices, claim: Object) -> Iterator[tuple[str, set[str]]]:
    """Yield the name of each request, with the nodes that could satisfy this request alone."""
    for request in claim.spec["devices"].get("requests") or ():
        spec = {**claim.spec, "devices": {"requests": [request]}}
        yield request["name"], devices.possible([Object.from_raw({**claim.raw, "spec": spec})], set(devices.nodes))


def _without_constraints(claim: Object) -> Object:
    devices = {key: value for key, value in claim.spec["devices"].items() if key != "constraints"}
    return Object.from_raw({**claim.raw, "spec": {**claim.spec, "devices": devices}})


def devices_told(case: Case) -> str:
    """Return text about the allocated claims that restrict the pod to some nodes, or ""."""
    kept = [used for used in _used(case) if allocation(used.claim) is not None]
    parts = [
        f"{_CLAIM} {used.claim.name} is allocated on {some(_nodes_of(case, used))}"
        for used in kept
        if len(_nodes_of(case, used)) < len(case.nodes)
    ]
    return f"{joined(parts)}, so all pods that share it run there" if parts else ""


def own_claims(case: Case) -> list[RemedyOption]:
    """Return the option to create a claim for each pod, if the workload's pods share one claim."""
    mine = {pod.uid for pod in case.workload.pods}
    found = []
    for used in _used(case):
        users = {str(user.get("uid")) for user in reserved_for(used.claim)}
        if "resourceClaimName" not in used.entry or not users or not users <= mine or case.workload.wanted < 2:
            continue
        name = used.claim.name
        if case.store.find(_TEMPLATE, used.claim.namespace, name) is not None:
            continue
        meta = {"name": name, "namespace": used.claim.namespace}
        made = {
            "apiVersion": used.claim.raw["apiVersion"],
            "kind": _TEMPLATE,
            "metadata": meta,
            "spec": {"spec": used.claim.spec},
        }
        edit = spec_edit(_naming(used.entry, _TEMPLATE, name))
        text = f"give each pod a claim of its own, from a {_TEMPLATE} {name} like the claim"
        found.append(RemedyOption(text, ADD_OBJECT, edit, [created(made)], f"{_TEMPLATE.lower()}/{name}"))
    return found


# -- devices in use ---------------------------------------------------------------------------------------------------


def devices_taken(case: Case, among: Collection[str]) -> FoundCause | None:
    """Return the cause, or None: other claims use the devices of otherwise suitable nodes."""
    full = sorted(name for name in among if _PLUGIN in case.rejections.get(name, {}))
    open_ = [used for used in _used(case) if allocation(used.claim) is None]
    if not full or not open_:
        return None
    devices = Devices.of(case)
    for used in open_:
        for request in read_claim(used.claim).requests:
            wanted = request.subrequests[0]
            by_node = devices.on(full, devices.suiting(wanted))
            suiting = {device.id: device for there in by_node.values() for device in there}
            held = [number for number in suiting if number in devices.in_use]
            count = len(suiting) if wanted.mode == "All" else wanted.count
            most = max(sum(device.id not in devices.in_use for device in there) for there in by_node.values())
            if most >= count and wanted.mode != "All":
                continue
            whole = wanted.mode == "All"
            text = (
                f"all devices of class {wanted.device_class} on a node are requested, and of each node that has such "
                f"devices some are allocated: {len(held)} of {len(suiting)}"
                if whole
                else _few_left(wanted.device_class, len(suiting), len(held), count, most)
            )
            more = [] if whole else more_nodes(case, full)
            return _all_taken(case, used, wanted.device_class, text, full, more)
    requested = [request for used in open_ for request in read_claim(used.claim).requests if request.subrequests]
    if not requested:
        return None
    first = requested[0].subrequests[0].device_class
    text = "no node has the devices of all requests free together"
    return _all_taken(case, open_[0], first, text, full, more_nodes(case, full))


def _few_left(device_class: str, count: int, held: int, requested: int, most: int) -> str:
    if held == count:
        are = "is" if count == 1 else "are"
        return f"{suitable(count, 'device')} of class {device_class} {are} allocated"
    return (
        f"{counted(requested, 'device')} of class {device_class} requested, the most that is free on one node is "
        f"{most}: {held} of {count} are allocated"
    )


def _all_taken(
    case: Case, used: _Used, device_class: str, text: str, full: Sequence[str], more: Sequence[RemedyOption]
) -> FoundCause:
    holders = _holders(case, full)
    return FoundCause(
        "DevicesAllocated",
        f"{text} (to claims of {some(holders)})" if holders else text,
        [named(used.claim), ObjectNamed("DeviceClass", "", device_class)],
        ["spec.resourceClaims"],
        [
            f"nodes with such devices: {some(full)}",
            *(f"{name}: {number} of them" for name, number in sorted(holders.items(), key=lambda p: -p[1])[:3]),
        ],
        [*more, *as_many_as_scheduled(case)],
    )


def _holders(case: Case, nodes: Collection[str]) -> Counter[str]:
    """Return, for each workload, the number of claims allocated to its pods on these nodes."""
    found: Counter[str] = Counter()
    for claim in case.store.list(_CLAIM):
        if allocation(claim) is None:
            continue
        owners = set()
        for user in reserved_for(claim):
            pod = case.store.find("Pod", claim.namespace, str(user.get("name")))
            if isinstance(pod, Pod) and pod.node_name in nodes:
                owner = workload_of(case.store, pod)
                where = "" if pod.namespace == case.pod.namespace else f"{pod.namespace}/"
                owners.add(f"{where}{owner.label}")
        found.update(owners)
    return found


# -- pods that have a node --------------------------------------------------------------------------------------------


def unscheduled_devices(store: ClusterReader, workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause: pods set `nodeName`, so that the scheduler allocates no devices for them."""
    if "nodeName" not in workload.pod_spec:
        return None
    for pod in workload.pods:
        for entry in pod.pod_spec.raw.get("resourceClaims") or ():
            try:
                name, _ = claim_name(pod, entry)
            except ClaimError:
                continue
            claim = store.find(_CLAIM, pod.namespace, name) if name else None
            if claim is not None and allocation(claim) is None:
                return skips_scheduler(workload, pod, named(claim), f"{_CLAIM} {name} gets no devices")
    return None
