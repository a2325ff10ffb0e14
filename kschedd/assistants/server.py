"""The server of the tools for the Model Context Protocol, with the official `mcp` package (an extra).

Calls run in a thread, one after the other, because a client of the daemon handles one request at a time. An error of a
tool is returned as a result that the model reads, not as a protocol error.
"""

from importlib.metadata import version
from typing import Any

import mcp_types as types
import trio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from kschedd.assistants.toolbox import INSTRUCTIONS, Toolbox, ToolResult


def mcp_server(toolbox: Toolbox) -> Server[Any]:
    one_at_a_time = trio.CapacityLimiter(1)

    async def listed(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.doc,
                    input_schema=tool.schema,
                    output_schema=tool.output_schema,
                    annotations=types.ToolAnnotations(
                        read_only_hint=not tool.writes, destructive_hint=tool.writes, open_world_hint=False
                    ),
                )
                for tool in toolbox.tools.values()
            ]
        )

    async def called(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        def call() -> ToolResult:
            return toolbox.call(params.name, params.arguments or {})

        outcome = await trio.to_thread.run_sync(call, limiter=one_at_a_time)
        return types.CallToolResult(
            content=[types.TextContent(text=outcome.text)],
            structured_content=None if outcome.is_error else dict(outcome.data),
            is_error=outcome.is_error,
        )

    return Server(
        "kschedd", version=version("kschedd"), instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
    )


async def serve_stdio(server: Server[Any]) -> None:
    """Serve on standard input and output until the input ends."""
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())
