"""Catalogue: every metric of /metrics and /metrics/resources, in one place, with what it means here.

`UPSTREAM` are kube-scheduler's, by its names, labels, buckets and stability; the help says what is meant here where
that differs. `OWN` are those that kube-scheduler has not. They are counted elsewhere, by those who own what is counted.
`python -m kschedd.metrics.catalogue` prints the table of docs/OPERATING.md.

Source: Kubernetes v1.34, scheduler/metrics/metrics.go, scheduler/framework/plugins/volumebinding/metrics/metrics.go,
scheduler/metrics/resources/resources.go, component-base/metrics/prometheus/feature/metrics.go; kube-state-metrics
(kube_pod_overhead_…).
Left out, since nothing here does what they count: rest_client_… and workqueue_… (the scheduler writes to the store of
its own process), leader_election_… (`kschedd status` says it), scheduler_volume_binder_cache_requests_total (which
upstream registers and never counts), go_….
"""

from typing import Final

from kschedd.metrics.instruments import Metric, exponential

_MILLISECONDS: Final = exponential(0.001, 2, 15)
_SHORT: Final = exponential(0.0001, 2, 12)
_PLUGIN: Final = exponential(0.00001, 1.5, 20)
_OF_POD: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")

# -- attempts ---------------------------------------------------------------------------------------------------

ATTEMPTS: Final = Metric(
    "scheduler_schedule_attempts_total",
    "counter",
    "Attempts, by what came of them.",
    ("result", "profile"),
    stability="STABLE",
)
ATTEMPT_DURATION: Final = Metric(
    "scheduler_scheduling_attempt_duration_seconds",
    "histogram",
    "How long an attempt took; with the binding where it found a node.",
    ("result", "profile"),
    _MILLISECONDS,
    "STABLE",
)
ALGORITHM_DURATION: Final = Metric(
    "scheduler_scheduling_algorithm_duration_seconds",
    "histogram",
    "How long it took to find a node.",
    (),
    _MILLISECONDS,
    "ALPHA",
)
SLI_DURATION: Final = Metric(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "histogram",
    "From a pod's entry into the active queue until it was bound, by the number of its attempts.",
    ("attempts",),
    exponential(0.01, 2, 20),
    "BETA",
)
POD_ATTEMPTS: Final = Metric(
    "scheduler_pod_scheduling_attempts",
    "histogram",
    "How many attempts a bound pod needed.",
    (),
    exponential(1, 2, 5),
    "STABLE",
)
EXTENSION_POINT_DURATION: Final = Metric(
    "scheduler_framework_extension_point_duration_seconds",
    "histogram",
    "How long all plugins of an extension point took.",
    ("extension_point", "status", "profile"),
    _SHORT,
    "STABLE",
)
PLUGIN_DURATION: Final = Metric(
    "scheduler_plugin_execution_duration_seconds",
    "histogram",
    "How long a call of a plugin took, in a tenth of the attempts. One of Filter or Score is about many nodes.",
    ("plugin", "extension_point", "status"),
    _PLUGIN,
    "ALPHA",
)
PLUGIN_EVALUATIONS: Final = Metric(
    "scheduler_plugin_evaluation_total",
    "counter",
    "How often a plugin was asked, at PreFilter, Filter, PreScore and Score; at Filter and Score once for each node. "
    "What the evaluation cache knew is not among them.",
    ("plugin", "extension_point", "profile"),
    stability="ALPHA",
)
PERMIT_WAIT: Final = Metric(
    "scheduler_permit_wait_duration_seconds",
    "histogram",
    "How long pods waited at Permit.",
    ("result",),
    _MILLISECONDS,
    "ALPHA",
)
PREEMPTION_ATTEMPTS: Final = Metric(
    "scheduler_preemption_attempts_total",
    "counter",
    "How often PostFilter looked for pods to evict.",
    stability="STABLE",
)
PREEMPTION_VICTIMS: Final = Metric(
    "scheduler_preemption_victims",
    "histogram",
    "How many pods a preemption evicts.",
    (),
    exponential(1, 2, 7),
    "STABLE",
)
PREEMPTION_DURATION: Final = Metric(
    "scheduler_preemption_goroutines_duration_seconds",
    "histogram",
    "How long the evictions of a preemption took, beside further attempts; with the gate SchedulerAsyncPreemption.",
    ("result",),
    exponential(0.01, 2, 20),
    "ALPHA",
)
PREEMPTION_EXECUTIONS: Final = Metric(
    "scheduler_preemption_goroutines_execution_total",
    "counter",
    "Preemptions whose evictions were carried out beside further attempts; with the gate SchedulerAsyncPreemption.",
    ("result",),
    stability="ALPHA",
)
CACHE_SIZE: Final = Metric(
    "scheduler_cache_size", "gauge", "What the scheduler cache holds.", ("type",), stability="ALPHA"
)
GOROUTINES: Final = Metric(
    "scheduler_goroutines", "gauge", "What is under way at once, by what it does.", ("operation",), stability="ALPHA"
)
VOLUME_ERRORS: Final = Metric(
    "scheduler_volume_scheduling_stage_error_total",
    "counter",
    "Errors of VolumeBinding, by the stage: predicate, assume, bind.",
    ("operation",),
    stability="ALPHA",
)

