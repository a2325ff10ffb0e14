"""drain and evict: evictions of the pods of a node, or of pods by name, within their disruption budgets.

`drain` cordons all nodes, and then drains them one after the other. The verb evicts all pods that `drain_filters`
selects. If a pod's budget does not allow the eviction, the eviction is retried every 5 seconds, until all pods are gone
or the time limit is reached. After Ctrl-C, the nodes remain cordoned and the remaining pods are listed.

Source: kubectl v1.34, pkg/drain/drain.go, pkg/cmd/drain/drain.go. The messages are kubectl's, except for the indented
lines that explain why a budget blocks an eviction.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.schemas.kinds import lookup
from kschedd.api.selecting.selector_text import parse_selector_text
from kschedd.api.text.durations import DurationError, parse_duration, show_duration
from kschedd.errors import KscheddError
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    LiveState,
    UsageError,
    VerbParser,
    dry_run_flag,
    may_go_on,
    namespace_flags,
    namespace_of,
    verb,
    yes_flag,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import get_object, with_near_name
from kschedd.verbs.nodes.drain_blockers import blockers
from kschedd.verbs.nodes.drain_filters import (
    DrainFlags,
    PodDeleteStatus,
    delete_status,
    errors,
    is_long_deleted,
    warnings,
)
from kschedd.verbs.nodes.nodes import NODE, node_names, set_cordon

POD: Final = lookup("pod")
RETRY_S: Final = 5.0  # after a budget refused
POLL_S: Final = 1.0  # whether pods are gone
DRY_RUN_WORDS: Final = {"none": "", "client": " (dry run)", "server": " (server dry run)"}

Raw = Mapping[str, Any]


@attrs.define(eq=False)
class DrainError(KscheddError):
    """The error if a node cannot be drained; several reasons are joined in the format of Go's aggregate errors."""

    reasons: tuple[str, ...]

    def __str__(self) -> str:
        unique = tuple(dict.fromkeys(self.reasons))
        return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"


@attrs.define(eq=False)
class _Leaving:
    """A pod to remove from the node; it will be evicted at `next_try` (None: it is already terminating)."""

    pod: Raw
    next_try: float | None
    cause: str = ""  # the message with which a PodDisruptionBudget rejected the latest attempt

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"].get("namespace") or "default")


# -- drain ----------------------------------------------------------------------------------------------------------


def _drain_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="NODE...")
    words.add_argument("-l", "--selector", metavar="LABELS", help="nodes with these labels")
    words.add_argument("--pod-selector", metavar="LABELS", default="", help="pods with these labels")
    words.add_argument("--ignore-daemonsets", action="store_true", help="ignore pods of DaemonSets")
    words.add_argument("--delete-emptydir-data", action="store_true", help="also evict pods with emptyDir volumes")
    words.add_argument("--force", action="store_true", help="also evict pods without a controller")
    words.add_argument(
        "--grace-period",
        type=int,
        default=-1,
        metavar="SECONDS",
        help="seconds for pods to terminate; negative: the value in the pod's spec (-1)",
    )
    words.add_argument("--timeout", default="0", metavar="DURATION", help="time limit; 0: none (0)")
    words.add_argument(
        "--disable-eviction",
        action="store_true",
        help="delete pods instead of evicting them, ignoring PodDisruptionBudgets",
    )
    words.add_argument(
        "--skip-wait-for-delete-timeout",
        type=int,
        default=0,
        metavar="SECONDS",
        help="do not wait for pods whose deletion is older than this; 0: always wait (0)",
    )
    dry_run_flag(words)
    yes_flag(words)


