"""Tests of upstream's rules for pod changes by update, status update and ephemeralcontainers."""

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
    """Return a node affinity whose terms each require one of these zones."""
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


def test_a_class_of_priority_and_the_overhead_are_stated_in_each_update(store: Store) -> None:
    handler = {"handler": "h", "overhead": {"podFixed": {"cpu": "1m"}}}
    store.create({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "r"}, **handler})
    made = store.create(pod(priorityClassName="system-node-critical", runtimeClassName="r"))
    for field in ("priorityClassName", "overhead"):
        without = {name: value for name, value in made.raw["spec"].items() if name != field}
        assert paths(lambda: store.update({**made.raw, "spec": without})) == ["spec"]  # noqa: B023
    filled_in = ("priority", "preemptionPolicy")
    without = {name: value for name, value in made.raw["spec"].items() if name not in filled_in}
    assert store.update({**made.raw, "spec": without}) == made


def test_a_token_needs_its_service_account_in_each_update(store: Store) -> None:
    sources = [{"serviceAccountToken": {"path": "token"}}]
    made = store.create(pod(serviceAccountName="s", volumes=[{"name": "v", "projected": {"sources": sources}}]))
    here = "spec.volumes[0].projected.sources[0].serviceAccountToken"
    assert paths(lambda: update(store, made, serviceAccountName="", serviceAccount="")) == [here, "spec"]


def test_the_claims_of_ephemeral_volumes_are_looked_at_in_each_update(store: Store) -> None:
    made = store.create(pod(volumes=[{"name": "v", "emptyDir": {}}]))
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
    volumes = [
        {"name": "v", "ephemeral": {"volumeClaimTemplate": claim}},
        {"name": "w", "persistentVolumeClaim": {"claimName": f"{made.name}-v"}},
    ]
    where = "spec.volumes[1].persistentVolumeClaim.claimName"
    assert paths(lambda: update(store, made, volumes=volumes)) == [where, "spec"]


def test_of_gates_of_one_name_the_last_is_refused(store: Store) -> None:
    made = store.create(pod(schedulingGates=GATES))
    gates = [{"name": "b"}, {"name": "b"}]
    assert paths(lambda: update(store, made, schedulingGates=gates)) == [
        "spec.schedulingGates[1]",
        "spec.schedulingGates[1].name",
    ]


@pytest.mark.parametrize("field", ["podIPs", "hostIPs"])
def test_an_address_twice(store: Store, field: str) -> None:
    made = store.create(pod())
    addresses = {field: [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}], "hostIP": "10.0.0.1"}
    whole = {**made.raw, "status": {**made.raw["status"], **addresses}}
    family = f"status.{field}: Invalid value: "
    assert refused(lambda: store.update(whole, subresource="status")) == [
        f'{family}[{{"IP":"10.0.0.1"}},{{"IP":"10.0.0.1"}}]: may specify no more than one IP for each IP family',
        f'status.{field}[1]: Duplicate value: {{"IP":"10.0.0.1"}}',
    ]


def test_metadata_is_not_looked_at_where_it_is_kept(store: Store) -> None:
    made = store.create(pod(nodeName="n1"))
    gone = {**made.raw, "metadata": {**made.raw["metadata"], "deletionTimestamp": "2001-01-01T00:00:00Z"}}
    assert paths(lambda: store.update(gone)) == ["metadata.deletionTimestamp"] * 2
    assert store.update(gone, subresource="resize") == made
    assert store.update(gone, subresource="ephemeralcontainers") == made
