"""Tests of the judge: bindings, roles, aggregation, the default policy, and its index after changes."""

import random
from typing import Any

import pytest

from kschedd.access.requests import AccessRequest
from kschedd.access.users import User
from kschedd.store.authorization.judge import RbacJudge
from kschedd.store.store import Store
from tests.store.authorization.policies import binding, role

READ = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


def allowed(store: Store, user: User, verb: str = "get", resource: str = "pods", namespace: str = "default") -> bool:
    return store.rbac.judge(AccessRequest(user, verb, "", resource, namespace=namespace)).allowed


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        pytest.param({"kind": "User", "name": "ann"}, User("ann", ()), id="a-user"),
        pytest.param({"kind": "Group", "name": "dev"}, User("x", ("dev",)), id="a-group"),
        pytest.param(
            {"kind": "ServiceAccount", "name": "sa", "namespace": "web"},
            User("system:serviceaccount:web:sa", ()),
            id="an-account",
        ),
        pytest.param(
            {"kind": "ServiceAccount", "name": "sa"},
            User("system:serviceaccount:default:sa", ()),
            id="an-account-of-the-namespace",
        ),
    ],
)
def test_a_binding_gives_its_role_to_its_subjects_in_its_namespace(subject: dict[str, str], user: User) -> None:
    store = Store()
    store.create(role("reader", [READ], "default"))
    store.create(binding("b", "Role/reader", [subject], "default"))
    assert allowed(store, user)
    assert not allowed(store, user, namespace="kube-system")
    assert not allowed(store, User("eve", ()))


def test_the_reason_names_binding_role_and_subject() -> None:
    store = Store()
    store.create(role("reader", [READ]))
    subjects = [{"kind": "Group", "name": "dev"}, {"kind": "User", "name": "ann"}]
    store.create(binding("b", "ClusterRole/reader", subjects, "default"))
    decision = store.rbac.judge(AccessRequest(User("ann", ("dev",)), "get", "", "pods", namespace="default"))
    assert decision.reason == 'RBAC: allowed by RoleBinding "b/default" of ClusterRole "reader" to Group "dev"'
    store.create(binding("all", "ClusterRole/reader", subjects[1:]))
    decision = store.rbac.judge(AccessRequest(User("ann", ("dev",)), "get", "", "pods", namespace="default"))
    assert decision.reason == 'RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to User "ann"'


def test_a_role_that_does_not_exist_is_the_reason_of_a_refusal() -> None:
    store = Store()
    store.create(binding("b", "ClusterRole/gone", [{"kind": "User", "name": "ann"}]))
    decision = store.rbac.judge(AccessRequest(User("ann", ()), "get", "", "pods"))
    assert decision.reason.endswith('RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found')


def test_without_cluster_admin_the_default_policy_counts() -> None:
    store = Store()
    store.create(binding("b", "ClusterRole/edit", [{"kind": "User", "name": "ann"}], "default"))
    ann = User("ann", ("system:authenticated",))
    assert allowed(store, ann, "delete")
    assert allowed(store, ann, "list", "services")
    assert not allowed(store, ann, "delete", "nodes", "")
    assert store.rbac.judge(AccessRequest(ann, "get", path="/healthz")).allowed
    store.create(role("cluster-admin", []))
    assert not allowed(store, ann, "delete")
    assert not store.rbac.judge(AccessRequest(ann, "get", path="/healthz")).allowed


def test_masters_may_do_everything() -> None:
    assert allowed(Store(), User("x", ("system:masters",)), "any", "thing")


def test_an_aggregated_role_has_the_rules_of_the_roles_that_it_selects() -> None:
    store = Store()
    store.create(
        {
            **role("sum", [{**READ, "resources": ["ignored"]}]),
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "sum"}}]},
        }
    )
    store.create(binding("b", "ClusterRole/sum", [{"kind": "User", "name": "ann"}]))
    ann = User("ann", ())
    assert not allowed(store, ann)
    part = role("part", [READ])
    part["metadata"]["labels"] = {"part": "sum"}
    store.create(part)
    assert allowed(store, ann)
    store.delete("ClusterRole", "", "part")
    assert not allowed(store, ann)


def test_a_custom_role_extends_a_default_one() -> None:
    store = Store()
    extra = role("widgets", [{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}])
    extra["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    store.create(extra)
    store.create(binding("b", "ClusterRole/admin", [{"kind": "User", "name": "ann"}], "default"))
    request = AccessRequest(User("ann", ()), "get", "example.com", "widgets", namespace="default")
    assert store.rbac.judge(request).allowed


def test_roles_that_select_each_other_end() -> None:
    store = Store()
    for name, other in (("a", "b"), ("b", "a")):
        raw = role(name, [])
        raw["metadata"]["labels"] = {"is": name}
        raw["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"is": other}}]}
        store.create(raw)
    assert store.rbac.role_rules("ClusterRole", "", "a") == []


def test_the_index_follows_every_change() -> None:
    """Compare the judge of a store, after random writes, with a new judge of the same objects."""
    draw, store = random.Random(5), Store()
    store.create(role("reader", [READ]))
    users = [User(f"u{number}", ("dev",) if number % 2 else ()) for number in range(4)]
    for step in range(300):
        name, namespace = f"b{draw.randrange(4)}", draw.choice(("", "default", "kube-system"))
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        subjects = [{"kind": "User", "name": f"u{draw.randrange(4)}"} for _ in range(draw.randrange(3))]
        subjects += [{"kind": "Group", "name": "dev"}] * (draw.random() < 0.2)
        there = store.find(kind, namespace, name)
        before = store.version
        store.log.show(before)
        if there is not None and draw.random() < 0.5:
            store.delete(kind, namespace, name)
        else:
            store.apply(binding(name, "ClusterRole/reader", subjects, namespace))
        if draw.random() < 0.1:
            store.roll_back(before)
        fresh = RbacJudge(store)
        for user in users:
            for where in ("", "default", "kube-system"):
                request = AccessRequest(user, "get", "", "pods", namespace=where)
                assert store.rbac.judge(request) == fresh.judge(request), step


def test_a_judgement_reads_no_other_bindings() -> None:
    """The cost of a judgement must not grow with the bindings of other users."""
    store = Store()
    store.create(role("reader", [READ]))
    for number in range(50):
        store.create(binding(f"b{number}", "ClusterRole/reader", [{"kind": "User", "name": f"u{number}"}]))
    assert allowed(store, User("u7", ()))
    reads: list[Any] = []
    present = store.present
    store.present = lambda kind, namespace=None: reads.append(kind) or present(kind, namespace)  # type: ignore
    assert allowed(store, User("u8", ()))
    assert not allowed(store, User("nobody", ()))
    assert reads == []
