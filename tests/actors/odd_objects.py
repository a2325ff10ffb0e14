"""Valid but unusual objects of every kind, for robustness tests.

Each starts from a plain manifest. Random fields of the schema then get extreme values of the right type: huge numbers,
empty and long text, foreign scripts, times at both ends of the calendar, circular references, absurd quantities. If the
store rejects an object, it is generated again with fewer changes.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.schemas.kinds import BY_NAME, Kind
from kschedd.api.schemas.schema import (
    ANY,
    BOOL,
    BYTES,
    INT,
    INT32,
    INT_OR_STR,
    MICRO_TIME,
    NUMBER,
    QUANTITY,
    TIME,
    Fields,
    ListOf,
    MapOf,
    Schema,
    schema_of,
)
from kschedd.errors import KscheddError
from kschedd.store.store import Store

Raw = dict[str, Any]

NAMES: Final = 24  # number of names per kind; small, so that objects refer to each other
NAMESPACES: Final = ("default", "kube-system", "team")
NODES: Final = ("n0", "n1", "n2")
MANY: Final = ("replicas", "parallelism", "completions")  # fields that set a number of pods

INTS: Final = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**31, 10**12, 2**63 - 1, -(2**63))
TEXTS: Final = (
    "",
    "x",
    "True",
    "False",
    "Unknown",
    "Always",
    "Never",
    "Running",
    "Failed",
    "Succeeded",
    "Ready",
    "Available",
    "Progressing",
    "Pod",
    "v1",
    "pods",
    "-",
    "..",
    "a/b/c",
    "zone",
    "kubernetes.io/hostname",
    "ünïcödé ✓ 日本",
    "\u202egnp.exe",
    "\x00\x1b[31m",
    "9" * 40,
    "y" * 300,
    "z" * 5000,
    "{}",
    "null",
    *NODES,
)
QUANTITIES: Final = ("0", "1", "-1", "1n", "0.1", "9E", "1e300", "100m", "64Gi", "-9Ei", "1e-300", 3, 0.5, 2**70)
TIMES: Final = (
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "1970-01-01T00:00:00Z",
    "2026-01-01T00:00:00.123456789Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-12:00",
)
MICRO_TIMES: Final = ("0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999-12:00", "2026-01-01T00:00:00.000001Z")
ANNOTATIONS: Final = {
    "kschedd.io/run-seconds": ("0", "1e300", "nan", "-1", "soon", "0.001"),
    "kschedd.io/termination-seconds": ("0", "1e308", "inf", "x"),
    "kschedd.io/provision-seconds": ("0", "never", "1e300", "x"),
    "kschedd.io/provision-fails": ("true", "x"),
    "controller.kubernetes.io/pod-deletion-cost": ("0", "-2147483648", "9" * 4000, "x", "٣"),
    "deployment.kubernetes.io/revision": ("0", "-1", "9" * 5000, "x"),
    "deployment.kubernetes.io/desired-replicas": ("-5", "9" * 30, "x"),
    "deployment.kubernetes.io/max-replicas": ("0", "-1", "9" * 30),
    "kubectl.kubernetes.io/last-applied-configuration": ("{", "[]", '"x"', '{"metadata":5,"spec":[1]}'),
    "volume.kubernetes.io/selected-node": ("", "n0", "gone"),
    "volume.kubernetes.io/storage-provisioner": ("", "x"),
    "pv.kubernetes.io/bind-completed": ("", "yes"),
    "pv.kubernetes.io/bound-by-controller": ("", "yes"),
    "pv.kubernetes.io/provisioned-by": ("x",),
    "resource.kubernetes.io/pod-claim-name": ("", "x"),
    "volume.beta.kubernetes.io/storage-class": ("", "x", "fast"),
}
_DEEPEST: Final = 6


def odd(schema: Schema, draw: random.Random, depth: int = 0) -> Any:
    """Return a random value of this type."""
    if isinstance(schema, Fields):
        if depth >= _DEEPEST:
            return {}
        chosen = draw.sample(sorted(schema), min(len(schema), draw.choice((0, 1, 2, 3, len(schema)))))
        return {name: _odd_field(name, schema[name], draw, depth + 1) for name in chosen}
    if isinstance(schema, ListOf):
        return [odd(schema.item, draw, depth + 1) for _ in range(draw.choice((0, 1, 1, 2, 5)))]
    if isinstance(schema, MapOf):
        keys = draw.sample(
            ("app", "cpu", "memory", "pods", "zone", "example.com/x", "", "ü", "k" * 300), draw.randrange(4)
        )
        return {key: odd(schema.item, draw, depth + 1) for key in keys}
    values: Mapping[Any, tuple[Any, ...]] = {
        BOOL: (True, False),
        INT: INTS,
        INT32: tuple(number for number in INTS if -(2**31) <= number < 2**31),
        QUANTITY: QUANTITIES,
        TIME: TIMES,
        MICRO_TIME: MICRO_TIMES,
        INT_OR_STR: (0, 1, -1, 2**31 - 1, "0%", "100%", "9999999%", "x", ""),
        NUMBER: (0, -1.5, 1e300),
        BYTES: ("", "AA=="),
        ANY: (None, {}, [], "x", 5, {"a": [1, {"b": None}]}),
    }
    return draw.choice(values.get(schema, TEXTS))


def disturb(value: Raw, fields: Fields, draw: random.Random) -> Raw:
    """Return a copy with one random field changed, at any depth."""
    name = draw.choice(sorted(fields))
    schema, present = fields[name], value.get(name)
    if isinstance(schema, Fields) and isinstance(present, dict) and draw.random() < 0.8:
        return {**value, name: disturb(present, schema, draw)}
    if isinstance(schema, ListOf) and isinstance(schema.item, Fields) and present and draw.random() < 0.8:
        place = draw.randrange(len(present))
        changed = disturb(present[place], schema.item, draw)
        return {**value, name: [*present[:place], changed, *present[place + 1 :]]}
    return {**value, name: _odd_field(name, schema, draw)}


def _odd_field(name: str, schema: Schema, draw: random.Random, depth: int = 0) -> Any:
    # a valid large number would create as many pods
    return draw.choice((0, 1, 3, -1)) if name in MANY else odd(schema, draw, depth)


# -- plain manifests ------------------------------------------------------------------------------------------------


def _pod_spec(draw: random.Random) -> Raw:
    resources = {"requests": {"cpu": draw.choice(("0", "100m", "1", "9E")), "memory": draw.choice(("0", "1Gi", "8Ei"))}}
    container: Raw = {"name": "c", "image": draw.choice(("i", "", "repo/i:1")), "resources": resources}
    if draw.random() < 0.2:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    spec: Raw = {"containers": [container]}
    term = {"labelSelector": {"matchLabels": {"app": draw.choice("ab")}}, "topologyKey": draw.choice(("zone", "gone"))}
    match draw.randrange(10):
        case 0:
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        case 1:
            expression = {
                "key": "zone",
                "operator": draw.choice(("In", "NotIn")),
                "values": ["a"] * draw.choice((1, 500)),
            }
            terms = [{"matchExpressions": [expression]}] * draw.choice((1, 50))
            spec["affinity"] = {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            }
        case 2:
            spread = {"maxSkew": draw.choice((1, 2**31 - 1)), "whenUnsatisfiable": "DoNotSchedule", **term}
            spec["topologySpreadConstraints"] = [spread]
        case 3:
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"x{draw.randrange(NAMES)}"}}]
        case 4:
            claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            spec["volumes"] = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]
        case 5:
            which = draw.choice(("resourceClaimName", "resourceClaimTemplateName"))
            spec["resourceClaims"] = [{"name": "d", which: f"x{draw.randrange(NAMES)}"}]
        case 6:
            spec["nodeName"] = draw.choice((*NODES, "gone"))
        case 7:
            spec["schedulingGates"] = [{"name": "example.com/g"}]
        case 8:
            spec["tolerations"] = [
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": draw.choice(INTS)}
            ]
        case _:
            pass
    if draw.random() < 0.2:
        spec["terminationGracePeriodSeconds"] = draw.choice((0, 1, 30, 10**12, 2**63 - 1))
    if draw.random() < 0.1:
        spec["priorityClassName"] = draw.choice(("high", "system-node-critical"))
    return spec


def _workload(draw: random.Random) -> Raw:
    labels = {"app": draw.choice("ab")}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(draw)}
    spec: Raw = {"replicas": draw.choice((0, 1, 2, 5)), "selector": {"matchLabels": labels}, "template": template}
    template["spec"].pop("nodeName", None)
    if draw.random() < 0.2:
        spec["minReadySeconds"] = draw.choice((0, 1, 2**31 - 1))
    return spec


def _job(draw: random.Random) -> Raw:
    spec = _pod_spec(draw)
    return {"template": {"spec": {**spec, "restartPolicy": "Never"}}, "parallelism": draw.choice((0, 2))}


def _devices(draw: random.Random) -> Raw:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": draw.choice((1, 2, 32))}}
    return {"devices": {"requests": [request]}}


def _claim(draw: random.Random) -> Raw:
    spec: Raw = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": draw.choice(("1Gi", "8Ei", "1n"))}},
    }
    if draw.random() < 0.7:
        spec["storageClassName"] = draw.choice(("", "fast", "slow"))
    if draw.random() < 0.2:
        spec["volumeName"] = f"x{draw.randrange(NAMES)}"
    return spec


def _volume(draw: random.Random) -> Raw:
    spec: Raw = {
        "capacity": {"storage": draw.choice(("1Gi", "8Ei"))},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
        "storageClassName": draw.choice(("", "fast")),
        "persistentVolumeReclaimPolicy": draw.choice(("Retain", "Delete")),
    }
    if draw.random() < 0.3:
        spec["claimRef"] = {"namespace": "default", "name": f"x{draw.randrange(NAMES)}"}
    return spec


def _slice(draw: random.Random) -> Raw:
    return {
        "driver": "gpu.example.com",
        "pool": {"name": "p", "generation": draw.choice((0, 2**63 - 1)), "resourceSliceCount": 1},
        "nodeName": draw.choice(NODES),
        "devices": [{"name": f"d{n}"} for n in range(draw.choice((0, 1, 8)))],
    }


def _crd(name: str) -> Raw:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }


_SPECS: Final[Mapping[str, Callable[[random.Random], Raw]]] = {
    "Namespace": lambda draw: {"spec": {"finalizers": draw.choice((["kubernetes"], []))}},
    "Node": lambda draw: {
        "spec": {"unschedulable": draw.random() < 0.1},
        "status": {
            "capacity": {"cpu": draw.choice(("4", "0", "9E")), "memory": "16Gi", "pods": draw.choice(("110", "0"))}
        },
    },
    "Pod": lambda draw: {"spec": _pod_spec(draw)},
    "Service": lambda draw: {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}},
    "ReplicationController": lambda draw: {
        "spec": {**_workload(draw), "selector": None},
    },
    "ResourceQuota": lambda draw: {"spec": {"hard": {"pods": draw.choice(("0", "9E"))}}},
    "PersistentVolume": lambda draw: {"spec": _volume(draw)},
    "PersistentVolumeClaim": lambda draw: {"spec": _claim(draw)},
    "ConfigMap": lambda draw: {"data": {"k": draw.choice(TEXTS)}},
    "LimitRange": lambda draw: {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}},
    "Event": lambda draw: {
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": f"x{draw.randrange(NAMES)}"},
        "reason": "Odd",
        "type": "Normal",
    },
    "ReplicaSet": lambda draw: {"spec": _workload(draw)},
    "StatefulSet": lambda draw: {"spec": {**_workload(draw), "serviceName": "x"}},
    "Deployment": lambda draw: {"spec": _workload(draw)},
    "DaemonSet": lambda draw: {"spec": {f: v for f, v in _workload(draw).items() if f != "replicas"}},
    "Job": lambda draw: {"spec": _job(draw)},
    "PodDisruptionBudget": lambda draw: {
        "spec": {"minAvailable": draw.choice((0, "100%")), "selector": {"matchLabels": {"app": "a"}}}
    },
    "PriorityClass": lambda draw: {"value": draw.choice((0, -(2**31), 10**9))},
    "RuntimeClass": lambda draw: {"handler": "h", "overhead": {"podFixed": {"cpu": draw.choice(("0", "9E"))}}},
    "StorageClass": lambda draw: {
        "provisioner": draw.choice(("x.example.com", "kubernetes.io/no-provisioner")),
        "volumeBindingMode": draw.choice(("Immediate", "WaitForFirstConsumer")),
    },
    "CSINode": lambda draw: {
        "spec": {
            "drivers": [{"name": "x.example.com", "nodeID": "n", "allocatable": {"count": draw.choice((0, 2**31 - 1))}}]
        }
    },
    "CSIDriver": lambda draw: {"spec": {"storageCapacity": draw.random() < 0.5}},
    "CSIStorageCapacity": lambda draw: {"storageClassName": "fast", "capacity": draw.choice(("0", "9E"))},
    "VolumeAttachment": lambda draw: {
        "spec": {
            "attacher": "x.example.com",
            "nodeName": draw.choice(NODES),
            "source": {"persistentVolumeName": f"x{draw.randrange(NAMES)}"},
        }
    },
    "Lease": lambda draw: {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 2**31 - 1}},
    "ResourceSlice": lambda draw: {"spec": _slice(draw)},
    "ResourceClaim": lambda draw: {"spec": _devices(draw)},
    "ResourceClaimTemplate": lambda draw: {"spec": {"spec": _devices(draw)}},
    "DeviceClass": lambda draw: {"spec": {"selectors": [{"cel": {"expression": draw.choice(("true", "1/0 == 1"))}}]}},
    "CustomResourceDefinition": lambda draw: {"spec": _crd("widgets.example.com")},
}
_GIVEN_NAMES: Final = {
    "Node": NODES,
    "StorageClass": ("fast", "slow"),
    "DeviceClass": ("gpu",),
    "PriorityClass": ("high", "low"),
    "CSINode": NODES,
    "Namespace": ("team", "default", "doomed"),
    "CustomResourceDefinition": ("widgets.example.com",),
}
KINDS: Final = (*_SPECS, "Widget")
_OFTEN: Final = (
    "Pod",
    "Pod",
    "Pod",
    "Pod",
    "Deployment",
    "ReplicaSet",
    "PersistentVolumeClaim",
    "ResourceClaim",
    "Node",
)


class OddObjects:
    """A client of a store; each `step` creates or changes an unusual object."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self.accepted = 0
        self.on_refused: Counter[str] = Counter()

    def step(self, store: Store) -> None:
        """Create one object in the store, and sometimes change or delete an existing one."""
        draw = self._draw
        kind = draw.choice(_OFTEN) if draw.random() < 0.6 else draw.choice(KINDS)
        raw, fields = self._plain(kind)
        restore = draw.random() < 0.4
        for oddities in (draw.choice((0, 1, 1, 2, 3)), 1, 0):
            tried = self._odd(raw, fields, oddities, store, restore)
            if self._try(lambda tried=tried: store.apply(tried, restore=restore)):
                self.accepted += 1
                break
        for _ in range(draw.choice((0, 1, 1, 2))):
            self._try(lambda: self._change(store))

    def _try(self, request: Callable[[], object]) -> bool:
        try:
            request()
        except KscheddError as refusal:
            self.on_refused[type(refusal).__name__] += 1
            return False
        return True

    # -- making ---------------------------------------------------------------------------------------------------

    def _plain(self, kind: str) -> tuple[Raw, Fields | None]:
        draw = self._draw
        known: Kind | None = BY_NAME.get(kind)
        given = _GIVEN_NAMES.get(kind)
        meta: Raw = {"name": draw.choice(given) if given else f"x{draw.randrange(NAMES)}"}
        if known is None or known.namespaced:
            meta["namespace"] = draw.choice(NAMESPACES)
        if draw.random() < 0.3:
            meta["labels"] = {"app": draw.choice("ab"), "zone": draw.choice("ab")}
        if known is None:
            anything: Raw = {"spec": odd(ANY, draw), "status": odd(ANY, draw)}
            return {"apiVersion": "example.com/v1", "kind": kind, "metadata": meta, **anything}, None
        version = draw.choice(known.api_versions[:1])
        raw = {"apiVersion": version, "kind": kind, "metadata": meta, **_SPECS[kind](draw)}
        return raw, schema_of(version, kind)

    def _odd(self, raw: Raw, fields: Fields | None, oddities: int, store: Store, restore: bool) -> Raw:
        draw = self._draw
        meta = dict(raw["metadata"])
        if oddities and draw.random() < 0.5:
            names = draw.sample(sorted(ANNOTATIONS), draw.choice((1, 2, 5)))
            meta["annotations"] = {name: draw.choice(ANNOTATIONS[name]) for name in names}
        if oddities and draw.random() < 0.15:
            meta["finalizers"] = draw.choice((["example.com/f"], ["foregroundDeletion"], ["orphan"]))
        if oddities and draw.random() < 0.3:
            meta["ownerReferences"] = [self._owner(raw, store) for _ in range(draw.choice((1, 2)))]
        if restore and oddities:
            for field in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
                if draw.random() < 0.1:
                    values: Any = {"uid": ("u1", "u2", ""), "generation": (0, 1, 2**63 - 1)}
                    numbers = TIMES if field.endswith("Timestamp") else INTS
                    meta[field] = draw.choice(values.get(field, numbers))
        made = {**raw, "metadata": meta}
        for _ in range(oddities if fields is not None else 0):
            assert fields is not None
            parts = [part for part in sorted(fields) if part not in ("apiVersion", "kind", "metadata")]
            part = draw.choice(parts)
            schema = fields[part]
            if isinstance(schema, Fields) and isinstance(made.get(part), dict) and draw.random() < 0.9:
                made = {**made, part: disturb(made[part], schema, draw)}
            else:
                made = {**made, part: odd(schema, draw)}
        return made

    def _owner(self, raw: Raw, store: Store) -> Raw:
        """Return an owner reference to any object: to itself, to one of its dependents, or to a missing one."""
        draw = self._draw
        chosen = (
            raw["kind"] if draw.random() < 0.3 else draw.choice(("Deployment", "ReplicaSet", "Pod", "Node", "Widget"))
        )
        name = raw["metadata"]["name"] if draw.random() < 0.4 else f"x{draw.randrange(NAMES)}"
        found = store.find(chosen, raw["metadata"].get("namespace") or "", name)
        known = BY_NAME.get(chosen)
        return {
            "apiVersion": known.api_version if known else "example.com/v1",
            "kind": chosen,
            "name": name,
            "uid": found.uid if found is not None and draw.random() < 0.9 else draw.choice(("u1", "u2")),
            "controller": draw.random() < 0.3,
            "blockOwnerDeletion": draw.random() < 0.5,
        }

    # -- changing -------------------------------------------------------------------------------------------------

    def _change(self, store: Store) -> None:
        draw = self._draw
        kinds = [kind for kind in store.kinds() if kind not in ("Event",)]
        kind = draw.choice(kinds)
        obj = draw.choice(store.list(kind))
        where = (obj.kind, obj.namespace, obj.name)
        fields = schema_of(str(obj.raw.get("apiVersion")), obj.kind)
        match draw.randrange(12):
            case 0 | 1 | 2 | 3:
                schema = None if fields is None else fields.get("status")
                status = disturb(dict(obj.status), schema, draw) if isinstance(schema, Fields) else odd(ANY, draw)
                store.merge_patch(*where, {"status": status}, subresource="status")
            case 4 | 5:
                part = draw.choice(("spec", "metadata", "status", "value", "data"))
                schema = None if fields is None else fields.get(part)
                store.merge_patch(*where, {part: odd(schema if schema is not None else ANY, draw)})
            case 6:
                name = draw.choice(sorted(ANNOTATIONS))
                store.merge_patch(*where, {"metadata": {"annotations": {name: draw.choice(ANNOTATIONS[name])}}})
            case 7:
                if kind == "Pod":
                    store.bind(obj.namespace, obj.name, draw.choice((*NODES, "gone", "\x00")))
            case 8:
                spec = {"replicas": draw.choice((0, 1, 3)), "nodeName": draw.choice(NODES)}
                store.merge_patch(*where, {"spec": spec})
            case 9:
                store.merge_patch(*where, {"metadata": {"finalizers": None, "ownerReferences": None}})
            case 10 if kind == "Namespace" and draw.random() < 0.9:
                pass
            case _:
                grace = draw.choice((None, None, 0, 1, -1, 10**12, 2**63 - 1))
                how: Any = draw.choice(("Background", "Foreground", "Orphan"))
                store.delete(*where, grace_period_s=grace, propagation=how)