# -- writes -----------------------------------------------------------------------------------------------------

API_CALLS: Final = Metric(
    "scheduler_async_api_call_execution_total",
    "counter",
    "Writes of the scheduler that were done beside its attempts; with the gate SchedulerAsyncAPICalls.",
    ("call_type", "result"),
    stability="ALPHA",
)
API_CALL_DURATION: Final = Metric(
    "scheduler_async_api_call_execution_duration_seconds",
    "histogram",
    "How long the request took that such a write was part of; with the gate SchedulerAsyncAPICalls.",
    ("call_type", "result"),
    _MILLISECONDS,
    "ALPHA",
)
PENDING_API_CALLS: Final = Metric(
    "scheduler_pending_async_api_calls",
    "gauge",
    "Such writes that are not done yet; with the gate SchedulerAsyncAPICalls.",
    ("call_type",),
    stability="ALPHA",
)

# -- the queue --------------------------------------------------------------------------------------------------

PENDING_PODS: Final = Metric(
    "scheduler_pending_pods", "gauge", "Pods that wait, by their place in the queue.", ("queue",), stability="STABLE"
)
INCOMING_PODS: Final = Metric(
    "scheduler_queue_incoming_pods_total",
    "counter",
    "Pods that got to a place of the queue, by the event that moved them.",
    ("queue", "event"),
    stability="STABLE",
)
QUEUED_ENTITIES: Final = Metric(
    "scheduler_queued_entities",
    "gauge",
    "Entries of the queue, by their place: pods without a PodGroup, and PodGroups, each of which is one entry.",
    ("queue", "type"),
    stability="ALPHA",
)
UNSCHEDULABLE_PODS: Final = Metric(
    "scheduler_unschedulable_pods",
    "gauge",
    "Unschedulable pods by plugin: each counts for every plugin that rejected it.",
    ("plugin", "profile"),
    stability="ALPHA",
)
IN_FLIGHT_EVENTS: Final = Metric(
    "scheduler_inflight_events",
    "gauge",
    "Events that are held for pods whose attempt is under way.",
    ("event",),
    stability="ALPHA",
)
EVENT_DURATION: Final = Metric(
    "scheduler_event_handling_duration_seconds",
    "histogram",
    "How long it took the queue to handle a change of an object.",
    ("event",),
    _SHORT,
    "ALPHA",
)
HINT_DURATION: Final = Metric(
    "scheduler_queueing_hint_execution_duration_seconds",
    "histogram",
    "How long a call of a plugin's queueing hint took; one call does for all pods of which the plugin says the same.",
    ("plugin", "event", "hint"),
    _PLUGIN,
    "ALPHA",
)

