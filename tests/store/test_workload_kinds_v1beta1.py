"""Tests of Workload and PodGroup of 1.37: versions, validation, mutable fields, and a group's priority."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_36, V1_37
from kschedd.store.errors import Invalid, NoMatch, Unadmitted
from kschedd.store.store import Store

Raw = dict[str, Any]

GANG = {"gang": {"minCount": 2}}
TEMPLATE = {"name": "workers", "schedulingPolicy": GANG}
HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
GROUP, WORKLOAD = "PodGroup.scheduling.k8s.io", "Workload.scheduling.k8s.io"


def store(*, domains: bool = False) -> Store:
    found = Store(rules=V1_37.rules.under({"GenericWorkload": True, "TopologyAwareWorkloadScheduling": domains}))
    found.create(HIGH)
    return found


def group(version: str = "v1beta1", **spec: Any) -> Raw:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": GANG, **spec},
    }


def workload(*templates: Raw, **spec: Any) -> Raw:
    return {**group(), "kind": "Workload", "spec": {"podGroupTemplates": [*templates], **spec}}


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
def test_both_versions_are_served(version: str) -> None:
    assert store().create(group(version), as_client=True).spec["schedulingPolicy"] == GANG


def test_each_release_has_its_own_versions() -> None:
    with pytest.raises(NoMatch, match=r"served in scheduling.k8s.io/v1beta1 and scheduling.k8s.io/v1alpha3"):
        store().create(group("v1alpha2"), as_client=True)
    older = Store(rules=V1_36.rules.under({"GenericWorkload": True, "GangScheduling": True}))
    with pytest.raises(NoMatch, match=r"served in scheduling.k8s.io/v1alpha2"):
        older.create(group(), as_client=True)


def test_its_priority_comes_from_its_class() -> None:
    kept = store().create(group(priorityClassName="high", disruptionMode={"all": {}}))
    assert kept.spec == {
        "schedulingPolicy": GANG,
        "priorityClassName": "high",
        "priority": 10,
        "disruptionMode": {"all": {}},
    }
    assert store().create(group()).spec["priority"] == 0


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        ({"priority": 7}, r"priority set in the pod group \(7\) must match the priority computed \(0\)"),
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
    ],
)
def test_another_priority_is_refused(spec: Raw, answer: str) -> None:
    with pytest.raises(Unadmitted, match=f'podgroups "g" is forbidden: {answer}'):
        store().create(group(**spec))


def test_fields_of_gates_that_are_off_are_dropped() -> None:
    kept = store().create(group(preemptionPolicy="Never", schedulingConstraints={"topology": [{"key": "rack"}]}))
    assert kept.spec == {"schedulingPolicy": GANG, "priority": 0}


ZONE = {"topology": [{"key": "topology.kubernetes.io/zone"}]}


def test_topology_constraints_are_kept_with_their_gate_and_do_not_change() -> None:
    cluster = store(domains=True)
    assert cluster.create(group(schedulingConstraints=ZONE)).spec["schedulingConstraints"] == ZONE
    template = {**TEMPLATE, "schedulingConstraints": ZONE}
    assert cluster.create(workload(template)).spec["podGroupTemplates"] == [template]
    with pytest.raises(Invalid) as refused:
        cluster.merge_patch(GROUP, "default", "g", {"spec": {"schedulingConstraints": None}})
    assert str(refused.value) == f'{GROUP} "g" is invalid: spec.schedulingConstraints: {IMMUTABLE}'


@pytest.mark.parametrize(
    ("constraints", "answer"),
    [
        ([{"key": "a"}, {"key": "b"}], ": Too many: 2: must have at most 1 item"),
        ([{}], "[0].key: Required value"),
        ([{"key": "a b"}], '[0].key: Invalid value: "a b": name part must consist of'),
    ],
)
def test_a_topology_constraint_is_one_label(constraints: list[Raw], answer: str) -> None:
    with pytest.raises(Invalid) as refused:
        store(domains=True).create(group(schedulingConstraints={"topology": constraints}))
    assert f"spec.schedulingConstraints.topology{answer}" in str(refused.value)


ONE_MODE = 'spec.disruptionMode: Invalid value: "{`single`, `all`}": must specify exactly one of: `single`, `all`'
NO_TEMPLATES = 'spec: Invalid value: "": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`'
PRIORITIES = "spec: Invalid value: null: detected multiple priority configurations"


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        pytest.param(group(disruptionMode={"single": {}, "all": {}}), ONE_MODE, id="two-modes"),
        pytest.param(group(workloadRef={}), "[spec.workloadRef.workloadName: Required value", id="of-no-workload"),
        pytest.param(
            group(priority=2_000_000_000),
            "spec.priority: Invalid value: 2000000000: must be less than or equal to 1000000000",
            id="more-than-the-highest-priority",
        ),
        pytest.param(workload(), NO_TEMPLATES, id="a-workload-without-templates"),
        pytest.param(workload(TEMPLATE, {**TEMPLATE, "name": "b", "priority": 3}), PRIORITIES, id="two-priorities"),
        pytest.param(
            workload(*({**TEMPLATE, "name": f"t{number}"} for number in range(9))),
            "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
            id="too-many-templates",
        ),
    ],
)
def test_refused_in_the_words_of_1_37(made: Raw, answer: str) -> None:
    with pytest.raises(Invalid) as refused:
        store().create(made)
    assert str(refused.value).startswith(f'{made["kind"]}.scheduling.k8s.io "g" is invalid: {answer}')


IMMUTABLE = "Invalid value: null: field is immutable"
POLICY = "spec.schedulingPolicy"


@pytest.mark.parametrize(
    ("changed", "answer"),
    [
        pytest.param({"priority": 3}, f"spec.priority: {IMMUTABLE}", id="priority"),
        pytest.param({"priorityClassName": ""}, f"spec.priorityClassName: {IMMUTABLE}", id="priority-class"),
        pytest.param({"disruptionMode": None}, f"spec.disruptionMode: {IMMUTABLE}", id="disruption-mode"),
        pytest.param({"workloadRef": None}, f"spec.workloadRef: {IMMUTABLE}", id="workload"),
        pytest.param(
            {"schedulingPolicy": {"basic": {}, "gang": None}},
            f"[{POLICY}.basic: {IMMUTABLE}, {POLICY}.gang: Invalid value: null: field cannot be cleared once set]",
            id="another-policy",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 0}}}, f"{POLICY}.gang.minCount: Required value", id="no-pods"
        ),
    ],
)
def test_of_a_group_only_min_count_may_change(changed: Raw, answer: str) -> None:
    cluster = store()
    reference = {"workloadName": "w", "templateName": "t"}
    cluster.create(group(priorityClassName="high", disruptionMode={"all": {}}, workloadRef=reference))
    kept = cluster.merge_patch(GROUP, "default", "g", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
    assert kept.spec["schedulingPolicy"] == {"gang": {"minCount": 3}}
    with pytest.raises(Invalid) as refused:
        cluster.merge_patch(GROUP, "default", "g", {"spec": changed})
    assert str(refused.value) == f'{GROUP} "g" is invalid: {answer}'


def test_templates_are_neither_added_nor_removed() -> None:
    cluster = store()
    cluster.create(workload(TEMPLATE))
    more = {**TEMPLATE, "schedulingPolicy": {"gang": {"minCount": 5}}}
    cluster.merge_patch(WORKLOAD, "default", "g", {"spec": {"podGroupTemplates": [more]}})
    with pytest.raises(Invalid) as refused:
        cluster.merge_patch(WORKLOAD, "default", "g", {"spec": {"podGroupTemplates": [{**TEMPLATE, "name": "b"}]}})
    added, removed = "[0]: Forbidden: item may not be added", ": Forbidden: item may not be removed"
    path = "spec.podGroupTemplates"
    assert str(refused.value) == f'{WORKLOAD} "g" is invalid: [{path}{added}, {path}{removed}]'
