"""Test of `kschedd mcp` as a client starts it: a process that speaks the protocol on standard input and output."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from kschedd.rpc.client import Client
from tests.assistants.serving import text_of
from tests.daemons import process
from tests.explain.planted import both, node, pod

mcp = pytest.importorskip("mcp")


async def test_a_pod_of_a_running_daemon_is_placed(tmp_path: Path) -> None:
    socket = tmp_path / "k.sock"
    words = ["-m", "kschedd", "mcp", "--socket", str(socket), "--allow-writes"]
    started = mcp.StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    with trio.fail_after(120):
        async with process(tmp_path):
            async with Client.connect(socket) as daemon:
                manifests = both(node("n1", spec="unschedulable: true"), pod())
                await daemon.call("objects.apply", manifests=manifests)
            async with mcp.Client(started) as client:
                listed = (await client.list_tools()).tools
                assert {"explain", "change"} <= {tool.name for tool in listed}

                async def call(tool: str, **arguments: Any) -> Any:
                    result = await client.call_tool(tool, arguments)
                    assert not result.is_error, text_of(result)
                    return result

                tried = await call("expect", what="pod web pending because 'unschedulable'", within="60s")
                assert tried.structured_content == {"met": True}, text_of(tried)
                why = await call("explain", pod="default/web")
                (step,) = why.structured_content["suggestions"][0]["steps"]
                assert step["command"] == "uncordon n1"
                await call("change", **step)
                placed = await call("expect", what="pod web on node n1", within="60s")
                assert placed.structured_content == {"met": True}, text_of(placed)
                wrong = await client.call_tool("explain", {"pod": "nobody"})
                assert wrong.is_error
                assert 'pods "nobody" not found' in text_of(wrong)
