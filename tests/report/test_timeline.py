"""Tests of timelines: entries, nesting, and that both formats have the same content."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kschedd.cli import main
from kschedd.report.timeline import Timeline
from kschedd.report.timeline_files import TimelineFormatError, timeline_file
from kschedd.sdk.objects import node, pod
from kschedd.simulation.engine import Engine


def traced(path: Path) -> None:
    """Trace a pod that fits, one that waits until the first is deleted, and one that never fits."""
    engine = Engine(seed=1)
    file = timeline_file(path)
    Timeline.observing(engine, file)
    for raw in (node("node-a", cpu="2"), node("node-b", cpu="1"), pod("first", cpu="2"), pod("late", cpu="2")):
        engine.store.create(raw)
        engine.run_until_idle()
    engine.store.create(pod("giant", cpu="64"))
    engine.advance(engine.now + 60)
    engine.store.delete("Pod", "default", "first", grace_period_s=0)
    engine.advance(engine.now + 30)
    file.close()


@pytest.fixture
def events(tmp_path: Path) -> list[dict[str, Any]]:
    traced(tmp_path / "t.json")
    found: list[dict[str, Any]] = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    return found


def test_slices_nest_and_begin_in_order(events: list[dict[str, Any]]) -> None:
    opened: Counter[int] = Counter()
    last: dict[int, float] = {}
    for event in events:
        if event["ph"] in "BE":
            track = event["tid"]
            assert event["ts"] >= last.get(track, 0.0)
            last[track] = event["ts"]
            opened[track] += 1 if event["ph"] == "B" else -1
            assert opened[track] >= 0
    assert set(opened.values()) == {0}


def test_an_attempt_has_its_extension_points_and_their_plugins(events: list[dict[str, Any]]) -> None:
    names = [event["name"] for event in events if event["ph"] == "B"]
    first = names.index("default/first → node-a")
    of_attempt = names[first : names.index("default/first", first)]
    assert [name for name in of_attempt if name in ("PreFilter", "Filter", "PostFilter", "Reserve", "Permit")] == [
        "PreFilter",
        "Filter",
        "Reserve",
    ]
    assert "NodeResourcesFit" in of_attempt
    failed = next(event for event in events if event.get("name") == "default/giant → no node")
    assert "Insufficient cpu" in failed["args"]["message"]
    assert "PostFilter" in names


def test_an_arrow_leads_from_the_event_to_the_attempt_of_the_pod_it_woke(events: list[dict[str, Any]]) -> None:
    woke = next(event for event in events if event.get("args", {}).get("wakes") == "default/late")
    assert woke["name"] == "AssignedPodDelete default/first"
    start = next(event for event in events if event["ph"] == "s" and event["ts"] == woke["ts"])
    end = next(event for event in events if event["ph"] == "f" and event["id"] == start["id"])
    attempt = next(e for e in events if e["ph"] == "B" and e["ts"] == end["ts"] and e["tid"] == end["tid"])
    assert attempt["name"] == "default/late → node-a"


def test_queue_and_nodes_are_counted(events: list[dict[str, Any]]) -> None:
    counted = {(event["name"], event["args"]["value"]) for event in events if event["ph"] == "C"}
    assert ("unschedulable pods", 2) in counted
    assert ("node-a cpu", 100.0) in counted
    bound = [event for event in events if event.get("name") in ("default/first", "default/late")]
    assert [event["args"]["node"] for event in bound] == ["node-a", "node-a"]


def test_the_same_run_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        traced(tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_perfettos_form_says_the_same(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    messages = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="the package perfetto is not installed"
    )
    traced(tmp_path / "t.pftrace")
    trace = messages.Trace()
    trace.ParseFromString((tmp_path / "t.pftrace").read_bytes())
    kind = messages.TrackEvent
    reported = [packet for packet in trace.packet if packet.HasField("track_event")]
    slices = [(p.track_event.name, p.timestamp / 1000) for p in reported if p.track_event.type == kind.TYPE_SLICE_BEGIN]
    assert slices == [(event["name"], event["ts"]) for event in events if event["ph"] == "B"]
    counters = [p.track_event.double_counter_value for p in reported if p.track_event.type == kind.TYPE_COUNTER]
    assert counters == [event["args"]["value"] for event in events if event["ph"] == "C"]
    starts = [flow for p in reported for flow in p.track_event.flow_ids]
    ends = [flow for p in reported for flow in p.track_event.terminating_flow_ids]
    assert starts == [event["id"] for event in events if event["ph"] == "s"]
    assert ends == [event["id"] for event in events if event["ph"] == "f"]
    described = {packet.track_descriptor.uuid for packet in trace.packet if packet.HasField("track_descriptor")}
    assert {p.track_event.track_uuid for p in reported} <= described


def test_without_the_package_the_other_form_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    with pytest.raises(TimelineFormatError, match=r"ends in \.json needs none"):
        timeline_file(tmp_path / "t.pftrace")
    assert not (tmp_path / "t.pftrace").exists()


def test_a_simulation_writes_one_and_a_wrong_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,4000,8192,0,\n")
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
        "scheduled_time\np1,1000,1024,0,0,,BE,Running,5,9,5\n"
    )
    run = ["simulate", "--nodes", str(nodes), "--pods", str(pods)]
    assert main([*run, "--trace", str(tmp_path / "t.json")]) == 0
    found = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    attempt = next(event for event in found if event.get("name") == "default/p1 → n1")
    assert attempt["ts"] == 5_000_000
    assert main([*run, "--trace", str(tmp_path / "t.txt")]) == 2
    assert "a trace's name ends in one of .pftrace" in capsys.readouterr().err
