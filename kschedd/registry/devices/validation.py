"""Validation of dynamic resource allocation: ResourceSlices, ResourceClaims, their templates, and DeviceClasses.

Source: Kubernetes v1.34, pkg/apis/resource/validation/validation.go.
The functions require objects that match the schema and have their defaults. CEL expressions are not compiled here.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, required, too_many, unsupported
from kschedd.api.schemas.go_order import go_json
from kschedd.api.selecting.names import dns_label, dns_subdomain, does_not_match, label_value, qualified_name
from kschedd.registry.devices.features import (
    most_devices,
    validate_device_features,
    validate_extended_resource_name,
    validate_requested_capacity,
    validate_shared_counters,
)
from kschedd.registry.go_structs import go_struct
from kschedd.registry.validation_meta import validate_annotations, validate_labels
from kschedd.registry.validation_selectors import validate_node_selector

Raw = dict[str, Any]
Faults = list[FieldError]

_MOST_REQUESTS: Final = 32
_MOST_SELECTORS: Final = 32
_MOST_ALTERNATIVES: Final = 8
_MOST_CONSTRAINTS: Final = 32
_MOST_CONFIGS: Final = 32
_MOST_NAMED: Final = 32  # maximum number of attributes and capacities of a device
_LONGEST_POOL: Final = 253
_LONGEST_DOMAIN: Final = 63
_LONGEST_ID: Final = 32
_LONGEST_KEY: Final = _LONGEST_DOMAIN + len("/") + _LONGEST_ID
_LONGEST_VALUE: Final = 64
_LONGEST_JSON: Final = 10 * 1024  # bytes
_MODES: Final = ("All", "ExactCount")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_TOLERATED_EFFECTS: Final = ("NoExecute", "NoSchedule")
_ID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ID_RULE: Final = does_not_match(
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    "[A-Za-z_][A-Za-z0-9_]*",
    "my_name",
    "MY_NAME",
    "MyName",
)
_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
"""A version in the format of semver.org 2.0.0."""


def validate_claim(claim: Raw, faults: Faults) -> None:
    _validate_claim_spec(claim.get("spec") or {}, "spec", faults)


def validate_claim_template(template: Raw, faults: Faults) -> None:
    spec = template.get("spec") or {}
    _validate_template_meta(spec.get("metadata") or {}, faults)
    _validate_claim_spec(spec.get("spec") or {}, "spec.spec", faults)


_SET_BY_NOBODY: Final = (
    "name generateName namespace uid resourceVersion generation creationTimestamp deletionTimestamp "
    "deletionGracePeriodSeconds ownerReferences finalizers managedFields"
).split()


def _validate_template_meta(meta: Raw, faults: Faults) -> None:
    """Validate the metadata of a claim template, which may contain only labels and annotations."""
    validate_labels(meta.get("labels") or {}, "spec.metadata.labels", faults)
    validate_annotations(meta.get("annotations") or {}, "spec.metadata.annotations", faults)
    for field in _SET_BY_NOBODY:
        if meta.get(field):
            faults.append(forbidden(f"spec.metadata.{field}", "cannot be set"))


def validate_device_class(item: Raw, faults: Faults) -> None:
    spec = item.get("spec") or {}
    if spec.get("extendedResourceName") is not None:
        validate_extended_resource_name(spec["extendedResourceName"], "spec.extendedResourceName", faults)
    _validate_selectors(spec.get("selectors") or (), "spec.selectors", faults)
    for index, config in enumerate(spec.get("config") or ()):
        validate_device_config(config, f"spec.config[{index}]", faults)
    validate_count(spec.get("config") or (), _MOST_CONFIGS, "spec.config", faults)


def _validate_claim_spec(spec: Raw, path: str, faults: Faults) -> None:
    devices = spec.get("devices") or {}
    requests = devices.get("requests") or ()
    here = f"{path}.devices.requests"
    if len(requests) > _MOST_REQUESTS:
        faults.append(too_many(here, len(requests), _MOST_REQUESTS))
    names: set[str] = set()
    for index, request in enumerate(requests):
        _validate_request(request, f"{here}[{index}]", names, faults)
    constraints, configs = devices.get("constraints") or (), devices.get("config") or ()
    for index, constraint in enumerate(constraints):
        _validate_constraint(constraint, f"{path}.devices.constraints[{index}]", names, faults)
    validate_count(constraints, _MOST_CONSTRAINTS, f"{path}.devices.constraints", faults)
    for index, config in enumerate(configs):
        where = f"{path}.devices.config[{index}]"
        validate_requests(config.get("requests") or (), f"{where}.requests", names, faults)
        validate_device_config(config, where, faults)
    validate_count(configs, _MOST_CONFIGS, f"{path}.devices.config", faults)


def validate_count(items: Sequence[Any], most: int, path: str, faults: Faults) -> None:
    """Append an error if there are more than `most` items."""
    if len(items) > most:
        faults.append(too_many(path, len(items), most))


def _validate_constraint(constraint: Raw, path: str, names: set[str], faults: Faults) -> None:
    """Validate a constraint on the devices of some requests.

    If both attributes are set, only matchAttribute is checked.
    """
    validate_requests(constraint.get("requests") or (), f"{path}.requests", names, faults)
    for field in ("matchAttribute", "distinctAttribute"):
        if (attribute := constraint.get(field)) is not None:
            _validate_attribute_name(attribute, f"{path}.{field}", faults)
            if attribute and "/" not in attribute:
                faults.append(invalid(f"{path}.{field}", attribute, "must include a domain"))
            return
    faults.append(required(f"{path}.matchAttribute"))


def validate_requests(requests: Sequence[str], path: str, names: Collection[str], faults: Faults) -> None:
    """Validate the names of requests, or of a request and one of its alternatives; each name may occur only once."""
    seen = set()
    for index, name in enumerate(requests):
        here = f"{path}[{index}]"
        validate_request_name(name, here, names, faults)
        if name in seen:
            faults.append(duplicate(here, name))
        seen.add(name)
    validate_count(requests, _MOST_REQUESTS, path, faults)


def validate_request_name(name: str, path: str, names: Collection[str], faults: Faults) -> None:
    """Validate the name of one of the claim's requests, or of a request and one of its alternatives."""
    segments = name.split("/")
    if len(segments) <= 2:
        faults += [invalid(path, segment, why) for segment in segments for why in dns_label(segment)]
    if name not in names:
        why = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
        faults.append(invalid(path, name, why))


