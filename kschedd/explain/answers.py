"""Answers of `scheduler.explain` and `scheduler.explain_group`."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import attrs

NodeName = Annotated[str, "node"]
PluginName = Annotated[str, "plugin"]
PodKey = Annotated[str, "pod"]
Sentence = Annotated[str, "sentence"]
Weight = Annotated[int, "weight"]
Total = Annotated[int, "total"]


@attrs.frozen
class DecisionAnswer:
    """A scheduling attempt.

    * `time` is the time of the attempt, in UTC, such as 2025-01-01T00:00:00Z. `pod`: namespace/name.
    * `attempt` numbers the pod's attempts from 1.
    * `feasible` contains the nodes that passed all filters. `ties` contains the feasible nodes with the highest total
      score (`score`).
    * `message` is the reason why the pod got no node, or "".
    * `nominated_node` is the node that preemption frees for the pod, or "".
    * `took_us` is the duration in microseconds; 0 in virtual time.
    """

    time: str
    pod: str
    node: Annotated[str | None, "the pod's node; null if the pod got none"]
    attempt: int
    feasible: int
    visited: Annotated[int, "number of evaluated nodes; 0 if the pod was rejected before any node was evaluated"]
    ties: int
    score: Annotated[int | None, "null if the nodes were not scored, for example because only one was feasible"]
    message: str
    nominated_node: str
    took_us: int


@attrs.frozen
class Rejection:
    """A plugin's rejection of a pod, or of a node."""

    plugin: str
    code: str
    reasons: list[str]


@attrs.frozen
class VerdictAnswer:
    node: str
    plugin: Annotated[str | None, "the first plugin that rejects the node; null if the pod fits"]
    code: str
    reasons: list[str]
    also: Annotated[list[Rejection], "the rejections of the node by other plugins"]
    nominated: Annotated[list[PodKey], "pods nominated to the node, which were counted as if they ran on it"]


@attrs.frozen
class ReasonAnswer:
    reason: str
    count: Annotated[int, "number of nodes"]
    nodes: Annotated[list[NodeName], "the first nodes, at most 5"]


@attrs.frozen
class FunnelStepAnswer:
    """A plugin that rejects nodes. A node counts for the first plugin that rejects it."""

    plugin: str
    rejected: Annotated[int, "number of nodes"]
    left: Annotated[int, "number of nodes that this plugin and those before it leave"]
    reasons: Annotated[list[ReasonAnswer], "the most frequent reasons, at most 30"]


@attrs.frozen
class Score:
    raw: int
    normalized: int
    weighted: int


@attrs.frozen
class Skipped:
    filter: list[PluginName]
    score: list[PluginName]


@attrs.frozen
class Reserved:
    node: str
    plugins: Annotated[
        list[PluginName], "plugins for which the pod waits at Permit; empty if the pod is in PreBind or Bind"
    ]


@attrs.frozen
class PreemptionCandidate:
    node: str
    victims: list[PodKey]
    violations: int
    highest: int
    sum: int
    victim_count: int


@attrs.frozen
class CandidatesLeft:
    criterion: str
    candidates: int


@attrs.frozen
class PreemptionAnswer:
    node: Annotated[str, "the node of the chosen candidate"]
    victims: Annotated[list[PodKey], "the pods that preemption would evict"]
    candidates: Annotated[list[PreemptionCandidate], "the best candidates, at most 20, the best one first"]
    candidate_count: Annotated[int, "number of all candidates"]
    decided_by: Annotated[
        str, "the criterion after which one candidate was left; empty if there was only one candidate"
    ]
    left: Annotated[list[CandidatesLeft], "number of candidates left after each criterion, in upstream's order"]
    tied: Annotated[
        list[NodeName], "other candidates that equal the chosen one by all criteria; the first by name is chosen"
    ]


@attrs.frozen
class SearchAnswer:
    nodes: int
    feasible: int
    enough: Annotated[int, "the number of feasible nodes after which a search ends"]


