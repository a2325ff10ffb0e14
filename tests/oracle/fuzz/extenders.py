"""Extenders on a local server, whose answers depend only on the extender's name and on the names in the request.

`python -m tests.oracle.fuzz.extenders` serves them for records that `kschedd verify` runs.
"""

import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from tests.extenders.servers import Answer, serving
from tests.oracle.fuzz.cluster import Cluster
from tests.oracle.fuzz.configurations import API_VERSION
from tests.oracle.fuzz.draws import EXTENDED, Raw

PORT: Final = 18787
_NAMES: Final = ("first", "second")


def extenders(cluster: Cluster) -> None:
    """Add one or two extenders to the configuration."""
    draw = cluster.draw
    kind = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    cluster.config = (cluster.config or kind) | {
        "extenders": [_extender(cluster, one) for one in draw.some(_NAMES, 1, 2)]
    }


def _extender(cluster: Cluster, name: str) -> Raw:
    draw = cluster.draw
    found: Raw = {
        "urlPrefix": f"http://127.0.0.1:{PORT}/{name}",
        "nodeCacheCapable": draw.chance(50),
        "ignorable": draw.chance(50),
        "httpTimeout": "30s",
    }
    if draw.chance(80):
        found["filterVerb"] = "filter"
    if draw.chance(50):
        found |= {"prioritizeVerb": "prioritize", "weight": draw.choice((1, 5, 1000)) if cluster.minor > 34 else 100000}
    if draw.chance(50):
        found["preemptVerb"] = "preempt"
    if name == _NAMES[0] and draw.chance(40):
        found["managedResources"] = [{"name": EXTENDED, "ignoredByScheduler": draw.chance(50)}]
    return found


def _number(*names: str) -> int:
    return zlib.crc32("/".join(names).encode())


def _filter(name: str) -> Answer:
    def answer(body: Raw) -> Raw:
        pod = body["Pod"]["metadata"]["name"]
        if _number(name, pod) % 12 == 0:
            return {"Error": f"{name} is told to fail"}
        given = body["Nodes"]["items"] if body["Nodes"] else None
        names = body["NodeNames"] if given is None else [one["metadata"]["name"] for one in given]
        kinds = {node: _number(name, pod, node) % 8 for node in names}
        found: Raw = {
            "FailedNodes": {node: f"{name} has no room" for node, kind in kinds.items() if kind in (0, 1)},
            "FailedAndUnresolvableNodes": {node: f"{name} never takes it" for node, kind in kinds.items() if kind == 2},
        }
        passed = [node for node, kind in kinds.items() if kind > 2]
        if given is None:
            return found | {"NodeNames": passed}
        return found | {"Nodes": {"items": [one for one in given if one["metadata"]["name"] in passed]}}

    return answer


def _prioritize(name: str) -> Answer:
    def answer(body: Raw) -> list[Raw]:
        pod = body["Pod"]["metadata"]["name"]
        names = body["NodeNames"] or [one["metadata"]["name"] for one in body["Nodes"]["items"]]
        return [{"Host": node, "Score": _number(name, "score", pod, node) % 1009} for node in names]

    return answer


def _preempt(name: str) -> Answer:
    def answer(body: Raw) -> Raw:
        full, meta = body["NodeNameToVictims"], body["NodeNameToMetaVictims"]
        victims = meta or {
            node: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in one["Pods"] or ()],
                "NumPDBViolations": one["NumPDBViolations"],
            }
            for node, one in (full or {}).items()
        }
        pod = body["Pod"]["metadata"]["name"]
        return {"NodeNameToMetaVictims": {node: one for node, one in victims.items() if _number(name, pod, node) % 3}}

    return answer


VERBS: Final[Mapping[str, Answer]] = {
    f"{name}/{verb}": make(name)
    for name in _NAMES
    for verb, make in (("filter", _filter), ("prioritize", _prioritize), ("preempt", _preempt))
}


@contextmanager
def answered() -> Iterator[None]:
    """Serve the extenders at PORT."""
    with serving(dict(VERBS), port=PORT, keep=False):
        yield


if __name__ == "__main__":
    with answered():
        threading.Event().wait()
