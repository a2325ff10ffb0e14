"""Tests of watches of the Leases that simulated kubelets renew."""

from typing import Any

import trio

from kschedd.controllers.kubelets.heartbeats import Heartbeats
from tests.apiserver.asking import asking, node

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def shown(lease: Any) -> tuple[int, str]:
    return int(lease["metadata"]["resourceVersion"]), lease["spec"]["renewTime"]


async def test_each_renewal_arrives_with_a_version_of_its_own(autojump_clock: Any) -> None:
    async with asking(controllers=(Heartbeats(),)) as api:
        await api.create("/api/v1/nodes", node("n1"))
        await trio.sleep(25)
        listed = await api.get(LEASES)
        since = listed["metadata"]["resourceVersion"]
        watch = await api.watch(f"{LEASES}?watch=1&resourceVersion={since}")
        seen = [shown((await watch.event())["object"]) for _ in range(4)]
        assert shown(await api.get(f"{LEASES}/n1")) == seen[-1]
    assert seen == sorted(set(seen))
    assert seen[0][0] > shown(listed["items"][0])[0]
    assert seen[0][1] == listed["items"][0]["spec"]["renewTime"]


async def test_nothing_is_written_after_the_watch_has_ended(autojump_clock: Any) -> None:
    async with asking(controllers=(Heartbeats(),)) as api:
        await api.create("/api/v1/nodes", node("n1"))
        watch = await api.watch(f"{LEASES}?watch=1&timeoutSeconds=25")
        await watch.ended.wait()
        await trio.sleep(15)
        version = (await api.get(LEASES))["metadata"]["resourceVersion"]
        await trio.sleep(1000)
        assert (await api.get(LEASES))["metadata"]["resourceVersion"] == version
