"""Workload and PodGroup: served by a version that has them, checked as it checks them, unknown to others."""

from typing import Any

import pytest

from kschedd.config.kube_versions import V1_34, V1_36
from kschedd.store.errors import ApiError, Invalid, NoMatch
from kschedd.store.store import Store

Raw = dict[str, Any]


def store(*, gated: bool = True) -> Store:
    rules = V1_36.rules if gated else V1_36.rules.under({"GenericWorkload": False, "GangScheduling": False})
    return Store(rules=rules)


def group(**spec: Any) -> Raw:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": spec,
    }


def workload(**spec: Any) -> Raw:
    return {**group(**spec), "kind": "Workload"}


GANG = {"gang": {"minCount": 2}}
TEMPLATE = {"name": "workers", "schedulingPolicy": GANG}


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(group(schedulingPolicy=GANG), id="a-gang"),
        pytest.param(group(schedulingPolicy={"basic": {}}), id="a-basic-group"),
        pytest.param(
            group(
                schedulingPolicy=GANG,
                podGroupTemplateRef={"workload": {"workloadName": "w", "podGroupTemplateName": "workers"}},
            ),
            id="of-a-template",
        ),
        pytest.param(workload(podGroupTemplates=[TEMPLATE]), id="a-workload"),
        pytest.param(
            workload(podGroupTemplates=[TEMPLATE], controllerRef={"apiGroup": "batch", "kind": "Job", "name": "train"}),
            id="of-a-controller",
        ),
    ],
)
def test_kept_as_they_are(made: Raw) -> None:
    kept = store().create(made)
    assert kept.spec == made["spec"]


@pytest.mark.parametrize(
    ("made", "field", "why"),
    [
        pytest.param(group(), "spec.schedulingPolicy", "Required value", id="without-a-policy"),
        pytest.param(
            group(schedulingPolicy={}),
            "spec.schedulingPolicy",
            "must specify one of: `basic`, `gang`",
            id="with-no-policy-in-it",
        ),
        pytest.param(
            group(schedulingPolicy={**GANG, "basic": {}}),
            "spec.schedulingPolicy",
            "must specify exactly one of: `basic`, `gang`",
            id="with-two-policies",
        ),
        pytest.param(
            group(schedulingPolicy={"gang": {"minCount": 0}}),
            "spec.schedulingPolicy.gang.minCount",
            "should be greater than or equal to 1",
            id="of-no-pods",
        ),
        pytest.param(workload(), "spec.podGroupTemplates", "Required value", id="a-workload-without-templates"),
        pytest.param(
            workload(podGroupTemplates=[{**TEMPLATE, "name": f"t{number}"} for number in range(9)]),
            "spec.podGroupTemplates",
            "must have at most 8 items",
            id="a-workload-with-too-many",
        ),
        pytest.param(
            workload(podGroupTemplates=[TEMPLATE, TEMPLATE]),
            "spec.podGroupTemplates[1]",
            "Duplicate value",
            id="two-templates-of-one-name",
        ),
    ],
)
def test_refused(made: Raw, field: str, why: str) -> None:
    with pytest.raises(Invalid) as refused:
        store().create(made)
    assert field in str(refused.value)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("made", "changed"),
    [
        pytest.param(group(schedulingPolicy=GANG), {"schedulingPolicy": {"gang": {"minCount": 3}}}, id="policy"),
        pytest.param(
            workload(podGroupTemplates=[TEMPLATE]),
            {"podGroupTemplates": [{**TEMPLATE, "name": "other"}]},
            id="templates",
        ),
    ],
)
def test_what_they_ask_for_never_changes(made: Raw, changed: Raw) -> None:
    cluster = store()
    kept = cluster.create(made)
    with pytest.raises(ApiError, match="field is immutable"):
        cluster.update({**kept.raw, "spec": changed})


def test_a_status_is_written_by_its_subresource_only() -> None:
    cluster = store()
    kept = cluster.create({**group(schedulingPolicy=GANG), "status": {"conditions": []}})
    assert "status" not in kept.raw
    condition = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled", "message": ""}
    cluster.patch_status("PodGroup.scheduling.k8s.io", "default", "g", {"conditions": [condition]})
    assert cluster.get("PodGroup.scheduling.k8s.io", "default", "g").status["conditions"][0]["status"] == "True"


@pytest.mark.parametrize("rules", [V1_34.rules, store(gated=False).rules], ids=["1.34", "1.36-with-the-gates-off"])
def test_unknown_where_the_gate_is_off(rules: Any) -> None:
    with pytest.raises(NoMatch):
        Store(rules=rules).create(group(schedulingPolicy=GANG), as_client=True)


def test_a_pod_names_its_group_only_where_there_are_groups() -> None:
    pod: Raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c", "image": "i"}]},
    }
    with pytest.raises(Invalid, match=r"spec\.schedulingGroup\.podGroupName: Invalid value"):
        store().create({**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": "G_1"}}})
    with pytest.raises(Invalid, match=r"spec\.schedulingGroup: Invalid value: .*must specify one of: `podGroupName`"):
        store().create({**pod, "spec": {**pod["spec"], "schedulingGroup": {}}})
    assert store().create(pod).spec["schedulingGroup"] == {"podGroupName": "g"}
    assert "schedulingGroup" not in store(gated=False).create(pod).spec


@pytest.mark.parametrize("gated", [True, False])
def test_pod_templates_likewise(*, gated: bool) -> None:
    spec = {"schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c", "image": "i"}]}
    labels = {"app": "x"}
    raw = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }
    kept = store(gated=gated).create(raw).spec["template"]["spec"]
    assert ("schedulingGroup" in kept) is gated
