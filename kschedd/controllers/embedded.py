"""The list of controllers of the embedded cluster.

The daemon runs each controller in its own actor; simulations run them in this order until all are idle.
"""

from kschedd.controllers.api_services import APIServiceAvailability
from kschedd.controllers.autoscaling.autoscalers import Autoscalers
from kschedd.controllers.cluster_roles import ClusterRoleAggregation
from kschedd.controllers.descheduling import Descheduler
from kschedd.controllers.disruption import Disruption
from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.jobs.cronjobs import CronJobs
from kschedd.controllers.jobs.jobs import Jobs
from kschedd.controllers.jobs.ttl import TTLAfterFinished
from kschedd.controllers.kubelets.heartbeats import Heartbeats
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.namespaces import SystemNamespaces
from kschedd.controllers.networking.endpoints import Endpoints
from kschedd.controllers.networking.mirroring import EndpointSliceMirroring
from kschedd.controllers.nodes.cloud_nodes import CloudNodes
from kschedd.controllers.nodes.nodelifecycle import NodeLifecycle
from kschedd.controllers.nodes.nodetaints import NodeTaints
from kschedd.controllers.nodes.tainteviction import TaintEviction
from kschedd.controllers.options import ControllerOptions
from kschedd.controllers.podgc import PodGarbageCollector
from kschedd.controllers.policy_status import PolicyStatus
from kschedd.controllers.quotas import Quotas
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.scaling.node_pools import NodePools, TrialsOf
from kschedd.controllers.storage.claims import ResourceClaims
from kschedd.controllers.storage.ephemeral import EphemeralVolumes
from kschedd.controllers.storage.protection import StorageProtection
from kschedd.controllers.storage.provisioner import Provisioner
from kschedd.controllers.storage.resizer import VolumeResizer
from kschedd.controllers.storage.volumes import VolumeController
from kschedd.controllers.workloads.daemonsets import DaemonSets
from kschedd.controllers.workloads.deployments import Deployments
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.controllers.workloads.statefulsets import StatefulSets
from kschedd.descheduler.policy import read_policy
from kschedd.pools.reading import PoolFile, read_pools


def embedded_controllers(
    provision_delay_s: float = 1.0,
    options: ControllerOptions | None = None,
    *,
    served: bool = False,
    kubelet_version: str = "",
    trials: TrialsOf | None = None,
    seed: int = 0,
) -> list[Controller]:
    """Return new controllers.

    `provision_delay_s` is the provisioning time for StorageClasses that do not specify one. `served` is true for a
    cluster with clients: workload controllers then also record each pod that they create or delete, Services have
    endpoints, HorizontalPodAutoscalers scale, volumes are expanded, ClusterRoles are aggregated, and admission policies
    are checked. With
    `kubelet_version`, new nodes report addresses and the system information of such a kubelet.
    `trials` builds copies of the cluster for the autoscaler of node pools; `seed` is the seed of its random choices.
    """
    options = options or ControllerOptions()
    policy = options.descheduler
    return [
        SystemNamespaces(),
        Quotas(),  # first, because the quotas of a dump must be counted before workloads create pods
        APIServiceAvailability(),
        CloudNodes(options.cloud_provider, options.cloud_init_delay_s),
        Heartbeats(),
        NodeTaints(),
        NodeLifecycle(options.lifecycle),
        TaintEviction(),
        Deployments(detailed_events=served),
        ReplicaSets(detailed_events=served),
        DaemonSets(detailed_events=served),
        StatefulSets(detailed_events=served),
        CronJobs(),
        Jobs(detailed_events=served),
        TTLAfterFinished(),
        *(_of_served_clusters() if served else ()),
        Kubelets(kubelet_version),
        Disruption(),
        GarbageCollector(),
        PodGarbageCollector(options.terminated_pod_gc_threshold),
        VolumeController(),
        StorageProtection(),
        Provisioner(provision_delay_s),
        *([VolumeResizer()] if served else ()),
        EphemeralVolumes(),
        ResourceClaims(),
        *(
            [NodePools(read_pools([PoolFile("--pools", options.pools)]), trials, seed)]
            if options.pools and trials
            else ()
        ),
        *([Descheduler(read_policy(policy, "policy"), options.descheduling_interval_s)] if policy else ()),
    ]


def _of_served_clusters() -> list[Controller]:
    return [Endpoints(), EndpointSliceMirroring(), Autoscalers(), ClusterRoleAggregation(), PolicyStatus()]
