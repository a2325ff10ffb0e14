"""Rules by which pods allow or prevent the removal of their node.

The rules are checked in order, and the first rule that decides about a pod ends the check of that pod. The first pod
that blocks ends the check of the node.

Source: sigs.k8s.io/cluster-autoscaler, pkg/simulator/drain.go and pkg/simulator/drainability/rules. Its rule for the
replicas of a controller is only checked with `replicas`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.pools.autoscaler.pods import is_daemon, is_mirror, is_terminal, terminates_for_long
from kschedd.store.eviction import covers

_SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_SAFE_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_REPLICATING: Final = frozenset(("ReplicationController", "Job", "ReplicaSet", "StatefulSet"))


class BlockingReason(Enum):
    CONTROLLER_NOT_FOUND = "ControllerNotFound"
    MIN_REPLICAS_REACHED = "MinReplicasReached"
    NOT_REPLICATED = "NotReplicated"
    LOCAL_STORAGE_REQUESTED = "LocalStorageRequested"
    NOT_SAFE_TO_EVICT = "NotSafeToEvictAnnotation"
    UNMOVABLE_SYSTEM_POD = "UnmovableKubeSystemPod"
    NOT_ENOUGH_PDB = "NotEnoughPdb"


class DrainOutcome(Enum):
    MOVE = "move"
    IGNORE = "ignore"
    WAIT = "wait for completion"


@attrs.frozen
class DrainOptions:
    """Options with upstream's defaults. `system_timeout_s`: how long a pod in kube-system blocks after its creation."""

    skip_system_pods: bool = True
    skip_local_storage: bool = True
    skip_custom_controllers: bool = True
    min_replicas: int = 0
    system_timeout_s: float = 3600.0


@attrs.define(eq=False)
class RemainingBudgets:
    """PodDisruptionBudgets with the number of disruptions that each still allows."""

    budgets: Sequence[Object]
    _removed: Counter[str] = attrs.field(factory=Counter, init=False)

    def of(self, pod: Pod) -> list[Object]:
        return [budget for budget in self.budgets if budget.namespace == pod.namespace and covers(budget, pod)]

    def allowed(self, budget: Object) -> int:
        return int(budget.status.get("disruptionsAllowed") or 0) - self._removed[budget.key]

    def allow_together(self, pods: Iterable[Pod]) -> bool:
        """Return whether all these pods may be evicted at the same time."""
        counts = Counter(budget.key for pod in pods for budget in self.of(pod))
        return all(self.allowed(budget) >= counts[budget.key] for budget in self.budgets if counts[budget.key])

    def remove(self, pods: Iterable[Pod]) -> None:
        """Use the budgets for the eviction of these pods."""
        self._removed.update(budget.key for pod in pods for budget in self.of(pod))

    def copy(self) -> "RemainingBudgets":
        made = RemainingBudgets(self.budgets)
        made._removed.update(self._removed)
        return made


@attrs.frozen(eq=False)
class BlockingPod:
    pod: Pod
    reason: BlockingReason


@attrs.frozen(eq=False)
class DrainedPods:
    """The pods of a node by what a drain does with them, up to the first pod that blocks."""

    move: Sequence[Pod]
    daemons: Sequence[Pod]
    waiting: Sequence[Pod]
    blocking: BlockingPod | None


@attrs.frozen(eq=False)
class DrainRules:
    """The drain rules, evaluated at a point in time.

    `replicas` maps namespace, kind and name of each controller to its desired number of pods; None: not considered.
    """

    options: DrainOptions
    budgets: RemainingBudgets
    now_s: float
    replicas: Mapping[tuple[str, str, str], int | None] | None = None

    def drained(self, pods: Iterable[Pod]) -> DrainedPods:
        move: list[Pod] = []
        daemons: list[Pod] = []
        waiting: list[Pod] = []
        for pod in pods:
            decided = self.judge(pod)
            if isinstance(decided, BlockingReason):
                return DrainedPods(move, daemons, waiting, BlockingPod(pod, decided))
            if decided is DrainOutcome.WAIT:
                waiting.append(pod)
            elif decided is DrainOutcome.MOVE:
                (daemons if is_daemon(pod) else move).append(pod)
        return DrainedPods(move, daemons, waiting, None)

    def judge(self, pod: Pod) -> DrainOutcome | BlockingReason:
        """Return what a drain does with the pod, or why the pod prevents it."""
        if is_mirror(pod) or terminates_for_long(pod, self.now_s):
            return DrainOutcome.IGNORE
        if self.options.skip_custom_controllers and (why := self._too_few_replicas(pod)):
            return why
        evict = pod.annotations.get(_SAFE_TO_EVICT)
        if is_daemon(pod) or evict == "true" or is_terminal(pod):
            return DrainOutcome.MOVE
        if evict == "on-completion":
            return DrainOutcome.WAIT
        return self._why_blocked(pod) or DrainOutcome.MOVE

    def _too_few_replicas(self, pod: Pod) -> BlockingReason | None:
        owner = pod.owner
        if self.replicas is None or owner is None or owner.kind not in {*_REPLICATING, "DaemonSet"}:
            return None
        key = pod.namespace, owner.kind, owner.name
        if key not in self.replicas:
            return BlockingReason.CONTROLLER_NOT_FOUND
        wanted = self.replicas[key]
        counted = owner.kind in ("ReplicationController", "ReplicaSet")
        if counted and wanted is not None and wanted < self.options.min_replicas:
            return BlockingReason.MIN_REPLICAS_REACHED
        return None

    def _why_blocked(self, pod: Pod) -> BlockingReason | None:
        options, owner = self.options, pod.owner
        if owner is None or (options.skip_custom_controllers and owner.kind not in _REPLICATING):
            return BlockingReason.NOT_REPLICATED
        budgets = self.budgets.of(pod)
        if options.skip_system_pods and pod.namespace == "kube-system" and not budgets:
            created = pod.metadata.get("creationTimestamp")
            waited = created is not None and seconds(created) + options.system_timeout_s < self.now_s
            return None if waited else BlockingReason.UNMOVABLE_SYSTEM_POD
        if pod.annotations.get(_SAFE_TO_EVICT) == "false":
            return BlockingReason.NOT_SAFE_TO_EVICT
        if options.skip_local_storage and _has_local_storage(pod):
            return BlockingReason.LOCAL_STORAGE_REQUESTED
        if any(self.budgets.allowed(budget) < 1 for budget in budgets):
            return BlockingReason.NOT_ENOUGH_PDB
        return None


def _has_local_storage(pod: Pod) -> bool:
    safe = pod.annotations.get(_SAFE_VOLUMES, "").split(",")
    for volume in pod.spec.get("volumes") or ():
        empty = volume.get("emptyDir")
        local = volume.get("hostPath") is not None or (empty is not None and empty.get("medium") != "Memory")
        if local and volume.get("name") not in safe:
            return True
    return False
