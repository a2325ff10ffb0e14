"""RequestAdmission: admission of the current request for its user, with warnings.

The store serves one request after another; the plugin chain (`Admission`) stores no state per request. This class
passes the request's user and the cluster to the chain, and collects the chain's warnings.

Raises: ApiError, with the message of the plugin that rejects the request.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from kschedd.api.objects import Raw
from kschedd.store.admission.chain import NAMESPACE_LIFECYCLE, Admission
from kschedd.store.admission_plugins.attributes import Attributes, Classes, UserInfo
from kschedd.store.admission_plugins.resourcequota import QUOTA, Charge
from kschedd.store.errors import NotFound, Unadmitted


class RequestAdmission:
    def __init__(self, chain: Admission, cluster: Classes) -> None:
        self.chain = chain
        self._cluster = cluster
        self.user: UserInfo | None = None  # user who makes the request; None: the cluster itself
        self._warnings: list[str] = []

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
            self.chain.authorize(attrs.evolve(attributes, user=self.user), new, old, self._cluster)

    def admits_each(self, kind: str, namespace: str) -> bool:
        """Return whether each object of this kind in the namespace must be admitted without cached results."""
        return bool(self.depends_on_user(kind) or self.chain.others or self._cluster.present_in(QUOTA, namespace))

    def check_namespace(self, kind: str, namespace: str, name: str) -> None:
        """Implement NamespaceLifecycle: reject a new object in a namespace that is missing or terminating."""
        if not namespace or not self.chain.enabled[NAMESPACE_LIFECYCLE]:
            return
        found = self._cluster.find("Namespace", "", namespace)
        if found is None:
            raise NotFound("Namespace", namespace)
        if found.deleting:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise Unadmitted(kind, name, why)

    def admit(self, attributes: Attributes, raw: Raw) -> dict[str, Any]:
        """Return the object as changed by all mutating plugins; it is not validated yet."""
        return self.chain.admit(attributes, raw, self._cluster)

    def validate(self, attributes: Attributes, raw: Raw, old: Raw | None) -> None:
        """Raise an error if a plugin rejects a valid object; otherwise store the plugins' warnings."""
        for warning in self.chain.validate(attributes, raw, old, self._cluster):
            self.warn(warning)

    def validate_whole(self, attributes: Attributes, new: Raw | None, old: Raw | None) -> None:
        """Raise ApiError if a plugin from a plugin file rejects the write."""
        self.chain.validate_whole(attributes, new, old)

    def charges(self, attributes: Attributes, new: Raw, old: Raw | None) -> Sequence[Charge]:
        """Return the quotas that count the object, each with its usage including this request. Raises Forbidden."""
        if not self._cluster.present_in(QUOTA, attributes.namespace):
            return ()
        return self.chain.charges(attributes, new, old, self._cluster)
