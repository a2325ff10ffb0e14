"""One container of a simulated pod: its settings, its state, and its entry in the pod's status.

Source: Kubernetes v1.34, pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses), kuberuntime_manager.go.
Units: seconds since the epoch; durations in seconds.
"""

import math
from typing import Any, Final, Literal

import attrs

from kschedd.api.container_ids import image_id, image_reference
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.simulation.annotations import PodSettings
from kschedd.api.text.times import seconds, stamp
from kschedd.controllers.kubelets.backoff import RestartBackoff
from kschedd.controllers.kubelets.resizing import report_of, reported_in

Role = Literal["init", "sidecar", "main", "ephemeral"]
KILLED: Final = 137  # 128 + SIGKILL
CRASH_LOOP: Final = "CrashLoopBackOff"
PULL_FAILED: Final = "ErrImagePull"
PULL_BACK_OFF: Final = "ImagePullBackOff"
NOT_CONFIGURED: Final = "CreateContainerConfigError"
OUT_OF_MEMORY: Final = "OOMKilled"
_PULL_BACK_OFF_S: Final = 10.0
_PROBE_DEFAULTS: Final = {"initialDelaySeconds": 0, "periodSeconds": 10, "failureThreshold": 3}
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
    pull_fails: bool = False
    tried_at: float | None = None  # time of the failed attempt to pull the image
    config_fault: str = ""  # why the container's environment cannot be computed; "" if the container can start
    never_ready: bool = False
    out_of_memory: bool = False  # how it exits by itself

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
        times = [at for at in (own, self.stopped_at) if at is not None and at < math.inf]
        return min(times, default=None)

    @property
    def backs_off_at(self) -> float | None:
        """Time at which the back-off of the failed pull begins, or None."""
        return None if self.tried_at is None or self.reason != PULL_FAILED else self.tried_at + _PULL_BACK_OFF_S

    @property
    def ready(self) -> bool:
        return self.state == "running" and not self.never_ready

    @property
    def restarts_at(self) -> float:
        return self.backoff.restart_at(self.finished_at)

    def start(self, now: float) -> None:
        if self.pull_fails and not self.ran:
            self._fail_to_pull(now)
            return
        self.tried_at = None
        if self.state == "terminated":
            self.last = self.terminated()
        if self.config_fault:
            self.state, self.reason, self.message = "waiting", NOT_CONFIGURED, self.config_fault
            return
        if self.ran:
            self.backoff = self.backoff.after_restart(self.finished_at, now)
            self.restarts += 1
        self.state, self.reason, self.message = "running", "", ""
        self.started_at, self.ran = now, True

    def _fail_to_pull(self, now: float) -> None:
        """Report the failed pull, and after a while the back-off.

        A kubelet reports both again at each later attempt. A simulated kubelet stays in the back-off, so that the pod
        needs no further work.
        """
        if self.tried_at is None:
            self.tried_at = now
        why = pull_failure(self.image)
        backs_off = now >= self.tried_at + _PULL_BACK_OFF_S
        self.state, self.reason = "waiting", PULL_BACK_OFF if backs_off else PULL_FAILED
        self.message = f'Back-off pulling image "{self.image}": {PULL_FAILED}: {why}' if backs_off else why

    def exit(self, at: float) -> None:
        """End the container at its exit time."""
        own = None if self.run_s is None else self.started_at + self.run_s
        self.state, self.finished_at = "terminated", at
        if own is not None and own <= at:
            self.ended_with = self.exit_code
        else:
            self.ended_with = 0 if self.stop_s is not None else KILLED
        self.reason = self._exit_reason

    @property
    def _exit_reason(self) -> str:
        if self.ended_with == KILLED and self.out_of_memory and self.stopped_at is None:
            return OUT_OF_MEMORY
        return "Completed" if self.ended_with == 0 else "Error"

    def back_off(self, pod: Pod) -> None:
        """Set the container to waiting until its restart; the message of the state contains the back-off."""
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
        stuck = self.stop_s == math.inf and grace_s > 0
        wanted = math.inf if stuck else at + (grace_s if self.stop_s is None else min(self.stop_s, grace_s))
        if self.stop_s is not None and self.stop_s > grace_s and not stuck:
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
            "reason": self._exit_reason,
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
            "imageID": image_id(self.image) if self.ran else "",
            "ready": self.finished_well if self.role == "init" else self.ready and self.role != "ephemeral",
            "started": running and self.role != "init",
            "restartCount": self.restarts,
            "state": {self.state: detail},
        }
        if self.role == "ephemeral":
            del entry["started"]
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
    """Return the containers of a pod, none of them started: init, then main, then ephemeral containers."""
    spec = pod.pod_spec.raw
    policy = spec.get("restartPolicy") or "Always"
    inits: list[Raw] = list(spec.get("initContainers") or ())
    mains: list[Raw] = list(spec.get("containers") or ())
    runs = []
    for index, container in enumerate((*inits, *mains, *(spec.get("ephemeralContainers") or ()))):
        name = container.get("name") or ""
        role: Role = "main" if index < len(inits) + len(mains) else "ephemeral"
        if index < len(inits):
            role = "sidecar" if container.get("restartPolicy") == "Always" else "init"
        named_only = role != "main"
        run_s = settings.of("run-seconds", name, named_only=named_only)
        exit_code = settings.of("exit-code", name, named_only=named_only)
        out_of_memory = bool(settings.of("out-of-memory", name, named_only=named_only))
        if out_of_memory:
            exit_code = KILLED
        elif run_s is None and settings.of("liveness", name, named_only=named_only):
            run_s, exit_code = _killed_after_s(container), KILLED
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
                "Never" if role == "ephemeral" else policy,
                reason="PodInitializing" if inits else "ContainerCreating",
                resources=container.get("resources") or _NEVER,
                pull_fails=bool(settings.of("image-pull", name, named_only=named_only)),
                never_ready=bool(settings.of("readiness", name, named_only=named_only)),
                out_of_memory=out_of_memory,
            )
        )
    return runs


def pull_failure(image: str) -> str:
    """Return the error of containerd for an image that does not exist."""
    reference = image_reference(image)
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{reference}": failed to resolve reference '
        f'"{reference}": {reference}: not found'
    )


def _killed_after_s(container: Raw) -> float:
    """Return the time after which a container is killed whose liveness probe always fails."""
    probe = container.get("livenessProbe") or _NEVER
    delay, period, failures = (probe.get(field) or value for field, value in _PROBE_DEFAULTS.items())
    return float(delay + period * (failures - 1))
