"""VolumeBinding: a node passes if the pod's bound volumes are usable on it and its unbound claims can be bound to it.

Reserve assumes the bindings of claims to volumes, and the provisioning of new volumes. PreBind writes the bindings (the
claim into the volume, the selected node into the claim), and waits until every claim is bound. Unreserve undoes the
assumptions. Rules: capacity_scored.
Source: Kubernetes v1.34, plugins/volumebinding/volume_binding.go and binder.go. Units: scores 0 to 100. Errors:
PreFilter rejects the pod if a claim is missing, lost, being deleted, not the pod's own, or unbound in Immediate mode.
Cases that cannot be decided (missing StorageClass, invalid selector) give the node an Error status.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.objects import Object, Raw, with_fields
from kschedd.api.pods import Pod, PodSpec
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, Ints, NodeTable, Rows
from kschedd.config.args import ArgsContext, arg
from kschedd.config.parsing.reading import INT64, ConfigValue
from kschedd.config.scoring_args import ShapePoint, shape
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.fast_path import PRE_POINTS
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Code, Status, error, unresolvable
from kschedd.framework.writes import Plan, Update
from kschedd.storage.assume import CLAIM, VOLUME, AssumeCache, AssumedVolumes, VolumeCache
from kschedd.storage.binding_check import BindingCheck, WrittenObject
from kschedd.storage.capacity_score import score, usage
from kschedd.storage.claims import SELECTED_NODE, claims_used, missing, not_made_for, uses, volume_of
from kschedd.storage.migration import MIGRATED_PLUGINS
from kschedd.storage.podvolumes import (
    NodeVolumes,
    PodClaims,
    Provision,
    StaticBinding,
    StorageListers,
    all_bound,
    pod_claims,
)
from kschedd.storage.provisioning import limit
from kschedd.storage.volumes import StorageError, bound_to

_UNBOUND_IMMEDIATE: Final = unresolvable("pod has unbound immediate PersistentVolumeClaims")
_SUCCESS: Final = Status(Code.SUCCESS)


@attrs.define(eq=False)
class _Attempt:
    """State of the pod's claims in an attempt.

    What-if evaluations share this state, because other pods do not affect it.
    """

    claims: PodClaims
    by_node: dict[str, NodeVolumes] = attrs.field(factory=dict)
    all_bound: bool = False
    before: dict[str, Object] = attrs.field(factory=dict)  # key -> the object as it was before it was assumed


CAPACITY_SHAPE: Final = (ShapePoint(0, 10), ShapePoint(100, 0))
"""Lower utilization of a volume's capacity scores higher: the default with StorageCapacityScoring."""


def _capacity_shape(place: ConfigValue, context: ArgsContext) -> tuple[ShapePoint, ...] | None:
    if not context.gates.get("StorageCapacityScoring", False):
        place.wrong("a shape needs the feature gate StorageCapacityScoring, which is off by default")
        return None
    return shape(place, context) if place.value else CAPACITY_SHAPE


@attrs.frozen
class VolumeBindingArgs:
    bind_timeout_s: int = arg(600, name="bindTimeoutSeconds", bounds=(0, INT64[1]))
    """Timeout of the wait for bound claims; 0: do not wait."""
    shape: tuple[ShapePoint, ...] = arg((), read=_capacity_shape)
    """Scoring shape, only with the feature gate StorageCapacityScoring. Empty: no score."""

    @classmethod
    def defaults(cls, context: ArgsContext, given: Mapping[str, Any]) -> Self:
        return cls(shape=CAPACITY_SHAPE if context.gates.get("StorageCapacityScoring", False) else ())


