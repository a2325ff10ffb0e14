"""The behavior of new pods: parsing, precedence, selection by labels, images and namespaces, and which pods get it."""

from typing import Any

import pytest

from kschedd.api.simulation.pod_behavior import DEFAULT, PodBehavior
from kschedd.controllers.options import controller_options
from kschedd.store.errors import ApiError
from kschedd.store.store import Store
from tests.store.manifests import Clock, pod

JOB = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]


@pytest.fixture
def store() -> Store:
    made = Store(now=Clock())
    made.simulate_pods(PodBehavior.parse("finish-jobs=5s,start=1s,terminate=1s"))
    return made


def behavior(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kschedd.io/v1alpha1",
        "kind": "SimulatedBehavior",
        "metadata": {"name": name},
        "spec": spec,
    }


def added(store: Store, raw: dict[str, Any], *, restore: bool = False, **meta: Any) -> dict[str, str]:
    raw["metadata"].update(meta)
    found = store.create(raw, restore=restore).metadata.get("annotations") or {}
    return {key.removeprefix("kschedd.io/"): text for key, text in found.items()}


def test_the_flag_is_read_and_shown() -> None:
    assert PodBehavior.parse("finish-jobs=1m30s, start=0.5s") == PodBehavior(90.0, 0.5)
    assert str(PodBehavior(90.0, 0.5)) == "finish-jobs=1m30s,start=500ms"
    assert PodBehavior.parse("none") == PodBehavior()
    assert (str(PodBehavior()), str(DEFAULT)) == ("none", "finish-jobs=5s")
    assert controller_options({"pod-behavior": DEFAULT}).pod_behavior is DEFAULT


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("finish=5s", 'must be "none" or a list of finish-jobs=5s, finish-pods=5s, start=5s, terminate=5s'),
        ("start", "start must be a duration, such as start=5s"),
        ("start=-1s", "start must not be negative"),
    ],
)
def test_a_wrong_flag_is_rejected(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="must") as raised:
        PodBehavior.parse(text)
    assert str(raised.value) == why


def test_the_default_applies_to_new_pods_without_annotations(store: Store) -> None:
    quick = {"startup-seconds": "1", "termination-seconds": "1"}
    assert added(store, pod("a")) == quick
    assert added(store, pod("b"), ownerReferences=JOB) == {**quick, "run-seconds": "5"}
    own = {"kschedd.io/exit-code": "1", "kschedd.io/termination-seconds.app": "9"}
    assert added(store, pod("c"), ownerReferences=JOB, annotations=own) == {
        "exit-code": "1",
        "termination-seconds.app": "9",
        "startup-seconds": "1",
    }


def test_hooks_and_tests_of_a_helm_chart_complete(store: Store) -> None:
    hook = {"helm.sh/hook": "test"}
    assert added(store, pod("a", restartPolicy="Never"), annotations=hook)["run-seconds"] == "5"
    assert "run-seconds" not in added(store, pod("b"), annotations=hook)
    assert "run-seconds" not in added(store, pod("c", restartPolicy="Never"))


def test_pods_that_read_their_input_once_complete(store: Store) -> None:
    def reading(name: str, policy: str) -> dict[str, Any]:
        return pod(
            name, restartPolicy=policy, containers=[{"name": "app", "image": "a", "stdin": True, "stdinOnce": True}]
        )

    assert added(store, reading("a", "Never"))["run-seconds"] == "5"
    assert "run-seconds" not in added(store, reading("b", "Always"))
    assert "run-seconds" not in added(store, reading("c", "Never"), ownerReferences=[{**JOB[0], "kind": "ReplicaSet"}])


def test_pods_that_are_not_restarted_complete_on_request(store: Store) -> None:
    store.simulate_pods(PodBehavior.parse("finish-pods=3s"))
    assert added(store, pod("a", restartPolicy="Never")) == {"run-seconds": "3"}
    assert added(store, pod("b", restartPolicy="Always")) == {}
    assert added(store, pod("c", restartPolicy="Never"), ownerReferences=JOB) == {}
    store.keep_jobs_running()
    assert added(store, pod("d", restartPolicy="Never")) == {}


