"""Causes of pending pods: a claim requests a missing DeviceClass, or devices that no ResourceSlice publishes.

`Devices` contains the published devices, and their allocation to claims. If a selector matches no device, the option
changes one word of it: the word whose smallest change makes it match.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.selecting.requirements import SelectorError
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.claimed.device_selectors import Mended, mended, told_values
from kschedd.causes.findings import CHANGE_OBJECT, REPLACE_OBJECT, FoundCause, RemedyOption, named, spec_edit
from kschedd.causes.near import nearest
from kschedd.causes.steps import as_new, created, deleted, patched
from kschedd.causes.words import counted, joined, some, suitable
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.solution import AllocationError, AllocationTimeout, NodeFailure
from kschedd.devices.claims import DeviceRequest, DeviceSubRequest, read_claim
from kschedd.devices.dra_manager import DRAManager
from kschedd.devices.pools.allocated import AllocatedState
from kschedd.devices.pools.inventory import Device, Inventory
from kschedd.devices.rules import DeviceRules
from kschedd.devices.selection import SelectorFailure, selects
from kschedd.plugins.devices.dynamicresources import device_rules
from kschedd.store.cluster_api import ClusterReader

Spec = dict[str, Any]
Raw = Mapping[str, Any]
EXTENDED: Final = "extended"  # name of a claim's entry for extended resources
_STEPS: Final = 5_000  # of a search on one node


@attrs.frozen(eq=False)
class Devices:
    """The published devices. `in_use` contains the devices allocated to claims."""

    store: ClusterReader
    nodes: Mapping[str, Node]
    inventory: Inventory
    in_use: AllocatedState
    rules: DeviceRules

    @classmethod
    def of(cls, case: Case) -> Self:
        handle = case.engine.machine.handle
        rules = device_rules(handle.rules, handle.feature_gates)
        manager = handle.shared(DRAManager)
        return cls(case.store, case.nodes, manager.inventory(rules), manager.allocated(), rules)

    @property
    def all(self) -> list[Device]:
        return [device for one in self.inventory.slices() for device in one.devices]

    def of_class(self, name: str) -> list[Device]:
        found = self.store.find("DeviceClass", "", name)
        return [] if found is None else [d for d in self.all if _meets(d, expressions(found.spec.get("selectors")))]

    def suiting(self, request: DeviceSubRequest) -> list[Device]:
        """Return the devices of the request's class that meet its selectors."""
        return [d for d in self.of_class(request.device_class) if _meets(d, expressions(request.selectors))]

    def on(self, names: Iterable[str], devices: Iterable[Device]) -> dict[str, list[Device]]:
        """Return, for each of these nodes, the devices among `devices` that the node can use."""
        found: dict[str, list[Device]] = {name: [] for name in names}
        for device in devices:
            own = device.reach.node_name
            for name in (own,) if own else found:
                if name in found and _reaches(device, self.nodes[name]):
                    found[name].append(device)
        return found

    def possible(self, claims: Iterable[Object], nodes: Iterable[str]) -> set[str]:
        """Return the nodes on which all claims could be allocated if no device was in use."""
        wanted = tuple(read_claim(claim) for claim in claims)
        allocator = Allocator(
            wanted,
            AllocatedState(),
            lambda name: self.store.find("DeviceClass", "", name),
            self.inventory,
            self.rules,
            _STEPS,
        )
        return {name for name in nodes if _finds(allocator, self.nodes[name])}


def _reaches(device: Device, node: Node) -> bool:
    try:
        return device.reach.includes(node)
    except SelectorError:
        return False


def _finds(allocator: Allocator, node: Node) -> bool:
    try:
        return allocator.allocate(node) is not None
    except (AllocationError, AllocationTimeout, NodeFailure):
        return False


def expressions(selectors: Any) -> list[str]:
    return [str((each.get("cel") or {}).get("expression") or "") for each in selectors or ()]


def _meets(device: Device, wanted: Sequence[str]) -> bool:
    try:
        return all(selects(each, device) for each in wanted)
    except SelectorFailure:
        return False


# -- requests that no device meets ------------------------------------------------------------------------------------


