"""The request that policies and webhooks judge: what is written, by whom, and which resource it is.

Source: Kubernetes v1.37, apiserver/pkg/admission/attributes.go, admission/plugin/webhook/predicates.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import attrs

from kschedd.api.schemas.kinds import Kind
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.store.admission_plugins.attributes import Attributes, Classes, UserInfo
from kschedd.store.errors import NotFound

Raw = Mapping[str, Any]
_NOTHING: Final[Raw] = {}
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
CLUSTER_USER: Final = UserInfo("system:kube-controller-manager", ("system:authenticated",))
"""The user of writes by kschedd's own controllers."""


@attrs.frozen
class ReviewedResource:
    group: str
    version: str
    plural: str
    kind: str

    @classmethod
    def of(cls, kind: Kind, api_version: str) -> "ReviewedResource":
        group, _, version = (api_version or kind.api_version).rpartition("/")
        return cls(group, version, kind.plural, kind.name.partition(".")[0])

    @property
    def gvk(self) -> dict[str, str]:
        return {"group": self.group, "version": self.version, "kind": self.kind}

    @property
    def gvr(self) -> dict[str, str]:
        return {"group": self.group, "version": self.version, "resource": self.plural}


@attrs.frozen(eq=False)
class Reviewed:
    """One write. `new` is None for a deletion, `old` for a creation."""

    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    kind: Kind
    resource: ReviewedResource
    namespace: str
    name: str
    subresource: str
    new: Raw | None
    old: Raw | None
    user: UserInfo
    dry_run: bool = False
    shown_kind: dict[str, str] | None = None  # kind of the object, if it is the kind of a subresource

    @classmethod
    def of(
        cls,
        attributes: Attributes,
        kind: Kind,
        present: Raw,
        new: Raw | None,
        old: Raw | None,
        user: UserInfo,
        dry_run: bool,
    ) -> "Reviewed":
        """Return the review of a request; `present` is an object of the kind, in the version of the request."""
        resource = ReviewedResource.of(kind, str(present.get("apiVersion") or ""))
        # The namespace of a Namespace object is its own name.
        namespace = attributes.name if kind.name == "Namespace" else attributes.namespace
        return cls(
            attributes.operation,
            kind,
            resource,
            namespace,
            attributes.name,
            attributes.subresource,
            new,
            old,
            user,
            dry_run,
        )

    @property
    def shown_name(self) -> str:
        """The name of the object in messages."""
        meta = (self.new or self.old or _NOTHING).get("metadata") or _NOTHING
        return self.name or meta.get("name") or meta.get("generateName") or "Unknown"

    def with_kind(self, of_subresource: ReviewedResource) -> "Reviewed":
        """Return the request whose object has the kind of a subresource, such as Binding."""
        return attrs.evolve(self, shown_kind=of_subresource.gvk)

    def in_version(self, resource: ReviewedResource) -> "Reviewed":
        """Return the request with its objects in an equivalent version, which has the same fields."""
        if resource == self.resource:
            return self
        api_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
        new = None if self.new is None else {**self.new, "apiVersion": api_version}
        old = None if self.old is None else {**self.old, "apiVersion": api_version}
        return attrs.evolve(self, new=new, old=old)

    @property
    def equivalents(self) -> list[ReviewedResource]:
        """The names of the reviewed resource in all other served versions of its kind."""
        found = [ReviewedResource.of(self.kind, each) for each in self.kind.api_versions]
        return [each for each in found if each != self.resource]

    def options(self) -> dict[str, Any]:
        made: dict[str, Any] = {"kind": _OPTIONS.get(self.operation, ""), "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            made["dryRun"] = ["All"]
        return made

    def request(self, matched: ReviewedResource) -> dict[str, Any]:
        """Return the AdmissionRequest without its objects; `matched` is the resource that a rule selects."""
        user: dict[str, Any] = {"username": self.user.name}
        if self.user.groups:
            user["groups"] = list(self.user.groups)
        if self.user.uid:
            user["uid"] = self.user.uid
        if self.user.extra:
            user["extra"] = {key: list(values) for key, values in self.user.extra}
        made = {
            "kind": self.shown_kind or matched.gvk,
            "resource": matched.gvr,
            "requestKind": self.shown_kind or self.resource.gvk,
            "requestResource": self.resource.gvr,
            "operation": self.operation,
            "userInfo": user,
            "dryRun": self.dry_run,
            "options": self.options(),
        }
        optional = {
            "name": self.name,
            "namespace": self.namespace,
            "subResource": self.subresource,
            "requestSubResource": self.subresource,
        }
        return {**made, **{field: value for field, value in optional.items() if value}}


# -- rules and selectors ----------------------------------------------------------------------------------------------


def rule_matches(rule: Raw, reviewed: Reviewed, resource: ReviewedResource) -> bool:
    """Return whether a rule with operations selects the request, of this resource."""
    return (
        _in_scope(rule.get("scope") or "*", reviewed)
        and _among(rule.get("operations"), reviewed.operation)
        and _among(rule.get("apiGroups"), resource.group)
        and _among(rule.get("apiVersions"), resource.version)
        and any(_names(text, resource.plural, reviewed.subresource) for text in rule.get("resources") or ())
    )


def _among(values: Any, wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values or ())


def _names(text: str, plural: str, subresource: str) -> bool:
    named, _, sub = text.partition("/")
    return named in ("*", plural) and sub in ("*", subresource)


def _in_scope(scope: str, reviewed: Reviewed) -> bool:
    if scope == "*":
        return True
    namespaced = bool(reviewed.namespace) and reviewed.kind.name != "Namespace"
    return namespaced is (scope == "Namespaced")


def selected_namespace(selector: Raw | None, reviewed: Reviewed, cluster: Classes) -> bool:
    """Return whether a namespaceSelector selects the request. Raises NotFound, SelectorError."""
    if not reviewed.namespace:
        return True
    wanted = parse_label_selector(selector)
    if wanted.empty:
        return True
    if reviewed.kind.name == "Namespace" and not reviewed.subresource and reviewed.new is not None:
        return wanted.matches((reviewed.new.get("metadata") or _NOTHING).get("labels") or {})
    namespace = cluster.find("Namespace", "", reviewed.namespace)
    if namespace is None:
        raise NotFound("Namespace", reviewed.namespace)
    return wanted.matches(namespace.labels)


def selected_object(selector: Raw | None, reviewed: Reviewed) -> bool:
    """Return whether an objectSelector selects the new or the old object. Raises SelectorError."""
    wanted = parse_label_selector(selector)
    if wanted.empty:
        return True
    present = (raw for raw in (reviewed.new, reviewed.old) if raw is not None)
    return any(wanted.matches((raw.get("metadata") or _NOTHING).get("labels") or {}) for raw in present)


def matched_resource(match: Raw | None, reviewed: Reviewed, cluster: Classes) -> ReviewedResource | None:
    """Return the resource that matchResources (of a policy or a binding) selects; None if the request does not match.

    Raises NotFound, SelectorError.
    """
    if match is None:
        return reviewed.resource
    if not selected_namespace(match.get("namespaceSelector"), reviewed, cluster):
        return None
    if not selected_object(match.get("objectSelector"), reviewed):
        return None
    policy = match.get("matchPolicy")
    if _matched(match.get("excludeResourceRules") or (), policy, reviewed) is not None:
        return None
    rules = match.get("resourceRules") or ()
    return _matched(rules, policy, reviewed) if rules else reviewed.resource


def _matched(rules: Iterable[Raw], policy: str | None, reviewed: Reviewed) -> ReviewedResource | None:
    resources: list[ReviewedResource] = [reviewed.resource, *(() if policy == "Exact" else reviewed.equivalents)]
    for resource in resources:
        for rule in rules:
            names = rule.get("resourceNames") or ()
            if rule_matches(rule, reviewed, resource) and (not names or reviewed.name in names):
                return resource
    return None
