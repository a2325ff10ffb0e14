"""The Events of kubelets, computed from the statuses of pods."""

import pytest

from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.config.versions.kube_versions import kube_version
from kschedd.service.operations.kubelet_events import ReporterOfChanges, events_of, reported
from kschedd.values import run_steps
from tests.controllers.kubelets.cluster import KubeletCluster, init

IMAGE = "registry.k8s.io/pause:3.10"


@pytest.fixture
def cluster() -> KubeletCluster:
    made = KubeletCluster()
    made.store.simulate_pods(PodBehavior())
    return made


def events(cluster: KubeletCluster, name: str | None = "web") -> list[tuple[str, str, int]]:
    found = run_steps(events_of(reported(cluster.store, "default", name)))
    found.sort(key=lambda event: event.name)
    return [(event.raw["reason"], event.raw["message"], event.raw["count"]) for event in found]


def test_the_start_of_a_container(cluster: KubeletCluster) -> None:
    cluster.store.stand_for(kube_version("1.34").default_rules)
    cluster.run()
    assert events(cluster) == [
        ("Pulled", f'Container image "{IMAGE}" already present on machine', 1),
        ("Created", "Created container: app", 1),
        ("Started", "Started container app", 1),
    ]
    (event, *_) = run_steps(events_of(reported(cluster.store, None)))
    assert event.raw["involvedObject"]["fieldPath"] == "spec.containers{app}"
    assert event.raw["source"] == {"component": "kubelet", "host": "node-1"}
    cluster.store.stand_for(kube_version("1.36").default_rules)
    assert [message for _, message, _ in events(cluster)] == [
        f'Container image "{IMAGE}" already present on machine and can be accessed by the pod',
        "Container created",
        "Container started",
    ]
    cluster.until(3700)
    assert events(cluster) == []


def test_an_image_is_pulled_again_if_its_policy_says_so(cluster: KubeletCluster) -> None:
    puller = init("i", imagePullPolicy="Always")
    cluster.run(annotations={"startup-seconds": "2", "image-size": "7"}, initContainers=[puller])
    cluster.until(5)
    assert events(cluster)[:2] == [
        ("Pulling", 'Pulling image "i:1"', 1),
        ("Pulled", 'Successfully pulled image "i:1" in 2s (2s including waiting). Image size: 7 bytes.', 1),
    ]


def test_a_crash_loop(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"run-seconds": "1", "exit-code": "1"})
    cluster.until(5)
    uid = cluster.pod().uid
    assert [event for event in events(cluster) if event[0] in ("Started", "BackOff")] == [
        ("Started", "Container started", 2),
        ("BackOff", f"Back-off restarting failed container app in pod web_default({uid})", 1),
    ]


def test_a_failing_pull_and_failing_probes(cluster: KubeletCluster) -> None:
    cluster.run("pull", annotations={"image-pull": "fails"})
    cluster.run("ready", annotations={"readiness": "fails"})
    cluster.run("live", annotations={"liveness": "fails"})
    cluster.until(25)
    reasons = [(reason, message.partition(": rpc")[0]) for reason, message, _ in events(cluster, "pull")]
    assert sorted(reasons) == [
        ("BackOff", f'Back-off pulling image "{IMAGE}"'),
        ("Failed", "Error: ErrImagePull"),
        ("Failed", "Error: ImagePullBackOff"),
        ("Failed", f'Failed to pull image "{IMAGE}"'),
        ("Pulling", f'Pulling image "{IMAGE}"'),
    ]
    assert events(cluster, "ready")[-1] == ("Unhealthy", "Readiness probe failed: ", 2)
    assert events(cluster, "live")[-2:] == [
        ("Unhealthy", "Liveness probe failed: ", 3),
        ("Killing", "Container app failed liveness probe, will be restarted", 1),
    ]


def test_a_pod_that_is_being_deleted(cluster: KubeletCluster) -> None:
    cluster.run()
    cluster.store.delete("Pod", "default", "web")
    assert events(cluster)[-1] == ("Killing", "Stopping container app", 1)


def test_a_stored_event_replaces_that_of_the_same_reason(cluster: KubeletCluster) -> None:
    cluster.run()
    involved = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web", "uid": cluster.pod().uid}
    cluster.store.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "web.1", "namespace": "default"},
            "involvedObject": involved,
            "reason": "Started",
            "source": {"component": "kubelet"},
        }
    )
    assert [reason for reason, _, _ in events(cluster)] == ["Pulled", "Created"]


def test_an_offline_run_has_none(cluster: KubeletCluster) -> None:
    cluster.run()
    cluster.store.simulate_pods(None)
    assert events(cluster) == []


def test_a_long_list_is_computed_in_steps(cluster: KubeletCluster) -> None:
    for number in range(120):
        cluster.run(f"web-{number}", cpu="1m")
    steps = events_of(reported(cluster.store, "default"))
    assert sum(1 for _ in steps) > 120 / 10


def test_a_change_that_concerns_no_container_changes_no_event(cluster: KubeletCluster) -> None:
    reporter = ReporterOfChanges(lambda: cluster.clock.now, renamed=True)
    watch = cluster.store.watch(("Pod",))
    cluster.run()
    cluster.store.merge_patch("Pod", "default", "web", {"metadata": {"labels": {"x": "1"}}})
    cluster.store.delete("Pod", "default", "web")
    found = [[(type_, each.raw["reason"]) for type_, each in reporter.changes(event)] for event in watch.take()]
    assert found == [[], [("ADDED", "Pulled"), ("ADDED", "Created"), ("ADDED", "Started")], [], [("ADDED", "Killing")]]
