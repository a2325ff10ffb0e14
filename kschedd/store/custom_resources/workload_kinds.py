"""The kinds Workload and PodGroup of scheduling.k8s.io, served in versions with one of the features `groups_of_...`.

Workload and PodGroup are built into kube-apiserver, behind the gate GenericWorkload: v1alpha2 in 1.36; v1beta1 (the
storage version) and v1alpha3 since 1.37. In kschedd each kind is a definition (`built_in_definitions`).
`registry.workloads.pod_groups` and `pod_groups_v1beta1` validate the values; in v1beta1 they also check immutable
fields.

Fields that belong to disabled feature gates are omitted: a group's claims, preemption policy and parent; its topology
constraints without the feature groups_in_domains; and in v1alpha2 also its disruption mode and priority.

Source: Kubernetes v1.36, api/scheduling/v1alpha2/types.go; apis/scheduling/v1alpha2/zz_generated.validations.go;
Kubernetes v1.37, api/scheduling/v1beta1/types.go; registry/scheduling/podgroup/strategy.go.
"""

from typing import Any, Final

from kschedd.store.custom_resources.built_in_definitions import CONDITIONS, TEXT, Schema, definition, fields

API_VERSION: Final = "scheduling.k8s.io/v1beta1"
_V1ALPHA2: Final = "scheduling.k8s.io/v1alpha2"


def _unchanging(schema: Schema) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]}


_POLICY: Final = fields(
    {
        "basic": fields({}),
        "gang": fields({"minCount": {"type": "integer", "format": "int32"}}),
    }
)
_TEMPLATE_REF: Final = fields(
    {
        "workload": fields(
            {"workloadName": TEXT, "podGroupTemplateName": TEXT},
        )
    },
)
_POD_GROUP_V1ALPHA2: Final = fields(
    {
        "spec": fields(
            {"podGroupTemplateRef": _TEMPLATE_REF, "schedulingPolicy": _POLICY},
            **{"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]},
        ),
        "status": fields(
            {
                "conditions": CONDITIONS,
            }
        ),
    }
)
_WORKLOAD_V1ALPHA2: Final = fields(
    {
        "spec": fields(
            {
                "controllerRef": _unchanging(fields({"apiGroup": TEXT, "kind": TEXT, "name": TEXT})),
                "podGroupTemplates": _unchanging(
                    {
                        "type": "array",
                        "items": fields({"name": TEXT, "schedulingPolicy": _POLICY}),
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                    }
                ),
            },
        )
    }
)

_COUNT: Final = {"type": "integer", "format": "int32"}
_DISRUPTIONS: Final = {
    "disruptionMode": fields({"single": fields({}), "all": fields({})}),
    "priorityClassName": TEXT,
    "priority": _COUNT,
}
_CONSTRAINTS: Final = {"schedulingConstraints": fields({"topology": {"type": "array", "items": fields({"key": TEXT})}})}


def _pod_group(more: Schema) -> Schema:
    """Return the schema of PodGroups.

    `more` contains fields behind further gates, which PodGroups and their templates share.
    """
    reference = fields({"workloadName": TEXT, "templateName": TEXT})
    spec = fields({"workloadRef": reference, "schedulingPolicy": _POLICY, **_DISRUPTIONS, **more})
    return fields({"spec": spec, "status": fields({"conditions": CONDITIONS})})


def _workload(more: Schema) -> Schema:
    """Return the schema of Workloads."""
    templates = {
        "type": "array",
        "items": fields({"name": TEXT, "schedulingPolicy": _POLICY, **_DISRUPTIONS, **more}),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    controller = fields({"apiGroup": TEXT, "kind": TEXT, "name": TEXT})
    return fields({"spec": fields({"controllerRef": controller, "podGroupTemplates": templates})})


WORKLOAD_V1ALPHA2: Final = definition("Workload", "workloads", _V1ALPHA2, _WORKLOAD_V1ALPHA2, status=False)
POD_GROUP_V1ALPHA2: Final = definition("PodGroup", "podgroups", _V1ALPHA2, _POD_GROUP_V1ALPHA2, status=True)
WORKLOAD, WORKLOAD_IN_DOMAINS = (
    definition("Workload", "workloads", API_VERSION, _workload(more), status=False, also=["v1alpha3"])
    for more in ({}, _CONSTRAINTS)
)
POD_GROUP, POD_GROUP_IN_DOMAINS = (
    definition("PodGroup", "podgroups", API_VERSION, _pod_group(more), status=True, also=["v1alpha3"])
    for more in ({}, _CONSTRAINTS)
)
