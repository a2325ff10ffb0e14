"""Tests of the scheduler cache: pods on missing nodes, and assumed pods."""

from random import Random
from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.cache.counts import pod_matcher, spread_matcher
from kschedd.cache.scheduler_cache import SchedulerCache


def node(name: str) -> Node:
    return Node.from_raw({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}}})


def pod(name: str, on: str = "", phase: str = "Pending", **meta: Any) -> Pod:
    raw = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, **meta},
        "spec": {"nodeName": on, "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": phase},
    }
    return Pod.from_raw(raw)


def on(cluster: SchedulerCache, name: str) -> list[str]:
    """Return the names of the pods that are counted on a node."""
    return [each.name for each in cluster.table.pods[cluster.table.row_of[name]]]


@pytest.fixture
def cluster() -> SchedulerCache:
    made = SchedulerCache()
    made.put(node("a"))
    made.put(node("b"))
    return made


def test_a_pod_with_a_node_counts_there_and_one_without_does_not(cluster: SchedulerCache) -> None:
    cluster.load([pod("p", "a"), pod("q")])
    assert (on(cluster, "a"), on(cluster, "b"), cluster.pod_count) == (["p"], [], 1)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_takes_nothing_any_more(cluster: SchedulerCache, phase: str) -> None:
    cluster.put(pod("p", "a"))
    cluster.put(pod("p", "a", phase))
    assert (on(cluster, "a"), cluster.pod("p")) == ([], None)


def test_a_pod_waits_for_its_node(cluster: SchedulerCache) -> None:
    cluster.put(pod("p", "late"))
    assert cluster.pod("p") is not None
    cluster.put(node("late"))
    assert on(cluster, "late") == ["p"]


def test_a_pod_whose_node_went_counts_again_when_the_node_is_back(cluster: SchedulerCache) -> None:
    cluster.put(pod("p", "a"))
    cluster.remove(node("a"))
    assert (cluster.pod_count, "a" in cluster.table.row_of) == (1, False)
    cluster.put(node("a"))
    assert on(cluster, "a") == ["p"]


def test_a_pod_removed_while_its_node_is_away_does_not_come_back_with_it(cluster: SchedulerCache) -> None:
    cluster.put(pod("p", "a"))
    cluster.remove_node("a")
    cluster.remove(pod("p", "a"))
    cluster.put(node("a"))
    assert (on(cluster, "a"), cluster.pod_count) == ([], 0)


def test_removing_a_node_that_is_not_there_changes_nothing(cluster: SchedulerCache) -> None:
    cluster.remove_node("c")
    assert set(cluster.table.row_of) == {"a", "b"}


def test_an_assumed_pod_counts_until_it_is_forgotten(cluster: SchedulerCache) -> None:
    placed = cluster.assume(pod("p"), "a")
    assert (placed.node_name, on(cluster, "a"), cluster.assumed_pods()) == ("a", ["p"], [placed])
    assert cluster.forget(placed)
    assert (on(cluster, "a"), cluster.assumed_pods(), cluster.pod_count) == ([], [], 0)


def test_a_confirmed_pod_is_no_longer_assumed_and_cannot_be_forgotten(cluster: SchedulerCache) -> None:
    placed = cluster.assume(pod("p"), "a")
    cluster.put(placed)
    assert not cluster.is_assumed(placed)
    assert not cluster.forget(placed)
    assert on(cluster, "a") == ["p"]


def test_a_pod_confirmed_on_another_node_than_assumed_moves_there(cluster: SchedulerCache) -> None:
    cluster.assume(pod("p"), "a")
    cluster.put(pod("p", "b"))
    assert (on(cluster, "a"), on(cluster, "b")) == ([], ["p"])


def test_news_of_a_pod_without_a_node_leaves_its_assumption_alone(cluster: SchedulerCache) -> None:
    cluster.assume(pod("p"), "a")
    cluster.put(pod("p", labels={"new": "label"}))
    assert on(cluster, "a") == ["p"]


def test_an_assumed_pod_that_was_deleted_counts_until_its_binding_failed(cluster: SchedulerCache) -> None:
    placed = cluster.assume(pod("p"), "a")
    cluster.mark_deleted(placed)
    assert (cluster.is_marked_deleted("p"), on(cluster, "a")) == (True, ["p"])
    assert cluster.forget(placed)
    assert (cluster.is_marked_deleted("p"), on(cluster, "a")) == (False, [])


