"""Words of the Kubernetes API, which redaction does not replace: values of enumerated fields, condition types, reasons.

Source: Kubernetes v1.34, the constants of staging/src/k8s.io/api.
"""

from typing import Final

API_WORDS: Final = frozenset(
    """
    AbleToScale Active All Allow Always AlwaysAllow Apply Available AverageValue BackoffLimitExceeded BestEffort
    Bidirectional Block BlockDevice Bound Burstable CharDevice ClientIP Cluster ClusterFirst ClusterFirstWithHostNet
    ClusterIP Complete CompletionsReached Container ContainerResource ContainersReady ControllerResizeError
    ControllerResizeInProgress ControllerResizeInfeasible Count CrossNamespacePodAffinity DeadlineExceeded Dedicated
    Default Deferred Delete Directory DirectoryOrCreate Disabled DiskPressure DisruptionAllowed DisruptionBudget
    DisruptionTarget DoNotSchedule DoesNotExist Egress Enabled Ephemeral Equal Error Exact ExactCount Exists
    External ExternalDNS ExternalIP ExternalName FailIndex FailJob Failed FailedIndexes FailureTarget
    FallbackToLogsOnError False File FileOrCreate FileSystemResizePending Filesystem Forbid FromClaim FromClass Gt
    Guaranteed HTTP HTTPS Healthy Honor HostToContainer Hostname HugePages IPv4 IPv6 IfHealthyBudget IfNotPresent
    IfPossible Ignore Immediate ImplementationSpecific In InProgress Indexed Infeasible Ingress Initialized
    InsufficientPods InternalDNS InternalIP LoadBalancer LoadBalancerMixedProtocolNotSupported
    LoadBalancerPortsError Local Localhost Lost Lt Managed Max MaxFailedIndexesExceeded Memory MemoryPressure Merge
    Min MixedProtocolNotSupported ModifyVolumeError ModifyingVolume MountOption Namespace NamespaceContentRemaining
    NamespaceDeletionContentFailure NamespaceDeletionDiscoveryFailure NamespaceDeletionGroupVersionParsingFailure
    NamespaceFinalizersRemaining NamespaceTerminating NetworkUnavailable Never NoExecute NoSchedule NodePort
    NodeResizeError NodeResizeInProgress NodeResizeInfeasible NodeResizePending NonIndexed None Normal NotBestEffort
    NotIn NotRequired NotTerminating Object OldestEmulationVersion OnDelete OnFailure OnRootMismatch Opaque
    OrderedReady PIDPressure Parallel Pending Percent Persistent PersistentVolumeClaim Pod PodFailurePolicy
    PodReadyToStartContainers PodResizeInProgress PodResizePending PodScheduled Pods PreemptLowerPriority
    PreemptionByScheduler PreferClose PreferDualStack PreferNoSchedule PreferSameNode PreferSameZone Prefix
    PriorityClass Progressing Proxy ReadOnly ReadOnlyMany ReadWrite ReadWriteMany ReadWriteOnce ReadWriteOncePod
    ReadWriteOnceWithFSType Ready Recreate Recursive Recycle Released Replace ReplicaFailure RequireDualStack
    Resizing Resource Restart RestartContainer Retain RollingUpdate Running RuntimeDefault SCTP ScalingActive
    ScalingLimited ScheduleAnyway SchedulerError SchedulingGated Shared SingleStack Socket Stderr Stdout Strict
    Succeeded SuccessCriteriaMet SuccessPolicy SufficientPods Suspended SyncFailed TCP Terminated Terminating
    TerminatingOrFailed TerminationByKubelet True UDP Unconfined Unhealthy Unknown Unmasked Unschedulable Update
    Utilization VIP Value VolumeAttributesClass WaitForFirstConsumer Warning
    """.split()
)
