"""A daemon that answers from a small set of fixed objects, with the real daemon's methods.

`FakeDaemon` is called directly; `methods_of` puts it behind a real server. The daemon's own method table checks it:
invalid parameters are rejected as the daemon rejects them, and an undocumented answer is an error of this file.
"""

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import attrs

from kschedd.actors.cluster import LiveCluster
from kschedd.answers import plain
from kschedd.api.manifests import read_text
from kschedd.api.schemas.kinds import KINDS, kind_of, lookup
from kschedd.api.selecting.selector_text import parse_field_selector, parse_selector_text
from kschedd.api.text.times import stamp
from kschedd.causes.answers import CauseAnswer, DiagnosisAnswer, ObjectNamed
from kschedd.explain.answers import Explanation, Score, SearchAnswer, Skipped, VerdictAnswer
from kschedd.methods import daemon_methods
from kschedd.rpc.sessions.built_in import method_table
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.service.objects.answers import ChangeAnswer
from kschedd.service.params import bind
from kschedd.service.table import Call, Method, Stream, find_method
from tests.rpc.documented import as_documented

Raw = dict[str, Any]
#: descriptions of the daemon's methods
TABLE = method_table(daemon_methods(cast(LiveCluster, None), cast(DaemonState, None)))
NOW = 1_735_689_600.0  # 2025-01-01T00:00:00Z


def pod(name: str, node: str = "", *, namespace: str = "default", labels: Raw | None = None, cpu: str = "500m") -> Raw:
    """Return a pod that runs on `node`, or that is unschedulable if `node` is ""."""
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


def verdict(node: str, plugin: str | None = None, code: str = "Success", *reasons: str) -> Raw:
    return {"node": node, "plugin": plugin, "code": code, "reasons": list(reasons), "also": [], "nominated": []}


def _score(value: int) -> Score:
    return Score(value, value, value)


DIAGNOSIS = DiagnosisAnswer(
    workload=ObjectNamed("Pod", "default", "web-1"),
    wanted=1,
    scheduled=0,
    pending=1,
    missing=0,
    examined="default/web-1",
    cause=CauseAnswer("OnlyTimeHelps", "it fits (on node-b) and is tried next", [], [], []),
    also=[],
    confidence="certain",
    remedies=[],
    tried=[],
    blocking_nodes=[],
)

EXPLANATION: Raw = plain(
    Explanation(
        pod="default/web-1",
        node=None,
        node_exists=None,
        as_if_absent=False,
        reserved=None,
        profile="default-scheduler",
        gated_by=None,
        pre_filter=None,
        verdicts=[
            VerdictAnswer("node-a", "NodeResourcesFit", "Unschedulable", ["Insufficient cpu"], [], []),
            VerdictAnswer("node-b", None, "Success", [], [], []),
        ],
        filters=["NodeResourcesFit"],
        skipped=Skipped([], []),
        scores={"NodeResourcesFit": {"node-b": _score(60)}, "ImageLocality": {"node-b": _score(0)}},
        weights={"NodeResourcesFit": 1, "ImageLocality": 1},
        totals={"node-b": 60},
        chosen="node-b",
        ties=["node-b"],
        nominated=None,
        message="",
        preemption=None,
        search=SearchAnswer(2, 1, 2),
        took_us=[],
        notes=[],
    )
)


def _change(raw: Raw, changed: list[str]) -> Raw:
    answer: Raw = plain(ChangeAnswer(raw, changed, [], []))
    return answer


def _merge(raw: Raw, patch: Raw) -> None:
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(raw.get(name), dict):
            _merge(raw[name], value)
        else:
            raw[name] = value


@attrs.frozen(eq=False)
class FakeStream:
    result: Raw
    _items: list[Any]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


