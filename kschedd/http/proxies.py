"""The proxy for a URL from the environment variables HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY.

Pure. Source: golang.org/x/net/http/httpproxy, which kubectl uses. Loopback addresses never have a proxy. An entry of
NO_PROXY is a host, a domain with its subdomains, a range of addresses, or "*". ALL_PROXY is not part of that package,
but other programs commonly support it.
"""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult

_PORTS: Final = {"http": 80, "https": 443}


def proxy_of(url: SplitResult, environ: Mapping[str, str]) -> str:
    """Return the URL of the proxy for `url`, or "" for a direct connection."""
    proxy = _variable(environ, f"{url.scheme}_proxy") or _variable(environ, "all_proxy")
    host = url.hostname or ""
    if not proxy or is_loopback(host) or _is_excluded(host, port_of(url), _variable(environ, "no_proxy")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def port_of(url: SplitResult) -> int:
    return url.port or _PORTS.get(url.scheme, 443)


def is_loopback(host: str) -> bool:
    """Return whether the host is `localhost` or a loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _is_excluded(host: str, port: int, excluded: str) -> bool:
    return any(_matches(host, port, entry.strip().lower()) for entry in excluded.split(",") if entry.strip())


def _matches(host: str, port: int, entry: str) -> bool:
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:  # the host or the entry of NO_PROXY is a name, not an address
        name, colon, number = entry.rpartition(":")
        if colon and number.isdigit():
            if int(number) != port:
                return False
            entry = name
        if entry.startswith("."):
            return host.endswith(entry)
        return host == entry or host.endswith(f".{entry}")
