"""The state of a cluster at the end of a report, as the answers that methods give about it.

The number of answers is bounded, so that a report of a large cluster remains small. The answers about pods and causes
are computed on the engine, which is idle and does not change.
"""

from collections.abc import Callable
from itertools import islice
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.causes.answers import PendingGroup
from kschedd.causes.pending import pending_causes
from kschedd.clusters.virtual import MethodsOf
from kschedd.explain.answers import Explanation
from kschedd.explain.explain import explain
from kschedd.explain.summary import summarized
from kschedd.queue.entry import SECOND, SubQueue
from kschedd.report.model import AtEnd, PodOnNode
from kschedd.service.nodes.usage import node_usage
from kschedd.service.scheduling.queue import queued, waiting_pods
from kschedd.simulation.engine import Engine

MOST_REMEDIES: Final = 3  # groups for which remedies are tried
MOST_EXPLAINED: Final = 20  # groups of pending pods with a diagnosis
MOST_QUEUED: Final = 100  # pods of each sub-queue
MOST_PODS: Final = 2_000  # number of pods up to which the pods of each node are listed
_MOST_WORKLOADS: Final = 200  # workloads of a group of pending pods


def at_end(engine: Engine, methods: MethodsOf, check: Callable[[], None] = lambda: None) -> AtEnd:
    """Return the state. `methods` are the methods of a fork, on which remedies are tried."""
    causes = pending_causes(engine, methods, MOST_REMEDIES, MOST_EXPLAINED, check)
    queue, now = engine.queue, round(engine.now * SECOND)
    nominated = engine.driver.nominator.node_by_uid()
    places = [place for place in SubQueue if place is not SubQueue.OUTSIDE]
    return AtEnd(
        node_usage(engine.driver),
        _pods(engine),
        {place.value: count for place, count in queue.counts().items()},
        [
            queued(queue, entry, now, nominated)
            for place in places
            for entry in islice(queue.entries(place), MOST_QUEUED)
        ],
        waiting_pods(engine.driver, engine.now)[:MOST_QUEUED],
        [] if causes is None else [_shortened(group) for group in causes.groups],
        [] if causes is None else causes.diagnoses,
        [] if causes is None else _explanations(engine, [each.examined for each in causes.diagnoses if each.examined]),
    )


def _pods(engine: Engine) -> dict[str, tuple[PodOnNode, ...]]:
    if engine.store.count("Pod") > MOST_PODS:
        return {}
    found: dict[str, list[PodOnNode]] = {}
    for pod in engine.store.list("Pod"):
        if isinstance(pod, Pod) and pod.node_name:
            found.setdefault(pod.node_name, []).append(PodOnNode(pod.key, str(pod.status.get("phase") or "Pending")))
    return {node: tuple(pods) for node, pods in found.items()}


def _shortened(group: PendingGroup) -> PendingGroup:
    return attrs.evolve(group, workloads=group.workloads[:_MOST_WORKLOADS])


def _explanations(engine: Engine, keys: list[str]) -> list[Explanation]:
    """Return summaries about these pods; pods of extenders are omitted, because explaining them calls the extender."""
    found = []
    for key in keys:
        pod = engine.store.find("Pod", *key.split("/", 1))
        scheduler = engine.machine.schedulers.get(pod.scheduler_name) if isinstance(pod, Pod) else None
        if isinstance(pod, Pod) and scheduler is not None and not scheduler.extenders:
            found.append(summarized(explain(engine.machine, pod, engine.driver.nominator.by_node())))
    return found
