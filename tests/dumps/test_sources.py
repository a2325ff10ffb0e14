"""The forms of dumps that are accepted, and the messages for damaged ones."""

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import msgpack
import pytest
import yaml

from kschedd.dumps import sources
from kschedd.dumps.sources import Sources, read_sources, unpack
from tests.dumps.objects import node, pod

OBJECTS = [node("n1", 1), node("n2", 2), pod("a", 3, "n1"), pod("b", 4)]


def _list(kind: str = "List", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": OBJECTS, "kind": kind, "metadata": {"resourceVersion": ""}, **more}


def _read(folder: Path, name: str, data: bytes | str) -> Sources:
    file = folder / name
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_sources([str(file)])


def _names(found: Sources) -> list[str]:
    return [one.raw["metadata"]["name"] for one in found.found]


FORMS = {
    "list.json": json.dumps(_list(), indent=4),
    "small.json": json.dumps(_list()),
    "list.yaml": yaml.safe_dump(_list()),
    "several.yaml": yaml.safe_dump_all(OBJECTS),
    "several.json": "\n".join(json.dumps(one) for one in OBJECTS),
    "array.json": json.dumps(OBJECTS),
    "list.json.gz": gzip.compress(json.dumps(_list()).encode()),
    "two-members.json.gz": gzip.compress(json.dumps(_list())[:100].encode())
    + gzip.compress(json.dumps(_list())[100:].encode()),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_kubectl_prints_is_read(tmp_path: Path, name: str) -> None:
    found = _read(tmp_path, name, FORMS[name])
    assert found.errors == []
    assert [one.raw for one in found.found] == OBJECTS


def test_items_of_a_typed_list_have_its_kind(tmp_path: Path) -> None:
    bare = [{key: value for key, value in one.items() if key not in ("kind", "apiVersion")} for one in OBJECTS[:2]]
    whole = {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": bare}
    assert [one.raw for one in _read(tmp_path, "nodes.json", json.dumps(whole)).found] == OBJECTS[:2]


def test_an_object_with_items_of_its_own_is_no_list(tmp_path: Path) -> None:
    raw = {"apiVersion": "example.com/v1", "kind": "Menu", "metadata": {"name": "m"}, "items": [{"a": 1}]}
    assert [one.raw for one in _read(tmp_path, "menu.json", json.dumps(raw)).found] == [raw]


def test_standard_input_is_read() -> None:
    found = read_sources(["-"], io.BytesIO(json.dumps(_list()).encode()))
    assert [one.raw for one in found.found] == OBJECTS


def test_folders_of_a_cluster_info_dump_and_a_must_gather_are_read(tmp_path: Path) -> None:
    info = tmp_path / "info"
    (info / "default" / "a").mkdir(parents=True)
    (info / "nodes.json").write_text(json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": OBJECTS[:2]}))
    (info / "default" / "pods.json").write_text(
        json.dumps({"kind": "PodList", "apiVersion": "v1", "items": OBJECTS[2:]})
    )
    (info / "default" / "a" / "logs.txt").write_text("{not an object")
    found = read_sources([str(info)])
    assert found.errors == []
    assert sorted(_names(found)) == ["a", "b", "n1", "n2"]

    gather = tmp_path / "gather" / "quay-io-x"
    (gather / "cluster-scoped-resources" / "core" / "nodes").mkdir(parents=True)
    (gather / "namespaces" / "default" / "core").mkdir(parents=True)
    (gather / "cluster-scoped-resources" / "core" / "nodes" / "n1.yaml").write_text(yaml.safe_dump(OBJECTS[0]))
    pods = {"apiVersion": "v1", "kind": "PodList", "items": OBJECTS[2:]}
    (gather / "namespaces" / "default" / "core" / "pods.yaml").write_text(yaml.safe_dump(pods))
    assert sorted(_names(read_sources([str(tmp_path / "gather")]))) == ["a", "b", "n1"]


def test_the_autoscalers_snapshot_is_read(tmp_path: Path) -> None:
    def bare(raw: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in raw.items() if key not in ("kind", "apiVersion")}

    snapshot = {
        "NodeList": [
            {"Node": bare(OBJECTS[0]), "Pods": [{"Pod": bare(OBJECTS[2])}]},
            {"Node": bare(OBJECTS[1]), "Pods": None},
        ],
        "UnscheduledPodsCanBeScheduled": [bare(OBJECTS[3]), bare(OBJECTS[2])],
        "TemplateNodes": {"group": {"Node": bare(node("template", 9))}},
    }
    found = _read(tmp_path, "snapshotz.json", json.dumps(snapshot))
    assert found.errors == []
    assert _names(found) == ["n1", "a", "n2", "b"]
    assert {one.raw["kind"] for one in found.found} == {"Node", "Pod"}


def test_a_trace_of_simkube_is_read_as_it_ends(tmp_path: Path) -> None:
    events = [
        {"ts": 1, "applied_objs": OBJECTS[:3], "deleted_objs": []},
        {"ts": 2, "applied_objs": [OBJECTS[3]], "deleted_objs": [OBJECTS[2]]},
    ]
    trace = {"version": 2, "config": {}, "events": events, "index": {}, "pod_lifecycles": {}}
    found = _read(tmp_path, "run.sktrace", msgpack.packb(trace))
    assert found.errors == []
    assert _names(found) == ["n1", "n2", "b"]
    wrong = _read(tmp_path, "no.sktrace", b"\xc1")
    assert len(wrong.errors) == 1
    assert "SimKube trace: not MessagePack" in wrong.errors[0]


def _trace(*events: Any) -> bytes:
    """Return a trace of events whose pod lifecycles have lists as keys, as SimKube writes them."""
    packer = msgpack.Packer()
    head = {"version": 2, "config": {}, "events": list(events), "index": {}}
    parts = [packer.pack_map_header(len(head) + 1), *map(packer.pack, (part for pair in head.items() for part in pair))]
    owner = [["v1.Pod", "default/a"], 1]
    return b"".join([*parts, packer.pack("pod_lifecycles"), packer.pack_map_header(1), *map(packer.pack, (owner, []))])


def test_a_trace_may_have_maps_with_lists_as_keys(tmp_path: Path) -> None:
    found = _read(tmp_path, "run.sktrace", _trace({"ts": 1, "applied_objs": OBJECTS, "deleted_objs": []}))
    assert found.errors == []
    assert _names(found) == ["n1", "n2", "a", "b"]


def test_pods_of_a_trace_have_the_service_account_that_simkube_removes(tmp_path: Path) -> None:
    bare = {
        **OBJECTS[3],
        "spec": {key: value for key, value in OBJECTS[3]["spec"].items() if key != "serviceAccountName"},
    }
    found = _read(tmp_path, "run.sktrace", _trace({"ts": 1, "applied_objs": [bare], "deleted_objs": None}))
    assert found.found[0].raw == OBJECTS[3] | {"spec": {**bare["spec"], "serviceAccountName": "default"}}


@pytest.mark.parametrize(
    ("events", "why"),
    [
        pytest.param(
            [{"applied_objs": OBJECTS}, {"deleted_objs": OBJECTS}], "no object is left at its end", id="empty"
        ),
        pytest.param([[]], "events[0]: not a map with ts", id="event"),
        pytest.param([{"applied_objs": 7}], "events[0].applied_objs: not a list", id="objects"),
        pytest.param([{}, {"applied_objs": [7]}], "events[1]: an object is a map with metadata", id="object"),
        pytest.param(
            [{"applied_objs": [{"metadata": {"name": b"a"}}]}],
            "events[0]: an object with a value that JSON",
            id="bytes",
        ),
        pytest.param(
            [{"applied_objs": [{"metadata": {"x": float("nan")}}]}], "events[0]: an object with a value that", id="nan"
        ),
    ],
)
def test_what_is_wrong_in_a_trace_is_said(tmp_path: Path, events: list[Any], why: str) -> None:
    found = _read(tmp_path, "run.sktrace", _trace(*events))
    assert found.found == []
    assert len(found.errors) == 1
    assert why in found.errors[0]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("half.json", json.dumps(_list(), indent=2)[:-900]),
        ("half.yaml", yaml.safe_dump(_list(), sort_keys=False)[:-120].rpartition("kind:")[0] + "  status: {phase: 'x"),
        ("half.json.gz", gzip.compress(json.dumps(_list()).encode())[:-30]),
    ],
)
def test_of_a_file_that_breaks_off_what_is_whole_is_taken(tmp_path: Path, name: str, data: Any) -> None:
    found = _read(tmp_path, name, data)
    assert found.errors
    assert all(name in error for error in found.errors)
    assert _names(found)[:1] == ["n1"]
    assert "only the complete objects of a truncated file are loaded" in " ".join(found.assumptions.texts())


def test_what_is_damaged_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"apiVersion": "v1",, }')
    (tmp_path / "b.yaml").write_text("a: [")
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(OBJECTS[0]))
    (tmp_path / "d.json").write_text('{"some": "thing"}')
    (tmp_path / "e.json.gz").write_bytes(b"\x1f\x8bnothing")
    found = read_sources([str(tmp_path), str(tmp_path / "missing")])
    assert _names(found) == ["n1"]
    answer = "\n".join(found.errors)
    assert "a.json:1: not JSON" in answer
    assert "b.yaml" in answer
    assert "e.json.gz: damaged gzip data" in answer
    assert "missing: cannot be read: No such file or directory" in answer
    assert "not objects of Kubernetes, left out" in " ".join(found.assumptions.texts())


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    assert "no .yaml" in read_sources([str(tmp_path)]).errors[0]


