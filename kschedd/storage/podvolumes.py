"""A pod's claims and, for each node: usability of bound volumes, volumes to bind, and volumes to provision.

`pod_claims` classifies the claims once for all nodes, and `PodClaims.on` evaluates one node. The node must be able to
use the volume of a bound claim. For a WaitForFirstConsumer claim, an existing volume is bound (smallest request first)
or a new volume is provisioned. A claim with the selected-node annotation can be used only on that node.
Source: Kubernetes v1.34, volumebinding/binder.go (GetPodVolumeClaims, FindPodVolumes).
Raises: StorageError where kube-scheduler's volume binder returns an error.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import NodeSelector
from kschedd.storage.assume import AssumeCache, VolumeCache
from kschedd.storage.claims import (
    SELECTED_NODE,
    claims_used,
    class_of,
    fully_bound,
    not_made_for,
    requested,
    volume_of,
)
from kschedd.storage.matching import VolumeCandidates, candidates
from kschedd.storage.migration import InTree, in_tree, migrated_plugins, translated_affinity
from kschedd.storage.provisioning import Capacity, CapacityOutcome, Provisioning, provisioning, waits_for_consumer
from kschedd.storage.volumes import StorageError, Volume, node_affinity, usable_from

_NONE: Final[frozenset[str]] = frozenset()
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
WRONG_NODE = "node(s) didn't match PersistentVolume's node affinity"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@attrs.frozen(eq=False)
class StaticBinding:
    """A claim, and the existing volume to which to bind it."""

    claim: Object
    volume: Object
    changed: bool = True  # True if binding changes the volume; set when the binding is assumed


@attrs.frozen(eq=False)
class Provision:
    """A claim to be provisioned, and a CSIStorageCapacity that is large enough, if one is needed."""

    claim: Object
    capacity: Capacity | None = None


@attrs.frozen(eq=False)
class NodeVolumes:
    """The bindings and the volumes to provision for the pod's claims on one node (upstream's PodVolumes)."""

    bindings: tuple[StaticBinding, ...] = ()
    provisions: tuple[Provision, ...] = ()


@attrs.define(eq=False)
class _Used:
    """The volume of a bound claim, with its node affinity as written and, on demand, translated to CSI."""

    volume: Volume
    plugin: InTree | None
    _translated: NodeSelector | StorageError | None = None
    _is_translated: bool = False

    def usable_from(self, labels: Mapping[str, str], migrated: frozenset[str]) -> bool:
        if self.plugin is None or not self.plugin.migrated or self.plugin.plugin not in migrated:
            return self.volume.usable_from(labels)
        translated = self._as_migrated(self.plugin)
        if isinstance(translated, StorageError):
            raise translated
        return usable_from(translated, labels)

    @property
    def usable_everywhere(self) -> bool:
        """True if any node can use the volume, whichever plugins are migrated on the node."""
        if self.volume.affinity is not None:
            return False
        return self.plugin is None or not self.plugin.migrated or self._as_migrated(self.plugin) is None

    def _as_migrated(self, plugin: InTree) -> NodeSelector | StorageError | None:
        if not self._is_translated:
            try:
                self._translated = node_affinity(translated_affinity(self.volume.obj, plugin))
            except StorageError as fault:
                self._translated = fault
            self._is_translated = True
        return self._translated


@attrs.frozen(eq=False)
class _Unbound:
    """An unbound WaitForFirstConsumer claim.

    `volumes` is None if a volume is already being provisioned for the claim.
    """

    claim: Object
    volumes: VolumeCandidates | StorageError | None
    making: Provisioning


@attrs.frozen(eq=False)
class PodClaims:
    bound: tuple[_Used | None, ...]  # None: the volume does not exist
    selected: tuple[tuple[_Unbound, str], ...]  # claims whose volume is being provisioned, each with its node
    to_match: tuple[_Unbound, ...]  # smallest request first
    immediate: bool  # True if a claim with the binding mode Immediate is not bound yet

    @property
    def usable_everywhere(self) -> bool:
        """True if all claims are bound to volumes that any node can use.

        In this case, `on` returns an empty result for every node.
        """
        if self.selected or self.to_match:
            return False
        return all(used is not None and used.usable_everywhere for used in self.bound)

    def on(self, node: str, labels: Mapping[str, str], csi_node: Object | None) -> NodeVolumes | list[str]:
        """Return the bindings and the volumes to provision on the node, or the reasons why the node is infeasible.

        Raises StorageError.
        """
        used = self._use_bound(labels, csi_node)
        reasons = [WRONG_NODE] if used == WRONG_NODE else []
        done = NodeVolumes()
        if self.selected or self.to_match:
            found = self._bind(node, labels)
            if isinstance(found, NodeVolumes):
                done = found
            else:
                reasons.append(found)
        if used == NO_VOLUME:
            reasons.append(NO_VOLUME)
        return reasons or done

    def _use_bound(self, labels: Mapping[str, str], csi_node: Object | None) -> str:
        for used in self.bound:
            if used is None:
                return NO_VOLUME
            migrated = _NONE if used.plugin is None else migrated_plugins(csi_node)
            if not used.usable_from(labels, migrated):
                return WRONG_NODE
        return ""

    def _bind(self, node: str, labels: Mapping[str, str]) -> NodeVolumes | str:
        if any(chosen != node for _, chosen in self.selected):
            return NO_MATCH
        to_make = [unbound.making for unbound, _ in self.selected]
        bindings: list[StaticBinding] = []
        taken: set[str] = set()
        for unbound in self.to_match:
            if isinstance(unbound.volumes, StorageError):
                raise unbound.volumes
            assert unbound.volumes is not None, "a claim to match has candidates"
            volume = unbound.volumes.on(labels, taken)
            if volume is None:
                to_make.append(unbound.making)
            else:
                taken.add(volume.name)
                bindings.append(StaticBinding(unbound.claim, volume.obj))
        provisions = []
        for making in to_make:
            room, capacity = making.on(labels)
            if room is CapacityOutcome.NOT_HERE:
                return NO_MATCH
            if room is CapacityOutcome.NO_SPACE:
                return NO_SPACE
            provisions.append(Provision(making.claim, capacity))
        return NodeVolumes(tuple(bindings), tuple(provisions))


@attrs.frozen(eq=False)
class StorageListers:
    """The objects that are needed to classify a pod's claims."""

    claims: AssumeCache
    volumes: VolumeCache
    classes: Mapping[str, Object]
    drivers: Mapping[str, Object]
    capacities: Mapping[str, Object]
    attributes_classes: bool = True


