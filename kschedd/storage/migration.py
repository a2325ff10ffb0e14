"""CSI migration: in-tree volumes translated into CSI volumes (driver, volume handle, topology keys).

An annotation on the CSINode of a node lists the in-tree plugins that are migrated on the node.
Source: Kubernetes v1.34, csi-translation-lib (translate.go, plugins/*.go), volumebinding/binder.go
(tryTranslatePVToCSI), nodevolumelimits/utils.go (isCSIMigrationOn).
Errors: StorageError if a source cannot be translated.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.storage.volumes import StorageError

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
ZONE_DELIMITER: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"
_EBS_ID: Final = re.compile("vol-[^/]*")

Labels = Mapping[str, str]


@attrs.frozen
class InTree:
    """An in-tree volume plugin that migrates to a CSI driver."""

    source: str  # field of a volume spec that contains the source
    plugin: str
    driver: str
    # called with the source and the labels of the PersistentVolume (None for an inline volume)
    handle: Callable[[Raw, Labels | None], str]
    topology_key: str = ""
    migrated: bool = True  # True if the scheduler translates the plugin's volumes
    by_annotation: bool = False  # True if NodeVolumeLimits also requires the CSINode annotation


def _ebs_handle(source: Raw, _: Labels | None) -> str:
    text: str = source.get("volumeID") or ""
    if not text.startswith("aws://"):
        return text
    handle = unquote(urlsplit(text).path).strip("/")
    if not _EBS_ID.fullmatch(handle):
        why = f"Invalid format for AWS volume ({text})"
        raise StorageError(f"failed to translate Kubernetes ID to EBS Volume ID {why}")
    return handle


def _gce_handle(source: Raw, labels: Labels | None) -> str:
    disk = source.get("pdName") or ""
    text = "" if labels is None else labels.get(BETA_ZONE) or labels.get(ZONE) or ""
    zones = text.split(ZONE_DELIMITER)
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{disk}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk}"


def _gce_region(zones: list[str]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            why = f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            raise StorageError(f"failed to get region from zones: {why}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise StorageError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{found}]"
        )
    return regions.pop()


def _azure_disk_handle(source: Raw, _: Labels | None) -> str:
    kind = source.get("kind")
    if kind is not None and kind != "Managed":
        raise StorageError(f"kind({kind}) is not supported in csi migration")
    return source.get("diskURI") or ""


def _field(name: str) -> Callable[[Raw, Labels | None], str]:
    return lambda source, _: source.get(name) or ""


IN_TREE: Final = (
    InTree("gcePersistentDisk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", _gce_handle, "topology.gke.io/zone"),
    InTree(
        "awsElasticBlockStore",
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        _ebs_handle,
        "topology.ebs.csi.aws.com/zone",
    ),
    InTree(
        "cinder",
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        _field("volumeID"),
        "topology.cinder.csi.openstack.org/zone",
    ),
    InTree("azureDisk", "kubernetes.io/azure-disk", "disk.csi.azure.com", _azure_disk_handle),
    InTree("azureFile", "kubernetes.io/azure-file", "file.csi.azure.com", _field("shareName"), migrated=False),
    InTree(
        "vsphereVolume",
        "kubernetes.io/vsphere-volume",
        "csi.vsphere.vmware.com",
        _field("volumePath"),
        migrated=False,
    ),
    InTree(
        "portworxVolume",
        "kubernetes.io/portworx-volume",
        "pxd.portworx.com",
        _field("volumeID"),
        by_annotation=True,
    ),
)
BY_PLUGIN: Final = {each.plugin: each for each in IN_TREE}


def in_tree(volume: Raw) -> InTree | None:
    """Return the in-tree plugin for the volume of a pod or the spec of a PersistentVolume; None for other sources."""
    for each in IN_TREE:
        if volume.get(each.source) is not None:
            return each
    return None


def migrated_plugins(csi_node: Object | None) -> frozenset[str]:
    """Return the in-tree plugins that are migrated to CSI on a node."""
    text = "" if csi_node is None else csi_node.annotations.get(MIGRATED_PLUGINS) or ""
    return frozenset(text.split(",")) if text else frozenset()


def translated_affinity(volume: Object, migrated: InTree) -> Raw | None:
    """Return the volume's nodeAffinity translated to CSI: with the driver's zone key and the GA key for the region.

    Raises StorageError if the volume cannot be translated.
    """
    try:
        migrated.handle(volume.spec[migrated.source], volume.labels)
    except StorageError as fault:
        raise StorageError(f"could not translate pv: {fault}") from fault
    affinity: Raw | None = volume.spec.get("nodeAffinity")
    if not migrated.topology_key:
        return affinity
    terms = list(((affinity or {}).get("required") or {}).get("nodeSelectorTerms") or ())
    zone, region = _topology_keys(terms, volume.labels)
    if _values(terms, zone):
        terms = _renamed(terms, zone, migrated.topology_key)
    elif zone in volume.labels:
        zones = sorted({part.strip() for part in volume.labels[zone].split(ZONE_DELIMITER)} - {""})
        if zones:
            demand = {"key": migrated.topology_key, "operator": "In", "values": zones}
            terms = [_with_expression(term, demand) for term in terms or [{}]]
    if region == BETA_REGION and _values(terms, region):
        terms = _renamed(terms, region, REGION)
    if affinity is None and not terms:
        return None
    required = (affinity or {}).get("required")
    if required is None and not terms:
        return affinity
    return {**(affinity or {}), "required": {**(required or {}), "nodeSelectorTerms": terms}}


def _topology_keys(terms: list[Raw], labels: Labels) -> tuple[str, str]:
    used = {e.get("key") for term in terms for e in term.get("matchExpressions") or ()}
    if ZONE not in used and (BETA_ZONE in used or (ZONE not in labels and BETA_ZONE in labels)):
        return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(terms: list[Raw], key: str) -> bool:
    return any(e.get("values") for term in terms for e in term.get("matchExpressions") or () if e.get("key") == key)


def _renamed(terms: list[Raw], old: str, new: str) -> list[Raw]:
    return [
        {
            **term,
            "matchExpressions": [
                {**e, "key": new} if e.get("key") == old else e for e in term.get("matchExpressions") or ()
            ],
        }
        for term in terms
    ]


def _with_expression(term: Raw, expression: dict[str, Any]) -> Raw:
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), expression]}