@attrs.frozen(eq=False)
class VolumeBinding:
    name: ClassVar = "VolumeBinding"
    args_type: ClassVar = VolumeBindingArgs
    without_pre_filter: ClassVar = "not found"
    _cluster: SchedulerCache
    _claims: AssumeCache
    _volumes: VolumeCache
    _bind_timeout_s: int
    _shape: tuple[ShapePoint, ...]  # empty: no score
    _attributes_classes: bool
    _absent_as_listed: bool

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        wanted = args if isinstance(args, VolumeBindingArgs) else VolumeBindingArgs()
        gates = handle.feature_gates
        assumed = handle.shared(AssumedVolumes)
        return cls(
            handle.cluster,
            assumed.claims,
            assumed.volumes,
            wanted.bind_timeout_s,
            wanted.shape if handle.rules.capacity_scored else (),
            gates.get("VolumeAttributesClass", True),
            handle.rules.absent_volumes_as_listed,
        )

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if pod.signature.spec.restricting_volumes else ("pre_filter", "binding")

    def repeats_while_unchanged(self, pod: Pod, cluster: SchedulerCache) -> Collection[str]:
        return () if pod.pod_spec.restricting_volumes else PRE_POINTS

    # --- filter ------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        if not pod.signature.spec.restricting_volumes:
            return SKIP
        any_claim = False
        for use in claims_used(pod):
            any_claim = True
            claim = self._claims.actual(use.key)
            if claim is None:
                if use.ephemeral:
                    what = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
                    return unresolvable(f'{what} "{use.name}"')
                return unresolvable(missing(CLAIM, use.name))
            if claim.status.get("phase") == "Lost":
                where = volume_of(claim)
                return unresolvable(
                    f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{where}"'
                )
            if claim.deleting:
                return unresolvable(f'persistentvolumeclaim "{claim.name}" is being deleted')
            if use.ephemeral and (why := not_made_for(pod, claim)):
                return unresolvable(why)
        if not any_claim:
            return SKIP
        of_kind = cluster.of_kind
        known = StorageListers(
            self._claims,
            self._volumes,
            of_kind("StorageClass"),
            of_kind("CSIDriver"),
            of_kind("CSIStorageCapacity"),
            self._attributes_classes,
        )
        try:
            claims = pod_claims(pod, known)
        except StorageError as fault:
            return error(fault.why)
        if claims.immediate:
            return _UNBOUND_IMMEDIATE
        state.data[self.name] = _Attempt(claims)
        return None

    def affected_by(self, spec: PodSpec) -> bool:
        return False

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        attempt: _Attempt | None = state.data.get(self.name)
        if attempt is None:
            return None
        name = node.name
        try:
            found = attempt.claims.on(name, node.labels, self._cluster.of_kind("CSINode").get(name))
        except StorageError as fault:
            return error(fault.why)
        if not isinstance(found, NodeVolumes):
            return unresolvable(*found)
        attempt.by_node[name] = found
        return None

    def known_to_pass(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Bools:
        """Return all nodes if all claims are bound to volumes without node affinity, otherwise none."""
        attempt: _Attempt | None = state.data.get(self.name)
        return np.full(len(rows), attempt is None or attempt.claims.usable_everywhere)

    # --- score -------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, cluster: SchedulerCache, rows: Any) -> Status | None:
        # A scoring shape exists only with StorageCapacityScoring, which scores every pod.
        return None if self._shape else SKIP

    def constant_score(self, pod: Pod, table: NodeTable) -> int | None:
        return None if pod.pod_spec.restricting_volumes else 0

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        scores = np.zeros(len(rows), dtype=np.int64)
        attempt: _Attempt | None = state.data.get(self.name)
        if attempt is None or not self._shape:
            return scores
        for place, row in enumerate(rows.tolist()):
            volumes = attempt.by_node.get(table.names[row])
            if volumes is not None:
                scores[place] = score(self._shape, usage(volumes, of_pools=True))
        return scores

    # --- reserve -----------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        attempt: _Attempt | None = state.data.get(self.name)
        if attempt is None:
            return None
        volumes = attempt.by_node.get(node_name)
        if volumes is None or all_bound(pod, self._claims):
            attempt.all_bound = True
            return None
        bindings: list[StaticBinding] = []
        provisions: list[Provision] = []
        try:
            for binding in volumes.bindings:
                raw, changed = bound_to(binding.volume, binding.claim)
                taken = Object.from_raw(raw)
                self._remember(attempt, self._volumes, taken.key)
                if changed:
                    self._volumes.assume(taken)
                bindings.append(StaticBinding(binding.claim, taken, changed))
            for provision in volumes.provisions:
                chosen = Object.from_raw(_with_node(provision.claim, node_name))
                self._remember(attempt, self._claims, chosen.key)
                self._claims.assume(chosen)
                provisions.append(Provision(chosen, provision.capacity))
        except StorageError as fault:
            self._take_back(bindings, provisions)
            return error(fault.why)
        attempt.by_node[node_name] = NodeVolumes(tuple(bindings), tuple(provisions))
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        attempt: _Attempt | None = state.data.get(self.name)
        volumes = None if attempt is None else attempt.by_node.get(node_name)
        if volumes is not None:
            self._take_back(volumes.bindings, volumes.provisions)

    def _remember(self, attempt: _Attempt, cache: AssumeCache, key: str) -> None:
        known = cache.actual(key)
        if known is not None:
            attempt.before[f"{cache.kind} {key}"] = known

    def _take_back(self, bindings: Any, provisions: Any) -> None:
        for binding in bindings:
            self._volumes.restore(binding.volume.key)
        for provision in provisions:
            self._claims.restore(provision.claim.key)

    # --- pre-bind ----------------------------------------------------------------------------------------------

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        attempt: _Attempt | None = state.data.get(self.name)
        if attempt is None or attempt.all_bound:
            return SKIP
        if node_name not in attempt.by_node:
            return error(f'no pod volume found for node "{node_name}"')
        return None

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Plan | Status | None:
        attempt: _Attempt | None = state.data.get(self.name)
        if attempt is None or attempt.all_bound:
            return None
        volumes = attempt.by_node.get(node_name)
        if volumes is None:
            return error(f'no pod volume found for node "{node_name}"')
        before = attempt.before
        check = BindingCheck(
            tuple(
                WrittenObject(b.volume.key, before[f"{VOLUME} {b.volume.key}"], b.claim.key, b.changed)
                for b in volumes.bindings
            ),
            tuple(WrittenObject(p.claim.key, before[f"{CLAIM} {p.claim.key}"]) for p in volumes.provisions),
            self._absent_as_listed,
        )

        def ready(cluster: SchedulerCache) -> Status | None:
            try:
                return _SUCCESS if _ready(check, cluster, pod, node_name) else None
            except StorageError as fault:
                return error(f"binding volumes: {fault.why}")

        return Plan(
            writes=(
                *(Update(binding.volume.raw) for binding in volumes.bindings),
                *(Update(provision.claim.raw) for provision in volumes.provisions),
            ),
            ready=ready,
            timeout_s=float(self._bind_timeout_s),
            timed_out=error("binding volumes: context deadline exceeded"),
            cancelled=error("binding volumes: context canceled"),
        )

    # --- queueing hints ---------------------------------------------------------------------------------------

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        add, update = ActionType.ADD, ActionType.UPDATE
        return (
            on(EventResource.STORAGE_CLASS, add | update, _after_class_changed, by_signature=True),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, add | update, _after_claim_changed),
            on(EventResource.PERSISTENT_VOLUME, add | update),
            on(EventResource.NODE, add | ActionType.UPDATE_NODE_LABEL),
            on(EventResource.CSI_NODE, add | update, _after_csi_node_changed, by_signature=True),
            on(EventResource.CSI_DRIVER, update, _after_driver_changed, by_signature=True),
            on(EventResource.CSI_STORAGE_CAPACITY, add | update, _after_capacity_changed, by_signature=True),
        )


