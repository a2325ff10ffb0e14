"""PreEnqueue: runs the plugins that may gate a pod. A gated pod does not enter the active queue.

Source: Kubernetes v1.34, scheduler/backend/queue/scheduling_queue.go (runPreEnqueuePlugins). The object records the
gating plugin in the entry. Only SchedulingQueue calls this class. A plugin that raises gates its pod with an Error
status, and is reported to `on_fault`.
"""

from collections.abc import Callable, Mapping

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Code, Status, error
from kschedd.queue.entry import QueuedGroup, QueuedPod
from kschedd.queue.hints import FaultReport

PreEnqueue = Mapping[str, Mapping[str, Callable[[Pod], Status | None]]]
"""scheduler name -> plugin -> its `pre_enqueue`."""


@attrs.define(eq=False)
class Gating:
    plugins: PreEnqueue
    on_fault: FaultReport | None = None

    def passes(self, entry: QueuedPod) -> bool:
        """Run the PreEnqueue plugins, beginning with the previous gating plugin. Update the gating fields of the entry.

        The index uses the gating plugin as a key, so the caller must put the entry into a sub-queue immediately. A
        PodGroup passes if all its pods pass; the plugins are called for each pod.
        """
        if isinstance(entry, QueuedGroup):
            gated = [member for member in entry.members if not self.passes(member)]
            entry.gating_plugin, entry.gating_status = "", None
            if gated:
                entry.gating_plugin, entry.gating_status = gated[-1].gating_plugin, gated[-1].gating_status
            return not gated
        plugins = self.plugins.get(entry.pod.scheduler_name)
        if plugins:
            last = entry.gating_plugin
            order = plugins if last not in plugins else [last, *(name for name in plugins if name != last)]
            for name in order:
                try:
                    status = plugins[name](entry.pod)
                except Exception as fault:  # a plugin's exception gates only this pod
                    if self.on_fault is not None:
                        self.on_fault(name, entry.key, fault)
                    status = error(f'running PreEnqueue plugin "{name}": {fault!r}')
                if status is not None and status.code is not Code.SUCCESS:
                    entry.unschedulable_plugins |= {name}
                    entry.gating_plugin, entry.gating_status = name, status.by(name)
                    return False
        entry.gating_plugin, entry.gating_status = "", None
        return True
