"""Tests of replaying a recorded run's external input with another configuration."""

from pathlib import Path

import pytest

from kschedd.config.versions.kube_versions import V1_36
from kschedd.framework.registry import Registry
from kschedd.recording.reading import RecordingFile
from kschedd.simulation.replay.external import OutsideWorld, changed
from kschedd.simulation.replay.other import PluginsNeeded, compare_with
from tests.simulation.replay.live import moody

PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score:
      enabled: [{name: NodeResourcesFit, weight: 100}]
"""


def world_of(file: Path) -> OutsideWorld:
    with RecordingFile.open(file) as recording:
        return OutsideWorld.of(recording.notes(), recording.header.start_s)


def test_what_came_from_outside_is_told_from_what_the_cluster_did(busy: Path) -> None:
    changes = [(change.type, change.new.kind, change.new.name) for change in world_of(busy).changes]
    made = [f"p{number}" for number in range(12)]
    pods = [name for kind_of_event, kind, name in changes if kind == "Pod" and kind_of_event == "ADDED"]
    assert pods == [*made, "large", "later"]
    assert ("DELETED", "Node", "n5") in changes
    assert ("ADDED", "Deployment", "web") in changes
    assert {kind for _, kind, _ in changes} <= {"Pod", "Node", "Deployment", "PriorityClass"}


def test_another_configuration_places_otherwise_and_says_why(busy: Path) -> None:
    found = compare_with(busy, Registry(), PACKED, "packed", None)
    assert found["pods"] >= 12
    assert found["different"]
    assert {each["plugin"] for each in found["different"]} & {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}
    assert compare_with(busy, Registry(), PACKED, "packed", None) == found


def test_the_same_configuration_places_alike(busy: Path) -> None:
    found = compare_with(busy, Registry(), None, "", None)
    assert found["different"] == []
    assert compare_with(busy, Registry(), None, "", V1_36)["pods"] == found["pods"]


def test_plugins_have_to_be_there_to_be_asked_anew(moody_run: Path) -> None:
    _, registry = moody()
    with pytest.raises(PluginsNeeded, match="the recorded run had Moody"):
        compare_with(moody_run, Registry(), PACKED, "packed", None)
    assert compare_with(moody_run, registry, PACKED, "packed", None)["pods"] >= 7


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="nothing"),
        pytest.param({"a": 1, "b": {"c": 2}}, {"b": {"c": 3}}, {"a": None, "b": {"c": 3}}, id="fields"),
        pytest.param({"l": [1]}, {"l": [1, 2]}, {"l": [1, 2]}, id="lists-are-replaced"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, {"metadata": {"resourceVersion": "2"}}, {}, id="version"),
        pytest.param(
            {"metadata": {"labels": {"a": "1"}, "generation": 1}},
            {"metadata": {"labels": {"a": "2"}, "generation": 2}},
            {"metadata": {"labels": {"a": "2"}}},
            id="labels",
        ),
    ],
)
def test_a_change_is_what_is_different(
    old: dict[str, object], new: dict[str, object], patch: dict[str, object]
) -> None:
    assert changed(old, new) == patch
