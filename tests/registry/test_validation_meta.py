"""Tests of upstream's rules for metadata (objectmeta.go and its callers) that each concern few objects."""

from typing import Any

import pytest

from kschedd.api.schemas.fields import FieldError
from kschedd.registry.validation import default_and_validate, validate_updated
from kschedd.registry.validation_times import updated_faults
from kschedd.registry.validation_update import validate_meta_update
from tests.api.objects import Raw, named, pod, workload

OWNER = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1"}
OWNERS = "metadata.ownerReferences"
STANDARD = "name is neither a standard finalizer name nor is it fully qualified"


def answer(raw: Raw, **meta: Any) -> list[str]:
    return [str(fault) for fault in default_and_validate({**raw, "metadata": {**raw["metadata"], **meta}}).faults]


@pytest.mark.parametrize(
    ("owner", "faults"),
    [
        ({"apiVersion": "apps/"}, [f'{OWNERS}.apiVersion: Invalid value: "apps/": version must not be empty']),
        ({"apiVersion": "a/b/c"}, [f'{OWNERS}.apiVersion: Invalid value: "a/b/c": version must not be empty']),
        ({"apiVersion": "events.k8s.io/v1", "kind": "Event"}, []),
        (
            {"kind": "Event", "controller": False},
            [
                f'{OWNERS}: Invalid value: {{"apiVersion":"v1","kind":"Event","name":"x","uid":"1",'
                '"controller":false}: '
                "/v1, Kind=Event is disallowed from being an owner"
            ],
        ),
    ],
)
def test_an_owner_has_a_version_and_is_no_event(owner: Raw, faults: list[str]) -> None:
    assert answer(pod(), ownerReferences=[{**OWNER, **owner}]) == faults


def test_every_controller_but_the_first_is_one_too_many_and_all_owners_are_shown() -> None:
    owners = [{**OWNER, "name": name, "uid": name, "controller": True} for name in "ab"]
    (fault,) = answer(pod(), ownerReferences=owners)
    assert fault == (
        f'{OWNERS}: Invalid value: [{{"apiVersion":"v1","kind":"X","name":"a","uid":"a","controller":true}},'
        '{"apiVersion":"v1","kind":"X","name":"b","uid":"b","controller":true}]: '
        'Only one reference can have Controller set to true. Found "true" in references for X/a and X/b'
    )
    assert len(answer(pod(), ownerReferences=[*owners, {**owners[0], "uid": "c"}])) == 2


def test_finalizers_of_leases_and_runtime_classes_need_not_be_standard() -> None:
    assert answer(named("Lease", "coordination.k8s.io/v1"), finalizers=["mine"]) == []
    assert answer(named("RuntimeClass", "node.k8s.io/v1", handler="h"), finalizers=["mine"]) == []
    assert answer(named("ConfigMap"), finalizers=["mine"]) == [
        f'metadata.finalizers[0]: Invalid value: "mine": {STANDARD}'
    ]


def test_a_budgets_metadata_is_looked_at_when_nothing_else_is_wrong() -> None:
    budget = named("PodDisruptionBudget", "policy/v1", spec={"minAvailable": -1})
    assert answer(budget, labels={"-": ""}) == [
        "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"
    ]
    assert answer({**budget, "spec": {}}, labels={"-": ""})


def test_what_names_are_made_from_may_be_of_any_form_in_an_update_of_most_kinds() -> None:
    for raw, faults in ((named("PriorityClass", "scheduling.k8s.io/v1"), False), (named("ConfigMap"), True)):
        raw["metadata"] |= {"generateName": "No Name"} | ({"namespace": "d"} if raw["kind"] == "ConfigMap" else {})
        assert bool(validate_updated(raw, [])) is faults
    raw = named("PriorityClass", "scheduling.k8s.io/v1")
    raw["metadata"]["generateName"] = "a/b"
    (fault,) = validate_updated(raw, [])
    assert str(fault) == "metadata.generateName: Invalid value: \"a/b\": may not contain '/'"


@pytest.mark.parametrize(
    ("old", "given", "faults"),
    [
        ({}, {"deletionGracePeriodSeconds": 3}, ["metadata.deletionGracePeriodSeconds: Invalid value: 3"]),
        (
            {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 30},
            {"deletionTimestamp": "u", "deletionGracePeriodSeconds": 3},
            ["metadata.deletionGracePeriodSeconds: Invalid value: 3"],
        ),
        ({"deletionTimestamp": "t", "deletionGracePeriodSeconds": 30}, {"deletionGracePeriodSeconds": 30}, []),
        (
            {"deletionTimestamp": "t", "finalizers": ["z/z"]},
            {"finalizers": ["c/c", "b/b", "z/z", "c/c"]},
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
                'found new finalizers []string{"b/b", "c/c"}'
            ],
        ),
    ],
)
def test_what_a_deletion_set_stays(old: Raw, given: Raw, faults: list[str]) -> None:
    found = [str(fault) for fault in validate_meta_update(old, given)]
    assert len(found) == len(faults)
    assert all(text.startswith(begin) for text, begin in zip(found, faults, strict=True)), found


def test_a_system_priority_class_is_no_default() -> None:
    item = named("PriorityClass", "scheduling.k8s.io/v1", value=2_000_001_000, globalDefault=True)
    (fault,) = answer(item, name="system-node-critical")
    assert fault.endswith("error: globalDefault of system-node-critical PriorityClass must be false")


def test_a_stateful_set_with_a_name_of_former_times_can_be_changed() -> None:
    done = default_and_validate(workload("StatefulSet"))
    assert done.faults == ()
    raw = {**done.raw, "metadata": {**done.raw["metadata"], "name": "a.b"}}
    assert validate_updated(raw, []) == []


@pytest.mark.parametrize(
    ("kind", "times"),
    [("PersistentVolume", 2), ("LimitRange", 1), ("PersistentVolumeClaim", 3), ("ConfigMap", 2), ("ResourceQuota", 1)],
)
def test_a_finalizer_that_is_not_standard_is_told_by_the_kinds_own_rules_only(kind: str, times: int) -> None:
    """Check the number of faults that kube-apiserver 1.34.9 reports for a PUT.

    Kinds whose metadata changes are not validated report one fault less.
    """
    why, other = FieldError("metadata.finalizers[0]", "a", STANDARD), FieldError("metadata.labels", "b", "no")
    assert updated_faults(kind, [why], [], []).count(why) == times
    assert updated_faults(kind, [why, other], [], [])[0] is other
