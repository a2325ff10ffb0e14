"""Tests of the notes about device decisions that come from a bug in 1.36.3."""

from typing import Any

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import V1_34, V1_36, V1_37
from kschedd.explain.upstream_bugs import notes
from tests.devices.made import claim_raw, class_raw, exact, first_of, slice_raw, subrequest


def cluster(*raws: dict[str, Any]) -> SchedulerCache:
    made = SchedulerCache()
    made.load(parse(raw) for raw in raws)
    return made


def pod(*claims: str, **requests: str) -> Pod:
    return Pod.from_raw(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "uid-p"},
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": requests}}],
                "resourceClaims": [{"name": name, "resourceClaimName": name} for name in claims],
            },
        }
    )


def counters(name: str, driver: str) -> dict[str, Any]:
    raw = slice_raw(name, pool="p", driver=driver, allNodes=True)
    raw["spec"]["sharedCounters"] = [{"name": "set", "counters": {"memory": {"value": "1"}}}]
    return raw


def test_two_drivers_with_one_pool_name() -> None:
    on = cluster(claim_raw("c", exact("r")), counters("a", "a.example.com"), counters("b", "b.example.com"))
    [note] = notes(pod("c"), on, V1_36.rules)
    assert note.startswith("the pools named p of a.example.com, b.example.com share their counters")
    assert notes(pod("c"), on, V1_34.rules) == notes(pod(), on, V1_36.rules) == []


def test_a_class_that_lost_its_resource_is_not_known_by_its_own_name() -> None:
    winner, loser = (class_raw(name, extendedResourceName="example.com/gpu") for name in ("a", "b"))
    implicit = {"deviceclass.resource.kubernetes.io/b": "1"}
    [note] = notes(pod(**implicit), cluster(winner, loser), V1_36.rules)
    assert note.startswith("deviceclass.resource.kubernetes.io/b has no DeviceClass behind it")
    assert notes(pod(**implicit), cluster(loser, winner), V1_36.rules) == []


def test_a_score_over_which_upstream_crashes() -> None:
    on = cluster(class_raw("gpu", "true", extendedResourceName="example.com/gpu"))
    asking = pod(**{"example.com/gpu": "1"})
    [note] = notes(asking, on, V1_36.rules, ("cpu", "example.com/gpu"))
    assert "crashes there" in note
    assert notes(asking, on, V1_36.rules, ("cpu",)) == []


def test_alternatives_are_mixed_up_before_1_36_only() -> None:
    on = cluster(claim_raw("c", first_of("r", subrequest("a"), subrequest("b", allocationMode="All"))))
    assert len(notes(pod("c"), on, V1_34.rules)) == 1
    assert notes(pod("c"), on, V1_36.rules) == []


def test_a_storage_capacity_over_which_1_37_crashes() -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "fast"},
    }
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity"}
    meta = {"metadata": {"name": "c", "namespace": "default"}, "storageClassName": "fast", "maximumVolumeSize": "1Gi"}
    asking = Pod.from_raw(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "uid-p"},
            "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        }
    )
    on = cluster(claim, {**kind, **meta})
    [note] = notes(asking, on, V1_37.default_rules)
    assert note.startswith("CSIStorageCapacity default/c has maximumVolumeSize but no capacity")
    assert notes(asking, on, V1_36.default_rules) == []
    assert notes(asking, cluster(claim, {**kind, **meta, "capacity": "1Gi"}), V1_37.default_rules) == []
