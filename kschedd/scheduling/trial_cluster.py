"""A copy of a cluster on which an autoscaler places pods with the filters of a scheduler profile.

Implements `kschedd.pools.trials.PlacementTrials`. Every change is recorded with its inverse, so that
`revert` restores the state of a `mark`. Nodes are ordered by name. Nominated pods and extenders are not considered.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.loading.load import default_config
from kschedd.config.model import Config
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.verdicts import PASSED, Verdicts
from kschedd.values import in_parts

_PART: Final = 100  # objects that are loaded between two pauses


@attrs.define(eq=False)
class TrialCluster:
    """The cluster; pods with an unknown scheduler name use the first profile."""

    _machine: SchedulingMachine
    _undo: list[Callable[[], None]] = attrs.field(factory=list, init=False)

    @classmethod
    def of(cls, config: Config, objects: Iterable[Object]) -> "TrialCluster":
        cluster = SchedulerCache()
        cluster.load(obj for obj in objects if not isinstance(obj, Pod) or obj.node_name)
        return cls(SchedulingMachine(config, cluster=cluster))

    @classmethod
    def in_steps(cls, objects: Iterable[Object]) -> Generator[None, None, "TrialCluster"]:
        """Return the cluster with the default profile, with pauses."""
        cluster = SchedulerCache()
        machine = SchedulingMachine(default_config(), cluster=cluster)
        for part in in_parts(objects, _PART):
            yield
            cluster.load(obj for obj in part if not isinstance(obj, Pod) or obj.node_name)
        yield
        return cls(machine)

    @property
    def _cluster(self) -> SchedulerCache:
        return self._machine.cluster

    def nodes(self) -> list[Node]:
        table = self._cluster.table
        return [node for _, row in sorted(table.row_of.items()) if (node := table.nodes[row]) is not None]

    def node(self, name: str) -> Node | None:
        row = self._cluster.table.row_of.get(name)
        return None if row is None else self._cluster.table.nodes[row]

    def pods_on(self, name: str) -> list[Pod]:
        row = self._cluster.table.row_of.get(name)
        return [] if row is None else list(self._cluster.table.pods[row])

    # -- changes ----------------------------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        before = self.node(node.name)
        self._cluster.put_node(node)
        self._undo.append(
            (lambda: self._cluster.remove_node(node.name))
            if before is None
            else (lambda: self._cluster.put_node(before))
        )

    def remove_node(self, name: str) -> None:
        node = self.node(name)
        assert node is not None, f"node {name} is expected to exist"
        self._cluster.remove_node(name)
        self._undo.append(lambda: self._cluster.put_node(node))

    def place(self, pod: Pod, node_name: str) -> None:
        placed = pod.on_node(node_name)
        self._cluster.put_pod(placed)
        self._undo.append(lambda: self._cluster.remove_pod(placed))

    def remove_pod(self, pod: Pod) -> None:
        self._cluster.remove_pod(pod)
        self._undo.append(lambda: self._cluster.put_pod(pod))

    def mark(self) -> int:
        return len(self._undo)

    def revert(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()

    # -- filters ----------------------------------------------------------------------------------------------

    def feasible(self, pod: Pod) -> list[str]:
        verdicts = self._verdicts(pod)
        if not isinstance(verdicts, Verdicts):
            return []
        return sorted(verdicts.table.names[row] for row in verdicts.rows[verdicts.failed == PASSED].tolist())

    def why_not(self, pod: Pod, node_name: str) -> Sequence[str]:
        verdicts = self._verdicts(pod)
        if isinstance(verdicts, str):
            return [verdicts]
        places = np.flatnonzero(verdicts.rows == self._cluster.table.row_of[node_name])
        status = verdicts.status(int(places[0])) if len(places) else verdicts.default_status
        return () if status is None else status.reasons or (str(status.code.label),)

    def _verdicts(self, pod: Pod) -> Verdicts | str:
        """Return the verdicts of the filters on all nodes, or why the pod was not compared with the nodes."""
        schedulers = self._machine.schedulers
        scheduler = schedulers.get(pod.scheduler_name) or next(iter(schedulers.values()))
        result = drive(scheduler.attempt(pod, {}, every_node=True, post_filters=False))
        if isinstance(result, ScheduleResult):
            assert result.verdicts is not None, "of a whole attempt"
            return result.verdicts
        found = result.diagnosis.verdicts
        return found if isinstance(found, Verdicts) else result.message