def pod_claims(pod: Pod, listers: StorageListers) -> PodClaims:
    """Classify a pod's claims. Raises StorageError."""
    bound: list[_Used | None] = []
    selected: list[tuple[_Unbound, str]] = []
    to_match: list[_Unbound] = []
    immediate = False
    for use in claims_used(pod):
        claim = listers.claims.get(use.key)
        if claim is None:
            why = f'could not find v1.PersistentVolumeClaim "{use.key}"'
            raise StorageError(f'error getting PVC "{use.key}": {why}')
        if use.ephemeral and (why := not_made_for(pod, claim)):
            raise StorageError(why)
        if fully_bound(claim):
            volume = listers.volumes.volume(volume_of(claim))
            bound.append(None if volume is None else _Used(volume, in_tree(volume.obj.spec)))
        elif not waits_for_consumer(claim, listers.classes) or volume_of(claim):
            immediate = True
        else:
            making = provisioning(claim, listers.classes, listers.drivers, listers.capacities)
            node = claim.annotations.get(SELECTED_NODE)
            if node is not None:
                selected.append((_Unbound(claim, None, making), node))
            else:
                to_match.append(_Unbound(claim, _candidates(claim, listers), making))
    to_match.sort(key=lambda unbound: requested(unbound.claim))
    return PodClaims(tuple(bound), tuple(selected), tuple(to_match), immediate)


def _candidates(claim: Object, listers: StorageListers) -> VolumeCandidates | StorageError:
    volumes = listers.volumes.of_class(class_of(claim))
    try:
        return candidates(claim, volumes, attributes_classes=listers.attributes_classes)
    except StorageError as fault:
        return fault


def all_bound(pod: Pod, claims: AssumeCache) -> bool:
    """Return whether all of the pod's claims are fully bound."""
    for use in claims_used(pod):
        claim = claims.get(use.key)
        if claim is None or (use.ephemeral and not_made_for(pod, claim)) or not fully_bound(claim):
            return False
    return True
