"""Tests of the logs of containers, and of logs that are followed."""

from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
import trio

from kschedd.controllers.kubelets.kubelets import Kubelets
from tests.apiserver.asking import MERGE, PODS, Asker, asking, node, pod

LOGS = "kschedd.io/logs"


@attrs.define(eq=False)
class Followed:
    """A followed log: the text so far, and its end."""

    text: str = ""
    ended: bool = False


@pytest.fixture
async def api() -> AsyncIterator[Asker]:
    async with asking(scheduler=True, controllers=[Kubelets()]) as asker:
        await asker.create("/api/v1/nodes", node("n1"))
        yield asker


async def started(api: Asker, text: str = "one\ntwo", **annotations: str) -> None:
    own = {f"kschedd.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    await api.create(PODS, pod("web", annotations={LOGS: text, **own}))
    await trio.sleep(1)


async def follow(api: Asker, query: str = "") -> Followed:
    response = await api.respond("GET", f"{PODS}/web/log?follow=true{query}")
    stream, followed = response.stream, Followed(response.body.decode())
    assert response.status == 200, response.body

    async def took(piece: bytes) -> None:
        followed.text += piece.decode()
        await trio.lowlevel.checkpoint()

    async def run() -> None:
        if stream is not None:
            await stream(took)
        followed.ended = True

    api.nursery.start_soon(run)
    await trio.sleep(0.1)
    return followed


async def annotate(api: Asker, text: str) -> None:
    await api.ask("PATCH", f"{PODS}/web", {"metadata": {"annotations": {LOGS: text}}}, content_type=MERGE)
    await trio.sleep(0.1)


async def test_a_followed_log_stays_open_until_the_pod_is_deleted(api: Asker, autojump_clock: Any) -> None:
    await started(api, termination_seconds="3")
    followed = await follow(api)
    assert (followed.text, followed.ended) == ("one\ntwo\n", False)
    await trio.sleep(3600)
    await api.ask("DELETE", f"{PODS}/web")
    await trio.sleep(1)
    assert not followed.ended, "the container runs until its grace period is over"
    await trio.sleep(3)
    assert (followed.text, followed.ended) == ("one\ntwo\n", True)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"run_seconds": "5"}, id="restarted"),
        pytest.param({"run_seconds": "5", "exit_code": "1"}, id="in-a-crash-loop"),
    ],
)
async def test_a_followed_log_ends_with_its_container(
    settings: dict[str, str], api: Asker, autojump_clock: Any
) -> None:
    await started(api, **settings)
    followed = await follow(api)
    await trio.sleep(3)
    assert not followed.ended
    await trio.sleep(2)
    assert (followed.text, followed.ended) == ("one\ntwo\n", True)


async def test_the_log_of_a_container_that_has_ended_is_not_followed(api: Asker, autojump_clock: Any) -> None:
    made = pod("web", annotations={LOGS: "done", "kschedd.io/run-seconds": "1"})
    made["spec"]["restartPolicy"] = "Never"
    await api.create(PODS, made)
    await trio.sleep(3)
    followed = await follow(api)
    assert (followed.text, followed.ended) == ("done\n", True)


async def test_lines_that_are_added_to_the_annotation_follow(api: Asker, autojump_clock: Any) -> None:
    await started(api)
    followed = await follow(api, "&tailLines=1")
    assert followed.text == "two\n"
    await annotate(api, "one\ntwo\nthree\nfour")
    assert followed.text == "two\nthree\nfour\n"
    await annotate(api, "another text")
    assert followed.text == "two\nthree\nfour\nanother text\n"
    await api.ask("PATCH", f"{PODS}/web", {"metadata": {"labels": {"x": "1"}}}, content_type=MERGE)
    await trio.sleep(1)
    assert followed.text == "two\nthree\nfour\nanother text\n", "other changes of the pod add no lines"


async def test_a_followed_log_ends_at_its_limit_of_bytes(api: Asker, autojump_clock: Any) -> None:
    await started(api)
    followed = await follow(api, "&limitBytes=10")
    assert not followed.ended
    await annotate(api, "one\ntwo\nthree")
    assert (followed.text, followed.ended) == ("one\ntwo\nth", True)


async def test_other_pods_do_not_end_a_followed_log(api: Asker, autojump_clock: Any) -> None:
    await started(api)
    followed = await follow(api)
    for number in range(120):
        await api.create(PODS, pod(f"other-{number}"))
    await api.ask("DELETE", f"{PODS}/other-3?gracePeriodSeconds=0")
    await trio.sleep(1)
    assert not followed.ended
    await annotate(api, "one\ntwo\nthree")
    assert followed.text == "one\ntwo\nthree\n"


async def test_lines_date_from_the_start_of_the_container(api: Asker, autojump_clock: Any) -> None:
    await started(api, "one")
    begun = (await api.get(f"{PODS}/web"))["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    dated = (await api.ask("GET", f"{PODS}/web/log?timestamps=true")).body.decode()
    assert dated == f"{begun[:-1]}.000000000Z one\n"
    await trio.sleep(100)
    assert (await api.ask("GET", f"{PODS}/web/log?sinceSeconds=50")).body == b""
    assert (await api.ask("GET", f"{PODS}/web/log?sinceSeconds=200")).body == b"one\n"
    assert (await api.ask("GET", f"{PODS}/web/log?sinceTime={begun}")).body == b"one\n"


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        pytest.param(
            "tailLines=-1",
            422,
            'PodLogOptions "web" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
            id="tail",
        ),
        pytest.param(
            "limitBytes=0",
            422,
            'PodLogOptions "web" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
            id="limit",
        ),
        pytest.param(
            "sinceTime=noon",
            400,
            'parsing time "noon" as "2006-01-02T15:04:05Z07:00": cannot parse "noon" as "2006"',
            id="time",
        ),
    ],
)
async def test_invalid_options_are_rejected(
    query: str, code: int, message: str, api: Asker, autojump_clock: Any
) -> None:
    await started(api)
    refused = await api.ask("GET", f"{PODS}/web/log?{query}")
    assert (refused.status, refused.json["message"]) == (code, message)
