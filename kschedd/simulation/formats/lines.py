"""kschedd's own format, which `workload convert` and `sample` write: JSON Lines, with one pod per line.

    {"created_s": 0.0, "deleted_s": 60.0, "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {...}, "spec": {...}}}

`deleted_s` is null for a pod that never ends. A pod's `priorityClassName` is `priority-N`.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kschedd.api.pods import Pod
from kschedd.errors import KscheddError
from kschedd.simulation.formats.tables import TraceFault, text_of
from kschedd.simulation.workloads.trace import NAMESPACE, TracePod


def read_pods(path: Path, faults: list[TraceFault]) -> list[TracePod]:
    """Read the pods. Equal specs are shared."""
    specs: dict[str, Any] = {}
    found: dict[str, TracePod] = {}
    for number, row in enumerate((text_of(path, faults) or "").splitlines(), start=1):
        try:
            line = json.loads(row)
            raw, created, deleted = line["pod"], float(line["created_s"]), line.get("deleted_s")
            meta, spec = raw["metadata"], raw["spec"]
            key = f"{meta.get('namespace', NAMESPACE)}/{meta['name']}"
            text = json.dumps(spec, sort_keys=True)
            if text not in specs:
                _ = Pod.from_raw(raw).requests  # raises an error for an invalid spec
            wrong = not 0 <= created < float("inf") or (deleted is not None and not created <= float(deleted) < 1e15)
        except (ValueError, KeyError, TypeError, AttributeError, KscheddError):
            faults.append(TraceFault(str(path), number, "", None, "must be JSON with created_s, deleted_s and pod"))
            continue
        if wrong:
            faults.append(TraceFault(str(path), number, "", None, "created_s: must be 0 or more, deleted_s not before"))
        if key in found:
            faults.append(TraceFault(str(path), number, "name", key, "must be unique"))
        shared = specs.setdefault(text, spec)
        ended = None if deleted is None else float(deleted)
        found[key] = TracePod(key, {**raw, "spec": shared}, created, ended, None, "Running")
    return list(found.values())


def lines_of(pods: Iterable[TracePod]) -> Iterator[str]:
    """Yield the lines of a file."""
    for pod in pods:
        line = {"created_s": pod.created_s, "deleted_s": pod.deleted_s, "pod": pod.raw}
        yield json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
