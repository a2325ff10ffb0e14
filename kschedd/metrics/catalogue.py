"""Catalogue: every metric of /metrics and /metrics/resources, with its meaning in this scheduler.

`UPSTREAM` are kube-scheduler's metrics, with its names, labels, buckets and stability; the help text describes the
meaning in kschedd if it differs. `OWN` are metrics that kube-scheduler does not have. The components that count are in
other modules. `python -m kschedd.metrics.catalogue` prints the table of docs/OPERATING.md.

Source: Kubernetes v1.34 and v1.37, scheduler/metrics/metrics.go, scheduler/metrics/resources/resources.go,
scheduler/framework/plugins/volumebinding/metrics/metrics.go, component-base/metrics/prometheus/feature/metrics.go;
kube-state-metrics (kube_pod_overhead_…).

Omitted, because the events that they count do not exist in kschedd: rest_client_… and workqueue_… (the scheduler writes
to the store of its own process), leader_election_… (`kschedd status` shows it),
scheduler_volume_binder_cache_requests_total (which upstream registers and never counts),
scheduler_pre_queueing_hint_evaluations_total (no plugin narrows the pods of an event), go_….
"""

from typing import Final

from kschedd.metrics.instruments import Metric, exponential

_MILLISECONDS: Final = exponential(0.001, 2, 15)
_BATCH: Final = exponential(0.00001, 2, 12)
_PREEMPTION: Final = exponential(0.001, 2, 16)
_SHORT: Final = exponential(0.0001, 2, 12)
_PLUGIN: Final = exponential(0.00001, 1.5, 20)
_OF_POD: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")

# -- attempts ---------------------------------------------------------------------------------------------------

