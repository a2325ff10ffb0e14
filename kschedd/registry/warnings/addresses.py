"""Warnings about IP addresses and ranges in deprecated formats, which other software may interpret differently.

Source: Kubernetes v1.34, apimachinery/pkg/util/validation/ip.go (GetWarningsForIP, GetWarningsForCIDR).
"""

import ipaddress
from collections.abc import Iterator
from typing import Final

from kschedd.api.text.ip_addresses import Address, cidr_family, ip_address

_FUTURE: Final = "will be considered invalid in a future Kubernetes release"
_CANONICAL: Final = "should be in RFC 5952 canonical format"


def address_warnings(text: str, path: str) -> Iterator[str]:
    address = ip_address(text)
    if address is None:
        return
    if _is_mapped(address) or _has_leading_zeros(text):
        yield f'{path}: non-standard IP address "{text}" {_FUTURE}: use "{_shown(address)}"'
    elif str(address) != text:
        yield f'{path}: IPv6 address "{text}" {_CANONICAL} ("{address}")'


def range_warnings(text: str, path: str) -> Iterator[str]:
    start, _, bits = text.partition("/")
    address = ip_address(start) if cidr_family(text) else None
    if address is None:
        return
    network = ipaddress.ip_network((address, int(bits)), strict=False)
    shown = str(network)
    if _is_mapped(network.network_address):
        shown = f"{_shown(network.network_address)}/{int(bits) - 96}"
    standard = not (_is_mapped(address) or _has_leading_zeros(start) or bits != str(int(bits)))
    if network.network_address != address:
        alone = f"{_shown(address)}/{address.max_prefixlen}"
        yield f'{path}: CIDR value "{text}" is ambiguous in this context (should be "{shown}" or "{alone}"?)'
    elif standard and shown != text:
        yield f'{path}: IPv6 CIDR value "{text}" {_CANONICAL} ("{shown}")'
    if not standard:
        yield f'{path}: non-standard CIDR value "{text}" {_FUTURE}: use "{shown}"'


def _is_mapped(address: Address) -> bool:
    """Return whether the address is an IPv4-mapped IPv6 address."""
    return address.version == 6 and address.ipv4_mapped is not None


def _shown(address: Address) -> str:
    return str(address.ipv4_mapped if address.version == 6 and address.ipv4_mapped else address)


def _has_leading_zeros(text: str) -> bool:
    return ":" not in text and any(len(part) > 1 and part.startswith("0") for part in text.split("."))
