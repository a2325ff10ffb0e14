"""A daemon that answers from a small set of canned objects, with the methods' names and shapes of the real one.

`FakeDaemon` is called directly; `served` puts it behind a real socket.
"""

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kschedd.api.kinds import KINDS, lookup
from kschedd.api.manifests import read_text
from kschedd.api.selector_text import parse_field_selector, parse_selector_text
from kschedd.rpc.errors import RpcError
from kschedd.rpc.params import Param
from kschedd.rpc.table import Call, Method, Stream

Raw = dict[str, Any]
NOW = 1_735_689_600.0  # 2025-01-01T00:00:00Z


def pod(name: str, node: str = "", *, namespace: str = "default", labels: Raw | None = None, cpu: str = "500m") -> Raw:
    """A pod that runs on `node`, or could not be placed."""
    spec: Raw = {
        "containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    }
    message = "0/2 nodes are available: 2 Insufficient cpu."
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    status: Raw = {"phase": "Pending", "conditions": [unplaced], "qosClass": "Burstable"}
    if node:
        spec["nodeName"] = node
        status = {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "containerStatuses": [{"name": "app", "ready": True, "restartCount": 2, "state": {"running": {}}}],
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "qosClass": "Burstable",
        }
    meta = {"name": name, "namespace": namespace, "creationTimestamp": "2024-12-31T23:55:00Z", "resourceVersion": "7"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "labels": labels or {"app": name.split("-")[0]}},
        "spec": spec,
        "status": status,
    }


def node(name: str, zone: str = "zone-a", **spec: Any) -> Raw:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    labels = {"topology.kubernetes.io/zone": zone, "node-role.kubernetes.io/worker": ""}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "creationTimestamp": "2024-12-29T00:00:00Z"},
        "spec": spec,
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


EXPLANATION: Raw = {
    "pod": "default/web-1",
    "node": None,
    "verdicts": [
        {"node": "node-a", "plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": ["Insufficient cpu"]},
        {"node": "node-b", "plugin": None, "code": "Success", "reasons": []},
    ],
    "scores": {"NodeResourcesFit": {"node-b": {"raw": 60, "weighted": 60}}, "ImageLocality": {"node-b": {"raw": 0}}},
    "totals": {"node-b": 60},
    "chosen": "node-b",
    "ties": ["node-b"],
    "message": "",
    "would_fit_if": [],
}


