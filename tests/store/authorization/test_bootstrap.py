"""Tests of the default roles and bindings, counted and sampled from kube-apiserver."""

import pytest

from kschedd.config.versions.kube_versions import nearest_version
from kschedd.store.authorization.bootstrap import bootstrap_policy
from kschedd.store.store import Store


@pytest.mark.parametrize(("minor", "count"), [(34, 131), (35, 131), (36, 133), (37, 141)])
def test_each_release_has_its_roles(minor: int, count: int) -> None:
    rules = nearest_version(minor).default_rules
    policy = bootstrap_policy(rules.features)
    assert len(policy) == count
    store = Store(rules=rules)
    store.seed_bootstrap_policy()
    kinds = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    assert sum(map(store.count, kinds)) == count
    before = store.version
    store.seed_bootstrap_policy()
    assert store.version == before


def test_rules_of_a_role_differ_between_releases() -> None:
    def events(minor: int) -> list[list[str]]:
        policy = bootstrap_policy(nearest_version(minor).default_rules.features)
        role = next(raw for raw in policy if raw["metadata"]["name"] == "system:aggregate-to-view")
        return [rule["apiGroups"] for rule in role["rules"] if "events" in rule["resources"]]

    assert (events(34), events(37)) == ([[""]], [["", "events.k8s.io"]])


def test_a_role_has_labels_and_an_aggregation() -> None:
    view = next(raw for raw in bootstrap_policy(frozenset()) if raw["metadata"]["name"] == "view")
    assert view["metadata"]["labels"] == {
        "kubernetes.io/bootstrapping": "rbac-defaults",
        "rbac.authorization.k8s.io/aggregate-to-edit": "true",
    }
    wanted = {"matchLabels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
    assert view["aggregationRule"] == {"clusterRoleSelectors": [wanted]}
