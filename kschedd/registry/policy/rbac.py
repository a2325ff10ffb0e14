"""Validation of Roles, ClusterRoles and their bindings.

Source: Kubernetes v1.34, pkg/apis/rbac/validation/validation.go.
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required, unsupported
from kschedd.api.selecting.names import dns_subdomain, path_segment
from kschedd.registry.validation_selectors import validate_label_selector

Raw = dict[str, Any]
Faults = list[FieldError]

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def validate_role(role: Raw, faults: Faults) -> None:
    """Append the errors of a Role."""
    _validate_rules(role, faults, namespaced=True)


def validate_cluster_role(role: Raw, faults: Faults) -> None:
    """Append the errors of a ClusterRole."""
    _validate_rules(role, faults, namespaced=False)
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
    if role.get("aggregationRule") is not None and not selectors:
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        faults.append(required("aggregationRule.clusterRoleSelectors", why))
    for index, selector in enumerate(selectors or ()):
        here, wrong = f"aggregationRule.clusterRoleSelectors[{index}]", len(faults)
        validate_label_selector(selector, here, faults)
        if len(faults) > wrong:
            faults.append(invalid(here, None, "invalid label selector."))


def _validate_rules(role: Raw, faults: Faults, *, namespaced: bool) -> None:
    for index, rule in enumerate(role.get("rules") or ()):
        here = f"rules[{index}]"
        groups, resources, names = (rule.get(field) or () for field in ("apiGroups", "resources", "resourceNames"))
        if not rule.get("verbs"):
            faults.append(required(f"{here}.verbs", "verbs must contain at least one value"))
        if urls := rule.get("nonResourceURLs"):
            if namespaced:
                why = "namespaced rules cannot apply to non-resource URLs"
                faults.append(invalid(f"{here}.nonResourceURLs", urls, why))
            if groups or resources or names:
                why = "rules cannot apply to both regular resources and non-resource URLs"
                faults.append(invalid(f"{here}.nonResourceURLs", urls, why))
            continue
        if not groups:
            faults.append(required(f"{here}.apiGroups", "resource rules must supply at least one api group"))
        if not resources:
            faults.append(required(f"{here}.resources", "resource rules must supply at least one resource"))


def validate_role_binding(binding: Raw, faults: Faults) -> None:
    """Append the errors of a RoleBinding."""
    _validate_binding(binding, ("Role", "ClusterRole"), faults, namespaced=True)


def validate_cluster_role_binding(binding: Raw, faults: Faults) -> None:
    """Append the errors of a ClusterRoleBinding."""
    _validate_binding(binding, ("ClusterRole",), faults, namespaced=False)


def _validate_binding(binding: Raw, kinds: tuple[str, ...], faults: Faults, *, namespaced: bool) -> None:
    role = binding.get("roleRef") or {}
    group, kind, name = (role.get(field) or "" for field in ("apiGroup", "kind", "name"))
    if group != RBAC_GROUP:
        faults.append(unsupported("roleRef.apiGroup", group, (RBAC_GROUP,)))
    if kind not in kinds:
        faults.append(unsupported("roleRef.kind", kind, kinds))
    if not name:
        faults.append(required("roleRef.name"))
    faults += [invalid("roleRef.name", name, why) for why in path_segment(name)]
    for index, subject in enumerate(binding.get("subjects") or ()):
        _validate_subject(subject, f"subjects[{index}]", faults, namespaced=namespaced)


def _validate_subject(subject: Raw, path: str, faults: Faults, *, namespaced: bool) -> None:
    kind, name, group = (subject.get(field) or "" for field in ("kind", "name", "apiGroup"))
    if not name:
        faults.append(required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            faults += [invalid(f"{path}.name", name, why) for why in dns_subdomain(name)]
        if group:
            faults.append(unsupported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            faults.append(required(f"{path}.namespace"))
    elif kind in _SUBJECTS:
        if group != RBAC_GROUP:
            faults.append(unsupported(f"{path}.apiGroup", group, (RBAC_GROUP,)))
    else:
        faults.append(unsupported(f"{path}.kind", kind, _SUBJECTS))


def validate_role_ref_change(old: Mapping[str, Any], new: Mapping[str, Any], faults: Faults) -> None:
    """Append an error if a binding's role reference was changed."""
    before, after = old.get("roleRef") or {}, new.get("roleRef") or {}
    fields = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
    if any((before.get(field) or "") != (after.get(field) or "") for field in fields):
        shown = {printed: after.get(field) or "" for field, printed in fields.items()}
        faults.append(invalid("roleRef", shown, "cannot change roleRef"))
