"""The StatefulSet controller: manages pods with stable names, their claims, and the revisions of their template.

`stateful_order` computes the next step; `stateful_pods` creates the manifests of pods and claims. The rule
`stateful_sets_replace_several` decides whether maxUnavailable of a rolling update applies. Source: Kubernetes v1.34,
controller/statefulset (stateful_set.go, stateful_set_control.go).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.running.controller import InSteps, Reconciling, View
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.templates import controller_in
from kschedd.controllers.workloads import stateful_pods
from kschedd.controllers.workloads.backoff import CreateBackoff, Evictions, FailureBackoff, failed_soon, has_failed
from kschedd.controllers.workloads.ownership import Key, Ownership
from kschedd.controllers.workloads.revisions import (
    HASH_LABEL,
    ComparedTemplates,
    another_hash,
    data_hash,
    deletion_of,
    in_order,
    new_revision,
    number_of,
    oldest_dead,
    revision_data,
    template_of,
)
from kschedd.controllers.workloads.stateful_order import BURST, StatefulStep, next_step
from kschedd.controllers.workloads.stateful_pods import ordinal_of, replicas_wanted
from kschedd.controllers.workloads.stateful_tally import CLAIM, StatefulTallies, StatefulTally, StatefulTerms
from kschedd.controllers.workloads.tallies import Listed, Tallies, Terms
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import AlreadyExists, ApiError, NotFound
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Create, Delete, Patch, Write, patch_of, status_write

_STEP: Final = 100  # number of pods created or checked between two pauses, in about 1 ms
_ALWAYS: Final = ("replicas", "availableReplicas", "collisionCount")


@attrs.frozen(eq=False)
class _Revisions:
    """The revision for pods below the partition, and the revision of the current template."""

    current: Object
    update: Object


class StatefulSets(InSteps):
    name: Final = "statefulsets"
    kinds: Final = frozenset(("StatefulSet", "ControllerRevision", "Pod", CLAIM))

    def __init__(self, *, detailed_events: bool = False) -> None:
        self._later: Timers[Key] = Timers()
        self.creations = CreateBackoff(self._later)
        self._events = EventRecorder("statefulset-controller", detailed=detailed_events)
        self._pods = Ownership(("StatefulSet",), "Pod")
        self._failures: FailureBackoff[tuple[str, str]] = FailureBackoff()  # by StatefulSet uid and pod name
        self._evictions = Evictions()  # by name of the pod
        self._failed_soon: set[str] = set()  # uids of pods
        self._revisions = Ownership(("StatefulSet",), "ControllerRevision")
        self._templates = ComparedTemplates()
        self._tallies = StatefulTallies()
        self._listings: Tallies[Listed] = Tallies(("StatefulSet",), "ControllerRevision")
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._later.next

    @property
    def next_work(self) -> float | None:
        return self.creations.next_other

    def concerns(self, event: WatchEvent) -> bool:
        if event.new.kind == CLAIM:
            return event.type == "DELETED"
        return self._pods.concerns(event)

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        changed: dict[Key, None] = {}
        for event in events:
            if event.new.kind == CLAIM:
                # The next pod may wait for the deletion of a claim; a pending pod's deleted claim is created again.
                if event.type == "DELETED":
                    changed.update(dict.fromkeys(self._pods.candidates(event.new)))
                continue
            changed.update(dict.fromkeys(self._pods.observe(event)))
            self._evictions.note(event, event.new.name, now)
            if has_failed(event) and failed_soon(event.new, now):
                self._failed_soon.add(event.new.uid)
            elif event.type == "DELETED":
                self._failed_soon.discard(event.new.uid)
            if event.new.kind != "Pod":
                if event.type == "DELETED":
                    self._templates.forget(event.new)
                changed.update(dict.fromkeys(self._revisions.observe(event)))
        changed.update(dict.fromkeys(self._later.due(now)))
        yield from self._tallies.catching_up(view, now)
        yield from self._listings.catching_up(view, now)
        keys = [(namespace, name) for _, namespace, name in changed]
        return (yield from self.faults.each_in_steps("StatefulSet", keys, partial(self._look_at, view), now))

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> Reconciling:
        key = ("StatefulSet", namespace, name)
        workload = view.find(*key)
        if workload is not None:
            return (yield from self._sync(workload, view, now))
        self._later.clear(key)
        self.creations.clear(key)
        return []

    def _sync(self, workload: Object, view: View, now: float) -> Reconciling:
        selector = self._pods.selector(workload)
        begin_listing = partial(Listed, Terms(selector))
        listed, writes = yield from self._listings.taking(workload, begin_listing, self._revisions, view, now)
        begin = partial(StatefulTally, StatefulTerms.of(workload, selector))
        pods, claims = yield from self._tallies.taking(workload, begin, self._pods, view, now)
        pods.pass_time(now)
        writes += claims
        history = in_order(listed.items.values())
        revisions = self._present(workload, history, writes)
        if revisions is None:
            return writes  # the creation of a revision triggers the next sync
        updating = 0
        if not workload.deleting:
            find = partial(view.find, CLAIM, workload.namespace)
            step = next_step(
                workload,
                pods,
                revisions.update.name,
                partial(stateful_pods.is_blocked_by_claim, workload, find=find) if pods.terms.claims else _never,
                max_unavailable_gate="stateful_sets_replace_several" in view.features,
            )
            updating = step.updating
            writes += yield from self._claims_and_labels(workload, pods, step, find)
            writes += yield from self._writes_of(workload, step, revisions, find, now)
        writes += _truncate(workload, history, revisions, pods)
        key = ("StatefulSet", workload.namespace, workload.name)
        if pods.terms.min_ready_s and pods.next_change is not None and key not in self._later:
            self._later.set(key, pods.next_change)
        return writes + status_write(workload, _status(workload, pods, revisions, updating), _ALWAYS)

    def _claims_and_labels(
        self, workload: Object, pods: StatefulTally, step: StatefulStep, find: stateful_pods.FindClaim
    ) -> Reconciling:
        """Update the labels and claims of existing pods."""
        writes: list[Write] = []
        for pod in step.keep:
            writes += stateful_pods.identity_patch(workload, pod)
        lacking: set[int] = set()
        for ordinal in step.claims_for:
            if ordinal in pods.unsure and (missing := stateful_pods.missing_claims(workload, ordinal, find)):
                lacking.add(ordinal)
                writes += missing
        unsure = [pod for pod in (*step.keep, *step.condemned) if ordinal_of(workload, pod.name) in pods.unsure]
        for number, pod in enumerate(unsure, 1):
            ordinal = ordinal_of(workload, pod.name)
            wanted = stateful_pods.claim_owner_patches(workload, ordinal, pod, find)
            if not wanted and ordinal not in lacking:
                pods.unsure.discard(ordinal)
            writes += wanted
            if not number % _STEP:
                yield
        return writes

    def _writes_of(
        self, workload: Object, step: StatefulStep, revisions: _Revisions, find: stateful_pods.FindClaim, now: float
    ) -> Reconciling:
        key = ("StatefulSet", workload.namespace, workload.name)
        writes: list[Write] = []
        if step.create and not self.creations.waits(key, now):
            for number, (ordinal, of_current) in enumerate(step.create[:BURST], 1):
                if not number % _STEP:
                    yield
                due = self._evictions.due(workload.uid, f"{workload.name}-{ordinal}", now)
                if due is not None:
                    self._later.set(key, min(due, self._later.at(key) or due))
                    continue
                revision = revisions.current if of_current else revisions.update
                if missing := stateful_pods.missing_claims(workload, ordinal, find):
                    writes += missing
                    self._later.set(key, now)  # the pod is created after its claims
                    continue
                writes += stateful_pods.claim_owner_patches(workload, ordinal, None, find)
                template = template_of(revision)
                writes.append(Create(stateful_pods.stateful_pod(workload, template, revision.name, ordinal)))
        if step.blocked:
            self.creations.refused(key, now)
        elif not step.create:
            self.creations.clear(key)
        gone = [pod for pod in step.delete if not self._waits_after_failure(workload, pod, now)]
        writes += [Delete("Pod", pod.namespace, pod.name, pod.uid) for pod in gone[:BURST]]
        if max(len(step.create), len(step.delete)) > BURST:
            self._later.set(key, now)
        return writes

    def _waits_after_failure(self, workload: Object, pod: Pod, now: float) -> bool:
        """Return whether a replacement must be delayed because the pod repeatedly failed soon after its creation."""
        if pod.uid not in self._failed_soon:
            return False
        place = (workload.uid, pod.name)
        due = self._failures.due(place, now)
        if due is None:
            self._failures.count(place, now)
            return False
        self._later.set(("StatefulSet", workload.namespace, workload.name), due)
        return True

    # --- revisions -----------------------------------------------------------------------------------------------

    def _present(self, workload: Object, revisions: Sequence[Object], writes: list[Write]) -> _Revisions | None:
        """Return the current and the update revision, or None while the update revision is being created."""
        equal = self._templates.equal_to(workload, revisions)
        last = number_of(revisions[-1]) if revisions else 0
        if equal:
            update = equal[-1]
        else:
            digest = data_hash(revision_data(workload), workload.status.get("collisionCount") or 0)
            raw = new_revision(workload, last + 1, digest, HASH_LABEL)
            if not workload.deleting:
                writes.append(Create(raw))
                return None
            update = Object.from_raw(raw)  # the revision is not stored, because garbage collection would delete it
        if equal and update is not revisions[-1] and not workload.deleting:
            writes.append(patch_of(update, {"revision": last + 1}))
        name = workload.status.get("currentRevision")
        current = next((revision for revision in revisions if revision.name == name), update)
        return _Revisions(current, update)

    # --- Events -------------------------------------------------------------------------------------------------------

    def on_performed(self, write: Write, obj: Object, view: View, now: float) -> Sequence[Write]:
        """Record the creation of a claim, and the creation or deletion of a pod."""
        if not self._events.detailed or not isinstance(write, Create | Delete):
            return ()
        verb = "Create" if isinstance(write, Create) else "Delete"
        if obj.kind == "Pod":
            owner = controller_in(view, obj)
            message = f"{verb} Pod {obj.name} in StatefulSet {owner.name} successful" if owner is not None else ""
            return () if owner is None else self._events.event(owner, f"Successful{verb}", message, now)
        events: list[Write] = []
        if obj.kind == CLAIM and verb == "Create":
            for key in self._pods.candidates(obj):
                workload = view.find(*key)
                if workload is not None and (pod := stateful_pods.pod_of_claim(workload, obj.name)):
                    message = f"Create Claim {obj.name} Pod {pod} in StatefulSet {workload.name} success"
                    events += self._events.event(workload, "SuccessfulCreate", message, now)
        return events

    # --- rejections ---------------------------------------------------------------------------------------------------

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Retry a rejected pod or claim later; if the name of a revision is in use, compute another hash."""
        index = self._revisions if isinstance(write, Patch) and write.kind == "ControllerRevision" else self._pods
        for key in index.claimants(write, error, view):
            self._later.set(key, now)
        if not isinstance(write, Create) or isinstance(error, NotFound):
            return []
        meta = write.raw["metadata"]
        if write.raw["kind"] == "ControllerRevision":
            return another_hash(write, error, view)
        if write.raw["kind"] == CLAIM:
            # The claim's labels determine its StatefulSet, unless both are deleted together.
            claim = Object.from_raw(write.raw)
            events: list[Write] = []
            for key in self._pods.candidates(claim):
                self.creations.refused(key, now)
                workload = view.find(*key)
                if workload is not None and (pod := stateful_pods.pod_of_claim(workload, claim.name)):
                    of = f"{pod} in StatefulSet {workload.name} failed error:"
                    why = f"Create Claim {claim.name} for Pod {of} {error}"
                    pod_why = f"Create Pod {of} failed to create PVC {claim.name}: {error}"
                    events += self._events.failure(workload, error, now, "FailedCreate", why, pod_why)
            return events
        key = ("StatefulSet", meta["namespace"], meta["ownerReferences"][0]["name"])
        self.creations.refused(key, now)
        owner = view.find(*key)
        if owner is None or isinstance(error, AlreadyExists):
            return []
        message = f"Create Pod {meta['name']} in StatefulSet {owner.name} failed error: {error}"
        return self._events.failure(owner, error, now, "FailedCreate", message)


