"""What a plugin is given of its surroundings when it is made.

Source: Kubernetes v1.34, kube-scheduler/framework/interface.go (Handle).
"""

from collections.abc import Callable, Mapping, Sequence

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster


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
