"""IP addresses and ranges as text, parsed as in kube-apiserver.

IPv4 addresses may have leading zeros, which are ignored. IPv6 addresses have no zone. A range has a
prefix length (`/24`), never a netmask.

Source: k8s.io/utils/net (ParseIPSloppy, ParseCIDRSloppy), which preserve the behavior of Go 1.16's net package;
Kubernetes v1.34, apimachinery/pkg/util/validation/ip.go (IsValidIP, IsValidCIDR).
"""

import ipaddress
import re
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_IPV4: Final = re.compile(r"\d+(?:\.\d+){3}", re.ASCII)
_BITS: Final = re.compile(r"\d{1,3}", re.ASCII)


def ip_address(text: str) -> Address | None:
    """Return the address; None if the text is not an address."""
    try:
        if _IPV4.fullmatch(text):
            return ipaddress.IPv4Address(".".join(str(int(part)) for part in text.split(".")))
        return None if "%" in text else ipaddress.IPv6Address(text)
    except ValueError:
        return None


def ip_family(address: Address) -> int:
    """Return 4 or 6; an IPv4 address may be written as an IPv6 address."""
    return 4 if address.version == 4 or address.ipv4_mapped is not None else 6


def cidr_family(text: str) -> int:
    """Return the family of a range, 4 or 6, or 0 if the text is not a range."""
    start, slash, bits = text.partition("/")
    address = ip_address(start) if slash and _BITS.fullmatch(bits) else None
    if address is None or int(bits) > address.max_prefixlen:
        return 0
    return ip_family(address)


def address_faults(text: str) -> list[str]:
    """Return the errors in an IP address, which must have exactly the form in which Go prints it."""
    address = ip_address(text)
    if address is None:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    faults = []
    if _has_leading_zeros(text):
        faults.append("must not have leading 0s")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        faults.append("must not be an IPv4-mapped IPv6 address")
    if not faults and text != (written := _written(address)):
        faults.append(f'must be in canonical form ("{written}")')
    return faults


def range_faults(text: str) -> list[str]:
    """Return the errors in a range of IP addresses."""
    if not cidr_family(text):
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    start, _, bits = text.partition("/")
    address = ip_address(start)
    assert address is not None, "a range begins with an address"
    if _has_leading_zeros(start) or (len(bits) > 1 and bits[0] == "0"):
        return ["must not have leading 0s in IP or prefix length"]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return ["must not have an IPv4-mapped IPv6 address"]
    network = ipaddress.ip_network(f"{address}/{bits}", strict=False)
    if network.network_address != address:
        return ["must not have bits set beyond the prefix length"]
    return [] if text == (written := _written_range(network)) else [f'must be in canonical form ("{written}")']


def _written(address: Address) -> str:
    """Return the address in Go's format, which differs from Python's for IPv4 addresses in IPv6 notation."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(address if mapped is None else mapped)


def _written_range(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    """Return the range in Go's format."""
    return f"{_written(network.network_address)}/{network.prefixlen}"


def _has_leading_zeros(text: str) -> bool:
    """Return whether a decimal part of an address has a leading zero."""
    return "." in text and any(len(part) > 1 and part[0] == "0" for part in text.rpartition(":")[2].split("."))
