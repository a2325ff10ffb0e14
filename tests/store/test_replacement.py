"""Tests of replacing an object: rejections, and fields that are kept, defaulted, counted and recorded."""

from collections.abc import Callable
from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.store.admission.chain import Admission, ValidatingPlugin
from kschedd.store.admission.request import UserInfo
from kschedd.store.errors import ApiError, Forbidden, Invalid, TooLarge, Undecodable
from kschedd.store.managing import Component
from kschedd.store.store import Store
from tests.store.definitions import definition, widget
from tests.store.manifests import Clock, config_map, node, pod, workload

Raw = dict[str, Any]
LIMIT = 4_000


@pytest.fixture
def store() -> Store:
    made = Store(now=Clock(), max_object_bytes=LIMIT)
    for raw in (pod("p"), node("n"), config_map("c", a="b"), workload("Deployment", "d"), definition()):
        made.create(raw)
    made.create(widget("w"))
    return made


def wanted(found: Object, **parts: Any) -> Raw:
    return {**found.raw, **parts}


KINDS: dict[str, Callable[[Store], Object]] = {
    "pod": lambda store: store.get("Pod", "default", "p"),
    "config-map": lambda store: store.get("ConfigMap", "default", "c"),
    "deployment": lambda store: store.get("Deployment", "default", "d"),
    "widget": lambda store: store.get("Widget", "default", "w"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_decoded_is_refused(store: Store, kind: str) -> None:
    old = KINDS[kind](store)
    for subresource in ("", "status"):
        if subresource and kind not in ("pod", "deployment"):
            continue
        with pytest.raises(Undecodable, match="labels"):
            store.update(wanted(old, metadata={**old.metadata, "labels": {"a": 7}}), subresource=subresource)  # type: ignore[arg-type]
    assert KINDS[kind](store) is old


def test_a_status_of_a_pod_that_is_no_map_cannot_be_decoded(store: Store) -> None:
    with pytest.raises(Undecodable, match="status"):
        store.update_status(wanted(store.get("Pod", "default", "p"), status="Running"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_grows_beyond_the_limit_is_refused(store: Store, kind: str) -> None:
    old = KINDS[kind](store)
    with pytest.raises(TooLarge):
        store.update(wanted(old, metadata={**old.metadata, "annotations": {"a": "x" * LIMIT}}))
    if kind == "pod":
        with pytest.raises(TooLarge):
            store.update_status(wanted(old, status={"message": "x" * LIMIT}))
    assert KINDS[kind](store) is old


def test_a_plugin_is_asked_about_the_whole_object_but_not_about_subresources() -> None:
    asked: list[tuple[str, Any, Any]] = []

    def validate(attributes: Any, new: Raw | None, old: Raw | None) -> None:
        asked.append((attributes.name, new and new.get("data"), old and old.get("data")))
        if new and "no" in (new.get("data") or {}):
            raise Forbidden(attributes.kind, attributes.name, "no")

    plugin = ValidatingPlugin(validate, frozenset(("ConfigMap", "Pod")), on=True)
    store = Store(now=Clock(), admission=Admission(others={"Mine": plugin}))
    store.create(config_map("c", a="b"))
    store.create(pod("p"))
    asked.clear()
    store.merge_patch("ConfigMap", "default", "c", {"data": {"a": "x"}})
    assert asked == [("c", {"a": "x"}, {"a": "b"})]
    with pytest.raises(Forbidden):
        store.merge_patch("ConfigMap", "default", "c", {"data": {"no": "x"}})
    store.patch_status("Pod", "default", "p", {"phase": "Running"})
    assert len(asked) == 2


def test_the_status_is_changed_by_its_subresource_or_if_that_is_asked_for(store: Store) -> None:
    old = store.get("Deployment", "default", "d")
    changed = wanted(old, status={"replicas": 3}, spec={**old.spec, "replicas": 5})
    assert store.update(changed).status == {}
    assert store.update_status({**changed, "metadata": old.metadata | {"resourceVersion": ""}}).spec["replicas"] == 5
    assert store.get("Deployment", "default", "d").status == {"replicas": 3}
    both = {**changed, "metadata": old.metadata | {"resourceVersion": ""}, "status": {"replicas": 4}}
    assert store.update(both, with_status=True).status == {"replicas": 4}
    without = {part: value for part, value in both.items() if part != "status"}
    assert store.update(without, with_status=True).status == {"replicas": 4}


def test_a_wrong_status_is_refused_with_its_field(store: Store) -> None:
    old = store.get("Deployment", "default", "d")
    with pytest.raises(Invalid, match=r"status\.replicas: Invalid value: -1"):
        store.update_status(wanted(old, status={"replicas": -1}))
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "r"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
    }
    made = store.create(claim)
    with pytest.raises(Invalid, match=r"status\.devices\[0\]: Invalid value: "):
        store.update_status(wanted(made, status={"devices": [{"driver": "d.e", "pool": "p", "device": "x"}]}))


def test_metadata_of_a_status_are_checked_as_far_as_they_count(store: Store) -> None:
    old = store.get("Deployment", "default", "d")
    noted = {**old.metadata, "annotations": {"a": "b"}, "labels": {"not looked at": "yes"}}
    new = store.update_status(wanted(old, metadata=noted, status={"replicas": 1}))
    assert new.metadata["annotations"] == {"a": "b"}
    assert "labels" not in new.metadata
    with pytest.raises(Invalid, match=r"metadata\.annotations: Invalid value: \"a b\""):
        store.update_status(wanted(new, metadata={**new.metadata, "annotations": {"a b": "c"}}))
    running = store.get("Pod", "default", "p")
    with pytest.raises(Invalid, match=r"metadata\.labels"):
        store.update_status(wanted(running, metadata={**running.metadata, "labels": {"a b": "c"}}))
    kept = store.update_status(wanted(running, metadata={**running.metadata, "labels": {"a": None}}))
    assert kept.metadata.get("labels") == {"a": ""}


def test_what_admission_filled_in_need_not_be_repeated(store: Store) -> None:
    store.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 9,
            "preemptionPolicy": "Never",
        }
    )
    made = store.create(pod("important", priorityClassName="high"))
    assert (made.spec["priority"], made.spec["preemptionPolicy"]) == (9, "Never")
    spec = {name: value for name, value in made.spec.items() if name not in ("priority", "preemptionPolicy")}
    labels = {**made.metadata, "labels": {"x": "y"}}
    new = store.update(wanted(made, metadata=labels, spec=spec))
    assert (new.spec["priority"], new.spec["preemptionPolicy"]) == (9, "Never")
    assert new.spec is made.spec, "the spec is shared with the object before"
    with pytest.raises(ApiError, match=r"spec: Forbidden: pod updates may not change fields"):
        store.update(wanted(new, spec={**new.spec, "priority": 8}))


def test_metadata_do_not_change_by_ephemeral_containers_or_a_resize(store: Store) -> None:
    old = store.get("Pod", "default", "p")
    debugger = {"name": "debug", "image": "i"}
    attributes = wanted(
        old,
        metadata={**old.metadata, "labels": {"a b": "not looked at"}, "deletionGracePeriodSeconds": 7},
        spec={**old.spec, "ephemeralContainers": [debugger]},
    )
    new = store.update(attributes, subresource="ephemeralcontainers")
    assert [each["name"] for each in new.spec["ephemeralContainers"]] == ["debug"]
    assert new.metadata["labels"] == old.metadata["labels"]
    container = {**old.spec["containers"][0], "resources": {"requests": {"cpu": "200m"}}}
    resized = wanted(
        new, metadata={**new.metadata, "deletionGracePeriodSeconds": 7}, spec={**new.spec, "containers": [container]}
    )
    assert store.update(resized, subresource="resize").spec["containers"][0]["resources"] == {
        "requests": {"cpu": "200m"}
    }
    with pytest.raises(ApiError, match="UID in precondition"):
        store.update({**attributes, "metadata": {"name": "p", "uid": "other"}}, subresource="ephemeralcontainers")


def test_a_namespace_is_finalized_with_the_finalizers_that_are_given(store: Store) -> None:
    made = store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "s"}})
    new = store.update(wanted(made, spec={"finalizers": []}, status={"phase": "Nonsense"}), subresource="finalize")
    assert new.spec.get("finalizers") in (None, [])
    assert new.status == {"phase": "Active"}


