"""Tests of pods on their nodes, from admission to removal."""

import pytest

from tests.controllers.kubelets.cluster import KubeletCluster, init, sidecar


@pytest.fixture
def cluster() -> KubeletCluster:
    return KubeletCluster()


# -- starting and ending --------------------------------------------------------------------------------------------


def test_containers_take_the_annotated_time_to_be_created(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"startup-seconds": "5"})
    assert (cluster.pod().phase, cluster.states()) == ("Pending", {"app": "ContainerCreating"})
    assert cluster.pod().status["startTime"] == "2023-11-14T22:13:20Z"
    assert "podIP" not in cluster.pod().status
    assert cluster.condition("PodReadyToStartContainers")[0] == "False"
    assert cluster.condition("Ready") == ("False", "ContainersNotReady", "containers with unready status: [app]")
    cluster.until(4.9)
    assert cluster.pod().phase == "Pending"
    cluster.until(5)
    assert (cluster.pod().phase, cluster.states()) == ("Running", {"app": "running"})
    assert cluster.condition("Ready") == ("True", "", "")
    assert cluster.condition("PodReadyToStartContainers")[0] == "True"
    assert cluster.pod().status["podIP"].startswith("10.")


@pytest.mark.parametrize(
    ("policy", "code", "phase", "reason"),
    [
        ("Never", "0", "Succeeded", "PodCompleted"),
        ("OnFailure", "0", "Succeeded", "PodCompleted"),
        ("Never", "3", "Failed", "PodFailed"),
    ],
)
def test_a_pod_ends_with_its_container(
    cluster: KubeletCluster, policy: str, code: str, phase: str, reason: str
) -> None:
    cluster.run(annotations={"run-seconds": "60", "exit-code": code}, restartPolicy=policy)
    cluster.until(59)
    assert cluster.pod().phase == "Running"
    cluster.until(60)
    assert cluster.pod().phase == phase
    ended = cluster.container()["state"]["terminated"]
    assert (ended["exitCode"], ended["finishedAt"]) == (int(code), "2023-11-14T22:14:20Z")
    assert ended["reason"] == ("Error" if int(code) else "Completed")
    assert cluster.condition("Ready") == ("False", reason, "")
    assert cluster.condition("ContainersReady")[1] == reason
    assert cluster.condition("PodReadyToStartContainers")[0] == "False"
    assert cluster.runner.next_deadline is None


@pytest.mark.parametrize(("policy", "code"), [("Always", "1"), ("Always", "0"), ("OnFailure", "2")])
def test_a_container_that_ends_is_started_again_ever_later(cluster: KubeletCluster, policy: str, code: str) -> None:
    cluster.run(annotations={"run-seconds": "1", "exit-code": code}, restartPolicy=policy)
    cluster.until(1)  # at once
    assert (cluster.container()["restartCount"], cluster.states()) == (1, {"app": "running"})
    cluster.until(2)
    waiting = cluster.container()
    assert waiting["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    uid = cluster.pod().uid
    why = f"back-off 10s restarting failed container=app pod=web_default({uid})"
    assert waiting["state"]["waiting"]["message"] == why
    assert waiting["lastState"]["terminated"]["exitCode"] == int(code)
    assert (waiting["ready"], cluster.pod().phase) == (False, "Running")
    starts = []
    for _ in range(6):
        due = cluster.runner.next_deadline
        assert due is not None
        before = cluster.container()["restartCount"]
        cluster.until(due - cluster.start)
        if cluster.container()["restartCount"] > before:
            starts.append(due - cluster.start)
    assert starts == [12, 33, 74]  # 2 + 10, 13 + 20, 34 + 40
    assert cluster.container()["restartCount"] == 4


def test_ten_quiet_minutes_forgive(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"run-seconds": "601", "exit-code": "1"})
    cluster.until(4 * 601)
    assert cluster.container()["restartCount"] == 4


def test_a_container_that_is_said_to_fail_does_so_at_once_unless_it_is_said_when(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"exit-code": "7"}, restartPolicy="Never")
    assert (cluster.pod().phase, cluster.container()["state"]["terminated"]["exitCode"]) == ("Failed", 7)


