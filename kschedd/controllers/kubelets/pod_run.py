"""The life cycle of a simulated pod on its node, which determines when each container starts, ends and restarts.

Init containers run one after another, each after the previous one has succeeded. A sidecar (an init container that
always restarts) is started in the same order, and keeps running. After the init containers, all containers start
together. A container that ends is restarted after its back-off if the restart policy requires it. When the last
container has ended for good, or the pod is stopped, the sidecars are stopped in reverse order; then the pod ends.

A container ends exactly at its scheduled time. The kubelet reacts to the end of a container in the next call of
`advance`. Source: Kubernetes v1.34, pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions),
kuberuntime_termination_order.go, kubelet_pods.go (getPhase), active_deadline.go. Units: seconds since the epoch;
durations in seconds.
"""

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from kschedd.api.conditions import condition
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.simulation.annotations import pod_settings
from kschedd.api.text.times import seconds
from kschedd.controllers.kubelets.containers import ContainerRun, containers_of
from kschedd.controllers.kubelets.resizing import PendingResize, differ, is_resizable, restarts, stated

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
_DEADLINE_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"
EVICTED: Final = "Evicted"
PREEMPTING: Final = "Preempting"
PREEMPTED_MESSAGE: Final = "Preempted in order to admit critical pod"
DISRUPTION_TARGET: Final = "DisruptionTarget"
BY_KUBELET: Final = "TerminationByKubelet"
_DEFAULT_GRACE_S: Final = 30.0


@attrs.frozen
class Stop:
    """The stop of a pod: its time, reason and the containers' grace period.

    An empty `reason` means that the pod has not failed.
    """

    at: float
    grace_s: float
    reason: str = ""
    message: str = ""

    @property
    def disrupts(self) -> bool:
        """True if the kubelet adds a DisruptionTarget condition to the pod."""
        return self.reason in (EVICTED, PREEMPTING)


