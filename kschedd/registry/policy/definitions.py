"""Validation of CustomResourceDefinitions: group, names, scope and versions of the new resource.

Source: apiextensions-apiserver v1.34, pkg/apis/apiextensions/validation/validation.go. The store checks that the
schemas are structural (`kschedd.store.custom_resources.structural_schema`).
"""

from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, forbidden, invalid, required, unsupported
from kschedd.api.selecting.names import dns1035_label, dns_subdomain

Raw = dict[str, Any]
Faults = list[FieldError]

SCOPES: Final = ("Cluster", "Namespaced")
_STRATEGIES: Final = ("None", "Webhook")
_REVIEWED: Final = ("v1", "v1beta1")
_LONGEST_WARNING: Final = 256  # bytes
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")

# field of a scale, allowed prefixes of its path, and whether it is required
_SCALE_PATHS: Final = (
    ("specReplicasPath", (".spec.",), True),
    ("statusReplicasPath", (".status.",), True),
    ("labelSelectorPath", (".spec.", ".status."), False),
)


def validate_definition(raw: Raw, faults: Faults) -> None:
    spec = raw.get("spec") or {}
    names = spec.get("names") or {}
    group, plural = spec.get("group") or "", names.get("plural") or ""
    name = (raw.get("metadata") or {}).get("name")
    if name != f"{plural}.{group}":
        faults.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if not group:
        faults.append(required("spec.group"))
    elif wrong := dns_subdomain(group):
        faults.append(invalid("spec.group", group, ",".join(wrong)))
    elif "." not in group:
        faults.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    scope = spec.get("scope")
    if not scope:
        faults.append(required("spec.scope"))
    elif scope not in SCOPES:
        faults.append(unsupported("spec.scope", scope, SCOPES))
    versions = spec.get("versions") or []
    _validate_conversion(spec, faults)
    _validate_versions(versions, faults)
    _validate_subresources(versions, faults)
    _validate_columns(versions, faults)
    _validate_names(names, faults)


def _validate_names(names: Raw, faults: Faults) -> None:
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            faults.append(required(f"spec.names.{field}"))
    for field in ("plural", "singular", "kind", "listKind"):
        word = names.get(field) or ""
        mixed = field in ("kind", "listKind")
        if word and (wrong := dns1035_label(word.lower() if mixed else word)):
            begin = "may have mixed case, but should otherwise match: " if mixed else ""
            faults.append(invalid(f"spec.names.{field}", word, begin + ",".join(wrong)))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        why = "kind and listKind may not be the same"
        faults.append(invalid("spec.names.listKind", names["listKind"], why))
    for field in ("shortNames", "categories"):
        for index, word in enumerate(names.get(field) or ()):
            if wrong := dns1035_label(word):
                faults.append(invalid(f"spec.names.{field}[{index}]", word, ",".join(wrong)))


def _validate_conversion(spec: Raw, faults: Faults) -> None:
    conversion = spec.get("conversion") or {}
    here, strategy = "spec.conversion", conversion.get("strategy") or ""
    if not strategy:
        faults.append(required(f"{here}.strategy"))
    elif strategy not in _STRATEGIES:
        faults.append(unsupported(f"{here}.strategy", strategy, _STRATEGIES))
    webhook = conversion.get("webhook") or {}
    client, reviewed = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy != "Webhook":
        stated = {"webhookClientConfig": client is not None, "conversionReviewVersions": bool(reviewed)}
        why = "should not be set when strategy is not set to Webhook"
        faults += [forbidden(f"{here}.{field}", why) for field, there in stated.items() if there]
        return
    if client is None:
        faults.append(required(f"{here}.webhookClientConfig", "required when strategy is set to Webhook"))
    elif (client.get("url") is None) == (client.get("service") is None):
        faults.append(required(f"{here}.webhookClientConfig", "exactly one of url or service is required"))
    _validate_reviewed(reviewed, f"{here}.conversionReviewVersions", faults)


