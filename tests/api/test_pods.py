"""Tests that equal pods share parts that contain all fields that the scheduler reads.

Specs (without nodeName) and signatures (spec, namespace and labels) are interned; both exist as long as a pod uses
them.
"""

import gc
import weakref
from typing import Any

import pytest

from kschedd.api.pods import Pod, PodSpec, image_name, intern_spec
from kschedd.api.read_only import read_only_spec

Raw = dict[str, Any]
GI = 1 << 30


def container(name: str = "c", image: str = "nginx", **fields: Any) -> Raw:
    return {"name": name, "image": image, **fields}


def pod(
    name: str = "p", namespace: str = "d", labels: Raw | None = None, status: Raw | None = None, **spec: Any
) -> Pod:
    meta = {"name": name, "namespace": namespace, "uid": name, "labels": labels or {}}
    raw = {"kind": "Pod", "metadata": meta, "spec": {"containers": [container()], **spec}, "status": status or {}}
    return Pod.from_raw(raw)


def required(*terms: Raw) -> Raw:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


def pinned(*names: str, operator: str = "In", key: str = "metadata.name") -> Raw:
    """Return a node selector term by field, as the DaemonSet controller uses for the node's name."""
    return {"matchFields": [{"key": key, "operator": operator, "values": list(names)}]}


def daemon(node: str, **others: Any) -> Pod:
    return pod(f"on-{node}", affinity={"nodeAffinity": required(pinned(node))}, **others)


# -- interning ----------------------------------------------------------------------------------------------------


def test_pods_that_differ_in_name_node_and_status_share_a_signature() -> None:
    one = pod("one", labels={"a": "b"})
    two = pod("two", labels={"a": "b"}, nodeName="n1", status={"phase": "Running"})
    assert one.signature is two.signature
    assert one.pod_spec is two.pod_spec
    assert "nodeName" not in two.pod_spec.raw
    assert (one.node_name, two.node_name) == ("", "n1")


@pytest.mark.parametrize(
    ("other", "same_spec"),
    [
        pytest.param({"namespace": "e"}, True, id="namespace"),
        pytest.param({"labels": {"a": "c"}}, True, id="labels"),
        pytest.param({"priority": 1}, False, id="spec"),
        pytest.param({"affinity": {"nodeAffinity": required(pinned("n1"))}}, False, id="node-affinity"),
    ],
)
def test_pods_that_differ_in_what_plugins_read_have_signatures_of_their_own(other: Raw, same_spec: bool) -> None:
    one, two = pod("one"), pod("two", **other)
    assert one.signature.id != two.signature.id
    assert (one.pod_spec is two.pod_spec) == same_spec


def test_a_pod_keeps_its_signature_on_a_node() -> None:
    one = pod()
    bound = one.on_node("n1")
    assert bound.signature is one.signature
    assert (bound.node_name, bound.raw["spec"]["nodeName"]) == ("n1", "n1")
    assert (one.node_name, "nodeName" in one.raw["spec"]) == ("", False)


def test_spec_and_signature_are_freed_with_their_last_pod() -> None:
    one, two = (pod(name, schedulerName="freed") for name in ("one", "two"))
    before = one.signature.id
    spec, signature = weakref.ref(one.pod_spec), weakref.ref(one.signature)
    del one
    gc.collect()
    assert signature() is two.signature, "the other pod still has it"
    del two
    gc.collect()
    assert (spec(), signature()) == (None, None)
    assert pod(schedulerName="freed").signature.id > before, "no id is used again"


def test_interning_leaves_the_given_manifest_as_it_is() -> None:
    raw = {"containers": [], "nodeName": "n1", "affinity": {"nodeAffinity": required(pinned("n1"))}}
    intern_spec(raw)
    assert raw["nodeName"] == "n1"
    assert raw["affinity"] == {"nodeAffinity": required(pinned("n1"))}


# -- specs that differ in node affinity only -------------------------------------------------------------------------


def test_specs_that_differ_in_node_affinity_share_all_else() -> None:
    resources = {"requests": {"cpu": "1"}}
    one, two = (daemon(name, containers=[container(resources=resources)]) for name in ("n1", "n2"))
    assert one.pod_spec is not two.pod_spec
    shared = one.pod_spec.spec_without_node_affinity
    assert isinstance(shared, PodSpec)
    assert two.pod_spec.spec_without_node_affinity is shared
    assert shared.spec_without_node_affinity is None
    assert shared.raw["affinity"] == {"nodeAffinity": {}}
    assert one.pod_spec.requests is two.pod_spec.requests is shared.requests
    assert one.pod_spec.requests == {"cpu": 1000}
    assert one.pod_spec.required_node_affinity != two.pod_spec.required_node_affinity


