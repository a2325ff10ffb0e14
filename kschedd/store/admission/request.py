"""RequestAdmission: in whose name a request is made, what admission says of it, and what its user is to be warned of.

Between the store, which serves one request after the other, and the chain of plugins (`Admission`), which belongs to
nobody: here the chain is given the request's user and the cluster, and its warnings are kept for that user.

Owns the user and the warnings of the request that is served.
Raises: ApiError, in the words of whoever refuses.
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
        self.user: UserInfo | None = None  # in whose name something is done; None: the cluster's own
        self._warnings: list[str] = []

    @contextmanager
    def on_behalf_of(self, user: UserInfo) -> Iterator[list[str]]:
        """What is done inside is asked for by this user; the list takes what the user is to be warned of."""
        before = self.user, self._warnings
        self.user, self._warnings = user, []
        try:
            yield self._warnings
        finally:
            self.user, self._warnings = before

    def warn(self, text: str) -> None:
        """Tell the user in whose name something is done; once, however often it is found."""
        if self.user is not None and text not in self._warnings:
            self._warnings.append(text)

    def asks_who(self, kind: str) -> bool:
        """Return whether it depends on the request's user what may be done to objects of this kind."""
        return self.user is not None and self.chain.asks_who(kind)

    def authorize(self, asked: Attributes, new: Raw | None, old: Raw | None) -> None:
        """Have the chain refuse what the user may not do."""
        if self.asks_who(asked.kind):
            self.chain.authorize(attrs.evolve(asked, user=self.user), new, old, self._cluster)

    def looks_at_each(self, kind: str, namespace: str) -> bool:
        """Whether anybody looks at each object of a kind in a namespace by itself, however alike they are."""
        return bool(self.asks_who(kind) or self.chain.others or self._cluster.present_in(QUOTA, namespace))

    def check_namespace(self, kind: str, namespace: str, name: str) -> None:
        """NamespaceLifecycle: refuse a new object in a namespace that is not there, or is about to go."""
        if not namespace or not self.chain.enabled[NAMESPACE_LIFECYCLE]:
            return
        found = self._cluster.find("Namespace", "", namespace)
        if found is None:
            raise NotFound("Namespace", namespace)
        if found.deleting:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise Unadmitted(kind, name, why)

    def admit(self, asked: Attributes, raw: Raw) -> dict[str, Any]:
        """The object as the plugins leave it, before it is validated."""
        return self.chain.admit(asked, raw, self._cluster)

    def validate(self, asked: Attributes, raw: Raw, old: Raw | None) -> None:
        """Have the chain refuse an object that is valid by itself; the user is told its warnings."""
        for warning in self.chain.validate(asked, raw, old, self._cluster):
            self.warn(warning)

    def validate_whole(self, asked: Attributes, new: Raw | None, old: Raw | None) -> None:
        """Have the plugins from plugin files refuse what is about to be written."""
        self.chain.validate_whole(asked, new, old)

    def charges(self, asked: Attributes, new: Raw, old: Raw | None) -> Sequence[Charge]:
        """The quotas that count the object, and what is used of them with it. Raises Forbidden."""
        if not self._cluster.present_in(QUOTA, asked.namespace):
            return ()
        return self.chain.charges(asked, new, old, self._cluster)
