"""Equal pods are accepted or rejected as if each had been validated separately."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.dumps.loading import LoadOptions, Prepared, prepare
from kschedd.dumps.sources import DumpedObject, Sources, read_sources
from tests.dumps.objects import AT, node, pod, uid

Raw = dict[str, Any]
OPTIONS = LoadOptions(complete=False)


def _as_kept(raws: list[Raw]) -> list[Raw]:
    """Return the objects with all defaults, as they are after they were loaded once."""
    prepared = _one_by_one(raws)
    assert prepared.errors == []
    return [json.loads(json.dumps({**obj.raw, "metadata": {**obj.metadata}})) for obj in prepared.objects]


def _one_by_one(raws: list[Raw]) -> Prepared:
    return prepare(Sources([DumpedObject(raw, "") for raw in raws]), lambda key: True, 0.0, OPTIONS)


def _read(tmp_path: Path, raws: list[Raw]) -> Sources:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": raws}, ensure_ascii=False))
    return read_sources([str(file)])


def _without_version(raw: Any) -> Raw:
    return {**raw, "metadata": {name: item for name, item in raw["metadata"].items() if name != "resourceVersion"}}


def _running(number: int, **more: Any) -> Raw:
    """Return a running pod of one workload."""
    made = pod(f"web-{number}", 100 + number, f"n{number}", owner=("ReplicaSet", "web", 9), **more)
    at = f"2026-11-20T10:00:{number:02}Z"
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": at, "lastProbeTime": None}
    state = {
        "name": "c",
        "image": "registry.example/c:1",
        "imageID": f"registry.example/c@sha256:{number:064x}",
        "containerID": f"containerd://{number:064x}",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": at}},
        "lastState": {},
    }
    address = f"10.0.{number}.7"
    made["status"].update(conditions=[condition], containerStatuses=[state], startTime=AT, hostIP="192.168.1.9")
    made["status"].update(podIP=address, podIPs=[{"ip": address}])
    return made


OF_NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [OF_NODE]}}}
MIRROR = {"kubernetes.io/config.mirror": "x"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda raw: None, id="nothing"),
        pytest.param(lambda raw: raw["metadata"].update(name="No_Name"), id="a-name-that-is-none"),
        pytest.param(lambda raw: raw["metadata"].update(name="web-1"), id="the-name-of-another"),
        pytest.param(lambda raw: raw["metadata"].update(uid=uid(101)), id="the-uid-of-another"),
        pytest.param(lambda raw: raw["metadata"].update(name="web-7", labels={"app": "x"}), id="other-labels"),
        pytest.param(lambda raw: raw["metadata"].update(labels={"a b": "c"}), id="labels-that-are-none"),
        pytest.param(lambda raw: raw["metadata"].update(annotations={"note": "7"}), id="an-annotation"),
        pytest.param(lambda raw: raw["metadata"].update(annotations=MIRROR), id="an-annotation-about-the-spec"),
        pytest.param(lambda raw: raw["metadata"].update(annotations={"note": "x" * (1 << 17)}), id="a-long-annotation"),
        pytest.param(lambda raw: raw["metadata"].update(managedFields=[{"manager": "me"}]), id="managed-fields"),
        pytest.param(lambda raw: raw["metadata"].update(unknown=1), id="an-unknown-field-of-metadata"),
        pytest.param(lambda raw: raw["spec"].update(unknown=1), id="an-unknown-field-of-the-spec"),
        pytest.param(lambda raw: raw["spec"].update(nodeName="A_b"), id="a-node-name-that-is-none"),
        pytest.param(lambda raw: raw["spec"].pop("nodeName"), id="no-node"),
        pytest.param(lambda raw: raw["spec"].pop("terminationGracePeriodSeconds"), id="a-default-left-out"),
        pytest.param(lambda raw: raw["spec"].update(hostname="\u0000" + "0"), id="a-string-that-looks-like-a-mark"),
        pytest.param(lambda raw: raw["spec"].update(hostname="n3"), id="a-hostname-as-the-node"),
        pytest.param(lambda raw: raw["spec"].update(affinity=AFFINITY), id="affinity-to-its-node"),
        pytest.param(lambda raw: raw["status"].update(podIP="10.0.9.9"), id="addresses-that-differ"),
        pytest.param(lambda raw: raw["status"].update(podIP="10.0.3.256"), id="an-address-that-is-none"),
        pytest.param(lambda raw: raw["status"].update(podIPs=[{"ip": "fd00::1"}], podIP="fd00::1"), id="an-IPv6"),
        pytest.param(lambda raw: raw["status"].update(startTime="2026-02-30T00:00:00Z"), id="a-day-that-is-none"),
        pytest.param(lambda raw: raw["status"].update(startTime="2024-02-29T00:00:00Z"), id="a-leap-day"),
        pytest.param(lambda raw: raw["status"].update(startTime="2024-02-28T00:00:00.5Z"), id="parts-of-a-second"),
        pytest.param(lambda raw: raw["status"].update(startTime="10.1.1.1"), id="an-address-for-a-time"),
        pytest.param(lambda raw: raw["status"].update(message='":"10.0.0.1" {"":"2024-02-29T00:00:00Z"'), id="quotes"),
        pytest.param(lambda raw: raw["status"].update(reason="\u0000" + "1"), id="a-reason-that-looks-like-a-mark"),
        pytest.param(lambda raw: raw["status"].update(hostIP="10.0.3.7"), id="on-the-hosts-network"),
        pytest.param(lambda raw: raw["status"].update(unknown=AT), id="an-unknown-field-of-the-status"),
        pytest.param(lambda raw: raw.pop("status"), id="no-status"),
        pytest.param(lambda raw: raw.update(extra={}), id="an-unknown-field-of-the-pod"),
        pytest.param(lambda raw: raw["metadata"].update(deletionTimestamp=AT), id="terminating"),
    ],
)
def test_of_pods_that_are_alike_each_is_taken_as_by_itself(tmp_path: Path, change: Callable[[Raw], Any]) -> None:
    raws = _as_kept([_running(number) for number in range(1, 6)])
    change(raws[2])
    raws += [{**raws[2], "metadata": {**raws[2]["metadata"], "name": f"web-{n}", "uid": uid(n)}} for n in (50, 51)]
    sources = _read(tmp_path, raws)
    found, expected = prepare(sources, lambda key: True, 0.0, OPTIONS), _one_by_one(raws)
    assert [error.partition(": ")[2] for error in found.errors] == [
        error.partition(": ")[2] for error in expected.errors
    ]
    assert found.assumptions.texts() == expected.assumptions.texts()
    assert found.taken_at == expected.taken_at
    by_name = {obj.name: obj for obj in expected.objects}
    assert [obj.name for obj in found.objects] == [obj.name for obj in expected.objects]
    for one in found.objects:
        other = by_name[one.name]
        assert isinstance(one, Pod)
        assert isinstance(other, Pod)
        assert _without_version(one.raw) == _without_version(other.raw)
        assert one.signature is other.signature
        assert (one.node_name, one.phase, one.start_time) == (other.node_name, other.phase, other.start_time)
        assert (one.labels, one.deletion_timestamp) == (other.labels, other.deletion_timestamp)


def test_pods_that_are_alike_share_what_is_equal(tmp_path: Path) -> None:
    raws = _as_kept([_running(number) for number in range(1, 4)])
    found = _read(tmp_path, raws).found
    assert [one.raw for one in found] == raws
    assert len({one.likeness for one in found} - {None}) == 1
    first, second = (one.raw for one in found[:2])
    assert first["metadata"]["labels"] is second["metadata"]["labels"]
    assert first["spec"]["containers"][0]["resources"] is second["spec"]["containers"][0]["resources"]
    again = raws[0] | {"metadata": raws[0]["metadata"] | {"name": "again", "uid": uid(77)}}
    one, other = (one.raw for one in _read(tmp_path, [raws[0], again]).found)
    assert one["status"]["conditions"] is other["status"]["conditions"]


@pytest.mark.parametrize("name", ["n3", "cpu", "name", "100", "linux", "a.b"])
def test_a_node_may_have_any_name(tmp_path: Path, name: str) -> None:
    raws = _as_kept([node("n1", 1), node("n2", 2), node(name, 3)])
    raws[2]["status"]["nodeInfo"]["operatingSystem"] = raws[0]["status"]["nodeInfo"]["operatingSystem"] = "linux"
    raws += _as_kept([_running(1), _running(2)])
    raws[4]["spec"]["nodeName"] = name
    wrong = json.loads(json.dumps(raws[2]).replace(json.dumps(name), '"n4"'))
    wrong["metadata"]["uid"] = uid(4)
    wrong["status"]["capacity"] = {"cpu": "n4"}
    raws.append(wrong)
    found, expected = prepare(_read(tmp_path, raws), lambda key: True, 0.0, OPTIONS), _one_by_one(raws)
    assert len(found.errors) == len(expected.errors) == 1
    assert [_without_version(obj.raw) for obj in found.objects] == [
        _without_version(obj.raw) for obj in expected.objects
    ]
    assert [type(obj) for obj in found.objects] == [type(obj) for obj in expected.objects]


def test_nodes_and_other_kinds_are_read_beside_them(tmp_path: Path) -> None:
    raws = [node("n1", 1), *_as_kept([_running(1), _running(2)]), node("n2", 2)]
    assert [one.raw for one in _read(tmp_path, raws).found] == raws
