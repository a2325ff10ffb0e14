"""Tests of the serialization of API objects and of plugins' values for worker processes."""

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.api.read_only import ReadOnlyNode, ReadOnlyObject, ReadOnlyPod, read_only, read_only_signature
from kschedd.framework.guarding.sending import NodeSnapshot, NotSendable, read, written
from kschedd.framework.plugin_file import PluginFile
from tests.actors.clusters import node, pod

FILE = PluginFile(
    "plugins/mine.py",
    b"""
class Wish:
    class Place:
        def __init__(self, zone):
            self.zone = zone

def weigh(node):
    return 7
""",
)


def web() -> Pod:
    raw = pod("web", nodeName="n1", tolerations=[{"operator": "Exists"}])
    raw["metadata"] |= {"uid": "u", "labels": {"app": "web"}, "annotations": {"a": "b"}}
    made = parse(raw)
    assert isinstance(made, Pod)
    return made


CONFIG_MAP = Object.from_raw({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}})


@pytest.mark.parametrize("obj", [web(), parse(node("n1", labels={"zone": "a"})), CONFIG_MAP], ids=lambda obj: obj.kind)
def test_an_object_arrives_with_its_fields_and_its_class(obj: Object) -> None:
    found = read(written(obj))
    assert (type(found), found.name, found.labels, found.raw) == (type(obj), obj.name, obj.labels, obj.raw)
    assert found is not obj
    twin = read_only(obj)
    copy = read(written(twin))
    assert type(copy) is type(twin) in (ReadOnlyPod, ReadOnlyNode, ReadOnlyObject)
    assert copy.raw == obj.raw
    with pytest.raises(TypeError, match="read-only"):
        copy.name = "other"


def test_a_pod_arrives_with_its_spec_and_signature() -> None:
    subject = web()
    found = read(written(subject))
    assert (found.node_name, found.requests, found.annotations) == ("n1", subject.requests, {"a": "b"})
    assert found.pod_spec.tolerations == subject.pod_spec.tolerations
    assert found.signature.labels == {"app": "web"}
    signature = read(written(read_only_signature(subject.signature)))
    assert (signature.labels, signature.namespace) == ({"app": "web"}, "default")


def test_an_object_does_not_carry_what_was_computed_from_it() -> None:
    fresh, used = web(), web()
    assert used.requests
    assert read_only(used).requests
    assert written(used) == written(fresh)


def test_a_node_in_a_worker_process_has_the_content_of_its_row() -> None:
    snapshot = NodeSnapshot(
        parse(node("n1", labels={"zone": "a"})), (web(),), {"cpu": 4}, {"cpu": 1}, frozenset({("", "TCP", 80)})
    )
    found = read(written(snapshot))
    assert (found.name, found.labels["zone"], [each.name for each in found.pods]) == ("n1", "a", ["web"])
    assert (found.allocatable, found.requested, found.used_ports) == ({"cpu": 4}, {"cpu": 1}, {("", "TCP", 80)})
    found.allocatable["cpu"] = found.requested["cpu"] = 0
    assert (found.allocatable, found.requested) == ({"cpu": 4}, {"cpu": 1}), "a plugin receives copies"


# -- classes and functions ---------------------------------------------------------------------------------------------


def test_classes_and_functions_of_a_plugins_file_are_found_in_the_receivers_module() -> None:
    ours, theirs = FILE.module(), FILE.module()
    value = {"place": ours.Wish.Place("a"), "weigh": ours.weigh, "class": ours.Wish}
    data = written(value, ours.__name__)
    found = read(data, theirs)
    assert type(found["place"]) is theirs.Wish.Place
    assert (found["place"].zone, found["weigh"], found["class"]) == ("a", theirs.weigh, theirs.Wish)
    with pytest.raises(pickle.UnpicklingError, match=r"Wish\.Place belongs to a plugin's file"):
        pickle.loads(data)
    with pytest.raises(NotSendable, match="mine"):
        written(value, "another_module")


def test_classes_of_modules_that_can_be_imported_are_sent_by_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = FILE.module()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    data = written([module.weigh, Path, len], module.__name__)
    assert read(data) == [module.weigh, Path, len]


class Unsendable:
    def __reduce__(self) -> Any:
        raise SystemError("no\ud800")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(lambda: 7, "PicklingError", id="lambda"),
        pytest.param(Unsendable(), "SystemError: no\\ud800", id="exception-of-the-value"),
        pytest.param((value for value in ()), "TypeError: cannot pickle 'generator' object", id="generator"),
    ],
)
def test_other_values_are_rejected_with_the_reason(value: Any, why: str) -> None:
    with pytest.raises(NotSendable) as fault:
        written({"Mine": value})
    assert why in fault.value.why