class FakeDaemon:
    """Objects by kind; `calls` is every call that was made."""

    def __init__(self, *objects: Raw) -> None:
        self.objects = list(objects)
        self.calls: list[tuple[str, Raw]] = []
        self.streams: dict[str, list[Any]] = {}
        self.stopped = False

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        assert not args, "verbs give parameters by name"
        self.calls.append((method, named))
        return getattr(self, method.replace(".", "_"))(**named)

    @contextmanager
    def subscribe(self, method: str, /, **named: Any) -> Iterator[list[Any]]:
        self.calls.append((method, named))
        yield self.streams.get(method, [])

    def _find(self, kind: str, name: str, namespace: str | None = None) -> Raw:
        for raw in self._of(kind, namespace):
            if raw["metadata"]["name"] == name:
                return raw
        raise RpcError("not_found", f'{lookup(kind).plural} "{name}" not found')

    def _of(self, kind: str, namespace: str | None) -> list[Raw]:
        found = [raw for raw in self.objects if raw["kind"] == kind]
        return [raw for raw in found if namespace is None or raw["metadata"].get("namespace") in (None, namespace)]

    # -- methods ----------------------------------------------------------------------------------------------

    def objects_list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Raw:
        labels, fields = parse_selector_text(label_selector or ""), parse_field_selector(field_selector or "")
        items = [
            raw
            for raw in self._of(kind, namespace)
            if labels.matches(raw["metadata"].get("labels") or {}) and fields.matches(raw)
        ]
        return {"kind": kind, "items": items, "resource_version": 9}

    def objects_get(self, kind: str, name: str, namespace: str | None = None) -> Raw:
        return {"object": self._find(kind, name, namespace)}

    def objects_kinds(self) -> list[Raw]:
        known = {kind.name: kind for kind in KINDS}
        others = {raw["kind"] for raw in self.objects} - set(known)
        rows = [
            {
                "name": kind.name,
                "plural": kind.plural,
                "short_names": list(kind.short),
                "api_version": kind.api_version,
                "namespaced": kind.namespaced,
                "count": len(self._of(kind.name, None)),
            }
            for kind in KINDS
        ]
        for name in sorted(others):
            rows.append({"name": name, "plural": name.lower() + "s", "namespaced": True, "count": 1})
        return rows

    def objects_apply(
        self,
        manifests: Any,
        source: str = "-",
        dry_run: bool = False,
        atomic: bool = False,
        field_validation: str = "Strict",
        namespace: str = "default",
    ) -> Raw:
        if isinstance(manifests, str):
            reading = read_text(manifests, source)
            raws = [manifest.raw for manifest in reading.manifests]
            errors = [
                {"source": e.file, "line": e.line, "path": e.path, "value": e.value, "why": e.why, "message": str(e)}
                for e in reading.errors
            ]
        else:
            raws, errors = manifests, []
        if atomic and errors:
            raws = []
        results = []
        for raw in raws:
            meta = raw["metadata"]
            if lookup(raw["kind"]).namespaced and namespace != "default":
                meta.setdefault("namespace", namespace)
            results.append({"kind": raw["kind"], "namespace": meta.get("namespace"), "name": meta["name"]})
            results[-1]["action"] = "created"
            if not dry_run:
                self.objects.append(raw)
        return {"results": results, "errors": errors, "warnings": ["something is odd"] if raws == [] else []}

    def objects_create(
        self, manifest: Raw, field_validation: str = "Strict", dry_run: bool = False, namespace: str = "default"
    ) -> Raw:
        if not dry_run:
            self.objects.append(manifest)
        return {"object": manifest, "warnings": [], "unsupported": []}

    def objects_delete(
        self,
        kind: str,
        name: str | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        all: bool = False,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> Raw:
        going = [self._find(kind, name, namespace)] if name else self.objects_list(kind, namespace, label_selector)
        items = going if isinstance(going, list) else going["items"]
        gone = [
            {
                "kind": kind,
                "namespace": raw["metadata"].get("namespace"),
                "name": raw["metadata"]["name"],
                "gone": grace_period_s == 0,
            }
            for raw in items
        ]
        if not dry_run:
            self.objects = [raw for raw in self.objects if raw not in items]
        return {"deleted": gone}

    def objects_patch(
        self,
        kind: str,
        name: str,
        patch: Raw,
        namespace: str | None = None,
        subresource: str | None = None,
        type: str = "strategic",
        field_validation: str = "Strict",
        dry_run: bool = False,
    ) -> Raw:
        raw = copy.deepcopy(self._find(kind, name, namespace))
        raw.update(patch)
        return {"object": raw, "changed": sorted(patch)}

    def objects_scale(self, kind: str, name: str, replicas: int, namespace: str | None = None) -> Raw:
        return {"object": self._find(kind, name, namespace), "before": 1, "after": replicas}

    def objects_label(
        self,
        kind: str,
        name: str,
        set: Raw,
        remove: list[str],
        overwrite: bool = False,
        namespace: str | None = None,
    ) -> Raw:
        labels = self._find(kind, name, namespace)["metadata"].setdefault("labels", {})
        changed = [key for key, value in set.items() if labels.get(key) != value] + [k for k in remove if k in labels]
        labels.update(set)
        for key in remove:
            labels.pop(key, None)
        return {"object": self._find(kind, name, namespace), "changed": changed}

    objects_annotate = objects_label

    def nodes_cordon(self, name: str) -> Raw:
        return self._cordon(name, True)

    def nodes_uncordon(self, name: str) -> Raw:
        return self._cordon(name, False)

    def _cordon(self, name: str, wanted: bool) -> Raw:
        spec = self._find("Node", name)["spec"]
        changed = bool(spec.get("unschedulable")) is not wanted
        spec["unschedulable"] = wanted
        return {"object": self._find("Node", name), "changed": changed}

    def nodes_taint(self, name: str, taints: list[str], overwrite: bool = False) -> Raw:
        return {"object": self._find("Node", name), "changed": True}

    def events_list(self, namespace: str | None = None, limit: int | None = None, **about: Any) -> Raw:
        event = {
            "time": "2024-12-31T23:58:00Z",
            "last_seen": "2024-12-31T23:59:30Z",
            "type": "Warning",
            "reason": "FailedScheduling",
            "object": "Pod/default/web-1",
            "message": "0/2 nodes are available: 2 Insufficient cpu.",
            "count": 3,
            "from": "default-scheduler",
        }
        return {"events": [event] if about.get("for") in (None, "Pod/web-1") else []}

    def queue_list(self, limit: int = 100, place: str | None = None) -> Raw:
        counts = {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0, "in_flight": 0}
        return {"counts": counts, "pods": [self.queue_pod("default/web-1")] if place != "active" else []}

    def queue_pod(self, pod: str) -> Raw:
        if pod != "default/web-1":
            raise RpcError("not_found", f'pods "{pod}" not found')
        return {
            "key": pod,
            "place": "unschedulable",
            "priority": 0,
            "attempts": 2,
            "since_s": 95.0,
            "unschedulable_plugins": ["NodeResourcesFit"],
            "history": [
                {"time_s": 10.0, "from": None, "to": "active", "event": "PodAdd", "plugin": None},
                {"time_s": 10.25, "from": "active", "to": "in_flight", "event": "Pop", "plugin": None},
            ],
        }

    def queue_activate(self, pods: list[str] | None = None, all: bool = False) -> Raw:
        return {"moved": pods or ["default/web-1"]}

    def waiting_list(self) -> list[Raw]:
        return [{"pod": "default/gang-0", "node": "node-a", "plugins": {"Gang": 12.5}}]

    def waiting_allow(self, pod: str, plugin: str | None = None) -> Raw:
        return {"pod": pod, "decided": True}

    def waiting_reject(self, pod: str, plugin: str | None = None, reason: str | None = None) -> Raw:
        return {"pod": pod, "decided": True}

    def scheduler_explain(self, pod: str | None = None, manifest: Raw | None = None) -> Raw:
        if pod not in (None, "default/web-1"):
            raise RpcError("not_found", f'pods "{pod}" not found')
        return EXPLANATION

    def scheduler_status(self) -> Raw:
        counts = {"active": 0, "backoff": 0, "error_backoff": 0, "unschedulable": 1, "gated": 0, "in_flight": 0}
        return {**counts, "scheduled": 4, "failed_attempts": 2, "decisions_per_s": 3.5, "nodes": 2, "pods": 3}

    def scheduler_config(self) -> Raw:
        score = [{"name": "NodeResourcesFit", "weight": 1}, {"name": "TaintToleration", "weight": 3}]
        return {"profiles": [{"schedulerName": "default-scheduler", "plugins": {"score": score}}]}

    def scheduler_set_weight(self, profile: str, plugin: str, weight: int) -> Raw:
        return {"before": 1, "after": weight}

    def scheduler_decisions(self, limit: int = 20, pod: str | None = None) -> list[Raw]:
        decision = {"time": NOW - 5, "pod": "default/web-0", "node": "node-a", "attempt": 1, "feasible": 2}
        return [{**decision, "visited": 2, "ties": 1, "score": 300, "message": ""}]

    def daemon_info(self) -> Raw:
        return {
            "version": "0.1.0",
            "pid": 4711,
            "socket": "/run/kschedd.sock",
            "uptime_s": 61.0,
            "seed": 1,
            "profiles": ["default-scheduler"],
            "objects": {"Pod": 3, "Node": 2},
            "journal": None,
        }

    def daemon_stop(self, grace_s: float | None = None) -> Raw:
        self.stopped = True
        return {"stopping": True}


_PARAMS: dict[str, tuple[str, ...]] = {
    "objects.list": ("kind", "namespace", "label_selector", "field_selector"),
    "objects.get": ("kind", "name", "namespace"),
    "objects.kinds": (),
    "objects.apply": ("manifests", "source", "dry_run", "atomic", "field_validation", "namespace"),
    "objects.label": ("kind", "name", "set", "remove", "overwrite", "namespace"),
    "scheduler.status": (),
    "scheduler.config": (),
    "daemon.stop": ("grace_s",),
}


def methods_of(fake: FakeDaemon) -> list[Method]:
    """The fake's methods for a real server, and `scheduler.watch` and `objects.watch` as streams."""

    def method(name: str, params: tuple[str, ...]) -> Method:
        async def handle(call: Call) -> Any:
            answer = fake.call(name, **{key: value for key, value in call.args.items() if value is not None})
            return await answer if inspect.isawaitable(answer) else answer

        return Method(name, handle, tuple(Param(param, required=False) for param in params), doc="Canned.")

    def stream(name: str, params: tuple[str, ...], items: Callable[[], list[Any]]) -> Method:
        async def handle(call: Call) -> Any:
            async def feed(out: Stream) -> None:
                import trio

                for item in items():
                    await out.send(item)
                await trio.sleep_forever()

            return {"stream": call.open_stream(feed)}

        return Method(name, handle, tuple(Param(param, required=False) for param in params), doc="Canned.")

    return [
        *(method(name, params) for name, params in _PARAMS.items()),
        stream("scheduler.watch", ("interval_s",), lambda: [fake.scheduler_status()]),
        stream("objects.watch", ("kind", "namespace", "since"), lambda: fake.streams.get("objects.watch", [])),
    ]
