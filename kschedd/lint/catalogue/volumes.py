"""Rules about volumes, claims, storage classes and CSI objects."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kschedd.lint.rules import PODS, Hit, Level, RuleSet
from kschedd.lint.subjects import KnownObjects, LintedObject, PodPart, Raw, Steps, at, entries, text_of
from kschedd.storage.migration import IN_TREE
from kschedd.values import as_map

RULES: Final = RuleSet()
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEAD: Final = ("glusterfs", "flocker", "quobyte", "storageos", "scaleIO", "photonPersistentDisk")
# in-tree types that a CSI driver serves in all listed releases
_MIGRATED: Final = {each.source: each for each in IN_TREE if not each.by_annotation}
_WITH_CLAIMS: Final = ("PersistentVolumeClaim", "StatefulSet")
_WITH_VOLUMES: Final = (PODS, "PersistentVolume")


def _claims(found: LintedObject) -> Iterator[tuple[Steps, Raw, Raw]]:
    """Yield the path, the metadata and the spec of each claim in an object."""
    if found.kind == "PersistentVolumeClaim":
        yield (), found.meta, found.spec
    for path, template in entries(found.spec, "volumeClaimTemplates"):
        yield ("spec", *path), as_map(template.get("metadata")), as_map(template.get("spec"))


def _sources(found: LintedObject | PodPart, known: KnownObjects) -> Iterator[tuple[Steps, Raw]]:
    """Yield the sources of a pod's volumes, or the source of a PersistentVolume, each with its path."""
    if isinstance(found, PodPart):
        yield from entries(found.spec, "volumes")
    elif found.kind == "PersistentVolume":
        yield ("spec",), found.spec


