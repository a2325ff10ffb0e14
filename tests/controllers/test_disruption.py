"""Tests of the status of PodDisruptionBudgets: counts, conditions, events, timeouts; cases from disruption_test.go."""

from typing import Any

import pytest

from kschedd.controllers.disruption import Disruption
from kschedd.controllers.disruption_counts import share_of
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.errors import TooManyRequests
from kschedd.store.store import Store
from tests.store.manifests import Clock, pod, workload

SELECTOR = {"matchLabels": {"app": "web"}}


class Run:
    """A store with the disruption controller, in virtual time."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = Store(now=self.clock)
        self.runner = ControllerRunner(self.store, [Disruption()])

    def budget(self, name: str = "b", selector: Any = SELECTOR, **spec: Any) -> None:
        meta = {"name": name, "namespace": "default"}
        whole = {**spec, "selector": selector} if selector is not None else spec
        self.store.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": whole})

    def owner(self, kind: str, name: str = "o", replicas: int = 3, above: dict[str, Any] | None = None) -> Any:
        raw = workload(kind, name, replicas=replicas)
        if kind in ("Job", "DaemonSet"):
            del raw["spec"]["replicas"]
        if kind == "ReplicationController":
            raw |= {"apiVersion": "v1", "spec": {**raw["spec"], "selector": {"app": name}}}
        if kind == "Job":
            template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
            raw |= {"apiVersion": "batch/v1", "spec": {"template": template}}
        if above:
            raw["metadata"]["ownerReferences"] = [above]
        return self.store.create(raw)

    def pod(self, name: str, owner: Any = None, *, ready: bool = True) -> None:
        raw = pod(name, nodeName="n1")
        if owner is not None:
            raw["metadata"]["ownerReferences"] = [reference(owner)]
        self.store.create(raw)
        self.ready(name, ready)

    def ready(self, name: str, ready: bool = True) -> None:
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        self.store.patch_status("Pod", "default", name, {"phase": "Running", "conditions": conditions})

    def status(self, name: str = "b") -> dict[str, Any]:
        self.runner.run_until_idle()
        return dict(self.store.get("PodDisruptionBudget", "default", name).status)

    def counts(self, name: str = "b") -> tuple[int, int, int, int]:
        """Return the numbers of allowed disruptions, and of currently healthy, desired healthy and expected pods."""
        status = self.status(name)
        fields = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        return tuple(status.get(field, 0) for field in fields)

    def condition(self, name: str = "b") -> tuple[str, str, str]:
        [found] = [each for each in self.status(name)["conditions"] if each["type"] == "DisruptionAllowed"]
        return found["status"], found["reason"], found["message"]

    def events(self) -> list[tuple[str, str]]:
        return [(event.raw["reason"], event.raw["message"]) for event in self.store.list("Event")]


def reference(owner: Any) -> dict[str, Any]:
    meta = {"apiVersion": owner.raw["apiVersion"], "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {**meta, "controller": True}


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.mark.parametrize(
    ("value", "total", "pods"),
    [
        pytest.param(2, 10, 2, id="integer"),
        pytest.param("0%", 10, 0, id="nothing"),
        pytest.param("100%", 7, 7, id="all"),
        pytest.param("50%", 10, 5, id="even"),
        pytest.param("30%", 10, 3, id="exact"),
        pytest.param("28%", 7, 2, id="rounded-up-a-little"),
        pytest.param("1%", 10, 1, id="rounded-up-a-lot"),
        pytest.param("50%", 0, 0, id="of-nothing"),
        pytest.param("99%", 101, 100, id="below-all-but-one"),
    ],
)
def test_percentages_are_rounded_up(value: int | str, total: int, pods: int) -> None:
    assert share_of(value, total) == pods


@pytest.mark.parametrize(
    ("spec", "scale", "ready", "unready", "expected"),
    [
        pytest.param({"minAvailable": 3}, 5, 5, 0, (2, 5, 3, 5), id="integer-counts-the-pods-there-are"),
        pytest.param({"minAvailable": 3}, 9, 3, 1, (0, 3, 3, 4), id="integer-none-to-spare"),
        pytest.param({"minAvailable": 3}, 9, 2, 0, (0, 2, 3, 2), id="integer-fewer-than-needed"),
        pytest.param({"minAvailable": 0}, 2, 2, 0, (2, 2, 0, 2), id="integer-zero"),
        pytest.param({"minAvailable": "28%"}, 5, 1, 0, (0, 1, 2, 5), id="percentage-too-few"),
        pytest.param({"minAvailable": "28%"}, 5, 2, 0, (0, 2, 2, 5), id="percentage-just-enough"),
        pytest.param({"minAvailable": "28%"}, 5, 5, 0, (3, 5, 2, 5), id="percentage-to-spare"),
        pytest.param({"minAvailable": "0%"}, 2, 1, 1, (1, 1, 0, 2), id="percentage-zero"),
        pytest.param({"maxUnavailable": 2}, 7, 7, 0, (2, 7, 5, 7), id="at-most-two-away"),
        pytest.param({"maxUnavailable": 2}, 7, 6, 1, (1, 6, 5, 7), id="one-is-away-already"),
        pytest.param({"maxUnavailable": 2}, 7, 4, 3, (0, 4, 5, 7), id="too-many-are-away"),
        pytest.param({"maxUnavailable": 10}, 3, 3, 0, (3, 3, 0, 3), id="more-than-there-are"),
        pytest.param({"maxUnavailable": 0}, 3, 3, 0, (0, 3, 3, 3), id="none-may-be-away"),
        pytest.param({"maxUnavailable": "30%"}, 10, 10, 0, (3, 10, 7, 10), id="at-most-a-share"),
        pytest.param({"maxUnavailable": "1%"}, 10, 10, 0, (1, 10, 9, 10), id="at-most-a-share-rounded-up"),
        pytest.param({}, 2, 2, 0, (0, 2, 0, 0), id="neither-said-allows-none"),
    ],
)
@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController", "StatefulSet"])
def test_counts(run: Run, kind: str, spec: Any, scale: int, ready: int, unready: int, expected: Any) -> None:
    owner = run.owner(kind, replicas=scale)
    run.budget(**spec)
    for number in range(ready + unready):
        run.pod(f"p{number}", owner, ready=number < ready)
    assert run.counts() == expected
    assert run.condition()[:2] == (("True", "SufficientPods") if expected[0] else ("False", "InsufficientPods"))
    assert run.status()["observedGeneration"] == 1


def test_a_deployment_counts_and_not_its_replica_sets(run: Run) -> None:
    deployment = run.owner("Deployment", "web", replicas=4)
    old = run.owner("ReplicaSet", "web-old", 3, reference(deployment))
    new = run.owner("ReplicaSet", "web-new", 2, reference(deployment))
    run.budget(maxUnavailable="25%")
    for number, owner in enumerate((old, old, old, new)):
        run.pod(f"p{number}", owner)
    assert run.counts() == (1, 4, 3, 4)


def test_a_replica_set_counts_itself_where_its_deployment_is_gone(run: Run) -> None:
    gone = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "gone", "controller": True}
    owner = run.owner("ReplicaSet", "web-old", 3, gone)
    run.budget(maxUnavailable=1)
    for number in range(3):
        run.pod(f"p{number}", owner)
    assert run.counts() == (1, 3, 2, 3)


def test_the_scales_of_several_controllers_add_up(run: Run) -> None:
    one, other = run.owner("ReplicaSet", "a", 4), run.owner("StatefulSet", "b", 6)
    run.budget(minAvailable="50%")
    run.pod("p1", one)
    run.pod("p2", other)
    assert run.counts() == (0, 2, 5, 10)


def test_a_custom_resource_has_the_scale_that_its_definition_names(run: Run) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
    }
    names = {"kind": "Fleet", "plural": "fleets", "singular": "fleet", "listKind": "FleetList"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    run.store.create({**definition, "metadata": {"name": "fleets.example.com"}, "spec": spec})
    fleet = {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "f"}, "spec": {"size": 5}}
    owner = run.store.create(fleet)
    run.budget(maxUnavailable=1)
    run.pod("p", owner)
    assert run.counts() == (0, 1, 4, 5)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        pytest.param("Job", "jobs.batch does not implement the scale subresource", id="job"),
        pytest.param("DaemonSet", "daemonsets.apps does not implement the scale subresource", id="daemon-set"),
    ],
)
def test_a_controller_without_a_scale_fails_the_sync(run: Run, kind: str, why: str) -> None:
    run.budget(maxUnavailable=1)
    run.pod("p", run.owner(kind))
    assert run.condition() == ("False", "SyncFailed", why)
    assert run.counts()[0] == 0
    answer = f"Failed to calculate the number of expected pods: {why}"
    assert ("CalculateExpectedPodCountFailed", answer) in run.events()


def test_a_controller_that_is_gone_fails_the_sync(run: Run) -> None:
    owner = run.owner("ReplicaSet")
    run.budget(maxUnavailable=1)
    run.pod("p", owner)
    run.pod("q", owner)
    assert run.counts()[0] == 0
    run.store.delete("ReplicaSet", "default", "o")
    run.ready("p", False)
    assert run.condition() == ("False", "SyncFailed", 'found no controllers for pod "p"')


def test_an_unknown_kind_of_controller_fails_the_sync(run: Run) -> None:
    run.budget(maxUnavailable=1)
    raw = pod("p")
    owner = {"apiVersion": "x.io/v2", "kind": "Thing", "name": "t", "uid": "u", "controller": True}
    raw["metadata"]["ownerReferences"] = [owner]
    run.store.create(raw)
    assert run.condition()[2] == 'no matches for kind "Thing" in version "x.io/v2"'


def test_pods_that_nobody_owns_do_not_count_for_a_share(run: Run) -> None:
    owner = run.owner("ReplicaSet", replicas=1)
    run.budget(maxUnavailable="100%")
    run.pod("bare")
    run.pod("owned", owner)
    assert run.counts() == (2, 2, 0, 1)
    [(reason, text)] = [event for event in run.events() if event[0] != "NoPods"]
    assert reason == "UnmanagedPods"
    assert text.startswith(
        "Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:map[string]string{app: web,},"
        "MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged."
    )


def test_bare_pods_alone_allow_nothing(run: Run) -> None:
    run.budget(maxUnavailable=1)
    run.pod("bare")
    assert run.counts() == (0, 1, 0, 0)


def test_a_budget_without_pods_says_so_once(run: Run) -> None:
    run.budget(minAvailable=1)
    assert run.counts() == (0, 0, 1, 0)
    run.store.patch("PodDisruptionBudget", "default", "b", {"metadata": {"labels": {"x": "y"}}}, "merge")
    assert run.counts() == (0, 0, 1, 0)
    assert run.events() == [("NoPods", "No matching pods found")]


@pytest.mark.parametrize(
    ("selector", "matched"),
    [
        pytest.param({}, 2, id="an-empty-selector-is-every-pod"),
        pytest.param(None, 0, id="none-is-no-pod"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}, 2, id="not-in"),
        pytest.param({"matchLabels": {"app": "db"}}, 0, id="others"),
    ],
)
def test_selectors(run: Run, selector: Any, matched: int) -> None:
    run.pod("p")
    run.pod("q")
    run.budget(selector=selector, minAvailable=1)
    assert run.counts()[3] == matched


def test_a_changed_budget_is_worked_out_anew(run: Run) -> None:
    run.budget(minAvailable=1)
    for name in "pq":
        run.pod(name)
    assert run.counts() == (1, 2, 1, 2)
    run.store.merge_patch("PodDisruptionBudget", "default", "b", {"spec": {"minAvailable": 2}})
    assert run.counts() == (0, 2, 2, 2)
    assert run.status()["observedGeneration"] == 2
    run.store.merge_patch("PodDisruptionBudget", "default", "b", {"spec": {"selector": {"matchLabels": {"app": "x"}}}})
    assert run.counts() == (0, 0, 2, 0)


def test_pods_that_are_relabelled_leave_and_join(run: Run) -> None:
    run.budget(minAvailable=1)
    run.pod("p")
    assert run.counts() == (0, 1, 1, 1)
    run.store.merge_patch("Pod", "default", "p", {"metadata": {"labels": {"app": "db"}}})
    assert run.counts() == (0, 0, 1, 0)
    run.store.merge_patch("Pod", "default", "p", {"metadata": {"labels": {"app": "web"}}})
    assert run.counts() == (0, 1, 1, 1)


def test_pods_of_another_namespace_do_not_count(run: Run) -> None:
    run.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    run.store.create(pod("p", namespace="other"))
    run.budget(minAvailable=1)
    assert run.counts() == (0, 0, 1, 0)


def test_an_eviction_counts_at_once_and_is_confirmed_by_the_deletion(run: Run) -> None:
    run.budget(minAvailable=1)
    for name in "pq":
        run.pod(name)
    assert run.counts() == (1, 2, 1, 2)
    run.store.evict("default", "p")
    assert run.store.get("PodDisruptionBudget", "default", "b").status["disruptedPods"].keys() == {"p"}
    with pytest.raises(TooManyRequests):
        run.store.evict("default", "q")
    assert run.counts() == (0, 1, 1, 2)
    assert "disruptedPods" not in run.status()
    run.store.delete("Pod", "default", "p", grace_period_s=0)
    assert run.counts() == (0, 1, 1, 1)


def test_a_disrupted_pod_that_stays_counts_again_after_two_minutes(run: Run) -> None:
    run.budget(minAvailable=1)
    for name in "pq":
        run.pod(name)
    run.status()
    at = "2023-11-14T22:13:20Z"
    run.store.patch_status("PodDisruptionBudget", "default", "b", {"disruptedPods": {"p": at, "gone": at}})
    assert run.counts() == (0, 1, 1, 2)
    assert run.status()["disruptedPods"] == {"p": at}
    assert run.runner.next_deadline == run.clock.now + 120
    run.clock.now += 119
    assert run.counts() == (0, 1, 1, 2)
    run.clock.now += 1
    assert run.counts() == (1, 2, 1, 2)
    assert not run.status().get("disruptedPods")
    assert run.runner.next_deadline is None


@pytest.mark.parametrize(
    ("change", "cleaned"),
    [
        pytest.param({}, True, id="nobody-followed-up"),
        pytest.param({"reason": "TerminationByKubelet"}, False, id="a-kubelets-mark-stays"),
        pytest.param({"status": "False"}, False, id="false-is-no-mark"),
    ],
)
def test_a_stale_disruption_target_is_cleaned_after_two_minutes(run: Run, change: Any, cleaned: bool) -> None:
    run.store.create(pod("p"))
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "m"}
    mark["lastTransitionTime"] = "2023-11-14T22:13:20Z"
    run.store.patch_status("Pod", "default", "p", {"conditions": [{**mark, **change}]})
    run.runner.run_until_idle()
    assert (run.runner.next_deadline == run.clock.now + 120) is cleaned
    run.clock.now += 120
    run.runner.run_until_idle()
    [found] = run.store.get("Pod", "default", "p").status["conditions"]
    assert (found["status"] == "False" and "reason" not in found) is cleaned


def test_a_marked_pod_that_is_deleted_is_left_alone(run: Run) -> None:
    run.store.create(pod("p", nodeName="n1"))
    run.store.evict("default", "p")
    run.runner.run_until_idle()
    assert run.runner.next_deadline is None


def test_two_budgets_over_one_pod_are_reported_once(run: Run) -> None:
    run.budget("b", minAvailable=1)
    run.budget("c", maxUnavailable=0)
    for name in "pq":
        run.pod(name)
    run.status()
    answer = [text for reason, text in run.events() if reason == "MultiplePodDisruptionBudgets"]
    assert answer == ['Pod "default"/"p" matches multiple PodDisruptionBudgets.  Chose "b" arbitrarily.']


def test_a_restart_finds_the_same(run: Run) -> None:
    run.budget(minAvailable=1)
    for name in "pq":
        run.pod(name)
    before = run.status()
    version = run.store.version
    again = ControllerRunner(run.store, [Disruption()])
    again.run_until_idle()
    assert run.store.version == version
    assert run.status() == before