ATTEMPTS: Final = Metric(
    "scheduler_schedule_attempts_total",
    "counter",
    "Attempts, by result.",
    ("result", "profile"),
    stability="STABLE",
)
ATTEMPT_DURATION: Final = Metric(
    "scheduler_scheduling_attempt_duration_seconds",
    "histogram",
    "Duration of an attempt; includes the binding if a node was found.",
    ("result", "profile"),
    _MILLISECONDS,
    "STABLE",
)
ALGORITHM_DURATION: Final = Metric(
    "scheduler_scheduling_algorithm_duration_seconds",
    "histogram",
    "Duration of the search for a node.",
    (),
    _MILLISECONDS,
    "ALPHA",
)
SLI_DURATION: Final = Metric(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "histogram",
    "Time from a pod's entry into the active queue until its binding, by number of attempts.",
    ("attempts",),
    exponential(0.01, 2, 20),
    "BETA",
)
POD_ATTEMPTS: Final = Metric(
    "scheduler_pod_scheduling_attempts",
    "histogram",
    "Number of attempts of a bound pod.",
    (),
    exponential(1, 2, 5),
    "STABLE",
)
SCHEDULED_AFTER_FLUSH: Final = Metric(
    "scheduler_pod_scheduled_after_flush_total",
    "counter",
    "Bound pods that were retried because they had waited too long, not because of an event.",
    (),
    stability="ALPHA",
)
BATCH_ATTEMPTS: Final = Metric(
    "scheduler_batch_attempts_total",
    "counter",
    "Attempts by their use of the scores of the previous attempt (no_hint, hint_used, hint_not_used), in profiles "
    "with plugins that can sign pods.",
    ("profile", "result"),
    stability="ALPHA",
)
BATCH_FLUSHED: Final = Metric(
    "scheduler_batch_cache_flushed_total",
    "counter",
    "Times that the scores of the previous attempt could not be used, by reason, in profiles with plugins that can "
    "sign pods.",
    ("profile", "reason"),
    stability="ALPHA",
)
BATCH_RESCORES: Final = Metric(
    "scheduler_batch_rescore_attempts_total",
    "counter",
    "Times that the node of the previous attempt was scored again because the next pod fits there, too; since 1.37.",
    ("profile",),
    stability="ALPHA",
)
HINT_LOOKUP_DURATION: Final = Metric(
    "scheduler_get_node_hint_duration_seconds",
    "histogram",
    "Duration of the lookup of the node that the scores of the previous attempt put first (hinted: hint, no_hint).",
    ("hinted", "profile"),
    _BATCH,
    "ALPHA",
)
BATCH_STORE_DURATION: Final = Metric(
    "scheduler_store_schedule_results_duration_seconds",
    "histogram",
    "Duration of storing the scores of an attempt for the next one.",
    ("profile",),
    _BATCH,
    "ALPHA",
)
BATCH_RESCORE_DURATION: Final = Metric(
    "scheduler_batch_rescore_duration_seconds",
    "histogram",
    "Duration of scoring the node of the previous attempt again.",
    ("profile",),
    _BATCH,
    "ALPHA",
)
EXTENSION_POINT_DURATION: Final = Metric(
    "scheduler_framework_extension_point_duration_seconds",
    "histogram",
    "Duration of all plugins of an extension point.",
    ("extension_point", "status", "profile"),
    _SHORT,
    "STABLE",
)
PLUGIN_DURATION: Final = Metric(
    "scheduler_plugin_execution_duration_seconds",
    "histogram",
    "Duration of a plugin call, measured in one of ten attempts. One call of Filter or Score covers many nodes.",
    ("plugin", "extension_point", "status"),
    _PLUGIN,
    "ALPHA",
)
PLUGIN_EVALUATIONS: Final = Metric(
    "scheduler_plugin_evaluation_total",
    "counter",
    "Plugin evaluations at PreFilter, Filter, PreScore and Score; at Filter and Score, one per node. Evaluations taken "
    "from the evaluation cache are not counted.",
    ("plugin", "extension_point", "profile"),
    stability="ALPHA",
)
PERMIT_WAIT: Final = Metric(
    "scheduler_permit_wait_duration_seconds",
    "histogram",
    "Waiting time of pods at Permit.",
    ("result",),
    _MILLISECONDS,
    "ALPHA",
)
PREEMPTION_ATTEMPTS: Final = Metric(
    "scheduler_preemption_attempts_total",
    "counter",
    "Number of preemption attempts, in which PostFilter searches for pods to evict.",
    stability="STABLE",
)
PREEMPTION_VICTIMS: Final = Metric(
    "scheduler_preemption_victims",
    "histogram",
    "Number of pods that a preemption evicts.",
    (),
    exponential(1, 2, 7),
    "STABLE",
)
PREEMPTION_EVALUATION: Final = Metric(
    "scheduler_preemption_evaluation_duration_seconds",
    "histogram",
    "Duration of the search for pods to evict, by preemptor (pod, podgroup) and status.",
    ("preemptor", "result"),
    _PREEMPTION,
    "ALPHA",
)
PREEMPTION_EXECUTION: Final = Metric(
    "scheduler_preemption_execution_duration_seconds",
    "histogram",
    "Duration of a preemption's evictions, by preemptor (pod, podgroup).",
    ("preemptor", "result"),
    _PREEMPTION,
    "ALPHA",
)
BUDGET_VIOLATIONS: Final = Metric(
    "scheduler_preemption_pdb_violations_total",
    "counter",
    "Evicted pods whose PodDisruptionBudget does not allow it, by preemptor (pod, podgroup).",
    ("preemptor",),
    stability="ALPHA",
)
PREEMPTION_DURATION: Final = Metric(
    "scheduler_preemption_goroutines_duration_seconds",
    "histogram",
    "Duration of a preemption's evictions, concurrent with further attempts; with the gate SchedulerAsyncPreemption.",
    ("result",),
    exponential(0.01, 2, 20),
    "ALPHA",
)
PREEMPTION_EXECUTIONS: Final = Metric(
    "scheduler_preemption_goroutines_execution_total",
    "counter",
    "Preemptions with evictions concurrent with further attempts; with the gate SchedulerAsyncPreemption.",
    ("result",),
    stability="ALPHA",
)
CACHE_SIZE: Final = Metric(
    "scheduler_cache_size", "gauge", "Number of objects in the scheduler cache, by type.", ("type",), stability="ALPHA"
)
POD_GROUP_ATTEMPTS: Final = Metric(
    "scheduler_podgroup_schedule_attempts_total",
    "counter",
    "Scheduling cycles of PodGroups, by result.",
    ("result", "profile"),
    stability="ALPHA",
)
POD_GROUP_ATTEMPT_DURATION: Final = Metric(
    "scheduler_podgroup_scheduling_attempt_duration_seconds",
    "histogram",
    "Duration of a PodGroup's scheduling cycle; includes the preemption.",
    ("result", "profile"),
    _MILLISECONDS,
    "ALPHA",
)
POD_GROUP_ALGORITHM_DURATION: Final = Metric(
    "scheduler_podgroup_scheduling_algorithm_duration_seconds",
    "histogram",
    "Duration of the search for nodes for a PodGroup.",
    (),
    _MILLISECONDS,
    "ALPHA",
)
GENERATED_PLACEMENTS: Final = Metric(
    "scheduler_generated_placements_total",
    "counter",
    "Placements in which PodGroups are tried; with the gate TopologyAwareWorkloadScheduling.",
    ("profile",),
    stability="ALPHA",
)
PLACEMENT_EVALUATIONS: Final = Metric(
    "scheduler_placement_evaluations_total",
    "counter",
    "Trials of a PodGroup in a placement, by result (feasible, infeasible); with the gate "
    "TopologyAwareWorkloadScheduling.",
    ("result", "profile"),
    stability="ALPHA",
)
PLACEMENT_EVALUATION_DURATION: Final = Metric(
    "scheduler_placement_evaluation_duration_seconds",
    "histogram",
    "Duration of a trial of a PodGroup in a placement; with the gate TopologyAwareWorkloadScheduling.",
    ("result", "profile"),
    _MILLISECONDS,
    "ALPHA",
)
WORKLOAD_PREEMPTIONS: Final = Metric(
    "scheduler_workload_preemption_attempts_total",
    "counter",
    "Searches for pods to evict for a PodGroup, by status.",
    ("result",),
    stability="ALPHA",
)
WORKLOAD_VICTIMS: Final = Metric(
    "scheduler_workload_preemption_victims",
    "histogram",
    "Number of pods that a PodGroup's preemption evicts.",
    (),
    exponential(1, 2, 11),
    "ALPHA",
)
WORKLOAD_DISRUPTIONS: Final = Metric(
    "scheduler_preemption_workload_disruptions",
    "histogram",
    "Number of victims of a PodGroup's preemption that belong to PodGroups; a group evicted as a whole is one victim.",
    ("preemptor",),
    exponential(1, 2, 11),
    "ALPHA",
)
GOROUTINES: Final = Metric(
    "scheduler_goroutines", "gauge", "Number of concurrent tasks, by operation.", ("operation",), stability="ALPHA"
)
VOLUME_ERRORS: Final = Metric(
    "scheduler_volume_scheduling_stage_error_total",
    "counter",
    "Errors of VolumeBinding, by stage: predicate, assume, bind.",
    ("operation",),
    stability="ALPHA",
)

