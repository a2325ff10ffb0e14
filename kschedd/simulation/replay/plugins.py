"""ReplayedPlugin: a replacement for an out-of-tree plugin that returns the recorded answers.

The plugin's code is not run and need not be installed. A call outside the replay, for example by `explain`, raises an
error, because there is no recorded answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ClusterEvent, ClusterEventWithHint
from kschedd.framework.faults import PluginError
from kschedd.framework.guard import PluginGuard
from kschedd.framework.guarding.guarded import GuardedPlugin, GuardedRegistry
from kschedd.framework.handle import Handle
from kschedd.framework.registry import PluginLoadError

Answer = Callable[[str, str], Any]
"""A function that returns the next recorded answer of a plugin's method. Raises PluginError as its guard did."""

_ELSEWHERE: Final[Any] = object()  # answers of the plugin's `filter` and `score` in worker processes


class ReplayedPlugin(GuardedPlugin):
    """A replacement for an out-of-tree plugin. `described` is the recorded description of the plugin."""

    def __init__(self, name: str, described: Mapping[str, Any], answer: Answer) -> None:
        self.name = name
        self.guard = PluginGuard(name)
        self.depends_on = described["depends_on"]
        self.worker_processes = described["worker_processes"]
        self.elsewhere = _ELSEWHERE if described["elsewhere"] else None
        self._answer = answer
        own: Any = self
        methods = [*described["methods"], *(["sort_key"] if described["sorts"] else [])]
        for method in methods:
            setattr(own, method, self._answering(method))
        if described["events"] is not None:
            events = [self._registered(*one) for one in described["events"]]
            own.events_to_register = lambda: events

    def _answering(self, method: str) -> Callable[..., Any]:
        def answering(*args: Any) -> Any:
            return self._answer(self.name, method)

        answering.__name__ = method
        return answering

    def _registered(self, event: ClusterEvent, hints: bool, by_signature: bool) -> ClusterEventWithHint:
        return ClusterEventWithHint(event, self._answering("hint") if hints else None, by_signature)

    def batch(self, method: str, work: Callable[[], Any], pod: Pod) -> Any:
        return self._answer(self.name, "batch")

    def call_elsewhere(
        self, method: str, state: CycleState, pod: Pod, table: NodeTable, rows: Sequence[int]
    ) -> list[Any]:
        answers: list[Any] = self._answer(self.name, "elsewhere")
        return answers

    def ready(self, ready: Callable[..., Any]) -> Callable[[Any], Any]:
        """Return the recorded answers of a plan's `ready`, one per call."""
        return lambda cluster: self._answer(self.name, "ready")


class ReplayedRegistry(GuardedRegistry):
    """A registry with a ReplayedPlugin for each recorded out-of-tree plugin.

    `made` returns the next recorded instance of the plugin with this name, or None.
    """

    def __init__(self, methods: Mapping[str, Sequence[str]], made: Callable[[str], ReplayedPlugin | None]) -> None:
        super().__init__({name: _class(name, its) for name, its in methods.items()})
        self._plugin_made = made

    def renew(self, name: str, methods: Sequence[str]) -> None:
        """Make the next configuration with this plugin create a new instance."""
        self.added[name] = _class(name, methods)

    def make(self, name: str, args: Any, handle: Handle) -> Any:
        if name not in self.added:
            return super().make(name, args, handle)
        plugin = self._plugin_made(name)
        if plugin is None:
            raise PluginLoadError(
                "recording", f"has the answers of {name} but not its code, so it cannot be called anew"
            )
        return plugin


def _class(name: str, methods: Sequence[str]) -> type[Any]:
    """Return a class with these methods; they determine the plugin's extension points."""

    def refuse(self: Any, *args: Any) -> Any:
        raise PluginError(name, "", "a recorded plugin can be called only during the replay")

    return type(name, (), {"name": name, **dict.fromkeys(methods, refuse)})
