"""Tests of names of CustomResourceDefinitions, which are accepted if they are unused; then their kinds are served."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.store.errors import Invalid, NoMatch
from kschedd.store.store import Store
from tests.store.definitions import definition, widget
from tests.store.manifests import Clock


@pytest.fixture
def store() -> Store:
    return Store(now=Clock())


def conditions(store: Store, name: str) -> list[tuple[str, str, str, str]]:
    found = store.get("CustomResourceDefinition", "", name).raw["status"]["conditions"]
    return [(each["type"], each["status"], each["reason"], each["message"]) for each in found]


def other(of: str, **names: Any) -> dict[str, Any]:
    """Return a definition of the same group as `Widget`."""
    made = definition(of)
    names = {**made["spec"]["names"], **names}
    return {**made, "metadata": {"name": f"{names['plural']}.example.com"}, "spec": {**made["spec"], "names": names}}


ACCEPTED = [
    ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
]


def test_a_definition_is_established_whatever_status_came_with_it(store: Store) -> None:
    # As controller-gen writes it.
    status = {"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": []}
    made = store.create({**definition(), "status": status}, as_client=True)
    assert conditions(store, made.name) == ACCEPTED
    assert made.raw["status"]["acceptedNames"]["kind"] == "Widget"
    assert made.raw["status"]["storedVersions"] == ["v1"]


@pytest.mark.parametrize(
    ("names", "reason", "name"),
    [
        pytest.param(
            {"kind": "Widget", "singular": "gadget", "listKind": "GadgetList"}, "KindConflict", "Widget", id="kind"
        ),
        pytest.param({"singular": "widget"}, "SingularConflict", "widget", id="singular"),
        pytest.param({"shortNames": ["x", "wd"]}, "ShortNamesConflict", "wd", id="short-name"),
        pytest.param({"listKind": "WidgetList"}, "ListKindConflict", "WidgetList", id="kind-of-the-list"),
    ],
)
def test_a_name_that_another_definition_has_is_not_accepted(
    store: Store, names: dict[str, Any], reason: str, name: str
) -> None:
    store.create(definition(shortNames=["wd"]))
    made = store.create(other("Gadget", **names))
    assert conditions(store, made.name) == [
        ("NamesAccepted", "False", reason, f'"{name}" is already in use'),
        ("Established", "False", "NotAccepted", "not all names are accepted"),
    ]
    assert conditions(store, "widgets.example.com") == ACCEPTED


def test_a_definition_that_is_not_served_takes_no_objects_with_it(store: Store) -> None:
    store.create(definition())
    store.create(widget("w", namespace="default"), as_client=True)
    store.create(other("Widget", plural="others", singular="other"))
    store.delete("CustomResourceDefinition", "", "others.example.com")
    assert [obj.name for obj in store.list("Widget")] == ["w"]


def test_names_are_accepted_when_whoever_had_them_is_gone(store: Store) -> None:
    store.create(definition(shortNames=["wd"]))
    waiting = store.create(other("Gadget", shortNames=["wd"]))
    gadget = {**widget("g", namespace="default"), "kind": "Gadget"}
    with pytest.raises(NoMatch):
        store.create(gadget, as_client=True)
    store.delete("CustomResourceDefinition", "", "widgets.example.com")
    assert conditions(store, waiting.name) == ACCEPTED
    assert store.create(gadget, as_client=True).name == "g"


def changed(store: Store, found: Object, **spec: Any) -> Object:
    return store.merge_patch(found.kind, "", found.name, {"spec": spec})


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param({"scope": "Cluster"}, "spec.scope", id="scope"),
        pytest.param({"names": {"kind": "Thing"}}, "spec.names.kind", id="kind"),
    ],
)
def test_kind_and_scope_of_what_is_served_are_for_good(store: Store, spec: dict[str, Any], path: str) -> None:
    made = store.create(definition())
    with pytest.raises(Invalid, match=rf"{path}: Invalid value: .*: field is immutable"):
        changed(store, made, **spec)


def test_the_kind_of_what_is_not_served_may_be_another(store: Store) -> None:
    store.create(definition())
    waiting = store.create(other("Widget", plural="others", singular="other"))
    changed(store, waiting, names={"kind": "Other", "listKind": "OtherList"})
    assert conditions(store, waiting.name) == ACCEPTED


def test_a_new_version_of_storage_is_noted_beside_those_before(store: Store) -> None:
    made = store.create(definition())
    v1 = made.spec["versions"][1]
    versions = [{**v1, "storage": False}, {**v1, "name": "v2"}]
    assert changed(store, made, versions=versions).raw["status"]["storedVersions"] == ["v1", "v2"]


def test_a_version_in_which_objects_may_be_stored_stays(store: Store) -> None:
    made = store.create(definition())
    v1 = made.spec["versions"][1]
    both = [{**v1, "storage": False}, {**v1, "name": "v2"}]
    made = changed(store, made, versions=both)
    why = r"status.storedVersions\[0\]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage"
    with pytest.raises(Invalid, match=why):
        changed(store, made, versions=both[1:])
    migrated = {**made.raw["status"], "storedVersions": ["v2"]}
    made = store.patch_status(made.kind, "", made.name, migrated)
    assert [version["name"] for version in changed(store, made, versions=both[1:]).spec["versions"]] == ["v2"]
