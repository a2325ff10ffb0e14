"""Kinds of Kubernetes 1.36 and 1.37 that kschedd only stores and serves: admission policies, certificates, migrations.

Source: Kubernetes v1.37, api/admissionregistration/v1, api/certificates/v1 and api/storagemigration/v1 (types.go).
"""

from typing import Final

from kschedd.store.custom_resources.built_in_definitions import CONDITIONS, TEXT, Schema, definition, fields

_INTEGER: Final = {"type": "integer", "format": "int32"}
_TIME: Final = {"type": "string", "format": "date-time"}
_TEXTS: Final = {"type": "array", "items": TEXT}
_NO_SELECTOR: Final[dict[str, str]] = {}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


# -- admissionregistration.k8s.io ------------------------------------------------------------------------------------

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_SELECTOR: Final = fields(
    {
        "matchLabels": {"type": "object", "additionalProperties": TEXT},
        "matchExpressions": _list(fields({"key": TEXT, "operator": TEXT, "values": _TEXTS}, "key", "operator")),
    }
)
_RULES: Final = _list(
    fields(
        {
            **dict.fromkeys(("apiGroups", "apiVersions", "operations", "resourceNames", "resources"), _TEXTS),
            "scope": {**TEXT, "default": "*"},
        }
    )
)
_MATCH: Final = fields(
    {
        "excludeResourceRules": _RULES,
        "matchPolicy": {**TEXT, "default": "Equivalent"},
        "namespaceSelector": {**_SELECTOR, "default": _NO_SELECTOR},
        "objectSelector": {**_SELECTOR, "default": _NO_SELECTOR},
        "resourceRules": _RULES,
    }
)
_NAMED: Final = _list(fields({"name": TEXT, "expression": TEXT}))
_EXPRESSION: Final = fields({"expression": TEXT})
_MUTATION: Final = fields({"patchType": TEXT, "applyConfiguration": _EXPRESSION, "jsonPatch": _EXPRESSION}, "patchType")

MUTATING_POLICY: Final = definition(
    "MutatingAdmissionPolicy",
    "mutatingadmissionpolicies",
    _ADMISSION,
    fields(
        {
            "spec": fields(
                {
                    "paramKind": fields({"apiVersion": TEXT, "kind": TEXT}),
                    "matchConstraints": _MATCH,
                    "variables": _NAMED,
                    "mutations": _list(_MUTATION),
                    "failurePolicy": {**TEXT, "default": "Fail"},
                    "matchConditions": _NAMED,
                    "reinvocationPolicy": TEXT,
                }
            )
        }
    ),
    status=False,
    namespaced=False,
)
MUTATING_BINDING: Final = definition(
    "MutatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings",
    _ADMISSION,
    fields(
        {
            "spec": fields(
                {
                    "policyName": TEXT,
                    "paramRef": fields(
                        {"name": TEXT, "namespace": TEXT, "selector": _SELECTOR, "parameterNotFoundAction": TEXT}
                    ),
                    "matchResources": _MATCH,
                }
            )
        }
    ),
    status=False,
    namespaced=False,
)

# -- certificates.k8s.io ---------------------------------------------------------------------------------------------

_CERTIFICATES: Final = "certificates.k8s.io/v1"

TRUST_BUNDLE: Final = definition(
    "ClusterTrustBundle",
    "clustertrustbundles",
    _CERTIFICATES,
    fields({"spec": fields({"signerName": TEXT, "trustBundle": TEXT}, "trustBundle")}, "spec"),
    status=False,
    namespaced=False,
)
POD_CERTIFICATE: Final = definition(
    "PodCertificateRequest",
    "podcertificaterequests",
    _CERTIFICATES,
    fields(
        {
            "spec": fields(
                {
                    **dict.fromkeys(("signerName", "podName", "podUID", "serviceAccountName"), TEXT),
                    **dict.fromkeys(("serviceAccountUID", "nodeName", "nodeUID"), TEXT),
                    "maxExpirationSeconds": {**_INTEGER, "default": 86400},
                    "stubPKCS10Request": {"type": "string", "format": "byte"},
                    "unverifiedUserAnnotations": {"type": "object", "additionalProperties": TEXT},
                }
            ),
            "status": fields(
                {
                    "conditions": CONDITIONS,
                    "certificateChain": TEXT,
                    **dict.fromkeys(("notBefore", "beginRefreshAt", "notAfter"), _TIME),
                }
            ),
        },
        "spec",
    ),
    status=True,
)

# -- storagemigration.k8s.io -----------------------------------------------------------------------------------------

STORAGE_MIGRATION: Final = definition(
    "StorageVersionMigration",
    "storageversionmigrations",
    "storagemigration.k8s.io/v1",
    fields(
        {
            "spec": fields({"resource": fields({"group": TEXT, "resource": TEXT})}),
            "status": fields({"conditions": CONDITIONS, "resourceVersion": TEXT}),
        }
    ),
    status=True,
    namespaced=False,
)
