"""Kubernetes' IP addresses, address ranges, URLs and named formats.

Source: apiserver/pkg/cel/library/{ip,cidr,urls,format,cost}.go; Go's net/netip and net/url packages.
Errors: CelFailure.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from kschedd.api.selecting.names import (
    dns1035_label,
    dns_label,
    dns_subdomain,
    label_value,
    qualified_name,
    without_last_dash,
)
from kschedd.cel.errors import CelFailure
from kschedd.cel.functions.overloads import define
from kschedd.cel.functions.times import timestamp_fault
from kschedd.cel.values import Opaque, Optional, traversed

IP: Final = "net.IP"
CIDR: Final = "net.CIDR"
URL: Final = "kubernetes.URL"
FORMAT: Final = "kubernetes.NamedFormat"


def _through(text: str, *_: Any) -> int:
    return traversed(len(text))


def _holds(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            parse(text)
        except CelFailure:
            return False
        return True

    return holds


# -- addresses ------------------------------------------------------------------------------------------------


def _address(text: str) -> Any:
    try:
        found = ipaddress.ip_address(text)
    except ValueError as fault:
        why = f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): unable to parse IP'
        raise CelFailure(why) from fault
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None:
            raise CelFailure(f'IP address "{text}" with zone value is not allowed')
        if found.ipv4_mapped is not None:
            raise CelFailure(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def _ip(text: str) -> Opaque:
    return Opaque(IP, _address(text))


def _range(text: str) -> Any:
    before = "network address parse error during conversion from string: "
    start, slash, bits = text.partition("/")
    if not slash:
        raise CelFailure(f"{before}{before}netip.ParsePrefix(\"{text}\"): no '/'")
    try:
        if not re.fullmatch(r"0|[1-9][0-9]{0,2}", bits):
            raise ValueError
        found = ipaddress.ip_interface(f"{start}/{bits}")
    except ValueError as fault:
        raise CelFailure(f'{before}{before}netip.ParsePrefix("{text}"): unable to parse') from fault
    if isinstance(found, ipaddress.IPv6Interface) and found.ip.ipv4_mapped is not None:
        raise CelFailure(f'{before}IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def _cidr(text: str) -> Opaque:
    return Opaque(CIDR, _range(text))


def _contains_ip(cidr: Opaque, address: Any) -> bool:
    address = _address(address) if isinstance(address, str) else address.value
    return address in cidr.value.network


def _contains_cidr(cidr: Opaque, other: Any) -> bool:
    inner = _range(other) if isinstance(other, str) else other.value
    same = inner.version == cidr.value.version
    return same and bool(inner.network.subnet_of(cidr.value.network))


def _size(cidr: Opaque) -> int:
    """Return upstream's size of a range: the octets of its address and one for its length."""
    return 5 if cidr.value.version == 4 else 17


def _ip_cost(cidr: Opaque, other: Any) -> int:
    return traversed(2 * _size(cidr)) + (traversed(len(other)) if isinstance(other, str) else 0)


def _cidr_cost(cidr: Opaque, other: Any) -> int:
    return _ip_cost(cidr, other) + traversed(_size(cidr)) + 1


_LINK_LOCAL_MULTICAST: Final[dict[int, Any]] = {
    4: ipaddress.ip_network("224.0.0.0/24"),
    6: ipaddress.ip_network("ff02::/16"),
}

define("ip", "string", IP, _ip, _through)
define("isIP", "string", "bool", _holds(_address), _through)
define("ip.isCanonical", "string", "bool", lambda a: str(_address(a)) == a, lambda a: traversed(2 * len(a)))
define("string", IP, "string", lambda a: str(a.value))
define(".family", IP, "int", lambda a: a.value.version)
define(".isUnspecified", IP, "bool", lambda a: a.value.is_unspecified)
define(".isLoopback", IP, "bool", lambda a: a.value.is_loopback)
define(".isLinkLocalMulticast", IP, "bool", lambda a: a.value in _LINK_LOCAL_MULTICAST[a.value.version])
define(".isLinkLocalUnicast", IP, "bool", lambda a: a.value.is_link_local)
define(
    ".isGlobalUnicast",
    IP,
    "bool",
    lambda a: (
        not (
            a.value.is_unspecified
            or a.value.is_loopback
            or a.value.is_multicast
            or a.value.is_link_local
            or str(a.value) == "255.255.255.255"
        )
    ),
)
define("cidr", "string", CIDR, _cidr, _through)
define("isCIDR", "string", "bool", _holds(_range), _through)
define("string", CIDR, "string", lambda a: str(a.value))
define(".containsIP", f"{CIDR} string", "bool", _contains_ip, _ip_cost)
define(".containsIP", f"{CIDR} {IP}", "bool", _contains_ip, _ip_cost)
define(".containsCIDR", f"{CIDR} string", "bool", _contains_cidr, _cidr_cost)
define(".containsCIDR", f"{CIDR} {CIDR}", "bool", _contains_cidr, _cidr_cost)
define(".ip", CIDR, IP, lambda a: Opaque(IP, a.value.ip))
define(".prefixLength", CIDR, "int", lambda a: a.value.network.prefixlen)
define(".masked", CIDR, CIDR, lambda a: Opaque(CIDR, ipaddress.ip_interface(str(a.value.network))))

