#!/usr/bin/env python3
"""Use of the daemon's socket with kschedd's client: apply pods, watch until they are placed, explain.

    kschedd run --detach
    kschedd apply -f examples/demo/01-cluster.yaml
    python examples/scripts/client.py

`BlockingClient` needs no event loop. For Trio programs, `kschedd.rpc.client.Client` has the same methods, which are
awaited. The page METHODS.md describes every method of the socket.
"""

import sys

from kschedd.errors import KscheddError
from kschedd.rpc.blocking import BlockingClient

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "from-python"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "from-python"}},
        "template": {
            "metadata": {"labels": {"app": "from-python"}},
            "spec": {"containers": [{"name": "app", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}]},
        },
    },
}


def main() -> None:
    with BlockingClient(timeout=30) as daemon:
        # The list has a version; the stream contains every change after this version, so nothing is missed.
        since = daemon.call("objects.list", kind="Pod", namespace="default")["resource_version"]
        answer = daemon.call("objects.apply", manifests=DEPLOYMENT)
        for result in answer["results"]:
            print(f"{result['kind']} {result['name']} {result['action']}")
        for error in answer["errors"]:
            sys.exit(error["message"])
        placed: dict[str, str] = {}
        with daemon.subscribe("objects.watch", kind="Pod", namespace="default", since=since) as changes:
            for change in changes:
                pod = change["object"]
                name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
                if pod["metadata"].get("labels", {}).get("app") != "from-python":
                    continue
                if node and name not in placed:
                    placed[name] = node
                    print(f"{name} went to {node}")
                for condition in pod.get("status", {}).get("conditions", ()):
                    if condition.get("reason") == "Unschedulable":
                        sys.exit(f"{name} is pending: {condition['message']}")
                if len(placed) == 3:
                    break
        why = daemon.call("scheduler.explain", pod=f"default/{min(placed)}")
        best = sorted(why["totals"].items(), key=lambda item: -item[1])[:3]
        print(f"for {min(placed)}, points were: " + ", ".join(f"{node} {points}" for node, points in best))


if __name__ == "__main__":
    try:
        main()
    except KscheddError as error:
        sys.exit(str(error))