# -- writes -----------------------------------------------------------------------------------------------------

API_CALLS: Final = Metric(
    "scheduler_async_api_call_execution_total",
    "counter",
    "Writes of the scheduler concurrent with its attempts; with the gate SchedulerAsyncAPICalls.",
    ("call_type", "result"),
    stability="ALPHA",
)
API_CALL_DURATION: Final = Metric(
    "scheduler_async_api_call_execution_duration_seconds",
    "histogram",
    "Duration of a request that contains writes of the scheduler; with the gate SchedulerAsyncAPICalls.",
    ("call_type", "result"),
    _MILLISECONDS,
    "ALPHA",
)
PENDING_API_CALLS: Final = Metric(
    "scheduler_pending_async_api_calls",
    "gauge",
    "Writes of the scheduler that are still pending; with the gate SchedulerAsyncAPICalls.",
    ("call_type",),
    stability="ALPHA",
)

# -- the queue --------------------------------------------------------------------------------------------------

PENDING_PODS: Final = Metric(
    "scheduler_pending_pods", "gauge", "Pending pods, by queue.", ("queue",), stability="STABLE"
)
INCOMING_PODS: Final = Metric(
    "scheduler_queue_incoming_pods_total",
    "counter",
    "Pods added to a queue, by queue and event.",
    ("queue", "event"),
    stability="STABLE",
)
INCOMING_ENTITIES: Final = Metric(
    "scheduler_queue_incoming_entities_total",
    "counter",
    "Entries added to a queue, by queue, event and type: a pod without a PodGroup is one entry, and so is a PodGroup.",
    ("queue", "event", "type"),
    stability="ALPHA",
)
QUEUED_ENTITIES: Final = Metric(
    "scheduler_queued_entities",
    "gauge",
    "Entries of the scheduling queue, by queue and type: a pod without a PodGroup is one entry, and so is a PodGroup.",
    ("queue", "type"),
    stability="ALPHA",
)
UNSCHEDULABLE_PODS: Final = Metric(
    "scheduler_unschedulable_pods",
    "gauge",
    "Unschedulable pods, by plugin; a pod counts for every plugin that rejected it.",
    ("plugin", "profile"),
    stability="ALPHA",
)
IN_FLIGHT_EVENTS: Final = Metric(
    "scheduler_inflight_events",
    "gauge",
    "Events kept for pods whose attempt is in progress.",
    ("event",),
    stability="ALPHA",
)
EVENT_DURATION: Final = Metric(
    "scheduler_event_handling_duration_seconds",
    "histogram",
    "Duration of the queue's handling of an object change.",
    ("event",),
    _SHORT,
    "ALPHA",
)
HINT_DURATION: Final = Metric(
    "scheduler_queueing_hint_execution_duration_seconds",
    "histogram",
    "Duration of a call of a plugin's queueing hint; one call covers all pods for which the plugin returns the "
    "same hint.",
    ("plugin", "event", "hint"),
    _PLUGIN,
    "ALPHA",
)

