"""What a plugin is given of its surroundings when it is made.

A plugin's instance lives as long as its name, its arguments and the feature gates stay the same. What is true of the
cluster whatever a plugin's arguments are, such as what was assumed for pods that are being bound, must outlive it: that
is kept in an object of its own (`shared`), one for all instances in all profiles.

Source: Kubernetes v1.34, kube-scheduler/framework/interface.go (Handle).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster

S = TypeVar("S")


def _nobody(_: str) -> Sequence[Pod]:
    return ()


@attrs.define(eq=False)
class Handle:
    """`cluster` is to be read only. The rest is filled in by whoever runs the profile."""

    cluster: Cluster
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict)
    seed: int = 0  # for plugins that need randomness; same seed, same choices
    nominated_pods: Callable[[str], Sequence[Pod]] = _nobody  # node name -> pods nominated to it
    # Live waiting pods (uid -> (pod, node)); gang-like plugins allow or reject them.
    allow: Callable[[str, str], bool] = lambda uid, plugin: False
    reject: Callable[[str, str, str], bool] = lambda uid, plugin, reason: False
    waiting_pods: Callable[[], Sequence[tuple[Pod, str]]] = tuple
    evicting: Callable[[str], bool] = lambda uid: (
        False
    )  # whether what PostFilter wanted for this pod is still being done
    current_pod: Callable[[str], Pod | None] | None = None  # key -> the stored pod, where somebody knows better than we
    activate: Callable[[Sequence[Pod]], None] = lambda pods: None
    _shared: dict[Callable[[Cluster], Any], Any] = attrs.field(factory=dict, init=False)

    def fork(self, cluster: Cluster) -> "Handle":
        """A handle on a fork of the cluster, by which nobody is allowed, rejected or activated.

        What plugins share is forked if it says how (a method `fork(cluster)`), else made anew when asked for.
        """
        waiting = tuple(self.waiting_pods())
        forked = Handle(cluster, self.feature_gates, self.seed, waiting_pods=lambda: waiting)
        for make, kept in self._shared.items():
            if hasattr(kept, "fork"):
                forked._shared[make] = kept.fork(cluster)
        return forked

    def shared(self, make: Callable[[Cluster], S]) -> S:
        """The one object that `make` (a class, as a rule) makes of the cluster, made when it is first asked for."""
        found: S | None = self._shared.get(make)
        if found is None:
            found = self._shared[make] = make(self.cluster)
        return found
