"""Tests of annotations of Nodes and pods that later became fields, and of removed fields of Nodes."""

from typing import Any

import pytest

from kschedd.registry.validation import default_and_validate
from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.api.objects import Raw, named
from tests.store.manifests import Clock, node, pod

AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
TAINTS = "scheduler.alpha.kubernetes.io/taints"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
NAME = "name part must consist of alphanumeric characters"
OF_JSON = "json: cannot unmarshal"


def noted(raw: Raw, key: str, text: str) -> Raw:
    raw["metadata"]["annotations"] = {key: text}
    return raw


def answer(raw: Raw) -> list[str]:
    return [str(fault).partition(f": {NAME}")[0] for fault in default_and_validate(raw).faults]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param("null", [], id="none"),
        pytest.param('[{"key":"a","effect":"NoSchedule"}]', [], id="one"),
        pytest.param(
            '[{"key":"a b"}]',
            [
                f'metadata.annotations.{TAINTS}[0].key: Invalid value: "a b"',
                f"metadata.annotations.{TAINTS}[0].effect: Required value",
            ],
            id="one-that-is-wrong",
        ),
        pytest.param(
            "[",
            [f'metadata.annotations: Invalid value: "{TAINTS}": unexpected end of JSON input'],
            id="no-json",
        ),
        pytest.param(
            "{}",
            [
                f'metadata.annotations: Invalid value: "{TAINTS}": {OF_JSON} object into Go value of type []core.Taint',
            ],
            id="no-list",
        ),
        pytest.param(
            "[1]",
            [f'metadata.annotations: Invalid value: "{TAINTS}": {OF_JSON} number into Go value of type core.Taint'],
            id="a-number",
        ),
        pytest.param(
            '[null,{"effect":true}]',
            [
                f'metadata.annotations: Invalid value: "{TAINTS}": {OF_JSON} bool into Go struct field Taint.Effect of '
                "type core.TaintEffect"
            ],
            id="an-effect-that-is-no-text",
        ),
    ],
)
def test_taints_by_annotation(text: str, faults: list[str]) -> None:
    assert answer(noted(named("Node"), TAINTS, text)) == faults


def test_tolerations_by_annotation() -> None:
    assert answer(noted(pod(), TOLERATIONS, '[{"key":"a","operator":"Exists","tolerationSeconds":"1"}]')) == [
        f'metadata.annotations: Invalid value: "{TOLERATIONS}": {OF_JSON} string into Go struct field '
        "Toleration.TolerationSeconds of type int64"
    ]
    assert answer(noted(pod(), TOLERATIONS, '[{"key":"a b","operator":"Exists"}]')) == [
        f'metadata.annotations.{TOLERATIONS}[0].key: Invalid value: "a b"'
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            '{"preferAvoidPods":1}',
            "number into Go struct field AvoidPods.preferAvoidPods of type []v1.PreferAvoidPodsEntry",
        ),
        (
            '{"preferAvoidPods":["a"]}',
            "string into Go struct field AvoidPods.preferAvoidPods of type v1.PreferAvoidPodsEntry",
        ),
        (
            '{"preferAvoidPods":[{"podSignature":[]}]}',
            "array into Go struct field AvoidPods.preferAvoidPods.podSignature of type v1.PodSignature",
        ),
    ],
)
def test_avoided_pods_of_another_type(text: str, wrong: str) -> None:
    path = "metadata.annotations.AvoidPods"
    assert answer(noted(named("Node"), AVOID, text)) == [f'{path}: Invalid value: "{AVOID}": {OF_JSON} {wrong}']


def test_annotations_are_looked_at_when_only_the_status_is_written() -> None:
    store = Store(now=Clock())
    made = store.create(node())
    meta = {**made.metadata, "annotations": {TAINTS: '[{"key":"a","effect":"Never"}]'}}
    with pytest.raises(Invalid) as refusal:
        store.update_status({**made.raw, "metadata": meta})
    assert [fault.path for fault in refusal.value.faults] == [f"metadata.annotations.{TAINTS}[0].effect"]


def test_a_kubelets_configuration_by_its_node_is_left_out() -> None:
    store = Store(now=Clock())
    source: Raw = {"configMap": {"name": "a", "namespace": "b", "kubeletConfigKey": "c"}}
    raw = node(configSource=source)
    raw["status"]["config"] = {"error": "x"}
    made: Any = store.create(raw)
    assert made.spec == {}
    assert "config" not in made.status
    made = store.update({**made.raw, "spec": {"configSource": source}})
    assert made.spec == {}
    assert "config" not in store.update_status({**made.raw, "status": raw["status"]}).status
