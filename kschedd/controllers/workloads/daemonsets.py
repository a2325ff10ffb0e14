"""The DaemonSet controller: creates a pod for each eligible node, named in the pod's node affinity.

A sync processes only nodes that may require an action, according to a tally of nodes and of the DaemonSet's pods. A
change of a node triggers a sync only if a pod of the DaemonSet may now run there, or may no longer. Ended pods are
deleted after an increasing delay per node, because the kubelet may reject each new pod. Source: Kubernetes v1.34,
controller/daemon (daemon_controller.go, update.go).

"""

from collections.abc import Iterable, Sequence
from functools import partial
from heapq import nsmallest
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.running.controller import InSteps, Reconciling, View
from kschedd.controllers.running.derived import Derived
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.templates import template_hash
from kschedd.controllers.workloads import daemon_pods
from kschedd.controllers.workloads.backoff import CreateBackoff, Evictions, FailureBackoff
from kschedd.controllers.workloads.daemon_pods import DaemonTemplate, Revision, UpdateLimits, UpdateStep
from kschedd.controllers.workloads.daemon_tally import DaemonTallies, DaemonTally, DaemonTerms, refits
from kschedd.controllers.workloads.ownership import Key, Ownership
from kschedd.controllers.workloads.revisions import (
    REVISION_HASH,
    ComparedTemplates,
    another_hash,
    deletion_of,
    in_order,
    new_revision,
    number_of,
    oldest_dead,
)
from kschedd.controllers.workloads.tallies import Listed, Tallies, Terms
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Delete, Patch, Write, patch_of, status_write

BURST: Final = 100  # maximum number of pods created or deleted per reconcile of a DaemonSet
_ALWAYS: Final = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


@attrs.frozen(eq=False)
class _Sync:
    """A DaemonSet with its pods and nodes at one time."""

    daemon_set: Object
    tally: DaemonTally
    revision: Revision

    @property
    def desired(self) -> int:
        return self.tally.count(lambda node: node.runs)


