"""Tests that nodes of one request, copied from each other, equal nodes created one by one."""

import json
from collections.abc import Sequence
from typing import Any

import msgpack
import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.store.admission.chain import Admission, ValidatingPlugin
from kschedd.store.admission_plugins.attributes import Attributes, UserInfo
from kschedd.store.errors import ApiError
from kschedd.store.prototypes.nodes import NodePrototype
from kschedd.store.store import Store
from tests.store.manifests import config_map, pod

Raw = dict[str, Any]

_STATUS: Raw = {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}, "conditions": [{"type": "Ready"}]}
_SPEC: Raw = {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}


def _node(name: Any, labels: Any = None, *, spec: Raw = _SPEC, status: Raw = _STATUS, **meta: Any) -> Raw:
    labels = {"kubernetes.io/hostname": name} if labels is None else labels
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, **meta},
        "spec": spec,
        "status": status,
    }


def _told(answer: Object | ApiError) -> Any:
    if isinstance(answer, ApiError):
        return type(answer).__name__, str(answer)
    own = answer.kind, answer.name, answer.namespace, answer.uid, answer.resource_version, answer.labels
    read = [getattr(answer, field, None) for field in ("allocatable", "taints", "unschedulable", "images")]
    return own, read, json.dumps(answer.raw)  # in the order of its fields


def _store(**options: Any) -> Store:
    store = Store(now=lambda: 1_700_000_000.0, **options)
    store.set_clock(lambda: 1_700_000_000.0 + 0.3 * store.version)
    return store


def _created(store: Store, raws: Sequence[Raw]) -> list[Any]:
    answers: list[Object | ApiError] = []
    for raw in raws:
        try:
            answers.append(store.create(raw))
        except ApiError as refusal:
            answers.append(refusal)
    return list(map(_told, answers))


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the copied nodes."""
    names: list[str] = []
    copy = NodePrototype.copy

    def counted(prototype: NodePrototype, raw: Raw, uid: str, version: int, at: str) -> Node:
        names.append(raw["metadata"]["name"])
        return copy(prototype, raw, uid, version, at)

    monkeypatch.setattr(NodePrototype, "copy", counted)
    return names


def _as_one_request(raws: Sequence[Raw], **options: Any) -> list[Any]:
    """Create the objects in one request and return the answers.

    Checks that the answers and the log equal those of a store that gets the objects one at a time.
    """
    one, other = _store(**options), _store(**options)
    with one.one_request():
        answers = _created(one, raws)
    assert answers == _created(other, raws)
    logs = [[(e.type, e.version, _told(e.new)) for e in store.shown_after(0)] for store in (one, other)]
    assert logs[0] == logs[1]
    assert [_told(node) for node in one.list("Node")] == [_told(node) for node in other.list("Node")]
    return answers


def test_nodes_of_one_shape_are_copies_of_the_first(copied: list[str]) -> None:
    _as_one_request([_node(f"n{number}") for number in range(5)])
    assert copied == ["n1", "n2", "n3", "n4"]


def test_other_objects_in_between_change_nothing(copied: list[str]) -> None:
    _as_one_request([_node("n0"), config_map("c"), _node("n1"), pod("p"), _node("n2")])
    assert copied == ["n1", "n2"]


def test_each_shape_has_its_prototype(copied: list[str]) -> None:
    small: Raw = {"capacity": {"cpu": "1"}}
    _as_one_request([_node("a"), _node("b", status=small), _node("c"), _node("d", status=small)])
    assert copied == ["c", "d"]


def test_labels_have_values_of_their_own(copied: list[str]) -> None:
    zones = [_node(name, {"kubernetes.io/hostname": name, "zone": f"z-{name}"}) for name in "abc"]
    _as_one_request(zones)
    assert copied == ["b", "c"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(_node("b", spec={**_SPEC}), id="another-spec-object"),
        pytest.param(_node("b", status={**_STATUS}), id="another-status-object"),
        pytest.param(_node("b", {"kubernetes.io/hostname": "b", "zone": "z"}), id="one-more-label"),
        pytest.param(_node("b", {}), id="no-labels"),
        pytest.param(_node("b", {"kubernetes.io/hostname": None}), id="a-label-without-a-value"),
        pytest.param(_node("b", {"kubernetes.io/hostname": 1}), id="a-label-that-is-no-text"),
        pytest.param(_node("b", {"kubernetes.io/hostname": "not valid"}), id="an-invalid-label"),
        pytest.param(_node("b" * 64), id="a-name-too-long-for-the-label"),
        pytest.param(_node("B"), id="an-invalid-name"),
        pytest.param(_node(1, {"kubernetes.io/hostname": "b"}), id="a-name-that-is-no-text"),
        pytest.param(_node("a"), id="a-name-that-is-taken"),
        pytest.param(_node("b", annotations={"a": "b"}), id="annotations"),
        pytest.param(_node("b", uid="mine"), id="a-uid"),
        pytest.param({**_node("b"), "apiVersion": "v2"}, id="another-version"),
        pytest.param({**_node("b"), "extra": 1}, id="another-field"),
    ],
)
def test_what_differs_in_more_is_created_by_itself(copied: list[str], other: Raw) -> None:
    _as_one_request([_node("a"), other, _node("c")])
    assert set(copied) <= {"c"}, "which is no copy either where the node before it has the status, and other labels"


def test_an_empty_label_may_be_copied(copied: list[str]) -> None:
    _as_one_request([_node("a", {"role": ""}), _node("b", {"role": ""})])
    assert copied == ["b"]


def test_nodes_without_labels_are_created_by_themselves(copied: list[str]) -> None:
    _as_one_request([_node("a", {}), _node("b", {}), _node("c", {})])
    assert copied == []


def test_a_copy_is_no_larger_than_an_object_may_be(copied: list[str]) -> None:
    raws = [_node("a"), _node("b" * 60)]
    sizes = [len(msgpack.packb(json.loads(reported[2]))) for reported in _created(_store(), raws)]
    answers = _as_one_request(raws, max_object_bytes=sizes[0])
    assert answers[1][0] == "TooLarge"
    answers = _as_one_request(raws, max_object_bytes=sizes[1])
    assert answers[1][0][1] == "b" * 60
    assert copied == [], "so close to the limit each is looked at"


def test_a_user_may_do_to_each_node_what_the_user_may() -> None:
    user = UserInfo("system:node:node-1", ("system:nodes",))
    stores = [_store(admission=Admission({"NodeRestriction": True})) for _ in range(2)]
    raws = [_node(name) for name in ("node-1", "node-2", "node-3")]
    with stores[0].one_request(), stores[0].on_behalf_of(user), stores[1].on_behalf_of(user):
        answers = _created(stores[0], raws)
        assert answers == _created(stores[1], raws)
    assert [answer[0] for answer in answers[1:]] == ["Forbidden", "Forbidden"]


def test_plugins_from_files_are_asked_about_each(copied: list[str]) -> None:
    asked: list[str] = []

    def validate(attributes: Attributes, new: Any, old: Any) -> None:
        asked.append(attributes.name)

    store = Store(admission=Admission(others={"watching": ValidatingPlugin(validate, ("Node",))}))
    with store.one_request():
        _created(store, [_node("a"), _node("b")])
    assert asked == ["a", "b"]
    assert copied == []


def test_other_rules_forget_them(copied: list[str]) -> None:
    store = _store()
    with store.one_request():
        store.create(_node("a"))
        store.stand_for(DEFAULT.rules)
        store.create(_node("b"))
    assert copied == []
    store.create(_node("c"))
    assert copied == [], "the request is over"
