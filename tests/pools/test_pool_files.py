"""Tests that all forms of node pools are read into one value, and that faults name file, line and field."""

import pytest

from kschedd.config.parsing.faults import ConfigErrors
from kschedd.pools.reading import PoolFile, Pools, pool_name, read_pools

TYPES = """[{"name": "m.large", "resources": {"cpu": "2", "memory": "8Gi"}, "offerings": [
 {"Price": 0.1, "Requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
  {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]}]}]"""
KARPENTER = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: batch}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: x}}}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: x}
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: cheap}
spec: {requirements: [], priceAdjustment: "-50%", capacity: {example.com/gpu: "2"}}
"""
TEMPLATE = """\
apiVersion: v1
kind: Node
metadata:
  name: template
  labels: {kwok-nodegroup: blue}
  annotations:
    cluster-autoscaler.kwok.nodegroup/min-count: "1"
    cluster-autoscaler.kwok.nodegroup/max-count: "3"
    kschedd.io/price: "0.5"
status: {allocatable: {cpu: "4", memory: 8Gi}}
"""
GROUPS = """\
nodeGroups:
- {name: green, max: 4, price: 1, template: {status: {capacity: {cpu: "8", memory: 16Gi}}}}
"""
PLAIN = """\
pools:
- {name: small, shape: "cpu=4,memory=16Gi", price: 0.2, limit: 10, labels: {topology.kubernetes.io/zone: a}}
autoscaler: {name: cluster-autoscaler, expander: [most-pods], bootTime: 30s}
"""


def read(*texts: str) -> Pools:
    return read_pools([PoolFile(f"file-{number}", text) for number, text in enumerate(texts, 1)])


def test_pools_of_karpenter_have_the_types_after_overlays() -> None:
    pools = read(KARPENTER, TYPES)
    assert (pools.autoscaler, pools.names) == ("karpenter", ["batch"])
    (one,) = pools.types_by_pool["batch"]
    assert [each.price for each in one.offerings] == [0.05]
    assert one.capacity["example.com/gpu"] == 2


def test_templates_of_cluster_autoscaler_state_sizes_and_prices() -> None:
    config_map = "kind: ConfigMap\ndata:\n  templates: |\n" + "".join(f"    {line}\n" for line in TEMPLATE.splitlines())
    for text in (TEMPLATE, config_map):
        pools = read(text, GROUPS)
        assert pools.autoscaler == "cluster-autoscaler"
        blue, green = pools.groups
        assert (blue.name, blue.minimum, blue.maximum, blue.price) == ("blue", 1, 3, 0.5)
        assert (green.name, green.minimum, green.maximum, green.price) == ("green", 0, 4, 1)
        assert green.template.allocatable == {"cpu": 8000, "memory": 16 << 30, "pods": 110}
        assert pool_name(blue.template) == "blue"


def test_the_plain_form_serves_both_autoscalers() -> None:
    pools = read(PLAIN)
    assert (pools.autoscaler, pools.settings.expander, pools.settings.boot_s) == (
        "cluster-autoscaler",
        ["most-pods"],
        30,
    )
    (pool,) = pools.karpenter_pools()
    assert (pool.name, pool.limits) == ("small", {"nodes": 10})
    (one,) = pools.types_by_pool["small"]
    assert one.allocatable == {"cpu": 4000, "memory": 16 << 30, "pods": 110}
    assert one.price_in("a", "") == 0.2
    assert read("pools: [{name: p, shape: 'cpu=1,memory=1Gi'}]").autoscaler == "karpenter"


def test_priorities_of_the_expander_are_read_from_their_config_map() -> None:
    priorities = "kind: ConfigMap\ndata:\n  priorities: |\n    10: [small.*]\n    20: [large]\n"
    assert read(PLAIN, priorities).priorities == {10: ["small.*"], 20: ["large"]}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        pytest.param(["pools:\n- {shape: 'cpu=1,memory=1Gi'}"], "file-1:2: $.pools[0].name: required", id="no-name"),
        pytest.param(["pools:\n- {name: a}"], "file-1:2: $.pools[0].shape: required", id="no-shape"),
        pytest.param(["pools:\n- {name: a, shape: big}"], "a shape is a list of RESOURCE=AMOUNT", id="wrong-shape"),
        pytest.param(["pools:\n- {name: a, shape: 'cpu=1'}"], "memory must be above 0", id="no-memory"),
        pytest.param(["pools:\n- {name: a, shap: x}"], 'did you mean "shape"?', id="unknown-field"),
        pytest.param([PLAIN, PLAIN], 'file-2:2: $.pools[0]: {"name": "small"', id="two-pools-of-one-name"),
        pytest.param([KARPENTER], "NodePools need instance types: add --pools instance_types.json", id="no-types"),
        pytest.param([TYPES], "the files contain no node pool", id="only-types"),
        pytest.param(["kind: Pod"], "NodePool, NodeOverlay, Node, List, ConfigMap", id="another-kind"),
        pytest.param(["autoscaler: {name: other}"], "karpenter, cluster-autoscaler", id="unknown-autoscaler"),
        pytest.param(["autoscaler: {expander: [best]}"], "least-waste, most-pods", id="unknown-expander"),
        pytest.param(["autoscaler: {launchFailures: 2}"], "0 to 1", id="a-share-above-1"),
        pytest.param([TEMPLATE.replace('"1"', "one")], 'min-count]: "one": must be a whole number', id="a-wrong-size"),
        pytest.param([TEMPLATE.replace('"1"', '"7"')], "the minimum 7 is above the maximum 3", id="min-above-max"),
        pytest.param([TEMPLATE.replace("allocatable", "phase")], "status.allocatable is required", id="no-resources"),
        pytest.param(["a: [\n"], "file-1:", id="no-yaml"),
        pytest.param([""], "the file is empty", id="an-empty-file"),
    ],
)
def test_faults_name_the_file_the_line_and_the_field(texts: list[str], words: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        read(*texts)
    assert words in str(caught.value)