@attrs.define(eq=False)
class PodRun:
    uid: str
    containers: list[ContainerRun]
    admitted_at: float
    creating_until: float
    deadline: float | None
    grace_s: float
    annotations: Mapping[str, str]
    initialized: bool = False
    stop: Stop | None = None
    pending: PendingResize | None = None  # resize that is not complete
    _looked_at: float = 0.0

    @classmethod
    def of(cls, pod: Pod, admitted_at: float) -> "PodRun":
        """Return the run of a pod that has just been admitted."""
        spec = pod.pod_spec.raw
        settings = pod_settings(pod.annotations)
        deadline = spec.get("activeDeadlineSeconds")
        grace = spec.get("terminationGracePeriodSeconds")
        return cls(
            pod.uid,
            containers_of(pod, settings),
            admitted_at,
            admitted_at + settings.startup_s,
            None if deadline is None else admitted_at + deadline,
            _DEFAULT_GRACE_S if grace is None else float(grace),
            pod.annotations,
        )

    @classmethod
    def resumed(cls, pod: Pod, now: float) -> "PodRun":
        """Return the run of a pod that was admitted earlier, restored from its status."""
        run = cls.of(pod, seconds(pod.start_time) if pod.start_time else now)
        entries = {
            entry.get("name"): entry
            for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
            for entry in pod.status.get(field) or ()
        }
        for container in run.containers:
            if container.name in entries:
                container.resume(entries[container.name])
            elif pod.phase == "Running" and container.role == "main":
                container.start(run.creating_until)  # the status has no entry for the container
        run.initialized = any(container.ran for container in run.containers if container.role == "main")
        message = ended_by_kubelet(pod)
        if message is not None:
            run.stop = Stop(now, 1.0, PREEMPTING if message == PREEMPTED_MESSAGE else EVICTED, message)
        return run

    def _of(self, *roles: str) -> list[ContainerRun]:
        return [container for container in self.containers if container.role in roles]

    # actions

    def told_to_stop(self, stop: Stop) -> None:
        if self.stop is None:
            self.stop = stop

    def configure(self, faults: Mapping[str, str]) -> None:
        """Set the reasons why containers cannot start, by container name; all other containers can start."""
        for container in self.containers:
            container.config_fault = faults.get(container.name, "")

    def follow(self, pod: Pod) -> None:
        """Use the changed annotations and the new ephemeral containers of the pod."""
        ephemeral = pod.pod_spec.raw.get("ephemeralContainers") or ()
        if pod.annotations == self.annotations and len(self._of("ephemeral")) == len(ephemeral):
            return
        self.annotations = pod.annotations
        wanted = containers_of(pod, pod_settings(pod.annotations))
        for mine, anew in zip(self.containers, wanted, strict=False):
            mine.run_s, mine.exit_code, mine.stop_s = anew.run_s, anew.exit_code, anew.stop_s
            mine.pull_fails, mine.never_ready = anew.pull_fails, anew.never_ready
            mine.out_of_memory = anew.out_of_memory
        self.containers += wanted[len(self.containers) :]

    @property
    def allocated(self) -> dict[str, Raw]:
        """The resources allocated to each container of the pod."""
        return {container.name: container.resources for container in self.containers}

    def resize(self, pod: Pod, now: float) -> None:
        """Allocate the resources in the pod's spec to its containers."""
        runs = {container.name: container for container in self.containers}
        for field in ("initContainers", "containers"):
            for container in pod.pod_spec.raw.get(field) or ():
                run, wanted = runs[container.get("name") or ""], stated(container)
                if is_resizable(container, init=field == "initContainers") and differ(run.resources, wanted):
                    run.resize(wanted, now, restarts=restarts(container, run.resources))

    def cut_off(self, now: float) -> None:
        """Kill all running containers."""
        for container in self.containers:
            if container.state == "running":
                container.stop_s = None
                container.exit(now)

    def advance(self, pod: Pod, now: float) -> None:
        """Execute all actions that are due."""
        self._looked_at = now
        while self._step(pod, now):
            pass

    def _step(self, pod: Pod, now: float) -> bool:
        due = [c for c in self.containers if (at := c.exits_at) is not None and at <= now]
        if due:
            first = min(due, key=lambda c: c.exits_at or 0.0)
            first.exit(first.exits_at or 0.0)
            return True
        if self.stop is None and self.deadline is not None and self.deadline <= now and not self.over:
            self.stop = Stop(now, self.grace_s, DEADLINE_EXCEEDED, _DEADLINE_MESSAGE)
            return True
        if self.stop is not None or self._completed:
            return self._stop_next(now)
        if now < self.creating_until:
            return False
        return self._keep_running(pod, now) if self.initialized else self._initialize(pod, now)

    def _initialize(self, pod: Pod, now: float) -> bool:
        """Start the next init container, or all containers after the last one."""
        for container in self._of("init", "sidecar"):
            if container.role == "init" and container.finished_well:
                continue
            if container.state == "running":
                if container.role == "sidecar":
                    continue
                return False
            if not container.ran:
                return _begin(container, now)
            return _restart(container, pod, now)
        self.initialized = True
        for container in self._of("main"):
            container.start(now)
        return True

    def _keep_running(self, pod: Pod, now: float) -> bool:
        changed = any([_restart(container, pod, now) for container in self._of("sidecar", "main")])
        return any([_begin(container, now) for container in self._of("main", "ephemeral")]) or changed

    @property
    def _completed(self) -> bool:
        """True if all work of the pod is done or has become impossible."""
        if any(container.done for container in self._of("init") if container.ended_with):
            return True
        return self.initialized and all(container.done for container in self._of("main"))

    def _stop_next(self, now: float) -> bool:
        """Stop the next container; sidecars are stopped after all other containers, in reverse order."""
        began = now if self.stop is None else self.stop.at
        grace = self.grace_s if self.stop is None else self.stop.grace_s
        others = [container for container in self._of("init", "main", "ephemeral") if container.state == "running"]
        if self.stop is None and any(container.role != "ephemeral" for container in others):
            return False
        for container in others:
            if container.stopped_at is None:
                container.stop(began, grace)
                return True
        if others:
            return False
        ended = max((c.finished_at for c in self._of("init", "main") if c.state == "terminated"), default=began)
        start = ended if self.stop is None else began
        since = max(start, ended)
        for container in reversed(self._of("sidecar")):
            if container.state == "running":
                if container.stopped_at is not None:
                    return False
                container.stop(since, max(0.0, start + grace - since))
                return True
            since = max(since, container.finished_at)
        return False

    # state

    @property
    def running(self) -> bool:
        return any(container.state == "running" for container in self.containers)

    @property
    def over(self) -> bool:
        """True if no container runs or will be started."""
        return not self.running and (self.stop is not None or self._completed)

    @property
    def phase(self) -> Phase:
        if self.over:
            if self.stop is not None and self.stop.reason:
                return "Failed"
            well = self.initialized and all(container.finished_well for container in self._of("main"))
            return "Succeeded" if well else "Failed"
        starts = any(container.state == "waiting" and not container.ran for container in self._of("main"))
        return "Running" if self.initialized and not starts else "Pending"

    @property
    def created(self) -> bool:
        """True if the pod's sandbox exists, so that the pod has an address and containers can start."""
        return not self.over and (self._looked_at >= self.creating_until or any(c.ran for c in self.containers))

    @property
    def next_at(self) -> float | None:
        """Time of the next event, or None if there is none."""
        times = [at for container in self.containers if (at := container.exits_at) is not None]
        if self.stop is None and not self._completed:
            times += [c.restarts_at for c in self.containers if c.state == "waiting" and c.ran and not c.config_fault]
            times += [at for c in self.containers if (at := c.backs_off_at) is not None]
            if self.creating_until > self._looked_at:
                times.append(self.creating_until)
            if self.deadline is not None:
                times.append(self.deadline)
        if self.pending is not None and self.pending.retry_at is not None:
            times.append(self.pending.retry_at)
        return min(times, default=None)

    def statuses(self, *roles: str) -> list[Raw]:
        return [container.status() for container in self._of(*roles)]


def _begin(container: ContainerRun, now: float) -> bool:
    """Start a container that has not run yet, or report why the container cannot start.

    Return whether the container changed.
    """
    if container.state != "waiting" or container.ran:
        return False
    before = container.reason, container.message
    container.start(now)
    return (container.reason, container.message) != before


def _restart(container: ContainerRun, pod: Pod, now: float) -> bool:
    """Restart an ended container, or wait until its back-off has passed. Return whether the container changed."""
    ended = container.state == "terminated" and container.restarts_again
    if not ended and not (container.state == "waiting" and container.ran):
        return False
    if container.restarts_at <= now:
        before = container.reason, container.message
        container.start(now)
        return (container.reason, container.message) != before
    if ended:
        container.back_off(pod)
    return ended


def ended_by_kubelet(pod: Pod) -> str | None:
    """Return the reason why the kubelet is ending this pod, according to its status; None if it is not."""
    target = condition(pod.status, DISRUPTION_TARGET)
    if target is None or target.get("reason") != BY_KUBELET or pod.finished:
        return None
    return target.get("message") or ""
