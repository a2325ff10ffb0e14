"""RequestAdmission: admission of the current request for its user, with warnings.

The store serves one request after another; the plugin chain (`Admission`) stores no state per request. This class
passes the request's user and the cluster to the chain, and collects the remarks of the chain.

Raises: ApiError, with the message of the plugin that rejects the request.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs

from kschedd.api.objects import Raw
from kschedd.store.admission.chain import NAMESPACE_LIFECYCLE, Admission
from kschedd.store.admission_plugins.attributes import Attributes, SubresourceOf, UserInfo
from kschedd.store.admission_plugins.resourcequota import QUOTA, Charge
from kschedd.store.authorization.escalation import check_escalation
from kschedd.store.authorization.judge import RBAC_KINDS
from kschedd.store.errors import NotFound, Unadmitted
from kschedd.store.remarks import Remarks

if TYPE_CHECKING:
    from kschedd.store.admission.reviewing import Reviewing
    from kschedd.store.awaited import WebhookAnswers
    from kschedd.store.policies.params import PolicyCluster
    from kschedd.store.webhooks.hooks import HookAccess
    from kschedd.store.webhooks.modes import WebhookMode

_HOOKS: Final = "MutatingWebhookConfiguration"  # also reviewed at deletions, together with the validating kinds
_VALIDATING: Final = ("ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", _HOOKS)
_MUTATING: Final = ("MutatingAdmissionPolicyBinding", _HOOKS)
REVIEWING: Final = frozenset((*_VALIDATING, *_MUTATING))
"""Kinds of which one object causes each write to be reviewed."""


class RequestAdmission:
    def __init__(self, chain: Admission, cluster: "PolicyCluster") -> None:
        self.chain = chain
        self.cluster = cluster
        self.user: UserInfo | None = None  # user who makes the request; None: the cluster itself
        self._remarks = Remarks()
        self.validates = False  # True while bindings of policies exist, so that each write must be judged
        self.mutates = False  # True while policies may change each write
        self._reviewing: Reviewing | None = None  # created for the first review
        # for a write that can wait: the answers of the webhooks that it has called so far
        self.webhook_answers: WebhookAnswers | None = None
        self.webhook_mode: WebhookMode = "skip"  # for webhooks with only simulated pods

    def recheck(self) -> None:
        """Update `validates` and `mutates`, because a binding was written or the objects were replaced."""
        self.validates = any(self.cluster.count(kind) for kind in _VALIDATING)
        self.mutates = any(self.cluster.count(kind) for kind in _MUTATING)

    def forget_policies(self) -> None:
        """Drop the compiled policies, because the emulated Kubernetes version has changed."""
        if self._reviewing is not None:
            self._reviewing.forget()

    def _access(self) -> "HookAccess":
        from kschedd.store.webhooks.hooks import HookAccess

        remarks = self._remarks if self.user is not None else Remarks()
        return HookAccess(self.webhook_answers, self.webhook_mode, remarks)

    def _review(self) -> "Reviewing":
        if self._reviewing is None:
            from kschedd.store.admission.reviewing import Reviewing  # imports CEL, so only if a policy exists

            self._reviewing = Reviewing(self.chain, self.cluster)
        return self._reviewing

    @contextmanager
    def on_behalf_of(self, user: UserInfo) -> Iterator[Remarks]:
        """Make the requests inside the context as this user; yield the remarks of admission about them."""
        before = self.user, self._remarks
        self.user, self._remarks = user, Remarks()
        try:
            yield self._remarks
        finally:
            self.user, self._remarks = before

    def warn(self, text: str) -> None:
        """Add a warning for the user of the current request. Equal warnings are added only once."""
        if self.user is not None:
            self._remarks.warn(text)

    def depends_on_user(self, kind: str) -> bool:
        """Return whether a plugin's decision about objects of this kind depends on the user."""
        return self.user is not None and self.chain.depends_on_user(kind)

    def authorize(self, attributes: Attributes, new: Raw | None, old: Raw | None) -> None:
        """Raise an error if the user may not make this request."""
        if self.depends_on_user(attributes.kind):
            self.chain.authorize(attrs.evolve(attributes, user=self.user), new, old, self.cluster)

    def check_escalation(self, attributes: Attributes, new: Raw, old: Raw | None) -> None:
        """Raise an error if the user may not give the permissions of this role or binding."""
        if self.user is not None and self.user.judged and attributes.kind in RBAC_KINDS:
            name = "" if attributes.creates else attributes.name
            check_escalation(self.cluster.rbac, self.user.user, new, old, name)

    def admits_each(self, kind: str, namespace: str) -> bool:
        """Return whether each object of this kind in the namespace must be admitted without cached results."""
        return bool(
            self.depends_on_user(kind)
            or self.chain.others
            or self.cluster.present_in(QUOTA, namespace)
            or self.validates
            or self.mutates
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
        of: SubresourceOf | None = None,
    ) -> None:
        """Raise ApiError if a plugin from a plugin file, or an admission policy, rejects the write.

        `of` is given if `new` has the kind of a subresource.
        """
        if not attributes.subresource:
            self.chain.validate_whole(attributes, new, old)
        if self.validates:
            self._review().validate(attributes, new, old, self.user, self._access(), dry_run=dry_run, of=of)

    def mutated(
        self,
        attributes: Attributes,
        new: Raw,
        old: Raw | None,
        dry_run: bool,
        admit: Callable[[dict[str, Any]], dict[str, Any]] = dict,
        of: SubresourceOf | None = None,
    ) -> Raw:
        """Return the object, in stored form, after all mutating policies; called only if `mutates`.

        `admit` returns an object after the in-tree plugins, which run again if a policy changes the object.
        """
        return self._review().mutated(attributes, new, old, self.user, dry_run, admit, self._access(), of)

    def charges(self, attributes: Attributes, new: Raw, old: Raw | None) -> Sequence[Charge]:
        """Return the quotas that count the object, each with its usage including this request. Raises Forbidden."""
        if not self.cluster.present_in(QUOTA, attributes.namespace):
            return ()
        return self.chain.charges(attributes, new, old, self.cluster)