def request_at_fault(
    case: Case, devices: Devices, entry: Raw, claim: Object, request: DeviceRequest
) -> FoundCause | None:
    """Return the reason why no published device can ever satisfy the request; None if a device can."""
    unknown = [sub for sub in request.subrequests if case.store.find("DeviceClass", "", sub.device_class) is None]
    if unknown:  # if any alternative has no class, the scheduler does not try the next alternative
        return _no_class(case, entry, claim, request, unknown)
    found = [_at_fault(case, devices, entry, claim, request, sub) for sub in request.subrequests]
    return None if not found or any(each is None for each in found) else found[0]


def _at_fault(
    case: Case, devices: Devices, entry: Raw, claim: Object, request: DeviceRequest, wanted: DeviceSubRequest
) -> FoundCause | None:
    name = wanted.device_class
    device_class = case.store.get("DeviceClass", "", name)
    of_class = devices.of_class(name)
    if not of_class:
        return _none_of_class(devices, device_class)
    suiting = devices.suiting(wanted)
    if not suiting:
        return _unselected(case, entry, claim, request, wanted, of_class)
    if devices.rules.device_taints and not any(_tolerated(device, wanted) for device in suiting):
        return _tainted(case, entry, claim, request, wanted, suiting)
    if wanted.mode == "All":
        return None
    by_node = {name: len(there) for name, there in devices.on(case.nodes, suiting).items()}
    where = max(by_node, key=lambda name: (by_node[name], name), default="")
    most = by_node.get(where, 0)
    if most >= wanted.count:
        return None
    return _too_many(case, entry, claim, request, wanted, where, most)


def _no_class(
    case: Case, entry: Raw, claim: Object, request: DeviceRequest, unknown: Sequence[DeviceSubRequest]
) -> FoundCause:
    there = [each.name for each in case.store.list("DeviceClass")]
    likely = {sub.device_class: nearest(sub.device_class, there) for sub in unknown}
    wrong = unknown[0].device_class
    right = likely[wrong]
    objects = [named(claim), ObjectNamed("DeviceClass", "", wrong)]
    objects += [ObjectNamed("DeviceClass", "", right)] if right else []
    # an alternative may be removed if another one remains
    gone = [sub.name for sub in unknown if not likely[sub.device_class]]
    options: list[RemedyOption] = []
    if len(gone) < len(request.subrequests):

        def change(spec: Spec) -> None:
            for sub in unknown:
                for each in _parts_of(spec, request, sub):
                    each["deviceClassName"] = likely[sub.device_class] or sub.device_class
            for each in spec["devices"]["requests"]:
                if each.get("name") == request.name and each.get("firstAvailable"):
                    each["firstAvailable"] = [one for one in each["firstAvailable"] if one.get("name") not in gone]

        classes = sorted({found for found in likely.values() if found})
        parts = [f"request class {joined(classes)}"] if classes else []
        parts += [f"drop the alternative {joined(gone)}"] if gone else []
        options = asking(case, entry, claim, joined(parts), change)
    hint = f" ({right} does)" if right else ""
    return FoundCause(
        "DeviceClassMissing",
        f"DeviceClass {wrong}, which {label(entry, claim)} requests, does not exist{hint}",
        objects,
        [_field(request)],
        [f"DeviceClasses: {some(there)}" if there else "there is no DeviceClass"],
        options,
    )


def _none_of_class(devices: Devices, device_class: Object) -> FoundCause:
    wanted = expressions(device_class.spec.get("selectors"))
    drivers = Counter(device.id.driver for device in devices.all)
    published = "no driver publishes any (there are no ResourceSlices)"
    if drivers:
        there = joined([f"{name} ({counted(count, 'device')})" for name, count in sorted(drivers.items())])
        published = f"the drivers here are {there}"
    options = []
    for place, text in enumerate(wanted):
        fix = mended(text, devices.all)
        if fix is not None:
            path = f"/spec/selectors/{place}/cel/expression"
            steps = [patched(device_class.raw, [{"op": "replace", "path": path, "value": fix.text}])]
            label = f"deviceclass/{device_class.name}"
            options.append(
                RemedyOption(
                    f"have DeviceClass {device_class.name} select {fix.now}", CHANGE_OBJECT, None, steps, label
                )
            )
            break
    return FoundCause(
        "DeviceSelectorUnmet",
        f"no device meets DeviceClass {device_class.name} ({_quoted(wanted)}): {published}",
        [named(device_class)],
        ["spec.selectors of the DeviceClass"],
        options=options,
    )


