"""Validation of metadata: names, namespaces, labels, annotations, owners, finalizers.

Source: Kubernetes v1.34, apimachinery/pkg/api/validation/objectmeta.go.
The functions require metadata that matches the schema.
"""

from typing import Any, Final

from kschedd.api.schemas.fields import ENOUGH, FieldError, forbidden, invalid, required
from kschedd.api.schemas.kinds import Kind
from kschedd.api.selecting.names import (
    Faults,
    dns1035_label,
    dns_label,
    dns_subdomain,
    label_value,
    path_prefix,
    path_segment,
    qualified_name,
    without_last_dash,
)
from kschedd.api.text.ip_addresses import address_faults

_MOST_ANNOTATED: Final = 256 * 1024
_EXTENSIONS: Final = "apiextensions.k8s.io"  # API group whose objects may have non-standard finalizers
STANDARD_FINALIZERS: Final = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
NOT_STANDARD: Final = "name is neither a standard finalizer name nor is it fully qualified"
_LABEL_NAMED: Final = frozenset(("Namespace", "StatefulSet"))
_DNS1035_NAMED: Final = frozenset(("Service",))
# kinds without rules of their own for metadata; the general rules are checked only if there are no other errors
WITHOUT_META: Final = frozenset(("PodDisruptionBudget", "Event"))
# kinds for which only the general rules for metadata are checked
_PLAIN: Final = WITHOUT_META | {"Lease", "RuntimeClass"}
_PATH_NAMED: Final = frozenset(
    "Role ClusterRole RoleBinding ClusterRoleBinding PodDisruptionBudget Event CertificateSigningRequest "
    "APIService".split()
)


def name_faults(kind: str, name: str) -> Faults:
    """Return the errors of `name` for an object of `kind`."""
    if kind in _LABEL_NAMED:
        return dns_label(name)
    if kind in _DNS1035_NAMED:
        return dns1035_label(name)
    if kind == "IPAddress":
        return tuple(address_faults(name))
    if kind in _PATH_NAMED:
        return path_segment(name)
    return dns_subdomain(name)


def validate_custom_kind(kind: Any, api_version: Any) -> list[FieldError]:
    """Return the errors in the kind and apiVersion of an object with a kind that is not built in.

    Only values that a CustomResourceDefinition could define are valid: a group and well-formed names.
    Source: apiextensions-apiserver v1.34, pkg/apis/apiextensions/validation (ValidateCustomResourceDefinitionNames).
    """
    group, slash, version = str(api_version or "").partition("/")
    if not slash or not isinstance(kind, str):
        why = f'no matches for kind "{str(kind)[:100]}" in version "{str(api_version or "")[:100]}"'
        return [FieldError("", kind, why)]
    faults = [invalid("kind", kind, why) for why in dns1035_label(kind.lower())]
    faults += [invalid("apiVersion", api_version, f"group: {why}") for why in dns_subdomain(group)]
    faults += [invalid("apiVersion", api_version, f"version: {why}") for why in dns1035_label(version)]
    return faults


