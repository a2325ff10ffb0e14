"""Tests of DefaultBinder: the write that binds a pod, and how often it is tried."""

import pytest

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import V1_34, V1_37, KubernetesVersion
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.writes import Bind, Plan
from kschedd.plugins.defaultbinder import DefaultBinder
from kschedd.store.writes import MOST_TRIES

POD = Pod.from_raw({"kind": "Pod", "metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {}})


def test_a_pod_is_bound_with_one_write() -> None:
    assert DefaultBinder().bind(CycleState(), POD, "n") == Plan((Bind("default", "p", "u", "n", 1),))


@pytest.mark.parametrize(("version", "tries"), [(V1_34, 1), (V1_37, MOST_TRIES)])
def test_the_write_is_retried_by_1_37(version: KubernetesVersion, tries: int) -> None:
    handle = Handle(SchedulerCache(), {}, rules=version.rules)
    [write] = DefaultBinder.from_args(None, handle).bind(CycleState(), POD, "n").writes
    assert isinstance(write, Bind)
    assert write.tries == tries
