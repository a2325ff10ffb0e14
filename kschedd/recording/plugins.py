"""RecordedRegistry: makes out-of-tree plugins, and has what they answer noted.

Noted are the answers that the two machines get within their calls, checked and copied as they are; not those that a
fork or an explanation asks for, nor what a plugin's own code asks of others. A replay gives the machines these answers
in the same order, and runs no code of any plugin.
"""

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ClusterEventWithHint
from kschedd.framework.faults import PluginError, PluginTimeout
from kschedd.framework.guarded import GUARDED_METHODS, GuardedPlugin, GuardedRegistry
from kschedd.framework.handle import Handle
from kschedd.recording.notes import DRIVER, NoteKind
from kschedd.recording.recorder import RunRecorder, enter, leave, stream
from kschedd.recording.values import pack


class RecordedRegistry(GuardedRegistry):
    """As GuardedRegistry while `recorder` is None."""

    recorder: RunRecorder | None = None

    def make(self, name: str, args: Any, handle: Handle) -> Any:
        plugin = super().make(name, args, handle)
        if self.recorder is not None and name in self.added and stream() == DRIVER:
            assert isinstance(plugin, GuardedPlugin), "out-of-tree plugins are guarded"
            _have_noted(plugin, self.recorder)
        return plugin


def _have_noted(plugin: GuardedPlugin, recorder: RunRecorder) -> None:
    own: Any = plugin
    name = plugin.name

    def noted(method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any) -> Any:
            machine = stream()
            if machine is None:
                return call(*args)
            enter(None)  # what the plugin does by itself is noted as such
            try:
                said = call(*args)
            except PluginError as fault:
                late = isinstance(fault, PluginTimeout)
                recorder.note((NoteKind.FAULT, machine, name, fault.plugin, fault.method, fault.why, late))
                raise
            finally:
                leave(machine)
            if isinstance(said, np.ndarray):
                said = said.copy()  # the caller may write into its own
            recorder.note((NoteKind.ANSWER, machine, name, method, pack(said)))
            return said

        noting.__name__ = method
        return noting

    methods = [method for method in GUARDED_METHODS if hasattr(plugin, method)]
    for method in [*methods, *(["sort_key"] if hasattr(plugin, "sort_key") else [])]:
        setattr(own, method, noted(method, getattr(plugin, method)))
    registered: list[ClusterEventWithHint] | None = None
    if hasattr(plugin, "events_to_register"):
        registered = [
            one if one.hint is None else attrs.evolve(one, hint=noted("hint", one.hint))
            for one in own.events_to_register()
        ]
        own.events_to_register = lambda: registered
    ready = plugin.ready
    own.ready = lambda callback: noted("ready", ready(callback))
    batch, elsewhere = plugin.batch, plugin.call_elsewhere
    own.batch = noted("batch", batch)

    def asked_elsewhere(method: str, state: CycleState, pod: Pod, table: NodeTable, rows: Any) -> list[Any]:
        return elsewhere(method, state, pod, table, rows)

    own.call_elsewhere = noted("elsewhere", asked_elsewhere)
    described = {
        "methods": methods,
        "sorts": hasattr(plugin, "sort_key"),
        "depends_on": plugin.depends_on,
        "pre_score_by_signature": plugin.pre_score_by_signature,
        "worker_processes": plugin.worker_processes,
        "elsewhere": plugin.elsewhere is not None,
        "events": None
        if registered is None
        else [(one.event, one.hint is not None, one.by_signature) for one in registered],
    }
    recorder.note((NoteKind.MADE, name, pack(described)))
