"""The variable `authorizer` of admission expressions: decisions about the request's user, and about ServiceAccounts.

The decision is what is enforced: RBAC objects judge ServiceAccounts and the users whose requests they judge; other
users may do everything.
"""

from kschedd.access.requests import AccessRequest
from kschedd.cel.functions.authorizer import CheckedRequest
from kschedd.store.authorization.judge import RbacJudge


class RequestAuthorizer:
    """The authorizer of one request. After `freeze`, any thread may call it."""

    def __init__(self, rbac: RbacJudge) -> None:
        self._rbac = rbac

    def __call__(self, checked: CheckedRequest) -> tuple[bool, str]:
        if not checked.user.judged:
            return True, ""
        request = AccessRequest(
            checked.user,
            checked.verb,
            checked.group,
            checked.resource,
            checked.subresource,
            checked.namespace,
            checked.name,
            checked.path,
        )
        decision = self._rbac.judge(request)
        return decision.allowed, decision.reason

    def freeze(self) -> None:
        """Judge by the present objects from now on, without reading the cluster."""
        self._rbac = self._rbac.frozen()
