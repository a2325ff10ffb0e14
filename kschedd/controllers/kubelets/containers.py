"""One container of a simulated pod: its settings, its state, and its entry in the pod's status.

Source: Kubernetes v1.34, pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses), kuberuntime_manager.go.
Units: seconds since the epoch; durations in seconds.
"""

from typing import Any, Final, Literal

import attrs

from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.simulation.annotations import PodSettings
from kschedd.api.text.times import seconds, stamp
from kschedd.controllers.kubelets.backoff import RestartBackoff
from kschedd.controllers.kubelets.resizing import report_of, reported_in

Role = Literal["init", "sidecar", "main"]
KILLED: Final = 137  # 128 + SIGKILL
CRASH_LOOP: Final = "CrashLoopBackOff"
_NEVER: Final[Raw] = {}
_NO_BACKOFF: Final = RestartBackoff()


@attrs.define(eq=False)
class ContainerRun:
    """A container and its state. `last` is the container's previous terminated state."""

    name: str
    image: str
    role: Role
    run_s: float | None  # time until the container exits; None: it runs until it is stopped
    exit_code: int  # when it exits by itself
    stop_s: float | None  # time in seconds from the stop to the end; None: longer than any grace period
    restart_policy: str
    state: Literal["waiting", "running", "terminated"] = "waiting"
    reason: str = "PodInitializing"
    message: str = ""
    started_at: float = 0.0
    finished_at: float = 0.0
    ended_with: int = 0
    stopped_at: float | None = None  # time at which stopping is complete; None: the container is not being stopped
    restarts: int = 0
    last: Raw = _NEVER
    backoff: RestartBackoff = _NO_BACKOFF
    ran: bool = False
    resources: Raw = _NEVER  # allocated, and in effect

    @property
    def finished_well(self) -> bool:
        return self.state == "terminated" and self.ended_with == 0

    @property
    def restarts_again(self) -> bool:
        """True if the kubelet will restart the ended container."""
        if self.role == "sidecar" or (self.restart_policy == "Always" and self.role == "main"):
            return True
        return self.restart_policy != "Never" and self.ended_with != 0

    @property
    def done(self) -> bool:
        """True if the container has ended and is not restarted."""
        return self.state == "terminated" and not self.restarts_again

    @property
    def exits_at(self) -> float | None:
        """Time at which the container exits by itself or is stopped, or None if unknown."""
        if self.state != "running":
            return None
        own = None if self.run_s is None else self.started_at + self.run_s
        times = [at for at in (own, self.stopped_at) if at is not None]
        return min(times, default=None)

    @property
    def restarts_at(self) -> float:
        return self.backoff.restart_at(self.finished_at)

    def start(self, now: float) -> None:
        if self.state == "terminated":
            self.last = self.terminated()
        if self.ran:
            self.backoff = self.backoff.after_restart(self.finished_at, now)
            self.restarts += 1
        self.state, self.reason, self.message = "running", "", ""
        self.started_at, self.ran = now, True

    def exit(self, at: float) -> None:
        """End the container at its exit time."""
        own = None if self.run_s is None else self.started_at + self.run_s
        self.state, self.finished_at = "terminated", at
        if own is not None and own <= at:
            self.ended_with = self.exit_code
        else:
            self.ended_with = 0 if self.stop_s is not None else KILLED
        self.reason = "Completed" if self.ended_with == 0 else "Error"

    def back_off(self, pod: Pod) -> None:
        """Wait for the restart; the message contains the length of the back-off."""
        self.last = self.terminated()
        self.state, self.reason = "waiting", CRASH_LOOP
        self.message = (
            f"back-off {_go_duration(self.backoff.wait_s)} restarting failed container={self.name} "
            f"pod={pod.name}_{pod.namespace}({pod.uid})"
        )

    def stop(self, at: float, grace_s: float) -> float:
        """Stop the container, beginning at `at`. Return the time at which the container ends."""
        if self.state != "running":
            return at
        wanted = at + (grace_s if self.stop_s is None else min(self.stop_s, grace_s))
        if self.stop_s is not None and self.stop_s > grace_s:
            self.stop_s = None  # the container runs until it is killed after the grace period
        self.stopped_at = wanted
        own = self.exits_at
        return wanted if own is None else min(own, wanted)

    def resize(self, resources: Raw, now: float, *, restarts: bool) -> None:
        """Change the resources, and restart a running container if its resize policy requires a restart."""
        self.resources = resources
        if restarts and self.state == "running":
            self.state, self.finished_at = "terminated", now
            self.ended_with = 0 if self.stop_s is not None else KILLED
            self.start(now)

    # the entry in the status

    def terminated(self) -> Raw:
        return {
            "exitCode": self.ended_with,
            "reason": "Completed" if self.ended_with == 0 else "Error",
            "startedAt": stamp(self.started_at),
            "finishedAt": stamp(self.finished_at),
        }

    def status(self) -> Raw:
        detail: dict[str, Any]
        if self.state == "running":
            detail = {"startedAt": stamp(self.started_at)}
        elif self.state == "terminated":
            detail = dict(self.terminated())
        else:
            detail = {"reason": self.reason} | ({"message": self.message} if self.message else {})
        running = self.state == "running"
        entry: dict[str, Any] = {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "ready": self.finished_well if self.role == "init" else running,
            "started": running and self.role != "init",
            "restartCount": self.restarts,
            "state": {self.state: detail},
        }
        if self.last:
            entry["lastState"] = {"terminated": self.last}
        return entry | report_of(self.resources) if self.ran else entry

    def resume(self, entry: Raw) -> None:
        """Restore the state of a container from its status."""
        state = entry.get("state") or {}
        last = (entry.get("lastState") or {}).get("terminated")
        self.restarts = entry.get("restartCount") or 0
        had = reported_in(entry)
        if had is not None:
            self.resources = had
        self.last = last or _NEVER
        if last is not None:
            self.ran, self.finished_at, self.ended_with = True, _time(last, "finishedAt"), last.get("exitCode") or 0
        if "running" in state:
            self.state, self.ran, self.reason = "running", True, ""
            self.started_at = _time(state["running"], "startedAt")
            self.backoff = RestartBackoff.presumed(self.restarts, self.started_at)
        elif "terminated" in state:
            ended = state["terminated"]
            self.state, self.ran, self.reason = "terminated", True, ended.get("reason") or ""
            self.started_at, self.finished_at = _time(ended, "startedAt"), _time(ended, "finishedAt")
            self.ended_with = ended.get("exitCode") or 0
            self.backoff = RestartBackoff.presumed(self.restarts, self.started_at)
        elif "waiting" in state:
            self.reason = state["waiting"].get("reason") or ""
            self.message = state["waiting"].get("message") or ""
            self.started_at = _time(last or {}, "startedAt")
            self.backoff = RestartBackoff.presumed(self.restarts, self.started_at)


