"""Validation of CustomResourceDefinitions: group, names, scope and versions, which define the new resource's kind.

Source: apiextensions-apiserver v1.34, pkg/apis/apiextensions/validation/validation.go. Whether its
schemas are structural is for the store to check (`kschedd.store.structural_schema`).
"""

from typing import Any, Final

from kschedd.api.fields import FieldError, forbidden, invalid, required, unsupported
from kschedd.api.validation_names import dns1035_label, dns_subdomain

Raw = dict[str, Any]
Faults = list[FieldError]

SCOPES: Final = ("Cluster", "Namespaced")
_STRATEGIES: Final = ("None", "Webhook")

# Of a scale: its fields, where they may point to, and whether they have to.
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
        faults += [invalid("spec.group", group, why) for why in wrong]
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
    for field in ("plural", "singular", "kind", "listKind"):
        word = names.get(field) or ""
        if not word:
            faults.append(required(f"spec.names.{field}"))
        else:
            faults += [invalid(f"spec.names.{field}", word, why) for why in dns1035_label(word.lower())]
    for index, word in enumerate(names.get("shortNames") or ()):
        faults += [invalid(f"spec.names.shortNames[{index}]", word, why) for why in dns1035_label(word)]
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        why = "kind and listKind may not be the same"
        faults.append(invalid("spec.names.listKind", names["listKind"], why))


def _validate_conversion(spec: Raw, faults: Faults) -> None:
    conversion = spec.get("conversion") or {}
    here, strategy = "spec.conversion", conversion.get("strategy") or ""
    if not strategy:
        faults.append(required(f"{here}.strategy"))
    elif strategy not in _STRATEGIES:
        faults.append(unsupported(f"{here}.strategy", strategy, _STRATEGIES))
    webhook = (conversion.get("webhook") or {}).get("clientConfig")
    if strategy == "Webhook" and webhook is None:
        faults.append(required(f"{here}.webhookClientConfig", "required when strategy is set to Webhook"))
    elif strategy != "Webhook" and webhook is not None:
        why = "should not be set when strategy is not set to Webhook"
        faults.append(forbidden(f"{here}.webhookClientConfig", why))


def _validate_versions(versions: list[Raw], faults: Faults) -> None:
    seen = set()
    for index, version in enumerate(versions):
        here = f"spec.versions[{index}]"
        name = version.get("name") or ""
        faults += [invalid(f"{here}.name", name, why) for why in dns1035_label(name)]
        if name in seen:
            faults.append(invalid("spec.versions", versions, "must contain unique version names"))
        seen.add(name)
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            faults.append(required(f"{here}.schema.openAPIV3Schema", "schemas are required"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        faults.append(invalid("spec.versions", [version.get("name") for version in versions], why))


def _validate_subresources(versions: list[Raw], faults: Faults) -> None:
    subresources = [version.get("subresources") for version in versions]
    if subresources and all(each == subresources[0] for each in subresources):  # upstream keeps one for all of them
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