@RULES.add(
    "pvc-beta-class",
    _WITH_CLAIMS,
    ("", "note", "this annotation is deprecated, and it wins over storageClassName"),
    fix="Use storageClassName and remove the annotation.",
    source="component-helpers (GetPersistentVolumeClaimClass)",
)
def pvc_beta_class(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, meta, _ in _claims(found):
        if _BETA_CLASS in as_map(meta.get("annotations")):
            yield Hit((*path, "metadata", "annotations", _BETA_CLASS))


@RULES.add(
    "pvc-empty-class",
    _WITH_CLAIMS,
    ("", "warning", "an empty storageClassName asks for no provisioning: the claim waits for a volume without class"),
    fix="Omit the field for the default class, or set a class; keep it if a user creates the volume.",
    source="notes of 1.30",
)
def pvc_empty_class(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, _, spec in _claims(found):
        is_free = spec.get("storageClassName") == "" and not spec.get("volumeName") and not spec.get("selector")
        if is_free and not known.once("volumes without class", partial(_has_classless_volumes, known)):
            yield Hit((*path, "spec", "storageClassName"))


def _has_classless_volumes(known: KnownObjects) -> bool:
    return any(not each.spec.get("storageClassName") for each in known.of("PersistentVolume"))


@RULES.add(
    "vac",
    _WITH_CLAIMS,
    ("", "warning", "the API server drops volumeAttributesClassName"),
    ("1.34", "fine", "volumeAttributesClassName is used"),
    fix="Upgrade, or remove the field.",
    source="kube_features.go (VolumeAttributesClass)",
)
def vac(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, _, spec in _claims(found):
        if spec.get("volumeAttributesClassName"):
            yield Hit((*path, "spec", "volumeAttributesClassName"))


@RULES.add(
    "pv-mount-options",
    "PersistentVolume",
    ("", "note", "this annotation is deprecated, and the API server warns of it since 1.31"),
    fix="Use spec.mountOptions.",
    source="kubernetes#124819",
)
def pv_mount_options(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if (key := "volume.beta.kubernetes.io/mount-options") in found.annotations:
        yield Hit(("metadata", "annotations", key))


@RULES.add(
    "recycle",
    "PersistentVolume",
    ("", "note", "the reclaim policy Recycle is deprecated"),
    fix="Provision volumes dynamically, or use Retain.",
    source="core/v1 types",
)
def recycle(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield Hit(("spec", "persistentVolumeReclaimPolicy"))


def _typed(found: LintedObject | PodPart, known: KnownObjects, *types: str) -> Iterator[Hit]:
    for path, source in _sources(found, known):
        for name in types:
            if source.get(name) is not None:
                yield Hit((*path, name), name)


def _volume_rule(code: str, *types: str, says: str, level: Level, fix: str, source: str, since: str = "") -> None:
    """Declare a rule for types of volumes, in pods and in PersistentVolumes."""
    before: list[tuple[str, Level, str]] = [("", "fine", "volumes of this type are mounted")] if since else []
    eras = [*before, (since, level, says)]
    RULES.add(code, _WITH_VOLUMES, *eras, fields="volumes", fix=fix, source=source)(
        lambda found, known: _typed(found, known, *types)
    )


_volume_rule(
    "cephfs",
    "cephfs",
    since="1.31",
    level="error",
    says="volumes of the type cephfs are not mounted, so the pod does not start",
    fix="Use the CSI driver of CephFS.",
    source="notes of 1.31",
)
_volume_rule(
    "rbd",
    "rbd",
    since="1.31",
    level="error",
    says="volumes of the type rbd are not mounted, so the pod does not start",
    fix="Use the CSI driver of RBD.",
    source="notes of 1.31",
)
_volume_rule(
    "dead-volumes",
    *_DEAD,
    level="error",
    says="the API has the volume type {}, but no kubelet mounts it",
    fix="Use a CSI driver.",
    source="core/v1 types",
)
_volume_rule(
    "gitrepo",
    "gitRepo",
    level="warning",
    says="gitRepo volumes are deprecated, and newer kubelets do not mount them by default",
    fix="Clone the repository into an emptyDir with an init container.",
    source="core/v1 types",
)
_volume_rule(
    "portworx",
    "portworxVolume",
    since="1.36",
    level="note",
    says="the volume needs the CSI driver pxd.portworx.com and counts against its limit on every node",
    fix="Install the driver. In new manifests, use a PersistentVolumeClaim, or a PersistentVolume with `csi:`.",
    source="kubernetes#135322",
)


@RULES.add(
    "migrated-volumes",
    _WITH_VOLUMES,
    ("", "note", "{}"),
    fields="volumes",
    fix="Install the driver. In new manifests, use a PersistentVolumeClaim, or a PersistentVolume with `csi:`.",
    source="core/v1 types",
)
def migrated_volumes(found: LintedObject | PodPart, known: KnownObjects) -> Iterator[Hit]:
    for hit in _typed(found, known, *_MIGRATED):
        served = _MIGRATED[hit.what]
        counts = ", and counts against its limit on every node" if served.migrated else ""
        mounted = f"Kubernetes does not mount {hit.what} volumes itself: they need the CSI driver {served.driver}"
        yield Hit(hit.path, f"{mounted}{counts}")


@RULES.add(
    "image-volume-reference",
    PODS,
    ("", "error", "the template is accepted, but each of its pods is rejected: the image volume has no reference"),
    ("1.37", "error", "the object is rejected: the image volume has no reference"),
    fields="volumes",
    fix="Set `reference` to the name of the image.",
    source="kubernetes#135989",
)
def image_volume_reference(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, volume in entries(pod.spec, "volumes"):
        if isinstance(image := volume.get("image"), dict) and not image.get("reference") and pod.is_template:
            yield Hit((*path, "image"))


@RULES.add(
    "image-volume-score",
    PODS,
    ("", "note", "nodes that have the image of this volume are not preferred"),
    ("1.36", "note", "nodes that have the image of this volume are preferred more than they should be"),
    ("1.37", "fine", "nodes that have the image of this volume are preferred as for the image of a container"),
    fields="volumes",
    fix="Nothing has to change.",
    source="kubernetes#130231, kubernetes#138951",
)
def image_volume_score(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, volume in entries(pod.spec, "volumes"):
        if at(volume, "image", "reference"):
            yield Hit((*path, "image"))


@RULES.add(
    "csi-prevent-missing",
    "CSIDriver",
    ("", "warning", "the API server drops preventPodSchedulingIfMissing"),
    ("1.37", "fine", "pods with such volumes go only to nodes whose CSINode lists the driver"),
    fix="Write the object again after the upgrade, because dropped fields are not stored.",
    source="kubernetes#140612",
)
def csi_prevent_missing(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("preventPodSchedulingIfMissing") is True:
        yield Hit(("spec", "preventPodSchedulingIfMissing"))


@RULES.add(
    "capacity-spreads",
    "CSIDriver",
    ("", "fine", "free capacity has no influence on the score of a node"),
    ("1.37", "fine", "pods with volumes still to be provisioned prefer the node with the most free capacity"),
    fix="To pack volumes instead, set `shape` in the arguments of the plugin VolumeBinding.",
    source="kube_features.go (StorageCapacityScoring)",
)
def capacity_spreads(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("storageCapacity") is True:
        yield Hit(("spec", "storageCapacity"))


@RULES.add(
    "capacity-immediate",
    "StorageClass",
    (
        "",
        "note",
        "storage capacity is not looked at with the binding mode Immediate, although the driver reports it",
    ),
    fix="Use `volumeBindingMode: WaitForFirstConsumer`, unless something waits for a claim to be bound before a pod "
    "uses it.",
    source="scheduler/framework/plugins/volumebinding/binder.go",
)
def capacity_immediate(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.raw.get("volumeBindingMode", "Immediate") != "Immediate":
        return
    drivers = known.once(
        "CSI drivers that report capacity",
        lambda: {each.name for each in known.of("CSIDriver") if each.spec.get("storageCapacity") is True},
    )
    if text_of(found.raw.get("provisioner")) in drivers:
        yield Hit(("volumeBindingMode",))


@RULES.add(
    "no-provisioner-unbound",
    "StorageClass",
    ("", "note", "nothing is provisioned for this class: pods wait until a fitting volume is made by hand"),
    fix="Create the volumes before the pods, or set a provisioner.",
    source="scheduler/framework/plugins/volumebinding/binder.go",
)
def no_provisioner_unbound(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.raw.get("provisioner") != "kubernetes.io/no-provisioner" or not known.lists("PersistentVolume"):
        return  # without a dump: a provisioner of local volumes may create them
    with_volumes = known.once(
        "storage classes of volumes",
        lambda: {text_of(each.spec.get("storageClassName")) for each in known.of("PersistentVolume")},
    )
    if found.name not in with_volumes:
        yield Hit(("provisioner",))


@RULES.add(
    "migrated-annotation",
    "CSINode",
    ("", "fine", "volumes of Portworx are counted as this annotation says"),
    ("1.36", "fine", "volumes of Portworx count as volumes of the CSI driver, whatever this annotation says"),
    fix="Remove the annotation.",
    source="kube-scheduler 1.36.3, nodevolumelimits",
)
def migrated_annotation(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if (key := "storage.alpha.kubernetes.io/migrated-plugins") in found.annotations:
        yield Hit(("metadata", "annotations", key))


@RULES.add(
    "capacity-crash",
    "CSIStorageCapacity",
    ("", "fine", "an object without capacity counts as 0"),
    ("1.37", "error", "kube-scheduler 1.37.2 crashes on a CSIStorageCapacity with maximumVolumeSize and no capacity"),
    fix="Set capacity; before the upgrade, update drivers that omit the field.",
    source="kube-scheduler 1.37.2, volumebinding",
)
def capacity_crash(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.raw.get("maximumVolumeSize") is not None and found.raw.get("capacity") is None:
        yield Hit(("maximumVolumeSize",))