def test_annotations_may_name_a_container(cluster: KubeletCluster) -> None:
    both = [{"name": "app", "image": "a:1"}, {"name": "log", "image": "l:1"}]
    notes = {"run-seconds": "5", "run-seconds.log": "9", "exit-code.log": "4"}
    cluster.run(annotations=notes, restartPolicy="Never", containers=both)
    cluster.until(5)
    assert (cluster.states(), cluster.pod().phase) == ({"app": "terminated", "log": "running"}, "Running")
    assert cluster.condition("Ready") == ("False", "ContainersNotReady", "containers with unready status: [app]")
    cluster.until(9)
    assert (cluster.states(), cluster.pod().phase) == ({"app": "terminated", "log": "terminated"}, "Failed")


def test_an_annotation_added_later_counts(cluster: KubeletCluster) -> None:
    cluster.run(restartPolicy="Never")
    cluster.until(10)
    note = {"metadata": {"annotations": {"kschedd.io/run-seconds": "30"}}}
    cluster.store.merge_patch("Pod", "default", "web", note)
    cluster.run_until_idle()
    cluster.until(29)
    assert cluster.pod().phase == "Running"
    cluster.until(30)
    assert cluster.pod().phase == "Succeeded"


# -- init containers and sidecars -----------------------------------------------------------------------------------


def test_init_containers_run_in_order_then_all_containers(cluster: KubeletCluster) -> None:
    notes = {"run-seconds.one": "2", "run-seconds.two": "3"}
    cluster.run(annotations=notes, initContainers=[init("one"), init("two")])
    assert cluster.states() == {"one": "running", "two": "PodInitializing", "app": "PodInitializing"}
    why = "containers with incomplete status: [one two]"
    assert cluster.condition("Initialized") == ("False", "ContainersNotInitialized", why)
    cluster.until(2)
    assert cluster.states() == {"one": "terminated", "two": "running", "app": "PodInitializing"}
    assert cluster.pod().phase == "Pending"
    cluster.until(5)
    assert cluster.states() == {"one": "terminated", "two": "terminated", "app": "running"}
    assert (cluster.pod().phase, cluster.condition("Initialized")[0]) == ("Running", "True")
    assert cluster.container("one")["ready"]


def test_init_containers_end_at_once_unless_somebody_says_otherwise(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"run-seconds": "60"}, initContainers=[init("one")], restartPolicy="Never")
    assert cluster.states() == {"one": "terminated", "app": "running"}


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("OnFailure", "Pending"), ("Always", "Pending")])
def test_a_failing_init_container(cluster: KubeletCluster, policy: str, phase: str) -> None:
    notes = {"run-seconds.one": "1", "exit-code.one": "1"}
    cluster.run(annotations=notes, initContainers=[init("one")], restartPolicy=policy)
    cluster.until(30)
    assert cluster.pod().phase == phase
    assert cluster.states()["one"] == ("terminated" if policy == "Never" else "CrashLoopBackOff")
    assert cluster.states()["app"] == "PodInitializing"
    assert cluster.container("one")["restartCount"] == (0 if policy == "Never" else 2)


def test_sidecars_start_in_their_turn_and_end_last_in_reverse_order(cluster: KubeletCluster) -> None:
    inits = [sidecar("proxy"), init("prepare"), sidecar("logs")]
    notes = {"run-seconds.prepare": "2", "run-seconds": "10", "termination-seconds": "1"}
    cluster.run(annotations=notes, initContainers=inits, restartPolicy="Never")
    assert cluster.states() == {
        "proxy": "running",
        "prepare": "running",
        "logs": "PodInitializing",
        "app": "PodInitializing",
    }
    cluster.until(2)
    assert set(cluster.states().values()) == {"running", "terminated"}
    assert cluster.condition("Ready")[0] == "True"
    cluster.until(12)  # the container has ended, and the last sidecar begins to stop
    assert cluster.states()["app"] == "terminated"
    assert (cluster.states()["logs"], cluster.states()["proxy"], cluster.pod().phase) == (
        "running",
        "running",
        "Running",
    )
    cluster.until(13)
    assert (cluster.states()["logs"], cluster.states()["proxy"]) == ("terminated", "running")
    cluster.until(14)
    assert (cluster.states()["proxy"], cluster.pod().phase) == ("terminated", "Succeeded")


def test_a_sidecar_that_ends_is_started_again_whatever_the_policy(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"run-seconds.proxy": "3"}, initContainers=[sidecar("proxy")], restartPolicy="Never")
    cluster.until(3)
    assert (cluster.container("proxy")["restartCount"], cluster.states()["proxy"]) == (1, "running")
    cluster.until(6)
    assert cluster.states()["proxy"] == "CrashLoopBackOff"
    assert cluster.condition("Ready")[2] == "containers with unready status: [proxy]"
    assert cluster.pod().phase == "Running"


