"""Tests of writes that a server rejects, does not answer, or executes without an answer: each pod is bound once."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from kschedd.actors.cluster import LiveCluster
from kschedd.api.pods import Pod
from kschedd.live.writer import RemoteWriter, Written
from kschedd.scheduling.popped import MOST_POPPED
from kschedd.store.writes import Write
from tests.apiserver.asking import node
from tests.apiserver.asking import pod as real_pod
from tests.live.real_cluster import Scheduler, is_bound, real_cluster, scheduler_of
from tests.live.scripted_server import ServedRequest, nothing_happens, scripted
from tests.live.test_adverse_servers import kubeconfig, pod
from tests.live.test_mirror import until

Raw = dict[str, Any]
Answer = Callable[["OnePod", ServedRequest], Awaitable[None]]


@attrs.define(eq=False)
class OnePod:
    """A cluster of one node and one pod; its answers to the first bindings come from a list, later bindings succeed.

    It rejects a binding of a bound pod, as any API server does.
    """

    answers: list[Answer]
    status_refusals: list[int] = attrs.field(factory=list)
    """The codes of the first answers to patches of the pod's status."""
    requests: list[tuple[str, str, Any]] = attrs.field(factory=list, init=False)
    bound_to: list[str] = attrs.field(factory=list, init=False)
    statuses: list[Raw] = attrs.field(factory=list, init=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def script(self, request: ServedRequest) -> None:
        if request.method != "GET":
            self.requests.append((request.method, request.path, request.body))
        if request.plural == "binding":
            await (self.answers.pop(0) if self.answers else bind)(self, request)
        elif request.method == "PATCH":
            self.statuses.append(request.body)
            if self.status_refusals:
                await request.refuse(self.status_refusals.pop(0), "not now")
            else:
                await request.answer(self.pod())
        elif request.method != "GET":
            await request.answer(request.body, 201)
        elif request.plural == "nodes" and not request.watches:
            listed = node("n1")
            listed["metadata"] |= {"uid": "u-n1", "resourceVersion": "2"}
            await request.answer({"metadata": {"resourceVersion": "9"}, "items": [listed]})
        elif request.plural == "pods" and not request.watches:
            await request.answer({"metadata": {"resourceVersion": "9"}, "items": [self.pod()]})
        elif request.plural == "pods":
            await request.tell(*self.reported())
            while True:
                await self._changed.wait()
                self._changed = trio.Event()
                await request.stream.send_all(b"".join(map(_line, self.reported())))
        else:
            await nothing_happens(request)

    def pod(self) -> Raw:
        made = pod("a", resourceVersion=str(5 + len(self.bound_to)))
        return {**made, "spec": {**made["spec"], "nodeName": self.bound_to[0]}} if self.bound_to else made

    def reported(self) -> list[Raw]:
        return [{"type": "MODIFIED", "object": self.pod()}] if self.bound_to else []

    def do(self, request: ServedRequest) -> None:
        assert request.body["metadata"]["uid"] == "u-a"
        self.bound_to.append(request.body["target"]["name"])
        self._changed.set()


def _line(event: Raw) -> bytes:
    return json.dumps(event).encode() + b"\n"


async def bind(cluster: OnePod, request: ServedRequest) -> None:
    if cluster.bound_to:
        await request.refuse(409, 'pod a is already assigned to node "n1"')
        return
    cluster.do(request)
    await request.answer({"kind": "Status", "status": "Success"}, 201)


async def do_and_cut(cluster: OnePod, request: ServedRequest) -> None:
    cluster.do(request)
    await request.stream.aclose()


async def cut(cluster: OnePod, request: ServedRequest) -> None:
    await request.stream.aclose()


async def nonsense(cluster: OnePod, request: ServedRequest) -> None:
    await request.stream.send_all(b"HTTP/1.1 201 Created\r\nContent-Length: 3\r\nConnection: close\r\n\r\n[1]")


async def say_nothing(cluster: OnePod, request: ServedRequest) -> None:
    await trio.sleep_forever()


def refuse(code: int, why: str) -> Answer:
    async def answer(cluster: OnePod, request: ServedRequest) -> None:
        await request.refuse(code, why)

    return answer


@asynccontextmanager
async def scheduled(folder: Path, *answers: Answer) -> AsyncIterator[tuple[OnePod, Scheduler]]:
    cluster = OnePod(list(answers))
    async with scripted(cluster.script) as url, scheduler_of(folder, int(url.rpartition(":")[2])) as scheduler:
        yield cluster, scheduler


def is_held_as_bound(cluster: LiveCluster) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        found = await cluster.store.find("Pod", "default", "a")
        return isinstance(found, Pod) and found.node_name == "n1"

    return holds


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(refuse(409, "there is a conflict"), id="conflict"),
        pytest.param(refuse(500, "the server is broken"), id="failure"),
        pytest.param(refuse(429, "not now"), id="busy"),
        pytest.param(refuse(403, 'pods "a" is forbidden'), id="forbidden"),
        pytest.param(refuse(404, 'pods "a" not found'), id="gone"),
        pytest.param(refuse(401, "who are you"), id="credentials"),
        pytest.param(cut, id="cut"),
        pytest.param(nonsense, id="nonsense"),
        pytest.param(do_and_cut, id="done-and-cut"),
    ],
)
async def test_a_binding_that_fails_is_tried_again(tmp_path: Path, answer: Answer) -> None:
    async with scheduled(tmp_path, answer) as (cluster, scheduler):
        await until(is_held_as_bound(scheduler.cluster))
        assert cluster.bound_to == ["n1"]


