"""DynamicResources: finds the devices that a pod's ResourceClaims request, reserves them, and writes the allocations.

An allocated claim restricts the pod to the nodes of its allocation. For claims that are not allocated, each node is
searched for devices (`kschedd.devices`). The allocation on the selected node is assumed (Reserve), and written before
binding (PreBind). From Reserve until the watch delivers the allocation, the claim's devices are treated as used, and
other pods wait for the claim. For an unschedulable pod, PostFilter may deallocate a claim that restricts the pod to
infeasible nodes.

Extended resources that a DeviceClass provides form an additional claim of the pod, which is different on each node and
is created in PreBind (`kschedd.devices.extended_resources`).

Pods without claims and without extended resources of a DeviceClass pass every node, and no device state is read for
them.

Rules: incomplete_pools_passed_over, invalid_pools_passed_over, alternatives_kept_apart, partitionable_devices,
consumable_capacity, device_taints, device_taint_rules, binding_conditions, counter_slices_passed_over,
capacity_requests_ignored, all_needs_capacity, distinct_by_device, pool_counters_apart, counter_slices_have_nodes,
counters_charged_once, capacity_representable, capacity_formatted_by_step, fractional_capacity, claim_limit_by_request,
selector_errors_name_device, config_requests_collapsed (those of `DeviceRules`); extended_resources, devices_scored,
claim_owner_capitalised, filter_timeout_is_error, quiet_post_filter, deleted_claims_wake.
Source: Kubernetes v1.34 and v1.36, plugins/dynamicresources/dynamicresources.go, dra_manager.go,
extendeddynamicresources.go. Upstream chooses the claim to deallocate at random; kschedd chooses the first one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSignature, PodSpec
from kschedd.api.selecting.requirements import SelectorError
from kschedd.api.selecting.selectors import NodeSelector, parse_node_selector
from kschedd.api.text.times import stamp
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.config.versions.rules import Rules
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.results import allocations
from kschedd.devices.allocation.solution import AllocationError, AllocationTimeout, NodeFailure
from kschedd.devices.binding_conditions import (
    BindingFailure,
    binding_deadline_s,
    has_binding_conditions,
    ready_for_binding,
)
from kschedd.devices.claims import (
    Claim,
    ClaimError,
    allocation,
    is_reserved_for,
    pod_claims,
    read_claim,
    reserved_for,
)
from kschedd.devices.dra_manager import DRAManager
from kschedd.devices.extended_resources import (
    IN_MEMORY,
    ExtendedResourceClaim,
    extended_resource_claim,
    node_claim,
)
from kschedd.devices.pools.taint_rules import KIND as TAINT_RULE
from kschedd.devices.pools.taint_rules import changes_taints
from kschedd.devices.rules import DeviceRules
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    CustomResource,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.fast_path import PRE_POINTS
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE, PostFilterResult
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Code, Status, error, unresolvable, unschedulable
from kschedd.framework.writes import Plan, Write
from kschedd.plugins.devices import dynamicresources_writes as writes_of
from kschedd.plugins.devices.dynamicresources_args import DynamicResourcesArgs
from kschedd.plugins.devices.dynamicresources_state import WITHOUT_CLAIMS, AllocationOnNode, DeviceAttempt, NodeRequests

# Search steps per second that correspond to upstream's filter timeout. Search steps are counted instead of time, so
# that runs are deterministic.
STEPS_PER_SECOND: Final = 5_000
_BINDING_TIMEOUT_S: Final = 600.0


def device_rules(rules: Rules, gates: Mapping[str, bool]) -> DeviceRules:
    """Return the rules of the Kubernetes version on which the allocator depends."""
    return DeviceRules(
        admin_access=gates.get("DRAAdminAccess", True),
        prioritized_list=gates.get("DRAPrioritizedList", True),
        incomplete_pools_passed_over=rules.incomplete_pools_passed_over,
        invalid_pools_passed_over=rules.invalid_pools_passed_over,
        alternatives_kept_apart=rules.alternatives_kept_apart,
        partitionable_devices=rules.partitionable_devices,
        consumable_capacity=rules.consumable_capacity,
        device_taints=rules.device_taints,
        device_taint_rules=rules.device_taint_rules,
        counter_slices_passed_over=rules.counter_slices_passed_over,
        capacity_requests_ignored=rules.capacity_requests_ignored,
        all_needs_capacity=rules.all_needs_capacity,
        distinct_by_device=rules.distinct_by_device,
        pool_counters_apart=rules.pool_counters_apart,
        counter_slices_have_nodes=rules.counter_slices_have_nodes,
        counters_charged_once=rules.counters_charged_once,
        capacity_representable=rules.capacity_representable,
        capacity_formatted_by_step=rules.capacity_formatted_by_step,
        fractional_capacity=rules.fractional_capacity,
        claim_limit_by_request=rules.claim_limit_by_request,
        selector_errors_name_device=rules.selector_errors_name_device,
        config_requests_collapsed=rules.config_requests_collapsed,
        binding_conditions=rules.binding_conditions and gates.get("DRAResourceClaimDeviceStatus", True),
    )


@attrs.define(eq=False)
class DynamicResources:
    name: ClassVar = "DynamicResources"
    args_type: ClassVar = DynamicResourcesArgs
    without_pre_filter: ClassVar = "not found"
    depends_on: ClassVar = None  # None, because the free devices of a node depend on claims in the whole cluster
    rule_of_point: ClassVar = {"score": "devices_scored"}

    _handle: Handle
    _enabled: bool
    _rules: DeviceRules
    _extended: bool  # True if DeviceClasses may provide extended resources
    _owner_word: str  # spelling of "pod" in the reason for a claim that belongs to another pod
    _quiet: bool  # true if PostFilter returns no reason when it has changed nothing
    _after_timeout: Callable[[str], Status]
    _most_steps: int
    _binding_timeout_s: float
    _manager: DRAManager

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        given = args if isinstance(args, DynamicResourcesArgs) else DynamicResourcesArgs()
        gates = handle.feature_gates
        limited = gates.get("DRASchedulerFilterTimeout", True) and given.filter_timeout_s > 0
        return cls(
            handle,
            gates.get("DynamicResourceAllocation", True),
            device_rules(handle.rules, gates),
            handle.rules.extended_resources,
            "Pod" if handle.rules.claim_owner_capitalised else "pod",
            handle.rules.quiet_post_filter,
            error if handle.rules.filter_timeout_is_error else unresolvable,
            max(1, int(given.filter_timeout_s * STEPS_PER_SECOND)) if limited else 0,
            _BINDING_TIMEOUT_S if given.binding_timeout_s is None else given.binding_timeout_s,
            handle.shared(DRAManager),
        )

    def repeats_while_unchanged(self, pod: Pod, cluster: SchedulerCache) -> Collection[str]:
        return PRE_POINTS if self.idle_for(pod) else ()

    def idle_for(self, pod: Pod) -> Sequence[str]:
        # PreFilter stores a state even for pods without claims, because PostFilter checks that the attempt reached
        # PreFilter.
        spec = pod.signature.spec
        if self._enabled:
            if spec.raw.get("resourceClaims"):
                return ()
            if self._extended and not self._manager.resolver.classes().keys().isdisjoint(spec.requests):
                return ()
        return ("binding",)

    # PreFilter

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if not self._enabled or not pod.pod_spec.raw.get("resourceClaims"):
            return None
        try:
            self._user_claims(pod, self._handle.cluster)
        except ClaimError as missing:
            return unresolvable(str(missing))
        return None

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        state.data[self.name] = WITHOUT_CLAIMS
        if not self._enabled:
            return SKIP
        extended = None
        if self._extended:
            extended = extended_resource_claim(pod, self._manager.resolver, self._manager.extended_claim)
        if extended is None and not pod.pod_spec.raw.get("resourceClaims"):
            return SKIP
        try:
            claims = self._user_claims(pod, cluster)
        except ClaimError as missing:
            return unresolvable(str(missing))
        if extended is not None:
            claims.append(extended.obj)
        if not claims:
            return SKIP
        self._manager.catch_up()
        reachable: list[NodeSelector | None] = []
        open_claims: dict[int, Claim] = {}
        for place, claim in enumerate(claims):
            allocated = allocation(claim)
            selector = None
            if allocated is None:
                open_claims[place] = read_claim(claim)
                of_user = extended is None or claim is not extended.obj
                refusal = self._cannot_allocate(open_claims[place], cluster, of_user=of_user)
                if refusal is not None:
                    return refusal
            elif allocated.get("nodeSelector") is not None:
                selector = parse_node_selector(allocated["nodeSelector"])
                if selector.problems:
                    return error(str(SelectorError(selector.problems)))
            reachable.append(selector)
        wanted = tuple(open_claims.values())
        state.data[self.name] = DeviceAttempt(
            tuple(claims),
            tuple(reachable),
            frozenset(place for place, claim in enumerate(claims) if self._cannot_become_ready(claim)),
            self._allocator(wanted, cluster) if wanted else None,
            tuple(open_claims),
            extended,
        )
        return None

    def _user_claims(self, pod: Pod, cluster: SchedulerCache) -> list[Object]:
        return pod_claims(pod, cluster.of_kind("ResourceClaim"), owner_word=self._owner_word)

    def _cannot_allocate(self, claim: Claim, cluster: SchedulerCache, *, of_user: bool) -> Status | None:
        """Return why this claim cannot be allocated on any node; None if the nodes must be searched."""
        if claim.obj in self._manager.in_flight:
            return unresolvable(f"resource claim {claim} is in the process of being allocated")
        for request in claim.requests if of_user else ():
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

    def _cannot_become_ready(self, claim: Object) -> bool:
        """Return whether binding conditions of an allocated claim failed or timed out."""
        if not self._rules.binding_conditions or allocation(claim) is None:
            return False
        try:
            if ready_for_binding(claim):
                return False
        except BindingFailure:
            return True
        late = binding_deadline_s(claim, self._binding_timeout_s)
        return late is not None and late < self._handle.now_s

    def _allocator(self, claims: tuple[Claim, ...], cluster: SchedulerCache) -> Allocator:
        return Allocator(
            claims,
            self._manager.allocated(),
            lambda name: cluster.get("DeviceClass", name),
            self._manager.inventory(self._rules),
            self._rules,
            self._most_steps,
        )

    # Filter

    def affected_by(self, spec: PodSpec) -> bool:
        return False

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        attempt: DeviceAttempt = state.data[self.name]
        if not attempt.claims:
            return None
        name = node.name
        if name not in attempt.outcomes:
            attempt.outcomes[name] = self._judge(attempt, pod, node)
        return attempt.outcomes[name]

    def _judge(self, attempt: DeviceAttempt, pod: Pod, node: NodeInfo) -> Status | None:
        needed: tuple[str, ...] = ()
        if attempt.extended is not None:
            if attempt.extended.stale:
                return unresolvable("cannot schedule extended resource claim")
            left = self._left_to_devices(attempt.extended, node)
            if left is None:
                return unresolvable("cannot fit resource")
            needed = left
            if not needed and not attempt.has_user_claims:
                return None  # device plugins provide all of these resources
        unavailable = [
            place
            for place, selector in enumerate(attempt.reachable)
            if place in attempt.not_ready or (selector is not None and not selector.matches(node.labels, node.name))
        ]
        found = None
        if attempt.allocator is not None:
            requested = attempt.requests_by_need.get(needed)
            if requested is None:
                requested = attempt.requests_by_need[needed] = self._requested(
                    attempt, attempt.allocator.claims, pod, needed
                )
            attempt.requested[node.name] = requested.claims
            try:
                solution = requested.known.allocate(attempt.allocator, node.node, requested.claims)
            except AllocationError as fault:
                return error(str(fault))
            except AllocationTimeout as fault:
                return self._after_timeout(str(fault))
            except NodeFailure as fault:
                return unresolvable(str(fault))
            if solution is None:
                return unresolvable("cannot allocate all claims")
            found = AllocationOnNode(requested.claims, solution, requested.extended)
        if unavailable:
            attempt.unavailable.update(unavailable)
            return unresolvable("resourceclaim not available on the node")
        if found is not None:
            attempt.found[node.name] = found
        return None

    def _requested(
        self, attempt: DeviceAttempt, claims: tuple[Claim, ...], pod: Pod, needed: tuple[str, ...]
    ) -> NodeRequests:
        """Return the claims to allocate on nodes where a DeviceClass provides the requested extended resources."""
        extended = None
        if attempt.extended is not None:
            extended = node_claim(attempt.extended, pod, needed, self._manager.resolver.classes())
            claims = (*claims[:-1], read_claim(extended.obj))
        known = self._manager.requests_of(claims, self._most_steps, self._rules)
        return NodeRequests(known.sharing(claims), known, extended)

    def _left_to_devices(self, claim: ExtendedResourceClaim, node: NodeInfo) -> tuple[str, ...] | None:
        """Return the resources that a DeviceClass provides on this node; None if one resource is unavailable."""
        classes, allocatable = self._manager.resolver.classes(), node.node.allocatable
        needed = []
        for name in claim.resources:
            if name in classes and not allocatable.get(name):
                needed.append(name)
            elif name not in allocatable:
                return None
        return tuple(needed)

    def post_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache, verdicts: Any) -> PostFilterResult:
        if not self._enabled:
            return self.did_nothing("plugin disabled")
        attempt: DeviceAttempt | None = state.data.get(self.name)
        if attempt is None:
            # PreFilter of an earlier plugin ended the cycle; upstream then reports the missing state.
            return PostFilterResult(error("not found"))
        if not attempt.claims:
            return self.did_nothing("no new claims to deallocate")
        for place in sorted(attempt.unavailable):
            claim = attempt.claims[place]
            reserved = reserved_for(claim)
            free = not reserved or (len(reserved) == 1 and reserved[0].get("uid") == pod.uid)
            if free and not attempt.is_extended(place):
                return PostFilterResult(
                    unschedulable("deallocation of ResourceClaim completed"), writes=tuple(writes_of.deallocated(claim))
                )
        if attempt.extended is not None and attempt.extended.obj.name != IN_MEMORY:
            return PostFilterResult(
                unschedulable("deletion of ResourceClaim completed"),
                writes=tuple(writes_of.deleted(attempt.extended.obj)),
            )
        return self.did_nothing("still not schedulable")

    def seen_by(self, state: CycleState) -> bool:
        """Return whether PreFilter stored its state in this attempt."""
        return self._enabled and self.name in state.data

    def did_nothing(self, why: str) -> PostFilterResult:
        """Return PostFilter's result without a change, for this reason."""
        return PostFilterResult(Status(Code.UNSCHEDULABLE) if self._quiet else unschedulable(why))

    # Score

    def constant_score(self, pod: Pod, table: NodeTable) -> int | None:
        return None if self._enabled and pod.pod_spec.raw.get("resourceClaims") else 0

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        attempt: DeviceAttempt = state.data.get(self.name, WITHOUT_CLAIMS)
        return np.array([attempt.score(table.names[row]) for row in rows.tolist()], dtype=np.int64)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        most = int(scores.max(initial=0))
        return scores * MAX_NODE_SCORE // most if most else scores

    # Reserve and PreBind

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        attempt: DeviceAttempt = state.data.get(self.name, WITHOUT_CLAIMS)
        if not attempt.open_claims:
            return None
        found = attempt.found.get(node_name)
        if found is None or attempt.allocator is None:
            if all(attempt.is_extended(place) for place in attempt.open_claims):
                return None  # device plugins provide the extended resources
            return error("claim allocation not found for node")
        try:
            allocator = attempt.allocator
            collapsed = self._rules.config_requests_collapsed
            made = allocations(found.solution, found.claims, allocator.classes, node_name, collapsed=collapsed)
        except AllocationError as fault:
            return error(str(fault))
        for place, kept in zip(attempt.open_claims, made, strict=True):
            attempt.reserved[place] = kept
            claim = attempt.claims[place]
            created_as = writes_of.name_to_create(claim, pod) if attempt.is_extended(place) else ""
            self._manager.in_flight.allocate(claim, kept, created_as)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> Plan | None:
        """Release the assumed devices. The returned writes revert the writes of PreBind."""
        attempt: DeviceAttempt = state.data.get(self.name, WITHOUT_CLAIMS)
        writes: list[Write] = []
        for place, claim in enumerate(attempt.claims):
            if place in attempt.reserved:
                self._manager.in_flight.give_back(claim)
            self._manager.in_flight.release(claim, pod)
            current = self._current(claim, pod)
            if current is not None:
                extended = attempt.is_extended(place)
                reserved = place in attempt.written
                released = writes_of.released(current, pod, reserved=reserved)
                writes += writes_of.deleted(current) if extended else released
        attempt.reserved.clear()
        return Plan(tuple(writes)) if writes else None

    def _current(self, claim: Object, pod: Pod) -> Object | None:
        """Return the current version of the claim, or None if it was deleted."""
        if claim.name == IN_MEMORY:
            return self._manager.extended_claim(pod)
        current = self._handle.cluster.get("ResourceClaim", claim.key)
        return current if current is not None and current.uid == claim.uid else None

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        attempt: DeviceAttempt = state.data.get(self.name, WITHOUT_CLAIMS)
        return None if attempt.claims else SKIP

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Plan | Status | None:
        attempt: DeviceAttempt = state.data.get(self.name, WITHOUT_CLAIMS)
        if attempt.claims:
            self._manager.catch_up()
        writes: list[Write] = []
        to_become_ready: list[str] = []
        at = stamp(self._handle.now_s) if self._rules.binding_conditions else ""
        for place, claim in enumerate(attempt.claims):
            kept = attempt.reserved.get(place)
            if kept is not None and at:
                kept = {**kept, "allocationTimestamp": at}
            if claim.name == IN_MEMORY:
                extended = attempt.found[node_name].extended if node_name in attempt.found else None
                if kept is None or extended is None:
                    continue  # device plugins provide the extended resources
                if not extended.mappings:
                    what = f"no update of pod {pod.namespace}/{pod.name} ExtendedResourceClaimStatus"
                    return error(f"nil or empty request mappings, {what}")
                writes += writes_of.created(extended, pod, kept)
            elif not is_reserved_for(claim, pod):
                current = self._current(claim, pod)
                if current is None or current.deleting:
                    return error(f"claim {claim.key} got deleted in the meantime")
                if kept is not None and allocation(current) is not None:
                    return error(f"claim {claim.key} got allocated elsewhere in the meantime")
                attempt.written.add(place)
                writes += writes_of.bound(current, kept, self._manager.in_flight.reserve_for(current, pod), at)
            if self._rules.binding_conditions and has_binding_conditions(kept or allocation(claim)):
                to_become_ready.append(f"{pod.namespace}/{writes_of.name_to_create(claim, pod)}")
        if to_become_ready:
            return self._plan_to_wait(writes, to_become_ready)
        return Plan(tuple(writes)) if writes else None

    def _plan_to_wait(self, writes: list[Write], keys: list[str]) -> Plan:
        """Return a plan that waits until the devices of these claims are ready, and then binds the pod."""
        timeout_s = self._binding_timeout_s
        ready = writes_of.devices_ready(keys, timeout_s, lambda: self._handle.now_s)
        return Plan(tuple(writes), ready, timeout_s, error("device binding timeout"))

    # events

    def events_to_register(self) -> list[ClusterEventWithHint]:
        if not self._enabled:
            return []
        changed = ActionType.ADD | ActionType.UPDATE
        of_nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        of_claims = changed | ActionType.DELETE if self._handle.rules.deleted_claims_wake else changed
        return [
            on(EventResource.NODE, of_nodes),
            on(EventResource.RESOURCE_CLAIM, of_claims, self._after_claim, concerns=_users),
            on(EventResource.POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self._after_pod),
            on(EventResource.DEVICE_CLASS, changed),
            on(EventResource.RESOURCE_SLICE, changed),
            *self._events_of_taint_rules(),
        ]

    def _events_of_taint_rules(self) -> list[ClusterEventWithHint]:
        any_change = ActionType.ADD | ActionType.UPDATE | ActionType.DELETE
        registered = on(CustomResource(TAINT_RULE), any_change, self._after_taint_rule, by_signature=True)
        return [registered] if self._rules.device_taint_rules else []

    def _after_taint_rule(self, pod: Pod, old: Object | None, new: Object | None) -> QueueingHint:
        """Requeue pods if a rule changes slices; upstream gets only the events of the changed slices."""
        slices = self._handle.cluster.of_kind("ResourceSlice").values()
        return QUEUE if changes_taints(slices, old, new) else QUEUE_SKIP

    def _after_claim(self, pod: Pod, old: Object | None, new: Object | None) -> QueueingHint:
        if new is None:
            return QUEUE if _freed(old, new) else QUEUE_SKIP
        try:
            used = self._user_claims(pod, self._handle.cluster)
        except ClaimError:
            return QUEUE_SKIP  # the pod's claims are still incomplete
        if _freed(old, new):
            return QUEUE
        if all(claim.uid != new.uid for claim in used):
            return QUEUE_SKIP
        return QUEUE if old is None or old.status != new.status else QUEUE_SKIP

    def _after_pod(self, pod: Pod, old: Any, new: Pod) -> QueueingHint:
        if new.uid != pod.uid:
            return QUEUE_SKIP
        try:
            self._user_claims(new, self._handle.cluster)
        except ClaimError:
            return QUEUE_SKIP
        return QUEUE


def _freed(old: Object | None, new: Object | None) -> bool:
    """Return whether devices of a claim were freed."""
    return old is not None and allocation(old) is not None and (new is None or allocation(new) is None)


def _users(signature: PodSignature, old: Object | None, new: Object | None) -> Collection[str] | None:
    """Return the pods that a claim's change affects: pods that name the claim, or the pod for which it was created."""
    if _freed(old, new):
        return None
    if new is None or signature.namespace != new.namespace:
        return ()
    if any(entry.get("resourceClaimName") == new.name for entry in signature.spec.raw.get("resourceClaims") or ()):
        return None
    owner = new.owner
    return () if owner is None else (f"{new.namespace}/{owner.name}",)