# -- the process ------------------------------------------------------------------------------------------------

FEATURE_ENABLED: Final = Metric(
    "kubernetes_feature_enabled",
    "gauge",
    "Whether a feature gate is on, of those that are known here.",
    ("name", "stage"),
    stability="BETA",
)
BUILD_INFO: Final = Metric(
    "kschedd_build_info",
    "gauge",
    "Always 1: the version of kschedd, and the Kubernetes version whose decisions are made.",
    ("version", "kubernetes_version"),
)

# -- /metrics/resources -----------------------------------------------------------------------------------------

POD_REQUEST: Final = Metric(
    "kube_pod_resource_request", "gauge", "What pods that have not ended request.", _OF_POD, stability="STABLE"
)
POD_LIMIT: Final = Metric(
    "kube_pod_resource_limit", "gauge", "What pods that have not ended are limited to.", _OF_POD, stability="STABLE"
)

# -- what kube-scheduler has not --------------------------------------------------------------------------------

POD_CPU_OVERHEAD: Final = Metric(
    "kube_pod_overhead_cpu_cores", "gauge", "CPU for running the pod.", ("namespace", "pod")
)
POD_MEMORY_OVERHEAD: Final = Metric(
    "kube_pod_overhead_memory_bytes", "gauge", "Memory for running the pod.", ("namespace", "pod")
)
REJECTIONS: Final = Metric(
    "kschedd_filter_rejections_total",
    "counter",
    "Nodes that were rejected for pods which found none, by plugin and reason.",
    ("plugin", "reason"),
)
SCORE: Final = Metric(
    "kschedd_plugin_score",
    "histogram",
    "The weighted score that a plugin gave the chosen node, in one of 512 attempts.",
    ("plugin", "profile"),
    (0, 10, 25, 50, 75, 90, 100, 150, 200, 300, 500, 1000),
)
MARGIN: Final = Metric(
    "kschedd_score_margin",
    "histogram",
    "By how much the chosen node's total was above the best that was not chosen, in a tenth of the attempts.",
    ("profile",),
    (0, 1, 2, 5, 10, 20, 50, 100, 200, 500),
)
CACHED_EVALUATIONS: Final = Metric(
    "kschedd_evaluation_cache_nodes_total",
    "counter",
    "Verdicts on nodes that attempts took from the evaluation cache (hit), and that plugins were asked for (miss): the "
    "latter with those of other nodes that will be needed soon.",
    ("profile", "result"),
)
QUEUE_WAIT: Final = Metric(
    "kschedd_queue_wait_seconds",
    "histogram",
    "How long pods stayed at a place of the queue.",
    ("queue",),
    exponential(0.001, 4, 12),
)
REQUEUED: Final = Metric(
    "kschedd_requeued_pods_total",
    "counter",
    "Pods that an event woke, by the plugin whose hint decided, and whether the next attempt found a node.",
    ("plugin", "event", "result"),
)

UPSTREAM: Final = (
    ATTEMPTS,
    ATTEMPT_DURATION,
    ALGORITHM_DURATION,
    SLI_DURATION,
    POD_ATTEMPTS,
    EXTENSION_POINT_DURATION,
    PLUGIN_DURATION,
    PLUGIN_EVALUATIONS,
    PERMIT_WAIT,
    PREEMPTION_ATTEMPTS,
    PREEMPTION_VICTIMS,
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
    """The metrics as two tables of Markdown."""
    head = "| metric | type | labels | what it says |\n|---|---|---|---|\n"
    return (
        "kube-scheduler's:\n\n"
        + head
        + "".join(map(_line, sorted(UPSTREAM, key=lambda metric: metric.name)))
        + "\nWhat it has not:\n\n"
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
