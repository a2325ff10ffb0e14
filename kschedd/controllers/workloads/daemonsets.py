"""The DaemonSet controller: a pod on each node that fits, which the scheduler puts there by node affinity.

A sync looks at all nodes and at the DaemonSet's own pods; a node's change leads to one only where it changes whether a
pod belongs there. Pods that ended are deleted with a growing delay for each node, as a kubelet may refuse each new one.
Source: Kubernetes v1.34, controller/daemon (daemon_controller.go, update.go).

Owns the deadlines of later reconciles, and the delays by node.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.controller import View
from kschedd.controllers.templates import template_hash
from kschedd.controllers.timers import Timers
from kschedd.controllers.workloads import daemon_pods
from kschedd.controllers.workloads.create_backoff import CreateBackoff
from kschedd.controllers.workloads.daemon_pods import DaemonTemplate, Revision, UpdateLimits, UpdateStep
from kschedd.controllers.workloads.failure_backoff import Evictions, FailureBackoff
from kschedd.controllers.workloads.ownership import Key, Ownership
from kschedd.controllers.workloads.pod_state import ReadySince
from kschedd.controllers.workloads.revisions import (
    REVISION_HASH,
    Templates,
    another_hash,
    deletion_of,
    in_order,
    new_revision,
    number_of,
    oldest_dead,
)
from kschedd.controllers.workloads.status import status_write
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Delete, Patch, Write, patch_of

BURST: Final = 100  # pods created or deleted per reconcile of a DaemonSet, each of which has a spec of its own
_ALWAYS: Final = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


@attrs.frozen(eq=False)
class _Sync:
    """A DaemonSet, its nodes and its pods, as they are at one time."""

    daemon_set: Object
    nodes: Sequence[Node]
    fits: Mapping[str, tuple[bool, bool]]  # by node: should run, should stay
    by_node: Mapping[str, Sequence[Pod]]
    revision: Revision

    @property
    def desired(self) -> int:
        return sum(runs for runs, _ in self.fits.values())


class DaemonSets:
    name: Final = "daemonsets"
    kinds: Final = frozenset(("DaemonSet", "ControllerRevision", "Pod", "Node"))

    def __init__(self) -> None:
        self._later: Timers[Key] = Timers()
        self._backoff = CreateBackoff(self._later)
        self._pods = Ownership(("DaemonSet",), "Pod")
        self._revisions = Ownership(("DaemonSet",), "ControllerRevision")
        self._delays: dict[tuple[str, int], FailureBackoff[str]] = {}  # by uid and generation of the DaemonSet
        self._evictions = Evictions()  # by node
        self._templates: dict[str, tuple[int, DaemonTemplate]] = {}  # by uid, with the generation
        self._ready = ReadySince()
        self._compared = Templates()
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._later.next

    def concerns(self, event: WatchEvent) -> bool:
        return self._pods.concerns(event)

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        changed: dict[Key, None] = {}
        nodes: list[WatchEvent] = []
        for event in events:
            if isinstance(event.new, Node):
                nodes.append(event)
                continue
            changed.update(dict.fromkeys(self._pods.observe(event)))
            if isinstance(event.new, Pod):
                self._evictions.note(event, event.new.node_name, now)
            if event.type == DELETED:
                self._ready.forget(event.new)
                self._templates.pop(event.new.uid, None)
            if event.new.kind != "Pod":
                changed.update(dict.fromkeys(self._revisions.observe(event)))
        if nodes:
            changed.update(dict.fromkeys(_concerned(nodes, view)))
        changed.update(dict.fromkeys(self._later.due(now)))
        keys = [(namespace, name) for _, namespace, name in changed]
        return self.faults.each("DaemonSet", keys, partial(self._look_at, view), now)

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        key = ("DaemonSet", namespace, name)
        daemon_set = view.find(*key)
        if daemon_set is None:
            self._later.clear(key)
            self._backoff.clear(key)
            return []
        return [] if daemon_set.deleting else self._sync(daemon_set, view, now)

    def _sync(self, daemon_set: Object, view: View, now: float) -> list[Write]:
        claimed = self._revisions.claim(daemon_set, view)
        pods = self._pods.claim(daemon_set, view)
        own = [pod for pod in pods.dependents if isinstance(pod, Pod)]
        current, writes = self._current(daemon_set, in_order(claimed.dependents), own)
        writes += claimed.writes + pods.writes
        if current is None:
            return writes  # its creation leads to the next sync
        digest = current.labels.get(REVISION_HASH) or current.name
        nodes = [node for node in view.list("Node") if isinstance(node, Node)]
        by_node: dict[str, list[Pod]] = {}
        for pod in own:
            target = daemon_pods.target_node(pod)
            if target and not (pod.finished and pod.deletion_timestamp):
                by_node.setdefault(target, []).append(pod)
        fits = self._template(daemon_set).fits(nodes)
        generation = daemon_pods.template_generation(daemon_set)
        revision = Revision(digest, generation, daemon_set.spec.get("minReadySeconds") or 0, now, self._ready)
        sync = _Sync(daemon_set, nodes, fits, by_node, revision)
        step = self._manage(sync, now)
        if not step.delete and not step.create_on:
            step = _update_step(sync)
        writes += self._writes_of(sync, step, now)
        writes += self._clean_up(daemon_set, current, claimed.dependents, own)
        self._wait_for_availability(sync, now)
        return writes + status_write(daemon_set, _status(sync), _ALWAYS)

    def _template(self, daemon_set: Object) -> DaemonTemplate:
        """The DaemonSet's template, parsed once for each version of its spec."""
        generation = daemon_set.metadata.get("generation") or 0
        known = self._templates.get(daemon_set.uid)
        if known is None or known[0] != generation:
            known = self._templates[daemon_set.uid] = generation, DaemonTemplate.of(daemon_set)
        return known[1]

    # --- pods ----------------------------------------------------------------------------------------------------

    def _manage(self, sync: _Sync, now: float) -> UpdateStep:
        """One pod on each node that should have one, none on others."""
        step = UpdateStep([], [])
        surges = daemon_pods.allows_surge(sync.daemon_set)
        for node in sync.nodes:
            runs, stays = sync.fits[node.name]
            pods = sync.by_node.get(node.name, ())
            if runs and not pods:
                due = self._evictions.due(sync.daemon_set.uid, node.name, now)
                if due is None:
                    step.create_on.append(node.name)
                else:
                    self._wake(sync.daemon_set, due)
            elif stays:
                running = [pod for pod in pods if not pod.deletion_timestamp and not pod.finished]
                ended = [pod for pod in pods if pod.finished and not pod.deletion_timestamp]
                step.delete.extend(self._after_delay(sync.daemon_set, node.name, ended, now))
                step.delete.extend(daemon_pods.surplus_on_node(running, surges, sync.revision))
            else:
                step.delete.extend(pod for pod in pods if not pod.deletion_timestamp)
        for name, pods in sync.by_node.items():
            if name not in sync.fits:  # made for a node that is gone: the scheduler will never place it
                step.delete.extend(pod for pod in pods if not pod.node_name and not pod.deletion_timestamp)
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
        if step.create_on and not self._backoff.waits(key, now):
            digest = sync.revision.digest
            made = [daemon_pods.daemon_pod(daemon_set, node, digest) for node in step.create_on[:BURST]]
            writes += [Create(raw) for raw in made]
        if not step.create_on:
            self._backoff.clear(key)
        if max(len(step.create_on), len(step.delete)) > BURST:
            self._wake(daemon_set, now)
        return writes

    def _wait_for_availability(self, sync: _Sync, now: float) -> None:
        """Reconcile again when the next ready pod will have been so for minReadySeconds."""
        wait = sync.revision.min_ready_s
        if not wait:
            return
        times = (self._ready.of(pod) for pods in sync.by_node.values() for pod in pods)
        coming = [since + wait for since in times if since is not None and since + wait > now]
        if coming:
            self._wake(sync.daemon_set, min(coming))

    # --- revisions -----------------------------------------------------------------------------------------------

    def _current(
        self, daemon_set: Object, revisions: Sequence[Object], pods: Iterable[Pod]
    ) -> tuple[Object | None, list[Write]]:
        """The revision of the present template, and the writes that make, number or deduplicate it."""
        equal = self._compared.equal_to(daemon_set, revisions)
        number = max((number_of(r) for r in revisions if r not in equal), default=0) + 1
        if not equal:
            collisions = daemon_set.status.get("collisionCount") or 0
            digest = template_hash(daemon_set.spec.get("template") or {}, collisions)
            return None, [Create(new_revision(daemon_set, number, digest, REVISION_HASH))]
        current = equal[-1]
        writes: list[Write] = []
        digest = current.labels.get(REVISION_HASH) or ""
        if not digest:
            writes.append(patch_of(current, {"metadata": {"labels": {REVISION_HASH: current.name}}}))
        if number_of(current) < number:
            writes.append(patch_of(current, {"revision": number}))
        for duplicate in equal[:-1]:
            twins = [pod for pod in pods if pod.labels.get(REVISION_HASH) == duplicate.labels.get(REVISION_HASH)]
            writes += [patch_of(pod, {"metadata": {"labels": {REVISION_HASH: digest}}}) for pod in twins]
            writes.append(deletion_of(duplicate))
        return current, writes

    def _clean_up(
        self, daemon_set: Object, current: Object, revisions: Sequence[Object], pods: Iterable[Pod]
    ) -> list[Write]:
        """Delete revisions beyond the history limit, but none that a pod still has."""
        limit = daemon_set.spec.get("revisionHistoryLimit")
        old = [revision for revision in revisions if revision is not current]
        if limit is None or len(old) <= limit:
            return []
        hashes = {pod.labels.get(REVISION_HASH) for pod in pods}
        live = [revision.name for revision in old if revision.labels.get(REVISION_HASH) in hashes]
        return [deletion_of(revision) for revision in oldest_dead(old, live)[: len(old) - limit]]

    # --- refusals ------------------------------------------------------------------------------------------------

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """A pod that is refused is tried again later; a revision's name that is taken leads to another hash."""
        index = self._pods if isinstance(write, Patch) and write.kind == "Pod" else self._revisions
        for key in index.claimants(write, error, view):
            self._later.set(key, now)
        if not isinstance(write, Create) or isinstance(error, NotFound):
            return []
        meta = write.raw["metadata"]
        key = ("DaemonSet", meta["namespace"], meta["ownerReferences"][0]["name"])
        if write.raw["kind"] == "Pod":
            self._backoff.refused(key, now)
            return []
        daemon_set = view.find(*key)
        present = view.find("ControllerRevision", meta["namespace"], meta["name"])
        if daemon_set and present and self._compared.equal_to(daemon_set, [present]) and not present.owner:
            return []  # it will be adopted
        return another_hash(write, error, view)


