"""Webhooks are called over HTTPS by the clients of the store, while the store serves other requests."""

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trustme

from kschedd.actors.objects.store import StoreActor, StoreClient
from kschedd.actors.objects.webhooks import send
from kschedd.controllers.running.turns import turn_in_steps
from kschedd.object_faults import FaultLedger
from kschedd.store.awaited import WebhookCall
from kschedd.store.errors import ApiError, WebhookDenied
from kschedd.store.store import Store
from kschedd.store.writes import Bind, Create, Write
from tests.store.policies.made import binding, config_map, policy
from tests.store.policies.test_long_evaluations import TEN
from tests.store.webhooks.test_hooks import hook


@asynccontextmanager
async def running_store() -> AsyncIterator[StoreClient]:
    async with trio.open_nursery() as nursery:
        send_in, receive = trio.open_memory_channel[Any](16)
        nursery.start_soon(StoreActor(Store(now=lambda: 0.0), receive).run)
        client = StoreClient.of(send_in)
        try:
            yield client
        finally:
            client.close()


@attrs.define
class HookServer:
    """An HTTPS server whose behavior follows from the path of a request."""

    port: int
    ca: str
    held: threading.Event
    seen: threading.Event  # a request has arrived
    requests: list[dict[str, Any]]

    def call(self, path: str, **fields: Any) -> WebhookCall:
        url = f"https://127.0.0.1:{self.port}{path}"
        call = WebhookCall("h", url, f"127.0.0.1:{self.port}", "127.0.0.1", path, self.ca, 5, "v1", {"name": "c"})
        return attrs.evolve(call, **fields)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HookServer]:
    authority = trustme.CA()
    held, seen, requests = threading.Event(), threading.Event(), list[dict[str, Any]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            requests.append(request)
            seen.set()
            path = self.path.partition("?")[0]
            if path == "/held":
                held.wait(10)
            response = {"uid": "x" if path == "/uid" else request["uid"], "allowed": path != "/deny"}
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
            body = json.dumps({} if path == "/empty" else review).encode()
            if path == "/deep":
                body = b'{"a":' * 100_000
            if path in ("/slow-head", "/slow-body", "/endless"):
                return self.send_without_end(path)
            self.send_response(500 if path == "/500" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def send_without_end(self, path: str) -> None:
            """Send bytes until the client closes the connection."""
            endless = path == "/endless"
            self.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"" if path == "/slow-head" else b"\r\n"))
            with suppress(OSError):
                while not held.wait(0 if endless else 0.05):
                    self.wfile.write(b" " * (1 << 20) if endless else b"x")

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    yield HookServer(listening.server_port, authority.cert_pem.bytes().decode(), held, seen, requests)
    held.set()
    listening.shutdown()
    listening.server_close()


def test_an_answer(server: HookServer) -> None:
    assert send(server.call("/ok")).response == {"uid": server.requests[0]["uid"], "allowed": True}


