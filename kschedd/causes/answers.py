"""The answer of a diagnosis: the cause, its evidence, and remedies, each tried on a fork."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import attrs

Sentence = Annotated[str, "sentence"]
ShellCommand = Annotated[str, "command"]


@attrs.frozen
class ObjectNamed:
    """The kind, namespace and name of an object."""

    kind: str
    namespace: Annotated[str, "empty if the kind has no namespaces, or if the object does not exist"]
    name: str


@attrs.frozen
class CauseAnswer:
    """One cause.

    `objects` and `fields` contain the faulty objects and fields, and the values to which they were compared.
    """

    code: Annotated[str, "a code from docs/CAUSES.md"]
    message: Annotated[str, "the cause in one sentence"]
    objects: Sequence[ObjectNamed]
    fields: Annotated[Sequence[str], "paths in the manifest of the workload, such as spec.nodeSelector"]
    evidence: Annotated[Sequence[Sentence], "sentences with counts and names that confirm the cause"]
    passing: Annotated[bool, "true if the cause ends by itself, or nothing has to be done"] = False


@attrs.frozen(kw_only=True)
class RemedyAnswer:
    """A change, and its effect: its commands were run on a fork for 300 s of virtual time."""

    rank: Annotated[int, "1 for the remedy to consider first"]
    summary: str
    kind: Annotated[str, "kind of the change, such as change-workload; docs/CAUSES.md lists the kinds"]
    target: Annotated[str, "the changed object, such as deployment/web"]
    commands: Annotated[Sequence[ShellCommand], "shell commands, in the order of their execution"]
    manifest_diff: Annotated[str, "the change as a unified diff of the manifest; empty if an object is created"]
    changes: Annotated[Sequence[Mapping[str, Any]], "the same change of the workload as operations of a JSON patch"]
    verified: Annotated[
        bool, "true if all replicas were scheduled and kept their nodes, and no other pods were displaced"
    ]
    scheduled: Annotated[str, "number of scheduled and of wanted replicas after the change, such as 3 of 3"]
    displaced: Annotated[
        Sequence[str], "pods of other workloads that lost their node, or got none because of the change"
    ]


@attrs.frozen
class BlockingNodes:
    """Nodes that the same plugins reject for the same reasons."""

    count: int
    plugin: str
    reason: str
    nodes: Annotated[Sequence[str], "the first nodes by name, at most 5"]


@attrs.frozen(kw_only=True)
class DiagnosisAnswer:
    """The diagnosis of a workload, or of a pod that has no owner."""

    workload: ObjectNamed
    wanted: Annotated[int, "number of pods that the workload should have"]
    scheduled: Annotated[int, "number of pods with a node"]
    pending: Annotated[int, "number of pods without a node"]
    missing: Annotated[int, "number of pods that the workload's controller has not created"]
    examined: Annotated[str, "namespace/name of the examined pod; empty if no pod exists"]
    cause: CauseAnswer
    also: Annotated[
        Sequence[CauseAnswer], "further causes, each of which alone prevents the scheduling of the workload"
    ]
    confidence: Annotated[str, "certain (follows from the objects) or likely (the simplest of several explanations)"]
    remedies: Annotated[Sequence[RemedyAnswer], "the remedies, by rank; empty if none was found"]
    tried: Annotated[Sequence[Sentence], "unsuccessful changes, and the reason why each failed"]
    blocking_nodes: Sequence[BlockingNodes]


@attrs.frozen
class PendingGroup:
    """Pending pods with one cause.

    `code` and `message` are as in CauseAnswer. `workloads` are the owners of the pods, or the pods
    themselves if they have no owner. `confidence` is as in DiagnosisAnswer.
    """

    code: str
    message: str
    count: Annotated[int, "number of pending pods of all workloads in the group"]
    missing: Annotated[int, "number of pods that their controllers cannot create"]
    workloads: Sequence[ObjectNamed]
    confidence: str
    remedy: Annotated[
        RemedyAnswer | None, "a remedy for the first workload of the group; null if none was found or searched for"
    ] = None
