"""The table of the daemon's methods, assembled from the modules `methods_*`.

    methods_daemon     the process itself
    methods_objects    reading, writing and watching objects      (what is written: methods_apply, methods_edit)
    methods_nodes      cordon, uncordon, taint
    methods_usage      what is requested of every node
    methods_eviction   the Eviction subresource of pods
    methods_lifecycle  kubelets that stop and start, zones, pods that leave
    methods_pressure   nodes that are short of memory, disk or process ids
    methods_events     events as `kubectl get events` shows them
    methods_queue      the scheduling queue, and pods waiting at Permit
    methods_scheduler  status, decisions, explanations
    methods_metrics    what is counted and timed, for Prometheus
    methods_debug      stopping scheduling, stepping through it, changing what an attempt comes to
    methods_time       the cluster's time
    methods_config     the configuration: where its values come from, files of it, changes and undoing them
    methods_report     a page about what the cluster did lately
    methods_recording  recording the run into a file
    methods_profile    where the daemon's own time goes
    methods_capacity   how many more pods fit, how many nodes it takes
    methods_fork       forks: what-if, with all of the above

Each method queries the actor that owns the state, through `ClusterBackend`, and keeps no state. Names, parameters and
results are a public interface. METHODS.md is generated from this table:
`python -m kschedd.rpc.methods > METHODS.md`.
"""

from typing import cast

from kschedd.rpc.cluster import ClusterBackend
from kschedd.rpc.forks import Forks
from kschedd.rpc.method_docs import methods_page
from kschedd.rpc.methods_binding import BindingMethods
from kschedd.rpc.methods_capacity import CapacityMethods
from kschedd.rpc.methods_config import ConfigMethods
from kschedd.rpc.methods_daemon import DaemonMethods, DaemonState
from kschedd.rpc.methods_debug import DebugMethods
from kschedd.rpc.methods_events import EventMethods
from kschedd.rpc.methods_eviction import EvictionMethods
from kschedd.rpc.methods_fork import ForkMethods
from kschedd.rpc.methods_lifecycle import LifecycleMethods
from kschedd.rpc.methods_load import LoadMethods
from kschedd.rpc.methods_metrics import MetricsMethods
from kschedd.rpc.methods_nodes import NodeMethods
from kschedd.rpc.methods_objects import ObjectMethods
from kschedd.rpc.methods_plugins import PluginMethods
from kschedd.rpc.methods_pressure import PressureMethods
from kschedd.rpc.methods_profile import ProfileMethods
from kschedd.rpc.methods_queue import QueueMethods
from kschedd.rpc.methods_recording import RecordingMethods
from kschedd.rpc.methods_report import ReportMethods
from kschedd.rpc.methods_scheduler import SchedulerMethods
from kschedd.rpc.methods_snapshot import SnapshotMethods
from kschedd.rpc.methods_time import TimeMethods
from kschedd.rpc.methods_usage import UsageMethods
from kschedd.rpc.table import Method, method_table


def daemon_methods(cluster: ClusterBackend, daemon: DaemonState) -> list[Method]:
    """The methods, in the order of METHODS.md."""
    forks = Forks()
    if daemon is not None:  # as where the methods are only described
        limits = daemon.limits
        forks = Forks(limits["forks"], limits["forks-of-readers"], limits["forks-of-one-reader"])
        daemon.usage["forks"] = forks.used
        daemon.usage["forks-of-readers"] = forks.used_by_readers
        daemon.usage["forks-of-one-reader"] = forks.used_by_one_reader
    return [
        *cluster_methods(cluster, daemon),
        *RecordingMethods(cluster).table(),
        *ProfileMethods().table(),
        *ForkMethods(cluster, daemon, cluster_methods, forks).table(),
    ]


def cluster_methods(cluster: ClusterBackend, daemon: DaemonState) -> list[Method]:
    """Those that forks have as well."""
    return [
        *DaemonMethods(cluster, daemon).table(),
        *ObjectMethods(cluster).table(),
        *NodeMethods(cluster).table(),
        *UsageMethods(cluster).table(),
        *BindingMethods(cluster).table(),
        *EvictionMethods(cluster).table(),
        *LifecycleMethods(cluster).table(),
        *PressureMethods(cluster).table(),
        *EventMethods(cluster).table(),
        *QueueMethods(cluster).table(),
        *SchedulerMethods(cluster).table(),
        *MetricsMethods(cluster).table(),
        *DebugMethods(cluster).table(),
        *TimeMethods(cluster).table(),
        *ConfigMethods(cluster).table(),
        *PluginMethods(cluster).table(),
        *LoadMethods(cluster).table(),
        *SnapshotMethods(cluster).table(),
        *ReportMethods(cluster).table(),
        *CapacityMethods(cluster, cluster_methods).table(),
    ]


def page() -> str:
    """The generated text of METHODS.md; the methods are described, never called."""
    nobody = cast(ClusterBackend, None)
    return methods_page(method_table(daemon_methods(nobody, cast(DaemonState, None))))


if __name__ == "__main__":
    print(page(), end="")
