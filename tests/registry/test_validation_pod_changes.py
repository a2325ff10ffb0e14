"""What may become of a pod by a plain update, a status update, or through ephemeralcontainers: upstream's rules."""

from typing import Any

import pytest

from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.api.objects import Raw
from tests.store.manifests import Clock, pod

HARD = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = f"spec.affinity.nodeAffinity.{HARD}.nodeSelectorTerms"
MIRROR = "kubernetes.io/config.mirror"
GATES = [{"name": "a"}]


@pytest.fixture
def store() -> Store:
    return Store(now=Clock())


def refused(act: Any) -> list[str]:
    with pytest.raises(Invalid) as refusal:
        act()
    return [str(fault).partition("\n")[0] for fault in refusal.value.faults]


def paths(act: Any) -> list[str]:
    return [line.partition(": ")[0] for line in refused(act)]


def update(store: Store, made: Any, subresource: Any = "", **spec: Any) -> Any:
    return store.update({**made.raw, "spec": {**made.raw["spec"], **spec}}, subresource=subresource)


def asking(*zones: str) -> Raw:
    """Node affinity to one of these zones in each term."""
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in zones]
    return {HARD: {"nodeSelectorTerms": terms}}


def test_static_pods_take_no_ephemeral_containers_whatever_else_is_wrong_with_them(store: Store) -> None:
    raw = pod(nodeName="n1")
    raw["metadata"]["annotations"] = {MIRROR: "x"}
    made = store.create(raw)
    added = [{"name": "e", "image": "i", "ports": [{"containerPort": 1}]}]
    assert refused(lambda: update(store, made, "ephemeralcontainers", ephemeralContainers=added)) == [
        "[]: Forbidden: static pods do not support ephemeral containers"
    ]


@pytest.mark.parametrize("lifecycle", [{}, {"preStop": {"exec": {"command": ["a"]}}}])
def test_ephemeral_containers_have_no_lifecycle_not_even_an_empty_one(store: Store, lifecycle: Raw) -> None:
    made = store.create(pod())
    added = [{"name": "e", "image": "i", "lifecycle": lifecycle, "resources": {}}]
    assert refused(lambda: update(store, made, "ephemeralcontainers", ephemeralContainers=added)) == [
        "spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container"
    ]


@pytest.mark.parametrize(
    ("before", "after", "faults"),
    [
        pytest.param(None, {"nodeAffinity": asking("a")}, [], id="where-there-was-none"),
        pytest.param({"nodeAffinity": asking("a")}, None, [TERMS], id="none-any-more"),
        pytest.param({"nodeAffinity": asking("a")}, {"nodeAffinity": asking("b")}, [f"{TERMS}[0]"], id="another-zone"),
        pytest.param({"nodeAffinity": asking("a")}, {"nodeAffinity": asking("a", "b")}, [TERMS], id="one-term-more"),
        pytest.param(None, {}, ["spec"], id="empty-and-so-another"),
        pytest.param(None, {"nodeAffinity": asking("a"), "podAffinity": {}}, ["spec"], id="with-pods-besides"),
        pytest.param(
            {"nodeAffinity": asking("a")},
            {"nodeAffinity": asking("b"), "podAntiAffinity": {}},
            [f"{TERMS}[0]", "spec"],
            id="another-zone-and-pods-besides",
        ),
        pytest.param(
            {"podAffinity": {}}, {"podAffinity": {}, "nodeAffinity": asking("a")}, [], id="beside-affinity-to-pods"
        ),
    ],
)
def test_node_affinity_of_a_gated_pod(store: Store, before: Raw | None, after: Raw | None, faults: list[str]) -> None:
    made = store.create(pod(schedulingGates=GATES, affinity=before))
    if faults:
        assert paths(lambda: update(store, made, affinity=after)) == faults
    else:
        assert update(store, made, affinity=after).spec["affinity"] == after


@pytest.mark.parametrize("field", ["podIPs", "hostIPs"])
def test_two_addresses_of_which_one_is_none_are_not_one_of_each_family(store: Store, field: str) -> None:
    made = store.create(pod())
    status = {field: [{"ip": "1.1.1.1"}, {"ip": "x"}], field.removesuffix("s"): "1.1.1.1"}
    path = f"status.{field}"
    assert refused(lambda: store.update_status({**made.raw, "status": status})) == [
        f'{path}[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        f"{path}: Internal error: failed to check for dual stack with error:invalid IP[1]: x",
        f'{path}: Invalid value: [{{"IP":"1.1.1.1"}},{{"IP":"x"}}]: may specify no more than one IP for each IP family',
    ]


def test_pods_for_windows_have_no_resources_of_their_own(store: Store) -> None:
    raw = pod(os={"name": "windows"}, resources={"requests": {"cpu": "-1"}})
    assert refused(lambda: store.create(raw)) == ["spec.resources: Forbidden: may not be set for a windows pod"]


def test_a_config_map_that_is_too_large_is_at_fault_as_a_whole(store: Store) -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    most = "A" * ((1 << 20) - 1)
    assert store.create({**whole, "data": {"text": most}, "binaryData": {"one-byte": "QQ=="}}, dry_run=True).raw["data"]
    assert refused(lambda: store.create({**whole, "data": {"text": most}, "binaryData": {"two-bytes": "QUE="}})) == [
        "[]: Too long: may not be more than 1048576 bytes"
    ]
