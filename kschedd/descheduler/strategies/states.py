"""Strategies that evict pods by their state: PodLifeTime, RemoveFailedPods, RemovePodsHavingTooManyRestarts.

Source: sigs.k8s.io/descheduler, pkg/framework/plugins/{podlifetime,removefailedpods,removepodshavingtoomanyrestarts}.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.descheduler.cluster import RequestOutcome, Work, owners
from kschedd.descheduler.evictor import Evictor
from kschedd.descheduler.policy import ConditionFilter, FailedPodsArgs, LifeTimeArgs, RestartsArgs

Raw = Mapping[str, Any]

_STATUSES: Final = "containerStatuses"
_INIT: Final = "initContainerStatuses"
_EPHEMERAL: Final = "ephemeralContainerStatuses"


def evict_in_turn(evictor: Evictor, pods: Iterable[Pod], strategy: str) -> bool:
    """Evict these pods of one node in order, until the limit of evictions per node is reached.

    Return False if the limit of evictions per cycle is reached.
    """
    for pod in pods:
        outcome = evictor.evict(pod, strategy)
        if outcome is RequestOutcome.TOTAL_LIMIT:
            return False
        if outcome is RequestOutcome.NODE_LIMIT:
            return True
    return True


def by_life_time(name: str, args: LifeTimeArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    cluster, found = evictor.cluster, []
    for node in nodes:
        chosen = yield from evictor.choose(cluster.all_pods_on(node.name), args.pods)
        found += [pod for pod in chosen if _outlived(args, pod, cluster.now_s)]
    for pod in sorted(found, key=lambda pod: seconds(pod.metadata["creationTimestamp"])):
        if evictor.evict(pod, name) is RequestOutcome.TOTAL_LIMIT:
            return


def _age_s(pod: Pod, now_s: float) -> float:
    return now_s - seconds(pod.metadata["creationTimestamp"])


def _outlived(args: LifeTimeArgs, pod: Pod, now_s: float) -> bool:
    if args.max_age_s is not None:
        age = _age_s(pod, now_s)
        if age < 0 or int(age) <= args.max_age_s:
            return False
    fields = [
        _STATUSES,
        *([_INIT] if args.init_containers else ()),
        *([_EPHEMERAL] if args.ephemeral_containers else ()),
    ]
    if args.states and not args.states.intersection(_states(pod, fields, ("waiting", "terminated"))):
        return False
    kinds = {owner.get("kind") for owner in owners(pod)}
    if args.include_kinds and args.include_kinds.isdisjoint(kinds):
        return False
    if not args.include_kinds and not args.exclude_kinds.isdisjoint(kinds):
        return False
    conditions = pod.status.get("conditions") or ()
    if args.conditions and not any(_holds(each, one, now_s) for each in args.conditions for one in conditions):
        return False
    return not args.exit_codes or not args.exit_codes.isdisjoint(_exit_codes(pod, init=args.init_containers))


def _fields(*, init: bool, ephemeral: bool = False) -> list[str]:
    """Return the status fields of the containers, with `init` and `ephemeral` also of init and ephemeral containers."""
    return [_STATUSES, *([_INIT] if init else ()), *([_EPHEMERAL] if ephemeral else ())]


def _states(pod: Pod, fields: Iterable[str], of: Sequence[str]) -> Iterator[str]:
    """Yield the pod's phase and reason, and the reasons of the container states named in `of`."""
    yield pod.phase
    yield pod.status.get("reason") or ""
    yield from _reasons(pod, fields, of)


def _reasons(pod: Pod, fields: Iterable[str], of: Sequence[str]) -> Iterator[str]:
    for field in fields:
        for container in pod.status.get(field) or ():
            state = container.get("state") or {}
            yield from (state[each].get("reason") or "" for each in of if state.get(each) is not None)


def _exit_codes(pod: Pod, *, init: bool) -> Iterator[int]:
    for field in _fields(init=init):
        for container in pod.status.get(field) or ():
            ended = (container.get("state") or {}).get("terminated")
            if ended is not None:
                yield int(ended.get("exitCode") or 0)


def _holds(wanted: ConditionFilter, condition: Raw, now_s: float) -> bool:
    for name, value in (("type", wanted.type), ("status", wanted.status), ("reason", wanted.reason)):
        if value and condition.get(name) != value:
            return False
    if wanted.min_age_s is None:
        return True
    changed = condition.get("lastTransitionTime")
    age = None if not changed else now_s - seconds(changed)
    return age is not None and age >= 0 and int(age) >= wanted.min_age_s


def failed(name: str, args: FailedPodsArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    def fails(pod: Pod) -> bool:
        return pod.phase == "Failed" and _fails(args, pod, evictor)

    return _on_each_node(name, evictor, nodes, fails, args.pods)


def _fails(args: FailedPodsArgs, pod: Pod, evictor: Evictor) -> bool:
    age = _age_s(pod, evictor.cluster.now_s)
    if 0 <= age and int(age) < args.min_age_s:
        return False
    if any(owner.get("kind") in args.exclude_kinds for owner in owners(pod)):
        return False
    fields = _fields(init=args.init_containers)
    reasons = {*_reasons(pod, fields, ("waiting", "terminated")), pod.status.get("reason") or ""} - {""}
    if args.reasons and args.reasons.isdisjoint(reasons):
        return False
    return not args.exit_codes or not args.exit_codes.isdisjoint(_exit_codes(pod, init=args.init_containers))


def restarting(name: str, args: RestartsArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    fields = _fields(init=args.init_containers)

    def restarts(pod: Pod) -> int:
        return sum(each.get("restartCount") or 0 for field in fields for each in pod.status.get(field) or ())

    def often(pod: Pod) -> bool:
        if restarts(pod) < args.threshold:
            return False
        return not args.states or not args.states.isdisjoint((pod.phase, *_reasons(pod, fields, ("waiting",))))

    return _on_each_node(name, evictor, nodes, often, args.pods, order=lambda pod: -restarts(pod))


def _on_each_node(
    name: str,
    evictor: Evictor,
    nodes: Sequence[Node],
    matches: Callable[[Pod], bool],
    pods: Any,
    order: Callable[[Pod], int] | None = None,
) -> Work[None]:
    for node in nodes:
        chosen = yield from evictor.choose(evictor.cluster.all_pods_on(node.name), pods)
        found = [pod for pod in chosen if matches(pod)]
        if order is not None:
            found.sort(key=order)
        if not evict_in_turn(evictor, found, name):
            return
