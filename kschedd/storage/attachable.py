"""CSI volumes of a pod that must be attached to its node, and therefore count towards the driver's limit there.

An in-tree volume counts for the CSI driver to which it migrates, on nodes that have a CSINode. A Portworx volume counts
only if an annotation of the node shows the migration, or if the feature portworx_volumes_counted is enabled. A claim
without a volume counts as a separate volume for the driver of its StorageClass.
Source: Kubernetes v1.34 and v1.36, nodevolumelimits/csi.go (filterAttachableVolumes, getCSIDriverInfo) and utils.go.
Errors: no exception is raised; if upstream returns an error, a Fault is returned.
"""

from collections.abc import Callable, Mapping

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.storage.claims import class_of, ephemeral_claim, missing, not_made_for, volume_of
from kschedd.storage.migration import BY_PLUGIN, InTree, in_tree, migrated_plugins
from kschedd.storage.volumes import StorageError


@attrs.frozen
class Attachable:
    driver: str
    handle: str
    plugin: InTree | None = None  # the volume counts only on nodes where this in-tree plugin is migrated


@attrs.frozen
class Fault:
    """The error of one volume. `missing` is true if the claim does not exist, or does not exist yet."""

    why: str
    missing: bool = False
    plugin: InTree | None = None  # the fault is an error only on nodes where this in-tree plugin is migrated


IsMigrated = Callable[[InTree, Object | None], bool]
"""Returns True if volumes of the in-tree plugin count for its driver on the node with this CSINode."""


def migrated_on_csi_nodes(plugin: InTree, csi_node: Object | None) -> bool:
    return csi_node is not None and plugin.migrated


def migrated_or_annotated(plugin: InTree, csi_node: Object | None) -> bool:
    """Return whether the plugin is migrated on the node; Portworx also requires the annotation of the CSINode."""
    if not migrated_on_csi_nodes(plugin, csi_node):
        return False
    return not plugin.by_annotation or plugin.plugin in migrated_plugins(csi_node)


def has_attachable(pod: Pod) -> bool:
    """Return whether any volume of the pod may count towards a limit."""
    return any(
        volume.get("persistentVolumeClaim") is not None
        or volume.get("ephemeral") is not None
        or in_tree(volume) is not None
        for volume in pod.signature.spec.restricting_volumes
    )


@attrs.frozen(eq=False)
class Storage:
    """The objects that are needed to resolve a pod's volumes, by key."""

    claims: Mapping[str, Object]
    volumes: Mapping[str, Object]
    classes: Mapping[str, Object]

    def attachables(self, pod: Pod, *, new: bool) -> list[Attachable | Fault]:
        """Return the pod's volumes in the order of its spec.

        Missing claims of a running pod (not `new`) are skipped.
        """
        found: list[Attachable | Fault] = []
        for volume in pod.signature.spec.restricting_volumes:
            source = volume.get("persistentVolumeClaim")
            ephemeral = source is None and volume.get("ephemeral") is not None
            if source is None and not ephemeral:
                inline = _inline(volume)
                if inline is not None:
                    found.append(inline)
                continue
            name = ephemeral_claim(pod, volume.get("name") or "") if source is None else source.get("claimName") or ""
            if not name:
                found.append(Fault("PersistentVolumeClaim had no name"))
                continue
            key = f"{pod.namespace}/{name}"
            claim = self.claims.get(key)
            if claim is None:
                if new:
                    why = f"looking up PVC {key}: {missing('PersistentVolumeClaim', name)}"
                    found.append(Fault(why, missing=True))
            elif ephemeral and (why := not_made_for(pod, claim)):
                found.append(Fault(why))
            elif (counted := self._of_claim(claim)) is not None:
                found.append(counted)
        return found

    def _of_claim(self, claim: Object) -> Attachable | None:
        name = volume_of(claim)
        volume = self.volumes.get(name) if name else None
        if volume is None:
            return self._of_class(claim)
        source = volume.spec.get("csi")
        if source is not None:
            return _named(source.get("driver") or "", source.get("volumeHandle") or "", None)
        plugin = in_tree(volume.spec)
        if plugin is None or not plugin.migrated:
            return None
        try:
            handle = plugin.handle(volume.spec[plugin.source], volume.labels)
        except StorageError:
            return None
        return _named(plugin.driver, handle, plugin)

    def _of_class(self, claim: Object) -> Attachable | None:
        storage_class = self.classes.get(class_of(claim))
        if storage_class is None:
            return None
        provisioner = storage_class.raw.get("provisioner") or ""
        plugin = BY_PLUGIN.get(provisioner)
        if plugin is not None and not plugin.migrated:
            return None
        # No handle of a driver begins with a NUL, so a volume to be provisioned cannot have the name of an existing
        # volume.
        return _named(plugin.driver if plugin else provisioner, f"\0claim {claim.key}", plugin)


def _named(driver: str, handle: str, plugin: InTree | None) -> Attachable | None:
    return Attachable(driver, handle, plugin) if driver and handle else None


def _inline(volume: Mapping[str, object]) -> Attachable | Fault | None:
    plugin = in_tree(volume)
    if plugin is None or not plugin.migrated:
        return None
    source = volume[plugin.source]
    assert isinstance(source, Mapping), "an in-tree source is a mapping"
    try:
        return Attachable(plugin.driver, plugin.handle(source, None), plugin)
    except StorageError as fault:
        return Fault(f"converting volume({volume.get('name') or ''}) from inline to csi: {fault}", plugin=plugin)


def limits(csi_node: Object) -> dict[str, int]:
    """Return the maximum number of attached volumes for each driver that has a limit."""
    found = {}
    for driver in csi_node.spec.get("drivers") or ():
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None:
            found[driver.get("name") or ""] = int(count)
    return found


def attachments_by_node(attachments: Mapping[str, Object]) -> dict[str, set[tuple[str, str]]]:
    """Return, for each node, the pairs (attacher, PersistentVolume) in its VolumeAttachments."""
    found: dict[str, set[tuple[str, str]]] = {}
    for attachment in attachments.values():
        spec = attachment.spec
        attacher = spec.get("attacher") or ""
        volume = (spec.get("source") or {}).get("persistentVolumeName")
        if attacher and volume is not None:
            found.setdefault(spec.get("nodeName") or "", set()).add((attacher, volume))
    return found
