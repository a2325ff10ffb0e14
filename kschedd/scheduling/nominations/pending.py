"""PendingPods: the latest watched version of every unassigned pod, and the nominations.

The queue owns the pending pods; this is what the driver must know without querying it: the pod's current version when
its attempt begins or has failed, and the nominations, which every attempt reads.

A nomination follows the pod's own status, but is newer where preemption has chosen a node: an update of a pod
in flight takes effect when its attempt is over, and an update that names no node leaves the nomination.
A new pod's own nomination counts once the queue reports that the pod is in the active queue.

Owns the nominator. Source: Kubernetes v1.34, scheduler/eventhandlers.go, backend/queue/scheduling_queue.go (Update).
"""

from collections.abc import Container, Iterable, Sequence

from kschedd.api.pods import Pod
from kschedd.queue.entry import QueuedPod
from kschedd.queue.event_handlers import same_version
from kschedd.scheduling.nominations.nominator import Nominator


class PendingPods:
    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}  # by key
        self.nominator = Nominator(self.pods.get)
        self._in_flight: set[str] = set()  # uids: in an attempt, or waiting at Permit
        self._passed_over: set[str] = set()  # uids of skipped pods: in no queue

    def fork(self) -> "PendingPods":
        forked = PendingPods()
        forked.pods.update(self.pods)
        forked.nominator.copy_of(self.nominator)
        forked._in_flight = self._in_flight.copy()
        forked._passed_over = self._passed_over.copy()
        return forked

    @property
    def passed_over(self) -> frozenset[str]:
        """The uids of pods that were skipped and are in no queue."""
        return frozenset(self._passed_over)

    def goes_on(self, passed_over: Iterable[str], nominations: Iterable[tuple[Pod, str]]) -> None:
        """As another one of the same pods, none of which is in flight: its skipped pods, and its nominations in order
        (`nominator.nodes`)."""
        self._passed_over = set(passed_over)
        for pod, node in nominations:
            self.nominator.add(pod, node)

    def current(self, entry: QueuedPod) -> Pod | None:
        """The current version of a popped pod; None if it is deleted, has a node, or another pod has its name."""
        pod = self.pods.get(entry.key)
        return pod if pod is not None and pod.uid == entry.pod.uid else None

    def waiting_for_queue(self, held: Container[str]) -> list[Pod]:
        """The pods that neither the queue holds nor were skipped; `held`: the uids that it holds."""
        return [pod for pod in self.pods.values() if pod.uid not in held and pod.uid not in self._passed_over]

    # -- what the watch says --------------------------------------------------------------------------------------

    def gone(self, pod: Pod) -> None:
        """The pod is deleted, has finished, or has a node."""
        self.pods.pop(pod.key, None)
        self.nominator.remove(pod)
        self._passed_over.discard(pod.uid)

    def put(self, pod: Pod) -> None:
        self.pods[pod.key] = pod

    def updated(self, old: Pod, new: Pod) -> None:
        """A pod that this scheduler is responsible for has changed, and is not assumed on a node."""
        if new.uid in self._in_flight or old.finished or old.node_name or same_version(old, new):
            return  # an attempt continues with the popped version
        if new.uid in self._passed_over:
            self._passed_over.discard(new.uid)  # the queue adds it as a new pod
            self.nominator.remove(new)
        else:
            self.nominator.update(old, new)

    def handed_over(self, uid: str) -> None:
        """The queue is told of the pod as of a new one, or that it is gone, since its profile came or went."""
        self._passed_over.discard(uid)

    # -- what becomes of it ---------------------------------------------------------------------------------------

    def active_with_nomination(self, pods: Sequence[Pod]) -> None:
        """The queue reports: these entered the active queue with a nomination in their own status."""
        for pod in pods:
            current = self.pods.get(pod.key)
            if current is not None and current.uid == pod.uid:
                self.nominator.add(current)

    def begin(self, uid: str) -> None:
        self._in_flight.add(uid)

    def pass_over(self, entry: QueuedPod) -> None:
        """Skip the pod: no attempt is made, and it is in no queue even though it may still exist."""
        if self.current(entry) is not None:
            self._passed_over.add(entry.uid)
        self.release(entry.uid)

    def release(self, uid: str) -> None:
        """No longer in flight, and not back in the queue either."""
        self._in_flight.discard(uid)
        self.nominator.left_queue(uid)

    def failed(self, pod: Pod, nominated_node: str | None) -> None:
        """The pod is requeued. `nominated_node`: None takes the nomination from the pod's status, "" clears it."""
        self._in_flight.discard(pod.uid)
        self.nominator.add(pod, nominated_node)
