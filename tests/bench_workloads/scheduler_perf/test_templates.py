"""Tests of templates of objects: Go's text/template, then YAML; field names in any case where upstream has Go types."""

import pytest

from kschedd.bench.scheduler_perf.cases import PerfConfigError
from kschedd.bench.scheduler_perf.objects import nodes, pods
from kschedd.bench.scheduler_perf.operations import (
    CreateNodes,
    CreatePods,
    LabelNodePrepareStrategy,
    NodeAllocatableStrategy,
    UniqueNodeLabelStrategy,
)
from kschedd.bench.scheduler_perf.templates import TemplateFolder

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: pod-{{.Index}}-of-{{.Count}}
spec:
  containers:
  - name: pause
    image: pause
    resources:
      requests:
        cpu: {{MultiplyInt (AddInt .Index 1) .cpu}}m
"""


def written(folder, **files: str) -> TemplateFolder:
    config = folder / "sub" / "performance-config.yaml"
    config.parent.mkdir()
    for name, text in files.items():
        (folder / "sub" / f"{name}.yaml").write_text(text)
    return TemplateFolder(config)


def test_a_template_knows_index_count_and_the_parameters(tmp_path) -> None:
    templates = written(tmp_path, pod=POD)
    step = CreatePods(count=2, namespace="n", pod_template_path="pod.yaml", template_params={"cpu": 50})
    first, second = pods(step, templates, "")
    assert first["metadata"] == {"name": "pod-0-of-2", "namespace": "n"}
    assert second["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"


def test_pods_of_one_template_share_their_spec(tmp_path) -> None:
    templates = written(tmp_path, pod="apiVersion: v1\nkind: Pod\nspec:\n  Containers: []\n  PRIORITY: 3\n")
    first, second = pods(CreatePods(count=2, namespace="n"), templates, "pod.yaml")
    assert first["spec"] is second["spec"]
    assert first["spec"] == {"containers": [], "priority": 3}


def test_what_is_of_no_go_type_keeps_its_spelling(tmp_path) -> None:
    templates = written(tmp_path, pod="apiVersion: v1\nkind: Pod\nspec:\n  Containers: []\n")
    assert templates.get("pod.yaml").rendered({})["spec"] == {"Containers": []}


def test_paths_are_relative_to_the_file_or_as_they_were_to_the_folder_above(tmp_path) -> None:
    templates = written(tmp_path, near="apiVersion: v1\nkind: Pod\n")
    (tmp_path / "far.yaml").write_text("apiVersion: v1\nkind: Node\n")
    assert templates.get("near.yaml").rendered({})["kind"] == "Pod"
    assert templates.get("far.yaml").rendered({})["kind"] == "Node"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("kind: Pod\n", "bad.yaml:1: apiVersion and kind must be set", id="no-version"),
        pytest.param("a: b\nkind: {{Frobnicate 1}}\n", "bad.yaml:2: function", id="unknown-function"),
        pytest.param("a: {{DivideInt 1 0}}\n", "bad.yaml:1: error calling DivideInt: division by zero", id="division"),
        pytest.param("a: b\na: c\n", "bad.yaml:2: ", id="key-twice"),
        pytest.param("a: b\n---\nb: c\n", "bad.yaml:1: one object is expected", id="two-objects"),
    ],
)
def test_a_template_that_cannot_be_used_is_told_with_its_line(tmp_path, text, answer) -> None:
    templates = written(tmp_path, bad=text)
    with pytest.raises(PerfConfigError) as refusal:
        templates.get("bad.yaml").rendered({})
    assert answer in str(refusal.value)


def test_a_template_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(PerfConfigError) as refusal:
        written(tmp_path).get("none.yaml")
    assert "none.yaml: cannot be read" in str(refusal.value)


def test_nodes_are_prepared(tmp_path) -> None:
    labelled = LabelNodePrepareStrategy(label_key="zone", label_values=("a", "b"))
    made = list(nodes(CreateNodes(count=3, label_node_prepare_strategy=labelled), written(tmp_path), 4, 10))
    assert [node["metadata"]["labels"]["zone"] for node in made] == ["a", "b", "a"]
    assert made[0]["metadata"]["name"] == made[0]["metadata"]["labels"]["kubernetes.io/hostname"] == "node-4-10"
    assert len({node["metadata"]["name"] for node in made}) == 3


def test_allocatable_resources_come_with_a_csinode(tmp_path) -> None:
    strategy = NodeAllocatableStrategy(
        node_allocatable={"gpu": "2"}, csi_node_allocatable={"ebs": {"count": 39}}, migrated_plugins=("aws", "gce")
    )
    node, csi_node = nodes(CreateNodes(count=1, node_allocatable_strategy=strategy), written(tmp_path), 0, 0)
    assert node["status"]["allocatable"] == {"cpu": "4", "memory": "32Gi", "pods": "110", "gpu": "2"}
    assert csi_node["spec"]["drivers"] == [{"name": "ebs", "nodeID": "node-0-0", "allocatable": {"count": 39}}]
    assert list(csi_node["metadata"]["annotations"].values()) == ["aws,gce"]


def test_a_unique_label_is_another_for_each_node(tmp_path) -> None:
    step = CreateNodes(count=3, unique_node_label_strategy=UniqueNodeLabelStrategy(label_key="id"))
    assert len({node["metadata"]["labels"]["id"] for node in nodes(step, written(tmp_path), 0, 0)}) == 3


def test_claim_and_volume_of_a_pod_are_bound_to_each_other(tmp_path) -> None:
    templates = written(
        tmp_path,
        pv="apiVersion: v1\nkind: PersistentVolume\nspec:\n  csi: {driver: ebs}\n",
        pvc="apiVersion: v1\nkind: PersistentVolumeClaim\nspec: {}\n",
    )
    step = CreatePods(
        count=2,
        namespace="n",
        persistent_volume_template_path="pv.yaml",
        persistent_volume_claim_template_path="pvc.yaml",
    )
    claim, volume, pod, _, other_volume, _ = pods(step, templates, "")
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert volume["spec"]["csi"]["volumeHandle"] != other_volume["spec"]["csi"]["volumeHandle"]
    assert pod["spec"]["volumes"] == [
        {"name": "vol", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
    ]


def test_signatures_come_in_batches(tmp_path) -> None:
    made = pods(CreatePods(count=4, namespace="n", signature_batch_size=2), written(tmp_path), "")
    labels = [pod["metadata"]["labels"]["signature"] for pod in made]
    assert labels == ["signature-label-0", "signature-label-0", "signature-label-1", "signature-label-1"]
