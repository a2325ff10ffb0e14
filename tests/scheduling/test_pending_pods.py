"""Tests of PendingPods: the pods without a node, their nominations, and the pods in no queue."""

import pytest

from kschedd.api.pods import Pod
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.nominations.pending import PendingPods


def pod(name: str = "a", nominated: str = "", uid: str = "", version: int = 1, node: str = "") -> Pod:
    meta = {"name": name, "namespace": "d", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    status = {"nominatedNodeName": nominated} if nominated else {}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {"nodeName": node}, "status": status})


def entry(of: Pod) -> QueuedPod:
    return QueuedPod(of, of.key, 0)


def pending(*pods: Pod) -> PendingPods:
    made = PendingPods()
    for each in pods:
        made.put(each)
    return made


def nominated(pods: PendingPods) -> dict[str, str]:
    return dict(pods.nominator.node_by_uid())


def test_the_current_version_of_a_popped_pod() -> None:
    newer = pod(version=2)
    pods = pending(newer)
    assert pods.current(entry(pod(version=1))) is newer
    assert pods.current(entry(pod(uid="other"))) is None, "another pod has its name"
    pods.gone(pod())
    assert pods.current(entry(pod())) is None


def test_a_skipped_pod_is_in_no_queue_until_it_changes() -> None:
    pods = pending(pod("a", "n1"), pod("b"))
    pods.nominator.add(pod("a", "n1"))
    pods.begin("uid-a")
    pods.pass_over(entry(pod("a")))
    assert pods.passed_over == {"uid-a"}
    assert [each.name for each in pods.waiting_for_queue({"uid-b"})] == []
    assert [each.name for each in pods.waiting_for_queue(())] == ["b"]
    pods.updated(pod("a", "n1"), pod("a", "n1", version=2))
    assert pods.passed_over == frozenset()
    assert nominated(pods) == {}, "the queue reports the nomination when it adds the pod"


def test_a_pod_that_no_longer_exists_is_not_skipped() -> None:
    pods = pending()
    pods.pass_over(entry(pod("a")))
    assert pods.passed_over == frozenset()


@pytest.mark.parametrize("how", ["gone", "handed over"])
def test_a_pod_that_leaves_is_no_longer_skipped(how: str) -> None:
    pods = pending(pod("a"))
    pods.pass_over(entry(pod("a")))
    if how == "gone":
        pods.gone(pod("a"))
    else:
        pods.handed_over("uid-a")
    assert pods.passed_over == frozenset()


def test_a_pod_that_is_gone_has_no_nomination() -> None:
    pods = pending(pod("a", "n1"))
    pods.active_with_nomination([pod("a", "n1")])
    assert nominated(pods) == {"uid-a": "n1"}
    pods.gone(pod("a", "n1"))
    assert nominated(pods) == {}
    pods.active_with_nomination([pod("a", "n1")])
    assert nominated(pods) == {}, "the queue reported the pod too late"


def test_an_update_in_flight_takes_effect_after_the_attempt() -> None:
    pods = pending(pod("a"))
    pods.begin("uid-a")
    pods.put(pod("a", "n1", version=2))
    pods.updated(pod("a"), pod("a", "n1", version=2))
    assert nominated(pods) == {}
    pods.failed(pod("a", "n1", version=2), None)
    assert nominated(pods) == {"uid-a": "n1"}
    pods.updated(pod("a", "n1", version=2), pod("a", "n2", version=3))
    assert nominated(pods) == {"uid-a": "n2"}, "the pod is not in flight any more"


@pytest.mark.parametrize(("of_preemption", "expected"), [("n2", {"uid-a": "n2"}), ("", {}), (None, {"uid-a": "n1"})])
def test_a_failed_attempt_nominates_a_node(of_preemption: str | None, expected: dict[str, str]) -> None:
    pods = pending(pod("a", "n1"))
    pods.begin("uid-a")
    pods.failed(pod("a", "n1"), of_preemption)
    assert nominated(pods) == expected


def test_a_released_pod_is_not_in_flight_and_left_the_queue() -> None:
    pods = pending(pod("a", "n1"))
    pods.nominator.add(pod("a", "n1"))
    pods.begin("uid-a")
    version = pods.nominator.version
    pods.release("uid-a")
    assert pods.nominator.version == version + 1
    pods.updated(pod("a", "n1"), pod("a", "n2", version=2))
    assert nominated(pods) == {"uid-a": "n2"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(pod("a", "n1"), pod("a", "n2"), id="same-version"),
        pytest.param(pod("a", "n1", node="n9"), pod("a", "n2", version=2), id="with-a-node"),
    ],
)
def test_some_updates_change_no_nomination(old: Pod, new: Pod) -> None:
    pods = pending(pod("a", "n1"))
    pods.nominator.add(pod("a", "n1"))
    pods.updated(old, new)
    assert nominated(pods) == {"uid-a": "n1"}


def test_a_fork_changes_on_its_own() -> None:
    pods = pending(pod("a", "n1"), pod("b"), pod("c"))
    pods.nominator.add(pod("a", "n1"))
    pods.pass_over(entry(pod("b")))
    pods.begin("uid-c")
    fork = pods.fork()
    assert (fork.pods, nominated(fork), fork.passed_over) == (pods.pods, {"uid-a": "n1"}, {"uid-b"})
    fork.updated(pod("c"), pod("c", "n2", version=2))
    assert nominated(fork) == {"uid-a": "n1"}, "c is in flight in the fork as well"
    fork.gone(pod("a"))
    fork.handed_over("uid-b")
    fork.release("uid-c")
    assert (len(pods.pods), nominated(pods), pods.passed_over) == (3, {"uid-a": "n1"}, {"uid-b"})
    pods.updated(pod("c"), pod("c", "n2", version=2))
    assert nominated(pods) == {"uid-a": "n1"}, "c is still in flight in the original"


def test_another_instance_continues_with_skipped_pods_and_nominations() -> None:
    pods = pending(pod("a"), pod("b"))
    pods.goes_on(["uid-b"], [(pod("a"), "n1")])
    assert (pods.passed_over, nominated(pods)) == ({"uid-b"}, {"uid-a": "n1"})
