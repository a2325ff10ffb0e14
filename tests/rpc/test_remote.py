"""Tests of the TCP listener on a real loopback port: accepted and rejected clients, and the effect on other clients."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import msgpack
import pytest
import trio
import trustme

from kschedd.access.addresses import Address
from kschedd.access.credentials import SOCKET_FLAGS, ListenSettings
from kschedd.access.listening import open_listeners
from kschedd.access.requests import AccessRequest
from kschedd.access.users import READ_ONLY
from kschedd.rpc.blocking import BlockingClient
from kschedd.rpc.client import Client
from kschedd.rpc.encoding import encode_request
from kschedd.rpc.errors import SocketPathError
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.remote import AdmissionLimits, RemoteDoor
from kschedd.rpc.sessions.server import Places, Server
from kschedd.rpc.sessions.session import Shared
from kschedd.service.errors import RpcError
from kschedd.service.table import Call, Method
from kschedd.store.errors import AccessDenied
from tests.rpc.conftest import Raw


async def _looked(call: Call) -> Any:
    return "seen"


async def _changed(call: Call) -> Any:
    return call.services.caller.user.name


async def _only_reads(request: AccessRequest) -> None:
    if request.verb != "get":
        raise AccessDenied(request)


METHODS = (
    Method("look", _looked, doc="Looks.", reads=True),
    Method("change", _changed, doc="Changes something."),
)
TOKENS = f"sesame,ali,1\nlooker,eve,2,{READ_ONLY}\n"


@attrs.define(eq=False)
class Knocks:
    """A log of the listener that counts connections."""

    count: int = 0
    _lot: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)

    def debug(self, event: str, **fields: Any) -> None:
        assert event == "rpc.knocked"
        self.count += 1
        self._lot.unpark_all()

    def warning(self, event: str, **fields: Any) -> None:
        assert event == "rpc.not_admitted"

    async def wait_for(self, count: int) -> None:
        while self.count < count:
            await self._lot.park()


@attrs.frozen
class Open:
    """A server behind a door. `folder` has the files."""

    door: RemoteDoor
    server: Server
    folder: Path
    authority: trustme.CA | None
    knocks: Knocks
    opened: AsyncExitStack

    @property
    def port(self) -> int:
        return int(self.door.url.rpartition(":")[2])

    @property
    def socket(self) -> Path:
        return self.folder / "k.sock"

    def url(self, token: str, **files: str) -> str:
        file = self.folder / f"token-{token}"
        file.write_text(f"{token}\n")
        file.chmod(0o600)
        given = {"token-file": file, **files}
        if self.authority is not None:
            given["ca-file"] = self.folder / "ca"
        return f"{self.door.url}?" + "&".join(f"{name}={value}" for name, value in given.items())

    async def plain(self) -> trio.SocketStream:
        return await self.opened.enter_async_context(await trio.open_tcp_stream("127.0.0.1", self.port))

    async def raw(self) -> Raw:
        """Return a connection that has completed its handshake and has sent no message yet."""
        stream: Any = await self.plain()
        if self.authority is not None:
            context = ssl.create_default_context()
            self.authority.configure_trust(context)
            stream = trio.SSLStream(stream, context, server_hostname="127.0.0.1", https_compatible=True)
            await stream.do_handshake()
        return Raw(stream)


@asynccontextmanager
async def opened_door(
    folder: Path,
    *,
    tls: bool = True,
    limits: AdmissionLimits | None = None,
    places: Places | None = None,
    rbac: bool = False,
) -> AsyncIterator[Open]:
    authority = trustme.CA() if tls else None
    if authority is not None:
        issued = authority.issue_cert("127.0.0.1")
        issued.cert_chain_pems[0].write_to_path(str(folder / "cert"))
        issued.private_key_pem.write_to_path(str(folder / "key"))
        authority.cert_pem.write_to_path(str(folder / "ca"))
    (folder / "tokens").write_text(TOKENS)
    (folder / "tokens").chmod(0o600)
    files = (folder / "cert", folder / "key", folder / "ca") if tls else (None, None, None)
    settings = ListenSettings(
        Address("127.0.0.1", 0),
        *files,
        folder / "tokens",
        flags=SOCKET_FLAGS,
        open_locally=False,
        protocols=(),
        rbac=rbac,
    )
    server = Server(method_table(METHODS), places=places, shared=Shared(authorize=_only_reads))
    knocks = Knocks()
    door = RemoteDoor(await open_listeners(settings), settings.load(), limits or AdmissionLimits(), knocks)
    with trio.fail_after(90):
        async with AsyncExitStack() as opened, trio.open_nursery() as nursery:
            listener = await opened.enter_async_context(unix_listener(folder / "k.sock"))
            await nursery.start(server.serve, [listener], door)
            yield Open(door, server, folder, authority, knocks, opened)
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("tls", [True, False], ids=["tls", "plaintext-on-loopback"])
async def test_a_token_lets_a_client_in(tmp_path: Path, tls: bool) -> None:
    async with opened_door(tmp_path, tls=tls) as there, Client.connect(there.url("sesame")) as client:
        assert await client.call("change") == "ali"
        groups = ["system:authenticated"]
        assert await client.call("rpc.authenticate") == {"user": "ali", "groups": groups, "read_only": False}


async def test_a_blocking_client_comes_in_as_well(tmp_path: Path) -> None:
    def use(url: str) -> tuple[Any, Any]:
        with BlockingClient(url) as client:
            return client.call("look"), client.call("change")

    async with opened_door(tmp_path) as there:
        assert await trio.to_thread.run_sync(use, there.url("sesame")) == ("seen", "ali")


async def test_a_read_only_token_reads_and_is_refused_to_write(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as there, Client.connect(there.url("looker")) as client:
        assert await client.call("look") == "seen"
        with pytest.raises(RpcError, match="change changes state, but eve has read-only access") as refused:
            await client.call("change")
        assert refused.value.code == "forbidden"
        assert await client.call("look") == "seen", "the connection goes on"


async def test_with_rbac_a_method_needs_a_permission_for_its_path(tmp_path: Path) -> None:
    async with opened_door(tmp_path, rbac=True) as there, Client.connect(there.url("sesame")) as client:
        assert await client.call("look") == "seen"
        with pytest.raises(RpcError, match='forbidden: User "ali" cannot post path "/rpc/change"') as refused:
            await client.call("change")
        assert refused.value.code == "forbidden"
        assert (await client.call("rpc.authenticate"))["user"] == "ali"
    async with opened_door(tmp_path) as there, Client.connect(there.url("sesame")) as client:
        assert await client.call("change") == "ali"


async def test_a_client_certificate_says_who_it_is(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as there:
        assert there.authority is not None
        issued = there.authority.issue_cert(common_name="carl", organization_name=READ_ONLY)
        issued.cert_chain_pems[0].write_to_path(str(tmp_path / "own"))
        issued.private_key_pem.write_to_path(str(tmp_path / "own-key"))
        files = f"ca-file={tmp_path / 'ca'}&cert-file={tmp_path / 'own'}&key-file={tmp_path / 'own-key'}"
        async with Client.connect(f"{there.door.url}?{files}") as client:
            assert (await client.call("rpc.authenticate"))["user"] == "carl"
            with pytest.raises(RpcError, match="carl has read-only access"):
                await client.call("change")


async def test_requests_sent_with_the_token_are_answered_after_it(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as there:
        raw = await there.raw()
        await raw.send(encode_request(7, "rpc.authenticate", ["sesame"]) + encode_request(8, "look", []))
        assert (await raw.message())[:3] == [1, 7, None]
        assert await raw.message() == [1, 8, None, "seen"]


def _authenticate(token: Any) -> bytes:
    return encode_request(1, "rpc.authenticate", [{"token": token}])


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        pytest.param(_authenticate("sesam"), "unknown token", id="a-wrong-token"),
        pytest.param(_authenticate("sesame\n"), "unknown token", id="a-token-with-a-newline"),
        pytest.param(_authenticate(""), "unknown token", id="an-empty-token"),
        pytest.param(_authenticate(None), "the first message has to be", id="no-token"),
        pytest.param(_authenticate(b"sesame"), "the first message has to be", id="bytes-for-a-token"),
        pytest.param(encode_request(1, "look", []), "the first message has to be", id="another-method"),
        pytest.param(encode_request(1, "look", ["sesame"]), "the first message has to be", id="another-with-a-token"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "the first message has to be", id="http"),
        pytest.param(b"\xc1", "the first message has to be", id="no-messagepack"),
        pytest.param(b"\xdd\xff\xff\xff\xff" + b"\x91" * 20_000, "the first message has to be", id="nested-garbage"),
        pytest.param(_authenticate("x" * 30_000), "the first message has to be", id="a-token-that-is-too-long"),
    ],
)
async def test_what_lets_nobody_in(tmp_path: Path, sent: bytes, why: str) -> None:
    async with opened_door(tmp_path, tls=False) as there:
        raw = await there.raw()
        await raw.send(sent)
        answer = await raw.message()
        assert answer[2]["code"] == "unauthenticated"
        assert answer[2]["message"].startswith(why)
        assert await raw.message() is None, "the connection is closed"
        assert there.server.clients == 0


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="half-a-client-hello"),
    ],
)
async def test_who_takes_too_long_has_to_go(tmp_path: Path, sent: bytes) -> None:
    async with opened_door(tmp_path, limits=AdmissionLimits(seconds=0.05)) as there:
        plain = await there.plain()
        await plain.send_all(sent or b"\x16")
        assert await Raw(plain).message() is None


async def trickle(raw: Raw) -> None:
    await raw.send(b"\xdb\x00\x00\x40\x00")
    while True:
        await raw.send(b"x")
        await trio.sleep(0.01)


async def test_who_trickles_its_token_has_to_go(tmp_path: Path) -> None:
    async with opened_door(tmp_path, tls=False, limits=AdmissionLimits(seconds=0.05)) as there:
        raw = await there.raw()
        with pytest.raises(trio.BrokenResourceError):
            await trickle(raw)


async def test_plaintext_at_a_door_with_tls_is_no_client(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as there:
        plain = await there.plain()
        await plain.send_all(b"GET / HTTP/1.1\r\n\r\n")
        while await plain.receive_some(4096):  # an alert, perhaps
            pass
        assert there.server.clients == 0


async def test_where_too_many_wait_the_one_that_took_longest_has_to_go(tmp_path: Path) -> None:
    async with opened_door(tmp_path, limits=AdmissionLimits(pending=3, seconds=3600)) as there:
        silent = []
        for count in range(1, 4):
            silent.append(await there.plain())
            await there.knocks.wait_for(count)
        async with Client.connect(there.url("sesame")) as client:
            assert await client.call("look") == "seen"
        assert await Raw(silent[0]).message() is None
        assert there.door.used() == (2, 3)


async def test_a_flood_at_the_door_keeps_nobody_out_of_the_unix_socket(tmp_path: Path) -> None:
    async with opened_door(tmp_path, limits=AdmissionLimits(pending=16, seconds=3600)) as there:
        local = Raw(await there.opened.enter_async_context(await trio.open_unix_socket(there.socket)))
        for number in range(1, 201):
            stream = await there.plain()
            await stream.send_all(b"\x16\x03\x01")
            if number % 20 == 0:
                await local.send(encode_request(number, "look", []))
                assert await local.message() == [1, number, None, "seen"]
        assert there.door.used()[1] <= 16
        async with Client.connect(there.url("sesame")) as client:
            assert await client.call("change") == "ali"


async def test_clients_on_the_network_leave_places_to_those_of_the_unix_socket(tmp_path: Path) -> None:
    async with opened_door(tmp_path, places=Places(remote=2, idle_s=3600)) as there, AsyncExitStack() as clients:
        for _ in range(2):
            await clients.enter_async_context(Client.connect(there.url("sesame")))
        with pytest.raises(RpcError, match="2 clients are connected by TCP") as refused:
            async with Client.connect(there.url("sesame")) as third:
                await third.call("look")
        assert refused.value.code == "too_many"
        async with Client.connect(there.socket) as local:
            assert await local.call("look") == "seen"


async def test_a_daemon_with_another_certificate_is_not_spoken_to(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as there:
        trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca"))
        with pytest.raises(SocketPathError, match="certificate verify failed"):
            async with Client.connect(there.url("sesame")):
                raise AssertionError("it connected")
        with pytest.raises(SocketPathError, match="certificate verify failed"):
            await trio.to_thread.run_sync(BlockingClient, there.url("sesame"))


async def test_tokens_that_were_taken_away_let_in_nobody_new(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as there, Client.connect(there.url("looker")) as before:
        (tmp_path / "tokens").write_text("sesame,ali,1\n")
        there.door.credentials.reload()
        assert await before.call("look") == "seen", "who is there stays"
        with pytest.raises(RpcError, match="unknown token"):
            async with Client.connect(there.url("looker")):
                raise AssertionError("it connected")


async def test_on_the_unix_socket_one_is_who_the_system_says(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as there, Client.connect(there.socket) as local:
        who = await local.call("rpc.authenticate", token="whatever")
        assert who == {"user": await local.call("change"), "groups": who["groups"], "read_only": False}


def test_msgpack_is_what_the_documentation_says() -> None:
    """Check the first message byte by byte, for authors of clients."""
    assert msgpack.unpackb(_authenticate("t")) == [0, 1, "rpc.authenticate", [{"token": "t"}]]
