"""PluginNotes: a listener that records the results of out-of-tree plugins as notes.

The notes contain the checked and copied results that the driver and the queue receive within their steps. Results for a
fork or an explanation, and results of calls that a plugin's own code makes, are not recorded. A replay returns the
recorded results to the two state machines in the same order, and runs no code of plugins.
"""

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np

from kschedd.framework.faults import PluginError, PluginTimeout
from kschedd.framework.guarding.guarded import GUARDED_METHODS, GuardedPlugin, GuardedRegistry
from kschedd.framework.handle import Handle
from kschedd.recording.notes import DRIVER, Note, NoteKind
from kschedd.recording.recorder import RunRecorder, enter, leave, stream
from kschedd.recording.values import pack
from kschedd.scheduling.machine import SchedulingMachine


class RecordedRegistry(GuardedRegistry):
    """A GuardedRegistry.

    As soon as `recorder` is set, this registry attaches a listener to the plugins created for the driver.
    """

    recorder: RunRecorder | None = None

    def make(self, name: str, args: Any, handle: Handle) -> Any:
        plugin = super().make(name, args, handle)
        if self.recorder is not None and name in self.added and stream() == DRIVER:
            assert isinstance(plugin, GuardedPlugin), "out-of-tree plugins are guarded"
            plugin.listener = PluginNotes(self.recorder)
            self.recorder.note(made(plugin))
        return plugin


@attrs.frozen(eq=False)
class PluginNotes:
    """A listener that records the results of a plugin (`AnswerListener`)."""

    _recorder: RunRecorder

    def answered(self, plugin: str, method: str, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        machine, recorder = stream(), self._recorder
        if machine is None:
            return call(*args)
        enter(None)  # calls by the plugin's own code belong to no state machine
        try:
            answer = call(*args)
        except PluginError as fault:
            late = isinstance(fault, PluginTimeout)
            recorder.note((NoteKind.FAULT, machine, plugin, fault.plugin, fault.method, fault.why, late))
            raise
        finally:
            leave(machine)
        if isinstance(answer, np.ndarray):
            answer = answer.copy()  # the caller may write to the original array
        recorder.note((NoteKind.ANSWER, machine, plugin, method, pack(answer)))
        return answer


def made(plugin: GuardedPlugin) -> Note:
    """Return the note about a created plugin, with all information about the plugin that a replay needs."""
    own: Any = plugin
    registered = own.events_to_register() if hasattr(plugin, "events_to_register") else None
    described = {
        "methods": [method for method in GUARDED_METHODS if hasattr(plugin, method)],
        "sorts": hasattr(plugin, "sort_key"),
        "depends_on": plugin.depends_on,
        "worker_processes": plugin.worker_processes,
        "elsewhere": plugin.elsewhere is not None,
        "events": None
        if registered is None
        else [(one.event, one.hint is not None, one.by_signature) for one in registered],
    }
    return NoteKind.MADE, plugin.name, pack(described)


def out_of_tree(machine: SchedulingMachine) -> Iterator[GuardedPlugin]:
    """Yield the out-of-tree plugins of all profiles, in the order in which a configuration creates them."""
    for scheduler in machine.schedulers.values():
        for plugin in scheduler.profile.plugins.values():
            if isinstance(plugin, GuardedPlugin):
                yield plugin
