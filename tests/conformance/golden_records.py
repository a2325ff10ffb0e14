"""Small records in the golden format, for tests of `kschedd verify`."""

import json
from pathlib import Path
from typing import Any

Raw = dict[str, Any]


def node(name: str, cpu: str = "2") -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{name}"},
        "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "10"}},
    }


def pod(name: str, cpu: str = "1", priority: int = 0, **spec: Any) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
            "priority": priority,
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def case(number: int = 0, *, want: Raw, family: str = "small", **fields: Any) -> Raw:
    return {
        "id": f"{family}/{number:04}",
        "family": family,
        "config": None,
        "objects": [node("a")],
        "pod": pod("p"),
        "want": want,
        **fields,
    }


def trace(ops: list[Raw], steps: list[Raw], *, objects: list[Raw] | None = None, **fields: Any) -> Raw:
    return {
        "id": "traces/small-000",
        "family": "traces",
        "config": None,
        "feature_gates": {},
        "graceful_deletion": False,
        "autorun": False,
        "objects": [node("a")] if objects is None else objects,
        "ops": ops,
        "want": {"steps": steps},
        **fields,
    }


def write_records(file: Path, *records: Raw) -> Path:
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return file


# The expected result of `case`: the only node is feasible.
ONE_NODE_FITS: Raw = {
    "gated": None,
    "prefilter": None,
    "filter": {"a": None},
    "feasible": ["a"],
    "raw_scores": None,
    "scores": None,
    "total": None,
    "best": ["a"],
    "message": "",
    "unschedulable_plugins": [],
    "pending_plugins": [],
    "postfilter": None,
}