def test_forgetting_what_was_never_assumed_is_refused(cluster: SchedulerCache) -> None:
    assert not cluster.forget(pod("p"))


def test_a_changed_pod_is_counted_once(cluster: SchedulerCache) -> None:
    cluster.put(pod("p", "a"))
    cluster.put(pod("p", "a", labels={"app": "web"}))
    assert on(cluster, "a") == ["p"]
    found = cluster.pod("p")
    assert found is not None
    assert found.labels == {"app": "web"}


def test_other_objects_are_found_by_kind_and_key_and_each_change_counts(cluster: SchedulerCache) -> None:
    claim = parse(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}}
    )
    assert cluster.of_kind("PersistentVolumeClaim") == {}
    cluster.put(claim)
    before = cluster.versions.latest("PersistentVolumeClaim")
    assert cluster.get("PersistentVolumeClaim", "default/c") is claim
    cluster.remove(claim)
    assert cluster.get("PersistentVolumeClaim", "default/c") is None
    assert cluster.versions.changed(before, "PersistentVolumeClaim")


WEB = spread_matcher("default", parse_label_selector({"matchLabels": {"app": "web"}}))
ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "zone",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "namespaceSelector": {"matchLabels": {"team": "one"}},
            }
        ]
    }
}


class Changes:
    """A cache under random changes, and the objects that exist after them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = SchedulerCache()
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, Object] = {}
        self.pods: dict[str, Pod] = {}
        self.assumed: dict[str, Pod] = {}
        self.made = 0

    def node(self) -> None:
        random, name = self.random, self.random.choice("abcd")
        self.nodes[name] = Node.from_raw(
            {
                "kind": "Node",
                "metadata": {"name": name, "labels": random.choice(({}, {"zone": "1"}, {"zone": "2"}))},
                "spec": {
                    "taints": random.choice(
                        ([], [{"key": "k", "value": random.choice("xyz"), "effect": "NoSchedule"}])
                    ),
                    "unschedulable": random.random() < 0.3,
                },
                "status": {
                    "allocatable": {"cpu": random.choice("48"), random.choice(("gpu", "fpga")): "1"},
                    "images": [{"names": [f"{random.choice('ij')}:1"], "sizeBytes": 10**9}],
                },
            }
        )
        self.cluster.put(self.nodes[name])

    def node_gone(self) -> None:
        if self.nodes:
            self.cluster.remove(self.nodes.pop(self.random.choice(sorted(self.nodes))))

    def namespace(self) -> None:
        labels = self.random.choice(({}, {"team": "one"}, {"team": "two"}))
        self.namespaces["default"] = Object.from_raw(
            {"kind": "Namespace", "metadata": {"name": "default", "labels": labels}}
        )
        self.cluster.put(self.namespaces["default"])

    def namespace_gone(self) -> None:
        if self.namespaces:
            self.cluster.remove(self.namespaces.pop("default"))

    def make(self, uid: str = "", **spec: Any) -> Pod:
        random = self.random
        self.made += not uid
        name = uid or f"p{self.made}"
        container: dict[str, Any] = {"name": "c", "image": "i"}
        container["resources"] = {"requests": random.choice(({"pods": "1"}, {"cpu": "1"}, {"cpu": "2", "gpu": "1"}))}
        if random.random() < 0.4 and name[1:].isdigit():
            # Two pods of a node have no common port: kube-scheduler would forget it with the first of them.
            container["ports"] = [{"containerPort": 1, "hostPort": int(name[1:]), "protocol": "TCP"}]
        raw = {
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "labels": {"app": random.choice(("web", "db"))},
            },
            "spec": {
                "containers": [container],
                "affinity": random.choice(({}, ANTI)),
                "volumes": random.choice(([], [{"name": "v", "persistentVolumeClaim": {"claimName": f"c{name}"}}])),
                **spec,
            },
        }
        if random.random() < 0.2:
            raw["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z"
        return Pod.from_raw(raw)

    def pod(self) -> None:
        uid = self.random.choice([*self.pods, "", ""])
        made = self.make(uid, nodeName=self.random.choice("abcde"))
        self.pods[made.uid] = made
        self.cluster.put(made)

    def pod_gone(self) -> None:
        if self.pods:
            gone = self.pods.pop(self.random.choice(sorted(self.pods)))
            self.cluster.put(Pod.from_raw({**gone.raw, "status": {"phase": "Failed"}}))

    def assume(self) -> None:
        made = self.make()
        self.assumed[made.uid] = self.cluster.assume(made, self.random.choice("abcde"))

    def assume_each(self) -> None:
        names = sorted(self.nodes)
        first = self.make()
        renamed = ({**first.raw["metadata"], "uid": f"{first.uid}-{name}"} for name in names[1:])
        each = [first, *(Pod.from_raw({**first.raw, "metadata": metadata}) for metadata in renamed)]
        if names:
            for placed in self.cluster.assume_each(each, names) or ():
                self.assumed[placed.uid] = placed

    def confirm(self) -> None:
        if self.assumed:
            placed = self.assumed.pop(self.random.choice(sorted(self.assumed)))
            self.pods[placed.uid] = self.random.choice((placed, self.make(placed.uid, nodeName="a")))
            self.cluster.put(self.pods[placed.uid])

    def forget(self) -> None:
        if self.assumed:
            placed = self.assumed.pop(self.random.choice(sorted(self.assumed)))
            if self.random.random() < 0.5:
                self.cluster.mark_deleted(placed)
            assert self.cluster.forget(placed)

    def take_out(self) -> None:
        some = [*self.pods.values(), *self.assumed.values()]
        if some:
            taken = self.random.choice(some)
            put_back = self.cluster.take_out(taken)
            assert put_back is not None
            assert self.cluster.take_out(taken) is None
            assert self.cluster.pod(taken.uid) is None
            put_back()

    def fork(self) -> None:
        forked = self.cluster.fork()
        forked.recount()
        original, self.cluster, version = self.cluster, forked, forked.versions.now
        for each in (*self.nodes.values(), *self.pods.values()):
            original.remove(each)
        for each in self.assumed.values():
            original.forget(each)
        assert forked.versions.now == version, "changes of the original are not changes of the fork"

    def remove_all(self) -> None:
        for each in (*self.nodes.values(), *self.pods.values()):
            self.cluster.remove(each)
        for each in self.assumed.values():
            assert self.cluster.forget(each)

    def again(self) -> SchedulerCache:
        """Return a new cache of the objects."""
        fresh = SchedulerCache()
        fresh.load([*self.namespaces.values(), *self.pods.values(), *self.nodes.values()])
        for each in self.assumed.values():
            fresh.assume(each, each.node_name)
        return fresh


def facts(cluster: SchedulerCache) -> dict[str, Any]:
    """Return the content of a cache, independently of the numbers of its rows and columns."""
    table, counts = cluster.table, cluster.counts
    names = dict(zip(table.row_of.values(), table.row_of, strict=True))
    web = Pod.from_raw(
        {"kind": "Pod", "metadata": {"name": "w", "namespace": "default", "labels": {"app": "web"}}, "spec": {}}
    )
    terms = counts.existing_terms_matching("required-anti", web.signature)
    columns = [table.resource(resource) for resource in ("cpu", "gpu", "fpga")]
    found: dict[str, Any] = {
        name: (
            sorted(each.uid for each in table.pods[row]),
            {
                resource: int(table.requested[number][row])
                for resource, number in table.resources.items()
                if table.requested[number][row]
            },
            table.allocatable[columns, row].tolist(),
            table.nonzero[:, row].tolist(),
            int(table.pod_count[row]),
            sorted(table.ports.get(row, ())),
            table.taint_sets[table.taints[row]],
            bool(table.unschedulable[row]),
            table.label("zone").values[table.label("zone").ids[row]] if table.label("zone").ids[row] >= 0 else None,
            int(counts.matching(WEB).rows()[row]),
            sum(int(term.count.rows()[row]) for term in terms),
        )
        for row, name in names.items()
    }
    found["claims"] = {claim: {names[row]: users for row, users in of.items()} for claim, of in table.claims.items()}
    found["images"] = {image: sorted(names[row] for row in state.rows) for image, state in table.images.items()}
    found["namespaces"] = dict(counts.namespaces)
    found["assumed"] = sorted(each.uid for each in cluster.assumed_pods())
    found["pods"] = cluster.pod_count
    found["labels"] = sorted((each.uid, each.labels["app"]) for row in names for each in table.pods[row])
    return found


@pytest.mark.parametrize("seed", range(6))
def test_after_any_changes_the_cache_equals_a_new_one_of_the_same_objects(seed: int) -> None:
    changes = Changes(seed)
    steps = [
        *[changes.node, changes.pod, changes.assume] * 3,
        *[changes.pod_gone, changes.confirm, changes.forget, changes.assume_each, changes.take_out, changes.namespace],
        *[changes.node_gone, changes.namespace_gone],
    ]
    for number in range(200):
        changes.random.choice(steps)()
        if number % 20 == 0:
            changes.fork()
        if number % 5 == 0:
            found = facts(changes.cluster)
            assert found == facts(changes.again())
            assert found["namespaces"] == {name: each.labels for name, each in changes.namespaces.items()}
            claimed = {
                f"default/c{each.uid}" for row in table_rows(changes.cluster) for each in row if each.spec["volumes"]
            }
            assert found["claims"].keys() == claimed
    changes.remove_all()
    assert changes.cluster.pod_count == 0
    assert not changes.cluster._pods_of_unknown_nodes
    table = changes.cluster.table
    assert "pods" not in table.resources, "the number of pods is not a requested amount"
    counts = changes.cluster.counts
    assert not any((counts.existing_terms, counts._carried_at, counts._groups, counts._groups_in))
    assert not any(counts._groups_at.values())


def table_rows(cluster: SchedulerCache) -> list[list[Pod]]:
    return [cluster.table.pods[row] for row in cluster.table]


def test_copied_rows_are_numbered_in_their_order(cluster: SchedulerCache) -> None:
    cluster.load([pod("p", "a"), pod("q", "b")])
    rows = [cluster.table.row_of[name] for name in "ba"]
    copied = cluster.table.copy_rows(rows)
    assert (copied.names, copied.order.tolist(), copied.rows_of_whole.tolist()) == (["b", "a"], [0, 1], rows)
    assert [each.name for row in copied.order for each in copied.pods[row]] == ["q", "p"]
    copied.add_pod(1, pod("r", "a"))
    assert (copied.joined, copied.pod_count.tolist()) == ({1}, [1, 2])
    assert on(cluster, "a") == ["p"]


def test_pods_with_more_than_amounts_are_not_assumed_together(cluster: SchedulerCache) -> None:
    def asking(name: str, **spec: Any) -> Pod:
        return Pod.from_raw({**pod(name).raw, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}})

    port = [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 80, "protocol": "TCP"}]}]
    unknown = [{"name": "c", "image": "i", "resources": {"requests": {"example.com/new": "1"}}}]
    huge = [{"name": "c", "image": "i", "resources": {"requests": {"memory": "9223372036854775807"}}}]
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    for spec in (
        {"containers": port},
        {"containers": unknown},
        {"containers": huge},
        {"volumes": volumes},
        {"affinity": ANTI},
    ):
        each = [asking(name, **spec) for name in "pq"]
        assert cluster.assume_each(each, ["a", "b"]) is None
        assert (cluster.pod_count, on(cluster, "a"), cluster.assumed_pods()) == (0, [], [])
    placed = cluster.assume_each([asking("p"), asking("q")], ["a", "b"])
    assert placed is not None
    assert [each.node_name for each in placed] == ["a", "b"]
    assert (on(cluster, "a"), on(cluster, "b")) == (["p"], ["q"])
    assert not cluster.is_assumed(pod("unknown"))


def test_an_invalid_pod_is_not_assumed_and_changes_nothing(cluster: SchedulerCache) -> None:
    long = parse_label_selector({"matchExpressions": [{"key": "app", "operator": "In", "values": list("abcdefghi")}]})
    for each in (cluster, cluster.fork()):
        each.counts.matching(spread_matcher("default", long))
        with pytest.raises(TypeError):
            each.assume_each([pod("p", labels={"app": ["a"]})], ["a"])
        assert (each.pod_count, on(each, "a"), each.assumed_pods()) == (0, [], [])


def test_a_terminating_pod_counts_for_affinity_but_not_for_spreading(cluster: SchedulerCache) -> None:
    affinity = pod_matcher(WEB.terms)
    for each in (cluster, cluster.fork()):
        row = each.table.row_of["a"]
        before = [each.counts.matching(kind).rows()[row] for kind in (affinity, WEB)]
        each.put(pod("p", "a", labels={"app": "web"}, deletionTimestamp="2025-01-01T00:00:00Z"))
        after = [each.counts.matching(kind).rows()[row] for kind in (affinity, WEB)]
        assert (before, after) == ([0, 0], [1, 0])
