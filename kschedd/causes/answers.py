"""The answer of a diagnosis: the cause of the trouble, its evidence, and remedies, each tried on a fork."""

from collections.abc import Sequence
from typing import Annotated

import attrs

Sentence = Annotated[str, "sentence"]
ShellCommand = Annotated[str, "command"]


@attrs.frozen
class ObjectNamed:
    """The kind, namespace and name of an object."""

    kind: str
    namespace: Annotated[str, "empty: the kind has no namespaces, or the object does not exist and is named anyway"]
    name: str


@attrs.frozen
class CauseAnswer:
    """One cause. `objects` and `fields` name what is wrong and the values that it was compared with."""

    code: Annotated[str, "of the codes in docs/CAUSES.md"]
    message: Annotated[str, "the cause in one sentence"]
    objects: Sequence[ObjectNamed]
    fields: Annotated[Sequence[str], "paths in the manifest of the workload, such as spec.nodeSelector"]
    evidence: Annotated[Sequence[Sentence], "counts and names that show it"]
    passing: Annotated[bool, "only time helps, or nothing has to be done"] = False


@attrs.frozen(kw_only=True)
class RemedyAnswer:
    """A change, and its effect: its commands were run on a fork for 300 s of virtual time."""

    rank: Annotated[int, "1 is the first to consider"]
    summary: str
    kind: Annotated[str, "what it changes, such as change-workload; docs/CAUSES.md lists the kinds"]
    target: Annotated[str, "the object that it changes, such as deployment/web"]
    commands: Annotated[Sequence[ShellCommand], "for a shell, in order"]
    manifest_diff: Annotated[str, "the same as a unified diff of the manifest; empty where an object is created"]
    verified: Annotated[bool, "all replicas were scheduled, stayed so, and nothing else was displaced"]
    scheduled: Annotated[str, "how many of the wanted replicas were scheduled then, such as 3 of 3"]
    displaced: Annotated[Sequence[str], "pods of other workloads that lost their node, or got none"]


@attrs.frozen
class BlockingNodes:
    """Nodes that the same plugins reject for the same reasons."""

    count: int
    plugin: str
    reason: str
    nodes: Annotated[Sequence[str], "the first by name, at most 5"]


@attrs.frozen(kw_only=True)
class DiagnosisAnswer:
    """The diagnosis of a workload, or of a pod that has no owner."""

    workload: ObjectNamed
    wanted: Annotated[int, "pods that the workload is to have"]
    scheduled: Annotated[int, "pods that have a node"]
    pending: Annotated[int, "pods that have none"]
    missing: Annotated[int, "pods that its controller has not created"]
    examined: Annotated[str, "namespace/name of the pod that was examined; empty: there is none"]
    cause: CauseAnswer
    also: Annotated[Sequence[CauseAnswer], "further causes: each is enough to keep the workload from its nodes"]
    confidence: Annotated[str, "certain (follows from the objects) or likely (the plainest of several readings)"]
    remedies: Annotated[Sequence[RemedyAnswer], "the first is the one to consider first; none: nothing was found"]
    tried: Annotated[Sequence[Sentence], "what was tried in vain, and why it failed"]
    blocking_nodes: Sequence[BlockingNodes]


@attrs.frozen
class PendingGroup:
    """Pending pods with one cause.

    `code` and `message` have the same meaning as in CauseAnswer. `workloads` are the owners of the pods, or the pods
    themselves if they have no owner. `confidence` has the same meaning as in DiagnosisAnswer.
    """

    code: str
    message: str
    count: Annotated[int, "pending pods of all workloads in it"]
    missing: Annotated[int, "pods that their controllers cannot create"]
    workloads: Sequence[ObjectNamed]
    confidence: str
    remedy: Annotated[
        RemedyAnswer | None, "a remedy for the first workload of the group; null: none was found or searched for"
    ] = None
