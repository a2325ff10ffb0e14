"""Validation of a pod's volumes: each must have exactly one source, with the source's required fields.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateVolumes, validateVolumeSource and the
functions that they call). Sources are checked in upstream's order; if there are two, the later source is rejected.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kschedd.api.quantity import nanos
from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, required
from kschedd.api.selecting.names import dns_label, dns_subdomain, qualified_name
from kschedd.registry.pods.certificate_sources import validate_pod_certificate, validate_trust_bundle
from kschedd.registry.pods.downward_api import validate_field_ref, validate_resource_ref
from kschedd.registry.storage.validation import validate_claim_spec, validate_driver_name
from kschedd.registry.storage.volume_sources import (
    initiator_too_long,
    validate_common_source,
    validate_descending,
    validate_not_reserved,
)
from kschedd.registry.validation_meta import validate_labels

Raw = dict[str, Any]
Faults = list[FieldError]
Check = Callable[[Raw, str, Raw, Faults], None]

_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)


def validate_volumes(spec: Raw, path: str, faults: Faults) -> Mapping[str, Raw]:
    """Validate the volumes of a pod. Return the valid volumes by name."""
    names: dict[str, Raw] = {}
    for index, volume in enumerate(spec.get("volumes") or ()):
        here = f"{path}[{index}]"
        found: Faults = []
        _validate_source(volume, here, spec, found)
        name = volume.get("name") or ""
        if not name:
            found.append(required(f"{here}.name"))
        else:
            found += [invalid(f"{here}.name", name, why) for why in dns_label(name)]
        if name in names:
            found.append(duplicate(f"{here}.name", name))
        if not found:
            names[name] = volume
        faults += found
    return names


def _validate_source(volume: Raw, path: str, spec: Raw, faults: Faults) -> None:
    stated = [source for source in _SOURCES if volume.get(source) is not None]
    if not stated:
        faults.append(required(path, "must specify a volume type"))
        return
    kind = stated[0]
    source = volume[kind]
    here = f"{path}.{'persistentDisk' if kind == 'gcePersistentDisk' else kind}"
    faults += [required(f"{here}.{field}") for field in _NEEDED.get(kind, ()) if not source.get(field)]
    if (check := _CHECKS.get(kind)) is not None:
        check(source, here, spec, faults)
    else:
        validate_common_source(kind, source, here, faults)
    for extra in stated[1:]:
        faults.append(forbidden(f"{path}.{_CALLED.get(extra, extra)}", "may not specify more than 1 volume type"))
    if why := initiator_too_long(volume.get("iscsi") or {}, volume.get("name") or ""):
        faults.append(invalid(f"{path}.name", volume.get("name") or "", why))


_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "gitRepo": ("repository",),
    "secret": ("secretName",),
    "persistentVolumeClaim": ("claimName",),
    "configMap": ("name",),
    "image": ("reference",),
}
_CALLED: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}  # upstream's misspellings


def _empty_dir(source: Raw, path: str, spec: Raw, faults: Faults) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and nanos(limit) < 0:
        faults.append(forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def _git_repo(source: Raw, path: str, spec: Raw, faults: Faults) -> None:
    validate_descending(source.get("directory") or "", f"{path}.directory", faults)


def _files(source: Raw, path: str, spec: Raw, faults: Faults) -> None:
    _mode(source, "defaultMode", path, faults)
    for index, item in enumerate(source.get("items") or ()):
        _key_to_path(item, f"{path}.items[{index}]", faults)


def _mode(source: Raw, field: str, path: str, faults: Faults) -> None:
    mode = source.get(field)
    if mode is not None and not 0 <= mode <= 0o777:
        faults.append(invalid(f"{path}.{field}", mode, _MODE))


def _key_to_path(item: Raw, path: str, faults: Faults) -> None:
    for field in ("key", "path"):
        if not item.get(field):
            faults.append(required(f"{path}.{field}"))
    validate_not_reserved(item.get("path") or "", f"{path}.path", faults)
    _mode(item, "mode", path, faults)


def _downward(source: Raw, path: str, spec: Raw, faults: Faults) -> None:
    _mode(source, "defaultMode", path, faults)
    for item in source.get("items") or ():
        _downward_file(item, path, faults)


def _downward_file(item: Raw, path: str, faults: Faults) -> None:
    if not item.get("path"):
        faults.append(required(f"{path}.path"))
    validate_not_reserved(item.get("path") or "", f"{path}.path", faults)
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        validate_field_ref(field, f"{path}.fieldRef", _VOLUME_FIELDS, faults)
        if resource is not None:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            faults.append(invalid(path, "resource", why))
    elif resource is not None:
        validate_resource_ref(resource, f"{path}.resourceFieldRef", faults, volume=True)
    else:
        faults.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    _mode(item, "mode", path, faults)


_PROJECTIONS: Final = (
    "secret",
    "configMap",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
)


def _projected(source: Raw, path: str, spec: Raw, faults: Faults) -> None:
    _mode(source, "defaultMode", path, faults)
    places: set[str] = set()

    def place(name: str, shown: str) -> None:
        if name and name in places:
            faults.append(invalid(path, shown, "conflicting duplicate paths"))
        places.add(name)

    for index, each in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        stated = [kind for kind in _PROJECTIONS if each.get(kind) is not None]
        for kind in stated:
            inner = each[kind]
            if kind in ("secret", "configMap"):
                if not inner.get("name"):
                    faults.append(required(f"{here}.{kind}.name"))
                for number, item in enumerate(inner.get("items") or ()):
                    _key_to_path(item, f"{here}.{kind}.items[{number}]", faults)
                    place(item.get("path") or "", inner.get("name") or "")
            elif kind == "downwardAPI":
                for item in inner.get("items") or ():
                    _downward_file(item, f"{here}.downwardAPI", faults)
                    place(item.get("path") or "", item.get("path") or "")
            elif kind == "clusterTrustBundle":
                validate_trust_bundle(inner, f"{here}.clusterTrustBundle", place, faults)
            elif kind == "podCertificate":
                validate_pod_certificate(inner, f"{here}.podCertificate", place, faults)
            else:
                _token(inner, path, f"{here}.serviceAccountToken", spec, faults)
        if len(stated) > 1:
            faults.append(forbidden(here, "may not specify more than 1 volume type per source"))


def _token(token: Raw, path: str, here: str, spec: Raw, faults: Faults) -> None:
    seconds = token.get("expirationSeconds") or 0
    if seconds < 600:
        faults.append(invalid(f"{here}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    elif seconds > 1 << 32:
        why = "may not specify a duration larger than 2^32 seconds"
        faults.append(invalid(f"{here}.expirationSeconds", seconds, why))
    if not token.get("path"):
        faults.append(required(f"{path}.path"))
    else:
        validate_not_reserved(token["path"], f"{path}.path", faults)


def _csi(source: Raw, path: str, spec: Raw, faults: Faults) -> None:
    validate_driver_name(source.get("driver") or "", f"{path}.driver", faults)
    if (secret := source.get("nodePublishSecretRef")) is not None:
        if not (name := secret.get("name") or ""):
            faults.append(required(f"{path}.nodePublishSecretRef.name"))
        else:
            faults += [invalid(f"{path}.name", name, why) for why in dns_subdomain(name)]


_TEMPLATE_META: Final = ("annotations", "labels")


def _ephemeral(source: Raw, path: str, spec: Raw, faults: Faults) -> None:
    here = f"{path}.volumeClaimTemplate"
    template = source.get("volumeClaimTemplate")
    if template is None:
        faults.append(required(here))
        return
    meta = template.get("metadata") or {}
    for key in meta.get("annotations") or {}:
        faults += [invalid(f"{here}.metadata.annotations", key, why) for why in qualified_name(key.lower())]
    validate_labels(meta.get("labels") or {}, f"{here}.metadata.labels", faults)
    for field in sorted(field for field in meta if field not in _TEMPLATE_META):
        faults.append(forbidden(f"{here}.metadata.{field}", "cannot be set"))
    validate_claim_spec(template.get("spec") or {}, f"{here}.spec", faults)


_SOURCES: Final[Sequence[str]] = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_CHECKS: Final[Mapping[str, Check]] = {
    "emptyDir": _empty_dir,
    "gitRepo": _git_repo,
    "secret": _files,
    "configMap": _files,
    "downwardAPI": _downward,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
}
