"""Validation of Endpoints and EndpointSlices: addresses and ports.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateEndpoints), pkg/apis/discovery/validation.
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, invalid, required, too_many, unsupported
from kschedd.api.selecting.names import between, dns_label, dns_subdomain, label_value, qualified_name
from kschedd.api.text.ip_addresses import Address, address_faults, ip_address, ip_family
from kschedd.registry.networking.service_addresses import BAD_ADDRESS

Raw = dict[str, Any]
Faults = list[FieldError]

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PORT_RANGE: Final = between(1, 65535)
_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_MOST_ENDPOINTS: Final = 1000
_MOST_ADDRESSES: Final = 100
_MOST_PORTS: Final = 20_000
_MOST_ZONES: Final = 8


def validate_endpoint_slice(item: Raw, faults: Faults) -> None:
    """Append the errors of an EndpointSlice."""
    kind, endpoints, ports = item.get("addressType") or "", item.get("endpoints") or (), item.get("ports") or ()
    if not kind:
        faults.append(required("addressType"))
    elif kind not in _ADDRESS_TYPES:
        faults.append(unsupported("addressType", kind, _ADDRESS_TYPES))
    if len(endpoints) > _MOST_ENDPOINTS:
        faults.append(too_many("endpoints", len(endpoints), _MOST_ENDPOINTS))
    else:
        for index, endpoint in enumerate(endpoints):
            _validate_endpoint(endpoint, kind, f"endpoints[{index}]", faults)
    if len(ports) > _MOST_PORTS:
        faults.append(too_many("ports", len(ports), _MOST_PORTS))
        return
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"ports[{index}]", port.get("name") or ""
        if name:
            faults += [invalid(f"{here}.name", name, why) for why in dns_label(name)]
        if name in names:
            faults.append(duplicate(f"{here}.name", name))
        names.add(name)
        _validate_protocols(port, here, faults, stated="protocol" in port)


def _validate_endpoint(endpoint: Raw, kind: str, path: str, faults: Faults) -> None:
    addresses, node, host = endpoint.get("addresses") or (), endpoint.get("nodeName"), endpoint.get("hostname")
    if not addresses:
        faults.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > _MOST_ADDRESSES:
        faults.append(too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES))
    for index, address in enumerate(addresses):
        _validate_typed_address(address, kind, f"{path}.addresses[{index}]", faults)
    if node is not None:
        faults += [invalid(f"{path}.nodeName", node, why) for why in dns_subdomain(node)]
    if host is not None:
        faults += [invalid(f"{path}.hostname", host, why) for why in dns_label(host)]
    zones, here = (endpoint.get("hints") or {}).get("forZones") or (), f"{path}.hints.forZones"
    if len(zones) > _MOST_ZONES:
        faults.append(too_many(here, len(zones), _MOST_ZONES))
        return
    names = [zone.get("name") or "" for zone in zones]
    for index, name in enumerate(names):
        if name in names[:index]:
            faults.append(duplicate(f"{here}[{index}].name", name))
        faults += [invalid(f"{here}[{index}].name", name, why) for why in label_value(name)]


def _validate_typed_address(text: str, kind: str, path: str, faults: Faults) -> None:
    if kind == "FQDN":
        _validate_domain(text, path, faults)
    elif kind in _ADDRESS_TYPES:
        found = ip_address(text)
        wrong = address_faults(text) if kind == "IPv6" else [BAD_ADDRESS] if found is None else []
        faults += [invalid(path, text, why) for why in wrong]
        if found is not None and not wrong:
            if f"IPv{ip_family(found)}" != kind:
                faults.append(invalid(path.rpartition("[")[0], text, f"must be an {kind} address"))
            _validate_reachable(found, text, path, faults)


def _validate_domain(text: str, path: str, faults: Faults) -> None:
    if not text:
        faults.append(required(path))
        return
    name = text.removesuffix(".")
    if wrong := dns_subdomain(name):
        faults.append(invalid(path, name, ",".join(wrong)))
    elif "." not in name:
        faults.append(invalid(path, name, "should be a domain with at least two segments separated by dots"))
    else:
        for label in name.split("."):
            if wrong := dns_label(label):
                faults.append(invalid(path, label, ",".join(wrong)))
                return


def validate_endpoints(endpoints: Raw, faults: Faults) -> None:
    """Append the errors of Endpoints."""
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        here = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            faults.append(required(here, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(field) or ()):
                _validate_address(address, f"{here}.{field}[{number}]", faults)
        ports = subset.get("ports") or ()
        for number, port in enumerate(ports):
            _validate_port(port, f"{here}.ports[{number}]", faults, named=len(ports) > 1)


def _validate_address(address: Raw, path: str, faults: Faults) -> None:
    text, host, node = address.get("ip") or "", address.get("hostname"), address.get("nodeName")
    found = ip_address(text)
    if found is None:
        faults.append(invalid(f"{path}.ip", text, BAD_ADDRESS))
    if host:
        faults += [invalid(f"{path}.hostname", host, why) for why in dns_label(host)]
    if node is not None:
        faults += [invalid(f"{path}.nodeName", node, why) for why in dns_subdomain(node)]
    if found is None:
        faults.append(invalid(f"{path}.ip", text, "must be a valid IP address"))
    else:
        _validate_reachable(found, text, f"{path}.ip", faults)


def _validate_reachable(address: Address, text: str, path: str, faults: Faults) -> None:
    """Append an error for an address that an endpoint cannot have."""
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_unspecified:
        faults.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        faults.append(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        faults.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if address.is_multicast and _is_link_local_multicast(address):
        why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        faults.append(invalid(path, text, why))


def _is_link_local_multicast(address: Address) -> bool:
    packed = address.packed
    return packed[:3] == b"\xe0\0\0" if address.version == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 0x02


def _validate_port(port: Raw, path: str, faults: Faults, *, named: bool) -> None:
    name, number = port.get("name") or "", port.get("port") or 0
    if name:
        faults += [invalid(f"{path}.name", name, why) for why in dns_label(name)]
    elif named:
        faults.append(required(f"{path}.name"))
    if not 1 <= number <= 65535:
        faults.append(invalid(f"{path}.port", number, _PORT_RANGE))
    _validate_protocols(port, path, faults)


def _validate_protocols(port: Raw, path: str, faults: Faults, *, stated: bool = False) -> None:
    """Append the errors of a port's protocols.

    With `stated`, an empty protocol is reported as unsupported instead of missing.
    """
    protocol = port.get("protocol") or ""
    if not protocol and not stated:
        faults.append(required(f"{path}.protocol"))
    elif protocol not in _PROTOCOLS:
        faults.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    if (of_application := port.get("appProtocol")) is not None:
        faults += [invalid(f"{path}.appProtocol", of_application, why) for why in qualified_name(of_application)]
