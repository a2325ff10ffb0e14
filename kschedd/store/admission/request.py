"""RequestAdmission: admission of the current request for its user, with warnings.

The store serves one request after another; the plugin chain (`Admission`) stores no state per request. This class
passes the request's user and the cluster to the chain, and collects the chain's warnings.

Raises: ApiError, with the message of the plugin that rejects the request.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from kschedd.api.objects import Raw
from kschedd.api.schemas.kinds import Kind
from kschedd.store.admission.chain import NAMESPACE_LIFECYCLE, Admission
from kschedd.store.admission_plugins.attributes import Attributes, Classes, UserInfo
from kschedd.store.admission_plugins.resourcequota import QUOTA, Charge
from kschedd.store.errors import NotFound, Unadmitted

if TYPE_CHECKING:
    from kschedd.store.policies.validating import ValidatingPolicies

REVIEWING: Final = frozenset(("ValidatingAdmissionPolicyBinding",))
"""Kinds of which one object causes each write to be reviewed."""


class ReviewingCluster(Classes, Protocol):
    """The part of the store that policies and webhooks read."""

    @property
    def features(self) -> frozenset[str]: ...
    def count(self, kind: str) -> int: ...
    def kind_of(self, raw: Raw) -> Kind: ...
    def serves(self, kind: Kind) -> bool: ...


class RequestAdmission:
    def __init__(self, chain: Admission, cluster: ReviewingCluster) -> None:
        self.chain = chain
        self.cluster = cluster
        self.user: UserInfo | None = None  # user who makes the request; None: the cluster itself
        self._warnings: list[str] = []
        self.reviews = False  # True while there are bindings of policies, so that each write must be reviewed
        self.policies: ValidatingPolicies | None = None  # created for the first review

    def recheck(self) -> None:
        """Update `reviews`, because a binding was written or the objects of the store were replaced."""
        self.reviews = any(self.cluster.count(kind) for kind in REVIEWING)

    @contextmanager
    def on_behalf_of(self, user: UserInfo) -> Iterator[list[str]]:
        """Make the requests inside the context as this user; yield the list of warnings for the user."""
        before = self.user, self._warnings
        self.user, self._warnings = user, []
        try:
            yield self._warnings
        finally:
            self.user, self._warnings = before

    def warn(self, text: str) -> None:
        """Add a warning for the user of the current request. Equal warnings are added only once."""
        if self.user is not None and text not in self._warnings:
            self._warnings.append(text)

    def depends_on_user(self, kind: str) -> bool:
        """Return whether a plugin's decision about objects of this kind depends on the user."""
        return self.user is not None and self.chain.depends_on_user(kind)

    def authorize(self, attributes: Attributes, new: Raw | None, old: Raw | None) -> None:
        """Raise an error if the user may not make this request."""
        if self.depends_on_user(attributes.kind):
            self.chain.authorize(attrs.evolve(attributes, user=self.user), new, old, self.cluster)

    def admits_each(self, kind: str, namespace: str) -> bool:
        """Return whether each object of this kind in the namespace must be admitted without cached results."""
        return bool(
            self.depends_on_user(kind) or self.chain.others or self.cluster.present_in(QUOTA, namespace) or self.reviews
        )

    def check_namespace(self, kind: str, namespace: str, name: str) -> None:
        """Implement NamespaceLifecycle: reject a new object in a namespace that is missing or terminating."""
        if not namespace or not self.chain.enabled[NAMESPACE_LIFECYCLE]:
            return
        found = self.cluster.find("Namespace", "", namespace)
        if found is None:
            raise NotFound("Namespace", namespace)
        if found.deleting:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise Unadmitted(kind, name, why)

    def admit(self, attributes: Attributes, raw: Raw) -> dict[str, Any]:
        """Return the object as changed by all mutating plugins; it is not validated yet."""
        return self.chain.admit(attributes, raw, self.cluster)

    def validate(self, attributes: Attributes, raw: Raw, old: Raw | None) -> None:
        """Raise an error if a plugin rejects a valid object; otherwise store the plugins' warnings."""
        for warning in self.chain.validate(attributes, raw, old, self.cluster):
            self.warn(warning)

    def validate_whole(
        self,
        attributes: Attributes,
        new: Raw | None,
        old: Raw | None,
        *,
        dry_run: bool,
        api_kind: tuple[str, str] | None = None,
    ) -> None:
        """Raise ApiError if a plugin from a plugin file, or an admission policy, rejects the write.

        `api_kind` is the API version and the kind of `new` if they are those of a subresource.
        """
        if not attributes.subresource:
            self.chain.validate_whole(attributes, new, old)
        if self.reviews:
            from kschedd.store.admission.reviewing import validate  # imports CEL, so only if a policy exists

            validate(self, attributes, new, old, dry_run, api_kind)

    def charges(self, attributes: Attributes, new: Raw, old: Raw | None) -> Sequence[Charge]:
        """Return the quotas that count the object, each with its usage including this request. Raises Forbidden."""
        if not self.cluster.present_in(QUOTA, attributes.namespace):
            return ()
        return self.chain.charges(attributes, new, old, self.cluster)
