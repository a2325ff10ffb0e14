"""Capacity: the number of pods that still fit.

The number is not a sum of requests: each pod is scheduled on a fork, with every filter of its profile. Affinity,
spreading, ports, volumes and taints are therefore respected; preemption is not. `fit_count` schedules sets of pods
one after the other until a pod fits on no node.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, Final

import attrs

from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.quantity import format_milli, milli_value, value
from kschedd.errors import KscheddError
from kschedd.framework.status import error
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.values import as_map

_USUAL: Final = ("cpu", "memory", "ephemeral-storage")
_FACTORS: Final = tuple(Fraction(2) ** power for power in range(-4, 5))  # factors by which requests are multiplied
_TRIED: Final = error("this was a trial")


@attrs.define(eq=False)
class NotAPodError(KscheddError, rpc_code="invalid"):
    """The error for a manifest that is not a pod and contains no pod template."""

    kind: str

    def __str__(self) -> str:
        return f"a {self.kind} is no pod and has no pod template"


def pod_of(raw: Raw) -> Raw:
    """Return the pod in a manifest, or the pod that its pod template describes. Raises NotAPodError."""
    if raw.get("kind") == "Pod":
        return raw
    template: Any = raw
    for key in ("spec", "jobTemplate", "spec", "template") if raw.get("kind") == "CronJob" else ("spec", "template"):
        template = template.get(key)
        if not isinstance(template, Mapping):
            raise NotAPodError(str(raw.get("kind")))
    meta, own = dict(as_map(template.get("metadata"))), as_map(raw.get("metadata"))
    meta["generateName"] = f"{own.get('name', 'pod')}-"
    if own.get("namespace"):
        meta["namespace"] = own["namespace"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}


@attrs.frozen
class FitCount:
    """The number of pod sets that fit.

    `why` is the reason why no further set fits ("" if the limit was reached), with the name of the pod that did not
    fit. `nodes` is the number of nodes that received pods.
    """

    count: int
    why: str
    nodes: int
    lacking: int = 0


def fit_count(
    machine: SchedulingMachine, pods: Sequence[Pod], limit: int, now: float, check: Callable[[], None]
) -> FitCount:
    """Return how many more sets, with one of each of these pods, fit; the cluster is unchanged afterwards.

    Each pod must have a profile.
    """
    placed: list[AssumedPod] = []
    why = ""
    while len(placed) < limit * len(pods):
        check()
        number, which = divmod(len(placed), len(pods))
        pod = pods[which]
        one = attrs.evolve(pod, name=f"{pod.name}-{number}", uid=f"capacity-{len(placed)}", node_name="")
        result = drive(machine.begin(one, {}))
        if isinstance(result, FitError):
            # preemption only works for stored pods, so its message is removed
            why = result.message.partition(" preemption: ")[0]
            break
        outcome = machine.completion.complete(QueuedPod(one, one.key, 0), result, now)
        if not isinstance(outcome, AssumedPod):
            why = outcome.message
            break
        placed.append(outcome)
    sets, lacking = divmod(len(placed), len(pods))
    nodes = len({assumed.pod.node_name for assumed in placed[: sets * len(pods)]})
    for assumed in reversed(placed):
        machine.waiting.pods.pop(assumed.pod.uid, None)
        machine.completion.undo(assumed, _TRIED, now)
    return FitCount(sets, why, nodes, lacking)


@attrs.frozen(eq=False)
class ScaledPod:
    """A pod with all requests multiplied by a factor.

    `amount` is the resulting request for the resource returned by `sized_by`.
    """

    pod: Pod
    amount: int


def sized_by(pod: Pod) -> str:
    """Return the resource that measures the pod's size: an extended one, else cpu or memory; "" without requests."""
    requested = [name for name, number in pod.requests.items() if number]
    return next(
        (name for name in requested if name not in _USUAL), next((name for name in _USUAL if name in requested), "")
    )


def scaled(pod: Pod, largest: int) -> Iterator[ScaledPod]:
    """Yield the pod halved and doubled several times, up to `largest` of the resource that measures its size."""
    resource = sized_by(pod)
    if not resource:
        return
    own = pod.requests[resource]
    for factor in _FACTORS:
        number = own * factor
        if number.denominator == 1 and 0 < number <= largest and factor != 1:
            raw = copy.deepcopy(dict(pod.raw))
            spec = raw["spec"]
            for holder in (spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                for amounts in (holder.get("resources") or {}).values():
                    if isinstance(amounts, dict):
                        amounts.update({name: _multiplied(name, text, factor) for name, text in amounts.items()})
            yield ScaledPod(Pod.from_raw(raw), int(number))


def _multiplied(resource: str, text: Any, factor: Fraction) -> str:
    """Multiply the requests: cpu in millicores, other resources in whole units, rounded up."""
    if resource == "cpu":
        return format_milli(ceil(milli_value(text) * factor))
    return str(ceil(value(text) * factor))
