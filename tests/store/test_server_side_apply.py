"""Tests of server-side apply: ownership, conflicts, force, removal of fields with their last owner, and costs."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.objects import Object
from kschedd.managed_fields.entries import read_entries
from kschedd.managed_fields.field_set import union
from kschedd.managed_fields.noted import all_resolved
from kschedd.store.errors import (
    ApplyConflict,
    ApplySchemaError,
    BadPatch,
    BadRequest,
    Conflict,
    InvalidOptions,
    NotFound,
)
from kschedd.store.managing import Component, with_resolved_entries
from kschedd.store.patches.patching import check_patch_options, read_configuration
from kschedd.store.store import Store
from tests.full_run import examples
from tests.store.manifests import pod

Raw = dict[str, Any]
NOW_S = 1_750_000_000.0


class Clock:
    """A clock that the test sets, in seconds."""

    def __init__(self) -> None:
        self.now = NOW_S

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Store:
    return Store(now=clock)


def config_map(name: str = "c", *, labels: Raw | None = None, **data: str) -> Raw:
    meta = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **({"data": data} if data else {})}


def apply(store: Store, config: Raw, manager: str, **how: Any) -> Object:
    name = config["metadata"]["name"]
    return store.server_side_apply(config["kind"], "default", name, config, manager, **how)[0]


def managers(obj: Object) -> dict[tuple[str, str, str], Any]:
    """Return the fields of each entry by its manager, operation and subresource."""
    entries = with_resolved_entries(obj.raw)["metadata"].get("managedFields", [])
    return {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in entries}


def test_the_first_apply_makes_the_object_and_owns_what_it_states(store: Store) -> None:
    made, what = store.server_side_apply("ConfigMap", "default", "c", config_map(k="v"), "me")
    assert what == "created"
    assert made.raw["data"] == {"k": "v"}
    assert managers(made) == {("me", "Apply", ""): {"f:data": {"f:k": {}}}}
    (entry,) = made.metadata["managedFields"]
    assert (entry["apiVersion"], entry["time"], entry["fieldsType"]) == ("v1", "2025-06-15T15:06:40Z", "FieldsV1")


def test_the_same_configuration_again_changes_nothing(store: Store, clock: Clock) -> None:
    made = apply(store, config_map(k="v"), "me")
    clock.now += 60
    again, what = store.server_side_apply("ConfigMap", "default", "c", config_map(k="v"), "me")
    assert what == "unchanged"
    assert again is made
    assert store.version == made.resource_version


def test_a_field_goes_with_its_only_owner_and_stays_with_another(store: Store) -> None:
    apply(store, config_map(a="1", b="2"), "one")
    apply(store, config_map(b="2"), "two")
    left = apply(store, config_map(), "one")
    assert left.raw["data"] == {"b": "2"}
    assert managers(left) == {("two", "Apply", ""): {"f:data": {"f:b": {}}}}


def test_a_conflict_names_manager_and_field_and_force_takes_it(store: Store) -> None:
    store.create(config_map(a="1", b="2"), manager="creator")
    apply(store, config_map(c="3"), "one")
    with pytest.raises(ApplyConflict) as refused:
        apply(store, config_map(a="x"), "me")
    assert str(refused.value) == 'Apply failed with 1 conflict: conflict with "creator" using v1: .data.a'
    assert refused.value.causes == ((".data.a", 'conflict with "creator" using v1'),)
    with pytest.raises(ApplyConflict) as refused:
        apply(store, config_map(a="x", b="y", c="z"), "me")
    assert str(refused.value) == (
        'Apply failed with 3 conflicts: conflicts with "creator" using v1:\n- .data.a\n- .data.b\n'
        'conflicts with "one":\n- .data.c'
    )
    forced = apply(store, config_map(a="x"), "me", force=True)
    assert forced.raw["data"] == {"a": "x", "b": "2", "c": "3"}
    assert managers(forced) == {
        ("creator", "Update", ""): {"f:data": {".": {}, "f:b": {}}},
        ("one", "Apply", ""): {"f:data": {"f:c": {}}},
        ("me", "Apply", ""): {"f:data": {"f:a": {}}},
    }


def test_equal_values_are_owned_together_without_conflict(store: Store) -> None:
    apply(store, config_map(a="1"), "one")
    both = apply(store, config_map(a="1"), "two")
    assert set(managers(both)) == {("one", "Apply", ""), ("two", "Apply", "")}
    changed = apply(store, config_map(a="2"), "two", force=True)
    assert set(managers(changed)) == {("two", "Apply", "")}


def test_an_update_takes_what_it_changes(store: Store) -> None:
    made = apply(store, config_map(a="1", b="2"), "one")
    raw = {**made.raw, "data": {"a": "x", "b": "2", "c": "3"}}
    changed = store.update(raw, manager="editor")
    assert managers(changed) == {
        ("one", "Apply", ""): {"f:data": {"f:b": {}}},
        ("editor", "Update", ""): {"f:data": {"f:a": {}, "f:c": {}}},
    }
    assert store.update(changed.raw, manager="other") is changed


def test_what_nobody_manages_is_of_before_the_first_apply(store: Store) -> None:
    store.create(config_map(a="1"))
    store.merge_patch("ConfigMap", "default", "c", {"data": {"b": "2"}}, manager="editor")
    assert "managedFields" not in store.get("ConfigMap", "default", "c").metadata
    applied = apply(store, config_map(c="3"), "me")
    assert managers(applied) == {
        ("before-first-apply", "Update", ""): {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
        ("me", "Apply", ""): {"f:data": {"f:c": {}}},
    }


def test_one_empty_entry_takes_all_managers_away(store: Store) -> None:
    made = apply(store, config_map(a="1"), "me")
    kept = store.merge_patch("ConfigMap", "default", "c", {"metadata": {"managedFields": []}}, manager="editor")
    assert kept is made, "an empty list is no wish to have none"
    reset = store.merge_patch("ConfigMap", "default", "c", {"metadata": {"managedFields": [{}]}}, manager="editor")
    assert "managedFields" not in reset.metadata


def test_entries_that_a_client_states_count_if_they_can_be_read(store: Store) -> None:
    made = apply(store, config_map(a="1"), "me")
    entry = {**made.metadata["managedFields"][0], "manager": "renamed"}
    given = {"metadata": {"managedFields": [entry]}}
    assert set(managers(store.merge_patch("ConfigMap", "default", "c", given, manager="x"))) == {
        ("renamed", "Apply", "")
    }
    broken = {"metadata": {"managedFields": [{**entry, "operation": "Steal"}]}}
    assert set(managers(store.merge_patch("ConfigMap", "default", "c", broken, manager="x"))) == {
        ("renamed", "Apply", "")
    }


def test_the_eleventh_updater_makes_the_oldest_two_one(store: Store, clock: Clock) -> None:
    store.create(config_map(k="v"), manager="m-00")
    for number in range(1, 12):
        clock.now += 1
        patch = {"data": {f"k{number}": "x"}}
        store.merge_patch("ConfigMap", "default", "c", patch, manager=f"m-{number:02}")
    names = [name for name, *_ in managers(store.get("ConfigMap", "default", "c"))]
    assert names == ["ancient-changes", *(f"m-{number:02}" for number in range(3, 12))]


def test_kubectl_takes_over_what_its_client_side_apply_wrote(store: Store) -> None:
    store.apply(config_map(a="1", b="2"), manager="kubectl-client-side-apply")
    with pytest.raises(ApplyConflict):
        apply(store, config_map(a="x"), "somebody")
    applied = apply(store, config_map(a="x", b="2"), "kubectl")
    assert applied.raw["data"] == {"a": "x", "b": "2"}
    assert '"a":"x"' in applied.annotations["kubectl.kubernetes.io/last-applied-configuration"]
    store.merge_patch("ConfigMap", "default", "c", {"data": {"b": "3"}}, manager="editor")
    with pytest.raises(ApplyConflict, match=r'"editor" using v1: \.data\.b'):
        apply(store, config_map(a="x", b="4"), "kubectl")


def test_defaults_have_no_owner(store: Store) -> None:
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    made = apply(store, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}, "me")
    assert made.spec["replicas"] == 1
    owned = managers(made)["me", "Apply", ""]["f:spec"]
    assert owned.keys() == {"f:selector", "f:template"}
    scaled = store.merge_patch("Deployment", "default", "d", {"spec": {"replicas": 3}}, manager="scaler")
    assert managers(scaled)["scaler", "Update", ""] == {"f:spec": {"f:replicas": {}}}
    again, what = store.server_side_apply(
        "Deployment", "default", "d", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}, "me"
    )
    assert (again.spec["replicas"], what) == (3, "unchanged")


def test_a_status_is_applied_by_its_subresource(store: Store) -> None:
    store.create(pod("p"), manager="creator")
    condition = {"type": "Custom", "status": "True"}
    config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"conditions": [condition]}}
    by_itself = apply(store, config, "me")
    assert "conditions" not in by_itself.status
    assert ("me", "Apply", "") not in managers(by_itself)
    changed = apply(store, config, "me", subresource="status")
    assert [each["type"] for each in changed.status["conditions"]] == ["Custom"]
    assert managers(changed)["me", "Apply", "status"] == {
        "f:status": {"f:conditions": {'k:{"type":"Custom"}': {".": {}, "f:status": {}, "f:type": {}}}}
    }
    with pytest.raises(NotFound):
        apply(store, {**config, "metadata": {"name": "q"}}, "me", subresource="status")


def test_a_new_pod_and_the_daemon_s_statuses_cost_a_note(store: Store) -> None:
    made = store.create(pod("p"), manager="kubectl-create")
    assert made.metadata["managedFields"] == [
        {"manager": "kubectl-create", "operation": "Update", "apiVersion": "v1", "time": "2025-06-15T15:06:40Z"}
    ]
    store.bind("default", "p", "n")
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    ran = store.merge_patch(
        "Pod", "default", "p", {"status": running}, subresource="status", manager=Component("kubelet")
    )
    assert not all_resolved(ran.metadata["managedFields"])
    found = managers(ran)
    assert "f:nodeName" not in found["kubectl-create", "Update", ""]["f:spec"]
    assert "f:priority" not in found["kubectl-create", "Update", ""]["f:spec"]
    assert found["kubelet", "Update", "status"]["f:status"]["f:phase"] == {}
    labelled = store.merge_patch("Pod", "default", "p", {"metadata": {"labels": {"x": "y"}}}, manager="kubectl-label")
    assert all_resolved(labelled.metadata["managedFields"])
    assert managers(labelled).keys() == {*found, ("kubectl-label", "Update", "")}


def test_a_write_that_changes_nothing_leaves_notes_as_they_are(store: Store) -> None:
    made = store.create(pod("p"), manager="me")
    assert store.merge_patch("Pod", "default", "p", {"metadata": {"labels": {"app": "web"}}}, manager="x") is made
    assert store.update(made.raw, manager="x") is made


def test_what_a_limit_range_adds_to_a_pod_is_nobodys(store: Store) -> None:
    limits = [{"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"memory": "1Gi"}}]
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": limits}}
    before = managers(store.create(pod("p"), manager="me"))
    store.create(limit_range)
    limited = store.create(pod("q"), manager="me")
    assert limited.spec["containers"][0]["resources"]["limits"] == {"memory": "1Gi"}
    assert managers(limited) == before


def test_managers_outlive_what_the_daemon_itself_writes(store: Store) -> None:
    made = store.create(pod("p"), manager="me")
    store.bind("default", "p", "n")
    store.evict("default", "p", grace_period_s=30)
    assert store.get("Pod", "default", "p").metadata["managedFields"] == made.metadata["managedFields"]


@pytest.mark.parametrize(
    ("config", "code", "why"),
    [
        pytest.param({"kind": "ConfigMap"}, 400, "invalid object type: /, Kind=ConfigMap", id="no-version"),
        pytest.param({"apiVersion": "v1"}, 400, "invalid object type: /v1, Kind=", id="no-kind"),
        pytest.param(
            config_map() | {"metadata": {"name": "c", "managedFields": []}},
            400,
            "metadata.managedFields must be nil",
            id="managed-fields",
        ),
        pytest.param(
            config_map() | {"data": {"k": 5}},
            500,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .data.k: expected string, got "
            "&value.valueUnstructured{Value:5}",
            id="wrong-type",
        ),
        pytest.param(
            config_map("other"),
            400,
            "the name of the object (other) does not match the name on the URL (c)",
            id="other-name",
        ),
        pytest.param(
            config_map() | {"metadata": {"name": "c", "resourceVersion": "1"}},
            409,
            'Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes '
            "to the latest version and try again",
            id="other-version",
        ),
    ],
)
def test_a_configuration_is_refused_in_upstream_s_words(store: Store, config: Raw, code: int, why: str) -> None:
    before = store.create(config_map(k="v"), manager="me")
    with pytest.raises((BadPatch, ApplySchemaError, BadRequest, Conflict)) as refused:
        store.server_side_apply("ConfigMap", "default", "c", config, "me", api_version="v1")
    assert (refused.value.code, str(refused.value)) == (code, why)
    assert store.version == before.resource_version


def test_what_is_not_there_is_not_applied_with_a_uid_or_without_its_name(store: Store) -> None:
    gone = config_map() | {"metadata": {"name": "c", "uid": "1-2"}}
    with pytest.raises(Conflict, match="uid mismatch: the provided object specified uid 1-2, and no existing object"):
        apply(store, gone, "me")
    with pytest.raises(BadRequest, match=r"\(c based on URL\) was undeterminable"):
        store.server_side_apply("ConfigMap", "default", "c", {"apiVersion": "v1", "kind": "ConfigMap"}, "me")


def test_a_dry_run_keeps_nothing(store: Store) -> None:
    version = store.version
    tried = apply(store, config_map(k="v"), "me", dry_run=True)
    assert tried.raw["data"] == {"k": "v"}
    assert store.find("ConfigMap", "default", "c") is None
    made = apply(store, config_map(k="v"), "me")
    apply(store, config_map(k="w"), "me", dry_run=True)
    assert store.get("ConfigMap", "default", "c") is made
    assert store.version == version + 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(
            "{",
            "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected node content",
            id="cut",
        ),
        pytest.param(
            "[1]",
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go "
            "value of type map[string]interface {}",
            id="list",
        ),
        *(
            pytest.param(
                text,
                "error decoding YAML: error converting YAML to JSON: yaml: nested more than 100 levels deep",
                id=f"deep {text[:2]}",
            )
            for text in (
                "[" * 50_000 + "]" * 50_000,
                '{"a":' * 50_000,
                "a: " + "[" * 5_000,
                "- " * 5_000 + "x",
                "? " * 30_000,
            )
        ),
    ],
)
def test_what_is_no_configuration_is_told_as_upstream_tells_it(text: str, why: str) -> None:
    with pytest.raises(BadPatch) as refused:
        read_configuration(text)
    assert str(refused.value) == why


def test_a_key_that_stands_twice_is_told_and_the_last_counts() -> None:
    text = "kind: A\nkind: B\n"
    answer = 'error converting YAML to JSON: yaml: unmarshal errors:\n  line 2: key "kind" already set in map'
    assert read_configuration(text) == ({"kind": "B"}, (answer,))
    assert read_configuration(text, "Ignore") == ({"kind": "B"}, ())
    with pytest.raises(BadPatch, match="error strict decoding YAML"):
        read_configuration(text, "Strict")


@pytest.mark.parametrize(
    ("manager", "force", "applied", "why"),
    [
        ("", None, True, "fieldManager: Required value: is required for apply patch"),
        ("m", True, False, "force: Forbidden: may not be specified for non-apply patch"),
        ("x" * 129, None, True, "fieldManager: Too long: may not be more than 128 bytes"),
        ("ä\u200b", None, False, 'fieldManager: Invalid value: "ä\\u200b": invalid character U+200B (at position 2)'),
    ],
)
def test_options_that_make_no_sense_are_refused(manager: str, force: bool | None, applied: bool, why: str) -> None:
    with pytest.raises(InvalidOptions) as refused:
        check_patch_options(manager, force, applied=applied)
    assert str(refused.value) == f'PatchOptions.meta.k8s.io "" is invalid: {why}'


_KEYS = st.sampled_from("abcde")
_DATA = st.dictionaries(_KEYS, st.sampled_from("12"), max_size=4)
_LABELS = st.dictionaries(_KEYS, st.sampled_from("12"), max_size=2)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), _DATA, _LABELS), min_size=1, max_size=8))
def test_appliers_own_together_exactly_what_is_there(steps: list[tuple[str, Raw, Raw]]) -> None:
    """Check that each field has an owner, and no owner an absent field, if all writes are applies.

    The fields in an applied configuration get its values, and applying it again changes nothing.
    """
    store = Store(now=lambda: NOW_S)
    stated: dict[str, Raw] = {}
    for manager, data, labels in steps:
        config = config_map(labels=labels, **data)
        made = apply(store, config, manager, force=True)
        stated[manager] = config
        assert {**data} == {name: made.raw["data"][name] for name in data}
        assert apply(store, config, manager) is made
    final = store.get("ConfigMap", "default", "c")
    owned = None
    for theirs in read_entries(final.metadata.get("managedFields")).sets.values():
        owned = theirs.fields if owned is None else union(owned, theirs.fields)
    found = {path for path in (owned.paths() if owned is not None else ()) if len(path) > 1}
    there = {("f:data", f"f:{name}") for name in final.raw.get("data") or ()}
    there |= {("f:metadata", "f:labels", f"f:{name}") for name in final.labels}
    assert found == there


def test_who_creates_a_daemon_set_manages_the_generation_of_its_template() -> None:
    store = Store()
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "a", "namespace": "default"}
    made = store.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec}, manager="me")
    [entry] = made.metadata["managedFields"]
    assert entry["fieldsV1"]["f:metadata"]["f:annotations"] == {
        ".": {},
        "f:deprecated.daemonset.template.generation": {},
    }
    assert made.annotations == {"deprecated.daemonset.template.generation": "1"}