@verb(
    "drain",
    "Cordon nodes, evict their pods, and wait until they are deleted.",
    _drain_words,
    examples=(
        "drain node-a --ignore-daemonsets --delete-emptydir-data",
        "drain -l zone=a --timeout=5m --grace-period=30",
        "drain node-a --force --dry-run",
    ),
    completes="node",
)
def drain(session: VerbSession, options: argparse.Namespace) -> int:
    timeout_s = _timeout(options.timeout)
    if not options.what and not options.selector:
        raise UsageError("USAGE: drain NODE [flags]", "drain")
    if options.what and options.selector:
        raise UsageError("cannot specify both a node name and a --selector option", "drain")
    try:
        parse_selector_text(options.pod_selector)
    except KscheddError:
        raise UsageError("--pod-selector=<pod_selector> must be a valid label selector", "drain") from None
    names = node_names(session, options, options.what)
    for name in names:
        get_object(session, NODE, name, None)  # if any of the nodes does not exist, no pod is evicted
    if not may_go_on(session, options, f"Evict the pods of {', '.join(names)}?"):
        return 1
    set_cordon(session, names, True, options.dry_run)
    failed: dict[str, DrainError] = {}
    for place, name in enumerate(names):
        try:
            _Drain(session, options, name, timeout_s).run()
        except DrainError as error:
            failed[name] = error
            session.write_error(f'error: unable to drain node "{name}" due to error: {error}, continuing command...\n')
        except KscheddError:
            raise
        except BaseException:  # Ctrl-C, or a cancellation in the REPL
            _interrupted(session, [*failed, *names[place:]])
            raise
        else:
            session.write(f"node/{name} drained{DRY_RUN_WORDS[options.dry_run]}\n")
    if failed:
        session.write_error("There are pending nodes to be drained:\n" + "".join(f" {name}\n" for name in failed))
        reasons = dict.fromkeys(reason for error in failed.values() for reason in error.reasons)
        session.write_error("".join(f"{reason}\n" for reason in reasons))
    return 1 if failed else 0


def _timeout(text: str) -> float:
    try:
        return parse_duration(text.removeprefix("="))
    except DurationError as wrong:
        raise UsageError(
            f'invalid argument "{text}" for "--timeout" flag: {wrong}; expected a duration such as 30s or 5m', "drain"
        ) from None


def _interrupted(session: VerbSession, names: Sequence[str]) -> None:
    nodes, listed = " ".join(names), ", ".join(f"node/{name}" for name in names)
    session.write_error(
        f"interrupted: {listed} not drained, and still cordoned; the evictions made so far stand\n"
        f"`{session.program}drain {nodes}` goes on, `{session.program}uncordon {nodes}` lets pods onto it again\n"
    )


