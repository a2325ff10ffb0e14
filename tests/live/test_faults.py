"""Tests of scheduling through a proxy that loses requests, answers and connections: each pod is bound exactly once.

KSCHEDD_LIVE_SEEDS is the number of seeds (default 3, of which the everyday run takes the first).
"""

import os
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.actors.mailbox import Ending
from kschedd.api.pods import Pod
from kschedd.store.errors import ApiError
from tests.apiserver.asking import node
from tests.full_run import everyday
from tests.live.fault_proxy import fault_proxy
from tests.live.real_cluster import Real, real_cluster, scheduler_of
from tests.live.test_mirror import until

Raw = dict[str, Any]

REPLICAS = 60
SEEDS = range(int(os.environ.get("KSCHEDD_LIVE_SEEDS", "3")))


def deployment(replicas: int) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


async def follow(cluster: LiveCluster, nodes: dict[str, set[str]], most: list[int]) -> None:
    """Record the nodes of each pod by uid, and the largest number of pods that were placed at the same time."""
    watch = await cluster.store.watch(("Pod",))
    placed: dict[str, str] = {}
    while await watch.wait():
        for event in watch.take():
            pod = event.new
            assert isinstance(pod, Pod)
            if pod.node_name:
                nodes.setdefault(pod.uid, set()).add(pod.node_name)
            if event.type == "DELETED" or pod.deletion_timestamp or not pod.node_name:
                placed.pop(pod.uid, None)
            else:
                placed[pod.uid] = pod.node_name
            most[0] = max(most[0], len(placed))


async def all_are_placed(real: Real) -> bool:
    pods = await real.cluster.store.list("Pod")
    return len(pods) == REPLICAS and all(pod.spec.get("nodeName") and not pod.deletion_timestamp for pod in pods)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kschedd.live.mirror._FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr("kschedd.live.mirror._LONGEST_PAUSE_S", 0.2)
    monkeypatch.setattr("kschedd.live.repeating._FIRST_PAUSE_S", 0.01)


@pytest.mark.parametrize("seed", everyday(SEEDS, lambda seed: seed == 0 or "KSCHEDD_LIVE_SEEDS" in os.environ))
async def test_each_pod_is_bound_once_though_requests_and_answers_are_lost(tmp_path: Path, seed: int) -> None:
    nodes: dict[str, set[str]] = {}
    most = [0]
    async with real_cluster() as real, fault_proxy(real.port, seed) as proxy, trio.open_nursery() as nursery:
        for number in range(2, 9):
            await real.cluster.store.create(node(f"n{number}"))
        nursery.start_soon(follow, real.cluster, nodes, most)
        async with scheduler_of(tmp_path, proxy.port):
            proxy.calm = False
            await real.cluster.store.create(deployment(REPLICAS))
            await until(lambda: all_are_placed(real))
            for pod in (await real.cluster.store.list("Pod"))[::3]:  # replaced while other pods are bound
                await real.cluster.store.delete("Pod", "default", pod.name, grace_period_s=0)
            await until(lambda: all_are_placed(real))
            proxy.calm = True
        used = Counter(pod.spec["nodeName"] for pod in await real.cluster.store.list("Pod"))
        nursery.cancel_scope.cancel()
    assert most == [REPLICAS], "never more pods than replicas"
    assert {len(found) for found in nodes.values()} == {1}, "no pod was bound to two nodes"
    assert len(nodes) == REPLICAS + REPLICAS // 3
    assert sum(used.values()) == REPLICAS
    assert proxy.faults.total() > 5
    assert len(proxy.faults) >= 2


async def delete_pods(real: Real, draws: random.Random) -> None:
    """Delete pods at random, also pods that are being bound, immediately or with a grace period."""
    while True:
        await trio.sleep(draws.uniform(0, 0.1))
        pods = await real.cluster.store.list("Pod")
        for pod in draws.sample(pods, min(3, len(pods))):
            with suppress(ApiError):  # the pod is gone already
                await real.cluster.store.delete("Pod", "default", pod.name, grace_period_s=draws.choice((0, 1, None)))


@pytest.mark.parametrize("seed", everyday(SEEDS, lambda seed: seed == 0 or "KSCHEDD_LIVE_SEEDS" in os.environ))
async def test_no_more_pods_are_placed_than_replicas_though_schedulers_are_killed(tmp_path: Path, seed: int) -> None:
    draws = random.Random(seed)
    nodes: dict[str, set[str]] = {}
    most = [0]
    async with real_cluster() as real, fault_proxy(real.port, seed) as proxy, trio.open_nursery() as nursery:
        for number in range(2, 9):
            await real.cluster.store.create(node(f"n{number}"))
        nursery.start_soon(follow, real.cluster, nodes, most)
        await real.cluster.store.create(deployment(REPLICAS))
        async with trio.open_nursery() as deletions:
            deletions.start_soon(delete_pods, real, draws)
            for _ in range(3):
                with trio.CancelScope() as killed:
                    try:
                        async with scheduler_of(tmp_path, proxy.port):
                            proxy.calm = False
                            await trio.sleep(draws.uniform(0, 0.5))
                            killed.cancel()
                            await trio.lowlevel.checkpoint()
                    except* (trio.BrokenResourceError, trio.ClosedResourceError, Ending):
                        pass  # the actors are cancelled in any order, so one may send to another that has ended
                proxy.calm = True  # another scheduler starts
            deletions.cancel_scope.cancel()
        async with scheduler_of(tmp_path, proxy.port):
            await until(lambda: all_are_placed(real))
        nursery.cancel_scope.cancel()
    assert most == [REPLICAS], "never more pods than replicas"
    assert {len(found) for found in nodes.values()} == {1}, "no pod was bound to two nodes"
