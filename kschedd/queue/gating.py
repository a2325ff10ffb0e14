"""PreEnqueue: the plugins that keep a pod out of the active queue until something they wait for is there.

Source: Kubernetes v1.34, scheduler/backend/queue/scheduling_queue.go (runPreEnqueuePlugins).
Owns the plugins of all profiles; notes in an entry who gates it. Called by SchedulingQueue.
Fails: a plugin that raises gates its pod with an Error status; `on_fault` hears of it.
"""

from collections.abc import Callable, Mapping

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Code, Status, error
from kschedd.queue.entry import QueuedPod
from kschedd.queue.hints import FaultReport

PreEnqueue = Mapping[str, Mapping[str, Callable[[Pod], Status | None]]]
"""scheduler name -> plugin -> its `pre_enqueue`."""


@attrs.define(eq=False)
class Gating:
    plugins: PreEnqueue
    on_fault: FaultReport | None = None

    def passes(self, entry: QueuedPod) -> bool:
        """Ask the plugins, the one that gated the pod last time first; notes who gates it now.

        Whoever asks puts the entry into a place right after: its place in the index depends on the answer.
        """
        plugins = self.plugins.get(entry.pod.scheduler_name)
        if plugins:
            last = entry.gating_plugin
            order = plugins if last not in plugins else [last, *(name for name in plugins if name != last)]
            for name in order:
                status = self._ask(name, plugins[name], entry)
                if status is not None and status.code is not Code.SUCCESS:
                    entry.unschedulable_plugins |= {name}
                    entry.gating_plugin, entry.gating_status = name, status.by(name)
                    return False
        entry.gating_plugin, entry.gating_status = "", None
        return True

    def _ask(self, name: str, pre_enqueue: Callable[[Pod], Status | None], entry: QueuedPod) -> Status | None:
        try:
            return pre_enqueue(entry.pod)
        except Exception as fault:  # a plugin's fault is contained here
            if self.on_fault is not None:
                self.on_fault(name, entry.key, fault)
            return error(f'running PreEnqueue plugin "{name}": {fault!r}')
