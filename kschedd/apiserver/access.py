"""Access control: loopback is open to every local client; other addresses require a token or a client certificate.

An invalid JSON Web Token is rejected on every address, and with `--authorization-mode RBAC` every invalid token.

On loopback without TLS, the Host of a request must be a loopback name, and so must its Origin, if it has one. The check
prevents web pages in a local browser from sending requests in the user's name.

Raises: StatusError (401, 403).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

import attrs

from kschedd.access.addresses import Address, is_loopback
from kschedd.access.credentials import Credentials, ListenSettings, certified
from kschedd.access.requests import AccessRequest
from kschedd.access.users import ANYBODY, READ_VERBS, User, all_groups
from kschedd.apiserver.codec.status import StatusError, bad_request
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import Peer

_EXTRA: Final = "impersonate-extra-"
FOR_EVERYBODY: Final = frozenset(("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"))


@attrs.frozen(eq=False)
class Access:
    """The access rule. If no credentials are configured, every client on this machine has access."""

    credentials: Credentials = attrs.field(factory=lambda: ListenSettings(Address("127.0.0.1", 0)).load())
    account_of: Callable[[str], User | None] = lambda token: None  # returns the user of a ServiceAccount's token

    @property
    def asks_for_credentials(self) -> bool:
        return bool(self.credentials.tokens) or self.credentials.settings.client_ca is not None

    def user_of(self, request: HttpRequest, peer: Peer) -> User:
        """Return the user in whose name a request is made. Raises StatusError."""
        return _impersonated(request, self.authenticated(request, peer))

    def authenticated(self, request: HttpRequest, peer: Peer) -> User:
        """Return the user at the other end of the connection. Raises StatusError."""
        return self.accepted(request, self._authenticated(request, peer))

    def accepted(self, request: HttpRequest, user: User) -> User:
        """Return the user of a request that has been authenticated, under RBAC if it is enforced.

        Raises StatusError if Host or Origin of a request on loopback is not this machine.
        """
        if self.credentials.settings.local:
            self._check_local(request)
        return user.under_rbac() if self.credentials.settings.rbac else user

    def _authenticated(self, request: HttpRequest, peer: Peer) -> User:
        known, certificates = self.credentials.tokens, self.credentials.settings.client_ca is not None
        named = certified(peer.certificate) if certificates else None
        if named is not None:
            return named
        token = bearer_token(request)
        if token:
            user = known.user_of(token) or self.account_of(token)
            if user is not None:
                return user
            if self.credentials.settings.rbac or token.count(".") == 2:  # JSON Web Tokens identify ServiceAccounts
                raise unauthorized()
        if not known and not certificates:
            return ANYBODY
        raise unauthorized()

    def _check_local(self, request: HttpRequest) -> None:
        host = _host_of(request.headers.get("host", ""))
        if host and not is_loopback(host):
            raise StatusError(403, "Forbidden", f'the host "{host[:100]}" is not this machine\'s own name')
        origin = request.headers.get("origin", "")
        if origin and not is_loopback(_host_of(origin.partition("://")[2])):
            raise StatusError(403, "Forbidden", f'requests from the origin "{origin[:100]}" are not allowed')


def bearer_token(request: HttpRequest) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def _impersonated(request: HttpRequest, user: User) -> User:
    """Return the impersonated user of a request; by default the user itself. Raises StatusError.

    RBAC objects judge the requests of an impersonated user.
    """
    headers = request.headers
    name = headers.get("impersonate-user", "")
    groups = groups_of(headers)
    extra = extra_of(headers)
    uid = headers.get("impersonate-uid", "")
    if not name:
        if groups or extra or uid:
            raise bad_request("requested impersonation of groups, uid or extra without impersonating a user name")
        return user
    if user.read_only:
        raise forbidden(AccessRequest(user, "impersonate", resource="users", name=name[:100]))
    acting = User(name, all_groups(name, groups), True, uid, user.name, user.groups, _by_key(extra))
    return acting.under_rbac()


def groups_of(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the groups of an impersonated user."""
    return tuple(group.strip() for group in headers.get("impersonate-group", "").split(",") if group.strip())


def extra_of(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the extra attributes of an impersonated user: key and value."""
    found = []
    for field, values in headers.items():
        if field.startswith(_EXTRA):
            key = unquote(field.removeprefix(_EXTRA))
            found += [(key, value.strip()) for value in values.split(",")]
    return found


def _by_key(extra: Sequence[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, tuple[str, ...]] = {}
    for key, value in extra:
        found[key] = (*found.get(key, ()), value)
    return tuple(sorted(found.items()))


def check_allowed(request: AccessRequest) -> None:
    """Raise StatusError (403) if the user is read-only and the request may write."""
    user = request.user
    if user.read_only and request.verb not in (*READ_VERBS, "head") and request.resource not in FOR_EVERYBODY:
        raise forbidden(request)


def forbidden(request: AccessRequest, reason: str = "") -> StatusError:
    """Return the error for a request without permission; `reason` is that of the authorizer."""
    details: dict[str, str] = {}
    if not request.path:
        details = {"name": request.name, "group": request.group, "kind": request.resource}
    shown = {field: value for field, value in details.items() if value}
    return StatusError(403, "Forbidden", request.refusal_of_object(reason), shown)


def _host_of(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]
