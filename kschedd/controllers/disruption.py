"""The disruption controller: maintains the status of PodDisruptionBudgets for evictions and preemption.

A budget's pods are the pods in its namespace that match its selector. A pod is healthy if it is Ready and is neither
being deleted nor listed in `status.disruptedPods`. An eviction adds the pod to this field; the controller removes it
again if the pod is not deleted within two minutes. The required number of healthy pods is an integer, or a percentage
of the scale of the pods' controllers. DisruptionTarget conditions of pods that are not deleted within two minutes are
set to False.

The disruption controller stores the counts of each budget's pods. Every pod event updates the counts, so the cost of a
reconcile depends only on the budget's number of controllers and disrupted pods. The controller also stores the
deadlines for both two-minute limits. Source: Kubernetes v1.34, pkg/controller/disruption/disruption.go.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.conditions import condition, with_condition
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds, stamp
from kschedd.controllers.disruption_counts import BudgetPods, by_scale, counted, expected_counts, unmanaged_text
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.scale import ScaleError
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.eviction import BUDGET, DISRUPTION_TARGET, with_disruption_allowed
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Write, status_of

DELETION_TIMEOUT_S: Final = 120.0
STALE_CONDITION_S: Final = 120.0
COMPONENT: Final = "controllermanager"
Key = tuple[str, str]  # namespace, name


class Disruption:
    name: Final = "disruption"
    kinds: Final = frozenset((BUDGET, "Pod"))

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, BudgetPods]] = {}  # by namespace and name
        self._recheck: Timers[Key] = Timers()  # deadlines of budgets with disrupted pods
        self._stale: Timers[Key] = Timers()  # deadlines of pods with a DisruptionTarget condition
        self._reported: dict[Key, str] = {}  # by budget: message of the latest Event
        # By namespace: sets of budgets that were already reported as covering the same pod.
        self._shared: dict[str, dict[frozenset[str], None]] = {}
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        times = [at for at in (self._recheck.next, self._stale.next) if at is not None]
        return min(times, default=None)

    def concerns(self, event: WatchEvent) -> bool:
        pod = event.new
        if not isinstance(pod, Pod) or pod.namespace in self._budgets:
            return True
        return condition(pod.status, DISRUPTION_TARGET) is not None

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        changed: dict[Key, None] = {}
        writes: list[Write] = []
        for event in events:
            new = event.new
            if isinstance(new, Pod):
                writes += self._observe_pod(event, new, changed, view, now)
            else:
                writes += self._observe_budget(event, new, view, now)
                changed[new.namespace, new.name] = None
        changed.update(dict.fromkeys(self._recheck.due(now)))
        writes += self.faults.each("Pod", self._stale.due(now), partial(self._clean_stale, view), now)
        return writes + self.faults.each(BUDGET, changed, partial(self._sync, view), now)

    # the index

    def _observe_budget(self, event: WatchEvent, budget: Object, view: View, now: float) -> list[Write]:
        space = self._budgets.setdefault(budget.namespace, {})
        self._shared.pop(budget.namespace, None)
        if event.type == DELETED:
            space.pop(budget.name, None)
            self._recheck.clear((budget.namespace, budget.name))
            self._reported.pop((budget.namespace, budget.name), None)
            if not space:
                del self._budgets[budget.namespace]
            return []
        selector = budget.spec.get("selector")
        known = space.get(budget.name)
        if known is not None and known.spec_selector == selector:
            return []
        index = space[budget.name] = BudgetPods(selector)
        for pods in view.present("Pod", budget.namespace):
            for pod in pods:
                if isinstance(pod, Pod) and index.selector.matches(pod.labels):
                    index.put(pod.name, counted(pod))
        if len(space) < 2:
            return []
        shared = next((name for name in sorted(index.pods) if self._covering(budget.namespace, name)[1:]), None)
        found = None if shared is None else view.find("Pod", budget.namespace, shared)
        return self._shared_event(found, now) if isinstance(found, Pod) else []

    def _covering(self, namespace: str, pod_name: str) -> list[str]:
        """Return the names of the budgets that cover the pod."""
        return [name for name, index in self._budgets.get(namespace, {}).items() if pod_name in index.pods]

    def _observe_pod(
        self, event: WatchEvent, pod: Pod, changed: dict[Key, None], view: View, now: float
    ) -> list[Write]:
        gone = event.type == DELETED
        for each in pod.status.get("conditions") or ():
            if each.get("type") == DISRUPTION_TARGET:
                self._note_stale(pod, gone, now)
        space = self._budgets.get(pod.namespace)
        if space is None:
            return []
        # A new budget has already counted the pod's current state, which may be newer than this event.
        latest = view.find("Pod", pod.namespace, pod.name)
        there = latest if isinstance(latest, Pod) else None
        for name, index in space.items():
            covers = there is not None and index.selector.matches(there.labels)
            if not covers and pod.name not in index.pods:
                continue
            if index.put(pod.name, counted(there) if covers and there is not None else None):
                changed[pod.namespace, name] = None
        return [] if there is None or len(space) < 2 else self._shared_event(there, now)

    def _shared_event(self, pod: Pod, now: float) -> list[Write]:
        """Return an Event about a pod that several budgets cover, unless it was already reported for these budgets."""
        covering = self._covering(pod.namespace, pod.name)
        shared = self._shared.setdefault(pod.namespace, {})
        if len(covering) < 2 or frozenset(covering) in shared:
            return []
        shared[frozenset(covering)] = None
        message = (
            f'Pod "{pod.namespace}"/"{pod.name}" matches multiple PodDisruptionBudgets.  '
            f'Chose "{min(covering)}" arbitrarily.'
        )
        return [object_event(pod, "MultiplePodDisruptionBudgets", message, COMPONENT, now, warning=True)]

    # stale conditions

    def _note_stale(self, pod: Pod, gone: bool, now: float) -> None:
        since = None if gone else stale_condition_since(pod)
        if since is None:
            self._stale.clear((pod.namespace, pod.name))
        else:
            self._stale.set((pod.namespace, pod.name), max(now, since + STALE_CONDITION_S))

    def _clean_stale(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        since = stale_condition_since(pod) if isinstance(pod, Pod) else None
        if pod is None or since is None:
            return []
        if since + STALE_CONDITION_S > now:
            self._stale.set((namespace, name), since + STALE_CONDITION_S)
            return []
        cleared = {"type": DISRUPTION_TARGET, "status": "False"}
        conditions = with_condition(pod.status.get("conditions"), cleared, stamp(now))
        return [status_of(pod, {"conditions": conditions})]

    # a budget's status

    def _sync(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        budget = view.find(BUDGET, namespace, name)
        index = self._budgets.get(namespace, {}).get(name)
        if budget is None or index is None:
            return []
        if index.fault is not None:
            event = self._event(budget, "NoPods", f"Failed to get pods: {index.fault}", now, warning=True)
            return [*event, *self._fail_safe(budget, index.fault, now)]
        writes: list[Write] = []
        if not index.pods:
            writes += self._event(budget, "NoPods", "No matching pods found", now)
        try:
            expected, desired = expected_counts(budget, index, view)
        except ScaleError as failure:
            why = str(failure)
            message = f"Failed to calculate the number of expected pods: {why}"
            writes += self._event(budget, "CalculateExpectedPodCountFailed", message, now, warning=True)
            return writes + self._fail_safe(budget, why, now)
        if "" in index.by_controller and by_scale(budget):
            writes += self._event(budget, "UnmanagedPods", unmanaged_text(budget), now, warning=True)
        elif index.pods:
            self._reported.pop((namespace, name), None)
        return writes + self._update(budget, index, expected, desired, now)

    def _update(self, budget: Object, index: BudgetPods, expected: int, desired: int, now: float) -> list[Write]:
        before: Mapping[str, str] = budget.status.get("disruptedPods") or {}
        disrupted: dict[str, str] = {}
        healthy = index.healthy
        for name, at in before.items():
            pod = index.pods.get(name)
            if pod is None or pod.deleting or seconds(at) + DELETION_TIMEOUT_S <= now:
                continue
            disrupted[name] = at
            healthy -= pod.healthy
        key = (budget.namespace, budget.name)
        if disrupted:
            self._recheck.set(key, min(map(seconds, disrupted.values())) + DELETION_TIMEOUT_S)
        else:
            self._recheck.clear(key)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        generation = budget.metadata.get("generation") or 0
        status: dict[str, Any] = {
            "observedGeneration": generation,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": with_disruption_allowed(budget.status, allowed, generation, stamp(now)),
        }
        same = all(budget.status.get(field) == value for field, value in status.items() if field != "conditions")
        if same and disrupted == before and _condition_is_current(budget, allowed):
            return []
        if disrupted != before:
            status["disruptedPods"] = {**dict.fromkeys(before), **disrupted} if disrupted else None
        return [status_of(budget, status)]

    def _fail_safe(self, budget: Object, why: str, now: float) -> list[Write]:
        """Allow no disruption as long as the expected number of pods is unknown."""
        observed = budget.status.get("observedGeneration") or 0
        conditions = with_disruption_allowed(budget.status, 0, observed, stamp(now), why)
        if not budget.status.get("disruptionsAllowed") and budget.status.get("conditions") == conditions:
            return []
        return [status_of(budget, {"disruptionsAllowed": 0, "conditions": conditions})]

    def _event(self, budget: Object, reason: str, message: str, now: float, *, warning: bool = False) -> list[Write]:
        """Return an Event about the budget, unless it equals the previous Event."""
        key = (budget.namespace, budget.name)
        if self._reported.get(key) == message:
            return []
        self._reported[key] = message
        return [object_event(budget, reason, message, COMPONENT, now, warning=warning)]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes; the conflicting change triggers the next reconcile."""
        return []


def stale_condition_since(pod: Pod) -> float | None:
    """Return when the DisruptionTarget condition was set if the pod was not deleted since then; otherwise None.

    A condition set by a kubelet never becomes stale, because ending a pod may take any time.
    """
    found = condition(pod.status, DISRUPTION_TARGET)
    if found is None or found.get("status") != "True" or found.get("reason") == "TerminationByKubelet":
        return None
    if pod.deletion_timestamp or pod.finished:
        return None
    since = found.get("lastTransitionTime")
    return seconds(since) if since else 0.0


def _condition_is_current(budget: Object, allowed: int) -> bool:
    found = condition(budget.status, "DisruptionAllowed")
    if found is None or (found.get("observedGeneration") or 0) != (budget.metadata.get("generation") or 0):
        return False
    reason, status = ("SufficientPods", "True") if allowed > 0 else ("InsufficientPods", "False")
    return found.get("status") == status and found.get("reason") == reason
