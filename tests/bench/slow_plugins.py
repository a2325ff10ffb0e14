"""Benchmark of four pods whose Bind takes two seconds, and of other work meanwhile.

`python -m tests.bench.slow_plugins [--pods N] [--seconds S]` starts a daemon with such a plugin and creates the pods.
Meanwhile it creates a pod of the default profile, and requests the status. It prints how long each took.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kschedd.rpc.blocking import BlockingClient

Raw = dict[str, Any]

PLUGIN = """
import time

from kschedd.plugin import Bind, Plan


class SlowBind:
    name = "SlowBind"

    def bind(self, state, pod, node_name):
        time.sleep({seconds})
        return Plan((Bind(pod.namespace, pod.name, pod.uid, node_name),))
"""

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: slow
  plugins:
    bind:
      enabled: [{name: SlowBind}]
      disabled: [{name: DefaultBinder}]
"""


def node(name: str) -> Raw:
    status = {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, profile: str) -> Raw:
    spec = {"schedulerName": profile, "containers": [{"name": "a", "image": "a"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def create(client: BlockingClient, *raws: Raw) -> None:
    client.call("objects.apply", manifests=list(raws))


def until_bound(client: BlockingClient, names: list[str]) -> float:
    """Return the seconds until all of these pods have a node."""
    started = time.perf_counter()
    while True:
        found = client.call("objects.list", "Pod")["items"]
        bound = {one["metadata"]["name"] for one in found if one["spec"].get("nodeName")}
        if bound >= set(names):
            return time.perf_counter() - started
        time.sleep(0.001)


def measure(socket: Path, pods: int) -> None:
    with BlockingClient(socket) as client, BlockingClient(socket) as other:
        create(client, node("n1"), node("n2"))
        create(client, pod("warm", "default-scheduler"))
        until_bound(client, ["warm"])
        slow = [f"slow-{number}" for number in range(pods)]
        started = time.perf_counter()
        create(client, *[pod(name, "slow") for name in slow])
        time.sleep(0.2)
        create(other, pod("unrelated", "default-scheduler"))
        unrelated = until_bound(other, ["unrelated"])
        requests = time.perf_counter()
        other.call("daemon.info")
        status = time.perf_counter() - requests
        until_bound(client, slow)
        print(f"{pods} pods with a slow Bind bound after {time.perf_counter() - started:.2f} s")
        print(f"an unrelated pod placed meanwhile after {1000 * unrelated:.1f} ms")
        print(f"status answered meanwhile after {1000 * status:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket, plugin, config = (Path(folder) / name for name in ("socket", "slow.py", "config.yaml"))
        plugin.write_text(PLUGIN.replace("{seconds}", str(options.seconds)))
        config.write_text(CONFIG)
        command = [sys.executable, "-m", "kschedd", "run", "--socket", socket, "--plugin", plugin, "--config", config]
        daemon = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            while not socket.exists():
                time.sleep(0.02)
            measure(socket, options.pods)
        finally:
            os.kill(daemon.pid, signal.SIGTERM)
            daemon.wait()


if __name__ == "__main__":
    main()
