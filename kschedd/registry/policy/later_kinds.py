"""Validation of the kinds added in 1.36 and 1.37: mutating policies, trust bundles, certificates, migrations.

Expressions are required, but not compiled; certificates are not parsed. The functions receive the new spec and the old
spec (None for a new object), and return the errors.
Source: Kubernetes v1.37, pkg/apis/admissionregistration, certificates and storagemigration (validation.go).
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required, unsupported
from kschedd.api.selecting.names import dns1035_label, dns_subdomain
from kschedd.registry.policy.admission_policies import validate_binding_target, validate_policy_scope
from kschedd.registry.signers import is_of_kubernetes, validate_signer

Raw = Mapping[str, Any]

_IMMUTABLE: Final = "field is immutable"
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_REINVOCATION: Final = ("IfNeeded", "Never")
#: patch type -> field that it requires
_PATCHES: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_HOUR: Final = 3600
_LONGEST: Final = 91 * 24 * _HOUR
_LONGEST_OF_KUBERNETES: Final = 24 * _HOUR
_ARMOR: Final = "-----BEGIN CERTIFICATE-----"


def validate_mutating_policy(spec: Raw, old: Raw | None) -> list[FieldError]:
    faults: list[FieldError] = []
    validate_policy_scope(spec, faults)
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        path = "spec.matchConstraints.resourceRules.operations"
        faults += [
            unsupported(path, one, _OPERATIONS) for one in rule.get("operations") or () if one not in _OPERATIONS
        ]
    mutations = spec.get("mutations") or ()
    if not mutations:
        faults.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations):
        _validate_mutation(mutation, f"spec.mutations[{index}]", faults)
    again = spec.get("reinvocationPolicy") or ""
    if not again:
        faults.append(required("spec.reinvocationPolicy"))
    elif again not in _REINVOCATION:
        faults.append(unsupported("spec.reinvocationPolicy", again, _REINVOCATION))
    return faults


def _validate_mutation(mutation: Raw, path: str, faults: list[FieldError]) -> None:
    kind = mutation.get("patchType") or ""
    if not kind:
        faults.append(required(f"{path}.patchType"))
    elif kind not in _PATCHES:
        faults.append(unsupported(f"{path}.patchType", kind, tuple(_PATCHES)))
    for other, field in _PATCHES.items() if kind in _PATCHES else ():
        patch = mutation.get(field)
        if other != kind:
            if patch is not None:
                why = f"must not be specified when patchType is {kind}"
                faults.append(invalid(f"{path}.{field}", f"{{{field}}}", why))
        elif patch is None:
            faults.append(required(f"{path}.{field}", f"must be specified when patchType is {kind}"))
        elif not (patch.get("expression") or "").strip():
            faults.append(required(f"{path}.{field}.expression"))


def validate_mutating_binding(spec: Raw, old: Raw | None) -> list[FieldError]:
    faults: list[FieldError] = []
    validate_binding_target(spec, faults)
    return faults


def validate_trust_bundle(spec: Raw, old: Raw | None) -> list[FieldError]:
    faults: list[FieldError] = []
    signer, bundle = spec.get("signerName") or "", spec.get("trustBundle") or ""
    if signer:
        validate_signer(signer, "spec.signerName", faults)
    if (old is None or bundle != old.get("trustBundle")) and _ARMOR not in bundle:
        why = "at least one trust anchor must be provided"
        faults.append(invalid("spec.trustBundle", "<value omitted>", why))
    if old is not None and signer != (old.get("signerName") or ""):
        faults.append(invalid("spec.signerName", signer, _IMMUTABLE))
    return faults


def validate_pod_certificate(spec: Raw, old: Raw | None) -> list[FieldError]:
    if old is not None:
        return [] if spec == old else [invalid("spec", dict(spec), _IMMUTABLE)]
    faults: list[FieldError] = []
    signer, seconds = spec.get("signerName") or "", spec.get("maxExpirationSeconds")
    validate_signer(signer, "spec.signerName", faults)
    for named, uid in (("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")):
        name = spec.get(named) or ""
        faults += [invalid(f"spec.{named}", name, why) for why in dns_subdomain(name)]
        if not spec.get(uid):
            faults.append(invalid(f"spec.{uid}", "", "must not be empty"))
    most = _LONGEST_OF_KUBERNETES if is_of_kubernetes(signer) else _LONGEST
    if seconds is None:
        faults.append(required("spec.maxExpirationSeconds", "must be set"))
    elif not _HOUR <= seconds <= most:
        faults.append(invalid("spec.maxExpirationSeconds", seconds, f"must be in the range [{_HOUR}, {most}]"))
    return faults


def validate_storage_migration(spec: Raw, old: Raw | None) -> list[FieldError]:
    faults: list[FieldError] = []
    of = spec.get("resource") or {}
    resource, group = of.get("resource") or "", of.get("group") or ""
    if not resource:
        faults.append(required("spec.resource.resource", "resource is required to be set"))
    elif wrong := dns1035_label(resource):
        faults.append(invalid("spec.resource.resource", resource, ",".join(wrong)))
    if group and (wrong := dns_subdomain(group)):
        faults.append(invalid("spec.resource.group", group, ",".join(wrong)))
    if old is not None and spec != old:
        faults.append(invalid("spec", dict(spec), _IMMUTABLE))
    return faults