def validate_meta(
    meta: dict[str, Any], kind: Kind, path: str = "metadata", *, any_name: bool = False
) -> list[FieldError]:
    """Return the errors of an object's metadata.

    With `any_name`, the rules for new names are not checked.
    """
    faults: list[FieldError] = []
    name = meta.get("name")
    if generate := meta.get("generateName"):
        stem = without_last_dash(generate)
        wrong = path_prefix(generate) if any_name else name_faults(kind.name, stem)
        faults += [invalid(f"{path}.generateName", generate, why) for why in wrong]
    if name:
        for why in path_segment(name) if any_name else name_faults(kind.name, name):
            faults.append(invalid(f"{path}.name", name, why))
    if not name and not meta.get("generateName"):
        faults.append(required(f"{path}.name", "name or generateName is required"))
    namespace = meta.get("namespace")
    if kind.namespaced:
        if not namespace:
            faults.append(required(f"{path}.namespace"))
        elif wrong := dns_label(namespace):
            faults += [invalid(f"{path}.namespace", namespace, why) for why in wrong]
    elif namespace:
        faults.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    if labels := meta.get("labels"):
        validate_labels(labels, f"{path}.labels", faults)
    if annotations := meta.get("annotations"):
        validate_annotations(annotations, f"{path}.annotations", faults)
    if owners := meta.get("ownerReferences"):
        _validate_owners(owners, f"{path}.ownerReferences", faults)
    finalizers = meta.get("finalizers") or ()
    for finalizer in finalizers:
        faults += [invalid(f"{path}.finalizers", finalizer, why) for why in qualified_name(finalizer)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        faults.append(invalid(f"{path}.finalizers", list(finalizers), why))
    if kind.known and kind.group != _EXTENSIONS and kind.name not in _PLAIN:
        for index, finalizer in enumerate(finalizers):
            if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
                faults.append(invalid(f"{path}.finalizers[{index}]", finalizer, NOT_STANDARD))
    if (meta.get("generation") or 0) < 0:
        faults.append(invalid(f"{path}.generation", meta["generation"], "must be greater than or equal to 0"))
    return faults


def validate_labels(labels: dict[str, str], path: str, faults: list[FieldError]) -> None:
    """Append the errors in the keys and values of labels or a nodeSelector; `path` is the path of the map."""
    for key, value in labels.items():
        if wrong := qualified_name(key):
            faults += [invalid(path, key, why) for why in wrong]
        if wrong := label_value(value):
            faults += [invalid(path, value, why) for why in wrong]


def validate_annotations(annotations: dict[str, str], path: str, faults: list[FieldError]) -> None:
    """Append the errors in the keys of annotations and in their total size."""
    for key in annotations:
        if wrong := qualified_name(key.lower()):
            faults += [invalid(path, key, why) for why in wrong]
    validate_annotations_size(annotations, path, faults)


def validate_annotations_size(annotations: dict[str, str], path: str, faults: list[FieldError]) -> None:
    """Append an error if the annotations have more than 256 KiB."""
    if sum(len(key) + len(value) for key, value in annotations.items()) > _MOST_ANNOTATED:
        faults.append(FieldError(path, None, f"Too long: may not be more than {_MOST_ANNOTATED} bytes"))


_NAMED: Final = ("kind", "name", "uid")
_BANNED: Final = frozenset((("v1", "Event"), ("/v1", "Event")))


def _validate_owners(owners: list[dict[str, Any]], path: str, faults: list[FieldError]) -> None:
    first = all_of_them = ""
    for owner in owners:
        stated, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
        if stated.count("/") > 1 or not stated.rpartition("/")[2]:
            faults.append(invalid(f"{path}.apiVersion", stated, "version must not be empty"))
        for field in _NAMED:
            if not owner.get(field):
                faults.append(invalid(f"{path}.{field}", owner.get(field) or "", "must not be empty"))
        if (stated, kind) in _BANNED:
            faults.append(invalid(path, _shown_owner(owner), "/v1, Kind=Event is disallowed from being an owner"))
        if not owner.get("controller"):
            continue
        name = f"{kind}/{owner.get('name') or ''}"
        if first and len(faults) < ENOUGH:
            all_of_them = all_of_them or invalid(path, [_shown_owner(each) for each in owners], "").why
            why = (
                f'Only one reference can have Controller set to true. Found "true" in references for {first} and {name}'
            )
            faults.append(FieldError(path, None, f"{all_of_them}: {why}"))
        first = first or name


def _shown_owner(owner: dict[str, Any]) -> dict[str, Any]:
    always = {field: owner.get(field) or "" for field in ("apiVersion", *_NAMED)}
    return always | {field: owner[field] for field in ("controller", "blockOwnerDeletion") if field in owner}
