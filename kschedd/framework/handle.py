"""Handle: the scheduler's services that a plugin receives at construction.

A plugin instance lives as long as its name, its arguments, the feature gates and the rules are unchanged. State of the
cluster that does not depend on the arguments, such as assumptions for pods being bound, must outlive it:
it is kept in an object (`shared`) common to all instances in all profiles.

An out-of-tree plugin may call it from threads of its own: its view (`views.HandleView`) takes `lock` for that, and
tells the scheduler (`changed`) that a pod may go on.

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
    """`cluster` is read-only. The other fields are set by the owner of the profile."""

    cluster: SchedulerCache
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict)
    seed: int = 0  # for plugins that need randomness; same seed, same choices
    rules: Rules = DEFAULT.default_rules  # those of the version whose decisions are made, without any whose gate is off
    nominated_pods: Callable[[str], Sequence[Pod]] = _nobody  # node name -> pods nominated to it
    # Live waiting pods (uid -> (pod, node)); coscheduling plugins allow or reject them.
    allow: Callable[[str, str], bool] = lambda uid, plugin: False
    reject: Callable[[str, str, str], bool] = lambda uid, plugin, reason: False
    waiting_pods: Callable[[], Sequence[tuple[Pod, str]]] = tuple
    decided_at_permit: Callable[[str], bool] = lambda uid: False  # whether it was allowed or rejected, not told yet
    in_pre_bind: Callable[[str], bool] = lambda uid: False  # whether the pod's binding has work in PreBind under way
    evicting: Callable[[str], bool] = lambda uid: False  # whether PostFilter's writes for this pod are in progress
    leaving: Callable[[str], bool] = lambda key: False  # whether a deleted pod still counts for this PodGroup
    current_pod: Callable[[str], Pod | None] | None = None  # key -> stored pod, if newer than the watch
    activate: Callable[[Sequence[Pod]], None] = lambda pods: None
    lock: SchedulerLock | None = None  # None: one thread does everything
    changed: Callable[[], None] = lambda: None  # have the scheduler look at what was allowed, rejected or activated
    now_s: float = 0.0  # the time that the scheduler was told last, in seconds since the epoch
    _shared: dict[Callable[[SchedulerCache], Any], Any] = attrs.field(factory=dict, init=False)

    def fork(self, cluster: SchedulerCache) -> "Handle":
        """A handle on a fork of the cluster, by which nobody is allowed, rejected or activated.

        What plugins share is forked if it says how (a method `fork(cluster)`), else made anew when asked for.
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
        """The one object that `make` (usually a class) creates from the cluster, on first use."""
        found: S | None = self._shared.get(make)
        if found is None:
            found = self._shared[make] = make(self.cluster)
        return found