def _validate_reviewed(versions: list[str], path: str, faults: Faults) -> None:
    """Validate the ConversionReview versions of a webhook; the API server must support at least one of them."""
    if not versions:
        faults.append(required(path))
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            faults.append(invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            faults += [invalid(f"{path}[{index}]", version, why) for why in dns1035_label(version)]
        seen.add(version)
    if not {*versions} & {*_REVIEWED}:
        faults.append(invalid(path, versions, f"must include at least one of {', '.join(_REVIEWED)}"))


def _validate_versions(versions: list[Raw], faults: Faults) -> None:
    seen, twice = set(), None
    for index, version in enumerate(versions):
        here = f"spec.versions[{index}]"
        name = version.get("name") or ""
        if wrong := dns1035_label(name):
            faults.append(invalid(f"{here}.name", name, ",".join(wrong)))
        _validate_deprecation(version, f"{here}.deprecationWarning", faults)
        if name in seen:
            twice = twice or invalid("spec.versions", versions, "must contain unique version names")
            faults.append(twice)
        seen.add(name)
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            faults.append(required(f"{here}.schema.openAPIV3Schema", "schemas are required"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        faults.append(invalid("spec.versions", [version.get("name") for version in versions], why))


def _validate_deprecation(version: Raw, path: str, faults: Faults) -> None:
    text = version.get("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        faults.append(invalid(path, text, "can only be set for deprecated versions"))
    elif not text:
        faults.append(invalid(path, text, "must not be an empty string"))
    elif len(text.encode()) > _LONGEST_WARNING:
        faults.append(invalid(path, text, f"must be <= {_LONGEST_WARNING} characters long"))


def _validate_columns(versions: list[Raw], faults: Faults) -> None:
    columns = [version.get("additionalPrinterColumns") or [] for version in versions]
    if columns and all(each == columns[0] for each in columns):  # upstream merges equal columns
        paths = ["spec.additionalPrinterColumns"]
    else:
        paths = [f"spec.versions[{index}].additionalPrinterColumns" for index in range(len(versions))]
    for path, listed in zip(paths, columns, strict=False):
        for index, column in enumerate(listed):
            _validate_column(column, f"{path}[{index}]", faults)


def _validate_column(column: Raw, path: str, faults: Faults) -> None:
    """Validate a printer column of a custom resource."""
    kind, form, place = (column.get(field) or "" for field in ("type", "format", "jsonPath"))
    if not column.get("name"):
        faults.append(required(f"{path}.name"))
    if not kind:
        faults.append(required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}"))
    elif kind not in _COLUMN_TYPES:
        faults.append(invalid(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}"))
    if form and form not in _COLUMN_FORMATS:
        faults.append(invalid(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not place:
        faults.append(required(f"{path}.JSONPath"))
    elif not place.startswith("."):
        faults.append(invalid(f"{path}.JSONPath", place, "must be a simple json path starting with ."))


def _validate_subresources(versions: list[Raw], faults: Faults) -> None:
    subresources = [version.get("subresources") for version in versions]
    # upstream merges equal subresources
    if subresources and all(each == subresources[0] for each in subresources):
        _validate_scale(subresources[0], "spec.subresources.scale", faults)
        return
    for index, each in enumerate(subresources):
        _validate_scale(each, f"spec.versions[{index}].subresources.scale", faults)


def _validate_scale(subresources: Raw | None, here: str, faults: Faults) -> None:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return
    for field, parts, needed in _SCALE_PATHS:
        path = scale.get(field) or ""
        if not path:
            if needed:
                faults.append(required(f"{here}.{field}"))
        elif not path.startswith("."):
            faults.append(invalid(f"{here}.{field}", path, "must be a simple json path starting with ."))
        elif not path.startswith(parts):
            of = f"under {parts[0][:-1]}" if len(parts) == 1 else "under either .spec or .status"
            faults.append(invalid(f"{here}.{field}", path, f"should be a json path {of}"))
