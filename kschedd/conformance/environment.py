"""The environment of a recorded trace: an API server in memory, and a clock that only the trace advances.

Writes are applied without defaulting or validation; their watch events are buffered in `events` until the runner
delivers them. Bound pods become Running immediately. Pods deleted by the scheduler are removed immediately; with
`graceful_deletion`, they only get a deletionTimestamp.

Source of the rules: the README beside the records ("Environment").
Units: milliseconds since the start of the trace.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.api.objects import Object, parse, with_fields
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.config.versions.rules import Rules
from kschedd.conformance.api_writes import target_of, trace_entry, verb_of
from kschedd.conformance.records import UnsupportedRecord
from kschedd.framework.status import Status, error
from kschedd.framework.writes import Bind, Create, Delete, MergePatch, Update, Write
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, WatchEvent
from kschedd.store.patches.merging import merge_patch
from kschedd.store.writes import is_sent_again, tries_of

Raw = Mapping[str, Any]

T0_S = 1_735_689_600  # 2025-01-01T00:00:00Z
MILLISECOND = 1_000_000  # ns
_NOT_FOUND, _CONFLICT = 404, 409


def scheduled_condition(obj: Object | None) -> dict[str, str] | None:
    """Return the pod's PodScheduled condition in the format of a step; None if the pod has none."""
    if not isinstance(obj, Pod):
        return None
    for condition in obj.status.get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            return {field: condition.get(field) or "" for field in ("status", "reason", "message")}
    return None


