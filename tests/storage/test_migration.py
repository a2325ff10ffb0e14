"""Tests of the translation of in-tree volumes to volumes of their CSI drivers."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.storage.migration import MIGRATED_PLUGINS, in_tree, migrated_plugins, translated_affinity
from kschedd.storage.volumes import StorageError

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def handle(source: dict[str, Any], labels: dict[str, str] | None = None) -> str:
    plugin = in_tree(source)
    assert plugin is not None
    return plugin.handle(source[plugin.source], labels)


@pytest.mark.parametrize(
    ("source", "labels", "expected"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, None, "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1"}}, None, "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, None, "vol-1"),
        ({"gcePersistentDisk": {"pdName": "d"}}, None, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "us-b"}, "projects/UNSPECIFIED/zones/us-b/disks/d"),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {BETA_ZONE: "us-east1-b__us-east1-c"},
            "projects/UNSPECIFIED/regions/us-east1/disks/d",
        ),
        ({"cinder": {"volumeID": "c"}}, None, "c"),
        ({"azureDisk": {"diskURI": "/subscriptions/x"}}, None, "/subscriptions/x"),
        ({"portworxVolume": {"volumeID": "p"}}, None, "p"),
    ],
)
def test_volume_handle(source: dict[str, Any], labels: dict[str, str] | None, expected: str) -> None:
    assert handle(source, labels) == expected


@pytest.mark.parametrize(
    ("source", "labels", "why"),
    [
        ({"awsElasticBlockStore": {"volumeID": "aws://a/x"}}, None, "Invalid format for AWS volume \\(aws://a/x\\)"),
        ({"gcePersistentDisk": {}}, {ZONE: "a__b"}, "zone in unexpected format"),
        ({"gcePersistentDisk": {}}, {ZONE: "a-b-c__a-d-c"}, "multiple or no regions .* map\\[a-b:{} a-d:{}\\]"),
    ],
)
def test_what_cannot_be_translated_says_why(source: dict[str, Any], labels: dict[str, str] | None, why: str) -> None:
    with pytest.raises(StorageError, match=why):
        handle(source, labels)


def ebs(labels: dict[str, str], *expressions: tuple[str, str]) -> Object:
    spec: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    if expressions:
        demands = [{"key": key, "operator": "In", "values": [value]} for key, value in expressions]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": demands}]}}
    return Object.from_raw({"kind": "PersistentVolume", "metadata": {"name": "v", "labels": labels}, "spec": spec})


def keys(volume: Object) -> list[tuple[str, tuple[str, ...]]]:
    plugin = in_tree(volume.spec)
    assert plugin is not None
    raw = translated_affinity(volume, plugin)
    terms = [] if raw is None else raw["required"]["nodeSelectorTerms"]
    return [(e["key"], tuple(e["values"])) for term in terms for e in term["matchExpressions"]]


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(ebs({}), [], id="nothing-said"),
        pytest.param(ebs({}, (ZONE, "a")), [(EBS_ZONE, ("a",))], id="zone"),
        pytest.param(
            ebs({}, (BETA_ZONE, "a"), (BETA_REGION, "r")), [(EBS_ZONE, ("a",)), (REGION, ("r",))], id="beta-labels"
        ),
        pytest.param(ebs({ZONE: "b__a"}), [(EBS_ZONE, ("a", "b"))], id="from-the-label"),
        pytest.param(
            ebs({BETA_ZONE: "a"}, ("disk", "ssd")), [("disk", ("ssd",)), (EBS_ZONE, ("a",))], id="label-beside-a-term"
        ),
        pytest.param(ebs({ZONE: "b"}, (ZONE, "a")), [(EBS_ZONE, ("a",))], id="affinity-before-label"),
    ],
)
def test_affinity_by_the_drivers_own_key(volume: Object, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert keys(volume) == expected


def test_plugins_a_node_gave_up() -> None:
    meta = {"name": "n", "annotations": {MIGRATED_PLUGINS: "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"}}
    node = Object.from_raw({"kind": "CSINode", "metadata": meta, "spec": {}})
    assert migrated_plugins(node) == {"kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"}
    assert migrated_plugins(None) == frozenset()