def _time(entry: Raw, field: str) -> float:
    try:
        return seconds(entry.get(field) or "1970-01-01T00:00:00Z")
    except ValueError:
        return 0.0


def _go_duration(wait_s: float) -> str:
    """Return a duration in whole seconds as Go prints it: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(int(wait_s), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def containers_of(pod: Pod, settings: PodSettings) -> list[ContainerRun]:
    """Return the containers of a pod, init containers first, none of them started."""
    spec = pod.pod_spec.raw
    policy = spec.get("restartPolicy") or "Always"
    inits: list[Raw] = list(spec.get("initContainers") or ())
    runs = []
    for container in (*inits, *(spec.get("containers") or ())):
        name = container.get("name") or ""
        is_init = any(container is each for each in inits)
        role: Role = ("sidecar" if container.get("restartPolicy") == "Always" else "init") if is_init else "main"
        run_s = settings.of("run-seconds", name, named_only=is_init)
        exit_code = settings.of("exit-code", name, named_only=is_init)
        if role == "init" and run_s is None:
            run_s = 0.0
        if role == "main" and run_s is None and exit_code:
            run_s = 0.0  # a container that is annotated to fail fails immediately
        runs.append(
            ContainerRun(
                name,
                container.get("image") or "",
                role,
                run_s,
                int(exit_code or 0),
                settings.of("termination-seconds", name),
                policy,
                reason="PodInitializing" if inits else "ContainerCreating",
                resources=container.get("resources") or _NEVER,
            )
        )
    return runs
