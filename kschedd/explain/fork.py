"""The input of an explanation: a fork of the present cluster, with the pod as if it had no node.

Call `fork_for` between two attempts of the scheduler. `fork_for` copies columns and lists, which takes a few
milliseconds. `scheduler_on` and everything after it may run in another thread while the cluster continues, because the
two share no mutable state.

If the pod has a node, it is removed from the fork, so that counts and columns are as if it had never been there. The
pod's volumes and claims remain bound and allocated.

Plugins of the fork are new instances with the same arguments. The state that in-tree plugins have assumed for pods that
are being bound is copied into the fork. State inside an out-of-tree plugin is not copied.
"""

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.forked_counts import ForkedCounts
from kschedd.cache.pod_groups import PodGroups
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.model import Config
from kschedd.explain.past import Past
from kschedd.extenders.extender import extenders_of
from kschedd.framework.handle import Handle
from kschedd.framework.registry import Registry
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.counted import Nominated
from kschedd.scheduling.profiles.profile import build_profile


@attrs.frozen(eq=False)
class Fork:
    """`known` is the pod with its node, if any.

    `permit_plugins` are the plugins for which the pod waits at Permit.
    """

    pod: Pod
    judged: Pod
    known: Pod | None
    cluster: SchedulerCache
    handle: Handle
    config: Config
    registry: Registry
    start: int  # row at which the next search begins
    nominated: Nominated
    permit_plugins: tuple[str, ...] = ()
    past: Past | None = None  # attempt whose cluster is restored; None: the present cluster
    observed: int = 0  # store version up to which the scheduler has observed all writes


def without_node(pod: Pod) -> Pod:
    """Return the pod as the scheduler would receive it: neither on a node nor nominated to one."""
    return attrs.evolve(pod, node_name="", nominated_node_name="") if pod.node_name else pod


def fork_for(machine: SchedulingMachine, pod: Pod, nominated: Nominated) -> Fork:
    """Return a fork for a pod whose profile exists.

    Call this function between two attempts of the scheduler.
    """
    judged = without_node(pod)
    cluster = machine.cluster.fork()
    handle = machine.handle.fork(cluster)
    real, evicting = machine.handle.current_pod, machine.handle.evicting(pod.uid)
    promised = {node: tuple(pods) for node, pods in nominated.items()}
    handle.nominated_pods = lambda node_name: promised.get(node_name, ())
    handle.evicting = lambda uid: evicting and uid == pod.uid
    # plugins that look up the evaluated pod by its key get this pod, even if another version of it is stored
    handle.current_pod = lambda key: judged if key == judged.key or real is None else real(key)
    known = cluster.pod(pod.uid) if pod.uid else None
    start = machine.schedulers[pod.scheduler_name].start.index
    waiting = machine.waiting.pods.get(pod.uid) if pod.uid else None
    plugins = () if waiting is None or waiting.decided else tuple(waiting.pending)
    return Fork(pod, judged, known, cluster, handle, machine.config, machine.registry, start, promised, plugins)


def scheduler_on(fork: Fork) -> Scheduler:
    """Return the scheduler of the pod's profile on the fork, with the pod removed from its node.

    Call this function once per fork.
    """
    counts = fork.cluster.counts
    assert isinstance(counts, ForkedCounts), "a fork's counts are expected"
    counts.recount()
    if fork.past is not None:
        fork.past.rewind(fork.cluster, fork.observed)
    if fork.known is not None:
        fork.cluster.remove_pod(fork.known)
    profile = fork.config.profile(fork.pod.scheduler_name)
    assert profile is not None, "the pod's profile is expected to be there"
    framework = build_profile(fork.config, profile, fork.registry, fork.handle)
    extenders = extenders_of(fork.config.extenders)
    groups = fork.handle.shared(PodGroups)
    start = StartNode(fork.start)
    return Scheduler(framework, fork.cluster, by_name, start, remember=False, extenders=extenders, groups=groups)