def _unselected(
    case: Case, entry: Raw, claim: Object, request: DeviceRequest, wanted: DeviceSubRequest, of_class: list[Device]
) -> FoundCause:
    texts = expressions(wanted.selectors)
    failing = next((t for t in texts if not any(_meets(d, [t]) for d in of_class)), texts[0])
    rest = [d for d in of_class if _meets(d, [t for t in texts if t != failing])] or of_class
    fix = mended(failing, rest)
    values = told_values(failing, of_class)
    options = (
        []
        if fix is None
        else asking(
            case, entry, claim, f"request {fix.now} instead of {fix.was}", _replacing(fix, failing, request, wanted)
        )
    )
    has = f", which have {joined(values)}" if values else ""
    return FoundCause(
        "DeviceSelectorUnmet",
        f"none of the {counted(len(of_class), 'device')} of class {wanted.device_class}{has}, meets the selector of "
        f"{label(entry, claim)}: `{failing}`",
        [named(claim), ObjectNamed("DeviceClass", "", wanted.device_class)],
        [f"{_field(request)}.selectors"],
        [f"{len(of_class)} devices of class {wanted.device_class}: {value}" for value in values],
        options,
        certain=fix is not None and fix.near,
    )


def _replacing(fix: Mended, failing: str, request: DeviceRequest, wanted: DeviceSubRequest) -> Callable[[Spec], None]:
    def change(spec: Spec) -> None:
        for requested in _parts_of(spec, request, wanted):
            for selector in requested.get("selectors") or ():
                if (selector.get("cel") or {}).get("expression") == failing:
                    selector["cel"]["expression"] = fix.text

    return change


def _tolerated(device: Device, wanted: DeviceSubRequest) -> bool:
    return not [taint for taint in _taints(device) if not any(_tolerates(t, taint) for t in wanted.tolerations)]


def _taints(device: Device) -> list[Raw]:
    return [taint for taint in device.raw.get("taints") or () if taint.get("effect") in ("NoSchedule", "NoExecute")]


def _tolerates(toleration: Raw, taint: Raw) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def _tainted(
    case: Case, entry: Raw, claim: Object, request: DeviceRequest, wanted: DeviceSubRequest, suiting: list[Device]
) -> FoundCause:
    taint = _taints(suiting[0])[0]
    value = f"={taint['value']}" if taint.get("value") else ""
    text = f"{taint.get('key')}{value}:{taint.get('effect')}"
    made = {"key": taint.get("key"), "effect": taint.get("effect")}
    made |= {"operator": "Equal", "value": taint["value"]} if taint.get("value") else {"operator": "Exists"}

    def change(spec: Spec) -> None:
        for each in _parts_of(spec, request, wanted):
            each["tolerations"] = [*(each.get("tolerations") or ()), made]

    return FoundCause(
        "DevicesTainted",
        f"{suitable(len(suiting), 'device')} {'has' if len(suiting) == 1 else 'have'} the taint `{text}`, which "
        f"{label(entry, claim)} does not tolerate",
        [named(claim)],
        [f"{_field(request)}.tolerations"],
        [f"tainted: {some([str(device.id) for device in suiting])}", *_by_rules(case, taint)],
        asking(case, entry, claim, f"tolerate {text}", change),
    )


def _by_rules(case: Case, taint: Raw) -> list[str]:
    """Return the DeviceTaintRules that set such a taint."""
    rules = [
        rule.name
        for rule in case.store.list("DeviceTaintRule")
        if all((rule.spec.get("taint") or {}).get(field) == taint.get(field) for field in ("key", "value", "effect"))
    ]
    return [f"set by DeviceTaintRule {some(rules)}"] if rules else []