# -- URLs -----------------------------------------------------------------------------------------------------


def _url_fault(text: str) -> str:
    """Return why Go's url.ParseRequestURI rejects the text; "" if it accepts the text."""
    shown = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        return f"parse {shown}: net/url: invalid control character in URL"
    if not text:
        return 'parse "": empty url'
    scheme, colon, rest = text.partition(":")
    if text.startswith(":"):
        return f"parse {shown}: missing protocol scheme"
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        rest = text
    elif not rest.startswith("/"):
        return f"parse {shown}: invalid URI for request"
    if not rest.startswith("/"):
        return f"parse {shown}: invalid URI for request"
    wrong = re.search(r"%(?![0-9A-Fa-f]{2}).{0,2}", rest.partition("?")[0])
    if wrong is not None:
        return f'parse {shown}: invalid URL escape "{wrong[0]}"'
    host = rest[2:].partition("/")[0].rpartition("@")[2] if rest.startswith("//") and rest is not text else ""
    port = re.search(r":[^:\]]*$", host)
    if port is not None and not re.fullmatch(r":[0-9]*", port[0]):
        return f'parse {shown}: invalid port "{port[0]}" after host'
    if " " in host:
        return f'parse {shown}: invalid character " " in host name'
    return ""


def _url(text: str) -> Opaque:
    if why := _url_fault(text):
        raise CelFailure(f"URL parse error during conversion from string: {why}")
    return Opaque(URL, text)


def _host(url: Opaque) -> str:
    return str(urlsplit(url.value).netloc).rpartition("@")[2]


def _hostname(url: Opaque) -> str:
    host = _host(url)
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _port(url: Opaque) -> str:
    return _host(url).rpartition("]")[2].partition(":")[2]


def _path(url: Opaque) -> str:
    return quote(urlsplit(url.value).path, safe="/%:@!$&'()*+,;=~-._")


def _query(url: Opaque) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url.value).query, keep_blank_values=True)


define("url", "string", URL, _url, _through)
define("isURL", "string", "bool", lambda a: not _url_fault(a))
define(".getScheme", URL, "string", lambda a: urlsplit(a.value).scheme)
define(".getHost", URL, "string", _host)
define(".getHostname", URL, "string", _hostname)
define(".getPort", URL, "string", _port)
define(".getEscapedPath", URL, "string", _path)
define(".getQuery", URL, "map(string,list(string))", _query)

# -- formats --------------------------------------------------------------------------------------------------

_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


def _base64_faults(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return [] if text else ["invalid base64"]


def _date_faults(text: str) -> list[str]:
    fits = re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) and not timestamp_fault(f"{text}T00:00:00Z")
    return [] if fits else ["invalid date"]


def _prefix(check: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: check(without_last_dash(text))


_FORMATS: Final[
    dict[str, tuple[Callable[[str], Any], int]]
] = {  # errors of a text, and upstream's length of the pattern
    "dns1123Label": (dns_label, 30),
    "dns1123Subdomain": (dns_subdomain, 60),
    "dns1035Label": (dns1035_label, 30),
    "qualifiedName": (qualified_name, 60),
    "dns1123LabelPrefix": (_prefix(dns_label), 30),
    "dns1123SubdomainPrefix": (_prefix(dns_subdomain), 60),
    "dns1035LabelPrefix": (_prefix(dns1035_label), 30),
    "labelValue": (label_value, 40),
    "uri": (lambda text: [why] if (why := _url_fault(text)) else [], 1000),
    "uuid": (lambda text: [] if _UUID.fullmatch(text) else ["does not match the UUID format"], 71),
    "byte": (_base64_faults, 83),
    "date": (_date_faults, 71),
    "datetime": (lambda text: ["invalid datetime"] if timestamp_fault(text) else [], 71),
}


def _validated(format: Opaque, text: str) -> Optional:
    faults = list(_FORMATS[format.value][0](text))
    return Optional((faults,)) if faults else Optional()


def _validation_cost(format: Opaque, text: str) -> int:
    return traversed(1 + len(text)) * -(-_FORMATS[format.value][1] // 4)


for _name in _FORMATS:
    define(f"format.{_name}", "", FORMAT, lambda name=_name: Opaque(FORMAT, name))
define(
    "format.named",
    "string",
    f"optional({FORMAT})",
    lambda name: Optional((Opaque(FORMAT, name),)) if name in _FORMATS else Optional(),
)
define(".validate", f"{FORMAT} string", "optional(list(string))", _validated, _validation_cost)
