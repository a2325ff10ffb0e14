"""The interface by which the rules of node pools place pods on a copy of the cluster.

The rules use the filters of kube-scheduler, but they do not import a scheduler: a caller passes in an object with this
interface (`kschedd.scheduling.trial_cluster`).
"""

from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod


class PlacementTrials(Protocol):
    """A copy of a cluster. All changes since a `mark` can be reverted."""

    def nodes(self) -> Sequence[Node]: ...

    def node(self, name: str) -> Node | None: ...

    def pods_on(self, name: str) -> Sequence[Pod]: ...

    def put_node(self, node: Node) -> None: ...

    def remove_node(self, name: str) -> None: ...

    def place(self, pod: Pod, node_name: str) -> None: ...

    def remove_pod(self, pod: Pod) -> None: ...

    def why_not(self, pod: Pod, node_name: str) -> Sequence[str]:
        """Return why the filters reject the node for the pod; the result is empty if the pod fits."""

    def feasible(self, pod: Pod) -> Sequence[str]:
        """Return the nodes on which the pod fits."""

    def mark(self) -> int: ...

    def revert(self, mark: int) -> None: ...


def placing_on_any(
    trials: PlacementTrials, pod: Pod, acceptable: Callable[[str], bool]
) -> Generator[None, None, str | None]:
    """Return the result of `place_on_any`, with a pause before the placement."""
    yield
    return place_on_any(trials, pod, acceptable)


def place_on_any(trials: PlacementTrials, pod: Pod, acceptable: Callable[[str], bool]) -> str | None:
    """Place the pod on the first acceptable node on which it fits, and return this node."""
    for name in trials.feasible(pod):
        if acceptable(name):
            trials.place(pod, name)
            return name
    return None