@attrs.define(eq=False)
class _Drain:
    """The drain of one node. `timeout_s`: 0 for none."""

    _session: VerbSession
    _options: argparse.Namespace
    _node: str
    _timeout_s: float
    _reported: set[str] = attrs.field(factory=set)

    def run(self) -> None:
        """Drain the node. Raises DrainError."""
        found = self._pods_for_deletion()
        if fatal := errors(found):
            raise DrainError(tuple(fatal))
        if text := warnings(found):
            self._session.warn(text)
        going = [_Leaving(pod, self._session.now()) for pod, status in found if status.delete]
        dry_run = self._options.dry_run
        if dry_run == "client":
            for each in going:
                self._session.write(f"evicting pod {each.namespace}/{each.name}{DRY_RUN_WORDS[dry_run]}\n")
            return
        reasons = self._delete(going) if self._options.disable_eviction else self._evict(going)
        if reasons:
            failure = DrainError(tuple(reasons))
            self._tell_pending(failure)
            raise failure

    def _pods_for_deletion(self) -> list[tuple[Raw, PodDeleteStatus]]:
        """Return the pods of the node, each with the decision about it."""
        options = self._options
        flags = DrainFlags(
            options.force, options.ignore_daemonsets, options.delete_emptydir_data, options.skip_wait_for_delete_timeout
        )
        known: dict[tuple[str, str], str | None] = {}

        def daemon_set_error(namespace: str, name: str) -> str | None:
            if (namespace, name) not in known:
                known[namespace, name] = self._not_found("DaemonSet", namespace, name)
            return known[namespace, name]

        now = self._session.cluster_now() if options.skip_wait_for_delete_timeout else 0.0
        return [(pod, delete_status(pod, flags, daemon_set_error, now)) for pod in self._pods()]

    def _not_found(self, kind: str, namespace: str, name: str) -> str | None:
        try:
            self._session.daemon.call("objects.get", kind=kind, name=name, namespace=namespace)
        except RpcError as error:
            if error.code != "not_found":
                raise
            return error.message
        return None

    def _pods(self) -> list[Raw]:
        answer = self._session.daemon.call(
            "objects.list",
            kind="Pod",
            label_selector=self._options.pod_selector or None,
            field_selector=f"spec.nodeName={self._node}",
        )
        items: list[Raw] = answer["items"]
        return items

    def _tell_pending(self, failure: DrainError) -> None:
        pending = [pod for pod, status in self._pods_for_deletion() if status.delete]
        if pending:
            self._session.write_error(
                f'There are pending pods in node "{self._node}" when an error occurred: {failure}\n'
                + "".join(f"pod/{pod['metadata']['name']}\n" for pod in pending)
            )

    # -- evicting ---------------------------------------------------------------------------------------------------

    def _evict(self, going: list[_Leaving]) -> list[str]:
        """Evict the pods and wait until they are gone; return the reasons for failures by pod."""
        deadline = self._session.now() + self._timeout_s if self._timeout_s else math.inf
        reasons: list[str] = []
        while True:
            late = self._session.now() >= deadline
            for each in list(going):
                if each.next_try is None:
                    if late:
                        where = f'"{each.name}" in namespace "{each.namespace}"'
                        reasons.append(f"error when waiting for pod {where} to terminate: {self._over()}")
                elif late or each.next_try <= self._session.now():
                    self._session.write(self._evicting(each))
                    if late:
                        reasons.append(f"error when evicting {_shown(each)}: {self._over()}")
                    elif (reason := self._try(each)) is not None:
                        going.remove(each)
                        reasons += [reason] if reason else []
            if late:
                return reasons
            waiting = [each for each in going if each.next_try is None]
            for each in self._gone(waiting):
                going.remove(each)
                self._session.write(f"pod/{each.name} evicted\n")
            if not going:
                return reasons
            times = [each.next_try for each in going if each.next_try is not None]
            if any(each.next_try is None for each in going):
                times.append(self._session.now() + POLL_S)
            self._session.sleep(max(0.0, min(*times, deadline) - self._session.now()))

    def _evicting(self, each: _Leaving) -> str:
        return f"evicting pod {each.namespace}/{each.name}{DRY_RUN_WORDS[self._options.dry_run]}\n"

    def _over(self) -> str:
        return f"global timeout reached: {show_duration(self._timeout_s)}"

    def _try(self, each: _Leaving) -> str | None:
        """Evict the pod. Evict a pod; return None to wait or retry, the reason of a failure, or "" for success."""
        try:
            self._session.daemon.call(
                "pods.evict",
                name=each.name,
                namespace=each.namespace,
                grace_period_s=_grace(self._options),
                dry_run=self._options.dry_run != "none",
            )
        except RpcError as error:
            if error.code == "not_found":
                return ""
            if error.code != "too_many_requests":
                self._report_cause(each, error)
                return f"error when evicting {_shown(each)}: {error}"
            self._session.write_error(f"error when evicting {_shown(each)} (will retry after 5s): {error}\n")
            self._report_cause(each, error)
            each.next_try = self._session.now() + RETRY_S
            return None
        each.next_try = None
        return None if self._options.dry_run == "none" else ""

    def _report_cause(self, each: _Leaving, error: RpcError) -> None:
        """Report why the budget blocks the eviction, unless already reported."""
        lines = blockers(self._session.daemon, each.namespace, error.data)
        cause = "".join(f"  {line}\n" for line in lines)
        if cause != each.cause and cause not in self._reported:
            self._session.write_error(cause)
            self._reported = {cause}
        each.cause = cause

    # -- deleting, and waiting --------------------------------------------------------------------------------------

    def _delete(self, going: list[_Leaving]) -> list[str]:
        """Delete the pods and wait until they are gone; return the reason for a failure."""
        for each in going:
            try:
                self._session.daemon.call(
                    "objects.delete",
                    kind="Pod",
                    name=each.name,
                    namespace=each.namespace,
                    grace_period_s=_grace(self._options),
                    dry_run=self._options.dry_run != "none",
                )
            except RpcError as error:
                if error.code != "not_found":
                    return [str(error)]
        text = f"deleted{DRY_RUN_WORDS[self._options.dry_run]}"
        if self._options.dry_run != "none":
            self._session.write("".join(f"pod/{each.name} {text}\n" for each in going))
            return []
        deadline = self._session.now() + self._timeout_s if self._timeout_s else math.inf
        while True:
            for each in self._gone(going):
                going.remove(each)
                self._session.write(f"pod/{each.name} {text}\n")
            if not going:
                return []
            if self._session.now() >= deadline:
                return [self._over()]
            self._session.sleep(min(POLL_S, deadline - self._session.now()))

    def _gone(self, waiting: Sequence[_Leaving]) -> Iterator[_Leaving]:
        """Yield the pods that no longer exist, and the pods that the drain need not await."""
        if not waiting:
            return
        there = {pod["metadata"]["uid"]: pod for pod in self._pods()}
        limit_s = self._options.skip_wait_for_delete_timeout
        now = self._session.cluster_now() if limit_s else 0.0
        for each in list(waiting):
            pod = there.get(each.pod["metadata"]["uid"])
            if pod is not None and is_long_deleted(pod, limit_s, now):
                self._session.write(f'pod "{each.name}" has DeletionTimestamp older than {limit_s} seconds, skipping\n')
                yield each
            elif pod is None:
                yield each


