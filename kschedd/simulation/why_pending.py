"""Why the first pod that stays pending does, what would make it fit, and how many nodes of its kind are missing.

The first is the one that was created first. Nodes of its kind are copies of one that is there: of the smallest on which
the pod is placed when one more is added, which is tried on a fork of the scheduler's cluster. How many would do for all
pods that are pending is tried on forks of the whole cluster, each with more of them, until none is left that such a
node could take.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.answers import plain
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.similar_nodes import similar_node
from kschedd.explain.explain import begin, explain
from kschedd.explain.fork import scheduler_on
from kschedd.explain.trial import try_changes
from kschedd.framework.changes import create
from kschedd.printing.reports.explaining import explanation
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.simulation.engine import Engine

_MOST_KINDS: Final = 24  # of nodes that are tried
_MOST_NODES: Final = 1 << 14
_REST_S: Final = 3_600.0
_NEVER: Final = 1 << 62


@attrs.frozen
class MissingNodes:
    """`like`: a node of the kind; "" if no kind of node would do. `for_all`: so many place all pods in `could` that are
    pending, as the profiles place them."""

    like: str
    has: Mapping[str, int]
    pending: int
    could: int
    for_all: int
    at_least: int  # by what those pods ask for in sum, however well they were packed

    def lines(self) -> Iterable[str]:
        if not self.like:
            yield "No kind of node that is there would take it, were there one more of it."
            return
        yield f"One more node like {self.like} would take it."
        yield (
            f"{self.for_all} of them are missing for {self.could} of the {self.pending} pods that are pending, as the "
            f"profile would place these; by what they ask for in sum, at least {self.at_least}."
        )
        if self.could < self.pending:
            yield f"{self.pending - self.could} of these need another kind of node, or something else."


@attrs.frozen
class WhyPending:
    pod: str
    explanation: Mapping[str, Any]
    missing: MissingNodes

    def text(self) -> str:
        return explanation(self.explanation, TerminalStyle()) + "\n" + "\n".join(self.missing.lines())

    def as_json(self) -> dict[str, Any]:
        return {"pod": self.pod, "explanation": dict(self.explanation), "missing": attrs.asdict(self.missing)}


def why_pending(engine: Engine) -> WhyPending | None:
    """Of the first pod that is pending; None if there is none that is the scheduler's."""
    waiting = pending_pods(engine)
    if not waiting:
        return None
    first = waiting[0]
    found = plain(explain(engine.machine, first, engine.driver.nominator.by_node()))
    like = _kind_for(engine, first)
    if like is None:
        return WhyPending(first.key, found, MissingNodes("", {}, len(waiting), 0, 0, 0))
    most = min(len(waiting), _MOST_NODES)
    left = _after(engine, like, most)
    kept = {pod.uid for pod in left}
    could = [pod for pod in waiting if pod.uid not in kept]
    fewest = _fewest(engine, like, len(left), most)
    missing = MissingNodes(like.name, like.allocatable, len(waiting), len(could), fewest, _at_least(could, like))
    return WhyPending(first.key, found, missing)


def pending_pods(engine: Engine) -> list[Pod]:
    """Those that a profile is responsible for, in the order of their creation."""
    found = [
        pod
        for pod in engine.store.list("Pod")
        if isinstance(pod, Pod) and not pod.node_name and not pod.finished and not pod.deletion_timestamp
    ]
    mine = [pod for pod in found if engine.machine.responsible(pod.scheduler_name)]
    return sorted(mine, key=lambda pod: (_since(engine, pod), pod.key))


def _since(engine: Engine, pod: Pod) -> int:
    """When it first entered the active queue; a gated pod comes last."""
    entry = engine.queue.entry(pod.key)
    return _NEVER if entry is None or entry.initial_attempt is None else entry.initial_attempt


def _kind_for(engine: Engine, pod: Pod) -> Node | None:
    """The smallest node, of which one more would take the pod."""
    kinds: dict[tuple[tuple[str, int], ...], Node] = {}
    for node in engine.machine.cluster.table.nodes:
        if node is not None and not node.unschedulable:
            kinds.setdefault(tuple(sorted(node.allocatable.items())), node)
    sizes = sorted(kinds.values(), key=lambda node: (node.allocatable.get("cpu", 0), node.allocatable.get("memory", 0)))
    enough = [node for node in sizes if all(node.allocatable.get(n, 0) >= a for n, a in pod.requests.items())]
    for node in enough[:_MOST_KINDS]:
        fork = begin(engine.machine, pod, engine.driver.nominator.by_node())
        result = try_changes(scheduler_on(fork), fork.judged, fork.nominated, [create(_copy(node, 1))])
        if result is not None and not result.displaced:
            return node
    return None


def _copy(node: Node, number: int) -> dict[str, Any]:
    made = similar_node(node.raw, f"missing-{number}")
    return {**made, "status": {**made["status"], "conditions": [{"type": "Ready", "status": "True"}]}}


def _after(engine: Engine, like: Node, count: int) -> list[Pod]:
    """The pods that are pending in a fork with so many more nodes like this one."""
    fork = Engine(resumed=engine.snapshot())
    for number in range(count):
        fork.store.create(_copy(like, number))
    fork.run_to_rest(_REST_S)
    return pending_pods(fork)


def _at_least(pods: Sequence[Pod], like: Node) -> int:
    asked: Counter[str] = Counter()
    for pod in pods:
        asked.update({name: amount for name, amount in pod.requests.items() if amount})
    return max((-(-amount // like.allocatable.get(name, amount)) for name, amount in asked.items()), default=0)


def _fewest(engine: Engine, like: Node, left: int, most: int) -> int:
    """The fewest nodes after which no more than `left` pods are pending; `most` of them are enough."""
    low, high = 0, most
    while low + 1 < high:
        middle = (low + high) // 2
        if len(_after(engine, like, middle)) <= left:
            high = middle
        else:
            low = middle
    return high
