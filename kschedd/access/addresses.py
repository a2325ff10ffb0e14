"""Network addresses: parsing of listen addresses, and detection of loopback addresses. Raises: AccessError."""

import ipaddress
from typing import Final

import attrs

from kschedd.access.errors import AccessError

_LOCAL_NAMES: Final = frozenset(("localhost", "ip6-localhost"))
SCHEME: Final = "tcp://"


@attrs.frozen
class Address:
    """A listen address."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def is_loopback(host: str) -> bool:
    if host.lower() in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_address(text: str, flag: str = "--http", example: str = "127.0.0.1:8001") -> Address:
    """Parse `127.0.0.1:8001`, `[::1]:8001`, `:8001` and `8001` (loopback); 0 means a free port.

    Raises AccessError.
    """
    host, colon, port = text.rpartition(":")
    if not colon:
        host = ""
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        raise AccessError(f'"{text}": an address is HOST:PORT, such as {example}', flag)
    return Address(host, int(port))
