"""Permissions for an impersonation: the verb `impersonate` or, since 1.36, one of several constrained modes.

A constrained mode requires the verb `impersonate:MODE` on each part of the impersonated user, and the verb
`impersonate-on:MODE:VERB` on the object of the request. The API server tries the modes in order. If no mode allows the
impersonation, the API server returns the error of the first applicable mode. Source: Kubernetes v1.37,
apiserver/pkg/endpoints/filters/impersonation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from kschedd.access.requests import AccessRequest
from kschedd.access.users import AUTHENTICATED, MASTERS, NODES, SERVICE_ACCOUNT, User, groups_of_service_account
from kschedd.api.selecting.names import is_dns_subdomain
from kschedd.apiserver.access import extra_of, groups_of

_NODE: Final = "system:node:"
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"
_AUTHENTICATION: Final = "authentication.k8s.io"


@attrs.frozen
class ImpersonationMode:
    """The permissions that an impersonation mode requires, in the order in which they are checked.

    `denied` is the reason with which the mode always rejects the last permission; "" if the authorizer decides. `node`
    is true if the impersonated user becomes a member of the group `system:nodes`.
    """

    needed: Sequence[AccessRequest]
    denied: str = ""
    node: bool = False


def impersonation_modes(
    headers: Mapping[str, str], request: AccessRequest, *, constrained: bool
) -> Iterator[ImpersonationMode]:
    """Yield the modes that apply to the impersonation in these headers; the author of `request` is the real user."""
    name, by = headers.get("impersonate-user", ""), request.user
    node = _node_of(name)
    only_name = not (headers.get("impersonate-uid") or groups_of(headers) or extra_of(headers))
    if constrained and node and only_name:
        if groups_of_service_account(by.name) and dict(by.extra).get(_NODE_NAME) == (node,):
            yield _constrained("associated-node", request, AccessRequest(by, "", _AUTHENTICATION, "nodes", name="*"))
        yield _constrained("arbitrary-node", request, AccessRequest(by, "", _AUTHENTICATION, "nodes", name=node))
    elif constrained and groups_of_service_account(name):
        if only_name:
            yield _constrained("serviceaccount", request, _of_name(name, by, "", _AUTHENTICATION))
    elif constrained and not node:
        yield _of_user_info(headers, request)
    yield ImpersonationMode(_parts(headers, by, "impersonate", ""))


def as_node(user: User) -> User:
    """Return the impersonated user of a constrained mode for nodes."""
    return attrs.evolve(user, groups=(NODES, AUTHENTICATED), judged=False)


def _node_of(name: str) -> str:
    node = name.removeprefix(_NODE)
    return node if name.startswith(_NODE) and is_dns_subdomain(node) else ""


def _constrained(mode: str, request: AccessRequest, part: AccessRequest) -> ImpersonationMode:
    needed = (_on(mode, request), attrs.evolve(part, verb=f"impersonate:{mode}"))
    return ImpersonationMode(needed, node=part.resource == "nodes")


def _on(mode: str, request: AccessRequest) -> AccessRequest:
    return attrs.evolve(request, verb=f"impersonate-on:{mode}:{request.verb}")


def _of_user_info(headers: Mapping[str, str], request: AccessRequest) -> ImpersonationMode:
    parts = _parts(headers, request.user, "impersonate:user-info", _AUTHENTICATION)
    needed = [_on("user-info", request)]
    for part in parts:
        needed.append(part)
        if part.resource == "groups" and part.name == MASTERS:
            return ImpersonationMode(needed, "impersonating the system:masters group is not allowed")
    return ImpersonationMode(needed)


def _parts(headers: Mapping[str, str], by: User, verb: str, group: str) -> list[AccessRequest]:
    """Return a request for each part of the impersonated user; users and groups belong to the API group `group`."""
    found = [_of_name(headers.get("impersonate-user", ""), by, verb, group)]
    found += [AccessRequest(by, verb, group, "groups", name=each) for each in groups_of(headers)]
    found += [
        AccessRequest(by, verb, _AUTHENTICATION, "userextras", key, name=value) for key, value in extra_of(headers)
    ]
    if uid := headers.get("impersonate-uid"):
        found.append(AccessRequest(by, verb, _AUTHENTICATION, "uids", name=uid))
    return found


def _of_name(name: str, by: User, verb: str, group: str) -> AccessRequest:
    if groups_of_service_account(name):
        namespace, _, account = name.removeprefix(SERVICE_ACCOUNT).partition(":")
        return AccessRequest(by, verb, group, "serviceaccounts", namespace=namespace, name=account)
    return AccessRequest(by, verb, group, "users", name=name)