def _with_node(claim: Object, node_name: str) -> Raw:
    """Return the claim with its selected-node annotation set to this node."""
    return with_fields(claim.raw, "metadata", annotations={**claim.annotations, SELECTED_NODE: node_name})


def _ready(check: BindingCheck, cluster: SchedulerCache, pod: Pod, node_name: str) -> bool:
    row = cluster.table.row_of.get(node_name)
    node = None if row is None else cluster.table.nodes[row]
    if node is None:
        raise StorageError(f'failed to get node "{node_name}": node "{node_name}" not found')
    if cluster.pod(pod.uid) is None or cluster.is_marked_deleted(pod.uid):
        raise StorageError(f'pod does not exist any more: pod "{pod.name}" not found')
    csi_node = cluster.of_kind("CSINode").get(node_name)
    claims, volumes = cluster.of_kind(CLAIM), cluster.of_kind(VOLUME)
    return check.done(node_name, node.labels, csi_node, claims, volumes)


def _after_class_changed(pod: Pod, old: Object | None, new: Object) -> QueueingHint:
    if old is None or (old.raw.get("allowedTopologies") or []) != (new.raw.get("allowedTopologies") or []):
        return QUEUE
    return QUEUE_SKIP


def _after_claim_changed(pod: Pod, old: Object | None, new: Object) -> QueueingHint:
    return QUEUE if uses(pod, new) else QUEUE_SKIP


def _after_csi_node_changed(pod: Pod, old: Object | None, new: Object) -> QueueingHint:
    if old is None or old.annotations.get(MIGRATED_PLUGINS) != new.annotations.get(MIGRATED_PLUGINS):
        return QUEUE
    return QUEUE_SKIP


def _after_driver_changed(pod: Pod, old: Object, new: Object) -> QueueingHint:
    if not old.spec.get("storageCapacity") or new.spec.get("storageCapacity"):
        return QUEUE_SKIP
    inline: list[Mapping[str, Any] | None] = [volume.get("csi") for volume in pod.signature.spec.restricting_volumes]
    return QUEUE if any(source and source.get("driver") == new.name for source in inline) else QUEUE_SKIP


def _after_capacity_changed(pod: Pod, old: Object | None, new: Object) -> QueueingHint:
    if old is None:
        return QUEUE
    before, after = limit(old), limit(new)
    return QUEUE if after is not None and (before is None or after > before) else QUEUE_SKIP
