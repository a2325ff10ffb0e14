"""The binding check of PreBind: all claims of a pod must be bound to volumes that its node can use.

The check is repeated while the volume controller and the provisioners work. The check reads only observed objects, and
no assumed ones. An object counts only after the scheduler's own write to this object has been observed.
Source: Kubernetes v1.34, volumebinding/binder.go (checkBindings); v1.35, volumebinding/passive_assume_cache.go.
"""

from collections.abc import Mapping

import attrs

from kschedd.api.objects import Object
from kschedd.storage.assume import CLAIM, VOLUME
from kschedd.storage.claims import SELECTED_NODE, fully_bound, volume_of
from kschedd.storage.migration import in_tree, migrated_plugins, translated_affinity
from kschedd.storage.volumes import StorageError, node_affinity, usable_from

Kinds = Mapping[str, Object]


@attrs.frozen(eq=False)
class WrittenObject:
    """An object that the scheduler wrote, and the object's version before the write."""

    key: str
    before: Object
    claim: str = ""  # for a volume: the key of the claim to which it was bound
    changed: bool = True  # False: the write changed nothing, so that no newer version will be observed

    def seen(self, now: Object) -> bool:
        """Return whether the version `now` may include the scheduler's write."""
        if not self.changed or now is self.before:
            return not self.changed
        return now.resource_version != self.before.resource_version or not now.resource_version


@attrs.frozen(eq=False)
class BindingCheck:
    volumes: tuple[WrittenObject, ...]
    claims: tuple[WrittenObject, ...]  # claims to be provisioned
    as_listed: bool  # True if the feature `absent_volumes_as_listed` is enabled

    def done(
        self, node: str, labels: Mapping[str, str], csi_node: Object | None, claims: Kinds, volumes: Kinds
    ) -> bool:
        """Return True if all claims are bound; False if they are not bound yet.

        Raises StorageError if the claims cannot be bound for this node.
        """
        for written in self.volumes:
            if not self._volume_done(written, node, labels, csi_node, claims, volumes):
                return False
        for written in self.claims:
            claim = claims.get(written.key)
            if claim is None:
                raise StorageError(f"failed to check provisioning pvc: {self._absent(CLAIM, written.key)}")
            if not written.seen(claim):
                return False
            if not claim.annotations:
                raise StorageError(f'selectedNode annotation reset for PVC "{claim.name}"')
            if claim.annotations.get(SELECTED_NODE) != node:
                # A provisioner that fails removes the annotation, so that the pod can be scheduled again.
                raise StorageError(f'provisioning failed for PVC "{claim.name}"')
            if name := volume_of(claim):
                volume = volumes.get(name)
                if volume is None:
                    return False  # the update of the claim was observed before the update of the volume
                _check_node(volume, node, labels, csi_node)
            if not fully_bound(claim):
                return False
        return True

    def _volume_done(
        self,
        written: WrittenObject,
        node: str,
        labels: Mapping[str, str],
        csi_node: Object | None,
        claims: Kinds,
        volumes: Kinds,
    ) -> bool:
        volume = volumes.get(written.key)
        if volume is None:
            raise StorageError(f"failed to check binding: {self._absent(VOLUME, written.key)}")
        claim = claims.get(written.claim)
        if claim is None:
            raise StorageError(f"failed to check binding: {self._absent(CLAIM, written.claim)}")
        if not written.seen(volume):
            return False
        try:
            _check_node(volume, node, labels, csi_node)
        except _Untranslatable as fault:
            raise StorageError(f"failed to translate pv to csi: {fault}") from fault
        if not (volume.spec.get("claimRef") or {}).get("uid"):
            raise StorageError(f'ClaimRef got reset for pv "{volume.name}"')
        return fully_bound(claim)

    def _absent(self, kind: str, key: str) -> str:
        return f'{kind.lower()}s "{key}" not found' if self.as_listed else f'could not find v1.{kind} "{key}"'


@attrs.define(eq=False)
class _Untranslatable(StorageError):
    """An in-tree volume cannot be translated to CSI."""


def _check_node(volume: Object, node: str, labels: Mapping[str, str], csi_node: Object | None) -> None:
    raw = volume.spec.get("nodeAffinity")
    plugin = in_tree(volume.spec)
    if plugin is not None and plugin.migrated and plugin.plugin in migrated_plugins(csi_node):
        try:
            raw = translated_affinity(volume, plugin)
        except StorageError as fault:
            raise _Untranslatable(fault.why) from fault
    if not usable_from(node_affinity(raw), labels):
        why = "no matching NodeSelectorTerms"
        raise StorageError(f'pv "{volume.name}" node affinity doesn\'t match node "{node}": {why}')
