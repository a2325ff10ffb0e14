"""Tests of pods that wait for ConfigMaps and Secrets."""

from typing import Any

import pytest

from kschedd.service.operations.kubelet_events import events_of, reported
from kschedd.values import run_steps
from tests.controllers.kubelets.cluster import KubeletCluster, init

Raw = dict[str, Any]


@pytest.fixture
def cluster() -> KubeletCluster:
    return KubeletCluster(requires_configuration=True)


def put(cluster: KubeletCluster, kind: str, name: str, **data: str) -> None:
    raw = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "data": data}
    if cluster.store.find(kind, "default", name) is None:
        cluster.store.create(raw)
    else:
        cluster.store.merge_patch(kind, "default", name, {"data": data})
    cluster.run_until_idle()


def variable(kind: str, name: str, key: str, **more: Any) -> Raw:
    return {"name": "V", "valueFrom": {f"{kind}KeyRef": {"name": name, "key": key, **more}}}


def container(name: str = "app", **fields: Any) -> Raw:
    return {"name": name, "image": "app:1", **fields}


def mounting(**volume: Any) -> dict[str, Any]:
    mounts = [{"name": "v", "mountPath": "/v"}]
    return {"containers": [container(volumeMounts=mounts)], "volumes": [{"name": "v", **volume}]}


ENVIRONMENTS = [
    pytest.param({"envFrom": [{"configMapRef": {"name": "c"}}]}, 'configmap "c" not found', id="all-of-a-configmap"),
    pytest.param({"envFrom": [{"secretRef": {"name": "s"}}]}, 'secret "s" not found', id="all-of-a-secret"),
    pytest.param({"env": [variable("configMap", "c", "k")]}, 'configmap "c" not found', id="configmap"),
    pytest.param({"env": [variable("secret", "s", "k")]}, 'secret "s" not found', id="secret"),
    pytest.param(
        {"env": [variable("configMap", "there", "k")]},
        "couldn't find key k in ConfigMap default/there",
        id="key-of-a-configmap",
    ),
    pytest.param(
        {"env": [variable("secret", "there", "k")]}, "couldn't find key k in Secret default/there", id="key-of-a-secret"
    ),
    pytest.param(
        {"env": [variable("secret", "s", "k")], "envFrom": [{"configMapRef": {"name": "c"}}]},
        'configmap "c" not found',
        id="whole-objects-first",
    ),
]


@pytest.mark.parametrize(("fields", "why"), ENVIRONMENTS)
def test_a_container_waits_for_its_environment(cluster: KubeletCluster, fields: Raw, why: str) -> None:
    put(cluster, "ConfigMap", "there", other="x")
    put(cluster, "Secret", "there", other="eA==")
    cluster.run(containers=[container(**fields), container("second")])
    assert cluster.states() == {"app": "CreateContainerConfigError", "second": "running"}
    assert cluster.container()["state"]["waiting"]["message"] == why
    assert (cluster.pod().phase, bool(cluster.pod().status["podIP"])) == ("Pending", True)
    for kind, name, value in (("ConfigMap", "c", "x"), ("Secret", "s", "eA==")):
        put(cluster, kind, name, k=value)
        put(cluster, kind, "there", k=value)
    assert cluster.states() == {"app": "running", "second": "running"}
    assert cluster.pod().phase == "Running"


VOLUMES = [
    pytest.param({"configMap": {"name": "c"}}, 'configmap "c" not found', id="configmap"),
    pytest.param({"secret": {"secretName": "s"}}, 'secret "s" not found', id="secret"),
    pytest.param(
        {"configMap": {"name": "there", "items": [{"key": "other", "path": "o"}, {"key": "k", "path": "k"}]}},
        "configmap references non-existent config key: k",
        id="key-of-a-configmap",
    ),
    pytest.param(
        {"secret": {"secretName": "there", "items": [{"key": "k", "path": "k"}]}},
        "references non-existent secret key: k",
        id="key-of-a-secret",
    ),
    pytest.param({"projected": {"sources": [{"secret": {"name": "s"}}]}}, 'secret "s" not found', id="projected"),
    pytest.param(
        {"projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "c"}}]}},
        '[secret "s" not found, configmap "c" not found]',
        id="several-sources",
    ),
]


@pytest.mark.parametrize(("volume", "why"), VOLUMES)
def test_a_pod_waits_for_its_volumes(cluster: KubeletCluster, volume: Raw, why: str) -> None:
    put(cluster, "ConfigMap", "there", other="x")
    put(cluster, "Secret", "there", other="eA==")
    cluster.run(**mounting(**volume))
    assert cluster.events("FailedMount") == [f'MountVolume.SetUp failed for volume "v" : {why}']
    assert cluster.states() == {"app": "ContainerCreating"}
    assert cluster.condition("PodReadyToStartContainers")[0] == "False"
    for kind, name, value in (("ConfigMap", "c", "x"), ("Secret", "s", "eA==")):
        put(cluster, kind, name, k=value)
        put(cluster, kind, "there", k=value)
    assert cluster.states() == {"app": "running"}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"containers": [container(envFrom=[{"secretRef": {"name": "s", "optional": True}}])]}, id="all"),
        pytest.param({"containers": [container(env=[variable("configMap", "c", "k", optional=True)])]}, id="key"),
        pytest.param(mounting(configMap={"name": "c", "optional": True}), id="volume"),
        pytest.param(mounting(projected={"sources": [{"secret": {"name": "s", "optional": True}}]}), id="projected"),
        pytest.param({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, id="volume-that-nothing-mounts"),
    ],
)
def test_optional_references_are_not_awaited(cluster: KubeletCluster, spec: Raw) -> None:
    cluster.run(**spec)
    assert cluster.pod().phase == "Running"


