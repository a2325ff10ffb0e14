"""Rules about dynamic resource allocation: claims, classes, slices and taint rules."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kschedd.api.quantity import QuantityError, parse
from kschedd.lint.rules import PODS, Hit, RuleSet
from kschedd.lint.subjects import KnownObjects, LintedObject, PodPart, Raw, Steps, at, entries, items, text_of
from kschedd.values import as_map

RULES: Final = RuleSet()
CLAIMS: Final = ("ResourceClaim", "ResourceClaimTemplate")
ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"
_MOST: Final = 2**63 - 1
_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


def _devices(found: LintedObject) -> tuple[Steps, Raw]:
    """Return the path and the value of a claim's `devices`."""
    path = ("spec", "spec", "devices") if found.kind == "ResourceClaimTemplate" else ("spec", "devices")
    return path, as_map(at(found.raw, *path))


def _requests(found: LintedObject) -> Iterator[tuple[Steps, Raw]]:
    """Yield a claim's requests for devices, including alternatives, each with its path in the object."""
    base, devices = _devices(found)
    for path, request in entries(devices, "requests"):
        if isinstance(request.get("exactly"), dict):
            yield (*base, *path, "exactly"), request["exactly"]
        elif items(request.get("firstAvailable")):
            for inside, alternative in entries(request, "firstAvailable"):
                yield (*base, *path, *inside), alternative
        else:
            yield (*base, *path), request


def _slice_devices(found: LintedObject) -> Iterator[tuple[Steps, Raw]]:
    """Yield the devices of a slice, each with its path in the object; the path includes `basic` of v1beta1."""
    for path, device in entries(found.spec, "devices"):
        basic = device.get("basic")
        yield (("spec", *path, "basic"), basic) if isinstance(basic, dict) else (("spec", *path), device)


