"""Kubernetes' authorizer: `authorizer.group('apps').resource('deployments').check('get').allowed()`.

A check calls the judge of the variable `authorizer` with the attributes of the request.

Source: apiserver/pkg/cel/library/authz.go.
Errors: CelFailure.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import attrs

from kschedd.access.users import AUTHENTICATED, SERVICE_ACCOUNT, User, groups_of_service_account
from kschedd.api.selecting.names import dns_label, dns_subdomain
from kschedd.cel.errors import CelFailure
from kschedd.cel.functions.overloads import define
from kschedd.cel.values import traversed

_OF: Final = "kubernetes.authorization."
AUTHORIZER: Final = f"{_OF}Authorizer"
RESOURCE_CHECK: Final = f"{_OF}ResourceCheck"
_PATH_CHECK: Final = f"{_OF}PathCheck"
_GROUP_CHECK: Final = f"{_OF}GroupCheck"
_DECISION: Final = f"{_OF}Decision"
_CHECK_COST: Final = 350_000


class Judge(Protocol):
    """The judge of checks."""

    def __call__(self, checked: "CheckedRequest") -> tuple[bool, str]:
        """Return whether the request is allowed, and the reason."""

    def freeze(self) -> None:
        """Prepare for calls by another thread."""


@attrs.frozen
class CheckedRequest:
    """The user and the request that is checked, at each stage of its construction."""

    type_name: str
    judge: Judge = attrs.field(eq=False)
    user: User
    path: str = ""
    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    allowed: bool = False
    reason: str = ""


def _named(field: str, wanted: str) -> Callable[[CheckedRequest, str], CheckedRequest]:
    def with_value(checked: CheckedRequest, value: str) -> CheckedRequest:
        if field in ("path", "resource") and not value.strip():
            raise CelFailure(f"{field} must not be empty")
        changes: dict[str, Any] = {"type_name": wanted, field: value}
        return attrs.evolve(checked, **changes)

    return with_value


def _service_account(checked: CheckedRequest, namespace: str, name: str) -> CheckedRequest:
    if dns_subdomain(name):
        raise CelFailure("Invalid service account name")
    if dns_label(namespace):
        raise CelFailure("Invalid service account namespace")
    user = f"{SERVICE_ACCOUNT}{namespace}:{name}"
    groups = (*groups_of_service_account(user), AUTHENTICATED)
    return attrs.evolve(checked, user=User(user, groups, judged=True))


def _check(checked: CheckedRequest, verb: str) -> CheckedRequest:
    wanted = attrs.evolve(checked, type_name=_DECISION, verb=verb)
    allowed, reason = checked.judge(wanted)
    return attrs.evolve(wanted, allowed=allowed, reason=reason)


def _selector_cost(_: Any, selector: str) -> int:
    return 10 + traversed(len(selector)) + -(-len(selector) // 2) * 50


define(".path", f"{AUTHORIZER} string", _PATH_CHECK, _named("path", _PATH_CHECK))
define(".group", f"{AUTHORIZER} string", _GROUP_CHECK, _named("group", _GROUP_CHECK))
define(".serviceAccount", f"{AUTHORIZER} string string", AUTHORIZER, _service_account)
define(".resource", f"{_GROUP_CHECK} string", RESOURCE_CHECK, _named("resource", RESOURCE_CHECK))
for _field in ("subresource", "namespace", "name"):
    define(f".{_field}", f"{RESOURCE_CHECK} string", RESOURCE_CHECK, _named(_field, RESOURCE_CHECK))
for _selector in ("fieldSelector", "labelSelector"):
    define(f".{_selector}", f"{RESOURCE_CHECK} string", RESOURCE_CHECK, lambda a, _: a, _selector_cost)
define(".check", f"{_PATH_CHECK} string", _DECISION, _check, lambda *_: _CHECK_COST)
define(".check", f"{RESOURCE_CHECK} string", _DECISION, _check, lambda *_: _CHECK_COST)
define(".errored", _DECISION, "bool", lambda a: False)
define(".error", _DECISION, "string", lambda a: "")
define(".allowed", _DECISION, "bool", lambda a: a.allowed)
define(".reason", _DECISION, "string", lambda a: a.reason)
