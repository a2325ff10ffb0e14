"""OnePerTeam: a plugin in plain Python that evaluates one node at a time.

A node accepts a limited number of pods of one team (label `team`), by default one. Among the nodes that accept a pod,
those with the fewest pods of other teams score highest.

    kschedd run --plugin examples/plugins/one_per_team.py --config CONFIG

    profiles:
      - plugins:
          multiPoint:
            enabled: [{name: OnePerTeam, weight: 2}]
        pluginConfig:
          - {name: OnePerTeam, args: {podsOfATeam: 2}}

A plugin is called at an extension point if it has the method of this point: here `filter` and `score`. `node` is a view
of one node. Results are not cached: the plugin is called for every pod and node. That is slower than columns, and
simpler.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import attrs
import numpy as np

from kschedd.plugin import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    CycleState,
    EventResource,
    Handle,
    NodeInfo,
    Pod,
    QueueingHint,
    RawArgs,
    Status,
    default_normalize,
    on,
    unschedulable,
)


def team_of(pod: Pod) -> str:
    return pod.labels.get("team", "")


@attrs.frozen
class OnePerTeam:
    name: ClassVar = "OnePerTeam"
    most: int = 1

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        """Create the plugin, once for each profile.

        Invalid arguments raise ValueError here, before the plugin is called.
        """
        most = args.values.get("podsOfATeam", 1)
        if type(most) is not int or most < 1:
            raise ValueError(f"podsOfATeam: {most!r}: a whole number from 1 up is expected")
        return cls(most)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return None if the pod passes, `unschedulable` if the end of a pod may help, otherwise `unresolvable`."""
        if not team_of(pod) or self._there(pod, node) < self.most:
            return None
        return unschedulable("node(s) had enough pods of the team")

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return any number; `normalize` maps it to 0 to 100. Without `normalize`, the result must be in that range."""
        return len(node.pods) - self._there(pod, node)

    def normalize(self, state: CycleState, pod: Pod, scores: "np.typing.NDArray[np.int64]") -> Any:
        return default_normalize(scores, reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may make a rejected pod schedulable; the pod is retried only after such an event."""
        return [
            on(EventResource.NODE, ActionType.ADD),
            on(EventResource.POD, ActionType.DELETE | ActionType.UPDATE_POD_LABEL, self._after_pod),
        ]

    def _after_pod(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        """Queue the pod if a pod of its team was deleted or left the team, or if its own labels changed."""
        if new is not None and new.uid == pod.uid:
            return QUEUE
        return QUEUE if old is not None and team_of(old) == team_of(pod) else QUEUE_SKIP

    def _there(self, pod: Pod, node: NodeInfo) -> int:
        team = team_of(pod)
        return sum(
            other.namespace == pod.namespace and team_of(other) == team and not other.deletion_timestamp
            for other in node.pods
        )
