"""The HorizontalPodAutoscaler controller: every 15 s it sets the replicas of workloads by the usage of their pods.

The controller scales Deployments, ReplicaSets, ReplicationControllers and StatefulSets by resource metrics
(`proposals`), within the autoscaler's limits (`limits`). Other metrics need an API that does not exist here, and are
reported as missing.

Owns the timers and the history of each autoscaler. Source: Kubernetes v1.37, controller/podautoscaler/horizontal.go.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.quantity import format_milli, format_value
from kschedd.api.text.times import stamp
from kschedd.controllers.autoscaling.limits import History
from kschedd.controllers.autoscaling.proposals import MetricError, Proposal, propose
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Write, patch_of, status_of

Raw = Mapping[str, Any]
Key = tuple[str, str]  # namespace, name
_KIND: Final = "HorizontalPodAutoscaler"
_PERIOD_S: Final = 15.0
_SCALED: Final = frozenset(("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"))
_VERSION_1: Final = "autoscaling/v1"
_PERCENT: Final = "targetCPUUtilizationPercentage"
_DEFAULT_PERCENT: Final = 80


class Autoscalers:
    name: Final = "horizontal-pod-autoscalers"
    kinds: Final = frozenset((_KIND,))

    def __init__(self) -> None:
        self._due: Timers[Key] = Timers()
        self._histories: dict[Key, History] = {}
        self._events = EventRecorder("horizontal-pod-autoscaler")
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._due.next

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        changed: dict[Key, None] = {}
        for event in events:
            key = (event.new.namespace, event.new.name)
            if event.type == DELETED:
                self._due.clear(key)
                self._histories.pop(key, None)
            elif event.old is None or event.old.spec != event.new.spec:
                changed[key] = None
        changed.update(dict.fromkeys(self._due.due(now)))
        return self.faults.each(_KIND, changed, partial(self._look_at, view), now)

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        found = view.find(_KIND, namespace, name)
        if found is None:
            return []
        if found.raw.get("apiVersion") == _VERSION_1:
            return [_in_version_2(found)]  # the event of this write triggers the next examination
        self._due.set((namespace, name), now + _PERIOD_S)
        history = self._histories.setdefault((namespace, name), History())
        return _Sync(found, view, history, self._events, now).run()

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes; the autoscaler is examined again after 15 s."""
        return []


def _in_version_2(autoscaler: Object) -> Write:
    """Return the patch that stores an autoscaler in version 2, whose status has metrics and conditions."""
    percent = autoscaler.spec.get(_PERCENT) or _DEFAULT_PERCENT
    target = {"type": "Utilization", "averageUtilization": percent}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return patch_of(autoscaler, {"apiVersion": "autoscaling/v2", "spec": {_PERCENT: None, "metrics": metrics}})