def validate_device_config(config: Raw, path: str, faults: Faults) -> None:
    """Validate a device configuration, which is passed to the driver."""
    opaque = config.get("opaque")
    if opaque is None:
        faults.append(required(f"{path}.opaque"))
        return
    validate_driver(opaque.get("driver") or "", f"{path}.opaque.driver", faults)
    validate_raw_json(opaque.get("parameters"), f"{path}.opaque.parameters", faults)


def validate_raw_json(value: Any, path: str, faults: Faults) -> None:
    """Validate JSON for drivers, which must be a map."""
    if value is None:
        faults.append(required(path))
    elif len(go_json(value).encode()) > _LONGEST_JSON:
        faults.append(_too_long(path, "", _LONGEST_JSON))
    elif not isinstance(value, dict):
        faults.append(invalid(path, "<value omitted>", "must be a valid JSON object"))


def validate_driver(name: str, path: str, faults: Faults) -> None:
    """Validate the name of a driver."""
    if not name:
        faults.append(required(path))
    elif len(name) > _LONGEST_DOMAIN:
        faults.append(_too_long(path, name, _LONGEST_DOMAIN))
    faults += [invalid(path, name, why) for why in dns_subdomain(name.lower())]


def validate_pool_name(name: str, path: str, faults: Faults) -> None:
    """Validate the name of a pool: one or more DNS subdomains, separated by slashes."""
    if not name:
        faults.append(required(path))
        return
    if len(name) > _LONGEST_POOL:
        faults.append(_too_long(path, name, _LONGEST_POOL))
    faults += [invalid(path, part, why) for part in name.split("/") for why in dns_subdomain(part)]


