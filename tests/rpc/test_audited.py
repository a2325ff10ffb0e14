"""Tests that the audit log has writes over the socket with their results, and no reads."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import trio

from kschedd.access.audit_log import AuditFile, AuditLog
from kschedd.errors import KscheddError
from kschedd.rpc.client import Client
from kschedd.rpc.sessions.session import Shared
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.table import Call, Method


class Gone(KscheddError):
    rpc_code = "not_found"


async def _done(call: Call) -> str:
    return "done"


async def _fails(call: Call) -> None:
    raise Gone("there is none")


async def _annotates(call: Call) -> str:
    call.annotations["p/seen"] = "web"
    return "done"


METHODS = (
    Method("look", _done, doc="Looks.", reads=True),
    Method("change", _done, (Param("name"),), doc="Changes."),
    Method("fail", _fails, doc="Fails."),
    Method("annotate", _annotates, doc="Annotates."),
)


async def test_writes_are_noted_with_who_and_what_came_of_them(serve: Any, tmp_path: Path) -> None:
    audit = AuditLog(AuditFile(tmp_path / "audit.log"))
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(audit.run)
            served = await serve(*METHODS, shared=Shared(audit=audit))
            async with Client.connect(served.path) as client:
                await client.call("look")
                await client.call("change", name="web")
                with pytest.raises(RpcError, match="there is none"):
                    await client.call("fail")
                await client.call("annotate")
            audit.close()
    first, second, third = map(json.loads, (tmp_path / "audit.log").read_text().splitlines())
    assert (first["verb"], first["responseStatus"]["code"]) == ("change", 200)
    assert first["annotations"] == {"kschedd.io/params": '{"name": "web"}'}
    assert first["user"]["extra"] == {"kschedd.io/pid": [str(os.getpid())], "kschedd.io/uid": [str(os.getuid())]}
    assert (second["verb"], second["responseStatus"]["code"]) == ("fail", 404)
    assert second["responseStatus"]["message"] == "there is none"
    assert third["annotations"] == {"p/seen": "web"}