@attrs.frozen
class Dumped:
    """The message that the cluster's own scheduler wrote for a pod that is pending in a dump."""

    reason: str
    message: str
    since: Annotated[str | None, "time at which the condition PodScheduled became False; null if unknown"]
    dumped: Annotated[str | None, "the latest time in the dump; null if unknown"]
    same: Annotated[bool, "true if both messages agree about the nodes; the parts about preemption are not compared"]
    why: Annotated[list[Sentence], "why the dumped message may differ"]


@attrs.frozen
class PastAttempt:
    number: int
    version: int
    kept: bool


@attrs.frozen
class Took:
    point: str
    plugin: str
    us: int


@attrs.define(kw_only=True)
class Explanation:
    """The explanation why a pod has its node, or has none."""

    pod: str
    node: Annotated[str | None, "the pod's node; null if the pod has none"]
    node_exists: Annotated[
        bool | None, "false if the node in spec.nodeName does not exist; null if spec.nodeName is empty"
    ]
    as_if_absent: Annotated[
        bool, "true if the pod already has a node, or one is reserved; the pod was evaluated as if it had none"
    ]
    reserved: Annotated[Reserved | None, "the node that was chosen for the pod, if the pod is not bound yet"]
    profile: Annotated[str, "the schedulerName of the pod"]
    gated_by: Annotated[Rejection | None, "the rejection by a PreEnqueue plugin, because of which the pod is not tried"]
    pre_filter: Annotated[Rejection | None, "the rejection of the pod before any node was evaluated"]
    verdicts: Annotated[list[VerdictAnswer], "one verdict per node, in visiting order, with the first rejection"]
    filters: Annotated[list[PluginName], "the filter plugins, in calling order"]
    skipped: Annotated[Skipped, "plugins that do not concern this pod: their PreFilter or PreScore returned Skip"]
    scores: Annotated[
        Mapping[PluginName, Mapping[NodeName, Score]], "by plugin and node; extenders are named by their URL"
    ]
    weights: Mapping[PluginName, Weight]
    totals: Mapping[NodeName, Total]
    chosen: Annotated[
        str | None, "the node that the pod would get; null if several nodes are equally good, or none is feasible"
    ]
    ties: Annotated[list[NodeName], "the best nodes, from which one is chosen"]
    nominated: Annotated[str | None, "the node that preemption frees for the pod, which is tried before all others"]
    message: Annotated[str, "the message of the condition PodScheduled; empty if the pod fits on a node"]
    preemption: Annotated[PreemptionAnswer | None, "the preemption of pods with lower priority; null if there is none"]
    search: SearchAnswer
    took_us: list[Took]
    notes: Annotated[list[Sentence], "remarks on the explanation"]
    dumped: Dumped | None = None
    attempt: PastAttempt | None = None
    decision: DecisionAnswer | None = None
    pod_group: Annotated[str | None, "the PodGroup whose pods are scheduled together with the pod"] = None
    funnel: Annotated[
        list[FunnelStepAnswer] | None, "the plugins that reject nodes, in calling order; null without `summary`"
    ] = None


@attrs.frozen
class MemberAnswer:
    pod: str
    state: Annotated[
        str,
        "scheduled, fits, preempts, unschedulable, gated (not tried) or error (also if not tried because of an error)",
    ]
    node: Annotated[str | None, "the pod's node, or the node that the pod would get if the group were placed"]
    plugin: str
    message: str


@attrs.frozen(kw_only=True)
class GroupExplanation:
    """The outcome of a PodGroup's next scheduling cycle for each pod."""

    pod_group: str
    exists: bool
    policy: Annotated[str, "scheduling policy; empty if the PodGroup does not exist"]
    min_count: Annotated[int, "minimum number of pods; 0 if the PodGroup does not exist"]
    pods: int
    scheduled: Annotated[int, "number of pods with a node"]
    fits: Annotated[bool, "true if the next cycle would schedule the group"]
    message: str
    members: Annotated[Sequence[MemberAnswer], "the pods, in the order of the cycle"]