# -- the process ------------------------------------------------------------------------------------------------

FEATURE_ENABLED: Final = Metric(
    "kubernetes_feature_enabled",
    "gauge",
    "Whether a known feature gate is enabled.",
    ("name", "stage"),
    stability="BETA",
)
BUILD_INFO: Final = Metric(
    "kschedd_build_info",
    "gauge",
    "Always 1; the labels are the version of kschedd and the Kubernetes version whose rules it uses.",
    ("version", "kubernetes_version"),
)

# -- /metrics/resources -----------------------------------------------------------------------------------------

POD_REQUEST: Final = Metric(
    "kube_pod_resource_request",
    "gauge",
    "Resource requests of pods that are not finished.",
    _OF_POD,
    stability="STABLE",
)
POD_LIMIT: Final = Metric(
    "kube_pod_resource_limit", "gauge", "Resource limits of pods that are not finished.", _OF_POD, stability="STABLE"
)

# -- metrics that kube-scheduler does not have ------------------------------------------------------------------

POD_CPU_OVERHEAD: Final = Metric(
    "kube_pod_overhead_cpu_cores", "gauge", "CPU overhead of running the pod.", ("namespace", "pod")
)
POD_MEMORY_OVERHEAD: Final = Metric(
    "kube_pod_overhead_memory_bytes", "gauge", "Memory overhead of running the pod.", ("namespace", "pod")
)
REJECTIONS: Final = Metric(
    "kschedd_filter_rejections_total",
    "counter",
    "Nodes rejected in unsuccessful attempts, by plugin and reason.",
    ("plugin", "reason"),
)
SCORE: Final = Metric(
    "kschedd_plugin_score",
    "histogram",
    "Weighted score of a plugin for the selected node, measured in one of 512 attempts.",
    ("plugin", "profile"),
    (0, 10, 25, 50, 75, 90, 100, 150, 200, 300, 500, 1000),
)
MARGIN: Final = Metric(
    "kschedd_score_margin",
    "histogram",
    "Difference between the total scores of the selected node and the best other node, measured in one of ten "
    "attempts.",
    ("profile",),
    (0, 1, 2, 5, 10, 20, 50, 100, 200, 500),
)
CACHED_EVALUATIONS: Final = Metric(
    "kschedd_evaluation_cache_nodes_total",
    "counter",
    "Verdicts on nodes that attempts took from the evaluation cache (hit), or that plugins computed (miss). "
    "Misses include verdicts on further nodes that will be needed soon.",
    ("profile", "result"),
)
QUEUE_WAIT: Final = Metric(
    "kschedd_queue_wait_seconds",
    "histogram",
    "Time that pods stayed in a queue.",
    ("queue",),
    exponential(0.001, 4, 12),
)
REQUEUED: Final = Metric(
    "kschedd_requeued_pods_total",
    "counter",
    "Pods requeued by an event, by the plugin whose hint decided and the result of the next attempt.",
    ("plugin", "event", "result"),
)

