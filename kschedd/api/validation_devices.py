"""Validation of dynamic resource allocation: ResourceSlices, ResourceClaims, their templates, DeviceClasses.

Source: Kubernetes v1.34, pkg/apis/resource/validation/validation.go.
Takes objects that match the schema and have their defaults.  CEL expressions are not compiled here.
"""

from collections.abc import Sequence
from typing import Any, Final

from kschedd.api.fields import FieldError, child, duplicate, invalid, required, too_many, unsupported
from kschedd.api.validation_names import dns_label, dns_subdomain, qualified_name
from kschedd.api.validation_resources import NOT_NEGATIVE
from kschedd.api.validation_selectors import validate_node_selector

Raw = dict[str, Any]
Faults = list[FieldError]

_MOST_REQUESTS: Final = 32
_MOST_SELECTORS: Final = 32
_MOST_ALTERNATIVES: Final = 8
_MOST_DEVICES: Final = 128
_MODES: Final = ("All", "ExactCount")


def validate_claim(claim: Raw, faults: Faults) -> None:
    _validate_claim_spec(claim.get("spec") or {}, "spec", faults)


def validate_claim_template(template: Raw, faults: Faults) -> None:
    _validate_claim_spec((template.get("spec") or {}).get("spec") or {}, "spec.spec", faults)


def validate_device_class(item: Raw, faults: Faults) -> None:
    _validate_selectors((item.get("spec") or {}).get("selectors") or (), "spec.selectors", faults)


def _validate_claim_spec(spec: Raw, path: str, faults: Faults) -> None:
    devices = spec.get("devices") or {}
    requests = devices.get("requests") or ()
    here = f"{path}.devices.requests"
    if len(requests) > _MOST_REQUESTS:
        faults.append(too_many(here, len(requests), _MOST_REQUESTS))
    names: set[str] = set()
    for index, request in enumerate(requests):
        _validate_request(request, f"{here}[{index}]", names, faults)
    for index, constraint in enumerate(devices.get("constraints") or ()):
        where = f"{path}.devices.constraints[{index}]"
        for number, name in enumerate(constraint.get("requests") or ()):
            if name not in names:
                why = "must be the name of a request, or of a request and one of its alternatives joined by '/'"
                faults.append(invalid(f"{where}.requests[{number}]", name, why))
        attribute = constraint.get("matchAttribute")
        if attribute is None and "distinctAttribute" not in constraint:
            faults.append(required(f"{where}.matchAttribute"))
        elif attribute is not None:
            faults += [invalid(f"{where}.matchAttribute", attribute, why) for why in qualified_name(attribute)]
            if "/" not in attribute:
                faults.append(invalid(f"{where}.matchAttribute", attribute, "must include a domain"))


def _validate_request(request: Raw, path: str, names: set[str], faults: Faults) -> None:
    name = request.get("name") or ""
    _validate_name(name, names, f"{path}.name", faults)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if (exactly is None) == (not alternatives):
        which = "exactly one of `exactly` or `firstAvailable` is required"
        faults.append(FieldError(path, name, which if exactly is None else f"Invalid value: {which}, but both are set"))
    if exactly is not None:
        _validate_exact(exactly, f"{path}.exactly", faults)
    if alternatives:
        if len(alternatives) > _MOST_ALTERNATIVES:
            faults.append(too_many(f"{path}.firstAvailable", len(alternatives), _MOST_ALTERNATIVES))
        inner: set[str] = set()
        for index, alternative in enumerate(alternatives):
            here = f"{path}.firstAvailable[{index}]"
            _validate_name(alternative.get("name") or "", inner, f"{here}.name", faults)
            _validate_exact(alternative, here, faults)
        names |= {f"{name}/{each}" for each in inner}


def _validate_name(name: str, names: set[str], path: str, faults: Faults) -> None:
    if not name:
        faults.append(required(path))
    elif name in names:
        faults.append(duplicate(path, name))
    else:
        faults += [invalid(path, name, why) for why in dns_label(name)]
    names.add(name)


def _validate_exact(request: Raw, path: str, faults: Faults) -> None:
    name = request.get("deviceClassName") or ""
    if not name:
        faults.append(required(f"{path}.deviceClassName"))
    else:
        faults += [invalid(f"{path}.deviceClassName", name, why) for why in dns_subdomain(name)]
    mode = request.get("allocationMode")
    count = request.get("count")
    if mode not in _MODES:
        faults.append(unsupported(f"{path}.allocationMode", mode, _MODES))
    elif mode == "All" and count:
        faults.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and (count or 0) <= 0:
        faults.append(invalid(f"{path}.count", count, "must be greater than zero"))
    _validate_selectors(request.get("selectors") or (), f"{path}.selectors", faults)


def _validate_selectors(selectors: Sequence[Raw], path: str, faults: Faults) -> None:
    if len(selectors) > _MOST_SELECTORS:
        faults.append(too_many(path, len(selectors), _MOST_SELECTORS))
    for index, selector in enumerate(selectors):
        cel = selector.get("cel")
        if cel is None:
            faults.append(required(f"{path}[{index}].cel"))
        elif not cel.get("expression"):
            faults.append(required(f"{path}[{index}].cel.expression"))


_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def validate_slice(item: Raw, faults: Faults) -> None:
    """A ResourceSlice."""
    spec = item.get("spec") or {}
    driver = spec.get("driver") or ""
    if not driver:
        faults.append(required("spec.driver"))
    else:
        faults += [invalid("spec.driver", driver, why) for why in dns_subdomain(driver)]
    pool = spec.get("pool") or {}
    if not pool.get("name"):
        faults.append(required("spec.pool.name"))
    if (pool.get("resourceSliceCount") or 0) <= 0:
        why = "must be greater than zero"
        faults.append(invalid("spec.pool.resourceSliceCount", pool.get("resourceSliceCount"), why))
    if (pool.get("generation") or 0) < 0:
        faults.append(invalid("spec.pool.generation", pool["generation"], NOT_NEGATIVE))
    places = [place for place in _PLACES if spec.get(place)]
    if len(places) != 1:
        which = ", ".join(f"`{place}`" for place in _PLACES)
        faults.append(FieldError("spec", places, f"Invalid value: exactly one of {which} is required"))
    if (selector := spec.get("nodeSelector")) is not None:
        validate_node_selector(selector, "spec.nodeSelector", faults)
    devices = spec.get("devices") or ()
    if len(devices) > _MOST_DEVICES:
        faults.append(too_many("spec.devices", len(devices), _MOST_DEVICES))
    names: set[str] = set()
    for index, device in enumerate(devices):
        here = f"spec.devices[{index}]"
        _validate_name(device.get("name") or "", names, f"{here}.name", faults)
        for key, attribute in (device.get("attributes") or {}).items():
            if len(attribute) != 1:
                where = child(f"{here}.attributes", key)
                faults.append(FieldError(where, attribute, "Invalid value: exactly one value must be specified"))
