"""Tests that random documents of every kind are stored or rejected with a message by every verb.

.venv/bin/python -m tests.store.test_random_documents 0 100     # seeds; prints the first bug of each
"""

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from kschedd.api.schemas.kinds import BY_NAME
from kschedd.api.schemas.schema import schema_of
from kschedd.errors import KscheddError
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node, pod, workload
from tests.store.random_documents import document, mutated, spoiled
from tests.store.test_junk import RICH, worded

Raw = dict[str, Any]
DOCUMENTS: Final = 500
VERSIONS: Final = {
    kind: version
    for kind in BY_NAME
    for version in (BY_NAME[kind].api_version,)
    if schema_of(version, kind) is not None
}
TEMPLATE: Final = workload("Deployment")["spec"]["template"]
TO_COMPLETION: Final = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}


def named(api_version: str, kind: str, **more: Any) -> Raw:
    spaced = kind not in BY_NAME or BY_NAME[kind].namespaced
    meta = {"name": "b", **({"namespace": "default"} if spaced else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **more}


DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ws.x.io"},
    "spec": {
        "group": "x.io",
        "scope": "Namespaced",
        "names": {"kind": "W", "plural": "ws", "singular": "w", "listKind": "WList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"x": {"type": "string", "enum": ["a", "b"]}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def whole_objects() -> list[Raw]:
    """Return valid objects for the tests to change."""
    daemons = workload("DaemonSet")
    del daemons["spec"]["replicas"]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}}
    job = {"template": TO_COMPLETION}
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return [
        DEFINITION,
        RICH,
        pod("plain"),
        node("n1"),
        config_map("c"),
        *map(workload, ("Deployment", "ReplicaSet", "StatefulSet")),
        daemons,
        named("batch/v1", "Job", spec=job),
        named("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": job}}),
        named("v1", "PersistentVolumeClaim", spec=claim),
        named("v1", "PersistentVolume", spec=volume),
        named("storage.k8s.io/v1", "StorageClass", provisioner="a.io/b"),
        named("v1", "Service", spec={"ports": [{"port": 80}], "selector": {"a": "b"}}),
        named("resource.k8s.io/v1", "ResourceClaim", spec={"devices": devices}),
        named("resource.k8s.io/v1", "ResourceSlice", spec={"driver": "a.io", "nodeName": "n1", "pool": pool}),
        named("policy/v1", "PodDisruptionBudget", spec={"selector": {"matchLabels": {"a": "b"}}, "minAvailable": 1}),
        named("x.io/v1", "W", spec={"x": "a"}, status={"replicas": 1}),
        named("no.io/v1", "Free", spec={"replicas": 1}, status={"a": 1}),
    ]


class Client:
    """A client that requests random changes, and counts the outcomes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.store = Store(now=Clock())
        for raw in whole_objects():
            self.store.create(raw)

    def ask(self) -> None:
        if self.chance.random() < 0.4:
            self._ask_for_any_kind()
        else:
            self._ask_for_a_change()

    def _ask_for_any_kind(self) -> None:
        kind, version = self.chance.choice(list(VERSIONS.items()))
        made = document(schema_of(version, kind), self.chance) | named(version, kind)
        raw = spoiled(made, self.chance) if self.chance.random() < 0.3 else made
        if isinstance(raw, dict):
            self._try(lambda: self.store.create(raw))
            self._try(lambda: self.store.apply(raw))

    def _ask_for_a_change(self) -> None:
        chance, store = self.chance, self.store
        template = chance.choice(whole_objects())
        there = store.list(template["kind"])
        if not there:
            self._try(lambda: store.create(template))
            return
        old = chance.choice(there)
        kind, schema = old.kind, schema_of(template["apiVersion"], old.kind)
        raw: Any = old.raw
        for _ in range(chance.choice((1, 1, 2))):
            raw = mutated(raw, schema, chance) if schema is not None and chance.random() < 0.6 else spoiled(raw, chance)
        if not isinstance(raw, dict):
            return
        part: Any = chance.choice(self._parts_of(kind))
        verb = chance.random()
        if verb < 0.5:
            as_client, dry_run = chance.random() < 0.8, chance.random() < 0.2
            self._try(lambda: store.update(raw, subresource=part, as_client=as_client, dry_run=dry_run))
        elif verb < 0.7:
            meta = raw.get("metadata")
            config = {**raw, "metadata": {**meta, "managedFields": None} if isinstance(meta, dict) else meta}
            key = kind, old.namespace, old.name
            self._try(lambda: store.server_side_apply(*key, config, "m", force=True, subresource=part))
        elif verb < 0.9:
            patch = {field: value for field, value in raw.items() if value is not old.raw.get(field)}
            sort: Any = chance.choice(("merge", "strategic"))
            level: Any = chance.choice(("Strict", "Warn", "Ignore"))
            key = kind, old.namespace, old.name
            self._try(lambda: store.patch(*key, patch, sort, subresource=part, validation=level))
        else:
            self._try(lambda: store.apply(raw))

    def _parts_of(self, kind: str) -> list[str]:
        parts = ["", "status", "status"]
        if kind == "Pod":
            parts += ["resize", "ephemeralcontainers"]
        return [""] if kind in ("ConfigMap", "StorageClass", "ResourceSlice") else parts

    def _try(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except KscheddError as refusal:
            worded(refusal)
            self.counts["refused"] += 1
        else:
            self.counts["stored"] += 1


@pytest.mark.parametrize("seed", range(6))
def test_random_changes_are_done_or_refused_in_words(seed: int) -> None:
    client = Client(seed)
    for _ in range(DOCUMENTS):
        client.ask()
    assert min(client.counts["refused"], client.counts["stored"]) > DOCUMENTS // 10


if __name__ == "__main__":
    for number in range(*map(int, sys.argv[1:3])):
        someone = Client(number)
        for _ in range(DOCUMENTS):
            someone.ask()
        print(number, dict(someone.counts))