UPSTREAM: Final = (
    ATTEMPTS,
    ATTEMPT_DURATION,
    ALGORITHM_DURATION,
    SLI_DURATION,
    POD_ATTEMPTS,
    SCHEDULED_AFTER_FLUSH,
    BATCH_ATTEMPTS,
    BATCH_FLUSHED,
    BATCH_RESCORES,
    HINT_LOOKUP_DURATION,
    BATCH_STORE_DURATION,
    BATCH_RESCORE_DURATION,
    EXTENSION_POINT_DURATION,
    PLUGIN_DURATION,
    PLUGIN_EVALUATIONS,
    PERMIT_WAIT,
    PREEMPTION_ATTEMPTS,
    PREEMPTION_VICTIMS,
    PREEMPTION_EVALUATION,
    PREEMPTION_EXECUTION,
    BUDGET_VIOLATIONS,
    POD_GROUP_ATTEMPTS,
    POD_GROUP_ATTEMPT_DURATION,
    POD_GROUP_ALGORITHM_DURATION,
    GENERATED_PLACEMENTS,
    PLACEMENT_EVALUATIONS,
    PLACEMENT_EVALUATION_DURATION,
    WORKLOAD_PREEMPTIONS,
    WORKLOAD_VICTIMS,
    WORKLOAD_DISRUPTIONS,
    PREEMPTION_DURATION,
    PREEMPTION_EXECUTIONS,
    CACHE_SIZE,
    GOROUTINES,
    VOLUME_ERRORS,
    API_CALLS,
    API_CALL_DURATION,
    PENDING_API_CALLS,
    PENDING_PODS,
    INCOMING_PODS,
    INCOMING_ENTITIES,
    QUEUED_ENTITIES,
    UNSCHEDULABLE_PODS,
    IN_FLIGHT_EVENTS,
    EVENT_DURATION,
    HINT_DURATION,
    FEATURE_ENABLED,
    POD_REQUEST,
    POD_LIMIT,
)
OWN: Final = (
    REJECTIONS,
    SCORE,
    MARGIN,
    CACHED_EVALUATIONS,
    QUEUE_WAIT,
    REQUEUED,
    BUILD_INFO,
    POD_CPU_OVERHEAD,
    POD_MEMORY_OVERHEAD,
)


def table() -> str:
    """Return the metrics as two Markdown tables."""
    head = "| metric | type | labels | meaning |\n|---|---|---|---|\n"
    return (
        "Metrics of kube-scheduler:\n\n"
        + head
        + "".join(map(_line, sorted(UPSTREAM, key=lambda metric: metric.name)))
        + "\nMetrics that kube-scheduler does not have:\n\n"
        + head
        + "".join(map(_line, sorted(OWN, key=lambda metric: metric.name)))
    )


def _line(metric: Metric) -> str:
    labels = ", ".join(metric.labels)
    kind = metric.kind if not metric.bounds else f"histogram, {metric.bounds[0]:g} to {metric.bounds[-1]:g}"
    stability = f" {metric.stability}." if metric.stability else ""
    return f"| `{metric.name}` | {kind} | {labels} | {metric.help}{stability} |\n"


if __name__ == "__main__":
    print(table(), end="")
