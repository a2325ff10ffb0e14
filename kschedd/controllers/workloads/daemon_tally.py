"""The tally of a DaemonSet: its pods by target node, and all nodes by the action that they require."""

from collections.abc import Generator, Iterable, Mapping, Sequence

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.workloads.daemon_pods import DaemonTemplate, Revision, oldest_first, target_node
from kschedd.controllers.workloads.pod_state import available_at
from kschedd.controllers.workloads.tallies import Groups, Tallies, Terms
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.values import fast_frozen

_STEP = 100  # number of nodes processed between two pauses, in about 1 ms

_NOTHING: Mapping[str, Pod] = {}

Fit = tuple[bool, bool]  # (a pod should run on the node, an existing pod should stay)
_Place = tuple[Fit | None, Sequence[Pod]]  # the node's fit, if the node exists, and the pods created for it


@attrs.frozen
class DaemonTerms(Terms):
    template: DaemonTemplate
    digest: str
    generation: str
    min_ready_s: int


@fast_frozen
class _State:
    there: bool  # the node exists
    runs: bool  # a pod should run there
    occupied: bool  # pods were created for it
    plain: bool  # the node has one running pod that may stay; no action is needed unless the pod is outdated
    ready: bool  # of the oldest pod
    available: bool
    updated: bool

    @property
    def missing(self) -> bool:
        return self.runs and not self.occupied

    @property
    def odd(self) -> bool:
        return self.occupied and not self.plain

    @property
    def outdated(self) -> bool:
        return self.plain and not self.updated


class DaemonTally(Groups[_Place, _State]):
    def __init__(self, terms: DaemonTerms) -> None:
        super().__init__()
        self.terms = terms
        self._revision = self.revision(0.0)
        self.pods: dict[str, Pod] = {}  # by uid, in order of the pods' arrival
        self.fits: dict[str, Fit] = {}  # fit of each existing node, by name
        self.knows_nodes = False
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._targets: dict[str, str] = {}  # uid of a pod -> the node for which it is counted

    def revision(self, now: float) -> Revision:
        return Revision(self.terms.digest, self.terms.generation, self.terms.min_ready_s, now)

    def counts(self, dependent: Pod) -> bool:
        return True

    def put(self, dependent: Pod, now: float) -> None:
        uid = dependent.uid
        self.pods[uid] = dependent
        before = self._targets.pop(uid, "")
        after = "" if dependent.finished and dependent.deletion_timestamp else target_node(dependent)
        if after:
            self._targets[uid] = after
            self._by_node.setdefault(after, {})[uid] = dependent
        if before and before != after:
            self._vacate(before, uid, now)
        if after:
            self._place(after, now)

    def drop(self, dependent: Pod, now: float) -> None:
        self.pods.pop(dependent.uid, None)
        target = self._targets.pop(dependent.uid, "")
        if target:
            self._vacate(target, dependent.uid, now)

    def _vacate(self, node: str, uid: str, now: float) -> None:
        del self._by_node[node][uid]
        if not self._by_node[node]:
            del self._by_node[node]
        self._place(node, now)

    def learn_nodes(self, nodes: Iterable[Object], now: float) -> Generator[None, None, None]:
        for number, node in enumerate(nodes, 1):
            if isinstance(node, Node):
                self.put_node(node, now)
            if not number % _STEP:
                yield
        self.knows_nodes = True

    def put_node(self, node: Node, now: float) -> None:
        fit = self.terms.template.should_run(node)
        if self.fits.get(node.name) != fit:
            self.fits[node.name] = fit
            self._place(node.name, now)

    def drop_node(self, name: str, now: float) -> None:
        if self.fits.pop(name, None) is not None:
            self._place(name, now)

    def pods_of(self, node: str) -> Sequence[Pod]:
        return tuple(self._by_node.get(node, _NOTHING).values())

    def _place(self, node: str, now: float) -> None:
        fit, pods = self.fits.get(node), self.pods_of(node)
        if fit is None and not pods:
            self.remove(node)
        else:
            self.place(node, (fit, pods), now)

    def state_of(self, item: _Place, now: float) -> tuple[_State, float | None]:
        fit, pods = item
        runs, stays = (False, False) if fit is None else fit
        if not pods:
            return _State(fit is not None, runs, False, False, False, False, False), None
        oldest = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
        plain = stays and len(pods) == 1 and not oldest.finished and not oldest.deletion_timestamp
        times = {pod.uid: available_at(pod, self.terms.min_ready_s) for pod in pods}
        at = times[oldest.uid]
        state = _State(
            fit is not None,
            runs,
            True,
            plain,
            at is not None,
            at is not None and at <= now,
            self._revision.is_updated(oldest),
        )
        return state, min((at for at in times.values() if at is not None and at > now), default=None)

    def in_order(self, nodes: Iterable[str]) -> list[str]:
        """Return existing nodes by name, then missing nodes in the order of their pods' arrival."""
        chosen = frozenset(nodes)
        present = sorted(chosen & self.fits.keys())
        gone = chosen.difference(present)
        if not gone:
            return present
        targets = dict.fromkeys(self._targets.get(uid, "") for uid in self.pods)
        return [*present, *(node for node in targets if node in gone)]


class DaemonTallies(Tallies[DaemonTally]):
    def __init__(self) -> None:
        super().__init__(("DaemonSet",))

    def observe(self, event: WatchEvent, now: float) -> None:
        old, new = event.old, event.new
        if not isinstance(new, Node):
            super().observe(event, now)
        elif event.type == DELETED:
            for uid in list(self.by_uid):
                self.change(uid, lambda tally: tally.drop_node(new.name, now))
        elif refits(event) or not isinstance(old, Node):
            for uid in list(self.by_uid):
                self.change(uid, lambda tally: tally.put_node(new, now))


def refits(event: WatchEvent) -> bool:
    """Return whether an update of a node changed labels or taints that DaemonSets read."""
    old, new = event.old, event.new
    return isinstance(old, Node) and isinstance(new, Node) and (old.labels != new.labels or old.taints != new.taints)