def test_clusters_without_complete_configuration_do_not_wait() -> None:
    cluster = KubeletCluster()
    cluster.run("files", **mounting(configMap={"name": "c"}))
    cluster.run(containers=[container(env=[variable("secret", "s", "k")])])
    assert cluster.phases() == {"files": "Running", "web": "Running"}


def test_only_changes_of_an_awaited_object_wake_the_kubelets(cluster: KubeletCluster) -> None:
    cluster.run(containers=[container(env=[variable("secret", "s", "k")])])
    (kubelets,) = (state.controller for state in cluster.runner.states())
    for kind, name, concerns in (("Secret", "other", False), ("ConfigMap", "s", False), ("Secret", "s", True)):
        watch = cluster.store.watch((kind,))
        put(cluster, kind, name, k="eA==")
        (event,) = watch.take()
        assert kubelets.concerns(event) is concerns  # type: ignore[attr-defined]
    assert cluster.pod().phase == "Running"


def test_an_init_container_waits_before_the_others(cluster: KubeletCluster) -> None:
    cluster.run(initContainers=[init("prepare", env=[variable("secret", "s", "k")])])
    assert cluster.states() == {"prepare": "CreateContainerConfigError", "app": "PodInitializing"}
    put(cluster, "Secret", "s", k="eA==")
    assert cluster.pod().phase == "Running"


def test_a_container_does_not_restart_without_its_configuration(cluster: KubeletCluster) -> None:
    put(cluster, "Secret", "s", k="eA==")
    settings = {"run-seconds": "5", "exit-code": "1"}
    cluster.run(annotations=settings, containers=[container(env=[variable("secret", "s", "k")])])
    cluster.store.delete("Secret", "default", "s")
    cluster.until(60)
    assert cluster.container()["state"]["waiting"]["message"] == 'secret "s" not found'
    assert cluster.container()["lastState"]["terminated"]["exitCode"] == 1
    assert cluster.runner.next_work is None
    put(cluster, "Secret", "s", k="eA==")
    assert cluster.container()["restartCount"] == 1


def test_pods_go_on_waiting_after_a_restart_of_the_kubelets(cluster: KubeletCluster) -> None:
    cluster.run("files", **mounting(configMap={"name": "c"}))
    cluster.run(containers=[container(env=[variable("secret", "s", "k")]), container("second")])
    before = cluster.pod().status
    cluster.restart_kubelets()
    assert cluster.phases() == {"files": "Pending", "web": "Pending"}
    assert cluster.pod().status == before
    put(cluster, "ConfigMap", "c")
    put(cluster, "Secret", "s", k="eA==")
    assert cluster.phases() == {"files": "Running", "web": "Running"}
    assert cluster.container("second")["restartCount"] == 0


def test_a_waiting_pod_is_removed_at_once(cluster: KubeletCluster) -> None:
    cluster.run("files", **mounting(configMap={"name": "c"}))
    cluster.run(containers=[container(env=[variable("secret", "s", "k")])])
    cluster.restart_kubelets()
    for name in ("files", "web"):
        cluster.store.delete("Pod", "default", name)
    cluster.run_until_idle()
    assert cluster.phases() == {}


def test_the_events_name_what_is_missing(cluster: KubeletCluster) -> None:
    cluster.run(containers=[container(env=[variable("secret", "s", "k")])])
    found = run_steps(events_of(reported(cluster.store, "default", "web")))
    assert [(each.raw["reason"], each.raw["type"]) for each in found] == [("Pulled", "Normal"), ("Failed", "Warning")]
    assert found[-1].raw["message"] == 'Error: secret "s" not found'
