"""Validation of annotations and names of pods and templates against their specs.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidatePodSpecificAnnotations,
ValidatePodSpecificAnnotationUpdates, validateSeccompAnnotationsAndFields,
validateAppArmorAnnotationsAndFieldsMatchOnCreate, ValidateVolumes), pkg/apis/core/helper/helpers.go
(GetDeletionCostFromPodAnnotations), pkg/registry/core/pod/strategy.go (applyAppArmorVersionSkew).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.quantity import quoted
from kschedd.api.schemas.fields import FieldError, forbidden, invalid
from kschedd.api.selecting.names import dns_subdomain
from kschedd.registry.pods.annotated_lists import annotated_list
from kschedd.registry.pods.security import validate_app_armor
from kschedd.registry.pods.windows import each_container
from kschedd.registry.storage.volume_sources import validate_descending
from kschedd.registry.validation_selectors import validate_tolerations

Raw = dict[str, Any]
Faults = list[FieldError]
Annotations = Mapping[str, str]

APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
MIRROR: Final = "kubernetes.io/config.mirror"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
_SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_LOOKED_AT: Final = frozenset((MIRROR, DELETION_COST, TOLERATIONS, _SECCOMP_OF_POD))
_COST: Final = re.compile(r"0|-[0-9]+|[1-9][0-9]*", re.ASCII)
_LOCAL: Final = "localhost/"
_RUNTIME_DEFAULT: Final = ("runtime/default", "docker/default")


def is_about_spec(annotation: str) -> bool:
    """Return whether this annotation's value is validated, mostly against the pod's spec."""
    return type(annotation) is str and (annotation.startswith((APPARMOR, _SECCOMP)) or annotation in _LOOKED_AT)


def has_good_cost(annotations: Annotations) -> bool:
    """Return whether the pod has no deletion cost or a valid one (a 32-bit integer)."""
    text = annotations.get(DELETION_COST)
    if text is None:
        return True
    return bool(_COST.fullmatch(text)) and len(text) < 12 and -(2**31) <= int(text) < 2**31


def validate_pod_annotations(
    annotations: Annotations, spec: Raw, path: str, faults: Faults, old: Annotations | None = None
) -> None:
    """Validate the annotations that relate to the pod's spec; `old` are the annotations before an update."""
    if MIRROR in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        faults.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], why))
    if text := annotations.get(TOLERATIONS):
        _validate_tolerations(text, path, faults)
    if not has_good_cost(annotations) and (old is None or has_good_cost(old)):
        faults.append(invalid(f"{path}[{DELETION_COST}]", annotations[DELETION_COST], "must be a 32bit integer"))
    for key, profile in annotations.items():
        if key == _SECCOMP_OF_POD or key.startswith(_SECCOMP):
            _validate_seccomp(profile, f"{path}.{key}", faults)
    confined = {key: profile for key, profile in annotations.items() if key.startswith(APPARMOR)}
    names = {container.get("name") for container, _ in each_container(spec, "")} if confined else set()
    for key, profile in confined.items():
        name = key.removeprefix(APPARMOR)
        if name not in names:
            faults.append(invalid(f"{path}[{key}]", name, "container not found"))
        if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCAL):
            faults.append(invalid(f"{path}[{key}]", profile, f"invalid AppArmor profile name: {quoted(profile)}"))


def _validate_tolerations(text: str, path: str, faults: Faults) -> None:
    tolerations, wrong = annotated_list(text, "Toleration")
    if wrong:
        faults.append(invalid(path, TOLERATIONS, wrong))
    validate_tolerations(tolerations, f"{path}.{TOLERATIONS}", faults)


def _validate_seccomp(profile: str, path: str, faults: Faults) -> None:
    if profile.startswith(_LOCAL):
        validate_descending(profile.removeprefix(_LOCAL), path, faults)
    elif profile not in (*_RUNTIME_DEFAULT, "unconfined"):
        faults.append(invalid(path, profile, "must be a valid seccomp profile"))


def validate_profiles_match(annotations: Annotations, spec: Raw, path: str, faults: Faults) -> None:
    """Check that a new pod or a template has the same profiles in annotations and in fields."""
    of_pod = spec.get("securityContext") or {}
    _match(annotations.get(_SECCOMP_OF_POD), of_pod.get("seccompProfile"), f"{path}.securityContext", "seccomp", faults)
    for container, here in each_container(spec, path):
        own = container.get("securityContext") or {}
        annotation = annotations.get(_SECCOMP + (container.get("name") or ""))
        _match(annotation, own.get("seccompProfile"), f"{here}.securityContext", "seccomp", faults)
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for container, here in each_container(spec, path):
        own = container.get("securityContext") or {}
        profile = own.get("appArmorProfile") or of_pod.get("appArmorProfile")
        annotation = annotations.get(APPARMOR + (container.get("name") or ""))
        _match(annotation, profile, f"{here}.securityContext", "apparmor", faults)