@pytest.mark.parametrize(
    ("path", "fields", "why"),
    [
        ("/500", {}, 'an error on the server ("unknown") has prevented the request from succeeding'),
        ("/empty", {}, "the response is not an AdmissionReview"),
        ("/held", {"timeout_s": 1}, "context deadline exceeded"),
        ("/ok", {"ca": ""}, "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        ("/ok", {"address": "127.0.0.1:1"}, "dial tcp 127.0.0.1:1: connect: connection refused"),
        ("/uid", {}, 'got "x"'),
        ("/slow-head", {"timeout_s": 1}, "context deadline exceeded"),
        ("/slow-body", {"timeout_s": 1}, "context deadline exceeded"),
        ("/endless", {}, "the response has more than 4194304 bytes"),
        ("/deep", {}, "json parse error: maximum recursion depth exceeded while deserializing an object"),
    ],
)
def test_a_failure(server: HookServer, path: str, fields: dict[str, Any], why: str) -> None:
    answer = send(server.call(path, **fields))
    assert answer.response is None
    assert answer.failure.endswith(why)


async def test_the_store_serves_others_during_a_call(server: HookServer) -> None:
    client = {"url": f"https://127.0.0.1:{server.port}/held", "caBundle": b64encode(server.ca.encode()).decode()}
    async with running_store() as store, trio.open_nursery() as nursery:
        await store.create(hook(clientConfig=client))
        nursery.start_soon(store.create, config_map())
        await trio.to_thread.run_sync(server.seen.wait, 10)
        assert await store.find("ConfigMap", "default", "c") is None
        server.held.set()
    assert len(server.requests) == 1


async def test_a_denied_write_changes_nothing(server: HookServer) -> None:
    client = {"url": f"https://127.0.0.1:{server.port}/deny", "caBundle": b64encode(server.ca.encode()).decode()}
    async with running_store() as store:
        await store.create(hook(clientConfig=client))
        before = await store.do(lambda cluster: cluster.version)
        answers = await store.create_many([config_map("a"), {**config_map("b"), "kind": "Secret"}])
        assert isinstance(answers[0], WebhookDenied)
        assert await store.do(lambda cluster: cluster.version) == before + 1


@attrs.define(eq=False)
class Writer:
    """A controller that performs these writes once."""

    writes: list[Write]
    refused: list[ApiError] = attrs.field(factory=list)
    faults: FaultLedger[list[Write]] = attrs.field(factory=lambda: FaultLedger("writer"))
    name: str = "writer"
    kinds: frozenset[str] = frozenset()
    next_deadline: float | None = 0.0

    def reconcile(self, events: Any, view: Any, now: float) -> list[Write]:
        self.next_deadline = None
        return self.writes

    def on_refused(self, write: Write, error: ApiError, view: Any, now: float) -> list[Write]:
        self.refused.append(error)
        return []


BINDINGS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
COSTLY = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, a < 10))))"


def two_pods(store: Any) -> None:
    for name in ("a", "b"):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        store.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


async def test_a_webhook_is_called_for_each_binding_of_the_scheduler(server: HookServer) -> None:
    ca = b64encode(server.ca.encode()).decode()
    url = f"https://127.0.0.1:{server.port}/allow"
    async with running_store() as client:
        await client.do(two_pods)
        await client.create(hook(clientConfig={"url": url, "caBundle": ca}, rules=[BINDINGS]))
        bindings = [Bind("default", "a", "", "n1"), Bind("default", "b", "", "n2"), Bind("default", "gone", "", "n1")]
        pending = await client.ask(lambda store: store.bind_many(bindings))
        failures = await pending.value()
        assert [None if failure is None else str(failure) for failure in failures] == [
            None,
            None,
            'pods "gone" not found',
        ]
        pods = await client.list("Pod")
        assert [pod.spec["nodeName"] for pod in pods] == ["n1", "n2"]
        objects = [(request["kind"]["kind"], request["name"]) for request in server.requests]
        assert sorted(objects) == [("Binding", "a"), ("Binding", "b")]


async def test_a_costly_policy_does_not_hold_the_loop_during_a_binding() -> None:
    async with running_store() as client:
        await client.do(two_pods)
        constraints = {"resourceRules": [BINDINGS]}
        expression = f"{COSTLY} && object.target.name != 'n2'"
        await client.create(policy(matchConstraints=constraints, validations=[{"expression": expression}]))
        await client.create(binding())
        bindings = [Bind("default", "a", "", "n1"), Bind("default", "b", "", "n2")]
        failures = await (await client.ask(lambda store: store.bind_many(bindings))).value()
        assert failures[0] is None
        assert "failed expression" in str(failures[1])


async def test_work_in_steps_waits_for_a_costly_policy() -> None:
    async with running_store() as client:
        await client.create(policy(validations=[{"expression": f"{COSTLY} && object.metadata.name != 'bad'"}]))
        await client.create(binding())
        writer = Writer([Create(config_map("good")), Create(config_map("bad"))])
        done = await client.do_in_steps(lambda store: turn_in_steps(writer, [], store))
        assert (done, len(writer.refused)) == (1, 1)
        assert [each.name for each in await client.list("ConfigMap")] == ["good"]
