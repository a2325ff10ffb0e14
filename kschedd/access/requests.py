"""Requests as authorization sees them: who wants to do what to which object or path.

Source: Kubernetes v1.37, apiserver/pkg/authorization/authorizer/interfaces.go,
apiserver/pkg/endpoints/handlers/responsewriters/errors.go.
"""

import attrs

from kschedd.access.users import User


@attrs.frozen
class AccessRequest:
    """A request for a resource, or for the path of a URL if `path` is not "".

    `namespace` is "" for all namespaces and for cluster-scoped resources; `name` is "" for a whole collection.
    """

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def combined_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def refusal(self, reason: str = "") -> str:
        """Return the message for a user without permission, with the reason of the authorizer."""
        what = f'User "{self.user.name}" cannot {self.verb} '
        if self.path:
            what += f'path "{self.path}"'
        else:
            where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
            what += f'resource "{self.combined_resource}" in API group "{self.group}" {where}'
        what = what.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")  # must not be taken for HTML
        return f"{what}: {reason}" if reason else what

    def refusal_of_object(self, reason: str = "") -> str:
        """Return the message of the error Forbidden, which begins with the object."""
        if self.path:
            return f"forbidden: {self.refusal(reason)}"
        qualified = f"{self.resource}.{self.group}" if self.group else self.resource
        shown = f'{qualified} "{self.name}"' if self.name else qualified
        return f"{shown} is forbidden: {self.refusal(reason)}"


@attrs.frozen
class AccessDecision:
    """The decision about a request, and its reason; a refusal often has none."""

    allowed: bool
    reason: str = ""