def test_a_definition_that_cannot_be_is_refused_as_it_is_replaced(store: Store) -> None:
    old = store.get("CustomResourceDefinition", "", "widgets.example.com")
    versions = [{**each, "schema": {"openAPIV3Schema": {"type": "nonsense"}}} for each in old.spec["versions"]]
    with pytest.raises(ApiError):
        store.update(wanted(old, spec={**old.spec, "versions": versions}))
    assert store.get("CustomResourceDefinition", "", "widgets.example.com") is old


@pytest.mark.parametrize("manager", ["", "me", Component("kubelet")], ids=["nobody", "a-client", "a-component"])
def test_whose_a_status_is(store: Store, manager: Any) -> None:
    store.create(workload("Deployment", "e"), manager="boss")
    new = store.merge_patch(
        "Deployment", "default", "e", {"status": {"replicas": 1}}, subresource="status", manager=manager
    )
    entries = new.metadata["managedFields"]
    expected = [("boss", ""), (str(manager), "status")] if manager else [("boss", "")]
    assert [(entry["manager"], entry.get("subresource", "")) for entry in entries] == expected


@pytest.mark.parametrize(
    ("kind", "subresource", "wrong"),
    [
        ("config-map", "", {"data": 7}),
        ("deployment", "", {"spec": {"replicas": "many"}}),
        ("deployment", "status", {"spec": {"replicas": "many"}}),
        ("deployment", "status", {"status": {"replicas": "many"}}),
        ("pod", "", {"spec": {"containers": "none"}}),
    ],
)
def test_a_part_of_the_wrong_type_is_refused(store: Store, kind: str, subresource: Any, wrong: Raw) -> None:
    old = KINDS[kind](store)
    with pytest.raises(Undecodable):
        store.update(wanted(old, **wrong), subresource=subresource)


