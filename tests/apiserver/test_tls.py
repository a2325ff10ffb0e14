"""Tests of the REST API with TLS on a TCP port: access by token or client certificate, and rejections."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trustme

from kschedd.access.addresses import Address
from kschedd.access.credentials import ListenSettings
from kschedd.apiserver.serving import http_face
from kschedd.http.protocol import BodyPart, ResponseEnd, ResponseHead, ResponseReader
from tests.apiserver.asking import asking

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@attrs.frozen
class Secured:
    port: int
    authority: trustme.CA

    def context(self, certificate: trustme.LeafCert | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if certificate is not None:
            certificate.configure_cert(context)
        return context

    async def ask(self, context: ssl.SSLContext, token: str = "", path: str = WHO) -> tuple[int, Any]:
        """Return status and body of the response to a POST, by default of a SelfSubjectReview."""
        with trio.fail_after(180):
            plain = await trio.open_tcp_stream("127.0.0.1", self.port)
            stream = trio.SSLStream(plain, context, server_hostname="localhost", https_compatible=True)
            async with stream:
                authorization = f"Authorization: Bearer {token}\r\n" if token else ""
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Type: application/json\r\n"
                await stream.send_all(f"{head}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}".encode())
                return await _answer(stream)


async def _answer(stream: trio.abc.ReceiveStream) -> tuple[int, Any]:
    reader, status, body = ResponseReader(), 0, b""
    while True:
        data = await stream.receive_some()
        assert data, "the server has closed before its answer was whole"
        for event in reader.feed(bytes(data)):
            match event:
                case ResponseHead(status=status):
                    pass
                case BodyPart(data=part):
                    body += part
                case ResponseEnd():
                    return status, json.loads(body)


@asynccontextmanager
async def secured(folder: Path, authority: trustme.CA, *, tokens: bool, certificates: bool) -> AsyncIterator[Secured]:
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(folder / "cert"))
    issued.private_key_pem.write_to_path(str(folder / "key"))
    authority.cert_pem.write_to_path(str(folder / "ca"))
    (folder / "tokens").write_text('sesame,ali,1,"robbers,system:masters"\n')
    (folder / "tokens").chmod(0o600)
    settings = ListenSettings(
        Address("127.0.0.1", 0),
        folder / "cert",
        folder / "key",
        folder / "ca" if certificates else None,
        folder / "tokens" if tokens else None,
    )
    async with (
        asking() as api,
        http_face(settings.load(), api.cluster, "test", 1 << 20) as face,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(face.run)
        assert face.url.startswith("https://127.0.0.1:")
        yield Secured(int(face.url.rpartition(":")[2]), authority)
        nursery.cancel_scope.cancel()


async def test_a_token_comes_in_and_a_wrong_one_or_none_does_not(tmp_path: Path, authority: trustme.CA) -> None:
    async with secured(tmp_path, authority, tokens=True, certificates=False) as server:
        status, review = await server.ask(server.context(), "sesame")
        assert (status, review["status"]["userInfo"]["username"]) == (201, "ali")
        assert "robbers" in review["status"]["userInfo"]["groups"]
        for wrong in ("simsim", ""):
            status, refusal = await server.ask(server.context(), wrong)
            assert (status, refusal["reason"]) == (401, "Unauthorized")


async def test_a_client_certificate_is_its_name(tmp_path: Path, authority: trustme.CA) -> None:
    async with secured(tmp_path, authority, tokens=False, certificates=True) as server:
        own = authority.issue_cert(common_name="system:node:n1", organization_name="system:nodes")
        status, review = await server.ask(server.context(own))
        assert status == 201
        assert review["status"]["userInfo"]["username"] == "system:node:n1"
        assert "system:nodes" in review["status"]["userInfo"]["groups"]
        status, _ = await server.ask(server.context())
        assert status == 401


async def test_a_certificate_of_another_authority_comes_to_nothing(tmp_path: Path, authority: trustme.CA) -> None:
    stranger = trustme.CA().issue_cert(common_name="system:masters")
    async with secured(tmp_path, authority, tokens=False, certificates=True) as server:
        with pytest.raises((trio.BrokenResourceError, ssl.SSLError, AssertionError)):
            await server.ask(server.context(stranger))
        status, _ = await server.ask(server.context(authority.issue_cert(common_name="me")))
        assert status == 201, "others are served as before"


async def test_a_client_that_does_not_trust_the_server_goes(tmp_path: Path, authority: trustme.CA) -> None:
    async with secured(tmp_path, authority, tokens=True, certificates=False) as server:
        with pytest.raises(trio.BrokenResourceError):
            await server.ask(ssl.create_default_context(), "sesame")
        status, _ = await server.ask(server.context(), "sesame")
        assert status == 201


async def test_who_speaks_no_tls_is_closed(tmp_path: Path, authority: trustme.CA) -> None:
    async with secured(tmp_path, authority, tokens=True, certificates=False) as server:
        with trio.fail_after(180):
            async with await trio.open_tcp_stream("127.0.0.1", server.port) as plain:
                await plain.send_all(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
                found = b""
                try:
                    while data := await plain.receive_some():
                        found += data
                except trio.BrokenResourceError:
                    pass
        assert b"HTTP/1.1 200" not in found
        status, _ = await server.ask(server.context(), "sesame")
        assert status == 201
