"""Validation of a ResourceClaim's status: its allocation, its reservations, and the device status reported by drivers.

Source: Kubernetes v1.34, pkg/apis/resource/validation/validation.go (ValidateResourceClaimStatusUpdate).
The functions require claims that match the schema, and append errors to `faults`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    repeats,
    required,
    too_many,
    unsupported,
)
from kschedd.api.schemas.schema import type_named
from kschedd.api.selecting.names import dns_label
from kschedd.api.text.ip_addresses import cidr_family
from kschedd.registry.devices.validation import (
    validate_count,
    validate_device_config,
    validate_driver,
    validate_pool_name,
    validate_raw_json,
    validate_request_name,
    validate_requests,
)
from kschedd.registry.go_structs import go_struct
from kschedd.registry.same import same
from kschedd.registry.validation_selectors import validate_node_selector
from kschedd.registry.validation_status import validate_conditions

Raw = Mapping[str, Any]
Faults = list[FieldError]

_MOST_USERS: Final = 256
_MOST_RESULTS: Final = 32
_MOST_CONFIGS: Final = 64
_MOST_CONDITIONS: Final = 8
_MOST_ADDRESSES: Final = 16
_LONGEST: Final = {"interfaceName": 256, "hardwareAddress": 128}  # bytes
_SOURCES: Final = ("FromClaim", "FromClass")


def validate_claim_status(old: Raw, new: Raw, faults: Faults) -> None:
    """Validate a ResourceClaim's allocation, which is immutable, its reservations and the state of its devices."""
    before, after = old.get("status") or {}, new.get("status") or {}
    allocated, allocation = before.get("allocation"), after.get("allocation")
    _validate_users(after.get("reservedFor") or (), faults)
    _validate_devices(after.get("devices") or (), allocated_devices(after), faults)
    if after.get("reservedFor"):
        _validate_reservation(before, after, (new.get("metadata") or {}).get("deletionTimestamp"), faults)
    if allocated is not None and allocation is not None:
        if not same(allocated, allocation, type_named("resource.v1.AllocationResult")):
            faults.append(invalid("status.allocation", go_struct("AllocationResult", allocation), "field is immutable"))
    elif allocation is not None:
        _validate_allocation(allocation, new.get("spec") or {}, faults)


def _validate_users(users: Sequence[Raw], faults: Faults) -> None:
    path = "status.reservedFor"
    for index, user in enumerate(users):
        faults += [required(f"{path}[{index}].{field}") for field in ("resource", "name", "uid") if not user.get(field)]
    validate_count(users, _MOST_USERS, path, faults)
    uids = [user.get("uid") or "" for user in users]
    faults += [duplicate(f"{path}[{index}].uid", uid) for index, uid in repeats(uids)]


def _validate_reservation(before: Raw, after: Raw, deleted: Any, faults: Faults) -> None:
    if after.get("allocation") is None:
        faults.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif deleted and any(user not in (before.get("reservedFor") or ()) for user in after["reservedFor"]):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        faults.append(forbidden("status.reservedFor", why))


def device_id(device: Raw) -> str:
    """Return the id of a device, or of a share of a device, as kube-apiserver prints it."""
    parts = [device.get(field) or "" for field in ("driver", "pool", "device")]
    return "/".join([*parts, device["shareID"]] if device.get("shareID") else parts)


def allocated_devices(status: Raw) -> set[str]:
    """Return the devices that this claim status allocates, as ids from `device_id`."""
    return {
        device_id(result) for result in ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    }


def _validate_device_name(device: Raw, path: str, faults: Faults) -> None:
    """Validate the driver, pool and name of a device."""
    name = device.get("device") or ""
    validate_driver(device.get("driver") or "", f"{path}.driver", faults)
    validate_pool_name(device.get("pool") or "", f"{path}.pool", faults)
    faults += [invalid(f"{path}.device", name, why) for why in dns_label(name)]


def _validate_devices(devices: Sequence[Raw], allocated: Collection[str], faults: Faults) -> None:
    shown = [device_id(device) for device in devices]
    twice = {index for index, _ in repeats(shown)}
    for index, (device, text) in enumerate(zip(devices, shown, strict=True)):
        here = f"status.devices[{index}]"
        _validate_device_name(device, here, faults)
        if text not in allocated:
            why = "must be an allocated device in the claim"
            faults.append(invalid(here, {"Driver": {}, "Pool": {}, "Device": {}, "ShareID": {}}, why))
        conditions = device.get("conditions") or ()
        if len(conditions) > _MOST_CONDITIONS:
            faults.append(too_many(f"{here}.conditions", len(conditions), _MOST_CONDITIONS))
        validate_conditions(conditions, f"{here}.conditions", faults)
        if "data" in device:
            validate_raw_json(device["data"], f"{here}.data", faults)
        _validate_network(device.get("networkData") or {}, f"{here}.networkData", faults)
        if index in twice:
            faults.append(FieldError(f"{here}.deviceID", text, f"Duplicate value: {text}"))


def _validate_network(network: Raw, path: str, faults: Faults) -> None:
    for field, most in _LONGEST.items():
        if len((network.get(field) or "").encode()) > most:
            faults.append(FieldError(f"{path}.{field}", None, f"Too long: may not be more than {most} bytes"))
    addresses = network.get("ips") or ()
    for index, address in enumerate(addresses):
        if not cidr_family(address):
            why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
            faults.append(invalid(f"{path}.ips[{index}]", address, why))
    validate_count(addresses, _MOST_ADDRESSES, f"{path}.ips", faults)
    faults += [duplicate(f"{path}.ips[{n}]", each) for n, each in repeats(addresses)]


def _request_names(spec: Raw) -> set[str]:
    names = set()
    for request in (spec.get("devices") or {}).get("requests") or ():
        name = request.get("name") or ""
        names |= {name, *(f"{name}/{each.get('name') or ''}" for each in request.get("firstAvailable") or ())}
    return names


def _validate_allocation(allocation: Raw, spec: Raw, faults: Faults) -> None:
    devices, names = allocation.get("devices") or {}, _request_names(spec)
    path, results = "status.allocation.devices", devices.get("results") or ()
    for index, result in enumerate(results):
        here = f"{path}.results[{index}]"
        validate_request_name(result.get("request") or "", f"{here}.request", names, faults)
        _validate_device_name(result, here, faults)
    validate_count(results, _MOST_RESULTS, f"{path}.results", faults)
    _validate_configs(devices.get("config") or (), f"{path}.config", names, faults)
    if (selector := allocation.get("nodeSelector")) is not None:
        validate_node_selector(selector, "status.allocation.nodeSelector", faults)


def _validate_configs(configs: Sequence[Any], path: str, names: Collection[str], faults: Faults) -> None:
    for index, config in enumerate(configs):
        here, source = f"{path}[{index}]", config.get("source") or ""
        if not source:
            faults.append(required(f"{here}.source"))
        elif source not in _SOURCES:
            faults.append(unsupported(f"{here}.source", source, _SOURCES))
        validate_requests(config.get("requests") or (), f"{here}.requests", names, faults)
        validate_device_config(config, here, faults)
    validate_count(configs, _MOST_CONFIGS, path, faults)