def _validate_attribute_name(name: str, path: str, faults: Faults) -> None:
    """Validate the name of an attribute or a capacity: a C identifier, optionally prefixed by a domain.

    As in kube-apiserver, a name with more than one slash is not checked further.
    """
    if not name:
        faults.append(required(path, "name required"))
    if not name or name.count("/") > 1:
        return
    domain, slash, identifier = name.rpartition("/")
    if domain:
        validate_driver(domain, path, faults)
    elif slash:
        faults.append(required(path, "the domain must not be empty"))
    if not identifier:
        faults.append(required(path, "the name must not be empty"))
        return
    if len(identifier) > _LONGEST_ID:
        faults.append(_too_long(path, identifier, _LONGEST_ID))
    if not _ID.fullmatch(identifier):
        faults.append(invalid(path, identifier, _ID_RULE))


def _too_long(path: str, value: str, most: int) -> FieldError:
    return FieldError(path, value, f"Too long: may not be more than {most} bytes")


def _validate_request(request: Raw, path: str, names: set[str], faults: Faults) -> None:
    name = request.get("name") or ""
    _validate_name(name, names, f"{path}.name", faults)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    which = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        faults.append(required(path, which))
    elif exactly is not None and alternatives:
        faults.append(invalid(path, None, f"{which}, but multiple fields are set"))
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
    faults += [invalid(path, name, why) for why in dns_label(name)]
    if name in names:
        faults.append(duplicate(path, name))
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
    for index, toleration in enumerate(request.get("tolerations") or ()):
        _validate_toleration(toleration, f"{path}.tolerations[{index}]", faults)
    requested = (request.get("capacity") or {}).get("requests") or {}
    for key in requested:
        _validate_attribute_name(key, f"{path}.capacity.requests[{key}]", faults)
    validate_requested_capacity(requested.items(), f"{path}.capacity.requests", faults)


def _validate_toleration(toleration: Raw, path: str, faults: Faults) -> None:
    key, operator, value = (toleration.get(field) or "" for field in ("key", "operator", "value"))
    faults += [invalid(f"{path}.key", key, why) for why in qualified_name(key) if key]
    if not operator:
        faults.append(required(f"{path}.operator"))
    elif operator not in _TOLERATION_OPERATORS:
        faults.append(unsupported(f"{path}.operator", operator, _TOLERATION_OPERATORS))
    elif operator == "Exists" and value:
        faults.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        faults += [invalid(f"{path}.value", value, why) for why in label_value(value)]
    effect = toleration.get("effect") or ""
    if effect and effect not in _TOLERATED_EFFECTS:
        faults.append(unsupported(f"{path}.effect", effect, _TOLERATED_EFFECTS))


def _validate_selectors(selectors: Sequence[Raw], path: str, faults: Faults) -> None:
    if len(selectors) > _MOST_SELECTORS:
        faults.append(too_many(path, len(selectors), _MOST_SELECTORS))
    for index, selector in enumerate(selectors):
        cel = selector.get("cel")
        if cel is None:
            faults.append(required(f"{path}[{index}].cel"))