def test_a_kubelet_changes_its_own_node_alone() -> None:
    store = Store(now=Clock(), admission=Admission({"NodeRestriction": True}))
    for name in ("n", "m"):
        store.create(node(name))
    with store.on_behalf_of(UserInfo("system:node:n", ("system:nodes",))):
        own = store.get("Node", "", "n")
        changed = store.update(wanted(own, metadata={**own.metadata, "annotations": {"a": "b"}}))
        assert changed.metadata["annotations"] == {"a": "b"}
        other = store.get("Node", "", "m")
        for subresource in ("", "status"):
            with pytest.raises(Forbidden, match='node "n" is not allowed to modify node "m"'):
                store.update(
                    wanted(other, metadata={**other.metadata, "annotations": {"a": "b"}}), subresource=subresource
                )  # type: ignore[arg-type]


def test_what_the_definition_of_a_custom_resource_does_not_know_is_dropped(store: Store) -> None:
    strict = definition("Gadget")
    for version in strict["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    store.create(strict)
    made = store.create({**widget("g"), "kind": "Gadget", "size": 1})
    new = store.update(wanted(made, size=2, more=3))
    assert (new.raw["size"], "more" in new.raw) == (2, False)


def test_nobody_changes_the_entries_of_others(store: Store) -> None:
    made = store.create(config_map("m", a="b"), manager="boss")
    entries = made.metadata["managedFields"]
    new = store.update(wanted(made, metadata={**made.metadata, "managedFields": []}, data={"a": "c"}))
    assert new.metadata["managedFields"] == entries
    bare = store.get("ConfigMap", "default", "c")
    tampered = store.update(wanted(bare, metadata={**bare.metadata, "managedFields": entries}))
    assert not tampered.metadata.get("managedFields")


def test_of_an_ingress_class_the_change_is_told_first(store: Store) -> None:
    made = store.create(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": "i"},
            "spec": {"controller": "example.com/c"},
        }
    )
    with pytest.raises(Invalid) as refused:
        store.update(wanted(made, spec={"controller": ""}))
    assert [str(fault) for fault in refused.value.faults] == [
        'spec.controller: Invalid value: "": field is immutable',
        "spec.controller: Required value",
    ]


def test_of_an_attribute_with_two_values_each_is_told_first(store: Store) -> None:
    attributes = {"a": {"string": "x", "version": "y"}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "d", "attributes": attributes}]
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": devices},
    }
    with pytest.raises(Invalid) as refused:
        store.create(raw)
    assert [fault.path for fault in refused.value.faults] == [
        "spec.devices[0].attributes[a].version",
        "spec.devices[0].attributes[a]",
    ]