def _match(annotation: str | None, profile: Raw | None, context: str, word: str, faults: Faults) -> None:
    if annotation is None or profile is None:
        return
    here = f"{context}.{'seccompProfile' if word == 'seccomp' else 'appArmorProfile'}"
    kind = profile.get("type")
    default = _RUNTIME_DEFAULT if word == "seccomp" else _RUNTIME_DEFAULT[:1]
    if kind == "Localhost" and annotation.startswith(_LOCAL):
        if annotation.removeprefix(_LOCAL) != profile.get("localhostProfile"):
            faults.append(forbidden(f"{here}.localhostProfile", f"{word} profile in annotation and field must match"))
        return
    allowed = {"Unconfined": ("unconfined",), "RuntimeDefault": default, "Localhost": ()}.get(kind or "")
    if allowed is not None and annotation not in allowed:
        faults.append(forbidden(f"{here}.type", f"{word} type in annotation and field must match"))


def validate_annotation_changes(old: Annotations, new: Annotations, path: str, faults: Faults) -> None:
    """Check that annotations that affect a running pod's containers are not changed."""
    for key, value in old.items():
        if new.get(key) == value:
            continue
        if key.startswith(APPARMOR):
            faults.append(forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations"))
        elif key == MIRROR:
            faults.append(forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation"))
    for key in new:
        if key in old:
            continue
        if key.startswith(APPARMOR):
            faults.append(forbidden(f"{path}[{key}]", "may not add AppArmor annotations"))
        elif key == MIRROR:
            faults.append(forbidden(f"{path}[{key}]", "may not add mirror pod annotation"))


def validate_claims_by_name(name: str, spec: Raw, faults: Faults) -> None:
    """Validate the names of the claims for the ephemeral volumes of a pod with this name."""
    volumes = spec.get("volumes") or ()
    made = {f"{name}-{volume.get('name') or ''}" for volume in volumes if "ephemeral" in volume}
    for index, volume in enumerate(volumes):
        here, own = f"spec.volumes[{index}]", volume.get("name") or ""
        if "ephemeral" in volume and own:
            claim = f"{name}-{own}"
            faults += [invalid(f"{here}.name", own, f'PVC name "{claim}": {why}') for why in dns_subdomain(claim)]
        wanted = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if wanted in made:
            why = "must not reference a PVC that gets created for an ephemeral volume"
            faults.append(invalid(f"{here}.persistentVolumeClaim.claimName", wanted, why))


_USE_FIELD: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def with_app_armor_fields(spec: Raw, annotations: Annotations) -> tuple[Raw, list[str]]:
    """Return a new pod's spec with unset AppArmor fields filled from annotations, and the warnings."""
    warnings: list[str] = []
    if (spec.get("os") or {}).get("name") == "windows" or not any(key.startswith(APPARMOR) for key in annotations):
        return spec, warnings
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    new = dict(spec)
    for field in ("initContainers", "containers", "ephemeralContainers"):
        if field in spec:
            new[field] = [_with_profile(container, annotations, of_pod, warnings) for container in spec[field]]
    return new, warnings


def _with_profile(container: Raw, annotations: Annotations, of_pod: Raw | None, warnings: list[str]) -> Raw:
    own = container.get("securityContext") or {}
    key = APPARMOR + (container.get("name") or "")
    if key not in annotations or own.get("appArmorProfile") is not None:
        return container
    profile = _profile_of(annotations[key])
    faults: Faults = []
    validate_app_armor(profile, "", faults)
    if profile is not None and not faults and profile == of_pod:
        return container
    warnings.append(f"metadata.annotations[{key}]: {_USE_FIELD}")
    if profile is None or faults:
        return container
    return {**container, "securityContext": {**own, "appArmorProfile": profile}}


def _profile_of(annotation: str) -> Raw | None:
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    if annotation.startswith(_LOCAL) and annotation != _LOCAL:
        return {"type": "Localhost", "localhostProfile": annotation.removeprefix(_LOCAL)}
    return None
