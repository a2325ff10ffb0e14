"""Tests of a daemon with extenders over HTTP: they change decisions, and delay only pods for which they are called."""

import threading
from typing import Any

import pytest
import trio

from kschedd.config.loading.load import config_from_raw
from kschedd.config.model import Config
from kschedd.daemon import cluster_actors
from tests.actors.clusters import node, placed, pod, rejected, until
from tests.extenders.servers import answering, nobody_there, serving

Raw = dict[str, Any]
CARD = "example.com/card"


def with_extender(url: str, **settings: Any) -> Config:
    """Return a configuration with an extender for pods that request a card."""
    extender = {
        "urlPrefix": url,
        "nodeCacheCapable": True,
        "managedResources": [{"name": CARD, "ignoredByScheduler": True}],
        "httpTimeout": "30s",
        **settings,
    }
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    }
    return config_from_raw(raw)


def with_card(name: str, **spec: Any) -> Raw:
    raw = pod(name, **spec)
    raw["spec"]["containers"][0]["resources"]["limits"] = {CARD: "1"}
    raw["spec"]["containers"][0]["resources"]["requests"][CARD] = "1"
    return raw


async def test_an_extender_filters_and_scores() -> None:
    verbs = {
        "filter": lambda args: {"NodeNames": ["n2", "n3"], "FailedNodes": {"n1": "no card"}},
        "score": lambda args: [{"Host": "n3", "Score": 10}],
    }
    with serving(verbs) as extender:
        config = with_extender(extender.url, filterVerb="filter", prioritizeVerb="score", weight=5)
        async with cluster_actors(config) as cluster:
            await cluster.store.create_many([node("n1"), node("n2"), node("n3")])
            await cluster.store.create(with_card("web"))
            assert await placed(cluster, "web") == {"web": "n3"}
        assert [verb for verb, _ in extender.requests] == ["filter", "score"]
        assert sorted(extender.of("score")[0]["NodeNames"]) == ["n2", "n3"]


async def test_what_it_rejects_is_pending_with_its_words() -> None:
    verbs = {"filter": lambda args: {"NodeNames": [], "FailedAndUnresolvableNodes": {"n1": "no card here"}}}
    with serving(verbs) as extender:
        async with cluster_actors(with_extender(extender.url, filterVerb="filter")) as cluster:
            await cluster.store.create(node("n1"))
            await cluster.store.create(with_card("web"))
            answer = await rejected(cluster, "web")
            assert answer.startswith("0/1 nodes are available: 1 no card here. ")
            assert answer.endswith("0/1 nodes are available: 1 Preemption is not helpful for scheduling.")


async def test_an_extender_that_takes_its_time_holds_up_its_pod_alone() -> None:
    arrived, let_go = threading.Event(), threading.Event()

    def slow(args: Raw) -> Raw:
        arrived.set()
        let_go.wait(30)
        return {"NodeNames": args["NodeNames"]}

    with serving({"filter": slow}) as extender:
        async with cluster_actors(with_extender(extender.url, filterVerb="filter")) as cluster:
            await cluster.store.create(node())
            await cluster.store.create(with_card("web"))
            assert await trio.to_thread.run_sync(arrived.wait, 30)
            assert await cluster.scheduler.query(lambda driver: driver.attempts.running)
            let_go.set()
            await placed(cluster, "web")


async def test_an_extender_that_binds_slowly_lets_other_pods_be_placed() -> None:
    let_go = threading.Event()

    def refuse(args: Raw) -> Raw:
        let_go.wait(30)
        return {"Error": "no card left"}

    with serving({"bind": refuse}) as extender:
        async with cluster_actors(with_extender(extender.url, bindVerb="bind")) as cluster:
            await cluster.store.create(node())
            await cluster.store.create(with_card("web"))
            await cluster.store.create(pod("other"))
            await placed(cluster, "other")
            let_go.set()
            assert await rejected(cluster, "web") == "no card left"
        [args] = extender.of("bind")[:1]
        assert (args["PodName"], args["Node"]) == ("web", "n1")


async def test_an_extender_that_is_down_is_said_at_the_pod_and_other_pods_go_on() -> None:
    with nobody_there() as url:
        async with cluster_actors(with_extender(url, filterVerb="filter")) as cluster:
            await cluster.store.create(node())
            await cluster.store.create(with_card("web"))
            host = url.removeprefix("http://")
            assert await rejected(cluster, "web") == (
                f'Post "{url}/filter": dial tcp {host}: connect: connection refused'
            )
            status = await cluster.store.do(lambda store: store.get("Pod", "default", "web").status)
            assert status["conditions"][0]["reason"] == "SchedulerError"
            await cluster.store.create(pod("other"))
            await placed(cluster, "other")


async def test_one_to_be_ignored_is_skipped_with_a_line_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    with answering(b"nonsense\r\n\r\n") as url:
        config = with_extender(url, filterVerb="filter", prioritizeVerb="score", weight=1, ignorable=True)
        async with cluster_actors(config) as cluster:
            await cluster.store.create_many([node("n1"), node("n2")])
            await cluster.store.create(with_card("web"))
            await placed(cluster, "web")
    answer = capsys.readouterr().out
    assert answer.count("extender_failed") == 2
    assert answer.count("skipped=True") == 2
    assert f"{url}/score" in answer


async def test_an_extender_chooses_whom_to_preempt() -> None:
    def last(args: Raw) -> Raw:
        by_node = args["NodeNameToMetaVictims"]
        return {"NodeNameToMetaVictims": {"n2": by_node["n2"]}}

    with serving({"preempt": last}) as extender:
        async with cluster_actors(with_extender(extender.url, preemptVerb="preempt")) as cluster:
            important = {"kind": "PriorityClass", "metadata": {"name": "important"}, "value": 10}
            await cluster.store.create({"apiVersion": "scheduling.k8s.io/v1", **important})
            await cluster.store.create_many([node("n1"), node("n2")])
            low = [pod(f"low-{n}", cpu="4", nodeName=f"n{n}") for n in (1, 2)]
            await cluster.store.create_many(low)
            await cluster.store.create(with_card("web", cpu="4", priorityClassName="important"))
            nominated = await until(
                cluster, lambda store: store.get("Pod", "default", "web").status.get("nominatedNodeName")
            )
            assert nominated == "n2"
        assert set(extender.of("preempt")[0]["NodeNameToMetaVictims"]) == {"n1", "n2"}