def test_an_explicit_grace_period_and_a_pre_stop_hook_hold(store: Store) -> None:
    assert "termination-seconds" not in added(store, pod("a", terminationGracePeriodSeconds=60))
    assert "termination-seconds" in added(store, pod("b", terminationGracePeriodSeconds=30))
    hooked = pod("c")
    hooked["spec"]["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 5}}}
    assert "termination-seconds" not in added(store, hooked)


def test_restored_pods_and_other_stores_keep_their_annotations(store: Store) -> None:
    assert added(store, pod("a"), ownerReferences=JOB, restore=True) == {}
    assert added(Store(now=Clock()), pod("a"), ownerReferences=JOB) == {}


def test_a_fork_goes_on_like_its_original_unless_it_answers_a_question(store: Store) -> None:
    fork = store.fork()
    assert added(fork, pod("a"), ownerReferences=JOB)["run-seconds"] == "5"
    fork.keep_jobs_running()
    assert "run-seconds" not in added(fork, pod("b"), ownerReferences=JOB)
    assert added(store, pod("c"), ownerReferences=JOB)["run-seconds"] == "5"


def test_behaviors_select_by_labels_images_and_namespaces(store: Store) -> None:
    store.simulate_pods(PodBehavior())
    store.create(behavior("labels", selector={"matchLabels": {"app": "web"}}, settings={"exit-code": 1}))
    store.create(behavior("images", images=["*/pause:*"], settings={"image-pull": "fails", "startup-seconds": 2}))
    store.create(behavior("space", namespaces=["kube-system"], settings={"out-of-memory": True}))
    assert added(store, pod("a")) == {"image-pull.app": "fails", "startup-seconds": "2", "exit-code": "1"}
    other = pod("b", namespace="kube-system")
    other["spec"]["containers"][0]["image"] = "other:1"
    assert added(store, other, labels={"app": "db"}) == {"out-of-memory": "true"}


def test_the_first_behavior_by_name_takes_precedence_over_later_ones(store: Store) -> None:
    store.create(behavior("b", settings={"run-seconds": 7}))
    store.create(behavior("a", settings={"run-seconds": 3, "exit-code": 1}))
    found = added(store, pod("a"), ownerReferences=JOB)
    assert (found["run-seconds"], found["exit-code"], found["startup-seconds"]) == ("3", "1", "1")


def test_pods_of_one_request_are_stamped_alike(store: Store) -> None:
    spec = pod("a", cpu=None)["spec"]
    with store.one_request():
        raws = [{**pod(name, cpu=None), "spec": spec} for name in ("a", "b", "c")]
        assert len({str(sorted(store.create(raw).metadata["annotations"].items())) for raw in raws}) == 1


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"settings": {}}, "spec.settings: Required value: at least one setting is required"),
        ({"settings": {"run-second": 1}}, 'spec.settings[run-second]: Invalid value: 1: supported settings: "'),
        ({"settings": {"run-seconds": "soon"}}, 'spec.settings[run-seconds]: Invalid value: "soon": a number of'),
        (
            {"settings": {"exit-code": 1}, "namespaces": ["a", "B"]},
            'spec.namespaces[1]: Invalid value: "B": a lowercase',
        ),
        ({"settings": {"readiness": True}}, 'spec.settings[readiness]: Invalid value: true: "fails" or "succeeds"'),
    ],
)
def test_a_wrong_behavior_is_rejected(store: Store, spec: dict[str, Any], why: str) -> None:
    with pytest.raises(ApiError) as raised:
        store.create(behavior("wrong", **spec))
    assert why.removesuffix('"') in str(raised.value)


def test_the_kind_is_served_only_where_pods_are_simulated(store: Store) -> None:
    with pytest.raises(ApiError, match="SimulatedBehavior"):
        Store(now=Clock()).create(behavior("a", settings={"exit-code": 1}), as_client=True)
    assert store.create(behavior("a", settings={"exit-code": 1}), as_client=True).name == "a"
