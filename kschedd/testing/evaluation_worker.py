"""The process in which a plugin is evaluated: it reads a task from standard input and writes the answer to a file.

The command is `python -m kschedd.testing.evaluation_worker ANSWER`, which `kschedd.testing.evaluation` runs.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import pstdev
from typing import Any, Final

from kschedd.errors import KscheddError

_LARGEST_FILE: Final = 64 << 20  # bytes
_MOST_PROCESSES: Final = 256  # maximum number of processes and threads in addition to those that exist at the start
_MOST_MESSAGES: Final = 20
_CALL_LIMIT_S: Final = 5.0  # time limit in seconds for one call of the plugin


def main() -> None:
    """Run the task and write the answer."""
    task = json.load(sys.stdin)
    answer = Path(sys.argv[1])
    _limit(task["limits"])
    found: dict[str, Any] = {"error": "", "runs": [], "artifacts": {}}
    try:
        _run(task, found)
    except KscheddError as fault:
        found["error"] = str(fault)
    except MemoryError:
        found["error"] = "memory limit exceeded"
    except BaseException as fault:  # the program may raise any exception, including SystemExit
        found["error"] = f"{type(fault).__name__}: {fault}"
    partial = answer.with_suffix(".partial")
    partial.write_text(json.dumps(found), encoding="utf-8")
    partial.rename(answer)
    sys.stdout.flush()
    os._exit(0)  # threads with calls that do not return must not keep the process alive


def _limit(limits: Mapping[str, float]) -> None:
    whole_s = int(limits["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole_s * 2, whole_s * 2))
    resource.setrlimit(resource.RLIMIT_AS, (int(limits["bytes"]), int(limits["bytes"])))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # processes of all users, because the limit applies to a user
    tasks = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    resource.setrlimit(resource.RLIMIT_NPROC, (tasks + _MOST_PROCESSES, tasks + _MOST_PROCESSES))


def _run(task: Mapping[str, Any], found: dict[str, Any]) -> None:
    from kschedd.framework.registry import Registry

    registry = Registry()
    names = registry.add_file(Path(task["plugin"]))
    if task["rules"]:
        broken = _broken_rules([registry.added[name] for name in names if name in registry.added])
        if broken:
            found["error"] = broken[0]
            found["artifacts"]["broken_rules"] = "\n".join(broken)
            return
    messages: dict[str, None] = {}
    for case in task["suite"]["cases"]:
        for seed in range(task["seeds"]):
            found["runs"].append(_one(task["plugin"], case, seed, messages))
    if messages:
        found["artifacts"]["messages"] = "\n".join(list(messages)[:_MOST_MESSAGES])


def _broken_rules(classes: Sequence[type[Any]]) -> list[str]:
    from kschedd.testing.rules import RULES, BrokenRule, check

    broken = []
    for cls in classes:
        for rule in RULES:
            try:
                check(rule, cls, seeds=range(3))
            except BrokenRule as fault:
                broken.append(str(fault))
    return broken


def _one(plugin: str, case: Mapping[str, Any], seed: int, messages: dict[str, None]) -> dict[str, Any]:
    """Run one case with one seed, and record messages of pods without a node."""
    from kschedd.sdk.cluster import Cluster
    from kschedd.sdk.records_of_objects import used_cpu, used_memory

    began = time.process_time()
    version = case.get("version", "")
    given = case.get("from")
    if given:
        cluster = Cluster.from_dump(given[0], version=version, seed=seed, plugins=[plugin], plugin_limit=_CALL_LIMIT_S)
    else:
        cluster = Cluster(version=version, seed=seed, plugins=[plugin], plugin_limit=_CALL_LIMIT_S)
    with cluster:
        cluster.apply(_nodes(case.get("nodes")), [Path(path) for path in case.get("files", ())])
        cluster.apply(_pods(case.get("pods"), Random(seed)))
        cluster.advance(case.get("until", "1m"))
        for waiting in cluster.pending():
            messages.setdefault(f"{case['name']}: {waiting.message}")
        pods, nodes = cluster.pods, cluster.nodes
        in_use = [node for node in nodes if node.pods]
        shares = [node.cpu_used for node in nodes if node.cpu_allocatable]
        return {
            "case": case["name"],
            "seed": seed,
            "placed": sum(pod.node is not None for pod in pods) / len(pods) if len(pods) else 1.0,
            "cpu_used": used_cpu(in_use),
            "memory_used": used_memory(in_use),
            "nodes_used": len(in_use) / len(nodes) if len(nodes) else 0.0,
            "imbalance": pstdev(shares) if shares else 0.0,
            "seconds": time.process_time() - began,
        }


def _nodes(given: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    from kschedd.sdk.objects import node

    if not given:
        return []
    fields = {name: value for name, value in given.items() if name != "count"}
    return [node(f"node-{number}", **fields) for number in range(1, given["count"] + 1)]


def _pods(given: Mapping[str, Any] | None, drawn: Random) -> list[dict[str, Any]]:
    """Return pods whose fields are drawn at random from the lists in the case."""
    from kschedd.sdk.objects import pod

    if not given:
        return []

    def field(value: Any) -> Any:
        return drawn.choice(value) if isinstance(value, list) else value

    return [
        pod(f"pod-{number}", **{name: field(value) for name, value in given.items() if name != "count"})
        for number in range(1, given["count"] + 1)
    ]


if __name__ == "__main__":
    main()
