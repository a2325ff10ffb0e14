"""DynamicResources: finds the devices that a pod's ResourceClaims request, reserves them, and writes the allocations.

A claim that is allocated already restricts the pod to the nodes its allocation names. For claims that are not, each
node is searched for devices (`kschedd.devices`), the chosen node's allocation is assumed (Reserve) and written before
binding (PreBind). From Reserve until the watch shows the allocation, the claim's devices count as used and other pods
wait for the claim. For an unschedulable pod, PostFilter may deallocate a claim that ties it to infeasible nodes.

Pods without claims pass without reading any device state.

Source: Kubernetes v1.34, plugins/dynamicresources/dynamicresources.go, dra_manager.go.
Not implemented: features off by default in 1.34 (device taints, partitionable devices, consumable capacity, binding
conditions, extended resources). Upstream picks the claim to deallocate at random; here it is the first.
"""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.requirements import SelectorError
from kschedd.api.selectors import NodeSelector, parse_node_selector
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.config.args import ArgsContext, arg, duration_s
from kschedd.config.reading import ConfigFields
from kschedd.devices.allocated import InUse
from kschedd.devices.allocator import Allocator
from kschedd.devices.claims import (
    FINALIZER,
    Claim,
    ClaimError,
    allocation,
    is_reserved_for,
    pod_claims,
    read_claim,
    reserved_for,
)
from kschedd.devices.in_flight import ClaimsInFlight
from kschedd.devices.inventory import Inventory
from kschedd.devices.one_more import one_more_slice
from kschedd.devices.results import allocations
from kschedd.devices.rules import DeviceRules
from kschedd.devices.solution import Allocation, AllocationError, NodeFailure
from kschedd.framework.changes import Change, create
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
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE, PostFilterResult
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.remedies import Remedy, RemedyContext, by_pattern, by_reason
from kschedd.framework.status import SKIP, Status, error, unresolvable, unschedulable
from kschedd.framework.writes import Plan, Write
from kschedd.store.writes import patch_of, status_of

# Search steps per second of upstream's filter timeout: steps, not time, so that runs are deterministic.
STEPS_PER_SECOND: Final = 5_000


@attrs.define(eq=False)
class _Attempt:
    """One attempt's state. Shared by all what-if runs: the pods they add or remove do not affect it."""

    claims: tuple[Object, ...] = ()
    reachable: tuple[NodeSelector | None, ...] = ()  # of allocated claims; None: every node
    allocator: Allocator | None = None
    open_claims: tuple[int, ...] = ()  # indices of the claims to allocate
    outcomes: dict[str, Status | None] = attrs.field(factory=dict)  # by node
    solutions: dict[str, Allocation] = attrs.field(factory=dict)  # by node
    unavailable: set[int] = attrs.field(factory=set)  # claims whose allocation some node cannot reach
    reserved: dict[int, Raw] = attrs.field(factory=dict)  # claim index -> its assumed allocation


_WITHOUT_CLAIMS: Final = _Attempt()


@attrs.frozen
class DynamicResourcesArgs:
    filter_timeout_s: float = arg(10.0, name="filterTimeout", read=duration_s)
    """Per node; 0: no limit."""

    @classmethod
    def check(cls, fields: ConfigFields, context: ArgsContext) -> None:
        given = fields.get("filterTimeout")
        if given is None:
            return
        if not context.gates.get("DRASchedulerFilterTimeout", True):
            given.wrong("the feature gate DRASchedulerFilterTimeout is off")
        elif isinstance(given.value, str) and given.value.startswith("-"):
            given.wrong("must not be negative", "0s (no limit) or more")


