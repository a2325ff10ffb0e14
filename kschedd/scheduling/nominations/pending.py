"""PendingPods: the latest watched version of every unassigned pod, and the nominations.

This class stores the data that the driver needs without a query to the queue: the current version of each pod, and the
nominations.

A nomination equals the nominated node in the pod's status, unless preemption has chosen a newer node. An update of a
pod in flight takes effect after the pod's attempt, and an update without a node leaves the nomination unchanged. A
nomination in the status of a new pod takes effect when the queue reports the pod in the active queue.

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
        self._in_flight: set[str] = set()  # uids of pods in an attempt or waiting at Permit
        self._passed_over: set[str] = set()  # uids of skipped pods, which are in no queue

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
        """Copy the skipped pods and the nominations (`nominator.nodes`, in order) of another instance.

        The other instance must contain the same pods, and no pod may be in flight.
        """
        self._passed_over = set(passed_over)
        for pod, node in nominations:
            self.nominator.add(pod, node)

    def current(self, entry: QueuedPod) -> Pod | None:
        """Return the current version of a popped pod, or None if it is deleted, bound, or replaced by another pod."""
        pod = self.pods.get(entry.key)
        return pod if pod is not None and pod.uid == entry.pod.uid else None

    def waiting_for_queue(self, held: Container[str]) -> list[Pod]:
        """Return the pods that are neither in the queue nor skipped; `held` are the uids in the queue."""
        return [pod for pod in self.pods.values() if pod.uid not in held and pod.uid not in self._passed_over]

    # -- watch events ----------------------------------------------------------------------------------------------

    def gone(self, pod: Pod) -> None:
        """Remove a pod that was deleted, has finished, or has a node."""
        self.pods.pop(pod.key, None)
        self.nominator.remove(pod)
        self._passed_over.discard(pod.uid)

    def put(self, pod: Pod) -> None:
        self.pods[pod.key] = pod

    def updated(self, old: Pod, new: Pod) -> None:
        """Process a change of a pod of this scheduler that is not assumed on a node."""
        if new.uid in self._in_flight or old.finished or old.node_name or same_version(old, new):
            return  # the attempt continues with the popped version
        if new.uid in self._passed_over:
            self._passed_over.discard(new.uid)  # the queue adds the pod as a new one
            self.nominator.remove(new)
        else:
            self.nominator.update(old, new)

    def handed_over(self, uid: str) -> None:
        """Mark a pod that the queue receives as new or as deleted, because its profile was added or removed."""
        self._passed_over.discard(uid)

    # -- results of attempts -----------------------------------------------------------------------------------------

    def active_with_nomination(self, pods: Sequence[Pod]) -> None:
        """Add the nominations of pods that entered the active queue with a nomination in their own status."""
        for pod in pods:
            current = self.pods.get(pod.key)
            if current is not None and current.uid == pod.uid:
                self.nominator.add(current)

    def begin(self, uid: str) -> None:
        self._in_flight.add(uid)

    def pass_over(self, entry: QueuedPod) -> None:
        """Skip the pod: it leaves the queue without an attempt, even if it still exists."""
        if self.current(entry) is not None:
            self._passed_over.add(entry.uid)
        self.release(entry.uid)

    def release(self, uid: str) -> None:
        """Remove a pod from the pods in flight, without returning it to the queue."""
        self._in_flight.discard(uid)
        self.nominator.left_queue(uid)

    def failed(self, pod: Pod, nominated_node: str | None) -> None:
        """Requeue the pod.

        With `nominated_node` None, the nomination in the pod's status applies; "" clears the nomination.
        """
        self._in_flight.discard(pod.uid)
        self.nominator.add(pod, nominated_node)