def _never(ordinal: int) -> bool:
    return False


def _truncate(workload: Object, revisions: Sequence[Object], present: _Revisions, pods: StatefulTally) -> list[Write]:
    """Delete the oldest revisions that no pod has, beyond the history limit."""
    limit = workload.spec.get("revisionHistoryLimit")
    if limit is None:
        return []
    live = {present.current.name, present.update.name, *pods.revisions()}
    dead = oldest_dead(revisions, live)
    return [deletion_of(revision) for revision in dead[: max(0, len(dead) - limit)]]


def _status(workload: Object, pods: StatefulTally, revisions: _Revisions, updating: int) -> Mapping[str, Any]:
    count, ready = len(pods.items), pods.count(lambda pod: pod.ready)
    current = pods.count(lambda pod: not pod.deleting and pod.revision == revisions.current.name)
    updated = pods.count(lambda pod: not pod.deleting and pod.revision == revisions.update.name)
    status = {
        "observedGeneration": workload.metadata.get("generation") or 0,
        "replicas": count,
        "readyReplicas": ready,
        "availableReplicas": pods.count(lambda pod: pod.available),
        "currentReplicas": max(0, current - updating),
        "updatedReplicas": updated,
        "currentRevision": revisions.current.name,
        "updateRevision": revisions.update.name,
        "collisionCount": workload.status.get("collisionCount") or 0,
    }
    rolls = (workload.spec.get("updateStrategy") or {}).get("type") == "RollingUpdate"
    if rolls and updated == ready == count == replicas_wanted(workload):
        status.update(currentReplicas=updated, currentRevision=revisions.update.name)
    return status