class _Sync:
    """One examination of an autoscaler."""

    def __init__(self, autoscaler: Object, view: View, history: History, events: EventRecorder, now: float) -> None:
        self._autoscaler = autoscaler
        self._view = view
        self._history = history
        self._recorder = events
        self._now = now
        self._conditions: list[dict[str, Any]] = [dict(each) for each in autoscaler.status.get("conditions") or ()]
        self._writes: list[Write] = []
        self._metrics: list[dict[str, Any]] = []

    def run(self) -> list[Write]:
        spec = self._autoscaler.spec
        reference = spec.get("scaleTargetRef") or {}
        kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
        target = self._view.find(kind, self._autoscaler.namespace, name) if kind in _SCALED else None
        if target is None:
            why = f'{kind.lower()}s "{name}" not found' if kind in _SCALED else f"{kind} {name} has no scale here"
            self._warn("FailedGetScale", why)
            message = f"the HPA controller was unable to get the target's current scale: {why}"
            self._set("AbleToScale", False, "FailedGetScale", message)
            return self._done({})
        got = "the HPA controller was able to get the target's current scale"
        self._set("AbleToScale", True, "SucceededGetScale", got)
        current = int(target.spec.get("replicas", 1))
        least, most = int(spec.get("minReplicas") or 1), int(spec.get("maxReplicas") or 1)
        reason, desired = "", current
        if current == 0:
            why = "scaling is disabled since the replica count of the target is zero"
            self._set("ScalingActive", False, "ScalingDisabled", why)
        elif current > most:
            reason, desired = "Current number of replicas above Spec.MaxReplicas", most
        elif current < least:
            reason, desired = "Current number of replicas below Spec.MinReplicas", least
        else:
            found = self._by_metrics(target, current)
            if found is None:
                return self._done({"currentReplicas": current, "desiredReplicas": self._desired_before()})
            proposed, metric = found
            reason = f"{metric} above target" if proposed > current else "All metrics below target"
            limits = self._history.limit(current, proposed, least, most, spec.get("behavior"), self._now)
            self._set("AbleToScale", True, *limits.able)
            self._set("ScalingLimited", limits.limited, *limits.why)
            desired = limits.replicas
        status: dict[str, Any] = {"currentReplicas": current, "desiredReplicas": desired}
        if desired != current:
            self._writes.append(patch_of(target, {"spec": {"replicas": desired}}))
            self._history.note_change(current, desired, spec.get("behavior") or {}, self._now)
            message = f"the HPA controller was able to update the target scale to {desired}"
            self._set("AbleToScale", True, "SucceededRescale", message)
            told = f"New size: {desired}; reason: {reason}"
            self._writes += self._recorder.event(self._autoscaler, "SuccessfulRescale", told, self._now)
            status["lastScaleTime"] = stamp(self._now)
        return self._done(status)

    def _desired_before(self) -> int:
        return int(self._autoscaler.status.get("desiredReplicas") or 0)

    # --- metrics ------------------------------------------------------------------------------------------------------

    def _by_metrics(self, target: Object, current: int) -> tuple[int, str] | None:
        """Return the largest proposal and the name of its metric; None if no metric allows a decision."""
        pods = self._pods_of(target)
        best: tuple[int, str] | None = None
        errors: list[tuple[str, str]] = []
        stated = self._stated_metrics()
        for metric in stated:
            try:
                proposal, name = self._proposal(metric, pods, current)
            except MetricError as wrong:
                errors.append((f"FailedGet{metric.get('type')}Metric", wrong.why))
                continue
            if best is None or proposal.replicas > best[0]:
                best = proposal.replicas, name
        for reason, why in errors:
            self._warn(reason, why)
        if errors and (best is None or best[0] < current):
            reason, why = errors[0]
            message = f"the HPA was unable to compute the replica count: {why}"
            self._set("ScalingActive", False, reason, message)
            first = f"invalid metrics ({len(errors)} invalid out of {len(stated)}), first error is: {why}"
            self._warn("FailedComputeMetricsReplicas", first)
            return None
        if best is not None:
            message = f"the HPA was able to successfully calculate a replica count from {best[1]}"
            self._set("ScalingActive", True, "ValidMetricFound", message)
        return best

    def _stated_metrics(self) -> Sequence[Raw]:
        return self._autoscaler.spec.get("metrics") or ()

    def _proposal(self, metric: Raw, pods: Sequence[Pod], current: int) -> tuple[Proposal, str]:
        kind = str(metric.get("type"))
        field = kind[:1].lower() + kind[1:]
        source: Raw = metric.get(field) or {}
        if kind not in ("Resource", "ContainerResource"):
            api = "external" if kind == "External" else "custom"
            why = f"unable to fetch metrics from {api} metrics API: this cluster has no API {api}.metrics.k8s.io"
            raise MetricError(f"failed to get {field} metric value: {why}")
        resource, container = str(source.get("name")), str(source.get("container") or "")
        target: Raw = source.get("target") or {}
        try:
            found = propose(pods, current, resource, container, target, self._now)
        except MetricError as wrong:
            what = "usage" if target.get("averageValue") is not None else "utilization"
            of = "container resource" if container else "resource"
            raise MetricError(
                f"failed to get {resource} {of} metric value: failed to get {resource} {what}: {wrong.why}"
            ) from None
        amount = format_milli(found.average) if resource == "cpu" else format_value(found.average // 1000, "BinarySI")
        value: dict[str, Any] = {"averageValue": amount}
        name = f"{resource} resource"
        if found.utilization is not None:
            value["averageUtilization"] = found.utilization
            name = f"{resource} {'container ' if container else ''}resource utilization (percentage of request)"
        shown = {"name": resource, **({"container": container} if container else {}), "current": value}
        self._metrics.append({"type": kind, field: shown})
        return found, name

    def _pods_of(self, target: Object) -> list[Pod]:
        owners = [target]
        if target.kind == "Deployment":
            owners = [each for each in self._view.owned_by(target.uid) if each.kind == "ReplicaSet"]
        owned = (pod for owner in owners for pod in self._view.owned_by(owner.uid))
        return [pod for pod in owned if isinstance(pod, Pod) and pod.phase != "Succeeded"]

    # --- the status ---------------------------------------------------------------------------------------------------

    def _warn(self, reason: str, message: str) -> None:
        self._writes += self._recorder.event(self._autoscaler, reason, message, self._now, warning=True)

    def _set(self, type_: str, status: bool, reason: str, message: str) -> None:
        word = "True" if status else "False"
        found = next((each for each in self._conditions if each.get("type") == type_), None)
        if found is None:
            found = {"type": type_}
            self._conditions.append(found)
        if found.get("status") != word:
            found["lastTransitionTime"] = stamp(self._now)
        found.update(status=word, reason=reason, message=message)

    def _done(self, status: dict[str, Any]) -> list[Write]:
        """Return the writes, with that of the status if it changes."""
        wanted = {**status, "conditions": self._conditions}
        if self._metrics:
            wanted["currentMetrics"] = self._metrics
        present = self._autoscaler.status
        if any(present.get(name) != value for name, value in wanted.items()):
            self._writes.append(status_of(self._autoscaler, wanted))
        return self._writes