@RULES.add(
    "taintrule-no-selector",
    "DeviceTaintRule",
    ("", "warning", "without deviceSelector this rule taints every device of the cluster"),
    ("1.38", "warning", "without deviceSelector this rule taints no device"),
    fix="Write `deviceSelector: {}` for all devices, or select the intended devices.",
    source="kubernetes#141648, kubernetes#141831",
)
def taintrule_no_selector(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("deviceSelector") is None:
        yield Hit(("spec",))


@RULES.add(
    "taintrule-empty-selector",
    "DeviceTaintRule",
    ("", "warning", "this rule taints every device of every driver"),
    fix="Select the intended devices; ignore this finding if all devices are intended.",
    source="kubernetes#141831",
)
def taintrule_empty_selector(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("deviceSelector") == {}:
        yield Hit(("spec", "deviceSelector"))


@RULES.add(
    "taintrule-v1alpha3",
    "DeviceTaintRule",
    ("", "note", "DeviceTaintRule is served as resource.k8s.io/v1alpha3, if that is turned on"),
    ("1.37", "note", "resource.k8s.io/v1alpha3 is deprecated; v1 is served as well"),
    ("1.39", "error", "resource.k8s.io/v1alpha3 is not served"),
    fix="Use resource.k8s.io/v1 from 1.37 on.",
    source="kubernetes#138676",
)
def taintrule_v1alpha3(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.api_version == "resource.k8s.io/v1alpha3":
        yield Hit(("apiVersion",))


@RULES.add(
    "taintrule-extended",
    "DeviceTaintRule",
    ("", "warning", "pods that got their device by an extended resource are not evicted by this rule ({})"),
    ("1.38", "fine", "they are evicted"),
    fix="Use resource claims for pods that should be evicted.",
    source="kubernetes#142289",
)
def taintrule_extended(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if at(found.spec, "taint", "effect") != "NoExecute":
        return
    driver = text_of(at(found.spec, "deviceSelector", "driver"))
    users = known.once(f"pods with extended resources of the driver {driver!r}", partial(_users, known, driver))
    if users:
        more = f" and {len(users) - 1} more" if len(users) > 1 else ""
        yield Hit(("spec", "taint", "effect"), f"{users[0].object.shown}{more}")


def _users(known: KnownObjects, driver: str) -> list[PodPart]:
    """Return the pods that request extended resources of device classes for this driver's devices ("": any driver)."""
    names: set[str] = set()
    for each in known.of("DeviceClass"):
        terms = [text_of(at(term, "cel", "expression")) for _, term in entries(each.spec, "selectors")]
        if not any("device.driver" in term and driver not in term for term in terms):
            names |= {text_of(each.spec.get("extendedResourceName")), f"{_IMPLICIT}{each.name}"}
    return [pod for pod in known.pods if any(_asks_for(container, names) for _, container in pod.containers)]


def _asks_for(container: Raw, names: set[str]) -> bool:
    return any(name in names for name in as_map(at(container, "resources", "limits")))


@RULES.add(
    "two-classes-one-extended",
    "DeviceClass",
    ("", "warning", "the extended resource {}: after one is changed or deleted, the scheduler may keep the wrong one"),
    ("1.38", "warning", "the extended resource {}: only one of them counts"),
    fix="Give each class an extended resource of its own.",
    source="kubernetes#141110",
)
def two_classes_one_extended(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    name = text_of(found.spec.get("extendedResourceName"))
    classes = known.once("device classes by extended resource", partial(_classes_by_resource, known))
    others = [each.name for each in classes[name][:2] if each is not found] if name else []
    if others:
        yield Hit(("spec", "extendedResourceName"), f"{name} is also that of the class {others[0]}")


def _classes_by_resource(known: KnownObjects) -> dict[str, list[LintedObject]]:
    found: dict[str, list[LintedObject]] = {}
    for each in known.of("DeviceClass"):
        found.setdefault(text_of(each.spec.get("extendedResourceName")), []).append(each)
    return found


@RULES.add(
    "all-incomplete-pool",
    CLAIMS,
    (
        "",
        "fine",  # the level is "fine", because the manifest is correct and pools are rarely incomplete
        "if a pool of any node is incomplete or invalid, pods with this claim fail with an error, even if "
        "other nodes fit",
    ),
    ("1.38", "fine", "other nodes are tried if a pool of one node is incomplete or invalid"),
    fix="Request a fixed number of devices with ExactCount if this suffices.",
    source="kubernetes#141898",
)
def all_incomplete_pool(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, request in _requests(found):
        # a request with admin access may select all devices intentionally
        if request.get("allocationMode") == "All" and request.get("adminAccess") is not True:
            yield Hit((*path, "allocationMode"))


@RULES.add(
    "all-partly-full",
    CLAIMS,
    ("", "warning", "`All` leaves out devices whose capacity is used up, and the claim gets the others"),
    ("1.37", "fine", "the claim waits until all devices have the capacity"),
    fix="Expect fewer devices, or request a fixed number of devices.",
    source="kubernetes#140769",
)
def all_partly_full(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, request in _requests(found):
        if request.get("allocationMode") == "All" and as_map(at(request, "capacity", "requests")):
            yield Hit((*path, "allocationMode"))


@RULES.add(
    "capacity-qualified-name",
    CLAIMS,
    ("", "fine", "the capacity {} matches no device whose driver publishes it without its own name, as most do"),
    ("1.38", "fine", "the capacity {} also matches the driver's own name for it"),
    fix="Request the capacity by exactly the name that the driver publishes.",
    source="kubernetes#142202",
)
def capacity_qualified_name(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, request in _requests(found):
        for name in as_map(at(request, "capacity", "requests")):
            if str(name).count("/") == 1 and name not in known.once("capacities", partial(_capacities, known)):
                yield Hit((*path, "capacity", "requests", name), str(name))


def _capacities(known: KnownObjects) -> set[str]:
    """Return the names under which slices publish capacity."""
    slices = known.of("ResourceSlice")
    return {name for each in slices for _, device in _slice_devices(each) for name in as_map(device.get("capacity"))}


@RULES.add(
    "capacity-both-names",
    CLAIMS,
    ("", "error", "one capacity is requested under two names, {}, so no device fits"),
    ("1.38", "error", "one capacity is requested under two names, {}, which is an error"),
    fix="Use only the name that the driver publishes.",
    source="kubernetes#142202",
)
def capacity_both_names(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, request in _requests(found):
        requested = as_map(at(request, "capacity", "requests"))
        for name in requested:
            short = str(name).rpartition("/")[2]
            if short != name and short in requested:
                yield Hit((*path, "capacity", "requests", name), f"{short} and {name}")


@RULES.add(
    "claim-counts-overflow",
    CLAIMS,
    ("", "error", "{} devices are more than the allocator can count; it crashes or skips alternatives"),
    ("1.38", "error", "{} devices are more than a claim can have"),
    fix="Request the number of devices that you need; a claim can have 32.",
    source="kubernetes#141307",
)
def claim_counts_overflow(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    total = 0
    for path, request in _requests(found):
        count = request.get("count")
        total += count if isinstance(count, int) and request.get("allocationMode") != "All" else 1
        if total >= _MOST:
            yield Hit((*path, "count"), str(total))
            return


@RULES.add(
    "claim-too-many-devices",
    CLAIMS,
    ("", "error", "a claim can have 32 devices at most, and this request is for {}: it is never satisfied"),
    fix="Spread the devices over several claims.",
    source="resource/v1 types (AllocationResultsMaxSize)",
)
def claim_too_many_devices(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, request in _requests(found):
        count = request.get("count")
        if (
            isinstance(count, int)
            and 32 < count < _MOST
            and request.get("allocationMode", "ExactCount") == "ExactCount"
        ):
            yield Hit((*path, "count"), str(count))


@RULES.add(
    "distinct-count",
    CLAIMS,
    ("", "warning", "of several devices of one request only the last is compared, so they may share the attribute"),
    ("1.37", "fine", "all devices are compared"),
    fix="Use one request for each device.",
    source="kubernetes#140600",
)
def distinct_count(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    base, devices = _devices(found)
    several = any(
        (isinstance(request.get("count"), int) and request["count"] > 1) or request.get("allocationMode") == "All"
        for _, request in _requests(found)
    )
    for path, constraint in entries(devices, "constraints"):
        if constraint.get("distinctAttribute") and several:
            yield Hit((*base, *path, "distinctAttribute"))


@RULES.add(
    "prioritized-list",
    CLAIMS,
    ("", "error", "firstAvailable is rejected without the feature gate DRAPrioritizedList"),
    ("1.34", "fine", "the first available alternative is used"),
    ("1.35", "fine", "nodes with an earlier alternative are preferred"),
    fix="Request the device exactly.",
    source="kube_features.go (DRAPrioritizedList)",
)
def prioritized_list(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    base, devices = _devices(found)
    for path, request in entries(devices, "requests"):
        if items(request.get("firstAvailable")):
            yield Hit((*base, *path, "firstAvailable"))


@RULES.add(
    "admin-access",
    CLAIMS,
    ("", "warning", "the API server drops adminAccess"),
    ("1.34", "error", f"adminAccess is rejected in a namespace without the label {ADMIN_ACCESS}"),
    fix=f'Set the label {ADMIN_ACCESS}: "true" on the namespace.',
    source="resource/v1 (DRAAdminNamespaceLabelKey)",
)
def admin_access(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    namespace = known.find("Namespace", "default", found.namespace)
    if namespace is not None and namespace.labels.get(ADMIN_ACCESS) == "true":
        return
    for path, request in _requests(found):
        if request.get("adminAccess") is True:
            yield Hit((*path, "adminAccess"))


# -- versions of the API ---------------------------------------------------------------------------------------

_RESOURCE_KINDS: Final = (*CLAIMS, "DeviceClass", "ResourceSlice")


@RULES.add(
    "resource-v1beta1",
    _RESOURCE_KINDS,
    ("", "fine", "{} is served"),
    ("1.35", "note", "{} is deprecated, and by default the API server does not serve it"),
    ("1.38", "error", "{} is not served"),
    fix="Use resource.k8s.io/v1, which has the fields of a request under `exactly`: `exactly: {deviceClassName: C}`.",
    source="kubernetes#129970",
)
def resource_v1beta1(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.api_version == "resource.k8s.io/v1beta1":
        yield Hit(("apiVersion",), found.api_version)


@RULES.add(
    "resource-v1beta2",
    _RESOURCE_KINDS,
    ("", "fine", "{} is served"),
    ("1.36", "note", "{} is deprecated"),
    ("1.39", "error", "{} is not served"),
    fix="Use resource.k8s.io/v1.",
    source="kubernetes#129970",
)
def resource_v1beta2(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.api_version == "resource.k8s.io/v1beta2":
        yield Hit(("apiVersion",), found.api_version)


@RULES.add(
    "resource-v1alpha3",
    _RESOURCE_KINDS,
    ("", "note", "{} is an alpha version"),
    ("1.34", "error", "{} is served for DeviceTaintRule only"),
    fix="Use resource.k8s.io/v1.",
    source="notes of 1.34",
)
def resource_v1alpha3(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.api_version == "resource.k8s.io/v1alpha3":
        yield Hit(("apiVersion",), found.api_version)


@RULES.add(
    "classic-dra",
    ("PodSchedulingContext", "ResourceClass", "ResourceClaimParameters", "ResourceClassParameters", *_RESOURCE_KINDS),
    ("", "note", "classic dynamic resource allocation is an alpha feature"),
    ("1.32", "error", "classic dynamic resource allocation is gone: this object is not served"),
    fix="Use resource.k8s.io/v1. Remove such stored objects before the upgrade to 1.32. resourceClassName becomes "
    "`devices.requests[].exactly.deviceClassName`, and parameters become selectors or `devices.config[].opaque`.",
    source="notes of 1.32",
)
def classic_dra(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    gone = found.kind not in _RESOURCE_KINDS and found.api_version.startswith("resource.k8s.io/")
    if gone or found.api_version in ("resource.k8s.io/v1alpha1", "resource.k8s.io/v1alpha2"):
        yield Hit(("apiVersion",))


# -- slices ------------------------------------------------------------------------------------------------------


@RULES.add(
    "qualified-name-two-slashes",
    ("ResourceSlice", *CLAIMS),
    ("", "warning", "{} is no qualified name: it has two slashes"),
    ("1.38", "error", "{} is no qualified name, and the object is rejected"),
    fix="Write DOMAIN/NAME, or the name alone.",
    source="kubernetes#141644",
)
def qualified_name_two_slashes(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.kind == "ResourceSlice":
        for path, device in _slice_devices(found):
            for field in ("attributes", "capacity"):
                for name in as_map(device.get(field)):
                    if str(name).count("/") > 1:
                        yield Hit((*path, field, name), str(name))
        return
    base, devices = _devices(found)
    for path, constraint in entries(devices, "constraints"):
        for field in ("matchAttribute", "distinctAttribute"):
            if text_of(constraint.get(field)).count("/") > 1:
                yield Hit((*base, *path, field), str(constraint[field]))
    for path, request in _requests(found):
        for name in as_map(at(request, "capacity", "requests")):
            if str(name).count("/") > 1:
                yield Hit((*path, "capacity", "requests", name), str(name))


@RULES.add(
    "device-selector-two-terms",
    "ResourceSlice",
    ("", "warning", "a node selector of a slice must have exactly one term: with another number attempts may fail"),
    ("1.38", "error", "a node selector of a slice must have exactly one term: the object is rejected"),
    fix="Merge the terms into one.",
    source="kubernetes#141213",
)
def device_selector_two_terms(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, owner in [(("spec",), found.spec), *_slice_devices(found)]:
        if len(items(at(owner, "nodeSelector", "nodeSelectorTerms"))) > 1:
            yield Hit((*path, "nodeSelector", "nodeSelectorTerms"))


@RULES.add(
    "shared-then-exclusive",
    "ResourceSlice",
    ("", "warning", "the device {} is shared by claims but no longer allows it: a further claim may get it alone"),
    ("1.38", "fine", "the device {} is given to no further claim while it is shared"),
    fix="Set allowMultipleAllocations again, or delete the claims first.",
    source="kubernetes#140798",
)
def shared_then_exclusive(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    shared = known.once("shared devices", partial(_shared, known))
    if not shared:
        return
    driver, pool = text_of(found.spec.get("driver")), text_of(at(found.spec, "pool", "name"))
    for place, device in enumerate(items(found.spec.get("devices"))):
        name = text_of(as_map(device).get("name"))
        if (driver, pool, name) in shared and as_map(device).get("allowMultipleAllocations") is not True:
            yield Hit(("spec", "devices", place), name)


def _shared(known: KnownObjects) -> set[tuple[str, str, str]]:
    """Return driver, pool and name of the devices that claims share."""
    return {
        (text_of(result.get("driver")), text_of(result.get("pool")), text_of(result.get("device")))
        for claim in known.of("ResourceClaim")
        for _, result in entries(claim.raw, "status", "allocation", "devices", "results")
        if result.get("shareID")
    }


def _slices_by_pool(known: KnownObjects) -> dict[str, list[LintedObject]]:
    """Return the slices by the name of their pool."""
    found: dict[str, list[LintedObject]] = {}
    for each in known.of("ResourceSlice"):
        found.setdefault(text_of(at(each.spec, "pool", "name")), []).append(each)
    return found


@RULES.add(
    "incomplete-pool",
    "ResourceSlice",
    ("", "fine", "devices of an incomplete pool are given out"),
    ("1.35", "warning", "{}: devices of an incomplete pool are not given out"),
    fix="Wait until the driver has published all slices, or find out why it does not.",
    source="notes of 1.35",
)
def incomplete_pool(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    pool = as_map(found.spec.get("pool"))
    wanted = pool.get("resourceSliceCount")
    if not isinstance(wanted, int):
        return
    slices = known.once("slices by pool", partial(_slices_by_pool, known))
    same = [
        each
        for each in slices[text_of(pool.get("name"))]
        if each.spec.get("driver") == found.spec.get("driver")
        and at(each.spec, "pool", "generation") == pool.get("generation")
    ]
    if len(same) < wanted and same[0] is found:
        text = f"the pool {pool.get('name')} has {len(same)} of {wanted} slices"
        yield Hit(("spec", "pool", "resourceSliceCount"), text)


@RULES.add(
    "pool-name-shared",
    "ResourceSlice",
    ("", "warning", "the pool {}, and the counters of the two are mixed up"),
    ("1.37", "fine", "the pool {}, and the counters of the two are kept apart"),
    fix="Give the pools of different drivers different names.",
    source="kubernetes#140435",
)
def pool_name_shared(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if not items(found.spec.get("sharedCounters")):
        return
    name, driver = text_of(at(found.spec, "pool", "name")), found.spec.get("driver")
    for each in known.once("slices by pool", partial(_slices_by_pool, known))[name]:
        if each.spec.get("driver") != driver:
            yield Hit(("spec", "pool", "name"), f"{name} is also one of the driver {each.spec.get('driver')}")
            return


@RULES.add(
    "partition-slices",
    "ResourceSlice",
    ("", "fine", "counters and devices may stand in one slice"),
    ("1.35", "error", "sharedCounters and devices must stand in slices of their own: the object is rejected"),
    fix="Change the driver so that it publishes the counters in a separate slice.",
    source="notes of 1.35",
)
def partition_slices(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if items(found.spec.get("sharedCounters")) and items(found.spec.get("devices")):
        yield Hit(("spec", "sharedCounters"))


@RULES.add(
    "devices-counters",
    "ResourceSlice",
    (
        "",
        "warning",
        "without the feature gate DRAPartitionableDevices the API server drops counters, and these devices are "
        "not used",
    ),
    ("1.36", "fine", "the counters are used"),
    fix="Enable the feature gate, or upgrade.",
    source="kube_features.go (DRAPartitionableDevices)",
)
def devices_counters(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if items(found.spec.get("sharedCounters")):
        yield Hit(("spec", "sharedCounters"))
    for path, device in _slice_devices(found):
        if items(device.get("consumesCounters")):
            yield Hit((*path, "consumesCounters"))
            return


def _device_field(code: str, field: str, before: str, after: str, fix: str, source: str) -> None:
    """Declare a rule for a field of devices that API servers up to 1.35 drop."""

    def check(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
        for path, device in _slice_devices(found):
            if device.get(field):
                yield Hit((*path, field))
                return

    RULES.add(code, "ResourceSlice", ("", "warning", before), ("1.36", "fine", after), fix=fix, source=source)(check)


_device_field(
    "devices-tainted",
    "taints",
    "the API server drops taints of devices",
    "taints of devices count",
    "Enable the feature gate DRADeviceTaints, or upgrade.",
    "kubernetes#137170",
)
_device_field(
    "devices-shared",
    "allowMultipleAllocations",
    "the API server drops allowMultipleAllocations: each device goes to one claim",
    "a device may go to several claims",
    "Enable the feature gate DRAConsumableCapacity, or upgrade.",
    "kubernetes#136611",
)
_device_field(
    "binding-conditions",
    "bindingConditions",
    "the API server drops bindingConditions: nothing waits for them",
    "pods wait for the conditions before they are bound",
    "Enable the feature gate DRADeviceBindingConditions, or upgrade.",
    "kubernetes#137795",
)


@RULES.add(
    "list-attributes",
    "ResourceSlice",
    ("", "warning", "the API server drops attributes that are lists"),
    ("1.36", "warning", "attributes that are lists need the feature gate DRAListTypeAttributes (alpha)"),
    fix="Enable the feature gate, or publish single values.",
    source="kube_features.go (DRAListTypeAttributes)",
)
def list_attributes(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, device in _slice_devices(found):
        for name, value in as_map(device.get("attributes")).items():
            for field in ("strings", "ints", "bools", "versions"):
                if as_map(value).get(field) is not None:
                    yield Hit((*path, "attributes", name, field))


def _ranges(found: LintedObject) -> Iterator[tuple[Steps, Raw]]:
    for path, device in _slice_devices(found):
        for name, capacity in as_map(device.get("capacity")).items():
            valid = at(capacity, "requestPolicy", "validRange")
            if isinstance(valid, dict):
                yield (*path, "capacity", name, "requestPolicy", "validRange"), valid


@RULES.add(
    "capacity-fraction",
    "ResourceSlice",
    ("", "warning", "{} of this range is a fraction, and ranges with fractions are rounded up to whole numbers"),
    ("1.37", "fine", "{} of this range counts in thousandths"),
    fix="Use whole numbers, in a smaller unit.",
    source="kubernetes#140161",
)
def capacity_fraction(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, valid in _ranges(found):
        for field in ("min", "max", "step"):
            try:
                is_fraction = valid.get(field) is not None and parse(valid[field]).denominator != 1
            except (QuantityError, TypeError, ValueError):
                is_fraction = False
            if is_fraction:
                yield Hit((*path, field), f"{field}: {valid[field]}")
                break


@RULES.add(
    "capacity-step-zero",
    "ResourceSlice",
    ("", "error", "a step of 0 makes validation or allocation panic"),
    ("1.37", "error", "a step of 0 is rejected"),
    fix="Use a step above 0, or omit the step.",
    source="kubernetes#139698, kubernetes#140666",
)
def capacity_step_zero(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, valid in _ranges(found):
        if valid.get("step") in ("0", 0):
            yield Hit((*path, "step"))


@RULES.add(
    "claim-class-missing",
    CLAIMS,
    ("", "error", "the DeviceClass {} does not exist"),
    fix="Create the class, or correct its name.",
    source="scheduler/framework/plugins/dynamicresources",
)
def claim_class_missing(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, request in _requests(found) if known.lists("DeviceClass") else ():
        name = text_of(request.get("deviceClassName"))
        if name and known.find("DeviceClass", "default", name) is None:
            yield Hit((*path, "deviceClassName"), name)


@RULES.add(
    "claim-template-missing",
    PODS,
    ("", "error", "the ResourceClaimTemplate {} does not exist, so the pod stays pending"),
    fields="resourceClaims",
    fix="Create the template in the namespace of the pod, or correct its name.",
    source="scheduler/framework/plugins/dynamicresources",
)
def claim_template_missing(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, claim in entries(pod.spec, "resourceClaims") if known.lists("ResourceClaimTemplate") else ():
        name = text_of(claim.get("resourceClaimTemplateName"))
        if name and known.find("ResourceClaimTemplate", pod.namespace, name) is None:
            yield Hit((*path, "resourceClaimTemplateName"), name)
