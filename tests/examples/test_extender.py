"""The extender of examples/extender in its own process, and a daemon that calls it: each verb has an effect."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kschedd.rpc.blocking import BlockingClient

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "extender"
Raw = dict[str, Any]
PATIENCE_S = 180


def _first_line(process: "subprocess.Popen[str]") -> str:
    """Return the first line that the process prints; kill the process if it prints nothing."""
    assert process.stdout is not None
    killer = threading.Timer(PATIENCE_S, process.kill)
    killer.start()
    line = process.stdout.readline()
    killer.cancel()
    assert line, "the process ended first"
    return line.strip()


@contextmanager
def _process(*command: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield started, _first_line(started)
    finally:
        started.kill()
        started.wait()
        assert started.stdout is not None
        started.stdout.close()


DAEMON = """
import sys, trio
from functools import partial
from pathlib import Path
from kschedd.serving import run_daemon
from kschedd.startup.options import DaemonOptions

class Status:
    def started(self, path):
        print("started", path, flush=True)

options = DaemonOptions(socket=Path(sys.argv[1]), config_file=Path(sys.argv[2]), seed=1, log_level="error")
sys.exit(trio.run(partial(run_daemon, options, task_status=Status())))
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingClient]:
    folder = tmp_path_factory.mktemp("extender")
    socket, config = folder / "k.sock", folder / "config.yaml"
    cards = str(EXAMPLE / "cards.py")
    with _process(sys.executable, cards, "--port", "0", "--socket", str(socket)) as (_, url):
        text = (EXAMPLE / "config.yaml").read_text()
        assert "http://127.0.0.1:8898" in text
        config.write_text(text.replace("http://127.0.0.1:8898", url))
        with _process(sys.executable, "-c", DAEMON, str(socket), str(config)) as (_, answer):
            assert answer == f"started {socket}"
            with BlockingClient(socket, timeout=PATIENCE_S) as client:
                yield client


def node(name: str, cards: int) -> Raw:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    meta = {"name": name, "labels": {"example.com/cards": str(cards)}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def pod(name: str, cards: int, cpu: str = "100m", **spec: Any) -> Raw:
    amounts = {"cpu": cpu, **({"example.com/card": str(cards)} if cards else {})}
    container = {"name": "a", "image": "a", "resources": {"requests": amounts, "limits": amounts}}
    whole = {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def settled(client: BlockingClient, name: str) -> str:
    """Return the pod's node, or the reason that it is unschedulable, whichever is reported first."""
    with client.subscribe("objects.watch", "Pod") as events:
        for event in events:
            found = event.get("object") or {}
            if found.get("metadata", {}).get("name") != name:
                continue
            if found["spec"].get("nodeName"):
                return str(found["spec"]["nodeName"])
            for condition in found.get("status", {}).get("conditions") or ():
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return str(condition["message"])
    raise AssertionError("the watch has ended")


def apply(client: BlockingClient, *raws: Raw) -> None:
    assert not client.call("objects.apply", manifests=list(raws))["errors"]


def test_filter_prioritize_bind_and_preempt(daemon: BlockingClient) -> None:
    important: Raw = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "important"}}
    apply(daemon, node("none", 0), node("two", 2), node("three", 3), {**important, "value": 10})
    apply(daemon, pod("exact", 2, priorityClassName="important"))
    assert settled(daemon, "exact") == "two"  # prioritize: an exact fit; and bind, which was the extender's
    apply(daemon, pod("next", 2))
    assert settled(daemon, "next") == "three"  # filter: "two" has none left
    apply(daemon, pod("late", 3))
    assert settled(daemon, "late").startswith(
        "0/3 nodes are available: 1 node(s) had too few cards left, 2 node(s) had too few cards."
    )
    apply(daemon, pod("plain", 0, cpu="3500m", nodeName="none"))
    daemon.call("objects.delete", kind="Pod", name="late")
    apply(daemon, pod("first", 2, cpu="3950m", priorityClassName="important"))
    with daemon.subscribe("objects.watch", "Pod") as events:
        for event in events:
            found = event.get("object") or {}
            if found.get("metadata", {}).get("name") == "first" and found["spec"].get("nodeName"):
                assert found["spec"]["nodeName"] == "three"
                break
    gone = {one["metadata"]["name"] for one in daemon.call("objects.list", "Pod")["items"]}
    assert "next" not in gone  # preempt: only where the victims hold enough cards
    assert {"exact", "plain"} <= gone
