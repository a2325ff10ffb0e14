"""All tools for one cluster by name, and the execution of a call with its errors."""

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.api.text.similar import allowed_names
from kschedd.assistants import changing, reading, reasons, trying
from kschedd.assistants.command import ServedCluster
from kschedd.assistants.tool import Tool, ToolError
from kschedd.errors import KscheddError

INSTRUCTIONS = """\
A Kubernetes cluster under kschedd, which schedules like kube-scheduler 1.37 and can explain its decisions. Begin with \
`overview`, or `list` kind=pods fields=status.phase=Pending; `explain` states why a pod is pending and how to get it \
scheduled, `why_not` the same for one node. `plan`, `check` and `scenario` test changes and their effects on a copy \
of the cluster. Pods are named namespace/name. A result with further pages ends with the `cursor` of the next one."""


@attrs.frozen
class ToolResult:
    text: str
    data: Mapping[str, Any]
    is_error: bool = False


class Toolbox:
    """The tools. `writes` adds the tools that change the cluster."""

    def __init__(self, target: ServedCluster, *, writes: bool) -> None:
        everything = (
            *reading.tools(target),
            *reasons.tools(target, writes=writes),
            *trying.tools(target),
            *changing.tools(target),
        )
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in everything if writes or not tool.writes}
        self._withheld = frozenset(tool.name for tool in everything) - self.tools.keys()

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Return the result of a tool, or an error message with the allowed values."""
        try:
            tool = self.tools.get(name)
            if tool is None:
                raise ToolError(self._why_not(name))
            text, data = tool.call(arguments)
        except KscheddError as wrong:
            return ToolResult(f"{name}: {str(wrong).removeprefix(f'{name}: ')}", {}, is_error=True)
        return ToolResult(text, data)

    def _why_not(self, name: str) -> str:
        if name in self._withheld:
            return "this server is read-only: it was started without --allow-writes. `plan` tests a change on a copy"
        return f"there is no such tool{allowed_names(name, self.tools)}"