@attrs.define(eq=False)
class TraceEnvironment:
    graceful_deletion: bool
    rules: Rules = attrs.field(factory=Rules)
    now_ms: int = 0
    objects: dict[tuple[str, str], Object] = attrs.field(factory=dict)  # (kind, key) -> object
    events: list[WatchEvent] = attrs.field(factory=list)  # not delivered yet
    bound: list[list[str]] = attrs.field(factory=list)  # [pod, node] pairs bound in this step
    deleted: list[str] = attrs.field(factory=list)  # keys of the pods that the scheduler deleted in this step
    writes: list[dict[str, Any]] = attrs.field(factory=list)  # the scheduler's requests in this step
    failures: dict[str, list[int]] = attrs.field(factory=dict)  # by verb: error codes with which the next requests fail
    conditions: dict[str, dict[str, str]] = attrs.field(factory=dict)  # pod -> its condition, if changed in this step
    _shown: dict[str, dict[str, str] | None] = attrs.field(factory=dict)  # pod -> condition before this step
    _kinds: dict[str, str] = attrs.field(factory=dict)  # kind in manifests -> name of the kind in kschedd
    _removed: dict[tuple[str, str], Object] = attrs.field(factory=dict)  # deleted objects
    _bindings: int = 0
    _version: int = 0

    def begin_step(self) -> None:
        """Clear the outputs that are reported for each step."""
        self.bound, self.deleted, self.conditions, self._shown, self.writes = [], [], {}, {}, []

    # -- the scheduler's interface ----------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        return T0_S + self.now_ms / 1000

    @property
    def now_ns(self) -> int:
        return self.now_ms * MILLISECOND

    def current_pod(self, key: str) -> Pod | None:
        found = self.objects.get(("Pod", key))
        return found if isinstance(found, Pod) else None

    def write(self, write: Write) -> Status | None:
        """Apply one write of the scheduler. Return an error status if the API rejects the write.

        A binding, or a patch of a pod's status, is retried as long as the API returns a server error.
        """
        tries = tries_of(write)
        conflicts = self.rules.status_conflicts_retried and isinstance(write, MergePatch)
        before = self._seen_by(write)
        while True:
            tries -= 1
            refusal, code = self._answer(write, verb_of(write, before))
            entry = trace_entry(write, before, code)
            if entry is not None:
                self.writes.append(entry)
            if tries <= 0 or refusal is None or not is_sent_again(code, refusal.message, conflicts=conflicts):
                return refusal

    def _answer(self, write: Write, verb: str) -> tuple[Status | None, int]:
        """Return the error of a write with its code; (None, 0) if the write succeeds."""
        failures = self.failures.get(verb)
        if failures:
            return error("told to fail"), failures.pop(0)
        refusal = self._apply(write)
        if refusal is None:
            return None, 0
        return refusal, _NOT_FOUND if refusal.message.endswith(" not found") else _CONFLICT

    def _seen_by(self, write: Write) -> Object | None:
        """Return the last observed state of the object that a write of the scheduler will change."""
        target = target_of(write)
        return self.objects.get(target) or self._removed.get(target)

    def _apply(self, write: Write) -> Status | None:
        match write:
            case Create(raw):
                self._put(raw)
                return None
            case Update(raw):
                return self._change(raw["kind"], _key(raw["metadata"]), "", raw)
            case Bind(namespace, name, uid, node_name, _):
                return self._bind(f"{namespace}/{name}", uid, node_name)
            case MergePatch(kind, namespace, name, patch):
                key = f"{namespace}/{name}" if namespace else name
                return self._change(kind, key, (patch.get("metadata") or {}).get("uid") or "", patch)
            case Delete(kind, namespace, name, uid):
                return self._evict(kind, f"{namespace}/{name}" if namespace else name, uid)
        raise AssertionError(f"no trace has a write like {write}")

    def _change(self, kind: str, key: str, uid: str, patch: Raw) -> Status | None:
        old = self.objects.get((kind, key))
        if old is None or (uid and uid != old.uid):
            return _not_found(kind, key)
        self._patch(old, patch)
        return None

    def _bind(self, key: str, uid: str, node_name: str) -> Status | None:
        pod = self.current_pod(key)
        if pod is None:
            return _not_found("Pod", key)
        if uid and uid != pod.uid:
            return _other_uid(pod, uid)
        self._bindings += 1
        conditions = [c for c in pod.status.get("conditions") or () if c.get("type") != "PodScheduled"]
        status = {
            "phase": "Running",
            "startTime": stamp(T0_S + self._bindings),
            "conditions": [*conditions, {"type": "PodScheduled", "status": "True"}],
        }
        self._put(with_fields(with_fields(pod.raw, "spec", nodeName=node_name), "status", **status))
        self.bound.append([key, node_name])
        return None

    def _evict(self, kind: str, key: str, uid: str) -> Status | None:
        old = self.objects.get((kind, key))
        if old is None or (uid and uid != old.uid):
            return _not_found(kind, key)
        self.deleted.append(key)
        if self.graceful_deletion:
            self._put(with_fields(old.raw, "metadata", deletionTimestamp=stamp(self.now_s)))
        else:
            self._remove(old)
        return None

    # -- the trace's interface --------------------------------------------------------------------------------

    def apply(self, op: Raw) -> None:
        """Apply an operation on an object: create, patch or delete."""
        if op["op"] == "create":
            self._put(op["object"])
            return
        if op["op"] == "fail":
            self.failures.setdefault(op["verb"], []).extend([op["code"]] * op["times"])
            return
        if op["op"] not in ("patch", "delete"):
            raise UnsupportedRecord(f"there is an operation {op['op']!r}")
        kind: str = op["kind"]
        old = self.objects.get((self._kinds.get(kind, kind), _key(op)))
        if old is None:
            return
        if op["op"] == "delete":
            self._remove(old)
        else:
            self._patch(old, op["patch"])

    def load(self, objects: list[Raw]) -> None:
        for raw in objects:
            self._put(raw)

    def take_events(self) -> list[WatchEvent]:
        events, self.events = self.events, []
        return events

    # -- objects ----------------------------------------------------------------------------------------------

    def _patch(self, old: Object, patch: Raw) -> None:
        changed = merge_patch(old.raw, patch)
        if changed != old.raw:
            self._put(changed)

    def _put(self, raw: Raw) -> None:
        self._version += 1
        new = parse(with_fields(raw, "metadata", resourceVersion=str(self._version)))
        old = self.objects.get((new.kind, new.key))
        self.objects[new.kind, new.key], self._kinds[raw["kind"]] = new, new.kind
        before, condition = scheduled_condition(old), scheduled_condition(new)
        if condition is not None and condition != before:
            # A step contains the net change of a condition: a change that is reverted within the step is left out.
            if condition == self._shown.setdefault(new.key, before):
                self.conditions.pop(new.key, None)
            else:
                self.conditions[new.key] = condition
        self.events.append(WatchEvent(ADDED if old is None else MODIFIED, old, new, self._version))

    def _remove(self, old: Object) -> None:
        self._version += 1
        self._removed[old.kind, old.key] = self.objects.pop((old.kind, old.key))
        if old.kind == "Pod":
            self.conditions.pop(old.key, None)
        self.events.append(WatchEvent(DELETED, old, old, self._version))


def _key(named: Raw) -> str:
    namespace = named.get("namespace")
    return f"{namespace}/{named['name']}" if namespace else str(named["name"])


def _other_uid(pod: Pod, uid: str) -> Status:
    stored = f"StorageError: invalid object, Code: 4, Key: /registry/pods/{pod.key}, ResourceVersion: 0"
    wrong = f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {pod.uid}"
    return error(f'Operation cannot be fulfilled on pods "{pod.name}": {stored}, {wrong}')


def _not_found(kind: str, key: str) -> Status:
    return error(f'{kind.lower()}s "{key}" not found')
