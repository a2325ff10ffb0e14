"""Tests of pods that are pending for a known reason: a client solves them by the tools' first suggestion.

The client is the official MCP client, connected in this process.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.assistants.serving import text_of, toolbox_of
from tests.explain.planted import PLANTED, Planted
from tests.explain.test_planted import planted_cluster

mcp = pytest.importorskip("mcp")

#: cases without a suggestion, because a person must decide or any remedy would do harm
UNSOLVED = {
    "gate": "SchedulingGated",
    "gate-and-cordon": "SchedulingGated",
    "used-by-one-pod-only": "ClaimInUse",
    "no-claim": "ClaimMissing",
    "no-volume": "ClaimWithoutProvisioner",
    "unbound-immediate": "ClaimWithoutProvisioner",
    "shunned": "AntiAffinityOfOthers",
    "no-device-class": "DeviceClassMissing",
    "not-ready": "NodesNotReady",
}


async def _solved(client: Any) -> dict[str, Any]:
    """Run the scripted client; return its findings.

    It lists the pending pods, requests an explanation, and follows the first suggestion.
    """

    async def call(tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, text_of(result)
        return result

    pending = await call("list", kind="pods", fields="status.phase=Pending")
    assert pending.structured_content["total"] >= 1
    assert "web" in text_of(pending)
    why = (await call("explain", pod="default/web")).structured_content
    if not why["suggestions"]:
        return {"code": why["cause"]["code"]}
    first = why["suggestions"][0]
    for step in first["steps"]:
        await call("plan", **step)
        await call("change", **step)
    placed = await call("expect", what="pod web running", within="10m")
    return {**placed.structured_content, "text": text_of(placed)}


@pytest.mark.parametrize("reason", PLANTED, ids=lambda reason: reason.name)
async def test_the_first_suggestion_places_the_pod(reason: Planted, tmp_path: Path) -> None:
    from kschedd.assistants.server import mcp_server

    cluster = planted_cluster(reason, tmp_path)
    async with mcp.Client(mcp_server(toolbox_of(cluster, writes=True))) as client:
        found = await _solved(client)
    if reason.name in UNSOLVED:
        assert found == {"code": UNSOLVED[reason.name]}
    else:
        assert found["met"], found["text"]