def test_what_unpacks_to_too_much_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_UNPACKED_BYTES", 1_000_000)
    found = _read(tmp_path, "bomb.json.gz", gzip.compress(b"[" + b" " * 50_000_000))
    assert found.found == []
    assert found.errors == [
        f"{tmp_path}/bomb.json.gz: larger than 1,000,000 bytes when unpacked: it was not read",
    ]


def test_gzip_data_is_unpacked_as_far_as_it_goes() -> None:
    packed = gzip.compress(bytes(range(256)) * 1000)
    assert unpack(packed + b"\0" * 10, 1 << 20) == (bytes(range(256)) * 1000, "")
    data, wrong = unpack(packed[:-9], 1 << 20)
    assert bytes(range(256)) * 1000 == data
    assert "is truncated" in wrong


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe")
    return str(folder / "pipe")


def test_a_name_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text(json.dumps(_list()))
    found = read_sources([f"{tmp_path}/a\0", f"{tmp_path}/{'a' * 300}", str(there)])
    assert [error.rpartition(": cannot be read: ")[2] for error in found.errors] == [
        "no file has a null character in its name",
        "File name too long",
    ]
    assert len(found.found) == len(OBJECTS)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        pytest.param(lambda folder: "/dev/zero", "a device", id="device-without-end"),
        pytest.param(_pipe, "a pipe", id="pipe-that-nobody-writes-to"),
    ],
)
def test_what_comes_to_no_end_is_not_read(tmp_path: Path, source: Any, what: str) -> None:
    path, there = source(tmp_path), tmp_path / "there.json"
    there.write_text(json.dumps(_list()))
    found = read_sources([path, str(there)])
    assert found.errors == [f"{path}: cannot be read: a file is expected, and this is {what}"]
    assert len(found.found) == len(OBJECTS)


