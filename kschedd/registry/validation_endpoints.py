"""Validation of Endpoints: the addresses and ports of each subset.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateEndpoints).
Takes objects that match the schema and have their defaults; appends to `faults`.
"""

from typing import Any, Final

from kschedd.api.fields import FieldError, invalid, required, unsupported
from kschedd.api.ip_addresses import Address, ip_address
from kschedd.api.validation_names import between, dns_label, dns_subdomain, qualified_name
from kschedd.registry.service_addresses import BAD_ADDRESS

Raw = dict[str, Any]
Faults = list[FieldError]

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PORT_RANGE: Final = between(1, 65535)


def validate_endpoints(endpoints: Raw, faults: Faults) -> None:
    """Append the faults of Endpoints."""
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
        validate_endpoint_address(found, text, f"{path}.ip", faults)


def validate_endpoint_address(address: Address, text: str, path: str, faults: Faults) -> None:
    """Append the fault of an address that no endpoint can have."""
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
    name, number, protocol = port.get("name") or "", port.get("port") or 0, port.get("protocol") or ""
    if name:
        faults += [invalid(f"{path}.name", name, why) for why in dns_label(name)]
    elif named:
        faults.append(required(f"{path}.name"))
    if not 1 <= number <= 65535:
        faults.append(invalid(f"{path}.port", number, _PORT_RANGE))
    if not protocol:
        faults.append(required(f"{path}.protocol"))
    elif protocol not in _PROTOCOLS:
        faults.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    if (of_application := port.get("appProtocol")) is not None:
        faults += [invalid(f"{path}.appProtocol", of_application, why) for why in qualified_name(of_application)]
