"""Workload and PodGroup of scheduling.k8s.io/v1alpha2: kinds that are served where the rule `pod_groups` holds.

The API server of 1.36 has them built in, behind the gate GenericWorkload. Here each is a definition
(`built_in_definitions`); `validation_pod_groups` validates their values.

Fields of gates that are off are left out: topology constraints, claims, disruption mode and priority of a group.

Source: Kubernetes v1.36, api/scheduling/v1alpha2/types.go; apis/scheduling/v1alpha2/zz_generated.validations.go.
"""

from typing import Any, Final

from kschedd.store.custom_resources.built_in_definitions import AGE, CONDITIONS, TEXT, Schema, definition, fields

API_VERSION: Final = "scheduling.k8s.io/v1alpha2"


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
_POD_GROUP: Final = fields(
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
_WORKLOAD: Final = fields(
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

_SCHEDULED: Final = '.status.conditions[?(@.type=="PodGroupScheduled")]'


WORKLOAD: Final = definition("Workload", "workloads", API_VERSION, _WORKLOAD, [AGE], status=False)
POD_GROUP: Final = definition(
    "PodGroup",
    "podgroups",
    API_VERSION,
    _POD_GROUP,
    [
        {"name": "MinCount", "type": "integer", "jsonPath": ".spec.schedulingPolicy.gang.minCount"},
        {"name": "Scheduled", "type": "string", "jsonPath": f"{_SCHEDULED}.status"},
        {"name": "Reason", "type": "string", "jsonPath": f"{_SCHEDULED}.reason"},
        AGE,
    ],
    status=True,
)