def test_what_an_out_of_tree_plugin_is_given_of_one_spec_is_not_what_it_is_given_of_another() -> None:
    seen = [read_only_spec(daemon(node).pod_spec) for node in ("a", "b")]
    assert [spec.required_node for spec in seen] == ["a", "b"]


def test_pod_affinity_stays_in_the_spec_without_node_affinity() -> None:
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": "k"}]}
    one = pod(affinity={"nodeAffinity": required(pinned("n1")), "podAntiAffinity": apart})
    shared = one.pod_spec.spec_without_node_affinity
    assert shared is not None
    assert shared.raw["affinity"] == {"nodeAffinity": {}, "podAntiAffinity": apart}
    assert one.pod_spec.has_pod_affinity
    assert not daemon("n1").pod_spec.has_pod_affinity
    assert [term.topology_key for term in one.signature.required_anti_affinity] == ["k"]


@pytest.mark.parametrize(
    "affinity", [None, {}, {"podAffinity": {}}], ids=["no-affinity", "empty-affinity", "pod-affinity"]
)
def test_a_spec_without_node_affinity_is_nobodys_variant(affinity: Raw | None) -> None:
    one = pod() if affinity is None else pod(affinity=affinity)
    assert one.pod_spec.spec_without_node_affinity is None
    assert one.signature.signature_ignoring_node == one.signature.id


def test_the_signature_ignoring_the_node_is_one_for_all_pods_of_a_daemon_set() -> None:
    one, two = daemon("n1", labels={"a": "b"}), daemon("n2", labels={"a": "b"})
    assert one.signature.id != two.signature.id
    assert one.signature.signature_ignoring_node == two.signature.signature_ignoring_node
    assert one.signature.signature_ignoring_node < 0, "never the id of a signature"
    assert one.signature.group_key == two.signature.group_key == ("d", frozenset({("a", "b")}))
    other = daemon("n1", labels={"a": "c"})
    assert other.signature.signature_ignoring_node != one.signature.signature_ignoring_node


def test_the_node_is_not_ignored_where_the_affinity_says_more() -> None:
    more = {**pinned("n1"), "matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    one = pod(affinity={"nodeAffinity": required(more)})
    assert one.signature.signature_ignoring_node == one.signature.id


@pytest.mark.parametrize(
    ("terms", "node"),
    [
        pytest.param([pinned("n1")], "n1", id="as-the-daemon-set-controller-writes-it"),
        pytest.param([], None, id="no-term"),
        pytest.param([pinned("n1"), pinned("n2")], None, id="two-terms"),
        pytest.param([pinned("n1", "n2")], None, id="two-values"),
        pytest.param([pinned()], None, id="no-value"),
        pytest.param([pinned("n1", operator="NotIn")], None, id="another-operator"),
        pytest.param([pinned("n1", key="spec.unschedulable")], None, id="another-field"),
        pytest.param([{"matchFields": [*pinned("n1")["matchFields"] * 2]}], None, id="two-fields"),
        pytest.param(
            [{"matchExpressions": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}], None, id="a-label"
        ),
    ],
)
def test_the_required_node(terms: list[Raw], node: str | None) -> None:
    assert pod(affinity={"nodeAffinity": required(*terms)}).pod_spec.required_node == node


def test_a_preferred_node_is_not_required() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": pinned("n1")}]}
    one = pod(affinity={"nodeAffinity": preferred})
    assert one.pod_spec.required_node is None
    assert one.pod_spec.required_node_affinity is None
    assert [weight for weight, _ in one.pod_spec.preferred_node_affinity] == [1]


# -- what plugins read ------------------------------------------------------------------------------------------------


def asking(cpu: str, memory: str) -> Raw:
    return container(resources={"requests": {"cpu": cpu, "memory": memory}})


def reported(cpu: str, memory: str, **fields: Any) -> Raw:
    return {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}, **fields}]}


@pytest.mark.parametrize(
    ("status", "cpu", "memory"),
    [
        pytest.param({}, 1000, GI, id="nothing-reported"),
        pytest.param({"containerStatuses": [{"name": "c", "ready": True}]}, 1000, GI, id="no-resources-reported"),
        pytest.param(reported("3", "512Mi"), 3000, GI, id="the-larger-of-each-counts"),
        pytest.param(
            reported("500m", "1Gi", allocatedResources={"cpu": "2", "memory": "1Gi"}), 2000, GI, id="allocated"
        ),
    ],
)
def test_requests_while_a_pod_is_resized_in_place(status: Raw, cpu: int, memory: int) -> None:
    one = pod(containers=[asking("1", "1Gi")], status=status)
    assert one.requests == {"cpu": cpu, "memory": memory}
    assert one.nonzero_requests == (cpu, memory)
    assert one.pod_spec.requests == {"cpu": 1000, "memory": GI}, "the spec asks what it asked"


