"""Review of a write by the admission policies of the cluster. Imported only if a policy is bound."""

from collections.abc import Mapping
from typing import Any

from kschedd.store.admission.request import RequestAdmission
from kschedd.store.admission_plugins.attributes import Attributes
from kschedd.store.policies.reviewed import CLUSTER_USER, Resource, Reviewed
from kschedd.store.policies.validating import POLICY, ValidatingPolicies

Raw = Mapping[str, Any]


def _full_access(request: object) -> tuple[bool, str]:
    """Allow every request of an expression's authorizer."""
    return True, ""


def validate(
    admission: RequestAdmission,
    attributes: Attributes,
    new: Raw | None,
    old: Raw | None,
    dry_run: bool,
    api_kind: tuple[str, str] | None,
) -> None:
    """Raise PolicyDenied if a policy rejects the write."""
    if not admission.chain.enabled[POLICY]:
        return
    reviewed = reviewed_write(admission, attributes, new, old, dry_run, api_kind)
    if admission.policies is None:
        cluster = admission.cluster
        admission.policies = ValidatingPolicies(cluster, lambda: cluster.features, _full_access)
    admission.policies.validate(reviewed, admission.warn)


def reviewed_write(
    admission: RequestAdmission,
    attributes: Attributes,
    new: Raw | None,
    old: Raw | None,
    dry_run: bool,
    api_kind: tuple[str, str] | None,
) -> Reviewed:
    """Return the write as policies see it: a new object has no resourceVersion yet."""
    present = old if api_kind is not None and old is not None else new or old
    assert present is not None, "a write has a new or an old object"
    if new is not None and attributes.creates and "resourceVersion" in new["metadata"]:
        meta = {field: value for field, value in new["metadata"].items() if field != "resourceVersion"}
        new = {**new, "metadata": meta}
    kind = admission.cluster.kind_of(present)
    if attributes.creates and attributes.subresource:
        old = None
    reviewed = Reviewed.of(attributes, kind, new, old, admission.user or CLUSTER_USER, dry_run)
    if api_kind is None:
        return reviewed
    group, _, version = api_kind[0].rpartition("/")
    return reviewed.with_kind(Resource(group, version, kind.plural, api_kind[1]))
