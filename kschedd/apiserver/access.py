"""Who may come in: anybody of this machine on loopback, else who brings a token or a client certificate.

On loopback without TLS the request's Host must be a loopback name, and its Origin, if there is one, too: so that a web
page in a browser of this machine cannot ask in its user's name.
Raises: StatusError (401, 403); AccessError for settings that would let in anybody.
"""

import hmac
import ipaddress
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.api.numbers import whole_number
from kschedd.apiserver.reviews import ANYBODY, User
from kschedd.apiserver.status import StatusError
from kschedd.errors import KscheddError
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import Peer

_OPEN_PATHS: Final = frozenset(("healthz", "livez", "readyz", "version", "openapi"))
_FOR_EVERYBODY: Final = frozenset(("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"))
_LOCAL_NAMES: Final = frozenset(("localhost", "ip6-localhost"))


@attrs.define(eq=False)
class AccessError(KscheddError):
    """Settings of the face that cannot be used."""

    why: str

    def __str__(self) -> str:
        return f"--http: {self.why}"


@attrs.frozen
class Address:
    """Where to listen."""

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


def read_address(text: str) -> Address:
    """`127.0.0.1:8001`, `[::1]:8001`, `:8001` and `8001` (loopback), `0` for a free port. Raises AccessError."""
    host, colon, port = text.rpartition(":")
    if not colon:
        host = ""
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    number = whole_number(port)
    if number is None or number > 65535:
        raise AccessError(f'"{text}": an address is HOST:PORT, such as 127.0.0.1:8001')
    return Address(host, number)


@attrs.frozen(eq=False)
class Access:
    """The rule. `tokens` are who has them, by token; none, and no `certificates`: whoever is on this machine."""

    tokens: Mapping[str, User] = attrs.field(factory=dict, repr=False)
    certificates: bool = False
    local: bool = True  # plain HTTP on loopback

    def user_of(self, request: HttpRequest, peer: Peer) -> User:
        if self.local:
            self._check_local(request)
        return _impersonated(request, self._authenticated(request, peer))

    def _authenticated(self, request: HttpRequest, peer: Peer) -> User:
        if not self.tokens and not self.certificates:
            return ANYBODY
        named = _certified(peer.certificate) if self.certificates else None
        if named is not None:
            return named
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token:
            for known, user in self.tokens.items():
                if hmac.compare_digest(known.encode(), token.strip().encode()):
                    return user
        raise StatusError(401, "Unauthorized", "Unauthorized")

    def _check_local(self, request: HttpRequest) -> None:
        host = _host_of(request.headers.get("host", ""))
        if host and not is_loopback(host):
            raise StatusError(403, "Forbidden", f'the host "{host[:100]}" is not this machine\'s own name')
        origin = request.headers.get("origin", "")
        if origin and not is_loopback(_host_of(origin.partition("://")[2])):
            raise StatusError(403, "Forbidden", f'the origin "{origin[:100]}" may not ask here')


def _impersonated(request: HttpRequest, user: User) -> User:
    """The user in whose name somebody asks, who is let in; that one may do what its groups may."""
    name = request.headers.get("impersonate-user", "")
    if not name:
        return user
    groups = [group.strip() for group in request.headers.get("impersonate-group", "").split(",") if group.strip()]
    return User(name, (*groups, "system:authenticated"), impersonated=True)


def check_allowed(user: User, verb: str, path: str) -> None:
    """Raise StatusError (403) for what a user in whose name somebody asks may not do: all but to see what there is."""
    if user.may_do_everything:
        return
    parts = [part for part in path.split("/") if part]
    if parts[:1] in (["api"], ["apis"]):
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
        if rest and rest[0] not in _FOR_EVERYBODY:
            raise _forbidden_resource(user, verb, group, rest)
        return
    if parts and parts[0] not in _OPEN_PATHS:
        raise StatusError(403, "Forbidden", f'forbidden: User "{user.name}" cannot {verb} path "{path}"', {})


def _forbidden_resource(user: User, verb: str, group: str, rest: Sequence[str]) -> StatusError:
    where = "at the cluster scope"
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        where, rest = f'in the namespace "{rest[1]}"', rest[2:]
    resource, name = rest[0], rest[1] if len(rest) > 1 else ""
    qualified = f"{resource}.{group}" if group else resource
    shown = f'{qualified} "{name}"' if name else qualified
    asked = f"{resource}/{rest[2]}" if len(rest) > 2 else resource
    why = f'User "{user.name}" cannot {verb} resource "{asked}" in API group "{group}" {where}'
    details = {field: value for field, value in (("name", name), ("group", group)) if value}
    return StatusError(403, "Forbidden", f"{shown} is forbidden: {why}", {**details, "kind": resource})


def _host_of(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _certified(certificate: Any) -> User | None:
    """The user that a verified client certificate names: CN is the name, each O a group."""
    if not certificate:
        return None
    name, groups = "", []
    for part in certificate.get("subject") or ():
        for field, value in part:
            if field == "commonName":
                name = value
            elif field == "organizationName":
                groups.append(value)
    return User(name, (*groups, "system:authenticated")) if name else None


def read_tokens(file: Path) -> dict[str, User]:
    """kube-apiserver's token file: `token,user,uid,"group1,group2"` a line. Raises AccessError."""
    import csv

    found: dict[str, User] = {}
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for number, row in enumerate(csv.reader(lines), 1):
                if not row or row[0].startswith("#"):
                    continue
                if len(row) < 3 or not row[0].strip() or not row[1].strip():
                    raise AccessError(f"{file}:{number}: a line is TOKEN,USER,UID and perhaps GROUPS")
                groups = tuple(group for group in (row[3] if len(row) > 3 else "").split(",") if group)
                found[row[0].strip()] = User(row[1].strip(), (*groups, "system:authenticated"))
    except (OSError, UnicodeDecodeError, csv.Error) as wrong:
        raise AccessError(f"{file}: cannot be read: {getattr(wrong, 'strerror', None) or wrong}") from wrong
    if not found:
        raise AccessError(f"{file}: there is no token in it")
    return found


@attrs.frozen
class HttpSettings:
    """Where the face is and who may come in, as the command line says it."""

    address: Address
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    token_file: Path | None = None

    def access(self) -> Access:
        """Raises AccessError where anybody could come in from beyond this machine."""
        tls = self.certificate is not None
        if tls != (self.key is not None):
            raise AccessError("--http-cert and --http-key belong together")
        if self.client_ca is not None and not tls:
            raise AccessError("--http-client-ca needs TLS: give --http-cert and --http-key as well")
        tokens = {} if self.token_file is None else read_tokens(self.token_file)
        if not self.address.loopback:
            if not tls:
                why = "can be reached from other machines, and without TLS everything sent could be read and changed"
                raise AccessError(f"{self.address} {why}: give --http-cert and --http-key, or a loopback address")
            if not tokens and self.client_ca is None:
                why = "can be reached from other machines, and anybody could do anything"
                raise AccessError(
                    f"{self.address} {why}: give --http-tokens or --http-client-ca, or a loopback address"
                )
        return Access(tokens, self.client_ca is not None, self.address.loopback and not tls)

    def tls(self) -> ssl.SSLContext | None:
        """Raises AccessError."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self.certificate, self.key)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
                context.verify_mode = ssl.CERT_OPTIONAL
        except (OSError, ssl.SSLError) as wrong:
            raise AccessError(f"the certificate, its key or the client CA cannot be used: {wrong}") from wrong
        return context