def test_sidecars_that_are_slow_to_stop_have_the_grace_period(cluster: KubeletCluster) -> None:
    cluster.run(
        annotations={"run-seconds": "5"},
        initContainers=[sidecar("proxy")],
        restartPolicy="Never",
        terminationGracePeriodSeconds=20,
    )
    cluster.until(24)
    assert cluster.pod().phase == "Running"
    cluster.until(25)
    assert cluster.pod().phase == "Succeeded"
    assert cluster.container("proxy")["state"]["terminated"]["exitCode"] == 137


# -- deadlines, gates, deletion --------------------------------------------------------------------------------------


def test_a_pod_may_not_be_active_beyond_its_deadline(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"termination-seconds": "2"}, activeDeadlineSeconds=30)
    cluster.until(31)
    assert cluster.pod().phase == "Running"
    cluster.until(32)
    status = cluster.pod().status
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"


def test_a_deadline_ends_a_pod_that_has_not_started_yet(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"startup-seconds": "100"}, activeDeadlineSeconds=30)
    cluster.until(30)
    assert cluster.phases() == {"web": "DeadlineExceeded"}


def test_a_pod_with_readiness_gates_is_ready_when_they_are_true(cluster: KubeletCluster) -> None:
    cluster.run(readinessGates=[{"conditionType": "example.com/lb"}])
    why = 'corresponding condition of pod readiness gate "example.com/lb" does not exist.'
    assert cluster.condition("Ready") == ("False", "ReadinessGatesNotReady", why)
    assert cluster.condition("ContainersReady")[0] == "True"
    for status, ready in (("False", "False"), ("True", "True")):
        conditions = [c for c in cluster.pod().status["conditions"] if c["type"] != "example.com/lb"]
        conditions.append({"type": "example.com/lb", "status": status})
        patch = {"status": {"conditions": conditions}}
        cluster.store.merge_patch("Pod", "default", "web", patch, subresource="status")
        cluster.run_until_idle()
        assert cluster.condition("Ready")[0] == ready


def test_a_pod_that_never_started_is_removed_at_once(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"startup-seconds": "100"})
    cluster.store.delete("Pod", "default", "web")
    cluster.run_until_idle()
    assert cluster.store.find("Pod", "default", "web") is None


def test_containers_and_sidecars_share_the_grace_period_of_a_deletion(cluster: KubeletCluster) -> None:
    notes = {"termination-seconds.app": "3", "termination-seconds.proxy": "4"}
    cluster.run(annotations=notes, initContainers=[sidecar("proxy")])
    cluster.store.delete("Pod", "default", "web")
    cluster.until(6)
    assert cluster.pod().deleting
    cluster.until(7)
    assert cluster.store.find("Pod", "default", "web") is None


def test_a_pod_with_finalizers_says_how_it_ended(cluster: KubeletCluster) -> None:
    cluster.run(terminationGracePeriodSeconds=5)
    cluster.store.merge_patch("Pod", "default", "web", {"metadata": {"finalizers": ["example.com/keep"]}})
    cluster.store.delete("Pod", "default", "web")
    cluster.until(5)
    assert (cluster.pod().phase, cluster.states()) == ("Failed", {"app": "terminated"})
    cluster.store.merge_patch("Pod", "default", "web", {"metadata": {"finalizers": None}})
    cluster.run_until_idle()
    assert cluster.store.find("Pod", "default", "web") is None


# -- kubelets that begin in the middle -------------------------------------------------------------------------------


def test_kubelets_that_are_started_anew_go_on_where_the_others_were(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"run-seconds": "5", "exit-code": "1"})
    cluster.run(
        "job", {"run-seconds.one": "4", "run-seconds": "20"}, initContainers=[init("one")], restartPolicy="Never"
    )
    cluster.until(10)
    assert (cluster.states(), cluster.states("job")) == (
        {"app": "CrashLoopBackOff"},
        {"one": "terminated", "app": "running"},
    )
    cluster.restart_kubelets()
    cluster.until(19)
    assert cluster.states() == {"app": "CrashLoopBackOff"}
    cluster.until(20)
    assert (cluster.states(), cluster.container()["restartCount"]) == ({"app": "running"}, 2)
    cluster.until(24)
    assert cluster.pod("job").phase == "Succeeded"
    cluster.until(44)
    assert cluster.states() == {"app": "CrashLoopBackOff"}
    cluster.until(45)  # 25 + 20
    assert cluster.states() == {"app": "running"}


