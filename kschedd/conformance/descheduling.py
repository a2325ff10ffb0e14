"""Records of the descheduler: each record compares one descheduling cycle with recorded runs of the real descheduler.

The real descheduler visits nodes and pods in random order. A record therefore lists the evictions that occur in every
run and the evictions that occur only in some runs. The result of a cycle is right if it contains all of the first list,
and otherwise only evictions of the second list.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.conformance.records import GoldenRecord
from kschedd.descheduler.cluster import DescheduledPod, DeschedulingCluster, owners
from kschedd.descheduler.cycle import evictor_of, run_cycle
from kschedd.descheduler.evictor import Evictor
from kschedd.descheduler.policy import policy_of
from kschedd.values import run_steps

Raw = Mapping[str, Any]


def descheduling_differences(record: GoldenRecord) -> Iterator[str]:
    """Yield each difference between a cycle and the record. Raises ConfigErrors if the policy is invalid."""
    expected: Raw = record.raw["expect"]
    policy = policy_of(record.raw["policy"])
    objects = [parse(raw) for raw in record.objects]
    cluster = run_steps(DeschedulingCluster.of(objects, seconds(record.raw["now"]), policy.limits))
    pods = [obj for obj in objects if obj.kind == "Pod"]
    for profile in policy.profiles:
        evictor = evictor_of(profile, cluster)
        for name, holds in (("evictable", evictor.filter), ("passesPreEviction", _passes(evictor))):
            if profile.name in expected.get(name, ()):
                yield from _unequal(f"{name}.{profile.name}", _keys(pods, holds), set(expected[name][profile.name]))
    run_steps(run_cycle(policy, cluster))
    evicted = {_named(each) for each in cluster.evicted}
    always = {_recorded(each) for each in expected["evicted"]}
    possible = always | {_recorded(each) for each in expected.get("sometimes", ())}
    yield from _unequal("evicted", evicted & possible | evicted - possible, evicted & possible | always)
    yield from _counts(cluster, expected)
    order = [each.pod.key for each in cluster.evicted]
    if "order" in expected and order != expected["order"]:
        yield f"order: {', '.join(order)} instead of {', '.join(expected['order'])}"
    refused = {(each.pod.key, each.strategy, each.why) for each in cluster.refused}
    missing = {(each["pod"], each["strategy"], each["why"]) for each in expected.get("refused", ())} - refused
    if missing:
        yield f"refused: {sorted(missing)} is missing"


def _passes(evictor: Evictor) -> Callable[[Pod], bool]:
    return lambda pod: run_steps(evictor.pre_filter(pod))


def _keys(pods: list[Object], holds: Any) -> set[str]:
    return {pod.key for pod in pods if holds(pod)}


def _named(each: DescheduledPod) -> str:
    return f"{each.pod.key} on {each.pod.node_name} by {each.strategy} of {each.profile}"


def _recorded(raw: Raw) -> str:
    return f"{raw['pod']} on {raw['node']} by {raw['strategy']} of {raw['profile']}"


def _unequal(name: str, found: set[str], expected: set[str]) -> Iterator[str]:
    if more := found - expected:
        yield f"{name}: {', '.join(sorted(more))} is not expected"
    if fewer := expected - found:
        yield f"{name}: {', '.join(sorted(fewer))} is missing"


def _counts(cluster: DeschedulingCluster, expected: Raw) -> Iterator[str]:
    """Yield each wrong count, among the counts that are the same for every random order."""
    count = len(cluster.evicted)
    least, most = expected.get("count", (count, count))
    if not least <= count <= most:
        yield f"count: {count} evictions, {least} to {most} are expected"
    by_node = Counter(f"{each.strategy}@{each.pod.node_name}" for each in cluster.evicted)
    by_owner = Counter(
        f"{each.strategy}@{each.pod.node_name}@{each.pod.namespace}/{owner['kind']}/{owner['name']}"
        for each in cluster.evicted
        for owner in owners(each.pod)[:1]
    )
    for name, counts in (("countByStrategyAndNode", by_node), ("countByStrategyNodeOwner", by_owner)):
        for key, number in expected.get(name, {}).items():
            if counts[key] != number:
                yield f"{name}: {counts[key]} for {key}, {number} is expected"
