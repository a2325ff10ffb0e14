"""AgreementActor: compares each placement in a mirrored cluster with the placement that this daemon would choose.

Receives: the mirror's changes of pods.  Sends: queries to the scheduler and the store.

Owns: the counts of placements by result, and the latest placements that differ from this daemon's choice.
Ends: when it is cancelled.

When the mirrored cluster binds a pod, the daemon explains the pod in the state just before the binding. If this
explanation chooses another node, the daemon explains the pod again in other states of RACE_S before and after: the
cluster's scheduler may have decided before it observed the latest changes, and its bindings may arrive in another
order. Explanations run in a thread and use at most a tenth of a core; placements that arrive too fast are counted but
not evaluated.
"""

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import attrs
import structlog
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.explain.answers import Explanation, Rejection, VerdictAnswer
from kschedd.explain.explain import begin, finish, of_past
from kschedd.explain.fork import without_node
from kschedd.explain.past import Past
from kschedd.live.answers import AgreementAnswer, OtherPlacement, PluginCount
from kschedd.store.errors import Gone
from kschedd.store.objects.log import ADDED, MODIFIED, WatchEvent

log = structlog.get_logger("kschedd.mirror")

RACE_S: Final = 2.0  # maximum delay in seconds with which the other scheduler observes changes
_NEW_S: Final = 60.0  # maximum age in seconds of a new pod whose first received state already has a node
_WAITING: Final = 64  # maximum number of placements that wait to be evaluated
_LATEST: Final = 100  # maximum number of stored placements that differ
_RECENT: Final = 200  # maximum number of bindings whose versions are stored
_NEAR: Final = 4  # maximum number of bindings before, and after, whose states are tried
_IDLE: Final = 9  # pause after an evaluation, as a multiple of its duration
_NODES: Final = 5  # maximum number of expected nodes that an answer names for one binding
_TAKEN: Final = 1000  # number of events processed between two pauses

Result = Literal["equal", "race", "partial search", "lower score", "rejected", "unknown node"]


@attrs.frozen
class ObservedBinding:
    """A pod that the mirrored cluster bound: the pod before the binding, and the versions of the states to restore."""

    pod: Pod
    node: str
    at_s: float
    version: int  # version of the mirror just before the binding was received
    earlier: int  # RACE_S before


@attrs.define(eq=False)
class AgreementActor:
    _cluster: LiveCluster
    _since_s: float = attrs.field(init=False)
    _bound: int = attrs.field(default=0, init=False)
    _of_others: int = attrs.field(default=0, init=False)
    _not_evaluated: int = attrs.field(default=0, init=False)
    _results: Counter[str] = attrs.field(factory=Counter, init=False)
    _plugins: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)
    _latest: deque[OtherPlacement] = attrs.field(factory=lambda: deque(maxlen=_LATEST), init=False)
    _versions: deque[tuple[float, int]] = attrs.field(factory=deque, init=False)  # received within RACE_S
    # the latest bindings, in order: time and version before each
    _recent: deque[tuple[float, int]] = attrs.field(factory=lambda: deque(maxlen=_RECENT), init=False)

    def __attrs_post_init__(self) -> None:
        self._since_s = self._cluster.clock.now()

    async def run(self) -> None:
        to_judge, judging = trio.open_memory_channel[ObservedBinding](_WAITING)
        watch = await self._cluster.store.watch(["Pod"])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._judge_all, judging)
            with to_judge:
                while await watch.wait():
                    while events := watch.take(_TAKEN):
                        self._receive(events, to_judge)
                        await trio.lowlevel.checkpoint()

    def describe(self) -> AgreementAnswer:
        plugins = [PluginCount(plugin, result, pods) for (result, plugin), pods in self._plugins.most_common()]
        return AgreementAnswer(
            since_s=self._since_s,
            bound=self._bound,
            of_others=self._of_others,
            not_evaluated=self._not_evaluated,
            results={**self._results},
            plugins=plugins,
            latest=list(self._latest),
        )

    def _receive(self, events: Sequence[WatchEvent], to_judge: "trio.MemorySendChannel[ObservedBinding]") -> None:
        now = self._cluster.clock.now()
        while len(self._versions) > 1 and self._versions[1][0] < now - RACE_S:
            self._versions.popleft()
        before = events[0].version - 1
        earlier = self._versions[0][1] if self._versions else before
        for binding in bindings(events, now, earlier):
            self._bound += 1
            self._recent.append((now, binding.version))
            try:
                to_judge.send_nowait(binding)
            except trio.WouldBlock:
                self._not_evaluated += 1
        self._versions.append((now, before))

    async def _judge_all(self, judging: "trio.MemoryReceiveChannel[ObservedBinding]") -> None:
        with judging:
            async for binding in judging:
                begun = time.monotonic()
                try:
                    await self.judge(binding)
                except Exception as fault:  # a pod that cannot be explained must not end the mirror
                    self._not_evaluated += 1
                    log.warning("not_evaluated", pod=binding.pod.key, why=f"{type(fault).__name__}: {fault}")
                await trio.sleep(_IDLE * (time.monotonic() - begun))

    async def judge(self, binding: ObservedBinding) -> None:
        """Evaluate a binding, and count the result."""
        profiles = await self._cluster.scheduler.query(lambda owner: frozenset(owner.machine.schedulers))
        if binding.pod.scheduler_name not in profiles:
            self._of_others += 1
            return
        try:
            found = await self._explain(binding, binding.version)
            result, plugin, why = judged(found, binding.node)
            if result != "equal":
                for version, state in self._other_states(binding):
                    if judged(await self._explain(binding, version), binding.node)[0] == "equal":
                        result, plugin, why = "race", "", f"it is the best node in the state {state}"
                        break
        except Gone:
            self._not_evaluated += 1
            return
        self._results[result] += 1
        if result == "equal":
            return
        if plugin:
            self._plugins[result, plugin] += 1
        expected = ([found.chosen] if found.chosen else found.ties)[:_NODES]
        self._latest.append(OtherPlacement(binding.at_s, binding.pod.key, binding.node, expected, result, plugin, why))

    def _other_states(self, binding: ObservedBinding) -> Iterator[tuple[int, str]]:
        """Yield versions of states that the other scheduler may have seen, each with a description.

        A scheduler counts its own bindings when it decides; they may be received in another order.
        """
        near = [version for at_s, version in self._recent if abs(at_s - binding.at_s) <= RACE_S]
        before = [version for version in near if version < binding.version]
        after = [version for version in near if version > binding.version]
        for number, version in enumerate(reversed(before[-_NEAR:]), 1):
            yield version, "before the previous binding" if number == 1 else f"before the previous {number} bindings"
        for number, version in enumerate(after[:_NEAR], 1):
            yield version + 1, "after the next binding" if number == 1 else f"after the next {number} bindings"
        yield binding.earlier, f"of {RACE_S:g} s earlier"

    async def _explain(self, binding: ObservedBinding, version: int) -> Explanation:
        """Explain the pod in the state of a version of the mirror. Raises Gone."""
        fork, observed = await self._cluster.scheduler.query(
            lambda owner: (begin(owner.machine, binding.pod, owner.nominator.by_node()), owner.observer.version)
        )
        since = await self._cluster.store.do(lambda store: store.shown_after(version))
        return await trio.to_thread.run_sync(finish, of_past(fork, Past(None, (), since), observed))