def _too_many(
    case: Case, entry: Raw, claim: Object, request: DeviceRequest, wanted: DeviceSubRequest, where: str, most: int
) -> FoundCause:
    def change(spec: Spec) -> None:
        for each in _parts_of(spec, request, wanted):
            each["count"] = most

    options = asking(case, entry, claim, f"request {counted(most, 'device')}", change) if most else []
    if most and len(entry.get(EXTENDED) or ()) == 1:
        options = [_requesting(entry[EXTENDED][0], most)]
    return FoundCause(
        "RequestAboveEveryNode",
        f"{counted(wanted.count, 'device')} of class {wanted.device_class} requested by {label(entry, claim)}, the "
        f"most on one node is {most}" + (f" ({where})" if most else ""),
        [named(claim), *([ObjectNamed("Node", "", where)] if most else [])],
        [f"{_field(request)}.count"],
        options=options,
    )


def _requesting(resource: str, number: int) -> RemedyOption:
    def edit(spec: Spec) -> None:
        for part in ("containers", "initContainers"):
            for container in spec.get(part) or ():
                for held in (container.get("resources") or {}).values():
                    if isinstance(held, dict) and resource in held:
                        held[resource] = str(number)

    return RemedyOption(f"request {number} {resource}", edit=spec_edit(edit))


def _field(request: DeviceRequest) -> str:
    return f"spec.devices.requests[{request.name}]"


def label(entry: Raw, claim: Object) -> str:
    """Return the name of the claim, of its template, or of the extended resource that it represents."""
    if entry.get(EXTENDED):
        return f"the resource {joined(entry[EXTENDED])}"
    template = entry.get("resourceClaimTemplateName")
    return f"ResourceClaimTemplate {template}" if template else f"ResourceClaim {claim.name}"


def _quoted(texts: Sequence[str]) -> str:
    return joined([f"`{text}`" for text in texts]) if texts else "no selectors"


def _parts_of(spec: Spec, request: DeviceRequest, wanted: DeviceSubRequest) -> list[Spec]:
    """Return the positions of the request in the claim's spec."""
    for each in spec["devices"]["requests"]:
        if each.get("name") == request.name:
            if each.get("exactly") is not None:
                return [each["exactly"]]
            return [one for one in each.get("firstAvailable") or () if one.get("name") == wanted.name]
    return []


def asking(case: Case, entry: Raw, claim: Object, summary: str, change: Callable[[Spec], None]) -> list[RemedyOption]:
    """Return the option that replaces a request of the claim; `change` edits the claim's spec in place.

    Specs of claims and of claim templates are immutable. After a template is replaced, existing pods keep the claims of
    the previous template.
    """
    template = entry.get("resourceClaimTemplateName")
    if entry.get(EXTENDED):
        return []
    if template is None:
        made = as_new(claim.raw)
        made["spec"] = copy.deepcopy(made["spec"])
        change(made["spec"])
        steps = [deleted("ResourceClaim", claim.namespace, [claim.name]), created(made)]
        label = f"resourceclaim/{claim.name}"
        return [RemedyOption(f"have ResourceClaim {claim.name} {summary}", REPLACE_OBJECT, None, steps, label)]
    found = case.store.find("ResourceClaimTemplate", case.pod.namespace, str(template))
    if found is None:
        return []
    made = as_new(found.raw)
    made["spec"] = copy.deepcopy(made["spec"])
    change(made["spec"]["spec"])
    number = 2
    while case.store.find("ResourceClaimTemplate", case.pod.namespace, f"{template}-{number}") is not None:
        number += 1
    name = made["metadata"]["name"] = f"{template}-{number}"

    def edit(manifest: Spec, spec: Spec) -> None:
        for each in spec.get("resourceClaims") or ():
            if each.get("name") == entry.get("name"):
                each["resourceClaimTemplateName"] = name

    label = f"resourceclaimtemplate/{template}"
    text = f"{summary} (ResourceClaimTemplate {name} instead of {template}, whose spec cannot be changed)"
    return [RemedyOption(text, REPLACE_OBJECT, edit, [created(made)], label)]
