"""A conversation with an API server: requests that a real kube-apiserver and a daemon must answer alike."""

import copy
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
PODS: Final = "/api/v1/namespaces/talk/pods"
MAPS: Final = "/api/v1/namespaces/talk/configmaps"
APPS: Final = "/apis/apps/v1/namespaces/talk/deployments"
WIDGETS: Final = "/apis/example.com/v1/namespaces/talk/widgets"
CONTAINER: Final[Mapping[str, Any]] = {"name": "c", "image": "nginx"}
#: Fields whose values differ between any two servers.
_VARYING: Final = frozenset(
    (
        *("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields", "time"),
        *("lastTransitionTime", "clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"),
    )
)
_AGE: Final = re.compile(r"\d+[sm](\d+s)?")  # in a cell of a table
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@attrs.frozen
class Step:
    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"


@attrs.frozen
class ServerUnderTest:
    url: str
    token: str = ""
    authority: str | None = None  # CA certificate (PEM)

    def answer(self, step: Step) -> tuple[int, Any]:
        """Return the status and the decoded body without the fields that vary."""
        body = (
            None if step.body is None else step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
        )
        headers = {"Accept": step.accept, **({"Content-Type": step.content_type} if body is not None else {})}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url + step.path, body, headers, method=step.method)
        context = None if self.authority is None else ssl.create_default_context(cadata=self.authority)
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as refusal:
            status, text = refusal.code, refusal.read()
        try:
            return status, without_varying(json.loads(text))
        except ValueError:
            return status, text.decode(errors="replace")


def without_varying(value: Any) -> Any:
    if isinstance(value, dict):
        found = {key: without_varying(each) for key, each in value.items() if key not in _VARYING}
        if isinstance(found.get("cells"), list):
            found["cells"] = ["(age)" if _AGE.fullmatch(str(cell)) else cell for cell in found["cells"]]
        return found
    if isinstance(value, list):
        return [without_varying(each) for each in value]
    return _UID.sub("(uid)", value) if isinstance(value, str) else value


def pod(name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "talk", "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [CONTAINER], **spec}}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "talk"}, "data": data}


def deployment(name: str, replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [CONTAINER]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "talk"},
        "spec": spec,
    }


DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 9},
                                    "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                                    "parts": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                                },
                                "x-kubernetes-validations": [
                                    {"rule": "self.size < 9 || self.color == 'blue'", "message": "nine is blue"}
                                ],
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def widget(name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "talk"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": spec}


def steps() -> Iterator[tuple[str, Step]]:
    """Yield the requests in order, each with a name. `poll` steps are repeated until they are answered with 200."""
    yield "namespace", Step("POST", "/api/v1/namespaces", {"metadata": {"name": "talk"}})
    yield "create", Step("POST", MAPS, config_map("one", a="1"))
    yield "create-again", Step("POST", MAPS, config_map("one", a="2"))
    yield "create-elsewhere", Step("POST", "/api/v1/namespaces/other/configmaps", config_map("one", a="2"))
    yield "create-without-a-name", Step("POST", MAPS, {"metadata": {}})
    yield "create-with-a-bad-name", Step("POST", MAPS, {"metadata": {"name": "No_Name"}})
    yield (
        "create-of-another-kind",
        Step("POST", MAPS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}),
    )
    yield "create-of-no-json", Step("POST", MAPS, b"{no json")
    yield "create-of-another-type", Step("POST", MAPS, b"x", "text/plain")
    yield "create-with-a-wrong-field", Step("POST", MAPS, {"metadata": {"name": "w"}, "data": {"a": 1}})
    unknown = {"metadata": {"name": "w"}, "dat": {"a": "1"}}
    yield "create-with-an-unknown-field", Step("POST", MAPS + "?fieldValidation=Strict", unknown)
    yield "create-dry", Step("POST", MAPS + "?dryRun=All", config_map("dry", a="1"))
    yield "dry-is-not-there", Step("GET", MAPS + "/dry")
    yield "dry-run-of-some", Step("POST", MAPS + "?dryRun=Some", config_map("dry", a="1"))
    yield "get", Step("GET", MAPS + "/one")
    yield "get-as-a-table", Step("GET", MAPS + "/one", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    yield (
        "get-as-metadata",
        Step("GET", MAPS + "/one", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
    )
    yield "get-in-an-unknown-form", Step("GET", MAPS + "/one", accept="text/html")
    yield "not-found", Step("GET", MAPS + "/nothing")
    yield "no-such-resource", Step("GET", "/api/v1/namespaces/talk/configmap")
    yield "no-such-group", Step("GET", "/apis/nothing.example.com/v1")
    yield "no-such-method", Step("POST", MAPS + "/one", config_map("one"))
    yield "list-by-label", Step("GET", MAPS + "?labelSelector=a%3Db")
    yield "list-by-a-bad-label", Step("GET", MAPS + "?labelSelector=a%3D%3D%3Db")
    yield "list-by-a-bad-field", Step("GET", MAPS + "?fieldSelector=data.a%3D1")
    yield "list-with-a-bad-limit", Step("GET", MAPS + "?limit=x")
    yield "list-with-a-bad-token", Step("GET", MAPS + "?limit=1&continue=x")
    yield "merge", Step("PATCH", MAPS + "/one", {"data": {"b": "2", "a": None}}, MERGE)
    yield "merge-of-a-list", Step("PATCH", MAPS + "/one", [1], MERGE)
    yield "json-patch", Step("PATCH", MAPS + "/one", [{"op": "add", "path": "/data/c", "value": "3"}], JSON_PATCH)
    yield "json-patch-test", Step("PATCH", MAPS + "/one", [{"op": "test", "path": "/data/c", "value": "4"}], JSON_PATCH)
    yield "json-patch-of-nothing", Step("PATCH", MAPS + "/one", [{"op": "remove", "path": "/data/zz"}], JSON_PATCH)
    yield "patch-of-another-type", Step("PATCH", MAPS + "/one", {}, "application/json")
    yield "patch-of-nothing", Step("PATCH", MAPS + "/nothing", {}, MERGE)
    yield (
        "put-with-an-old-version",
        Step("PUT", MAPS + "/one", {**config_map("one", z="1"), "metadata": {"name": "one", "resourceVersion": "1"}}),
    )
    yield "put-of-another-name", Step("PUT", MAPS + "/one", config_map("two", z="1"))
    yield "put", Step("PUT", MAPS + "/one", config_map("one", z="1"))
    yield "put-a-new-one", Step("PUT", MAPS + "/new", config_map("new", z="1"))
    apply = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    yield "apply", Step("PATCH", MAPS + "/applied?fieldManager=me", apply, APPLY)
    yield "apply-without-a-manager", Step("PATCH", MAPS + "/applied", apply, APPLY)
    yield "apply-of-another", Step("PATCH", MAPS + "/applied?fieldManager=you", {**apply, "data": {"a": "2"}}, APPLY)
    yield (
        "apply-with-force",
        Step("PATCH", MAPS + "/applied?fieldManager=you&force=true", {**apply, "data": {"a": "2"}}, APPLY),
    )
    fixed = {**config_map("fixed", a="1"), "immutable": True}
    yield "immutable", Step("POST", MAPS, fixed)
    yield "immutable-changed", Step("PATCH", MAPS + "/fixed", {"data": {"a": "2"}}, MERGE)
    yield "pod", Step("POST", PODS, pod("p"))
    yield "pod-without-containers", Step("POST", PODS, pod("bad", containers=[]))
    yield "pod-with-two-of-a-name", Step("POST", PODS, pod("bad", containers=[CONTAINER, CONTAINER]))
    bad = {**CONTAINER, "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
    yield "pod-with-a-request-above-its-limit", Step("POST", PODS, pod("bad", containers=[bad]))
    bad = {**CONTAINER, "resources": {"requests": {"cpu": "x"}}}
    yield "pod-with-no-quantity", Step("POST", PODS, pod("bad", containers=[bad]))
    yield (
        "pod-with-a-bad-affinity",
        Step(
            "POST",
            PODS,
            pod("bad", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}),
        ),
    )
    yield "pod-with-a-bad-toleration", Step("POST", PODS, pod("bad", tolerations=[{"operator": "Near"}]))
    yield "pod-with-a-bad-spread", Step("POST", PODS, pod("bad", topologySpreadConstraints=[{"maxSkew": 0}]))
    yield "pod-with-a-missing-class", Step("POST", PODS, pod("bad", priorityClassName="gold"))
    yield "pod-changed", Step("PATCH", PODS + "/p", {"spec": {"nodeSelector": {"a": "b"}}}, MERGE)
    yield "pod-image", Step("PATCH", PODS + "/p", {"spec": {"containers": [{"name": "c", "image": "b"}]}}, STRATEGIC)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    yield "binding", Step("POST", PODS + "/p/binding", binding)
    yield "binding-again", Step("POST", PODS + "/p/binding", binding)
    yield "binding-of-nothing", Step("POST", PODS + "/nothing/binding", {**binding, "metadata": {"name": "nothing"}})
    yield (
        "ephemeral",
        Step(
            "PATCH",
            PODS + "/p/ephemeralcontainers",
            {"spec": {"ephemeralContainers": [{**CONTAINER, "name": "e"}]}},
            STRATEGIC,
        ),
    )
    yield "status", Step("PATCH", PODS + "/p/status", {"status": {"phase": "Running", "message": "m"}}, MERGE)
    yield "eviction", Step("POST", PODS + "/nothing/eviction", {"metadata": {"name": "nothing"}})
    yield "gates", Step("POST", PODS, pod("gated", schedulingGates=[{"name": "a/b"}]))
    yield "gates-added", Step("PATCH", PODS + "/gated", {"spec": {"schedulingGates": [{"name": "a/c"}]}}, MERGE)
    yield "gates-removed", Step("PATCH", PODS + "/gated", {"spec": {"schedulingGates": None}}, MERGE)
    yield "deployment", Step("POST", APPS, deployment("web", 2))
    mismatch = copy.deepcopy(deployment("bad", 2))
    mismatch["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    yield "deployment-with-another-selector", Step("POST", APPS, mismatch)
    yield "deployment-with-a-negative-count", Step("POST", APPS, deployment("bad", -1))
    yield "scale", Step("GET", APPS + "/web/scale")
    yield "scale-changed", Step("PATCH", APPS + "/web/scale", {"spec": {"replicas": 3}}, MERGE)
    yield "scale-negative", Step("PATCH", APPS + "/web/scale", {"spec": {"replicas": -3}}, MERGE)
    yield "selector-changed", Step("PATCH", APPS + "/web", {"spec": {"selector": {"matchLabels": {"app": "x"}}}}, MERGE)
    yield "definition", Step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    yield "poll: widgets", Step("GET", WIDGETS)
    yield "widget", Step("POST", WIDGETS, widget("w", size=3))
    yield "widget-too-large", Step("POST", WIDGETS, widget("x", size=30))
    yield "widget-without-a-size", Step("POST", WIDGETS, widget("x"))
    yield "widget-of-a-wrong-color", Step("POST", WIDGETS, widget("x", size=1, color="green"))
    yield "widget-of-a-wrong-type", Step("POST", WIDGETS, widget("x", size="1"))
    yield "widget-against-a-rule", Step("POST", WIDGETS, widget("x", size=9))
    yield "widget-with-many-parts", Step("POST", WIDGETS, widget("x", size=1, parts=["a", "b", "c"]))
    yield "widget-with-an-unknown-field", Step("POST", WIDGETS + "?fieldValidation=Strict", widget("x", size=1, q=1))
    yield "widget-as-a-table", Step("GET", WIDGETS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    yield "widget-status", Step("PATCH", WIDGETS + "/w/status", {"status": {"ok": True}, "spec": {"size": 5}}, MERGE)
    yield "widget-strategic", Step("PATCH", WIDGETS + "/w", {"spec": {"size": 5}}, STRATEGIC)
    service = {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}
    services = "/api/v1/namespaces/talk/services"
    yield "service", Step("POST", services, service)
    yield (
        "service-with-two-unnamed-ports",
        Step("POST", services, {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}, {"port": 81}]}}),
    )
    yield (
        "service-of-an-unknown-type",
        Step("POST", services, {"metadata": {"name": "x"}, "spec": {"type": "Far", "ports": [{"port": 80}]}}),
    )
    yield (
        "service-with-a-bad-port",
        Step("POST", services, {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 0}]}}),
    )
    yield "service-type-changed", Step("PATCH", services + "/s", {"spec": {"type": "NodePort"}}, MERGE)
    jobs = "/apis/batch/v1/namespaces/talk/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    yield (
        "job-that-restarts",
        Step("POST", jobs, {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": [CONTAINER]}}}}),
    )
    yield (
        "job-with-a-negative-limit",
        Step("POST", jobs, {"metadata": {"name": "x"}, "spec": {"backoffLimit": -1, "template": template}}),
    )
    yield (
        "cron-job-with-a-bad-schedule",
        Step(
            "POST",
            "/apis/batch/v1/namespaces/talk/cronjobs",
            {"metadata": {"name": "x"}, "spec": {"schedule": "never", "jobTemplate": {"spec": {"template": template}}}},
        ),
    )
    sets = "/apis/apps/v1/namespaces/talk/statefulsets"
    stateful = deployment("db", 2)
    stateful["kind"], stateful["spec"]["serviceName"] = "StatefulSet", "db"
    yield "stateful-set", Step("POST", sets, stateful)
    yield "stateful-set-changed", Step("PATCH", sets + "/db", {"spec": {"serviceName": "other"}}, MERGE)
    claims = "/api/v1/namespaces/talk/persistentvolumeclaims"
    claim: dict[str, Any] = {
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    yield "claim", Step("POST", claims, claim)
    yield (
        "claim-without-a-size",
        Step("POST", claims, {"metadata": {"name": "x"}, "spec": {"accessModes": ["ReadWriteOnce"]}}),
    )
    yield (
        "claim-smaller",
        Step("PATCH", claims + "/c", {"spec": {"resources": {"requests": {"storage": "1Mi"}}}}, MERGE),
    )
    budgets = "/apis/policy/v1/namespaces/talk/poddisruptionbudgets"
    both = {"minAvailable": 1, "maxUnavailable": 1, "selector": {}}
    yield "budget-with-both", Step("POST", budgets, {"metadata": {"name": "x"}, "spec": both})
    yield "budget", Step("POST", budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": "50%", "selector": {}}})
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "x"}}}
    yield "quota-with-no-quantity", Step("POST", "/api/v1/namespaces/talk/resourcequotas", quota)
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    yield "class", Step("POST", classes, {"metadata": {"name": "gold"}, "value": 1000})
    yield "class-too-high", Step("POST", classes, {"metadata": {"name": "x"}, "value": 2000000000})
    yield "class-changed", Step("PATCH", classes + "/gold", {"value": 5}, MERGE)
    yield "pod-with-a-class", Step("POST", PODS, pod("rich", priorityClassName="gold"))
    role = {"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": []}]}
    yield "role-without-resources", Step("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/talk/roles", role)
    node = {"metadata": {"name": "n", "labels": {"a b": "c"}}}
    yield "node-with-a-bad-label", Step("POST", "/api/v1/nodes", node)
    taint = {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "Never"}]}}
    yield "node-with-a-bad-taint", Step("POST", "/api/v1/nodes", taint)
    ingress = {"metadata": {"name": "i"}, "spec": {"rules": [{"host": "*"}]}}
    yield "ingress-with-a-bad-host", Step("POST", "/apis/networking.k8s.io/v1/namespaces/talk/ingresses", ingress)
    scaler = {"metadata": {"name": "h"}, "spec": {"minReplicas": 5, "maxReplicas": 2}}
    yield (
        "scaler-without-a-target",
        Step("POST", "/apis/autoscaling/v2/namespaces/talk/horizontalpodautoscalers", scaler),
    )
    lease = {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}}
    yield "lease-of-no-duration", Step("POST", "/apis/coordination.k8s.io/v1/namespaces/talk/leases", lease)
    yield (
        "review",
        Step(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "talk"}}},
        ),
    )
    yield "token-of-nothing", Step("POST", "/api/v1/namespaces/talk/serviceaccounts/nothing/token", {"spec": {}})
    yield "namespace-with-a-bad-name", Step("POST", "/api/v1/namespaces", {"metadata": {"name": "A"}})
    yield "finalize", Step("PUT", "/api/v1/namespaces/talk/finalize", {"metadata": {"name": "other"}})
    yield "delete-with-a-wrong-uid", Step("DELETE", MAPS + "/one", {"preconditions": {"uid": "x"}})
    yield "delete-with-a-bad-propagation", Step("DELETE", MAPS + "/one", {"propagationPolicy": "Sideways"})
    yield "delete-dry", Step("DELETE", MAPS + "/one?dryRun=All")
    yield "delete", Step("DELETE", MAPS + "/one")
    yield "delete-again", Step("DELETE", MAPS + "/one")
    yield "delete-widget", Step("DELETE", WIDGETS + "/w")
    yield "delete-all", Step("DELETE", MAPS + "?labelSelector=nothing%3Dhere")