def resized(cpu: str, allocated: str, infeasible: bool = False) -> Raw:
    reason = "Infeasible" if infeasible else "Deferred"
    return {
        "resources": {"requests": {"cpu": cpu}},
        "allocatedResources": {"cpu": allocated},
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
    }


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        pytest.param({}, 2000, id="nothing-reported"),
        pytest.param(resized("3", "1"), 3000, id="in-force"),
        pytest.param(resized("1", "4"), 4000, id="allocated"),
        pytest.param(resized("1", "500m"), 2000, id="asked"),
        pytest.param(resized("1", "500m", infeasible=True), 1000, id="asked-in-vain"),
    ],
)
def test_requests_while_pod_level_resources_are_resized_in_place(status: Raw, cpu: int) -> None:
    one = pod(containers=[asking("500m", "1Gi")], resources={"requests": {"cpu": "2"}}, status=status)
    assert one.requests == {"cpu": cpu, "memory": GI}
    assert one.nonzero_requests == (cpu, GI)
    assert one.pod_spec.requests == {"cpu": 2000, "memory": GI}, "the spec asks what it asked"


def test_pods_without_requests_count_with_the_defaults_in_scores_only() -> None:
    one = pod()
    assert one.requests == {}
    assert one.nonzero_requests == (100, 200 << 20)


def port(host_port: int | None = None, **fields: Any) -> Raw:
    return {"containerPort": 80, **({} if host_port is None else {"hostPort": host_port}), **fields}


def test_host_ports_of_containers_and_sidecars() -> None:
    one = pod(
        containers=[
            container("a", ports=[port(), port(0), port(80), port(81, protocol="UDP", hostIP="10.0.0.1")]),
            container("b", ports=[port(82)]),
        ],
        initContainers=[
            container("init", ports=[port(90)]),
            container("sidecar", ports=[port(91)], restartPolicy="Always"),
        ],
    )
    assert one.pod_spec.host_ports == (
        ("0.0.0.0", "TCP", 80),
        ("10.0.0.1", "UDP", 81),
        ("0.0.0.0", "TCP", 82),
        ("0.0.0.0", "TCP", 91),
    )


def test_images_of_init_containers_and_containers() -> None:
    one = pod(
        containers=[container("a", "nginx"), container("b", "nginx:1")], initContainers=[container("i", "r:5000/x")]
    )
    assert one.pod_spec.images == ("r:5000/x:latest", "nginx:latest", "nginx:1")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.2", "nginx:1.2"),
        ("registry:5000/nginx", "registry:5000/nginx:latest"),
        ("registry:5000/nginx:1", "registry:5000/nginx:1"),
        ("nginx@sha256:0", "nginx@sha256:0"),
    ],
)
def test_the_image_name_has_a_tag(given: str, name: str) -> None:
    assert image_name(given) == name


@pytest.mark.parametrize(
    ("volume", "restricts"),
    [
        pytest.param({"projected": {"sources": []}}, False, id="a-token-is-available-on-each-node"),
        pytest.param({"configMap": {"name": "c"}}, False, id="config-map"),
        pytest.param({"emptyDir": {}}, False, id="empty-dir"),
        pytest.param({"hostPath": {"path": "/"}}, False, id="host-path"),
        pytest.param({"persistentVolumeClaim": {"claimName": "c"}}, True, id="claim"),
        pytest.param({"ephemeral": {}}, True, id="ephemeral"),
        pytest.param({"csi": {"driver": "d"}}, True, id="inline-csi"),
        pytest.param({"gcePersistentDisk": {"pdName": "d"}}, True, id="disk"),
    ],
)
def test_volumes_that_restrict_the_choice_of_nodes(volume: dict[str, Any], restricts: bool) -> None:
    spec = pod(volumes=[{"name": "v", **volume}]).pod_spec
    assert spec.restricting_volumes == (spec.volumes if restricts else ())


def test_defaults_of_a_bare_spec() -> None:
    spec = pod().pod_spec
    assert (spec.scheduler_name, spec.priority, spec.preemption_policy) == (
        "default-scheduler",
        0,
        "PreemptLowerPriority",
    )
    assert (spec.scheduling_gates, spec.tolerations, spec.volumes, spec.resource_claims) == ((), (), (), ())
