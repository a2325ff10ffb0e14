"""Tests that incremental counts of a workload's pods equal a new count."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from kschedd.api.conditions import condition
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds, stamp
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.workloads.ownership import selector_of
from kschedd.controllers.workloads.replicasets import ReplicaSets, ReplicaTally, terms_of
from kschedd.controllers.workloads.stateful_tally import StatefulTally
from kschedd.controllers.workloads.tallies import Groups, Tallies
from kschedd.store.store import Store
from kschedd.values import run_steps
from tests.controllers.workloads.histories import MAKERS, History, controllers
from tests.full_run import everyday
from tests.store.manifests import Clock, node, pod, workload

SETS = ("web", "shop")
STEPS = 150


class Cluster:
    def __init__(self, seed: int, history: int = 100_000) -> None:
        self.chance = random.Random(seed)
        self.clock = Clock()
        self.store = Store(now=self.clock, seed=seed, history=history)
        self.runner = ControllerRunner(self.store, [ReplicaSets()])
        for name in SETS:
            self.store.create(self.replica_set(name))
        self.runner.run_until_idle()

    def replica_set(self, name: str) -> dict[str, Any]:
        made = workload("ReplicaSet", name, replicas=self.chance.randrange(5), minReadySeconds=0)
        made["spec"]["template"]["metadata"]["labels"]["tier"] = "a"
        return made

    def any_pod(self) -> Object | None:
        pods = self.store.list("Pod")
        return self.chance.choice(pods) if pods else None

    def step(self) -> None:
        store, chance = self.store, self.chance
        found, name = self.any_pod(), chance.choice(SETS)
        match chance.randrange(10):
            case 0 | 1 | 2 if found is not None:
                at = stamp(self.clock.now - chance.choice((0, 5)))
                answer = {"type": "Ready", "status": chance.choice(("True", "False")), "lastTransitionTime": at}
                store.patch_status("Pod", "default", found.name, {"phase": "Running", "conditions": [answer]})
            case 3 if found is not None:
                store.patch_status("Pod", "default", found.name, {"phase": chance.choice(("Failed", "Succeeded"))})
            case 4 if found is not None:
                store.delete("Pod", "default", found.name, grace_period_s=chance.choice((0, 30)))
            case 5 if found is not None:
                labels = {"app": chance.choice((*SETS, "none")), "tier": chance.choice(("a", "b"))}
                store.merge_patch("Pod", "default", found.name, {"metadata": {"labels": labels}})
            case 6:
                orphan = pod(f"orphan-{store.version}")
                orphan["metadata"]["labels"]["app"] = name
                store.create(orphan)
            case 7:
                spec = chance.choice(({"replicas": chance.randrange(7)}, {"minReadySeconds": chance.choice((0, 10))}))
                store.merge_patch("ReplicaSet", "default", name, {"spec": spec})
            case 8:
                self.clock.now += chance.choice((1, 7, 40))
            case 9 if not chance.randrange(5):
                store.delete("ReplicaSet", "default", name)
                for left in [each for each in store.list("Pod") if each.owner and each.owner.name == name]:
                    store.delete("Pod", "default", left.name, grace_period_s=0)
                store.create(self.replica_set(name))

    def counted(self, owner: Object) -> dict[str, int]:
        """Count all pods of the owner by the plain rule."""
        pods = [
            each
            for each in self.store.list("Pod")
            if each.owner and each.owner.uid == owner.uid and not each.deleting
            if each.status.get("phase") not in ("Failed", "Succeeded")
        ]
        labels = owner.spec["template"]["metadata"]["labels"]
        ready = [answer for each in pods if (answer := condition(each.status, "Ready")) and answer["status"] == "True"]
        wait = owner.spec.get("minReadySeconds") or 0
        available = [answer for answer in ready if seconds(answer["lastTransitionTime"]) + wait <= self.clock.now]
        return {
            "replicas": len(pods),
            "fullyLabeledReplicas": sum(labels.items() <= each.labels.items() for each in pods),
            "readyReplicas": len(ready),
            "availableReplicas": len(available),
        }

    def check(self) -> None:
        for name in SETS:
            owner = self.store.get("ReplicaSet", "default", name)
            wanted = self.counted(owner)
            assert {field: owner.status.get(field) or 0 for field in wanted} == wanted
            assert wanted["replicas"] <= owner.spec["replicas"], "fewer where pods that failed soon are waited for"


@pytest.mark.parametrize("seed", everyday(range(12), lambda seed: seed < 4))
def test_a_status_is_that_of_all_pods_whatever_happens_to_them(seed: int) -> None:
    cluster = Cluster(seed)
    for _ in range(STEPS):
        for _ in range(cluster.chance.randrange(1, 4)):
            cluster.step()
        cluster.runner.run_until_idle()
        cluster.check()


def test_a_set_is_counted_anew_where_the_log_does_not_go_back_far_enough() -> None:
    cluster = Cluster(1)
    store = cluster.store
    tallies: Tallies[ReplicaTally] = Tallies(("ReplicaSet",))
    store.merge_patch("ReplicaSet", "default", "web", {"spec": {"replicas": 2}})
    cluster.runner.run_until_idle()
    web = store.get("ReplicaSet", "default", "web")
    made = tally_of(web)
    run_steps(tallies.catching_up(store, store.now))
    pods = [each for each in store.owned_by(web.uid) if isinstance(each, Pod)]
    run_steps(tallies.making(web, made, pods, store.now, stays=True))
    run_steps(tallies.catching_up(store, store.now))
    assert tallies.known(web, made.terms) is made
    made_at = store.version
    store.log.keep(1)
    for number in range(5):
        store.merge_patch("ReplicaSet", "default", "shop", {"metadata": {"annotations": {"n": str(number)}}})
        cluster.runner.run_until_idle()
    assert store.log.oldest > made_at
    run_steps(tallies.catching_up(store, store.now))
    assert tallies.known(web, made.terms) is None


def tally_of(replica_set: Object) -> ReplicaTally:
    return ReplicaTally(terms_of(replica_set, selector_of(replica_set)))


def test_a_tally_is_of_one_log_and_made_again_beside_another_one() -> None:
    """A turn may run on a fork, whose objects get other uids and versions than those of the cluster."""
    cluster = Cluster(1)
    store, fork = cluster.store, cluster.store.fork()
    tallies: Tallies[ReplicaTally] = Tallies(("ReplicaSet",))
    run_steps(tallies.catching_up(fork, store.now))
    for each in (store, fork):
        each.merge_patch("ReplicaSet", "default", "web", {"metadata": {"annotations": {"in": "both"}}})
    web = fork.get("ReplicaSet", "default", "web")
    made = tally_of(web)
    run_steps(tallies.catching_up(fork, store.now))
    run_steps(tallies.making(web, made, (), store.now, stays=True))
    run_steps(tallies.catching_up(fork, store.now))
    assert tallies.known(web, made.terms) is made
    run_steps(tallies.catching_up(store, store.now))
    assert tallies.known(web, made.terms) is None


def test_a_look_does_not_go_through_pods_that_have_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(1)
    cluster.store.merge_patch("ReplicaSet", "default", "web", {"spec": {"replicas": 300}})
    cluster.runner.run_until_idle()
    looked_at: list[str] = []
    plain = Store.owned_by

    def owned_by(store: Store, uid: str) -> Sequence[Object]:
        looked_at.append(uid)
        return plain(store, uid)

    names = [each.name for each in cluster.store.owned_by(cluster.store.get("ReplicaSet", "default", "web").uid)]
    monkeypatch.setattr(Store, "owned_by", owned_by)
    for name in names[:20]:
        answer = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(cluster.clock.now)}
        cluster.store.patch_status("Pod", "default", name, {"conditions": [answer]})
        cluster.runner.run_until_idle()
    assert cluster.store.get("ReplicaSet", "default", "web").status["readyReplicas"] == 20
    assert looked_at == []


KINDS = ("ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", everyday(range(8), lambda seed: seed < 2))
def test_every_write_is_the_one_that_looking_at_all_pods_leads_to(
    kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(kind, seed)
    history.go_on(100)
    with monkeypatch.context() as patched:
        patched.setattr(Tallies, "known", lambda *_: None)
        plain = History(kind, seed)
        plain.go_on(100)
    assert history.reported() == plain.reported()
    assert history.runner.faults() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_look_at_a_large_workload_is_one_at_what_has_changed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = 200 if kind == "DaemonSet" else 1
    history = History(kind, 0, nodes)
    many = {"Job": {"parallelism": 200, "completions": 200}, "DaemonSet": {}}.get(kind, {"replicas": 200})
    large = MAKERS[kind]("large", history.chance)
    large["spec"] |= many
    if kind == "StatefulSet":
        large["spec"]["podManagementPolicy"] = "Parallel"
    if kind == "DaemonSet":
        large["spec"]["template"]["spec"].pop("nodeSelector", None)
    history.store.create(large)
    for _ in range(5):
        history.settle()
    pods = [each for each in history.store.list("Pod") if each.name.startswith("large")]
    assert len(pods) == 200
    looked_at: list[str] = []
    plain, placed = Store.owned_by, Groups.place

    def owned_by(store: Store, uid: str) -> Sequence[Object]:
        found = plain(store, uid)
        looked_at.extend(each.name for each in found if each.kind == "Pod")
        return found

    def place(groups: Groups[Any, Any], name: str, item: Any, now: float) -> None:
        looked_at.append(name)
        placed(groups, name, item, now)

    monkeypatch.setattr(Store, "owned_by", owned_by)
    monkeypatch.setattr(Groups, "place", place)
    answer = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(history.clock.now)}
    for each in pods[:5]:
        history.store.patch_status("Pod", "default", each.name, {"phase": "Running", "conditions": [answer]})
        history.settle()
    owner = history.store.get(kind, "default", "large")
    assert {owner.status.get(name) for name in ("readyReplicas", "numberReady", "ready")} >= {5}
    assert len(looked_at) == 5


@pytest.mark.object_faults
def test_a_pod_that_cannot_be_counted_is_the_fault_of_its_workload_until_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History("StatefulSet", 3)
    store = history.store
    store.create(workload("StatefulSet", "large", replicas=2, podManagementPolicy="Parallel"))
    history.settle()
    plain = StatefulTally.state_of

    def state(tally: StatefulTally, item: Pod, now: float) -> Any:
        if item.name == "large-1" and item.phase == "Running":
            raise ValueError("a strange pod")
        return plain(tally, item, now)

    monkeypatch.setattr(StatefulTally, "state_of", state)
    answer = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(history.clock.now)}
    for name in ("large-1", "large-0"):
        store.patch_status("Pod", "default", name, {"phase": "Running", "conditions": [answer]})
    history.runner.run_until_idle()
    assert [str(fault.ref) for fault in history.runner.faults()] == ["StatefulSet/default/large"]
    monkeypatch.undo()
    history.clock.now += 60
    store.merge_patch("StatefulSet", "default", "large", {"metadata": {"annotations": {"look": "again"}}})
    history.runner.run_until_idle()
    assert history.runner.faults() == []
    assert store.get("StatefulSet", "default", "large").status["readyReplicas"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_goes_on_as_its_cluster_does_and_neither_counts_what_happens_in_the_other(kind: str) -> None:
    history, twin = History(kind, 5), History(kind, 5)
    for each in (history, twin):
        each.go_on(40)
    states = history.runner.states()
    fork = run_steps(history.store.forking(min(state.version for state in states)))
    branch = ControllerRunner(fork, states=states)
    for left in fork.list("Pod"):
        fork.delete("Pod", "default", left.name, grace_period_s=0)
    branch.run_until_idle()
    assert branch.faults() == []
    for each in (history, twin):
        each.go_on(40)
    assert history.reported() == twin.reported()


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet"])
def test_a_pod_that_two_workloads_claim_is_counted_by_the_one_that_gets_it(kind: str) -> None:
    store = Store(now=Clock(), seed=2)
    store.create(node("n1"))
    for name in ("a", "a-1"):  # pods of both may be named a-1-1
        made = workload(kind, name, replicas=0)
        made["spec"] |= {"selector": {"matchLabels": {"app": "both"}}, "serviceName": "a"}
        made["spec"]["template"]["metadata"]["labels"] = {"app": "both"}
        made["spec"]["template"]["spec"]["nodeSelector"] = {"there": "is-none"}
        if kind == "DaemonSet":
            del made["spec"]["replicas"]
        store.create(made)
    runner = ControllerRunner(store, controllers())
    runner.run_until_idle()
    orphan = pod("a-1-1", nodeName="n1")
    orphan["metadata"] |= {"labels": {"app": "both"}, "finalizers": ["example.com/held"]}
    store.create(orphan)
    runner.run_until_idle()
    left = store.get("Pod", "default", "a-1-1").owner
    assert left is not None
    for name in ("a", "a-1"):
        status = store.get(kind, "default", name).status
        counted = status.get("replicas") or status.get("numberMisscheduled") or 0
        assert counted <= int(name == left.name)
