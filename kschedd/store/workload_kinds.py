"""Workload and PodGroup of scheduling.k8s.io/v1alpha2: kinds that are served where the rule `pod_groups` holds.

The API server of 1.36 has them built in, behind the gate GenericWorkload. Here each is a definition, as of a custom
resource, that is in no list: so a version without the rule knows nothing of them, and one with it checks, stores,
shows and serves them as it does custom resources. What their fields may be is said by their schemas; the words of a
refusal are those of a custom resource.

Fields of gates that are off are left out: topology constraints, claims, disruption mode and priority of a group.

Source: Kubernetes v1.36, api/scheduling/v1alpha2/types.go; apis/scheduling/v1alpha2/zz_generated.validations.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.objects import Object

GROUP: Final = "scheduling.k8s.io"
VERSION: Final = "v1alpha2"

Schema = Mapping[str, Any]

_LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_LABEL_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 63, "pattern": _LABEL}
_SEGMENT: Final = {"type": "string", "minLength": 1, "pattern": "^[^/%]+$"}


def _unchanging(schema: Schema) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]}


def _object(properties: Schema, *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {}), **more}


_POLICY: Final = _object(
    {
        "basic": _object({}),
        "gang": _object({"minCount": {"type": "integer", "format": "int32", "minimum": 1}}, "minCount"),
    },
    **{
        "x-kubernetes-validations": [
            {"rule": "has(self.basic) || has(self.gang)", "message": "must specify one of: `basic`, `gang`"},
            {
                "rule": "!(has(self.basic) && has(self.gang))",
                "message": "must specify exactly one of: `basic`, `gang`",
            },
        ]
    },
)
_TEMPLATE_REF: Final = _object(
    {
        "workload": _object(
            {"workloadName": {**_LABEL_NAME, "maxLength": 253}, "podGroupTemplateName": _LABEL_NAME},
            "workloadName",
            "podGroupTemplateName",
        )
    },
    "workload",
)
_CONDITION: Final = _object(
    {
        "type": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "reason": {"type": "string"},
        "message": {"type": "string"},
    },
    "type",
    "status",
)
_POD_GROUP: Final = _object(
    {
        "spec": _object(
            {"podGroupTemplateRef": _TEMPLATE_REF, "schedulingPolicy": _POLICY},
            "schedulingPolicy",
            **{"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]},
        ),
        "status": _object(
            {
                "conditions": {
                    "type": "array",
                    "items": _CONDITION,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                }
            }
        ),
    },
    "spec",
)
_WORKLOAD: Final = _object(
    {
        "spec": _object(
            {
                "controllerRef": _unchanging(
                    _object({"apiGroup": {"type": "string"}, "kind": _SEGMENT, "name": _SEGMENT}, "kind", "name")
                ),
                "podGroupTemplates": _unchanging(
                    {
                        "type": "array",
                        "maxItems": 8,
                        "minItems": 1,
                        "items": _object(
                            {"name": _LABEL_NAME, "schedulingPolicy": _POLICY}, "name", "schedulingPolicy"
                        ),
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                    }
                ),
            },
            "podGroupTemplates",
        )
    },
    "spec",
)

_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_SCHEDULED: Final = '.status.conditions[?(@.type=="PodGroupScheduled")]'


def _definition(kind: str, plural: str, schema: Schema, columns: list[Schema], *, status: bool) -> Object:
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
        "additionalPrinterColumns": columns,
        **({"subresources": {"status": {}}} if status else {}),
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    return Object.from_raw(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": spec,
        }
    )


DEFINITIONS: Final = (
    _definition("Workload", "workloads", _WORKLOAD, [_AGE], status=False),
    _definition(
        "PodGroup",
        "podgroups",
        _POD_GROUP,
        [
            {"name": "MinCount", "type": "integer", "jsonPath": ".spec.schedulingPolicy.gang.minCount"},
            {"name": "Scheduled", "type": "string", "jsonPath": f"{_SCHEDULED}.status"},
            {"name": "Reason", "type": "string", "jsonPath": f"{_SCHEDULED}.reason"},
            _AGE,
        ],
        status=True,
    ),
)
"""Both, as definitions that nobody made."""
