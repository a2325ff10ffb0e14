"""Tests that ClusterRoles with an aggregationRule receive the rules of the roles that they select."""

from typing import Any

from kschedd.controllers.cluster_roles import ClusterRoleAggregation
from kschedd.controllers.parts import field_manager
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store

Raw = dict[str, Any]
PODS: Raw = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
NODES: Raw = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        self.runner = ControllerRunner(self.store, (ClusterRoleAggregation(),))

    def create(self, name: str, *rules: Raw, label: str = "", selects: str = "") -> None:
        labels = {label: "true"} if label else {}
        role: Raw = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
        role |= {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}
        if selects:
            role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {selects: "true"}}]}
        self.store.create(role)
        self.runner.run_until_idle()

    def rules(self, name: str) -> list[Raw]:
        return list(self.store.get("ClusterRole", "", name).raw.get("rules") or ())


def test_the_rules_of_selected_roles_are_written_in_the_order_of_their_names() -> None:
    cluster = Cluster()
    cluster.create("sum", selects="to-sum")
    assert cluster.rules("sum") == []
    cluster.create("b", PODS, label="to-sum")
    cluster.create("a", NODES, PODS, label="to-sum")
    cluster.create("other", {**PODS, "verbs": ["delete"]})
    assert cluster.rules("sum") == [NODES, PODS]


def test_a_deleted_role_and_own_rules_are_removed() -> None:
    cluster = Cluster()
    cluster.create("a", NODES, label="to-sum")
    cluster.create("sum", PODS, selects="to-sum")
    assert cluster.rules("sum") == [NODES]
    cluster.store.delete("ClusterRole", "", "a")
    cluster.runner.run_until_idle()
    assert cluster.rules("sum") == []


def test_aggregations_of_aggregations_are_completed() -> None:
    cluster = Cluster()
    cluster.create("top", selects="to-top")
    cluster.create("middle", label="to-top", selects="to-middle")
    cluster.create("bottom", PODS, label="to-middle")
    assert cluster.rules("top") == [PODS]


def test_nothing_is_written_twice() -> None:
    cluster = Cluster()
    cluster.create("a", NODES, label="to-sum")
    cluster.create("sum", selects="to-sum")
    version = cluster.store.version
    cluster.create("other", PODS)
    assert cluster.store.version == version + 1


def test_the_field_manager_is_that_of_upstream() -> None:
    assert field_manager(ClusterRoleAggregation()) == "clusterrole-aggregation-controller"
