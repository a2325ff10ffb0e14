"""Answers of `scheduler.explain` and `scheduler.explain_group`: why a pod or a PodGroup has its nodes or none."""

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
      score, `score`.
    * `message` is the reason why the pod got no node; "" if it got one.
    * `nominated_node` is the node that preemption frees for the pod; "" if there is none.
    * `took_us` is the duration in microseconds; 0 in virtual time.
    """

    time: str
    pod: str
    node: Annotated[str | None, "null: it got none"]
    attempt: int
    feasible: int
    visited: Annotated[int, "how many nodes were looked at; 0: the pod was rejected before any was"]
    ties: int
    score: Annotated[int | None, "null: there was one node to choose from"]
    message: str
    nominated_node: str
    took_us: int


@attrs.frozen
class Rejection:
    """The rejection of a pod, or of a node for the pod, by a plugin."""

    plugin: str
    code: str
    reasons: list[str]


@attrs.frozen
class VerdictAnswer:
    node: str
    plugin: Annotated[str | None, "null: the pod fits"]
    code: str
    reasons: list[str]
    also: Annotated[list[Rejection], "those of the other plugins that reject the node"]
    nominated: Annotated[list[PodKey], "pods nominated to the node, which were counted as if they ran there"]


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
    plugins: Annotated[list[PluginName], "plugins for which the pod waits at Permit; none: it is in PreBind or Bind"]


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
    node: Annotated[str, "that of the chosen candidate"]
    victims: Annotated[list[PodKey], "the pods that would make way"]
    candidates: Annotated[list[PreemptionCandidate], "the best first, at most 20"]
    candidate_count: Annotated[int, "how many there were"]
    decided_by: Annotated[str, "the criterion after which one candidate was left; empty if there was only one"]
    left: Annotated[list[CandidatesLeft], "how many were left after each criterion, in upstream's order"]
    tied: Annotated[list[NodeName], "candidates as good as the chosen one by all of them: the first by name is taken"]


@attrs.frozen
class SearchAnswer:
    nodes: int
    feasible: int
    enough: Annotated[int, "the number of feasible nodes at which a search ends"]


@attrs.frozen
class Dumped:
    """The message that the cluster's own scheduler wrote for a pod that is pending in a dump."""

    reason: str
    message: str
    since: Annotated[str | None, "when the condition became False; null: not known"]
    dumped: Annotated[str | None, "the latest time in the dump; null: not known"]
    same: Annotated[bool, "the message agrees about the nodes; the part about preemption is not compared"]
    why: Annotated[list[Sentence], "why it may say something else"]


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
    node: Annotated[str | None, "the node it has, or null"]
    node_exists: Annotated[bool | None, "false: the node of spec.nodeName does not exist; null: spec.nodeName is empty"]
    as_if_absent: Annotated[bool, "the pod is on that node or nominated to it; it was evaluated as if it were not"]
    reserved: Annotated[Reserved | None, "it has been given a node that it is not bound to yet"]
    profile: Annotated[str, "the schedulerName"]
    gated_by: Annotated[Rejection | None, "the PreEnqueue plugin that holds it back"]
    pre_filter: Annotated[Rejection | None, "the pod was rejected before any node was looked at"]
    verdicts: Annotated[list[VerdictAnswer], "one a node, in visiting order: the first rejection"]
    filters: Annotated[list[PluginName], "the plugins that filter, in the order of their calls"]
    skipped: Annotated[Skipped, "plugins that had nothing to say to this pod"]
    scores: Annotated[Mapping[PluginName, Mapping[NodeName, Score]], "extenders stand among plugins, by their URL"]
    weights: Mapping[PluginName, Weight]
    totals: Mapping[NodeName, Total]
    chosen: Annotated[str | None, "the node it would get, null if several are as good"]
    ties: Annotated[list[NodeName], "the best nodes"]
    nominated: Annotated[str | None, "the node it has been promised by preemption, tried before all others"]
    message: Annotated[str, "as in the PodScheduled condition; empty if it fits somewhere"]
    preemption: Annotated[PreemptionAnswer | None, "pods of lower priority would make way"]
    search: SearchAnswer
    took_us: list[Took]
    notes: Annotated[list[Sentence], "how to read all this"]
    dumped: Dumped | None = None
    attempt: PastAttempt | None = None
    decision: DecisionAnswer | None = None
    pod_group: Annotated[str | None, "the PodGroup whose pods are scheduled together with it"] = None


@attrs.frozen
class MemberAnswer:
    pod: str
    state: Annotated[str, "scheduled, fits, preempts, unschedulable, gated (it is not tried) or error (nor after one)"]
    node: Annotated[str | None, "where it is, or would be if the group were placed"]
    plugin: str
    message: str


@attrs.frozen(kw_only=True)
class GroupExplanation:
    """The outcome of a PodGroup's next scheduling cycle for each pod."""

    pod_group: str
    exists: bool
    policy: Annotated[str, "empty without a PodGroup"]
    min_count: Annotated[int, "0 without a PodGroup"]
    pods: int
    scheduled: Annotated[int, "how many of them have a node"]
    fits: Annotated[bool, "the outcome of its next cycle"]
    message: str
    members: Annotated[Sequence[MemberAnswer], "in the order of the cycle"]