_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def validate_slice(item: Raw, faults: Faults) -> None:
    """Validate a ResourceSlice."""
    spec = item.get("spec") or {}
    validate_driver(spec.get("driver") or "", "spec.driver", faults)
    pool = spec.get("pool") or {}
    validate_pool_name(pool.get("name") or "", "spec.pool.name", faults)
    if (count := pool.get("resourceSliceCount") or 0) <= 0:
        faults.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if (pool.get("generation") or 0) < 0:
        why = "must be greater than or equal to zero"
        faults.append(invalid("spec.pool.generation", pool["generation"], why))
    _validate_place(spec, faults)
    devices = spec.get("devices") or ()
    if len(devices) > (most := most_devices(devices)):
        faults.append(too_many("spec.devices", len(devices), most))
    names: set[str] = set()
    for index, device in enumerate(devices):
        here = f"spec.devices[{index}]"
        _validate_name(device.get("name") or "", names, f"{here}.name", faults)
        attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
        if (count := len(attributes) + len(capacity)) > _MOST_NAMED:
            why = f"the total number of attributes and capacities must not exceed {_MOST_NAMED}"
            faults.append(invalid(here, count, why))
        for key, attribute in attributes.items():
            _validate_attribute_name(key, f"{here}.attributes[{_shown_key(key)}]", faults)
            _validate_attribute(attribute, f"{here}.attributes[{_shown_key(key)}]", faults)
        for key in capacity:
            _validate_attribute_name(key, f"{here}.capacity[{_shown_key(key)}]", faults)
        validate_device_features(device, here, faults, per_device=bool(spec.get("perDeviceNodeSelection")))
    validate_shared_counters(spec, faults)


def _shown_key(key: str) -> str:
    """Return the name of an attribute or a capacity; shorten it in the middle if it is longer than any valid name."""
    if len(key) <= _LONGEST_KEY:
        return key
    rest = _LONGEST_KEY - len("...")
    return f"{key[: (rest + 1) // 2]}...{key[-(rest // 2) :]}"


def _validate_place(spec: Raw, faults: Faults) -> None:
    """Validate the node selection of a slice, which must set exactly one of its fields."""
    if (name := spec.get("nodeName")) is not None:
        if not name:
            faults.append(invalid("spec.nodeName", name, "must be either unset or set to a non-empty string"))
        faults += [invalid("spec.nodeName", name, why) for why in dns_subdomain(name) if name]
    if (selector := spec.get("nodeSelector")) is not None:
        validate_node_selector(selector, "spec.nodeSelector", faults)
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            shown = None if terms is None else [go_struct("NodeSelectorTerm", term) for term in terms]
            why = "must have exactly one node selector term"
            faults.append(invalid("spec.nodeSelector.nodeSelectorTerms", shown, why))
    if spec.get("allNodes") is False:
        faults.append(invalid("spec.allNodes", False, "must be either unset or set to true"))
    if spec.get("perDeviceNodeSelection") is False:
        faults.append(invalid("spec.perDeviceNodeSelection", False, "must be either unset or set to true"))
    places = [place for place in _PLACES if spec.get(place) not in (None, "", False)]
    which = f"exactly one of {', '.join(f'`{place}`' for place in _PLACES)} is required"
    if not places:
        faults.append(required("spec", which))
    elif len(places) > 1:
        stated = "{" + ", ".join(f"`{place}`" for place in places) + "}"
        faults.append(invalid("spec", stated, f"{which}, but multiple fields are set"))


_VALUES: Final = (("int", "IntValue"), ("bool", "BoolValue"), ("string", "StringValue"), ("version", "VersionValue"))


def _validate_attribute(attribute: Raw, path: str, faults: Faults) -> None:
    stated = [field for field, _ in _VALUES if attribute.get(field) is not None]
    for field in ("string", "version"):
        text = attribute.get(field) or ""
        if len(text.encode()) > _LONGEST_VALUE:
            faults.append(_too_long(f"{path}.{field}", text, _LONGEST_VALUE))
    if "version" in stated and not _VERSION.fullmatch(attribute["version"]):
        why = "must be a string compatible with semver.org spec 2.0.0"
        faults.append(invalid(f"{path}.version", attribute["version"], why))
    if not stated:
        faults.append(required(path, "exactly one value must be specified"))
    elif len(stated) > 1:
        shown = {upstream: attribute.get(field) for field, upstream in _VALUES}
        faults.append(invalid(path, shown, "exactly one value must be specified"))
