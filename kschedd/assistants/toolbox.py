"""All tools over one cluster, by name; a call's outcome, whatever goes wrong in it."""

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.assistants import changing, reading, reasons, trying
from kschedd.assistants.command import ServedCluster
from kschedd.assistants.tool import Tool, ToolError
from kschedd.errors import KscheddError
from kschedd.service.params import similar_names

INSTRUCTIONS = """\
A Kubernetes cluster under kschedd, which schedules as kube-scheduler 1.37 does and can be asked why. Begin with \
`overview`, or `list` kind=pods fields=status.phase=Pending; `explain` says why a pod is pending and what would place \
it, `why_not` the same of one node. `plan`, `check` and `scenario` try changes on a copy, with all that follows from \
them. Pods are named namespace/name. An answer that is cut says with which `cursor` it goes on."""


@attrs.frozen
class ToolResult:
    text: str
    data: Mapping[str, Any]
    is_error: bool = False


class Toolbox:
    """`writes`: with the tools that change the cluster."""

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
        """What the tool answers, or what is wrong with the call and what is allowed."""
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
            return "this server only looks: it was started without --allow-writes. `plan` tries a change on a copy"
        near = similar_names(name, self.tools)
        hint = f"did you mean {near[0]}? " if near else ""
        return f"there is no such tool; {hint}allowed are {', '.join(self.tools)}"
