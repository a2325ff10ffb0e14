"""Rules: named differences in decisions or messages between later releases of kube-scheduler and 1.34.1.

A rule applies from one release on, possibly until another. A release is the set of the rules that apply to it
(`kube_versions`), so code never checks for a release. A plugin reads a rule from its handle at construction
(`handle.rules.image_volumes_scored`), stores the function that the rule selects, and names the rule in its docstring.
Because each rule can be turned on alone, a difference between two releases can be attributed to one of them.

A rule's name describes how kube-scheduler behaves where the rule applies. Without any rule, the behavior is that of
1.34.1. A rule with `gates` applies only while these feature gates are on; code checks the rule, not the gate.

Source: Kubernetes v1.34.1, v1.34.9, v1.35.6, v1.36.3 and v1.37.2, whose behavior was compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.resources import ResizeRules
from kschedd.api.schemas.schema import gated_off
from kschedd.config.versions.kube_releases import Release


@attrs.frozen
class VersionRule:
    name: str
    what: str
    """The behavior with the rule."""
    where: str
    """The plugin, or the part of the control plane, that it belongs to."""
    since: Release
    """The first release with it."""
    until: Release | None = None
    """The first release without it again; None: every later one has it."""
    gates: tuple[str, ...] = ()
    """The feature gates that it requires, if the release has them."""

    def holds_in(self, release: Release) -> bool:
        """Return whether the rule applies to a release."""
        return self.since <= release and (self.until is None or release < self.until)

    @property
    def releases(self) -> str:
        """The releases to which the rule applies, as text."""
        return f"{self.since}" if self.until is None else f"{self.since}, until {self.until}"


_RULE: Final = "kschedd.rule"


def rule(where: str, since: str, what: str, *, until: str = "", gates: tuple[str, ...] = ()) -> Any:
    """Return a field for the class `Rules`."""
    ends = Release.of(until) if until else None
    return attrs.field(default=False, metadata={_RULE: (what, where, Release.of(since), ends, gates)})


@attrs.frozen(kw_only=True)
class Rules:
    """The rules that apply."""

    # -- since a patch of 1.34
    untolerated_taints_unnamed: bool = rule(
        "TaintToleration",
        "1.34.2",
        "the reason does not name the taint, so that nodes with different taints count as one",
    )
    terminating_victims_deleted: bool = rule(
        "DefaultPreemption", "1.34.4", "victims that are terminating already are deleted again", until="1.35"
    )

    # -- scores
    balance_before_and_after: bool = rule(
        "NodeResourcesBalancedAllocation",
        "1.36",
        "the score is the change in balance caused by the pod; 75 means no change",
    )
    image_volumes_scored: bool = rule("ImageLocality", "1.36", "images of volumes count like those of containers")
    image_volumes_counted: bool = rule(
        "ImageLocality",
        "1.37",
        "images of volumes count in the upper threshold, too",
    )
    capacity_scored: bool = rule(
        "VolumeBinding",
        "1.34",
        "scores nodes by free storage capacity: 0 if nothing is provisioned",
        gates=("StorageCapacityScoring",),
    )
    devices_scored: bool = rule(
        "DynamicResources", "1.35", "scores alternatives of requests by their order; by default with the weight 2"
    )

    # -- filters
    declared_features: bool = rule(
        "NodeDeclaredFeatures",
        "1.36",
        "a node must declare the features that a pod needs",
        gates=("NodeDeclaredFeatures",),
    )
    node_name_narrows: bool = rule(
        "NodeName",
        "1.37",
        "a pod that names a node is evaluated on that node only",
    )
    node_name_first: bool = rule(
        "NodeName",
        "1.37",
        "filters before NodeUnschedulable in the default profile",
    )
    volumes_need_driver: bool = rule(
        "NodeVolumeLimits",
        "1.36",
        "volumes of a CSIDriver with preventPodSchedulingIfMissing need a node with that driver",
        gates=("VolumeLimitScaling",),
    )
    namespace_selector_kept: bool = rule(
        "InterPodAffinity",
        "1.37",
        "a namespaceSelector with only NotIn or DoesNotExist selects the namespaces that it matches, not all",
    )
    absent_volumes_as_listed: bool = rule(
        "VolumeBinding",
        "1.35",
        "a claim or volume deleted while a pod's volumes are bound is named by its resource, not by its type",
    )
    portworx_volumes_counted: bool = rule(
        "NodeVolumeLimits", "1.36", "Portworx volumes count for their CSI driver on every node with a CSINode"
    )
    gone_victims_evicted: bool = rule(
        "DefaultPreemption",
        "1.35",
        "if all victims of a preemption are already deleted, it succeeds, and the preemptor waits for an event",
    )
    bound_nominees_wake_none: bool = rule(
        "scheduling queue",
        "1.35",
        "a nominated pod that gets a node no longer wakes the pods that its nomination kept out",
    )
    assumed_pods_forgotten: bool = rule(
        "scheduler cache",
        "1.35",
        "a pod deleted while it is being bound no longer counts on its node; its binding continues and fails",
    )
    pod_level_resize: bool = rule(
        "scheduler cache",
        "1.36",
        "while pod-level resources are resized, the maximum of requested, allocated and actual values counts",
        gates=("InPlacePodLevelResourcesVerticalScaling",),
    )
    resize_max_of_sums: bool = rule(
        "scheduler cache",
        "1.37",
        "for a resized pod, the largest of the sums of requested, allocated and actual values counts",
    )

    # -- devices
    incomplete_pools_passed_over: bool = rule(
        "DynamicResources", "1.35", "devices of a pool whose newest generation is incomplete are not allocated"
    )
    invalid_pools_passed_over: bool = rule(
        "DynamicResources", "1.35", "an invalid pool is skipped instead of failing the attempt"
    )
    alternatives_kept_apart: bool = rule(
        "DynamicResources", "1.36", "each alternative of a request has its own devices, also with allocationMode All"
    )
    claim_owner_capitalised: bool = rule(
        "DynamicResources", "1.36", "the reason for a claim of another pod spells Pod with a capital letter"
    )
    filter_timeout_is_error: bool = rule(
        "DynamicResources", "1.36", "a search for devices that takes too long is an error, so that the pod backs off"
    )
    extended_resources: bool = rule(
        "DynamicResources",
        "1.36",
        "extended resources may be provided by a DeviceClass, whose devices are allocated and scored",
        gates=("DRAExtendedResource",),
    )
    partitionable_devices: bool = rule(
        "DynamicResources",
        "1.36",
        "devices share counters of their pool, and may have individual nodes",
        gates=("DRAPartitionableDevices",),
    )
    consumable_capacity: bool = rule(
        "DynamicResources",
        "1.36",
        "several claims may share a device up to its capacity",
        gates=("DRAConsumableCapacity",),
    )
    device_taints: bool = rule(
        "DynamicResources", "1.36", "requests must tolerate the taints of devices", gates=("DRADeviceTaints",)
    )
    binding_conditions: bool = rule(
        "DynamicResources",
        "1.36",
        "devices may have to be made ready before the pod is bound",
        gates=("DRADeviceBindingConditions",),
    )
    counter_slices_passed_over: bool = rule(
        "DynamicResources",
        "1.35",
        "slices with shared counters are skipped while DRAPartitionableDevices is off",
    )
    capacity_requests_ignored: bool = rule(
        "DynamicResources",
        "1.35",
        "requests of capacity are ignored, and constraints of distinct attributes unsupported",
        until="1.36",
    )
    all_needs_capacity: bool = rule(
        "DynamicResources",
        "1.37",
        "allocationMode All fails if a device is too full, instead of leaving it out",
    )
    distinct_by_device: bool = rule(
        "DynamicResources",
        "1.37",
        "distinctAttribute compares a device with every other one, not with the last of each request",
    )
    pool_counters_apart: bool = rule(
        "DynamicResources",
        "1.37",
        "shared counters are identified by driver and pool, not by the pool's name alone",
    )
    counter_slices_have_nodes: bool = rule(
        "DynamicResources",
        "1.37",
        "slices with shared counters count on the nodes they select, and with the whole pool elsewhere",
    )
    counters_charged_once: bool = rule(
        "DynamicResources",
        "1.37",
        "a shared device in use consumes no counters again, even if its allocations record no capacity",
    )
    fractional_capacity: bool = rule(
        "DynamicResources",
        "1.37",
        "ranges of requested capacity may have thousandths",
        gates=("DRAFractionalCapacityRange",),
    )
    capacity_representable: bool = rule(
        "DynamicResources",
        "1.37",
        "requests of capacity beyond 64 bits are an error",
    )
    capacity_formatted_by_step: bool = rule(
        "DynamicResources",
        "1.37",
        "consumed capacity that a step rounds up is written in the format of the step",
    )
    claim_limit_by_request: bool = rule(
        "DynamicResources",
        "1.37.1",
        "the error for a claim of too many devices names the request that exceeds the limit",
    )
    selector_errors_name_device: bool = rule(
        "DynamicResources",
        "1.37",
        "the error of a CEL selector names the device, and has a hint if a key is missing",
    )
    config_requests_collapsed: bool = rule(
        "DynamicResources",
        "1.37",
        "each configuration of a claim is one entry of its allocation, not one for each request",
    )
    device_taint_rules: bool = rule(
        "DynamicResources",
        "1.37",
        "taints of DeviceTaintRules count like those of devices",
        gates=("DRADeviceTaintRules",),
    )

    # -- searches
    opportunistic_batching: bool = rule(
        "scheduler",
        "1.35",
        "if the previous, equal pod's node is full, the next best node is tried first",
        gates=("OpportunisticBatching",),
    )
    batch_rescores: bool = rule(
        "scheduler",
        "1.37",
        "if the last node of a batch still fits, it is scored again instead of dropping the batch",
        gates=("OpportunisticBatching",),
    )
    nominated_pods_unbatched: bool = rule(
        "scheduler", "1.37", "a nominated pod is not tried on the next best node of a batch first"
    )

    # -- controllers
    stateful_sets_replace_several: bool = rule(
        "StatefulSet controller",
        "1.37",
        "a rolling update replaces as many pods at a time as maxUnavailable allows",
        gates=("MaxUnavailableStatefulSet",),
    )

    # -- ties
    ties_in_order: bool = rule(
        "scheduler",
        "1.35",
        "the first of equally good nodes in heap order is chosen; one is drawn only if an extender scored",
    )

    # -- nominations
    nominated_before_binding: bool = rule(
        "scheduler",
        "1.35",
        "the node is written to the pod's status before PreBind or Permit has work to do",
        gates=("NominatedNodeNameForExpectation",),
    )
    nomination_cleared_without_post_filter: bool = rule(
        "scheduler", "1.35", "a failed attempt clears the nomination if the profile has no PostFilter plugin"
    )

    # -- preemption
    victims_preempted_in_memory: bool = rule(
        "DefaultPreemption",
        "1.36",
        "a victim at Permit, or whose binding is in PreBind, is not deleted: its binding fails, and it backs off",
    )
    placement_in_message: bool = rule(
        "DefaultPreemption",
        "1.37",
        "the message of a preemption has its node and the number of victims",
    )
    unstarted_pods_in_order: bool = rule(
        "DefaultPreemption",
        "1.37",
        "among pods of equal priority that have not started, the earliest on a node are kept first, not last",
    )
    first_violated_budget_only: bool = rule(
        "DefaultPreemption",
        "1.37",
        "a pod is charged to its disruption budgets only up to the first that it violates",
    )
    quiet_post_filter: bool = rule(
        "DynamicResources",
        "1.37",
        "gives no reason if it has nothing to deallocate",
    )

    # -- queueing hints
    nominated_pods_wake: bool = rule(
        "queueing hints",
        "1.36",
        "for InterPodAffinity and PodTopologySpread, pods nominated to a node count like pods on it",
    )
    affinity_wakes_more: bool = rule(
        "InterPodAffinity",
        "1.36",
        "a pod is retried when its own labels change, and when a pod is deleted whose anti-affinity excluded it",
    )
    any_anti_affinity_wakes: bool = rule(
        "InterPodAffinity",
        "1.37",
        "a change of a pod wakes pods if any anti-affinity term matches, not only if all do",
    )
    taints_wake_their_own: bool = rule(
        "queueing hints",
        "1.37",
        "a node's changed taints wake only pods that TaintToleration rejected",
    )
    deleted_claims_wake: bool = rule(
        "DynamicResources",
        "1.37",
        "the deletion of a device claim that is still allocated wakes pods",
    )
    gated_pods_flushed: bool = rule(
        "scheduling queue",
        "1.37",
        "pods gated by a PreEnqueue plugin are retried after five minutes",
    )
    gated_nominations_kept: bool = rule(
        "scheduling queue",
        "1.37",
        "a nominated pod keeps its nomination also while it is gated",
    )

    # -- bindings
    bindings_retried: bool = rule(
        "DefaultBinder",
        "1.37",
        "a binding without an answer from the API server is sent up to four times",
    )
    status_conflicts_retried: bool = rule(
        "scheduler",
        "1.36",
        "a patch of a pod's status is sent up to four times also after conflicts",
    )

    resizes_preempt: bool = rule(
        "scheduler",
        "1.37",
        "a running pod whose resize is deferred is queued, and preempts on its node",
        gates=("InPlacePodVerticalScalingSchedulerPreemption",),
    )

    # -- pod groups
    pod_groups: bool = rule(
        "scheduler",
        "1.36",
        "there are Workloads and PodGroups, and the pods of a group are tried in one cycle",
        gates=("GenericWorkload",),
    )
    groups_of_v1alpha2: bool = rule(
        "API server",
        "1.36",
        "Workloads and PodGroups are of scheduling.k8s.io/v1alpha2, and are immutable",
        until="1.37",
        gates=("GenericWorkload",),
    )
    groups_of_v1beta1: bool = rule(
        "API server",
        "1.37",
        "Workloads and PodGroups are of scheduling.k8s.io/v1beta1 and v1alpha3, with a priority; minCount may change",
        gates=("GenericWorkload",),
    )
    gang_scheduling: bool = rule(
        "GangScheduling",
        "1.36",
        "at least minCount pods of a PodGroup with the policy gang are placed, or none",
        gates=("GangScheduling", "GenericWorkload"),
    )

    groups_queued: bool = rule(
        "scheduling queue",
        "1.37",
        "the pods of a PodGroup are one entry, which waits, is tried and backs off as a whole",
        gates=("GenericWorkload",),
    )
    gangs_counted: bool = rule(
        "GangScheduling",
        "1.37",
        "the cycle of a PodGroup ends once too few pods are left; Permit is called for placed pods only",
        gates=("GenericWorkload",),
    )
    groups_preempt: bool = rule(
        "DefaultPreemption",
        "1.37",
        "a PodGroup preempts as a whole, and is a victim as a whole if its disruption mode says so",
        gates=("GenericWorkload",),
    )
    groups_in_domains: bool = rule(
        "TopologyPlacementGenerator",
        "1.37",
        "a PodGroup is tried in each domain of its topology constraint, and placed in the best one",
        gates=("TopologyAwareWorkloadScheduling", "GenericWorkload"),
    )
    groups_initially_scheduled: bool = rule(
        "scheduler",
        "1.37",
        "a PodGroup's condition is called PodGroupInitiallyScheduled",
        gates=("GenericWorkload",),
    )

    # -- API fields that no decision reads
    fields_of_1_35: bool = rule("API server", "1.35", "objects may have the fields that came with 1.35")
    fields_of_1_36: bool = rule("API server", "1.36", "objects may have the fields and kinds that came with 1.36")
    fields_of_1_37: bool = rule("API server", "1.37", "objects may have the fields and kinds that came with 1.37")

    off: frozenset[str] = frozenset()
    """The names of the version's rules whose feature gate is off."""

    @classmethod
    def of(cls, release: Release) -> Rules:
        """Return the rules of a release with all their gates on."""
        holding: dict[str, Any] = {one.name: one.holds_in(release) for one in RULES.values()}
        return cls(**holding)

    @classmethod
    def of_any_release(cls) -> Rules:
        """Return every rule that applies to any release."""
        holding: dict[str, Any] = dict.fromkeys(RULES, True)
        return cls(**holding)

    def under(self, gates: Mapping[str, bool]) -> Rules:
        """Return the rules without the rules whose feature gates are off."""
        off = [one.name for one in RULES.values() if not all(gates.get(gate, True) for gate in one.gates)]
        had = self.off.union(name for name in off if getattr(self, name))
        return attrs.evolve(self, off=had, **dict.fromkeys(off, False))

    @property
    def resize_rules(self) -> ResizeRules:
        """The rules for counting requests of pods that are being resized."""
        return ResizeRules(self.pod_level_resize, self.resize_max_of_sums)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the active rules."""
        return tuple(name for name in RULES if getattr(self, name))

    @property
    def features(self) -> frozenset[str]:
        """The names of the rules that apply, and of rules whose gate is off in the form of `gated_off`."""
        return frozenset(self.names).union(map(gated_off, self.off))


RULES: Final[Mapping[str, VersionRule]] = {
    field.name: VersionRule(field.name, *field.metadata[_RULE])
    for field in attrs.fields(Rules)
    if _RULE in field.metadata
}
"""Every rule, by its name, in the order of `Rules`."""