def test_statuses_say_which_generation_they_are_about(cluster: KubeletCluster) -> None:
    cluster.run()
    cluster.run("slow", {"startup-seconds": "1"})
    for name in ("web", "slow"):
        status = cluster.pod(name).status
        assert status["observedGeneration"] == 1
        assert {condition["observedGeneration"] for condition in status["conditions"]} == {1}
        assert [c["type"] for c in status["conditions"]][-1] == "PodScheduled"


# -- failures and ephemeral containers ------------------------------------------------------------------------------


def test_an_image_that_cannot_be_pulled(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"image-pull": "fails"})
    why = (
        'rpc error: code = NotFound desc = failed to pull and unpack image "registry.k8s.io/pause:3.10": failed to '
        'resolve reference "registry.k8s.io/pause:3.10": registry.k8s.io/pause:3.10: not found'
    )
    assert cluster.container()["state"] == {"waiting": {"reason": "ErrImagePull", "message": why}}
    assert cluster.pod().phase == "Pending"
    cluster.until(10)
    assert cluster.container()["state"]["waiting"] == {
        "reason": "ImagePullBackOff",
        "message": f'Back-off pulling image "registry.k8s.io/pause:3.10": ErrImagePull: {why}',
    }
    assert cluster.runner.next_deadline is None
    cluster.restart_kubelets()
    assert cluster.container()["state"]["waiting"]["reason"] in ("ErrImagePull", "ImagePullBackOff")
    cluster.store.merge_patch("Pod", "default", "web", {"metadata": {"annotations": {"kschedd.io/image-pull": None}}})
    cluster.run_until_idle()
    assert (cluster.pod().phase, cluster.states()) == ("Running", {"app": "running"})


def test_a_container_is_killed_when_it_is_out_of_memory(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"run-seconds": "5", "out-of-memory": "true"}, restartPolicy="Never")
    cluster.until(5)
    ended = cluster.container()["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"], cluster.pod().phase) == ("OOMKilled", 137, "Failed")


def test_a_failing_readiness_probe_leaves_the_pod_running(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"readiness": "fails"})
    assert (cluster.pod().phase, cluster.states()) == ("Running", {"app": "running"})
    assert cluster.container()["ready"] is False
    assert cluster.condition("Ready") == ("False", "ContainersNotReady", "containers with unready status: [app]")


def test_a_failing_liveness_probe_restarts_the_container(cluster: KubeletCluster) -> None:
    cluster.run(annotations={"liveness": "fails"})
    cluster.until(19)
    assert cluster.container()["restartCount"] == 0
    cluster.until(20)
    assert (cluster.container()["restartCount"], cluster.container()["lastState"]["terminated"]["exitCode"]) == (1, 137)


@pytest.mark.parametrize("more", [{}, {"run-seconds": "1000"}])
def test_a_pod_that_is_stuck_ends_only_without_a_grace_period(cluster: KubeletCluster, more: dict[str, str]) -> None:
    cluster.run(annotations={"termination-seconds": "never", **more})
    cluster.store.delete("Pod", "default", "web")
    cluster.until(900)
    assert cluster.pod().deletion_timestamp
    cluster.store.delete("Pod", "default", "web", grace_period_s=0)
    cluster.run_until_idle()
    assert cluster.store.find("Pod", "default", "web") is None


def test_an_ephemeral_container_runs_beside_the_others(cluster: KubeletCluster) -> None:
    cluster.run()
    debugger = {"name": "debugger", "image": "busybox:1"}
    patch = {"spec": {"ephemeralContainers": [debugger]}}
    cluster.store.merge_patch("Pod", "default", "web", patch, subresource="ephemeralcontainers")
    cluster.run_until_idle()
    cluster.restart_kubelets()
    (entry,) = cluster.pod().status["ephemeralContainerStatuses"]
    assert entry["state"] == {"running": {"startedAt": "2023-11-14T22:13:20Z"}}
    assert (entry["name"], entry["image"], entry["ready"], entry.get("started")) == (
        "debugger",
        "busybox:1",
        False,
        None,
    )
    assert (cluster.pod().phase, cluster.condition("Ready")[0]) == ("Running", "True")
    cluster.store.delete("Pod", "default", "web")
    cluster.until(31)
    assert cluster.store.find("Pod", "default", "web") is None