class FakeDaemon:
    """A fake daemon with objects by kind; `calls` records every call."""

    def __init__(self, *objects: Raw) -> None:
        self.objects = list(objects)
        self.calls: list[tuple[str, Raw]] = []
        self.streams: dict[str, list[Any]] = {}
        self.stopped = False
        self.paused: Raw | None = None  # position at which the debugger has stopped scheduling
        self.lingering = False  # deleted objects remain for a while
        self.lingering = False  # deleted objects remain for a while

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        assert not args, "verbs give parameters by name"
        self.calls.append((method, named))
        return self.answer(method, named)

    def answer(self, method: str, named: Raw) -> Any:
        """Return the daemon's answer to the call; raise BadParamsError as the daemon would."""
        declared = find_method(TABLE, method)
        bind(method, declared.params, [named] if named else [])
        answer = getattr(self, method.replace(".", "_"))(**{k: v for k, v in named.items() if v is not None})
        if not inspect.isawaitable(answer):
            assert as_documented(declared.answer, answer), f"{method} is not answered as documented"
        return answer

    @contextmanager
    def subscribe(self, method: str, /, **named: Any) -> Iterator["FakeStream"]:
        self.calls.append((method, named))
        declared = find_method(TABLE, method)
        bind(method, declared.params, [named] if named else [])
        items = self.streams.get(method, [])
        assert all(as_documented(declared.item, item) for item in items), f"{method} does not send what is documented"
        place = {"number": 3, "instance": "i"} if method == "events.watch" else {"resource_version": 9, "epoch": "e1"}
        yield FakeStream({"stream": 1, **place}, items)

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
        metadata_only: bool = False,
        fields: list[str] | None = None,
        managed_fields: bool = False,
    ) -> Raw:
        labels, fields = parse_selector_text(label_selector or ""), parse_field_selector(field_selector or "")
        items = [
            raw
            for raw in self._of(kind, namespace)
            if labels.matches(raw["metadata"].get("labels") or {}) and fields.matches(raw)
        ]
        return {"kind": kind, "items": items, "resource_version": 9, "epoch": "e1"}

    def objects_get(self, kind: str, name: str, namespace: str | None = None, managed_fields: bool = False) -> Raw:
        return {"object": self._find(kind, name, namespace)}

    def objects_kinds(self) -> list[Raw]:
        known = {kind.name: kind for kind in KINDS}
        others = {raw["kind"] for raw in self.objects} - set(known)
        rows = [
            {
                "name": kind.name,
                "plural": kind.plural,
                "singular": kind.singular,
                "short_names": list(kind.short),
                "api_version": kind.api_version,
                "namespaced": kind.namespaced,
                "known": True,
                "count": len(self._of(kind.name, None)),
            }
            for kind in KINDS
        ]
        for name in sorted(others):
            more = {"name": name, "plural": name.lower() + "s", "singular": name.lower(), "short_names": []}
            rows.append({**more, "api_version": "example.com/v1", "namespaced": True, "known": False, "count": 1})
        return rows

    def objects_apply(
        self,
        manifests: Any,
        source: str = "-",
        dry_run: bool = False,
        atomic: bool = False,
        field_validation: str = "Strict",
        namespace: str = "default",
        with_objects: bool = False,
        field_manager: str = "",
        server_side: bool = False,
        force_conflicts: bool = False,
    ) -> Raw:
        if isinstance(manifests, str):
            reading = read_text(manifests, source)
            raws = [manifest.raw for manifest in reading.manifests]
            errors = [
                {
                    "source": e.file,
                    "line": e.line,
                    "path": e.path,
                    "value": e.value,
                    "why": e.why,
                    "message": str(e),
                    "code": "invalid",
                }
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
            where = {"kind": raw["kind"], "resource": kind_of(raw).resource, "namespace": meta.get("namespace") or ""}
            results.append({**where, "name": meta["name"]})
            results[-1]["action"] = "created"
            if with_objects:
                results[-1]["object"] = raw
            if not dry_run:
                self.objects.append(raw)
        warnings = ["something is odd"] if raws == [] else []
        return {"results": results, "errors": errors, "warnings": warnings, "unsupported": []}

    def objects_create(
        self, manifest: Raw, field_validation: str = "Strict", dry_run: bool = False, namespace: str = "default"
    ) -> Raw:
        if not dry_run:
            self.objects.append(manifest)
        return {"object": manifest, "warnings": [], "unsupported": []}

    def objects_replace(self, manifest: Raw, field_validation: str = "Strict", dry_run: bool = False) -> Raw:
        meta = manifest["metadata"]
        present = self._find(manifest["kind"], meta["name"], meta.get("namespace"))
        if not dry_run:
            self.objects[self.objects.index(present)] = manifest
        return {"object": manifest, "warnings": [], "unsupported": []}

    def objects_delete(
        self,
        kind: str,
        name: str | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        all: bool = False,
        grace_period_s: int | None = None,
        dry_run: bool = False,
        propagation: str = "Background",
    ) -> Raw:
        going = (
            [self._find(kind, name, namespace)]
            if name
            else self.objects_list(kind, namespace, label_selector, field_selector)
        )
        items = going if isinstance(going, list) else going["items"]
        gone = [
            {
                "kind": kind,
                "namespace": raw["metadata"].get("namespace") or "",
                "name": raw["metadata"]["name"],
                "gone": grace_period_s == 0,
            }
            for raw in items
        ]
        if not dry_run and not self.lingering:
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
        _merge(raw, patch)
        return _change(raw, sorted(patch))

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
        return _change(self._find(kind, name, namespace), changed)

    objects_annotate = objects_label

    def nodes_cordon(self, name: str, dry_run: bool = False) -> Raw:
        return self._cordon(name, True)

    def nodes_uncordon(self, name: str, dry_run: bool = False) -> Raw:
        return self._cordon(name, False)

    def _cordon(self, name: str, wanted: bool) -> Raw:
        spec = self._find("Node", name)["spec"]
        changed = ["spec.unschedulable"] if bool(spec.get("unschedulable")) is not wanted else []
        spec["unschedulable"] = wanted
        return _change(self._find("Node", name), changed)

    def nodes_taint(self, name: str, taints: list[str], overwrite: bool = False) -> Raw:
        return _change(self._find("Node", name), ["spec.taints"])

    def events_list(self, namespace: str | None = None, limit: int | None = None, **about: Any) -> Raw:
        event = {
            "time": "2024-12-31T23:58:00Z",
            "last_seen": "2024-12-31T23:59:30Z",
            "type": "Warning",
            "reason": "FailedScheduling",
            "object": "Pod/default/web-1",
            "namespace": "default",
            "message": "0/2 nodes are available: 2 Insufficient cpu.",
            "count": 3,
            "from": "default-scheduler",
        }
        events = [event] if about.get("for") in (None, "Pod/web-1") else []
        return {"events": events, "number": 3, "instance": "i"}

    def queue_list(self, limit: int = 100, place: str | None = None) -> Raw:
        counts = {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0, "in_flight": 0}
        counts |= {"pending_group": 0, "incomplete_group": 0}
        pod = self.queue_pod("default/web-1")
        for field in ("history", "held_s", "first_attempt"):
            del pod[field]
        return {"counts": counts, "pods": [pod] if place != "active" else []}

    def debug_state(self) -> Raw:
        return {"stopped": self.paused, "running_until": None, "holder": None, "keep": False, "breakpoints": 0}

    def pools_explain(self, pod: str, pools: list[Raw]) -> None:
        return None

    def queue_pod(self, pod: str) -> Raw:
        if pod != "default/web-1":
            raise RpcError("not_found", f'pods "{pod}" not found')
        return {
            "key": pod,
            "place": "unschedulable",
            "priority": 0,
            "attempts": 2,
            "since_s": 95.0,
            "backoff_until_s": None,
            "unschedulable_plugins": ["NodeResourcesFit"],
            "pending_plugins": [],
            "gated_by": "",
            "nominated_node": "",
            "message": "",
            "first_attempt": "2025-01-01T00:00:10Z",
            "held_s": {"active": 0.25, "in_flight": 0.0, "unschedulable": 95.0},
            "history": [
                {
                    "time_s": 10.0,
                    "time": "",
                    "from": "",
                    "to": "active",
                    "event": "PodAdd",
                    "plugin": "",
                    "seen": "",
                },
                {
                    "time_s": 10.25,
                    "time": "",
                    "from": "active",
                    "to": "in_flight",
                    "event": "Pop",
                    "plugin": "",
                    "seen": "",
                },
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

    def rpc_ping(self) -> Raw:
        return {"pong": True, "max_request_body_bytes": 3 << 20}

    def causes_explain(self, kind: str, name: str, namespace: str = "default", manifests: Sequence[Raw] = ()) -> Raw:
        if name != "web-1":
            raise RpcError("not_found", f'{kind.lower()}s "{name}" not found')
        found: Raw = plain(DIAGNOSIS)
        return found

    def scheduler_explain(self, pod: str | Raw) -> Raw:
        if pod != "default/web-1" and not isinstance(pod, dict):
            raise RpcError("not_found", f'pods "{pod}" not found')
        return EXPLANATION

    def scheduler_status(self) -> Raw:
        counts = {"active": 0, "backoff": 0, "error_backoff": 0, "unschedulable": 1, "gated": 0, "in_flight": 0}
        counts |= {"pending_group": 0, "incomplete_group": 0}
        on_the_way = {"waiting": 1, "binding": 1, "last_decisions": [], "paused": False}
        totals = {"scheduled": 4, "failed_attempts": 2, "decisions_per_s": 3.5, "nodes": 2, "pods": 3}
        return {**counts, **on_the_way, **totals, "stopped_at": None, "speed": 1.0, "virtual_time": None, "ahead_s": 0}

    def time_get(self) -> Raw:
        return {"now_s": NOW, "time": stamp(NOW), "speed": 1.0, "virtual": False, "next_s": None, "ahead_s": 0}

    def scheduler_config(self) -> Raw:
        score = [{"name": "NodeResourcesFit", "weight": 1}, {"name": "TaintToleration", "weight": 3}]
        profile = {"schedulerName": "default-scheduler", "percentageOfNodesToScore": None, "pluginConfig": {}}
        return {
            "profiles": [{**profile, "plugins": {"score": score}}],
            "percentageOfNodesToScore": 0,
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 10,
            "parallelism": 16,
            "featureGates": {},
        }

    def scheduler_set_weight(self, profile: str, plugin: str, weight: int) -> Raw:
        return {"before": 1, "after": weight}

    def scheduler_decisions(self, limit: int = 20, pod: str | None = None) -> list[Raw]:
        common = {"attempt": 1, "ties": 1, "nominated_node": "", "took_us": 80}
        placed = {
            "time": stamp(NOW - 5),
            "pod": "default/web-0",
            "node": "node-a",
            "feasible": 2,
            "score": 300,
            "message": "",
        }
        failed = {"time": stamp(NOW - 4), "pod": "default/web-1", "node": None, "feasible": 0, "score": None}
        rejected = {**common, **failed, "visited": 0, "message": "rejected before any node was looked at"}
        failed["message"] = "0/2 nodes are available: 2 Insufficient cpu."
        return [{**common, **placed, "visited": 2}, {**common, **failed, "visited": 2}, rejected]

    def daemon_info(self) -> Raw:
        return {
            "version": "0.1.0",
            "pid": 4711,
            "socket": "/run/kschedd.sock",
            "uptime_s": 61.0,
            "kubernetes": "v1.37.2",
            "seed": 1,
            "speed": 1.0,
            "resource_version": 9,
            "profiles": ["default-scheduler"],
            "objects": {"Pod": 3, "Node": 2},
            "epoch": "e1",
            "journal": None,
            "read_only": None,
            "mirror": None,
            "leader": None,
            "recording": None,
            "plugins": [],
            "faults": [],
            "limits": {"max_request_body_bytes": 3145728, "max_object_bytes": 1572864},
        }

    def daemon_limits(self) -> list[Raw]:
        common = {"what": "clients of the socket", "reached": "a new one is refused", "default": 128}
        clients = {**common, "name": "clients", "unit": "", "limit": 256, "used": 2, "most": 7}
        return [clients, {**common, "name": "unread", "unit": "bytes", "limit": 8 << 20, "used": None, "most": None}]

    def daemon_profile(self, seconds: float) -> Raw:
        busy = {"thread": "MainThread", "frames": ["a.store:StoreActor.run", "a.store:serve"], "count": 30}
        return {"seconds": seconds, "looks": 100, "stacks": [IDLE_LOOP, busy]}

    def daemon_clients(self) -> list[Raw]:
        common = {"groups": ["system:authenticated"], "connected_s": 61.0, "streams": 0, "waiting_bytes": 0}
        local = {"number": 1, "user": "ann", "read_only": False, "pid": 4712, "uid": 1000, "address": None}
        remote = {"number": 2, "user": "eve", "read_only": True, "pid": None, "uid": None, "address": "10.0.0.7"}
        return [{**common, **local, "idle_s": None, "requests": 1}, {**common, **remote, "idle_s": 3.0, "requests": 0}]

    def daemon_stop(self, grace_s: float | None = None) -> Raw:
        self.stopped = True
        return {"stopping": True}


IDLE_LOOP = {"thread": "MainThread", "frames": ["(idle)"], "count": 70}

#: methods that the fake answers behind a server
_SERVED = (
    "debug.state",
    "objects.list",
    "objects.get",
    "objects.kinds",
    "objects.apply",
    "objects.label",
    "objects.patch",
    "objects.delete",
    "nodes.cordon",
    "queue.list",
    "waiting.list",
    "scheduler.status",
    "time.get",
    "scheduler.config",
    "daemon.info",
    "daemon.stop",
)


def methods_of(fake: FakeDaemon) -> list[Method]:
    """Return the fake's methods for a real server, with `scheduler.watch` and `objects.watch` as streams."""

    def method(name: str) -> Method:
        async def handle(call: Call) -> Any:
            answer = fake.call(name, **{key: value for key, value in call.args.items() if value is not None})
            return await answer if inspect.isawaitable(answer) else answer

        return attrs.evolve(TABLE[name], handler=handle, small=None)

    def stream(name: str, items: Callable[[], list[Any]]) -> Method:
        async def handle(call: Call) -> Any:
            async def feed(out: Stream) -> None:
                import trio

                for item in items():
                    await out.send(item)
                await trio.sleep_forever()

            return {"stream": call.open_stream(feed), "resource_version": 9, "epoch": "e1"}

        return attrs.evolve(TABLE[name], handler=handle, small=None)

    return [
        *(method(name) for name in _SERVED),
        stream("scheduler.watch", lambda: [fake.scheduler_status()]),
        stream("objects.watch", lambda: fake.streams.get("objects.watch", [])),
    ]
