"""The method that decides whether a user may make a request, as access reviews of the REST API do."""

from typing import Annotated, Any

import attrs

from kschedd.access.requests import AccessDecision, AccessRequest
from kschedd.access.users import READ_VERBS, User, all_groups
from kschedd.service.cluster import ClusterBackend
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method
from kschedd.store.cluster_api import ClusterReader

_FIELDS = ("group", "resource", "subresource", "namespace", "name", "path")


@attrs.frozen
class ReviewAnswer:
    """The decision about a request."""

    allowed: bool
    reason: Annotated[str, "the role and binding that allow the request, or the reason for a refusal, if any"]


@attrs.frozen(eq=False)
class AccessMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "access.review",
        (
            Param("verb", "string", doc="`get`, `list`, `create`, ...; for a path `get`, `post`, ..."),
            Param("resource", "string", False, "", "plural name of a resource, such as `pods`; `*`: all"),
            Param("group", "string", False, "", "API group of the resource"),
            Param("subresource", "string", False, "", "such as `log`"),
            Param("namespace", "string", False, "", '"": all namespaces, or a cluster-scoped resource'),
            Param("name", "string", False, "", "name of an object"),
            Param("path", "string", False, "", "path of a URL without a resource, such as `/healthz`"),
            Param("user", "string", False, doc="user to judge by Roles and bindings; null: the caller"),
            Param("groups", "string[]", False, doc="groups of `user`, instead of those of a ServiceAccount"),
        ),
        reads=True,
        doc="Decides whether a user may make a request. Roles and bindings judge a given user, even if they are not "
        "enforced; the answer for the caller reports what is enforced.",
        answer=ReviewAnswer,
    )
    async def review(self, call: Call) -> Any:
        own: User = call.services.caller.user
        name = call["user"]
        user = own if name is None else User(name, all_groups(name, tuple(call["groups"] or ())), judged=True)
        request = AccessRequest(user, call["verb"], **{field: call[field] for field in _FIELDS})
        decision = await self._cluster.store.do(lambda store: _decide(store, request))
        return ReviewAnswer(decision.allowed, decision.reason)


def _decide(store: ClusterReader, request: AccessRequest) -> AccessDecision:
    user = request.user
    if user.read_only and request.verb not in READ_VERBS:
        return AccessDecision(False, f"{user.name} is read-only here")
    return store.rbac.judge(request) if user.judged else AccessDecision(True)
