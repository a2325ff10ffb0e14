"""Review of writes by the admission policies of the cluster. Imported only if a policy is bound."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kschedd.store.admission.chain import Admission
from kschedd.store.admission_plugins.attributes import Attributes, UserInfo
from kschedd.store.policies import mutating, validating
from kschedd.store.policies.params import PolicyCluster
from kschedd.store.policies.reviewed import CLUSTER_USER, Reviewed, ReviewedResource

Raw = Mapping[str, Any]


def _full_access(request: object) -> tuple[bool, str]:
    """Allow every request of an expression's authorizer."""
    return True, ""


class Reviewing:
    """The policies of one cluster, for the plugins that are enabled."""

    def __init__(self, chain: Admission, cluster: PolicyCluster) -> None:
        self._cluster = cluster
        self._enabled = chain.enabled
        self._validating = validating.ValidatingPolicies(cluster, _full_access)
        self._mutating = mutating.MutatingPolicies(cluster, _full_access)

    def forget(self) -> None:
        """Drop the compiled policies, because the emulated Kubernetes version has changed."""
        self._validating.forget()
        self._mutating.forget()

    def mutated(
        self,
        attributes: Attributes,
        new: Raw,
        old: Raw | None,
        user: UserInfo | None,
        dry_run: bool,
        admit: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> Raw:
        """Return the object after the mutating policies; `admit` runs the in-tree plugins again on a changed object."""
        if not self._enabled[mutating.POLICY]:
            return new
        meta = new["metadata"]
        generated = attributes.creates and meta.get("generateName") and attributes.generated
        if not generated:
            return self._mutating.mutated(self._reviewed(attributes, new, old, user, dry_run), admit)
        # The name of a new object is generated after mutating admission.
        unnamed = {**new, "metadata": {field: value for field, value in meta.items() if field != "name"}}
        reviewed = attrs.evolve(self._reviewed(attributes, unnamed, old, user, dry_run), name="")
        changed = self._mutating.mutated(reviewed, admit)
        return new if changed is unnamed else {**changed, "metadata": {"name": meta["name"], **changed["metadata"]}}

    def validate(
        self,
        attributes: Attributes,
        new: Raw | None,
        old: Raw | None,
        user: UserInfo | None,
        warn: Callable[[str], None],
        *,
        dry_run: bool,
        api_kind: tuple[str, str] | None,
    ) -> None:
        """Raise PolicyDenied if a policy rejects the write."""
        if not self._enabled[validating.POLICY]:
            return
        present = old if api_kind is not None else None
        reviewed = self._reviewed(attributes, new, old, user, dry_run, present)
        if api_kind is not None:
            group, _, version = api_kind[0].rpartition("/")
            reviewed = reviewed.with_kind(ReviewedResource(group, version, reviewed.resource.plural, api_kind[1]))
        self._validating.validate(reviewed, warn)

    def _reviewed(
        self,
        attributes: Attributes,
        new: Raw | None,
        old: Raw | None,
        user: UserInfo | None,
        dry_run: bool,
        present: Raw | None = None,
    ) -> Reviewed:
        """Return the write as policies see it: a new object has no resourceVersion yet.

        `present` is the object that has the subresource, if `new` has the kind of the subresource.
        """
        if new is not None and attributes.creates and "resourceVersion" in new["metadata"]:
            meta = {field: value for field, value in new["metadata"].items() if field != "resourceVersion"}
            new = {**new, "metadata": meta}
        of = present or new or old
        assert of is not None, "a write has a new or an old object"
        old = None if attributes.creates else old
        return Reviewed.of(attributes, self._cluster.kind_of(of), of, new, old, user or CLUSTER_USER, dry_run)
