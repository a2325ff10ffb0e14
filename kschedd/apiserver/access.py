"""Access control: loopback is open to every local client; other addresses require a token or a client certificate.

On loopback without TLS, the Host of a request must be a loopback name, and so must its Origin, if it has one. The check
prevents web pages in a local browser from sending requests in the user's name.

Raises: StatusError (401, 403).
"""

from collections.abc import Sequence
from typing import Final

import attrs

from kschedd.access.addresses import Address, is_loopback
from kschedd.access.credentials import Credentials, ListenSettings, certified
from kschedd.access.users import ANYBODY, AUTHENTICATED, READ_VERBS, User
from kschedd.apiserver.codec.status import StatusError
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import Peer

_OPEN_PATHS: Final = frozenset(("healthz", "livez", "readyz", "version", "openapi"))
FOR_EVERYBODY: Final = frozenset(("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"))


@attrs.frozen(eq=False)
class Access:
    """The access rule. If no credentials are configured, every client on this machine has access."""

    credentials: Credentials = attrs.field(factory=lambda: ListenSettings(Address("127.0.0.1", 0)).load())

    @property
    def asks_for_credentials(self) -> bool:
        return bool(self.credentials.tokens) or self.credentials.settings.client_ca is not None

    def user_of(self, request: HttpRequest, peer: Peer) -> User:
        if self.credentials.settings.local:
            self._check_local(request)
        return _impersonated(request, self._authenticated(request, peer))

    def _authenticated(self, request: HttpRequest, peer: Peer) -> User:
        known, certificates = self.credentials.tokens, self.credentials.settings.client_ca is not None
        if not known and not certificates:
            return ANYBODY
        named = certified(peer.certificate) if certificates else None
        if named is not None:
            return named
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token:
            user = known.user_of(token.strip())
            if user is not None:
                return user
        raise StatusError(401, "Unauthorized", "Unauthorized")

    def _check_local(self, request: HttpRequest) -> None:
        host = _host_of(request.headers.get("host", ""))
        if host and not is_loopback(host):
            raise StatusError(403, "Forbidden", f'the host "{host[:100]}" is not this machine\'s own name')
        origin = request.headers.get("origin", "")
        if origin and not is_loopback(_host_of(origin.partition("://")[2])):
            raise StatusError(403, "Forbidden", f'requests from the origin "{origin[:100]}" are not allowed')


def _impersonated(request: HttpRequest, user: User) -> User:
    """Return the impersonated user of a request, with the rights of its groups; by default the user itself."""
    name = request.headers.get("impersonate-user", "")
    if not name:
        return user
    if user.read_only:
        why = f'User "{user.name}" cannot impersonate resource "users" in API group "" at the cluster scope'
        raise StatusError(
            403, "Forbidden", f'users "{name[:100]}" is forbidden: {why}', {"name": name, "kind": "users"}
        )
    groups = [group.strip() for group in request.headers.get("impersonate-group", "").split(",") if group.strip()]
    return User(name, (*groups, AUTHENTICATED), impersonated=True, by=user.name, by_groups=user.groups)


def check_allowed(user: User, verb: str, path: str) -> None:
    """Raise StatusError (403) if the user may not run this request.

    A read-only user may not write. An impersonated user without rights may read only what every user may read.
    """
    if user.may_do_everything or (user.read_only and verb in READ_VERBS):
        return
    parts = [part for part in path.split("/") if part]
    if parts[:1] in (["api"], ["apis"]):
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
        if rest and rest[0] not in FOR_EVERYBODY:
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
    requested = f"{resource}/{rest[2]}" if len(rest) > 2 else resource
    why = f'User "{user.name}" cannot {verb} resource "{requested}" in API group "{group}" {where}'
    details = {field: value for field, value in (("name", name), ("group", group)) if value}
    return StatusError(403, "Forbidden", f"{shown} is forbidden: {why}", {**details, "kind": resource})


def _host_of(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]
