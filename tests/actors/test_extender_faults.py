"""Tests of an extender's faults in each verb, in a daemon.

A fault is contained under these conditions. The pod's message describes the fault; if the extender only scores, the pod
is scheduled. Pods that do not need the extender are scheduled before and afterwards. When the pod is deleted, nothing
of it remains.

The full run tests all faults in all verbs, the everyday run each fault in one verb, and some in all verbs.
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pytest
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.daemon import cluster_actors
from kschedd.extenders import http
from kschedd.extenders.http import LATE, LATE_BODY
from kschedd.scheduling.driver import SchedulingDriver
from tests.actors.clusters import comes_to, node, nothing_is_left_of, placed, pod, rejected
from tests.actors.test_extenders import with_card, with_extender
from tests.extenders.servers import answering, dripping, nobody_there, serving

Raw = dict[str, Any]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
VERBS: Mapping[str, Raw] = {
    "filter": {"filterVerb": "filter"},
    "score": {"prioritizeVerb": "score", "weight": 1},
    "bind": {"bindVerb": "bind"},
    "preempt": {"preemptVerb": "preempt"},
}
SHORT = "100ms"


def says(raw: bytes) -> Callable[[], AbstractContextManager[str]]:
    return partial(answering, raw)


def redirects(to: bytes) -> Callable[[], AbstractContextManager[str]]:
    head = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: " + to
    return says(head + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@contextmanager
def plain_where_tls_is_expected() -> Iterator[str]:
    with answering(b"HTTP/1.1 200 OK\r\n\r\n", reads=False) as url:
        yield url.replace("http:", "https:")


#: the extender's server, and the expected message ("{post}" represents Go's name of the request)
FAULTS: Mapping[str, tuple[Callable[[], AbstractContextManager[str]], str]] = {
    "refuses": (nobody_there, "{post}: dial tcp {host}: connect: connection refused"),
    "never-answers": (partial(answering, b"", keeps_open=True), "{post}: " + LATE),
    "drips-headers": (partial(dripping, b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000), "{post}: " + LATE),
    "drips-its-answer": (partial(dripping, b" " * 10_000, OK % 10_000), LATE_BODY),
    "closes-at-once": (says(b""), "{post}: EOF"),
    "closes-half-way": (says(OK % 100 + b"{"), "unexpected EOF"),
    "redirects-in-circles": (redirects(b"/filter"), "{post}: stopped after 10 redirects"),
    "redirects-to-no-host": (redirects(b"http://" + b"x" * 300 + b"/"), "{post}: encoding with 'idna' codec failed"),
    "redirects-to-a-file": (redirects(b"file:///etc/passwd"), "{post}: Request URL has an unsupported protocol"),
    "not-found": (says(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "failed {verb} with extender at URL"),
    "broken": (says(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"), "failed {verb} with extender at URL"),
    "no-json": (says(OK % 4 + b"oops"), "invalid character 'o' looking for beginning of value"),
    "nested-json": (says(OK % 100_000 + b"[" * 100_000), "invalid character '[' looking for beginning of value"),
    "another-shape": (says(OK % 3 + b'"x"'), "json: cannot unmarshal string into Go value of type v1."),
    "without-end": (
        partial(answering, b"HTTP/1.1 200 OK\r\n\r\n" + b" " * ((1 << 20) + 1), keeps_open=True),
        "{post}: ",
    ),
    "declares-a-gigabyte": (partial(answering, OK % (1 << 30) + b"{", keeps_open=True), LATE_BODY),
    "declares-nonsense": (says(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), "{post}: bad Content-Length"),
    "headers-without-end": (says(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000), "{post}: Receive buffer too long"),
    "headers-of-nonsense": (says(b"HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n"), "{post}: illegal header line"),
    "bad-chunks": (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "unexpected EOF"),
    "speaks-ssh": (says(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "{post}: illegal"),
    "no-tls": (plain_where_tls_is_expected, "{post}: tls: "),
}


async def _begin(cluster: LiveCluster, verb: str) -> None:
    await cluster.store.create_many([node("n1"), node("n2")])
    await cluster.store.create(pod("before"))
    await placed(cluster, "before")
    if verb == "preempt":
        important = {"kind": "PriorityClass", "metadata": {"name": "important"}, "value": 10}
        await cluster.store.create({"apiVersion": "scheduling.k8s.io/v1", **important})
        await cluster.store.create_many([pod(f"low-{number}", cpu="3500m") for number in (1, 2)])
        await placed(cluster, "low-1", "low-2")
        await cluster.store.create(with_card("web", cpu="3500m", priorityClassName="important"))
    else:
        await cluster.store.create(with_card("web"))


async def _contained(cluster: LiveCluster, verb: str, words: str) -> None:
    """Check that the pod has the expected result, that other pods are scheduled, and that nothing of it remains."""
    if verb == "score":
        await placed(cluster, "web")
    else:
        assert words in await rejected(cluster, "web", words)
        conditions = await cluster.store.do(lambda store: store.get("Pod", "default", "web").status["conditions"])
        assert [one["reason"] for one in conditions] == ["Unschedulable" if verb == "preempt" else "SchedulerError"]
    await cluster.store.create(pod("after"))
    await placed(cluster, "after")
    await nothing_is_left_of(cluster, "web")


def _cases() -> Iterator[Any]:
    for (fault, turn), verb in itertools.product(zip(FAULTS, itertools.cycle(VERBS)), VERBS):
        in_all = fault in ("refuses", "never-answers", "another-shape")
        yield pytest.param(fault, verb, marks=() if in_all or verb == turn else pytest.mark.full)


@pytest.mark.parametrize(("fault", "verb"), list(_cases()))
async def test_what_is_wrong_with_it_is_said_at_its_pod_and_nothing_stays(
    fault: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve, words = FAULTS[fault]
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 1 << 20)
    limit = SHORT if words.endswith((LATE, LATE_BODY)) else "30s"
    with serve() as url:
        config = with_extender(url, **VERBS[verb], httpTimeout=limit)
        host = url.split("//")[1]
        async with cluster_actors(config) as cluster:
            await _begin(cluster, verb)
            await _contained(cluster, verb, words.format(post=f'Post "{url}/{verb}"', host=host, verb=verb))


# -- answers that are well formed and make no sense ------------------------------------------------------------------

Answer = Callable[[Raw], Any]
NONSENSE: Mapping[str, tuple[str, Answer, str]] = {
    # id: verb, answer, and expected message ("" if the pod is scheduled)
    "a-node-that-is-not-there": (
        "filter",
        lambda args: {"NodeNames": ["nowhere"]},
        'claims a filtered node "nowhere" which is not found in the input node list',
    ),
    "nodes-of-another-type": ("filter", lambda args: {"NodeNames": {"n1": 1}}, "cannot unmarshal object"),
    "names-of-another-type": ("filter", lambda args: {"NodeNames": [1]}, "cannot unmarshal number"),
    "reasons-of-another-type": ("filter", lambda args: {"FailedNodes": ["n1"]}, "cannot unmarshal array"),
    "an-error-of-its-own": ("filter", lambda args: {"NodeNames": ["n1"], "Error": "no card left"}, "no card left"),
    "one-node-many-times": ("filter", lambda args: {"NodeNames": ["n1"] * 10_000}, ""),
    "scores-out-of-range": (
        "score",
        lambda args: [{"Host": "n1", "Score": 2**63 - 1}, {"Host": "n2", "Score": -7}],
        "",
    ),
    "scores-beyond-64-bits": ("score", lambda args: [{"Host": "n1", "Score": 2**63}], ""),
    "scores-that-are-no-numbers": ("score", lambda args: b'[{"Host": "n1", "Score": NaN}]', ""),
    "scores-for-nobody": ("score", lambda args: [{"Host": "nowhere", "Score": 5}], ""),
    "scores-for-some": ("score", lambda args: [], ""),
    "a-victims-node-that-is-not-there": (
        "preempt",
        lambda args: {"NodeNameToMetaVictims": {"nowhere": {"Pods": [{"UID": "x"}]}}},
        'nodeinfo not found for node name "nowhere"',
    ),
    "a-victim-that-is-not-there": (
        "preempt",
        lambda args: {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "x"}]}}},
        "claims to preempt pod (UID: &MetaPod{UID:x,}) on node: n1, but the pod is not found on that node",
    ),
    "no-victims": (
        "preempt",
        lambda args: {"NodeNameToMetaVictims": {"n1": {"Pods": []}}},
        'expected at least one victim pod on node "n1"',
    ),
    "victims-of-another-type": ("preempt", lambda args: {"NodeNameToMetaVictims": ["n1"]}, "cannot unmarshal array"),
    "a-binding-that-it-refuses": ("bind", lambda args: {"Error": "no card left"}, "no card left"),
}


@pytest.mark.parametrize("name", NONSENSE)
async def test_an_answer_without_sense_is_said_or_passed_over(name: str) -> None:
    verb, answer, words = NONSENSE[name]
    with serving({verb: answer}) as extender:
        async with cluster_actors(with_extender(extender.url, **VERBS[verb])) as cluster:
            await _begin(cluster, verb)
            await _contained(cluster, verb if words else "score", words)


def _nodes_of_web(driver: SchedulingDriver) -> list[str]:
    return [one.node_name for pods in driver.machine.cluster.table.pods for one in pods if one.name == "web"]


async def _bound_meanwhile(node_name: str, limit: str) -> None:
    """Run an extender that binds a pod to this node before it answers."""
    requests, bound = threading.Event(), threading.Event()

    def bind(args: Raw) -> Raw:
        requests.set()
        bound.wait(30)
        return {}

    with serving({"bind": bind}) as extender:
        async with cluster_actors(with_extender(extender.url, bindVerb="bind", httpTimeout=limit)) as cluster:
            await cluster.store.create_many([node("n1"), node("n2", unschedulable=True)])
            await cluster.store.create(with_card("web"))
            assert await trio.to_thread.run_sync(requests.wait, 30)
            if limit == SHORT:
                assert LATE in await rejected(cluster, "web", LATE)
            await cluster.store.do(lambda store: store.bind("default", "web", node_name))
            bound.set()
            assert await placed(cluster, "web") == {"web": node_name}
            await cluster.store.create(pod("after"))
            assert await placed(cluster, "after") == {"after": "n1"}
            await comes_to(cluster.scheduler, _nodes_of_web, [node_name])
            await nothing_is_left_of(cluster, "web", "after")


@pytest.mark.parametrize("limit", ["30s", SHORT])
async def test_a_pod_that_it_binds_elsewhere_counts_where_it_is(limit: str) -> None:
    await _bound_meanwhile("n2", limit)


async def test_a_binding_that_is_answered_too_late_counts_all_the_same() -> None:
    await _bound_meanwhile("n1", SHORT)
