"""Handle: the scheduler's services that a plugin receives at construction.

A plugin instance is reused as long as its name, its arguments, the feature gates and the rules are unchanged. Some
state, such as assumptions for pods being bound, must outlive an instance. State common to all instances in all profiles
is stored in an object (`shared`).

An out-of-tree plugin may use the handle in its own threads. Its view (`views.HandleView`) takes `lock`, and calls
`changed` to make the scheduler process allowed pods.

Source: Kubernetes v1.34, kube-scheduler/framework/interface.go (Handle).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.config.versions.rules import Rules
from kschedd.framework.exclusion import SchedulerLock

S = TypeVar("S")


def _nobody(_: str) -> Sequence[Pod]:
    return ()


@attrs.define(eq=False)
class Handle:
    """The scheduler's services for plugins.

    `cluster` is read-only. The code that builds profiles sets all other fields.
    """

    cluster: SchedulerCache
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict)
    seed: int = 0  # seed for plugins that need randomness; equal seeds give equal choices
    rules: Rules = DEFAULT.default_rules  # rules of the Kubernetes version in use
    nominated_pods: Callable[[str], Sequence[Pod]] = _nobody  # node name -> pods nominated to the node
    # waiting pods (uid -> (pod, node)), which coscheduling plugins allow or reject; always up to date
    allow: Callable[[str, str], bool] = lambda uid, plugin: False
    reject: Callable[[str, str, str], bool] = lambda uid, plugin, reason: False
    waiting_pods: Callable[[], Sequence[tuple[Pod, str]]] = tuple
    # returns whether the pod was allowed or rejected, but its binding has not continued yet
    decided_at_permit: Callable[[str], bool] = lambda uid: False
    in_pre_bind: Callable[[str], bool] = lambda uid: False  # returns whether the pod's binding is running PreBind
    evicting: Callable[[str], bool] = lambda uid: False  # returns whether PostFilter's writes are in progress
    # returns whether a deleted pod must still be counted in this PodGroup
    leaving: Callable[[str], bool] = lambda key: False
    # key -> stored pod, which may be newer than the watched pod; None: use the watched pod
    current_pod: Callable[[str], Pod | None] | None = None
    activate: Callable[[Sequence[Pod]], None] = lambda pods: None
    lock: SchedulerLock | None = None  # None if one thread does all work
    changed: Callable[[], None] = lambda: None  # makes the scheduler process allowed, rejected or activated pods
    now_s: float = 0.0  # latest time that the scheduler has received, in seconds since the epoch
    _shared: dict[Callable[[SchedulerCache], Any], Any] = attrs.field(factory=dict, init=False)

    def fork(self, cluster: SchedulerCache) -> "Handle":
        """Return a handle for a fork of the cluster. The fork's handle does not allow, reject or activate pods.

        An object shared by plugins is copied by its method `fork(cluster)`; without this method, it is created again on
        first use.
        """
        waiting = tuple(self.waiting_pods())
        forked = Handle(
            cluster, self.feature_gates, self.seed, self.rules, waiting_pods=lambda: waiting, now_s=self.now_s
        )
        for make, kept in self._shared.items():
            if hasattr(kept, "fork"):
                forked._shared[make] = kept.fork(cluster)
        return forked

    def shared(self, make: Callable[[SchedulerCache], S]) -> S:
        """Return the shared object that `make` (usually a class) creates from the cluster on first use."""
        found: S | None = self._shared.get(make)
        if found is None:
            found = self._shared[make] = make(self.cluster)
        return found