def bindings(events: Iterable[WatchEvent], now: float, earlier: int) -> Iterator[ObservedBinding]:
    """Yield the bindings among these events, including new pods whose first received state already has a node."""
    for event in events:
        new, old = event.new, event.old
        if not isinstance(new, Pod) or not new.node_name or new.deleting:
            continue
        if event.type == MODIFIED and isinstance(old, Pod) and not old.node_name and old.uid == new.uid:
            yield ObservedBinding(old, new.node_name, now, event.version - 1, min(earlier, event.version - 1))
        elif event.type == ADDED and _is_new(new, now) and _was_bound(new):
            yield ObservedBinding(
                without_node(new), new.node_name, now, event.version - 1, min(earlier, event.version - 1)
            )


def _is_new(pod: Pod, now: float) -> bool:
    created = pod.metadata.get("creationTimestamp")
    return created is not None and now - seconds(created) < _NEW_S


def _was_bound(pod: Pod) -> bool:
    """Return whether a scheduler bound the pod; static pods lack the condition PodScheduled."""
    conditions = pod.status.get("conditions") or ()
    return any(each.get("type") == "PodScheduled" and each.get("status") == "True" for each in conditions)


def judged(found: Explanation, node: str) -> tuple[Result, str, str]:
    """Return the result of comparing a pod's node with the explanation, the responsible plugin, and the reason."""
    if node == found.chosen or node in found.ties:
        return "equal", "", ""
    verdict = next((each for each in found.verdicts if each.node == node), None)
    if found.pre_filter is not None:
        return "rejected", found.pre_filter.plugin, _why(found.pre_filter)
    if verdict is None:
        return "unknown node", "", "the mirror does not have this node"
    if verdict.plugin is not None:
        return "rejected", verdict.plugin, _why(verdict)
    best = found.chosen or next(iter(found.ties), None)
    if best is None or node not in found.totals:
        return "lower score", "", "the nodes could not be scored"
    behind = {
        name: by_node[best].weighted - by_node[node].weighted
        for name, by_node in found.scores.items()
        if best in by_node and node in by_node
    }
    plugin = max(behind, key=behind.__getitem__)  # with a lower total, some plugin's score is lower
    why = f"{found.totals[node]} points, {best} has {found.totals[best]}; {plugin} gives {behind[plugin]} points fewer"
    if found.search.feasible > found.search.enough:
        return "partial search", plugin, f"{why}; a search ends at {found.search.enough} feasible nodes"
    return "lower score", plugin, why


def _why(rejection: Rejection | VerdictAnswer) -> str:
    return f"{rejection.plugin}: {'; '.join(rejection.reasons) or rejection.code}"