def _concerned(events: Sequence[WatchEvent], view: View) -> Iterable[Key]:
    """The DaemonSets for which a pod belongs on one of the changed nodes now and did not before, or the reverse."""
    came_or_went = any(event.old is None or event.type == DELETED for event in events)
    changed = [event for event in events if _refits(event)]
    if not came_or_went and not changed:
        return
    for daemon_set in view.list("DaemonSet"):
        if not came_or_went:
            template = DaemonTemplate.of(daemon_set)
            if all(_fit(template, event.old) == _fit(template, event.new) for event in changed):
                continue
        yield "DaemonSet", daemon_set.namespace, daemon_set.name


def _refits(event: WatchEvent) -> bool:
    """Whether what DaemonSets look at in a node changed."""
    old, new = event.old, event.new
    return isinstance(old, Node) and isinstance(new, Node) and (old.labels != new.labels or old.taints != new.taints)


def _fit(template: DaemonTemplate, node: Object | None) -> tuple[bool, bool]:
    return template.should_run(node) if isinstance(node, Node) else (False, False)


def _update_step(sync: _Sync) -> UpdateStep:
    if (sync.daemon_set.spec.get("updateStrategy") or {}).get("type") != "RollingUpdate":
        return UpdateStep([], [])
    limits = UpdateLimits.of(sync.daemon_set, sync.desired)
    runs = {name: fit[0] for name, fit in sync.fits.items()}
    names = dict.fromkeys(name for name in runs if runs[name] or name in sync.by_node)
    names.update(dict.fromkeys(sync.by_node))
    by_node = {name: sync.by_node.get(name, ()) for name in names}
    if limits.surge:
        return daemon_pods.replace_by_surge(by_node, runs, sync.revision, limits, sync.desired)
    return daemon_pods.replace_in_place(by_node, sync.revision, limits)


def _status(sync: _Sync) -> dict[str, Any]:
    """The counts of nodes by how the oldest daemon pod there does."""
    desired = current = misscheduled = ready = updated = available = 0
    for name, (runs, _) in sync.fits.items():
        pods = sync.by_node.get(name)
        if not runs:
            misscheduled += bool(pods)
            continue
        desired += 1
        if not pods:
            continue
        current += 1
        pod = pods[0] if len(pods) == 1 else daemon_pods.oldest_first(pods)[0]
        if sync.revision.is_ready(pod):
            ready += 1
            available += sync.revision.is_available(pod)
        updated += sync.revision.is_updated(pod)
    return {
        "currentNumberScheduled": current,
        "numberMisscheduled": misscheduled,
        "desiredNumberScheduled": desired,
        "numberReady": ready,
        "observedGeneration": sync.daemon_set.metadata.get("generation") or 0,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": desired - available,
    }
