"""Wake-ups that some releases of kube-scheduler miss and others do not."""

from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import V1_34, V1_36, V1_37, KubernetesVersion
from kschedd.explain.upstream_gaps import gap_for
from kschedd.framework.events import ASSIGNED_POD_DELETE, UNSCHEDULED_POD_UPDATE
from kschedd.queue.entry import QueuedPod

BY_AFFINITY = frozenset({"InterPodAffinity"})


def pod(name: str, *avoids: dict[str, str], **labels: str) -> Pod:
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": one}} for one in avoids]
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels}
    return Pod.from_raw({"metadata": meta, "spec": spec if terms else {}})


def gap(version: KubernetesVersion, of: Pod, event: Any, old: Pod, new: Pod | None) -> str:
    entry = QueuedPod(of, of.key, 0, unschedulable_plugins=BY_AFFINITY)
    return gap_for(entry, event, old, new, SchedulerCache(), version.default_rules)


@pytest.mark.parametrize(
    ("avoids", "missing"),
    [
        pytest.param([{"app": "a"}], [V1_34], id="one-term"),
        pytest.param([{"app": "a"}, {"app": "other"}], [V1_34, V1_36], id="one-of-two-terms"),
        pytest.param([{"app": "other"}], [], id="no-term"),
    ],
)
def test_the_end_of_a_pod_whose_anti_affinity_was_against_it(
    avoids: list[dict[str, str]], missing: list[KubernetesVersion]
) -> None:
    asleep, hostile = pod("p", app="a"), pod("hostile", *avoids)
    found = [one for one in (V1_34, V1_36, V1_37) if gap(one, asleep, ASSIGNED_POD_DELETE, hostile, None)]
    assert found == missing


def test_the_end_of_a_pod_that_one_of_several_terms_selects() -> None:
    asleep, other = pod("p", {"app": "a"}, {"app": "b"}), pod("other", app="a")
    found = [one for one in (V1_34, V1_36, V1_37) if gap(one, asleep, ASSIGNED_POD_DELETE, other, None)]
    assert found == [V1_34, V1_36]


def test_a_change_of_its_own_labels() -> None:
    before, after = pod("p", app="a"), pod("p", app="b")
    found = [one for one in (V1_34, V1_36, V1_37) if gap(one, after, UNSCHEDULED_POD_UPDATE, before, after)]
    assert found == [V1_34]