class DaemonSets(InSteps):
    name: Final = "daemonsets"
    kinds: Final = frozenset(("DaemonSet", "ControllerRevision", "Pod", "Node"))

    def __init__(self, *, detailed_events: bool = False) -> None:
        self._later: Timers[Key] = Timers()
        self.creations = CreateBackoff(self._later)
        self._events = EventRecorder("daemonset-controller", detailed=detailed_events)
        self._pods = Ownership(("DaemonSet",), "Pod")
        self._revisions = Ownership(("DaemonSet",), "ControllerRevision")
        self._delays: dict[tuple[str, int], FailureBackoff[str]] = {}  # by uid and generation of the DaemonSet
        self._evictions = Evictions()  # by node
        self._templates = Derived(DaemonTemplate.of)
        self._compared = ComparedTemplates()
        self._tallies = DaemonTallies()
        self._listings: Tallies[Listed] = Tallies(("DaemonSet",), "ControllerRevision")
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._later.next

    @property
    def next_work(self) -> float | None:
        return self.creations.next_other

    def concerns(self, event: WatchEvent) -> bool:
        return self._pods.concerns(event)

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        changed: dict[Key, None] = {}
        nodes: list[WatchEvent] = []
        for event in events:
            if isinstance(event.new, Node):
                nodes.append(event)
                continue
            changed.update(dict.fromkeys(self._pods.observe(event)))
            if isinstance(event.new, Pod):
                self._evictions.note(event, event.new.node_name, now)
            if event.new.kind != "Pod":
                if event.type == DELETED:
                    self._templates.forget(event.new)
                    self._compared.forget(event.new)
                changed.update(dict.fromkeys(self._revisions.observe(event)))
        if nodes:
            changed.update(dict.fromkeys(self._concerned(nodes, view)))
        changed.update(dict.fromkeys(self._later.due(now)))
        yield from self._tallies.catching_up(view, now)
        yield from self._listings.catching_up(view, now)
        keys = [(namespace, name) for _, namespace, name in changed]
        return (yield from self.faults.each_in_steps("DaemonSet", keys, partial(self._look_at, view), now))

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> Reconciling:
        key = ("DaemonSet", namespace, name)
        daemon_set = view.find(*key)
        if daemon_set is None:
            self._later.clear(key)
            self.creations.clear(key)
            return []
        return [] if daemon_set.deleting else (yield from self._sync(daemon_set, view, now))

    def _sync(self, daemon_set: Object, view: View, now: float) -> Reconciling:
        selector = self._pods.selector(daemon_set)
        begin_listing = partial(Listed, Terms(selector))
        listed, claims = yield from self._listings.taking(daemon_set, begin_listing, self._revisions, view, now)
        history = in_order(listed.items.values())
        current, duplicates, writes = self._current(daemon_set, history)
        if current is None:  # the creation of the revision triggers the next sync
            claimed = yield from self._pods.claiming(daemon_set, view)
            return writes + claims + claimed.writes
        digest = current.labels.get(REVISION_HASH) or current.name
        generation = daemon_pods.template_generation(daemon_set)
        min_ready_s = daemon_set.spec.get("minReadySeconds") or 0
        terms = DaemonTerms(selector, self._templates.of(daemon_set), digest, generation, min_ready_s)
        tally, adoptions = yield from self._tallies.taking(
            daemon_set, partial(DaemonTally, terms), self._pods, view, now
        )
        if not tally.knows_nodes:
            yield from tally.learn_nodes(view.list("Node"), now)
        tally.pass_time(now)
        writes += _without_duplicates(duplicates, current, tally.pods.values())
        writes += claims + adoptions
        sync = _Sync(daemon_set, tally, tally.revision(now))
        step = self._manage(sync, now)
        if not step.delete and not step.create_on:
            step = _update_step(sync)
        yield
        writes += self._writes_of(sync, step, now)
        yield
        writes += self._clean_up(daemon_set, current, history, tally.pods.values())
        if min_ready_s and tally.next_change is not None:
            self._wake(daemon_set, tally.next_change)
        return writes + status_write(daemon_set, _status(sync), _ALWAYS)

    # --- pods ----------------------------------------------------------------------------------------------------

    def _manage(self, sync: _Sync, now: float) -> UpdateStep:
        """Return the step after which each eligible node has one pod and no other node has a pod."""
        step = UpdateStep([], [])
        surges = daemon_pods.allows_surge(sync.daemon_set)
        tally = sync.tally
        for name in sorted(tally.names(lambda node: node.missing)):
            due = self._evictions.due(sync.daemon_set.uid, name, now)
            if due is not None:
                self._wake(sync.daemon_set, due)
                continue
            step.create_on.append(name)
            if len(step.create_on) > BURST:
                break
        for name in tally.in_order(tally.names(lambda node: node.odd)):
            pods = tally.pods_of(name)
            if name not in tally.fits:  # the pod's node was deleted, so the pod will never be scheduled
                step.delete.extend(pod for pod in pods if not pod.node_name and not pod.deletion_timestamp)
            elif tally.fits[name][1]:
                running = [pod for pod in pods if not pod.deletion_timestamp and not pod.finished]
                ended = [pod for pod in pods if pod.finished and not pod.deletion_timestamp]
                step.delete.extend(self._after_delay(sync.daemon_set, name, ended, now))
                step.delete.extend(daemon_pods.surplus_on_node(running, surges, sync.revision))
            else:
                step.delete.extend(pod for pod in pods if not pod.deletion_timestamp)
        return step

    def _after_delay(self, daemon_set: Object, node: str, ended: Sequence[Pod], now: float) -> list[Pod]:
        if not ended:
            return []
        generation = daemon_set.status.get("observedGeneration") or 0
        delays = self._delays.get((daemon_set.uid, generation))
        if delays is None:
            for old in [key for key in self._delays if key[0] == daemon_set.uid]:
                del self._delays[old]
            delays = self._delays[daemon_set.uid, generation] = FailureBackoff()
        due = delays.due(node, now)
        if due is not None:
            self._wake(daemon_set, due)
            return []
        delays.count(node, now)
        return list(ended)

    def _wake(self, daemon_set: Object, at: float) -> None:
        key = ("DaemonSet", daemon_set.namespace, daemon_set.name)
        known = self._later.at(key)
        if known is None or at < known:
            self._later.set(key, at)

    def _writes_of(self, sync: _Sync, step: UpdateStep, now: float) -> list[Write]:
        daemon_set = sync.daemon_set
        key = ("DaemonSet", daemon_set.namespace, daemon_set.name)
        writes: list[Write] = [Delete("Pod", p.namespace, p.name, p.uid) for p in step.delete[:BURST]]
        if step.create_on and not self.creations.waits(key, now):
            digest = sync.revision.digest
            made = [daemon_pods.daemon_pod(daemon_set, node, digest) for node in step.create_on[:BURST]]
            writes += [Create(raw) for raw in made]
        if not step.create_on:
            self.creations.clear(key)
        if max(len(step.create_on), len(step.delete)) > BURST:
            self._wake(daemon_set, now)
        return writes

    # --- revisions -----------------------------------------------------------------------------------------------

    def _current(
        self, daemon_set: Object, revisions: Sequence[Object]
    ) -> tuple[Object | None, Sequence[Object], list[Write]]:
        """Return the current template's revision, its duplicates, and the writes that create or renumber it."""
        equal = self._compared.equal_to(daemon_set, revisions)
        number = max((number_of(r) for r in revisions if r not in equal), default=0) + 1
        if not equal:
            collisions = daemon_set.status.get("collisionCount") or 0
            digest = template_hash(daemon_set.spec.get("template") or {}, collisions)
            return None, (), [Create(new_revision(daemon_set, number, digest, REVISION_HASH))]
        current = equal[-1]
        writes: list[Write] = []
        if not current.labels.get(REVISION_HASH):
            writes.append(patch_of(current, {"metadata": {"labels": {REVISION_HASH: current.name}}}))
        if number_of(current) < number:
            writes.append(patch_of(current, {"revision": number}))
        return current, equal[:-1], writes

    def _clean_up(
        self, daemon_set: Object, current: Object, revisions: Sequence[Object], pods: Iterable[Pod]
    ) -> list[Write]:
        """Delete revisions beyond the history limit that no pod uses."""
        limit = daemon_set.spec.get("revisionHistoryLimit")
        old = [revision for revision in revisions if revision is not current]
        if limit is None or len(old) <= limit:
            return []
        hashes = {pod.labels.get(REVISION_HASH) for pod in pods}
        live = [revision.name for revision in old if revision.labels.get(REVISION_HASH) in hashes]
        return [deletion_of(revision) for revision in oldest_dead(old, live)[: len(old) - limit]]

    def _concerned(self, events: Sequence[WatchEvent], view: View) -> Iterable[Key]:
        """Return the DaemonSets for which the eligibility of one of the changed nodes has changed."""
        came_or_went = any(event.old is None or event.type == DELETED for event in events)
        changed = [event for event in events if refits(event)]
        if not came_or_went and not changed:
            return
        for daemon_set in view.list("DaemonSet"):
            if not came_or_went:
                template = self._templates.of(daemon_set)
                if all(_fit(template, event.old) == _fit(template, event.new) for event in changed):
                    continue
            yield "DaemonSet", daemon_set.namespace, daemon_set.name

    # --- rejections ---------------------------------------------------------------------------------------------------

    def on_performed(self, write: Write, obj: Object, view: View, now: float) -> Sequence[Write]:
        """Record the creation or deletion of a pod."""
        return self._events.of_pod(write, obj, view, now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Retry rejected pods later; if the name of a revision is in use, compute another hash."""
        index = self._pods if isinstance(write, Patch) and write.kind == "Pod" else self._revisions
        for key in index.claimants(write, error, view):
            self._later.set(key, now)
        if not isinstance(write, Create) or isinstance(error, NotFound):
            return []
        meta = write.raw["metadata"]
        key = ("DaemonSet", meta["namespace"], meta["ownerReferences"][0]["name"])
        daemon_set = view.find(*key)
        if write.raw["kind"] == "Pod":
            self.creations.refused(key, now)
            if daemon_set is None:
                return []
            return self._events.failure(daemon_set, error, now, "FailedCreate", f"Error creating: {error}")
        present = view.find("ControllerRevision", meta["namespace"], meta["name"])
        if daemon_set and present and self._compared.equal_to(daemon_set, [present]) and not present.owner:
            return []  # it will be adopted
        return another_hash(write, error, view)


def _without_duplicates(duplicates: Iterable[Object], current: Object, pods: Iterable[Pod]) -> list[Write]:
    """Change the hash of pods of duplicate revisions to that of the current revision, and delete the duplicates."""
    writes: list[Write] = []
    digest = current.labels.get(REVISION_HASH) or ""
    for duplicate in duplicates:
        twins = [pod for pod in pods if pod.labels.get(REVISION_HASH) == duplicate.labels.get(REVISION_HASH)]
        writes += [patch_of(pod, {"metadata": {"labels": {REVISION_HASH: digest}}}) for pod in twins]
        writes.append(deletion_of(duplicate))
    return writes


def _fit(template: DaemonTemplate, node: Object | None) -> tuple[bool, bool]:
    return template.should_run(node) if isinstance(node, Node) else (False, False)


def _update_step(sync: _Sync) -> UpdateStep:
    """Return the next step of a rolling update. Only nodes that may need an action are examined."""
    if (sync.daemon_set.spec.get("updateStrategy") or {}).get("type") != "RollingUpdate":
        return UpdateStep([], [])
    tally, revision = sync.tally, sync.revision
    limits = UpdateLimits.of(sync.daemon_set, sync.desired)
    # maximum number of available pods to replace at a time
    most = limits.surge or limits.unavailable
    spare = nsmallest(most, tally.names(lambda node: node.outdated and node.available and node.runs))
    others = tally.names(lambda node: node.outdated and not (node.available and node.runs))
    odd = tally.names(lambda node: node.odd or node.missing)
    names = tally.in_order([*spare, *others, *odd])
    if not names:
        return UpdateStep([], [])
    by_node = {name: tally.pods_of(name) for name in names}
    if limits.surge:
        listed = sum(tally.of(name).plain and tally.of(name).available for name in names)
        available = tally.count(lambda node: node.plain and node.available) - listed
        runs = {name: tally.of(name).runs for name in names}
        return daemon_pods.replace_by_surge(by_node, runs, revision, limits, sync.desired, available)
    unavailable = tally.count(lambda node: node.plain and node.updated and not node.available)
    return daemon_pods.replace_in_place(by_node, revision, limits, unavailable)


def _status(sync: _Sync) -> dict[str, Any]:
    """Return the counts of nodes by the state of their oldest daemon pod."""
    count, desired = sync.tally.count, sync.desired
    available = count(lambda node: node.runs and node.available)
    return {
        "currentNumberScheduled": count(lambda node: node.runs and node.occupied),
        "numberMisscheduled": count(lambda node: node.there and not node.runs and node.occupied),
        "desiredNumberScheduled": desired,
        "numberReady": count(lambda node: node.runs and node.ready),
        "observedGeneration": sync.daemon_set.metadata.get("generation") or 0,
        "updatedNumberScheduled": count(lambda node: node.runs and node.updated),
        "numberAvailable": available,
        "numberUnavailable": desired - available,
    }
