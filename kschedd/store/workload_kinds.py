"""Workload and PodGroup of scheduling.k8s.io/v1alpha2: kinds that are served where the rule `pod_groups` holds.

The API server of 1.36 has them built in, behind the gate GenericWorkload. Here each is a definition, as of a custom
resource, that is in no list: so a version without the rule knows nothing of them, and one with it checks, stores,
shows and serves them as it does custom resources. Of which types their fields are is said by their schemas, and
refused in the words of a custom resource; what they may be is refused in upstream's (`validation_pod_groups`).

Fields of gates that are off are left out: topology constraints, claims, disruption mode and priority of a group.

Source: Kubernetes v1.36, api/scheduling/v1alpha2/types.go; apis/scheduling/v1alpha2/zz_generated.validations.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.fields import FieldError
from kschedd.api.objects import Object
from kschedd.registry.validation_pod_groups import validate_pod_group, validate_workload

GROUP: Final = "scheduling.k8s.io"
VERSION: Final = "v1alpha2"

Schema = Mapping[str, Any]

_TEXT: Final = {"type": "string"}


def _unchanging(schema: Schema) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]}


def _object(properties: Schema, *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {}), **more}


_POLICY: Final = _object(
    {
        "basic": _object({}),
        "gang": _object({"minCount": {"type": "integer", "format": "int32"}}),
    }
)
_TEMPLATE_REF: Final = _object(
    {
        "workload": _object(
            {"workloadName": _TEXT, "podGroupTemplateName": _TEXT},
        )
    },
)
CONDITION: Final = _object(
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
            **{"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]},
        ),
        "status": _object(
            {
                "conditions": {
                    "type": "array",
                    "items": CONDITION,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                }
            }
        ),
    }
)
_WORKLOAD: Final = _object(
    {
        "spec": _object(
            {
                "controllerRef": _unchanging(_object({"apiGroup": _TEXT, "kind": _TEXT, "name": _TEXT})),
                "podGroupTemplates": _unchanging(
                    {
                        "type": "array",
                        "items": _object({"name": _TEXT, "schedulingPolicy": _POLICY}),
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                    }
                ),
            },
        )
    }
)

AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_SCHEDULED: Final = '.status.conditions[?(@.type=="PodGroupScheduled")]'


def definition_of(
    kind: str,
    plural: str,
    schema: Schema,
    columns: list[Schema],
    *,
    status: bool,
    group_version: tuple[str, str] = (GROUP, VERSION),
    scope: str = "Namespaced",
) -> Object:
    """Return a definition that nobody made, of one version."""
    group, name = group_version
    version = {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
        "additionalPrinterColumns": columns,
        **({"subresources": {"status": {}}} if status else {}),
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    spec = {"group": group, "scope": scope, "names": names, "versions": [version]}
    return Object.from_raw(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": spec,
        }
    )


DEFINITIONS: Final = (
    definition_of("Workload", "workloads", _WORKLOAD, [AGE], status=False),
    definition_of(
        "PodGroup",
        "podgroups",
        _POD_GROUP,
        [
            {"name": "MinCount", "type": "integer", "jsonPath": ".spec.schedulingPolicy.gang.minCount"},
            {"name": "Scheduled", "type": "string", "jsonPath": f"{_SCHEDULED}.status"},
            {"name": "Reason", "type": "string", "jsonPath": f"{_SCHEDULED}.reason"},
            AGE,
        ],
        status=True,
    ),
)
"""Both, as definitions that nobody made."""


def spec_faults(definition: Object, raw: Mapping[str, Any]) -> list[FieldError]:
    """What is wrong with the spec of an object of one of these definitions; nothing of any other."""
    if not any(definition is one for one in DEFINITIONS):
        return []
    spec = raw.get("spec") or {}
    return validate_pod_group(spec) if raw.get("kind") == "PodGroup" else validate_workload(spec)
