"""Tests of the page's requests: files, logins, allowed methods, other sites, the audit log."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from kschedd.access.addresses import Address
from kschedd.access.audit_log import AuditFile
from kschedd.access.credentials import Credentials, ListenSettings
from kschedd.access.tokens import StaticTokens
from kschedd.access.users import READ_ONLY, User
from kschedd.actors.clock import VIRTUAL, Clock
from kschedd.apiserver.access import Access
from kschedd.daemon import cluster_actors
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import Peer
from kschedd.limits import DaemonLimits
from kschedd.methods import daemon_methods
from kschedd.rpc.sessions.built_in import method_table
from kschedd.service.daemon.process import DaemonState
from kschedd.service.workers import FairShares
from kschedd.startup.doors import audit_log
from kschedd.web.serving import CONTROLS, WebPage
from tests.actors.clusters import node, pod

START_S = 1_735_689_600.0
OPEN = Access()
WITH_TOKENS = Access(
    Credentials(
        ListenSettings(Address("127.0.0.1", 0)),
        StaticTokens.of({"t": User("ann"), "r": User("bob", (READ_ONLY,)), "c": User("eve")}),
        None,
    )
)
OWN = {"x-kschedd-page": "1"}


@attrs.frozen
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def result(self) -> Any:
        return json.loads(self.body)["result"]

    @property
    def error(self) -> Any:
        return json.loads(self.body)["error"]


@attrs.frozen
class Browser:
    page: WebPage

    async def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
        named = {"host": "127.0.0.1:8001", **{name.replace("_", "-"): value for name, value in headers.items()}}
        response = await self.page(HttpRequest(method, target.encode(), named, body, True), Peer(1, "127.0.0.1"))
        return Answer(response.status, dict(response.headers), response.body)

    async def call(self, method: str, /, headers: dict[str, str] | None = None, **params: Any) -> Answer:
        return await self.ask("POST", f"/web/call/{method}", json.dumps(params).encode(), **OWN, **(headers or {}))


@asynccontextmanager
async def browsing(
    access: Access = OPEN, *, controls: bool = False, audit: Path | None = None
) -> AsyncIterator[Browser]:
    clock = Clock.started(START_S, VIRTUAL)
    async with cluster_actors(seed=7, clock=clock) as cluster:
        await cluster.store.do(lambda store: store.create(node("n1")))
        await cluster.store.do(lambda store: store.create(pod("web")))
        methods = method_table(daemon_methods(cluster, DaemonState("1", "k.sock", START_S)))
        if audit is None:
            yield Browser(WebPage(methods, {}, access, FairShares(), None, None, controls))
            return
        async with audit_log(AuditFile(audit, 1 << 20, 1), DaemonLimits()) as log:
            yield Browser(WebPage(methods, {}, access, FairShares(), log, None, controls))


async def test_the_page_and_its_files_are_served_with_a_strict_policy() -> None:
    async with browsing() as browser:
        page = await browser.ask("GET", "/web/")
        assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert not any(word in page.body for word in (b"<script>", b"style=", b"http"))
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        for name in (
            "main.js",
            "client.js",
            "pending.js",
            "nodes.js",
            "decision.js",
            "queue.js",
            "what-if.js",
            "page.css",
        ):
            file = await browser.ask("GET", f"/web/{name}")
            assert file.status == 200
            assert (await browser.ask("GET", f"/web/{name}", if_none_match=file.headers["ETag"])).status == 304
        assert (await browser.ask("GET", "/web/../serving.py")).status == 404
        assert (await browser.ask("GET", "/web")).headers["Location"] == "/web/"
        assert (await browser.ask("PUT", "/web/")).status == 405


async def test_no_file_creates_elements_from_text() -> None:
    async with browsing() as browser:
        for name in ("main.js", "client.js", "pending.js", "nodes.js", "decision.js", "queue.js", "what-if.js"):
            text = (await browser.ask("GET", f"/web/{name}")).body.decode()
            assert not any(
                word in text for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
            )


async def test_a_reading_method_is_answered() -> None:
    async with browsing() as browser:
        usage = (await browser.call("nodes.usage")).result
        assert usage["nodes"] == ["n1"]
        listed = (await browser.call("objects.list", kind="Pod")).result
        assert [item["metadata"]["name"] for item in listed["items"]] == ["web"]


@pytest.mark.parametrize(
    "method", ["objects.create", "objects.delete", "daemon.stop", "cluster.load", "objects.watch", "debug.pause"]
)
async def test_other_methods_are_rejected(method: str) -> None:
    async with browsing() as browser:
        answer = await browser.call(method)
        assert (answer.status, answer.error["code"]) == (403, "forbidden")
        assert method in answer.error["message"]


async def test_an_error_of_a_method_is_returned_with_its_code() -> None:
    async with browsing() as browser:
        answer = await browser.call("objects.get", kind="Node", name="n2")
        assert (answer.status, answer.error["code"]) == (404, "not_found")
        assert (await browser.call("objects.get", knd="Node")).error["code"] == "bad_params"
        assert (await browser.call("nodes.usag")).error["code"] == "unknown_method"
        for body in (b"{", b"[]", b"\xff", b"[" * 100_000):
            assert (await browser.ask("POST", "/web/call/nodes.usage", body, **OWN)).error["code"] == "bad_params"
        large = b'{"pod": "' + b"x" * (1 << 20) + b'"}'
        assert (await browser.ask("POST", "/web/call/queue.pod", large, **OWN)).status == 413


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no-header-field-of-the-page"),
        pytest.param({**OWN, "origin": "https://evil.example"}, id="another-origin"),
        pytest.param({**OWN, "origin": "http://127.0.0.1:9999"}, id="another-port"),
        pytest.param({**OWN, "host": "evil.example"}, id="another-host"),
    ],
)
async def test_other_sites_may_not_call(headers: dict[str, str]) -> None:
    async with browsing() as browser:
        answer = await browser.ask("POST", "/web/call/nodes.usage", b"{}", **headers)
        assert (answer.status, answer.error["code"]) == (403, "forbidden")
        assert (await browser.call("nodes.usage", {"origin": "http://127.0.0.1:8001"})).status == 200


async def test_a_link_logs_one_browser_in() -> None:
    async with browsing(WITH_TOKENS) as browser:
        refused = await browser.call("nodes.usage")
        assert (refused.status, refused.error["code"]) == (401, "unauthenticated")
        assert "kschedd web" in refused.error["message"]
        code = browser.page.logins.code_for(User("ann"))
        login = await browser.ask("GET", f"/web/login?code={code}")
        assert (login.status, login.headers["Location"]) == (303, "/web/")
        assert "HttpOnly; SameSite=Strict" in login.headers["Set-Cookie"]
        cookie = {"cookie": login.headers["Set-Cookie"].partition(";")[0]}
        assert (await browser.call("page.info", cookie)).result == {"user": "ann", "controls": False}
        assert (await browser.call("nodes.usage", cookie)).status == 200
        assert (await browser.ask("GET", f"/web/login?code={code}")).status == 403
        assert (await browser.call("nodes.usage", {"cookie": "kschedd-session=x"})).status == 401
        assert (await browser.call("nodes.usage", {"authorization": "Bearer t"})).status == 200


async def test_a_user_writes_in_its_own_forks_only(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with browsing(WITH_TOKENS, audit=log) as browser:
        ann, bob = {"authorization": "Bearer t"}, {"authorization": "Bearer r"}
        made = (await browser.call("fork.create", ann, name="a")).result
        assert (made["name"], made["user"]) == ("a", "ann")
        deleted = await browser.call(
            "fork.call", ann, fork="a", method="objects.delete", params={"kind": "Node", "name": "n1"}
        )
        assert deleted.status == 200
        assert [each["name"] for each in (await browser.call("fork.diff", ann, fork="a")).result["nodes"]] == ["n1"]
        assert (await browser.call("nodes.usage", ann)).result["nodes"] == ["n1"]
        denied = await browser.call("fork.discard", bob, fork="a")
        assert (denied.status, denied.error["code"]) == (403, "forbidden")
        assert (await browser.call("fork.discard", ann, fork="a")).status == 200
    noted = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(each["user"]["username"], each["verb"], each["responseStatus"]["code"]) for each in noted] == [
        ("ann", "fork.create", 200),
        ("ann", "fork.call", 200),
        ("bob", "fork.discard", 403),
        ("ann", "fork.discard", 200),
    ]


async def test_controls_stop_the_scheduler_and_advance_time() -> None:
    async with browsing(WITH_TOKENS, controls=True) as browser:
        ann, bob = {"authorization": "Bearer t"}, {"authorization": "Bearer r"}
        assert (await browser.call("page.info", ann)).result["controls"]
        assert not (await browser.call("page.info", bob)).result["controls"]
        for method in CONTROLS:
            assert (
                await browser.call(method, bob, **({"speed": 1.0} if method == "time.set_speed" else {}))
            ).status == 403
        assert (await browser.call("debug.pause", ann)).status == 200
        assert (await browser.call("scheduler.status", ann)).result["paused"]
        assert (await browser.call("debug.state", ann)).result["holder"] in (None, "")
        assert (await browser.call("debug.step", {"authorization": "Bearer c"})).status == 200
        assert (await browser.call("debug.resume", ann)).status == 200
        assert not (await browser.call("scheduler.status", ann)).result["paused"]
        moved = (await browser.call("time.advance", ann, seconds=90)).result
        assert (moved["now_s"], moved["moved"]) == (START_S + 90, "reached")
        assert (await browser.call("objects.delete", ann, kind="Node", name="n1")).status == 403


async def test_codes_and_sessions_end() -> None:
    async with browsing(WITH_TOKENS) as browser:
        logins, now = browser.page.logins, [0.0]
        logins.now = lambda: now[0]
        late = logins.code_for(User("ann"))
        now[0] = 121.0
        assert logins.exchange(late) is None
        session = logins.exchange(logins.code_for(User("ann")))
        assert session is not None
        now[0] += 12 * 3600
        assert logins.user_of(session) == User("ann")
        now[0] += 12 * 3600 + 1
        assert logins.user_of(session) is None
        codes = [logins.code_for(User("ann")) for _ in range(65)]
        assert logins.exchange(codes[0]) is None
        assert logins.exchange(codes[1]) is not None
    await trio.lowlevel.checkpoint()