def test_a_pipe_is_read_where_the_user_gives_it(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, json.dumps(node("n1", 1)).encode())
    os.close(writing)
    try:
        found = read_sources([f"/dev/fd/{reading}"], io.BytesIO())
    finally:
        os.close(reading)
    assert (_names(found), found.errors) == (["n1"], [])


def test_a_file_that_memory_would_not_do_for_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large, packed = tmp_path / "large.json", tmp_path / "packed.json.gz"
    large.write_text(json.dumps(_list()))
    packed.write_bytes(gzip.compress(b" " * 10_000))
    assert sources.most_bytes() > 1 << 20
    monkeypatch.setattr(sources, "most_bytes", lambda: 1_000)
    found = read_sources([str(large), str(packed)])
    assert found.errors == [
        f"{large}: larger than 1,000 bytes, the most that fits into memory: not read",
        f"{packed}: larger than 1,000 bytes when unpacked: it was not read",
    ]
    assert found.found == []


def test_an_object_that_cannot_be_read_is_left_out_of_its_list(tmp_path: Path) -> None:
    faulty = "- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, uid: u2}, data: {number: .inf}}\n"
    items = "\n".join(
        f"- apiVersion: v1\n  kind: ConfigMap\n  metadata: {{name: {name}, uid: u-{name}}}" for name in ("a", "c")
    )
    path = tmp_path / "list.yaml"
    path.write_text(f"apiVersion: v1\nkind: List\nitems:\n{faulty}{items}\n", encoding="utf-8")
    found = read_sources([str(path)])
    assert [each.raw["metadata"]["name"] for each in found.found] == ["a", "c"]
    told = " ".join(found.assumptions.texts())
    assert "the objects of a list beside one that cannot be read were taken" in told
    assert "truncated" not in told
