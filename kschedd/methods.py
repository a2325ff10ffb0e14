"""The table of the daemon's methods, assembled from the packages that implement them.

    service/objects     reading, writing and watching objects, events, bindings, evictions
    service/nodes       adding, cordoning and tainting nodes, their kubelets, what is requested of them
    service/scheduling  the queue, decisions, explanations, the debugger, the cluster's time
    service/daemon      status, configuration, plugins, metrics, recordings, dumps
    clusters            forks (what-if, with all of the above), and how many more pods fit
    causes              what is wrong with a workload, and what would help
    report              pages about a run, or about what the daemon has kept

Each method queries the actor that has the state, through `ClusterBackend`, and stores no state. Names, parameters and
results are a public interface, which METHODS.md and docs/reference/methods describe.
"""

from collections.abc import Mapping
from typing import cast

from kschedd.causes.methods import CauseMethods
from kschedd.clusters.capacity_methods import CapacityMethods
from kschedd.clusters.fork_methods import ForkMethods
from kschedd.clusters.forks import Forks
from kschedd.clusters.pool_methods import PoolMethods
from kschedd.report.methods import ReportMethods
from kschedd.rpc.sessions.built_in import method_table
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.config import ConfigMethods
from kschedd.service.daemon.load import LoadMethods
from kschedd.service.daemon.metrics import MetricsMethods
from kschedd.service.daemon.plugins import PluginMethods
from kschedd.service.daemon.process import DaemonMethods, DaemonState
from kschedd.service.daemon.profile import ProfileMethods
from kschedd.service.daemon.recording import RecordingMethods
from kschedd.service.daemon.snapshot import SnapshotMethods
from kschedd.service.daemon.unread_nodes import rejecting_without_nodes
from kschedd.service.nodes.changes import NodeMethods
from kschedd.service.nodes.lifecycle import LifecycleMethods
from kschedd.service.nodes.pressure import PressureMethods
from kschedd.service.nodes.usage import UsageMethods
from kschedd.service.objects.access import AccessMethods
from kschedd.service.objects.events import EventMethods
from kschedd.service.objects.pods import PodMethods
from kschedd.service.objects.reading import ReadingMethods
from kschedd.service.objects.writing import WritingMethods
from kschedd.service.scheduling.debug import DebugMethods
from kschedd.service.scheduling.descheduling import DeschedulingMethods
from kschedd.service.scheduling.queue import QueueMethods
from kschedd.service.scheduling.scheduler import SchedulerMethods
from kschedd.service.scheduling.time import TimeMethods
from kschedd.service.table import Method


def daemon_methods(cluster: ClusterBackend, daemon: DaemonState) -> list[Method]:
    """Return the methods, in the order of METHODS.md."""
    forks = Forks()
    if daemon is not None:  # None if the methods are only described
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
    """Return the methods that forks serve as well as the daemon."""
    methods = [
        *DaemonMethods(cluster, daemon).table(),
        *ReadingMethods(cluster).table(),
        *WritingMethods(cluster).table(),
        *NodeMethods(cluster).table(),
        *UsageMethods(cluster).table(),
        *PodMethods(cluster).table(),
        *LifecycleMethods(cluster).table(),
        *PressureMethods(cluster).table(),
        *EventMethods(cluster).table(),
        *AccessMethods(cluster).table(),
        *QueueMethods(cluster).table(),
        *SchedulerMethods(cluster, daemon).table(),
        *DeschedulingMethods(cluster).table(),
        *MetricsMethods(cluster).table(),
        *DebugMethods(cluster).table(),
        *TimeMethods(cluster).table(),
        *ConfigMethods(cluster).table(),
        *PluginMethods(cluster).table(),
        *LoadMethods(cluster).table(),
        *SnapshotMethods(cluster).table(),
        *ReportMethods(cluster, cluster_methods).table(),
        *CapacityMethods(cluster, cluster_methods).table(),
        *PoolMethods(cluster).table(),
        *CauseMethods(cluster, daemon, cluster_methods).table(),
    ]
    return rejecting_without_nodes(methods, daemon)


def described_methods() -> Mapping[str, Method]:
    """Return the methods by name, to describe them. They have no cluster, so they cannot be called."""
    nobody = cast(ClusterBackend, None)
    return method_table(daemon_methods(nobody, cast(DaemonState, None)))