async def test_a_binding_that_is_not_answered_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kschedd.live.api_server.ANSWER_S", 0.2)
    async with scheduled(tmp_path, say_nothing) as (cluster, scheduler):
        await until(is_held_as_bound(scheduler.cluster))
        assert cluster.bound_to == ["n1"]


async def test_the_servers_words_are_told_at_the_pod(tmp_path: Path) -> None:
    async with scheduled(tmp_path, refuse(403, 'pods "a" is forbidden: no')) as (cluster, scheduler):
        await until(is_held_as_bound(scheduler.cluster))
        answer = [condition for status in cluster.statuses for condition in status["status"].get("conditions", ())]
        assert [(each["reason"], each["message"]) for each in answer] == [
            ("SchedulerError", 'running Bind plugin "DefaultBinder": pods "a" is forbidden: no')
        ]


@pytest.mark.parametrize(
    ("refusals", "sent"),
    [
        pytest.param([], 1, id="done"),
        pytest.param([500, 503, 409], 4, id="sent-again"),
        pytest.param([503] * 4, 4, id="given-up"),
        pytest.param([403], 1, id="refused-for-good"),
    ],
)
async def test_a_status_that_is_not_written_is_sent_again(tmp_path: Path, refusals: list[int], sent: int) -> None:
    async with scheduled(tmp_path, refuse(403, "no")) as (cluster, scheduler):
        cluster.status_refusals += refusals
        await until(is_held_as_bound(scheduler.cluster))
        assert len(cluster.statuses) == sent


async def test_credentials_that_were_refused_are_read_again_and_the_binding_is_done_at_once(tmp_path: Path) -> None:
    cluster = OnePod([])
    refused = 0

    async def script(request: ServedRequest) -> None:
        nonlocal refused
        if request.plural == "binding" and request.token == "old":
            refused += 1
            kubeconfig(tmp_path, url, "{token: new}")
            await request.refuse(401)
        else:
            await cluster.script(request)

    async with scripted(script) as url:
        port = int(url.rpartition(":")[2])
        async with scheduler_of(tmp_path, port, user="{token: old}") as scheduler:
            await until(is_held_as_bound(scheduler.cluster))
    assert refused == 1
    assert not cluster.statuses, "no attempt has failed"


async def test_what_hangs_at_the_end_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kschedd.live.binding._ENDING_S", 0.1)
    hangs = trio.Event()

    async def hang(cluster: OnePod, request: ServedRequest) -> None:
        hangs.set()
        await trio.sleep_forever()

    with trio.fail_after(90):
        async with scheduled(tmp_path, hang) as (cluster, _):
            await hangs.wait()
    assert not cluster.bound_to


async def test_versions_that_are_held_here_are_never_sent(tmp_path: Path) -> None:
    async with scheduled(tmp_path, refuse(403, "no")) as (cluster, scheduler):
        await until(is_held_as_bound(scheduler.cluster))
        assert cluster.statuses
        assert all("resourceVersion" not in json_text(body) for _, _, body in cluster.requests)


def json_text(body: Any) -> str:
    return json.dumps(body)


async def test_a_slow_server_keeps_nobody_from_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave pods in the queue while the server is slow; the scheduler must still answer requests."""
    monkeypatch.setattr("kschedd.live.binding._UNDER_WAY", 8)
    answering = trio.Event()

    async def write_late(writer: RemoteWriter, wanted: Write, written: Written) -> None:
        await answering.wait()
        await write(writer, wanted, written)

    write = RemoteWriter.write
    monkeypatch.setattr(RemoteWriter, "write", write_late)
    names = [f"p{number}" for number in range(5 * MOST_POPPED)]
    async with real_cluster() as real:
        await real.cluster.store.create_many([real_pod(name) for name in names])
        for number in range(2, 9):
            await real.cluster.store.create(node(f"n{number}"))
        async with scheduler_of(tmp_path, real.port) as scheduler:

            async def waiting() -> int:
                return await scheduler.cluster.scheduler.query(lambda driver: len(driver.bindings.cycles))

            async def many_wait() -> bool:
                return await waiting() >= 8

            await until(many_wait)
            for _ in range(3):
                await trio.testing.wait_all_tasks_blocked(0.01)
                counts = await scheduler.cluster.queue.query(lambda owner: owner.queue.counts())
                # Some are popped, and some requested, before the number of running attempts is known.
                assert await waiting() <= 2 * MOST_POPPED + 8
                assert 0 < sum(counts.values()) <= len(names)
            answering.set()
            await until(is_bound(real, *names))