@attrs.define(eq=False)
class DynamicResources:
    name: ClassVar = "DynamicResources"
    args_type: ClassVar = DynamicResourcesArgs
    without_pre_filter: ClassVar = "not found"
    depends_on: ClassVar = None  # free devices depend on the claims of the whole cluster
    rule_of_point: ClassVar = {"score": "devices_scored"}

    _handle: Handle
    _enabled: bool
    _rules: DeviceRules
    _most_steps: int
    _in_flight: ClaimsInFlight
    _in_use: InUse = attrs.field(factory=InUse)
    _inventory: Inventory = attrs.field(factory=Inventory)
    _inventory_stamp: int = -1

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        timeout = (
            args.filter_timeout_s if isinstance(args, DynamicResourcesArgs) else DynamicResourcesArgs().filter_timeout_s
        )
        gates = handle.feature_gates
        limited = gates.get("DRASchedulerFilterTimeout", True) and timeout > 0
        return cls(
            handle,
            gates.get("DynamicResourceAllocation", True),
            DeviceRules(
                admin_access=gates.get("DRAAdminAccess", True), prioritized_list=gates.get("DRAPrioritizedList", True)
            ),
            max(1, int(timeout * STEPS_PER_SECOND)) if limited else 0,
            handle.shared(ClaimsInFlight),
        )

    # -- before a node is looked at ---------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if not self._enabled or not pod.pod_spec.raw.get("resourceClaims"):
            return None
        try:
            pod_claims(pod, self._handle.cluster.of_kind("ResourceClaim"))
        except ClaimError as missing:
            return unresolvable(str(missing))
        return None

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        # Stored for pods without claims, too, so there is no `skips_pre_filter`: it tells PostFilter that the attempt
        # reached this point.
        state.data[self.name] = _WITHOUT_CLAIMS
        if not self._enabled or not pod.pod_spec.raw.get("resourceClaims"):
            return SKIP
        try:
            claims = pod_claims(pod, cluster.of_kind("ResourceClaim"))
        except ClaimError as missing:
            return unresolvable(str(missing))
        if not claims:
            return SKIP
        self._in_flight.forget_seen()
        reachable: list[NodeSelector | None] = []
        open_claims: dict[int, Claim] = {}
        for place, claim in enumerate(claims):
            allocated = allocation(claim)
            selector = None
            if allocated is None:
                open_claims[place] = read_claim(claim)
                refusal = self._cannot_allocate(open_claims[place], cluster)
                if refusal is not None:
                    return refusal
            elif allocated.get("nodeSelector") is not None:
                selector = parse_node_selector(allocated["nodeSelector"])
                if selector.problems:
                    return error(str(SelectorError(selector.problems)))
            reachable.append(selector)
        allocator = self._allocator(tuple(open_claims.values()), cluster) if open_claims else None
        state.data[self.name] = _Attempt(tuple(claims), tuple(reachable), allocator, tuple(open_claims))
        return None

    def _cannot_allocate(self, claim: Claim, cluster: SchedulerCache) -> Status | None:
        """Why this claim cannot be allocated on any node; None if nodes have to be searched."""
        if claim.obj in self._in_flight:
            return unresolvable(f"resource claim {claim} is in the process of being allocated")
        for request in claim.requests:
            if not request.subrequests:
                return unresolvable(f"resource claim {claim}, request {request.name}: unknown request type")
            if request.prioritised and not self._rules.prioritized_list:
                return unresolvable(
                    f"resource claim {claim}, request {request.name}: "
                    "has subrequests, but the DRAPrioritizedList feature is disabled"
                )
            for subrequest in request.subrequests:
                if not subrequest.device_class:
                    return error(f"request {request.full_name(subrequest)}: unsupported request type")
                if cluster.get("DeviceClass", subrequest.device_class) is None:
                    name = request.full_name(subrequest)
                    return unresolvable(f"request {name}: device class {subrequest.device_class} does not exist")
        return None

    def _allocator(self, claims: tuple[Claim, ...], cluster: SchedulerCache) -> Allocator:
        versions = cluster.versions
        if self._inventory_stamp < versions.latest("ResourceSlice"):
            self._inventory = self._inventory.updated(cluster.of_kind("ResourceSlice").values())
            self._inventory_stamp = versions.now
        in_flight = self._in_flight.held() if self._in_flight else None
        return Allocator(
            claims,
            self._in_use.state(cluster.of_kind("ResourceClaim"), versions, in_flight),
            lambda name: cluster.get("DeviceClass", name),
            self._inventory,
            self._rules,
            self._most_steps,
        )

    # -- nodes ------------------------------------------------------------------------------------------------

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        attempt: _Attempt = state.data[self.name]
        if not attempt.claims:
            return None
        name = node.name
        if name not in attempt.outcomes:
            attempt.outcomes[name] = self._judge(attempt, node)
        return attempt.outcomes[name]

    def _judge(self, attempt: _Attempt, node: NodeInfo) -> Status | None:
        unreachable = [
            place
            for place, selector in enumerate(attempt.reachable)
            if selector is not None and not selector.matches(node.labels, node.name)
        ]
        solution = None
        if attempt.allocator is not None:
            try:
                solution = attempt.allocator.allocate(node.node)
            except AllocationError as fault:
                return error(str(fault))
            except NodeFailure as fault:
                return unresolvable(str(fault))
            if solution is None:
                return unresolvable("cannot allocate all claims")
        if unreachable:
            attempt.unavailable.update(unreachable)
            return unresolvable("resourceclaim not available on the node")
        if solution is not None:
            attempt.solutions[node.name] = solution
        return None

    def post_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache, verdicts: Any) -> PostFilterResult:
        if not self._enabled:
            return PostFilterResult(unschedulable("plugin disabled"))
        attempt: _Attempt | None = state.data.get(self.name)
        if attempt is None:
            # Another plugin's PreFilter ended the cycle before this one ran: upstream reports its missing state.
            return PostFilterResult(error("not found"))
        if not attempt.claims:
            return PostFilterResult(unschedulable("no new claims to deallocate"))
        for place in sorted(attempt.unavailable):
            claim = attempt.claims[place]
            if all(entry.get("uid") == pod.uid for entry in reserved_for(claim)) and len(reserved_for(claim)) <= 1:
                gone = {"allocation": None, "reservedFor": None, "devices": None}
                return PostFilterResult(
                    unschedulable("deallocation of ResourceClaim completed"), writes=(status_of(claim, gone),)
                )
        return PostFilterResult(unschedulable("still not schedulable"))

    # -- scores -----------------------------------------------------------------------------------------------

    def constant_score(self, pod: Pod, table: NodeTable) -> int | None:
        return None if self._enabled and pod.pod_spec.raw.get("resourceClaims") else 0

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return np.zeros(len(rows), dtype=np.int64)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        most = int(scores.max(initial=0))
        return scores * MAX_NODE_SCORE // most if most else scores

    # -- the chosen node --------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        attempt: _Attempt = state.data.get(self.name, _WITHOUT_CLAIMS)
        if not attempt.open_claims:
            return None
        solution = attempt.solutions.get(node_name)
        if solution is None or attempt.allocator is None:
            return error("claim allocation not found for node")
        try:
            made = allocations(solution, attempt.allocator.claims, attempt.allocator.classes, node_name)
        except AllocationError as fault:
            return error(str(fault))
        for place, kept in zip(attempt.open_claims, made, strict=True):
            attempt.reserved[place] = kept
            self._in_flight.allocate(attempt.claims[place], kept)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> Plan | None:
        """Release the assumed devices; the returned writes revert what PreBind has written."""
        attempt: _Attempt = state.data.get(self.name, _WITHOUT_CLAIMS)
        writes: list[Write] = []
        for place, claim in enumerate(attempt.claims):
            if place in attempt.reserved:
                self._in_flight.give_back(claim)
            self._in_flight.release(claim, pod)
            current = self._handle.cluster.get("ResourceClaim", claim.key)
            if current is not None and current.uid == claim.uid and is_reserved_for(current, pod):
                left = [entry for entry in reserved_for(current) if entry.get("uid") != pod.uid]
                writes.append(status_of(current, {"reservedFor": left or None}))
        attempt.reserved.clear()
        return Plan(tuple(writes)) if writes else None

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        attempt: _Attempt = state.data.get(self.name, _WITHOUT_CLAIMS)
        return None if attempt.claims else SKIP

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Plan | Status | None:
        attempt: _Attempt = state.data.get(self.name, _WITHOUT_CLAIMS)
        writes: list[Write] = []
        for place, claim in enumerate(attempt.claims):
            if is_reserved_for(claim, pod):
                continue
            current = self._handle.cluster.get("ResourceClaim", claim.key)
            if current is None or current.uid != claim.uid or current.deleting:
                return error(f"claim {claim.key} got deleted in the meantime")
            kept = attempt.reserved.get(place)
            fields: dict[str, Any] = {"reservedFor": self._in_flight.reserve_for(current, pod)}
            if kept is not None:
                if allocation(current) is not None:
                    return error(f"claim {claim.key} got allocated elsewhere in the meantime")
                finalizers: Sequence[str] = current.metadata.get("finalizers") or ()
                if FINALIZER not in finalizers:
                    writes.append(patch_of(current, {"metadata": {"finalizers": [*finalizers, FINALIZER]}}))
                fields["allocation"] = kept
            writes.append(status_of(current, fields))
        return Plan(tuple(writes)) if writes else None

    # -- events -----------------------------------------------------------------------------------------------

    def events_to_register(self) -> list[ClusterEventWithHint]:
        if not self._enabled:
            return []
        changed = ActionType.ADD | ActionType.UPDATE
        of_nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            on(EventResource.NODE, of_nodes),
            on(EventResource.RESOURCE_CLAIM, changed, self._after_claim),
            on(EventResource.POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self._after_pod),
            on(EventResource.DEVICE_CLASS, changed),
            on(EventResource.RESOURCE_SLICE, changed),
        ]

    def _after_claim(self, pod: Pod, old: Object | None, new: Object) -> QueueingHint:
        try:
            used = pod_claims(pod, self._handle.cluster.of_kind("ResourceClaim"))
        except ClaimError:
            return QUEUE_SKIP  # the pod's claims are still incomplete
        if old is not None and allocation(old) is not None and allocation(new) is None:
            return QUEUE  # devices became free
        if all(claim.uid != new.uid for claim in used):
            return QUEUE_SKIP
        return QUEUE if old is None or old.status != new.status else QUEUE_SKIP

    def _after_pod(self, pod: Pod, old: Any, new: Pod) -> QueueingHint:
        if new.uid != pod.uid:
            return QUEUE_SKIP
        try:
            pod_claims(new, self._handle.cluster.of_kind("ResourceClaim"))
        except ClaimError:
            return QUEUE_SKIP
        return QUEUE

    def remedies(self, context: RemedyContext, row: int | None, status: Status) -> list[Remedy]:
        if row is None:
            found = by_pattern(status, _BEFORE_FILTER)
            return [attrs.evolve(remedy, changes=_missing_class(status.message)) for remedy in found]
        changes = self._more_devices(context, row) if "cannot allocate all claims" in status.reasons else ()
        return [attrs.evolve(remedy, changes=changes) for remedy in by_reason(status, _ON_A_NODE)]

    def _more_devices(self, context: RemedyContext, row: int) -> tuple[Change, ...]:
        node = context.table.nodes[row]
        attempt: _Attempt | None = context.state.data.get(self.name)
        if node is None or attempt is None or attempt.allocator is None:
            return ()
        more = one_more_slice(attempt.allocator, context.cluster.of_kind("ResourceSlice").values(), node)
        return () if more is None else (create(more),)


def _missing_class(said: str) -> tuple[Change, ...]:
    found = re.search(r"device class (.+) does not exist", said)
    if found is None:
        return ()
    return (
        create({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": found[1]}, "spec": {}}),
    )


_BEFORE_FILTER: Final = (
    (r"request .+: device class (.+) does not exist", "the DeviceClass {} existed"),
    (r'resourceclaim(?:\.resource\.k8s\.io)? "(.+)" not found', "the ResourceClaim {} existed"),
)
_ON_A_NODE: Final = {
    "cannot allocate all claims": "devices that suit its resource claims were free on the node",
    "resourceclaim not available on the node": "the devices of its resource claims could be reached from the node",
}
