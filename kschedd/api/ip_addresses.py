"""IP addresses and ranges as text: what the API server takes for one.

IPv4 addresses may have leading zeros, which mean nothing; IPv6 addresses have no zone; a range says how many bits are
fixed, nothing else.

Source: k8s.io/utils/net (ParseIPSloppy, ParseCIDRSloppy), which keep to Go 1.16's net package.
"""

import ipaddress
import re
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_IPV4: Final = re.compile(r"\d+(?:\.\d+){3}", re.ASCII)
_BITS: Final = re.compile(r"\d{1,3}", re.ASCII)


def ip_address(text: str) -> Address | None:
    """The address, or None where it is not one."""
    try:
        if _IPV4.fullmatch(text):
            return ipaddress.IPv4Address(".".join(str(int(part)) for part in text.split(".")))
        return None if "%" in text else ipaddress.IPv6Address(text)
    except ValueError:
        return None


def ip_family(address: Address) -> int:
    """4 or 6; an IPv4 address may be written as one of IPv6."""
    return 4 if address.version == 4 or address.ipv4_mapped is not None else 6


def cidr_family(text: str) -> int:
    """The family of a range, 4 or 6; 0 where it is not one."""
    start, slash, bits = text.partition("/")
    address = ip_address(start) if slash and _BITS.fullmatch(bits) else None
    if address is None or int(bits) > address.max_prefixlen:
        return 0
    return ip_family(address)
