"""Tests of Workload and PodGroup in the versions that serve them; other versions do not know them."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_34, V1_36
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


def gang(least: int) -> Raw:
    return group(schedulingPolicy={"gang": {"minCount": least}})


def of_template(workload_name: str, template: str) -> Raw:
    named = {"workloadName": workload_name, "podGroupTemplateName": template}
    return group(schedulingPolicy=GANG, podGroupTemplateRef={"workload": named})


def controlled(**controller: Any) -> Raw:
    return workload(podGroupTemplates=[TEMPLATE], controllerRef=controller)


def templates(*given: Raw) -> Raw:
    return workload(podGroupTemplates=[*given])


ONE_OF = 'Invalid value: "": must specify one of: `basic`, `gang`'
BOTH = 'Invalid value: "{`basic`, `gang`}": must specify exactly one of: `basic`, `gang`'


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        pytest.param(group(), f"spec.schedulingPolicy: {ONE_OF}", id="without-a-policy"),
        pytest.param(group(schedulingPolicy={}), f"spec.schedulingPolicy: {ONE_OF}", id="with-no-policy-in-it"),
        pytest.param(
            group(schedulingPolicy={**GANG, "basic": {}}), f"spec.schedulingPolicy: {BOTH}", id="with-two-policies"
        ),
        pytest.param(gang(0), "spec.schedulingPolicy.gang.minCount: Required value", id="of-no-pods"),
        pytest.param(
            gang(-1),
            "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
            id="of-fewer-than-no-pods",
        ),
        pytest.param(
            of_template("", "t"), "spec.podGroupTemplateRef.workload.workloadName: Required value", id="of-no-workload"
        ),
        pytest.param(
            of_template("w", "T"),
            'spec.podGroupTemplateRef.workload.podGroupTemplateName: Invalid value: "T": a lowercase RFC 1123 label',
            id="of-a-template-with-a-wrong-name",
        ),
        pytest.param(
            group(schedulingPolicy=GANG, podGroupTemplateRef={}),
            'spec.podGroupTemplateRef: Invalid value: "": must specify one of: `workload`',
            id="of-nothing",
        ),
        pytest.param(
            workload(), "spec.podGroupTemplates: Required value: must have at least one item", id="without-templates"
        ),
        pytest.param(
            templates(*({**TEMPLATE, "name": f"t{number}"} for number in range(9))),
            "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
            id="with-too-many",
        ),
        pytest.param(
            templates(TEMPLATE, TEMPLATE), "spec.podGroupTemplates[1]: Duplicate value", id="two-templates-of-one-name"
        ),
        pytest.param(
            templates({"schedulingPolicy": GANG}), "spec.podGroupTemplates[0].name: Required value", id="without-a-name"
        ),
        pytest.param(
            templates({"name": "a", "schedulingPolicy": {}}),
            f"spec.podGroupTemplates[0].schedulingPolicy: {ONE_OF}",
            id="a-template-without-a-policy",
        ),
        pytest.param(
            controlled(kind="Job", name="a/b"),
            "spec.controllerRef.name: Invalid value: \"a/b\": may not contain '/'",
            id="a-controller-with-a-path",
        ),
        pytest.param(controlled(name="a"), "spec.controllerRef.kind: Required value", id="a-controller-of-no-kind"),
        pytest.param(
            controlled(kind="Job", name="a", apiGroup="Batch"),
            'spec.controllerRef.apiGroup: Invalid value: "Batch": a lowercase RFC 1123 subdomain',
            id="of-a-wrong-group",
        ),
    ],
)
def test_refused_in_the_words_of_1_36(made: Raw, answer: str) -> None:
    with pytest.raises(Invalid) as refused:
        store().create(made)
    assert str(refused.value).startswith(f'{made["kind"]}.scheduling.k8s.io "g" is invalid: {answer}')


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
