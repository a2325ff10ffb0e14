"""An extender in the configuration: the pods for which it is called, its calls, and the meaning of its results.

Source: Kubernetes v1.34, scheduler/extender.go, scheduler/scheduler.go (buildExtenders).
Errors: ExtenderFailure, with kube-scheduler's texts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable
from kschedd.config.model import Extender
from kschedd.extenders import messages
from kschedd.extenders.calls import ExtenderCall, ExtenderFailure
from kschedd.extenders.messages import FilterResult
from kschedd.framework.postfilter import Candidate

SCALE: Final = 10
"""Factor between the scores of extenders (0 to 10) and of the scheduler (0 to 100)."""


Write = Callable[[], Sequence[bytes]]


class _NodeJson:
    """Cached JSON of nodes that were sent before."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Node, bytes] = WeakKeyDictionary()

    def of(self, node: Node) -> bytes:
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = messages.object_json(node.raw)
        return found


_NODES: Final = _NodeJson()


def _send(call: ExtenderCall) -> Any:
    # imported on demand, because httpx is slow to import and most configurations have no extenders
    from kschedd.extenders.http import send

    return send(call)


class HTTPExtender:
    """An HTTP extender of the configuration."""

    def __init__(self, config: Extender) -> None:
        self.config = config
        self.url = config.url_prefix
        self.ignorable = config.ignorable
        self.weight = config.weight
        self.filters = bool(config.filter_verb)
        self.prioritizes = bool(config.prioritize_verb)
        self.binds = bool(config.bind_verb)
        self.preempts = bool(config.preempt_verb)
        self._managed = frozenset(resource.name for resource in config.managed_resources)

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the extender manages all pods, or a resource that a container of this pod uses."""
        if not self._managed:
            return True
        spec = pod.pod_spec.raw
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        return any(self._manages(container.get("resources") or {}) for container in containers)

    def _manages(self, resources: Mapping[str, Any]) -> bool:
        return any(not self._managed.isdisjoint(resources.get(kind) or ()) for kind in ("requests", "limits"))

    # -- calls ------------------------------------------------------------------------------------------------

    def filter(self, pod: Pod, table: NodeTable, rows: Sequence[int]) -> ExtenderCall:
        """Return the filter call; its result is a FilterResult."""
        return self._call(
            self.config.filter_verb,
            pod,
            self._args(pod, table, rows),
            lambda body: messages.filter_result(body, names=self.config.node_cache_capable),
        )

    def prioritize(self, pod: Pod, table: NodeTable, rows: Sequence[int]) -> ExtenderCall:
        """Return the prioritize call; its result is a list of pairs (node name, score)."""
        return self._call(self.config.prioritize_verb, pod, self._args(pod, table, rows), messages.priorities)

    def bind(self, pod: Pod, node_name: str) -> ExtenderCall:
        """Return the bind call; its result is the text of an error, or "" for success."""
        args = pod.namespace, pod.name, pod.uid, node_name
        return self._call(self.config.bind_verb, pod, lambda: [messages.binding_args(*args)], messages.binding_error)

    def preempt(self, pod: Pod, candidates: tuple[Candidate, ...]) -> ExtenderCall:
        """Return the preempt call; its result maps node names to MetaVictims."""
        by_uid = self.config.node_cache_capable
        return self._call(
            self.config.preempt_verb,
            pod,
            lambda: [messages.preemption_args(messages.object_json(pod.raw), candidates, by_uid)],
            messages.preemption_result,
        )

    def _call(self, action: str, pod: Pod, write: Write, read: Callable[[bytes], Any]) -> ExtenderCall:
        return ExtenderCall(self.config, action, pod.key, write, read, _send)

    def _args(self, pod: Pod, table: NodeTable, rows: Sequence[int]) -> Write:
        if self.config.node_cache_capable:
            names = [table.names[row] for row in rows]
            return lambda: [messages.args_with_names(messages.object_json(pod.raw), names)]
        nodes = [node for row in rows if (node := table.nodes[row]) is not None]
        return lambda: messages.args_with_nodes(messages.object_json(pod.raw), [_NODES.of(node) for node in nodes])

    # -- what answers mean --------------------------------------------------------------------------------------

    def passed(self, answer: FilterResult, row_of: Mapping[str, int]) -> list[int]:
        """Return the rows of the feasible nodes in the response's order; `row_of` contains the rows that were sent.

        Raises ExtenderFailure. Kube-scheduler accepts complete node objects that it did not send. kschedd cannot
        schedule a pod to an unknown node, so it rejects such a node in both formats.
        """
        if answer.error:
            raise ExtenderFailure(answer.error)
        rows = []
        for name in answer.names or ():
            row = row_of.get(name)
            if row is None:
                why = f'extender "{self.url}" claims a filtered node "{name}" which is not found in the input node list'
                raise ExtenderFailure(why)
            rows.append(row)
        return list(dict.fromkeys(rows))

    def loses_pods(self, answer: FilterResult) -> bool:
        """Return whether the nodes in this result are scored without their pods."""
        return answer.whole and self.config.nodes_lose_pods

    def weighted(self, score: int) -> int:
        """Return a score multiplied by the extender's weight; the product overflows as Go's int64 does."""
        total = score * self.weight * SCALE
        return (total + (1 << 63)) % (1 << 64) - (1 << 63)


def extenders_of(configured: Iterable[Extender]) -> tuple[HTTPExtender, ...]:
    """Return the extenders in the order of their calls; ignorable extenders are last."""
    found = [HTTPExtender(one) for one in configured]
    return (*[one for one in found if not one.ignorable], *[one for one in found if one.ignorable])