def _grace(options: argparse.Namespace) -> int | None:
    return options.grace_period if options.grace_period >= 0 else None


def _shown(each: _Leaving) -> str:
    return f'pods/"{each.name}" -n "{each.namespace}"'


# -- evict ----------------------------------------------------------------------------------------------------------


def _evict_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="POD...")
    words.add_argument(
        "--grace-period",
        type=int,
        default=-1,
        metavar="SECONDS",
        help="seconds for the pod to terminate; negative: the value in the pod's spec (-1)",
    )
    namespace_flags(words)
    dry_run_flag(words)


@verb(
    "evict",
    "Evict pods if their PodDisruptionBudgets allow it.",
    _evict_words,
    examples=("evict web-1", "evict web-1 web-2 -n shop --dry-run"),
    completes="pod",
    live=LiveState.BOUND,
)
def evict(session: VerbSession, options: argparse.Namespace) -> int:
    """Evict pods by name: each pod is deleted if its disruption budget currently allows the eviction."""
    names = options.what[1:] if options.what and lookup(options.what[0]) == POD else options.what
    if not names:
        raise UsageError("a pod name is required, such as: evict web-1", "evict")
    namespace = namespace_of(session, options) or "default"
    failed = 0
    for word in names:
        kind, slash, rest = word.partition("/")
        name = rest if slash and lookup(kind) == POD else word
        try:
            session.daemon.call(
                "pods.evict",
                name=name,
                namespace=namespace,
                grace_period_s=_grace(options),
                dry_run=options.dry_run != "none",
            )
        except RpcError as error:
            failed += 1
            session.error(str(with_near_name(session, error, POD, name, namespace)))
            lines = blockers(session.daemon, namespace, error.data)
            session.write_error("".join(f"  {line}\n" for line in lines))
        else:
            session.write(f"pod/{name} evicted{DRY_RUN_WORDS[options.dry_run]}\n")
    return 1 if failed else 0
