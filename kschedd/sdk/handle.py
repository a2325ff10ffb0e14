"""Operations that a cluster in this process and a cluster behind a socket share; each calls methods of METHODS.md."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload

import attrs

from kschedd.api.conditions import condition
from kschedd.api.schemas.kinds import lookup
from kschedd.api.text.durations import parse_span
from kschedd.api.text.times import LAST_S
from kschedd.causes.answers import DiagnosisAnswer, ObjectNamed, PendingGroup
from kschedd.clusters.answers import FitsAnswer, NeededAnswer
from kschedd.errors import KscheddError
from kschedd.explain.answers import DecisionAnswer
from kschedd.sdk.manifests import Manifests, merged, sources
from kschedd.sdk.records import Records
from kschedd.sdk.records_of_objects import NodeRecord, PendingPod, PodRecord, node_records, pod_records
from kschedd.sdk.shown_answers import ConfigComparison, PlannedChanges, WorkloadExplanation, compared, explained
from kschedd.service.errors import RpcError
from kschedd.service.objects.answers import ApplyAnswer, DeletionAnswer, FaultAnswer
from kschedd.service.scheduling.answers import QueueAnswer
from kschedd.simulation.comparing.comparison import PlacementComparison
from kschedd.verbs.command_line.workload_pods import with_workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Raw = Mapping[str, Any]
T = TypeVar("T")
Explanation = WorkloadExplanation
"""The verdict of `explain`: the cause, its evidence, and remedies."""

Configuration = str | Path | Raw
"""A KubeSchedulerConfiguration: text, the path of a file, or a mapping."""

Commands = str | Sequence[str]
"""One or more commands of the command line, such as "drain node-1 --ignore-daemonsets"."""

DEFAULT_NAMESPACE: Final = "default"
_HEREDOC: Final = re.compile(r"(?P<command>[^\n]*?) <<'?EOF'?\n(?P<given>.*\n)EOF\n?", re.DOTALL)
_ALL: Final = 100_000  # maximum number of decisions in one answer


@attrs.define(eq=False)
class ApplyError(KscheddError):
    """Rejected objects. The valid objects were applied nevertheless.

    `faults`: one for each rejected object, with its place (source, line, path) and the reason.
    """

    faults: Sequence[FaultAnswer]

    def __str__(self) -> str:
        return "\n".join(fault.message for fault in self.faults)


@attrs.define(eq=False)
class CommandFailedError(KscheddError):
    """A command that failed. `output`: the printed output of the command, with its error; `status`: its exit status."""

    command: str
    output: str
    status: int

    def __str__(self) -> str:
        return f"{self.command}: {self.output.strip()}"


@attrs.frozen(kw_only=True)
class AppliedRecord:
    """An object that was applied, and what happened to it. `action`: created, configured or unchanged."""

    kind: str
    namespace: str
    name: str
    action: str


@attrs.frozen(kw_only=True)
class MovedPod:
    """A pod whose node is another one in a second cluster.

    None means that the pod has no node, or does not exist in that cluster.
    """

    namespace: str
    name: str
    node: str | None
    other_node: str | None


class ClusterHandle(ABC):
    """A handle for a cluster: it applies objects and queries the cluster's state.

    Names of pods are `name` in the namespace "default", or `namespace/name`. Durations are texts such as "5m" or
    numbers of seconds. Methods raise RpcError, with the fields `code`, `message` and `data`, if the cluster rejects the
    request.
    """

    @abstractmethod
    def call(self, method: str, /, **params: Any) -> Any:
        """Call a method of METHODS.md and return its result as maps, lists and plain values."""

    @abstractmethod
    def _call(self, answer: Any, method: str, /, **params: Any) -> Any:
        """Call a method and return its result as an instance of `answer`, a class or a sequence type of a class."""

    @abstractmethod
    def _list(self, kind: str) -> Sequence[Raw]:
        """Return the manifests of all objects of a kind, sorted by namespace and name; they must not be changed."""

    @abstractmethod
    def advance(self, duration: str | float) -> None:
        """Let virtual time pass; every event that becomes due is processed: backoffs, deletions, Jobs that complete."""

    @property
    @abstractmethod
    def time(self) -> float:
        """The present time of the cluster, in seconds since the epoch."""

    @property
    @abstractmethod
    def elapsed(self) -> float:
        """Seconds of virtual time since the start of the cluster; for a daemon, since `connect`."""

    @abstractmethod
    def _next_moment(self) -> float | None:
        """Return the next time at which an event is due; None without such an event."""

    @abstractmethod
    def _advance_to(self, moment: float) -> None:
        """Let virtual time pass until this time."""

    @abstractmethod
    def run_until_idle(self, limit: str | float = "1h") -> bool:
        """Let time pass until no work is left, except retries that would fail again and future runs of CronJobs.

        Returns False if work is left after `limit`.
        """

    def run_until(self, condition: Callable[[Self], bool], limit: str | float = "1h") -> bool:
        """Let time pass, from one deadline to the next, until `condition` is true for this cluster.

        `condition`: called with this cluster. Returns False if the condition is still not true after `limit`. Time
        moves to the limit even if no event is due.
        """
        end = self.time + seconds(limit)
        while not condition(self):
            moment = self._next_moment()
            if moment is None or moment > end:
                self._advance_to(end)
                return condition(self)
            self._advance_to(moment)
        return True

    @abstractmethod
    def _execute(self, command: str, given: str) -> tuple[str, int]:
        """Run a command; return its output and its exit status."""

    def run(self, command: str, given: str = "") -> str:
        """Run a command line, such as "explain a" or "get nodes -o wide", and return its output.

        `given`: the standard input of the command. The input may also follow the command in the form `<<'EOF'`, as in
        the commands of remedies. Raises CommandFailedError if the command fails. An exit status that is an answer, such
        as 1 of `diff` or `plan`, is not a failure.
        """
        # imported here, because many programs run no command
        from kschedd.verbs.table import BY_NAME, WRONG_USE, short_words

        words = checked("command", command, str).split()
        if not words:
            raise ValueError('command: a verb is required, such as "get pods"')
        heredoc = _HEREDOC.fullmatch(command)
        if heredoc is not None and not given:
            command, given = heredoc["command"], heredoc["given"]
        text, status = self._execute(command, given)
        verb = BY_NAME.get(short_words(words)[0])
        if status == WRONG_USE or (status and verb is not None and status == verb.failed):
            raise CommandFailedError(command, text, status)
        return text

    @abstractmethod
    def fork(self) -> "ClusterHandle":
        """Return a copy of the cluster that continues in virtual time by itself; close it when it is not needed."""

    @abstractmethod
    def close(self) -> None:
        """Release the cluster, which cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- changes ------------------------------------------------------------------------------------------------

    def apply(self, *manifests: Manifests, namespace: str = DEFAULT_NAMESPACE) -> Records[AppliedRecord]:
        """Create or update objects as `kubectl apply` does. `namespace`: the namespace of objects that have none.

        Raises ApplyError if any object is rejected, OSError for an unreadable file, TypeError and ValueError for input
        that is not a manifest.
        """
        done: list[AppliedRecord] = []
        faults: list[FaultAnswer] = []
        for source, content in sources(manifests):
            found = self._call(ApplyAnswer, "objects.apply", manifests=content, source=source, namespace=namespace)
            done += [
                AppliedRecord(kind=each.kind, namespace=each.namespace, name=each.name, action=each.action)
                for each in found.results
            ]
            faults += found.errors
        if faults:
            raise ApplyError(faults)
        return Records(AppliedRecord, done)

    def delete(
        self,
        kind: str,
        name: str | None = None,
        namespace: str | None = None,
        *,
        selector: str | None = None,
        grace_period_s: int | None = None,
    ) -> None:
        """Delete one object by its name, or all objects of a kind whose labels a selector matches.

        `kind`: such as "Pod", "deployment" or "deploy". `namespace`: None is "default". `selector`: such as
        "app=web,tier!=db"; it is not an error if no object matches. `grace_period_s`: seconds; with None, a running pod
        gets the grace period of its manifest.
        """
        self._call(
            DeletionAnswer,
            "objects.delete",
            kind=kind,
            name=name,
            label_selector=selector,
            namespace=namespace,
            grace_period_s=grace_period_s,
        )

    def patch(
        self, kind: str, name: str, patch: Raw | Sequence[Raw], namespace: str | None = None, *, type: str = ""
    ) -> Raw:
        """Patch one object and return its new manifest.

        `type`: "strategic" (the default for a map), "merge", or "json" (the default for a list of operations).
        """
        chosen = type or ("strategic" if isinstance(patch, Mapping) else "json")
        answer = self.call("objects.patch", kind=kind, name=name, namespace=namespace, patch=patch, type=chosen)
        found: Raw = answer["object"]
        return found

    def scale(self, kind: str, name: str, replicas: int, namespace: str | None = None) -> None:
        """Set the number of replicas of a workload, such as scale("Deployment", "web", 5)."""
        self.call("objects.scale", kind=kind, name=name, namespace=namespace, replicas=replicas)

    # -- questions ----------------------------------------------------------------------------------------------

    def get(self, kind: str, name: str, namespace: str | None = None) -> Raw:
        """Return the manifest of one object.

        `namespace`: None is "default". Raises RpcError with the code "not_found".
        """
        found: Raw = self.call("objects.get", kind=kind, name=name, namespace=namespace)["object"]
        return found

    def list(self, kind: str, namespace: str | None = None, *, selector: str | None = None) -> Sequence[Raw]:
        """Return the manifests of a kind's objects. `namespace`: None is all. `selector`: as in `delete`."""
        found: Sequence[Raw] = self.call("objects.list", kind=kind, namespace=namespace, label_selector=selector)[
            "items"
        ]
        return found

    @property
    def pods(self) -> Records[PodRecord]:
        """All pods, sorted by namespace and name."""
        return pod_records(self._list("Pod"), self._list("Node"))

    @property
    def nodes(self) -> Records[NodeRecord]:
        """All nodes, sorted by name."""
        return node_records(self._list("Node"), self._list("Pod"))

    def placements(self) -> dict[str, str | None]:
        """Return the node of each pod; None for a pod without a node.

        The keys are `name` for pods in the namespace "default", and `namespace/name` for others.
        """
        return {
            name if namespace == DEFAULT_NAMESPACE else f"{namespace}/{name}": node
            for (namespace, name), node in self._nodes_of_pods().items()
        }

    def pending(self) -> Records[PendingPod]:
        """Return the pods without a node that are neither finished nor being deleted, each with the reason."""
        queued = {entry.key: entry for entry in self._call(QueueAnswer, "queue.list").pods}
        found = []
        for raw in self._list("Pod"):
            meta, status = raw["metadata"], raw.get("status") or {}
            over = status.get("phase") in ("Succeeded", "Failed") or meta.get("deletionTimestamp")
            if raw["spec"].get("nodeName") or over:
                continue
            entry = queued.get(f"{meta['namespace']}/{meta['name']}")
            found.append(
                PendingPod(
                    namespace=meta["namespace"],
                    name=meta["name"],
                    message=_message(status) or ("" if entry is None else entry.message),
                    place="" if entry is None else entry.place,
                    attempts=0 if entry is None else entry.attempts,
                    plugins=() if entry is None else tuple(entry.unschedulable_plugins),
                )
            )
        return Records(PendingPod, found)

    def message(self, name: str) -> str:
        """Return the message in a pod's PodScheduled condition: the reason why it has no node; "" if it has one."""
        namespace, _, plain_name = checked("name", name, str).rpartition("/")
        return _message(self.get("Pod", plain_name, namespace or DEFAULT_NAMESPACE).get("status") or {})

    def explain(self, name: str | PodRecord | PendingPod | ObjectNamed, *, remedies: bool = True) -> Explanation:
        """Return the cause of a problem of a workload, a pod or a node, and remedies that were verified on forks.

        `name`: `pod`, `kind/name`, `namespace/pod` or `namespace/kind/name`, such as "web-0" or "deployment/web"; or a
        record from `pods`, from `pending()` or from an explanation. `remedies`: False returns only the cause, in less
        time. The result contains `cause.code`, `cause.message`, and `remedies`, the best first; each has a `summary`,
        and `commands` for `run`.
        """
        kind, namespace, plain_name = _reference(checked("name", name, str, PodRecord, PendingPod, ObjectNamed))
        try:
            found: DiagnosisAnswer = self._call(
                DiagnosisAnswer, "causes.explain", kind=kind, name=plain_name, namespace=namespace, remedies=remedies
            )
        except RpcError as missing:
            if kind != "Pod":
                raise
            raise with_workload(self.call, missing, plain_name, namespace) from None
        return explained(found)

    def causes(self, namespace: str | None = None, *, remedies: int = 0) -> Records[PendingGroup]:
        """Return the pending pods, grouped by the cause for which they are pending, the largest group first.

        `namespace`: None is all. `remedies`: the number of groups (0 to 20) for which a remedy is sought; in other
        groups, `remedy` is None. `explain` seeks all remedies for a workload.
        """
        found = self._call(Sequence[PendingGroup], "causes.pending", namespace=namespace, remedies=remedies)
        return Records(PendingGroup, found)

    @property
    def decisions(self) -> Records[DecisionAnswer]:
        """The latest scheduling attempts in the log, the newest last; the log has at least 20,000."""
        return Records(DecisionAnswer, self._call(Sequence[DecisionAnswer], "scheduler.decisions", limit=_ALL))

    def capacity(self, *manifests: Manifests, together: bool = False) -> Records[FitsAnswer]:
        """Return how many more pods of each spec fit at present: one record for each spec, with the field `fits`.

        `manifests`: pods, or workloads with a pod template. `together`: count sets that contain one pod of each spec,
        in one record. Counting ends at 10,000; then `limited` is True.
        """
        return Records(
            FitsAnswer,
            self._call(Sequence[FitsAnswer], "capacity.pods", manifests=merged(manifests), together=together),
        )

    def nodes_needed(self, shapes: Raw | Sequence[Raw], *manifests: Manifests, limit: int = 512) -> NeededAnswer:
        """Return the smallest number of additional nodes of these shapes with which all pods of the manifests fit.

        `shapes`: Node manifests, or maps `{manifest, name, price}`. The total price is minimized; the default price of
        a node is 1. Without manifests, nodes for the pending pods are computed. `limit`: the maximum number of nodes of
        one shape.
        """
        several = [shapes] if isinstance(shapes, Mapping) else shapes
        given = [shape if "manifest" in shape else {"manifest": shape} for shape in several]
        found: NeededAnswer = self._call(
            NeededAnswer, "capacity.nodes", manifests=merged(manifests), shapes=given, limit=limit
        )
        return found

    @overload
    def compare(self, other: "ClusterHandle") -> Records[MovedPod]: ...
    @overload
    def compare(self, *, config: Configuration, manifests: Manifests = ()) -> ConfigComparison: ...
    def compare(
        self, other: "ClusterHandle | None" = None, *, config: Configuration | None = None, manifests: Manifests = ()
    ) -> "Records[MovedPod] | ConfigComparison":
        """Return the differences from another cluster, or from another configuration of this cluster.

        `other`: returns the pods that have another node in that cluster, sorted by namespace and name. `config`:
        schedules `manifests` on two copies, one with the present configuration and one with this configuration, and
        with the same random numbers. Returns the pods whose nodes differ, with the plugin that decided. Without
        manifests, each pod of the cluster is scheduled independently, as if it were pending.
        """
        if (other is None) == (config is None):
            raise TypeError("compare: another cluster or `config` is required")
        if other is None:
            present: str = self.call("config.convert")["text"]
            answer: PlacementComparison = self._call(
                PlacementComparison,
                "capacity.compare",
                configs=[present, config_text(config)],
                names=["present", "config"],
                manifests=merged([manifests]),
            )
            return compared(answer)
        ours, theirs = self._nodes_of_pods(), checked("other", other, ClusterHandle)._nodes_of_pods()
        found = [
            MovedPod(namespace=key[0], name=key[1], node=ours.get(key), other_node=theirs.get(key))
            for key in sorted(ours.keys() | theirs.keys())
            if ours.get(key) != theirs.get(key) or (key in ours) != (key in theirs)
        ]
        return Records(MovedPod, found)

    def _nodes_of_pods(self) -> dict[tuple[str, str], str | None]:
        """Return the node of each pod by namespace and name."""
        return {
            (raw["metadata"]["namespace"], raw["metadata"]["name"]): raw["spec"].get("nodeName") or None
            for raw in self._list("Pod")
        }

    # -- plots --------------------------------------------------------------------------------------------------

    def plot_utilization(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the requested share of each node's CPU and memory, and return the matplotlib Axes.

        The plot has a bar for each node; for more than 60 nodes it is a histogram. `axes`: the Axes to draw on; None:
        new Axes. Raises MissingLibraryError.
        """
        from kschedd.sdk.plots import utilization  # an extra

        return utilization(self.nodes, axes)

    def plot_causes(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the number of pending pods by cause, as `plot_utilization` draws; return the matplotlib Axes."""
        from kschedd.sdk.plots import causes  # an extra

        return causes(self.causes(), axes)

    @abstractmethod
    def plan(self, change: "Callable[[Any], object] | Commands", *, within: str | float = "1h") -> PlannedChanges:
        """Return the effects of a change: the change is made on a fork, which then runs until it is idle.

        `change`: a function that is called with the fork, or one or more commands in the form of `kschedd plan`, such
        as "drain node-1 --ignore-daemonsets". `within`: the virtual time after which the fork stops at the latest.
        Raises CommandFailedError if the command fails.
        """

    def _make(self, change: "Callable[[Self], object] | Commands") -> None:
        """Make a change of `plan`."""
        if callable(change):
            change(self)
            return
        for command in [change] if isinstance(change, str) else checked("change", change, Sequence):
            self.run(command)


def config_text(config: Configuration | None) -> str:
    """Return a configuration as text."""
    if isinstance(config, Path):
        return config.read_text(encoding="utf-8")
    return config if isinstance(config, str) else json.dumps(config)


def checked(name: str, value: T, *kinds: type[Any]) -> T:
    """Return an argument if it is an instance of one of these classes. Raises TypeError."""
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{name}: {value!r:.100}: {wanted} is required, not {type(value).__name__}")
    return value


def seconds(duration: str | float) -> float:
    """Return a duration in seconds: a number, or text such as "1m30s". Raises DurationError, TypeError, ValueError."""
    checked("duration", duration, str, int, float)
    found = parse_span(duration) if isinstance(duration, str) else float(duration)
    if not 0 <= found <= LAST_S:
        raise ValueError(f'duration: {duration!r}: 0 or more is required, such as 90 or "1m30s"')
    return found


def _reference(name: str | PodRecord | PendingPod | ObjectNamed) -> tuple[str, str, str]:
    """Return kind, namespace and name of a record, or of a text in one of four forms such as `kind/name`."""
    if not isinstance(name, str):
        return name.kind if isinstance(name, ObjectNamed) else "Pod", name.namespace, name.name
    match name.split("/"):
        case [pod]:
            return "Pod", DEFAULT_NAMESPACE, pod
        case [kind, plain_name] if lookup(kind).known:
            return kind, DEFAULT_NAMESPACE, plain_name
        case [namespace, pod]:
            return "Pod", namespace, pod
        case [namespace, kind, plain_name]:
            return kind, namespace, plain_name
    raise ValueError(f"{name!r}: pod, kind/name, namespace/pod or namespace/kind/name is required")


def _message(status: Raw) -> str:
    found = condition(status, "PodScheduled")
    return str(found.get("message") or "") if found is not None and found.get("status") == "False" else ""
