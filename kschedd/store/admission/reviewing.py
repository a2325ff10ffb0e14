"""Review of writes by the policies and webhooks of the cluster. Imported only if there is a binding or a webhook.

Mutating policies run first, then mutating webhooks. If one of them changes the object, the in-tree plugins run again,
and then the policies and webhooks that are reinvocable. Validating policies and webhooks judge the result.

Source: Kubernetes v1.37, apiserver/pkg/admission/reinvocation.go, plugin/webhook/predicates/rules.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

import attrs

from kschedd.store.admission.chain import Admission
from kschedd.store.admission_plugins.attributes import Attributes, SubresourceOf, UserInfo
from kschedd.store.policies import mutating, validating
from kschedd.store.policies.params import PolicyCluster
from kschedd.store.policies.reviewed import CLUSTER_USER, Reviewed, ReviewedResource
from kschedd.store.webhooks.hooks import HookAccess, Webhooks

Raw = Mapping[str, Any]
K = TypeVar("K")
_CONFIGURATION: Final = "admissionregistration.k8s.io"


class Reviewing:
    """The policies and webhooks of one cluster, for the plugins that are enabled."""

    def __init__(self, chain: Admission, cluster: PolicyCluster) -> None:
        self._cluster = cluster
        self._enabled = chain.enabled
        self._validating = validating.ValidatingPolicies(cluster)
        self._mutating = mutating.MutatingPolicies(cluster)
        self._webhooks = Webhooks(cluster)

    def forget(self) -> None:
        """Drop the compiled expressions, because the emulated Kubernetes version has changed."""
        self._validating.forget()
        self._mutating.forget()
        self._webhooks.forget()

    def mutated(
        self,
        attributes: Attributes,
        new: Raw,
        old: Raw | None,
        user: UserInfo | None,
        dry_run: bool,
        admit: Callable[[dict[str, Any]], dict[str, Any]],
        access: HookAccess,
        of: SubresourceOf | None = None,
    ) -> Raw:
        """Return the object after mutating admission; `admit` runs the in-tree plugins again on a changed object."""
        meta = new["metadata"]
        generated = attributes.creates and meta.get("generateName") and attributes.generated
        if not generated:
            return self._mutated(self._reviewed(attributes, new, old, user, dry_run, of), admit, access)
        # The name of a new object is generated after mutating admission.
        unnamed = {**new, "metadata": {field: value for field, value in meta.items() if field != "name"}}
        reviewed = attrs.evolve(self._reviewed(attributes, unnamed, old, user, dry_run), name="")
        changed = self._mutated(reviewed, admit, access)
        return new if changed is unnamed else {**changed, "metadata": {"name": meta["name"], **changed["metadata"]}}

    def _mutated(
        self, reviewed: Reviewed, admit: Callable[[dict[str, Any]], dict[str, Any]], access: HookAccess
    ) -> Raw:
        policies, hooks = _Round[mutating.Key](), _Round[tuple[str, str]]()
        changed = self._round(reviewed, policies, hooks, access)
        if changed is reviewed.new:
            return changed
        readmitted = admit(dict(changed))
        policies.next(readmitted)
        hooks.next(readmitted)
        return self._round(attrs.evolve(reviewed, new=readmitted), policies, hooks, access)

    def _round(
        self,
        reviewed: Reviewed,
        policies: "_Round[mutating.Key]",
        hooks: "_Round[tuple[str, str]]",
        access: HookAccess,
    ) -> Raw:
        whole = reviewed.new
        assert whole is not None, "only creations and updates are mutated"
        if self._enabled[mutating.POLICY] and not _is_policy(reviewed):
            whole = self._mutating.mutated(reviewed, policies.before, policies.again, policies.only, access.answers)
        policies.output = whole
        if self._enabled["MutatingAdmissionWebhook"] and not _is_configuration(reviewed):
            seen = attrs.evolve(reviewed, new=whole)
            whole = self._webhooks.mutated(seen, access, hooks.before, hooks.again, hooks.only) or whole
        hooks.output = whole
        return whole

    def validate(
        self,
        attributes: Attributes,
        new: Raw | None,
        old: Raw | None,
        user: UserInfo | None,
        access: HookAccess,
        *,
        dry_run: bool,
        of: SubresourceOf | None,
    ) -> None:
        """Raise PolicyDenied, WebhookDenied or WebhookFailed if a policy or webhook rejects the write."""
        reviewed = self._reviewed(attributes, new, old, user, dry_run, of)
        if new is None and self._enabled["MutatingAdmissionWebhook"] and not _is_configuration(reviewed):
            self._webhooks.mutated(reviewed, access, set(), set(), None)
        if self._enabled[validating.POLICY] and not _is_policy(reviewed):
            self._validating.validate(reviewed, access.remarks, access.answers)
        if self._enabled["ValidatingAdmissionWebhook"] and not _is_configuration(reviewed):
            self._webhooks.validate(reviewed, access)

    def _reviewed(
        self,
        attributes: Attributes,
        new: Raw | None,
        old: Raw | None,
        user: UserInfo | None,
        dry_run: bool,
        of: SubresourceOf | None = None,
    ) -> Reviewed:
        """Return the write as policies see it: a new object has no resourceVersion yet.

        `of` is given if `new` has the kind of a subresource.
        """
        if new is not None and attributes.creates and "resourceVersion" in new["metadata"]:
            meta = {field: value for field, value in new["metadata"].items() if field != "resourceVersion"}
            new = {**new, "metadata": meta}
        present = of.present if of is not None else new or old
        assert present is not None, "a write has a new or an old object"
        old = None if attributes.creates else old
        kind = self._cluster.kind_of(present)
        reviewed = Reviewed.of(attributes, kind, present, new, old, user or CLUSTER_USER, dry_run)
        if of is None:
            return reviewed
        group, _, version = of.api_version.rpartition("/")
        return reviewed.with_kind(ReviewedResource(group, version, reviewed.resource.plural, of.kind))


class _Round(Generic[K]):
    """The reinvocable policies or webhooks: those invoked so far, those to invoke again, and the object after them."""

    def __init__(self) -> None:
        self.before: set[K] = set()
        self.again: set[K] = set()
        self.only: set[K] | None = None
        self.output: Raw | None = None

    def next(self, readmitted: Raw) -> None:
        """Begin the second round, after a later change to the object."""
        if readmitted != self.output:
            self.again |= self.before
        self.only, self.before, self.again = self.again, set(), set()


def _is_policy(reviewed: Reviewed) -> bool:
    """Return whether the write is to a policy or binding, which policies never judge."""
    of = reviewed.resource
    return of.group == _CONFIGURATION and "admissionpolic" in of.plural


def _is_configuration(reviewed: Reviewed) -> bool:
    """Return whether the write is to a policy, a binding or a webhook, for which webhooks are never called."""
    return reviewed.resource.group == _CONFIGURATION
