"""Tests of the real kube-scheduler and kube-controller-manager against the API server of a daemon.

KUBE_SCHEDULER and KUBE_CONTROLLER_MANAGER name the programs, which may be of any supported release; the daemon emulates
the release of the program. Without these variables, the tests are skipped; CONTRIBUTING.md describes how to build them.
The tests run in real time, and no test depends on a duration.
"""

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.command_line_daemons import CommandLineDaemon, command_line_daemon

SCHEDULER, CONTROLLER_MANAGER = "KUBE_SCHEDULER", "KUBE_CONTROLLER_MANAGER"
REPLICAS = 100
NODES = 10
_LONGEST_S = 90  # a watch without renewals ends after this time
# An informer that cannot list or watch its kind logs a line that matches this expression.
UNSYNCED = re.compile(r"^.*(?:Failed to watch|failed to list|[Tt]imed out waiting for caches|unable to sync).*$", re.M)
COMMON = ("--leader-elect=false", "--secure-port=0", "-v=2")


def program(variable: str) -> str:
    found = os.environ.get(variable)
    if not found:
        pytest.skip(f"{variable} names no program: CONTRIBUTING.md describes how to build it")
    return found


def release(path: str) -> str:
    """Return the minor release of a program, such as 1.37."""
    printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    found = re.search(r"v(1\.\d+)\.", printed)
    assert found is not None, printed
    return found[1]


@contextmanager
def running(path: str, daemon: CommandLineDaemon, *flags: str) -> Iterator[Path]:
    """Run a component as a client of the daemon, and return its log."""
    log = daemon.folder / f"{Path(path).name}.log"
    with log.open("wb") as output:
        command = [path, f"--kubeconfig={daemon.folder / 'kubeconfig'}", *COMMON, *flags]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield log
        assert process.poll() is None, log.read_text()[-2000:]
    finally:
        process.terminate()
        process.wait(30)


def items(daemon: CommandLineDaemon, *words: str) -> list[Any]:
    found: list[Any] = json.loads(daemon.kschedd("get", *words, "-o", "json"))["items"]
    return found


def rollout(daemon: CommandLineDaemon) -> None:
    daemon.kschedd("rollout", "status", "deployment/web", "--timeout=100s", timeout_s=120)


def images(daemon: CommandLineDaemon) -> set[str]:
    pods = [pod for pod in items(daemon, "pods") if "deletionTimestamp" not in pod["metadata"]]  # others still end
    assert len(pods) == REPLICAS
    return {pod["spec"]["containers"][0]["image"] for pod in pods}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param((SCHEDULER,), id="kube-scheduler"),
        pytest.param((CONTROLLER_MANAGER,), id="kube-controller-manager"),
        pytest.param((SCHEDULER, CONTROLLER_MANAGER), id="both"),
    ],
)
def test_a_deployment_is_scheduled_and_rolls_out_and_back(names: tuple[str, ...], tmp_path: Path) -> None:
    programs = [program(name) for name in names]
    replaced = {SCHEDULER: "scheduler", CONTROLLER_MANAGER: "controllers"}
    without = ",".join(replaced[name] for name in names)
    flags = ("--without", without, "--kube-version", release(programs[0]))
    with command_line_daemon(tmp_path, *flags, nodes=NODES) as daemon, ExitStack() as components:
        daemon.kubeconfig()
        logs = [components.enter_context(running(path, daemon)) for path in programs]
        daemon.kschedd("create", "deployment", "web", "--image=a", f"--replicas={REPLICAS}")
        rollout(daemon)
        assert all(pod["spec"]["nodeName"] for pod in items(daemon, "pods"))
        daemon.kschedd("set", "image", "deployment/web", "a=b")
        rollout(daemon)
        assert images(daemon) == {"b"}
        daemon.kschedd("rollout", "undo", "deployment/web")
        rollout(daemon)
        assert images(daemon) == {"a"}
        assert [line for log in logs for line in UNSYNCED.findall(log.read_text())] == []


def test_nodes_stay_ready_while_their_kubelets_renew_their_leases(tmp_path: Path) -> None:
    """Wait for two renewals; the grace period is shorter than the time between them."""
    path = program(CONTROLLER_MANAGER)
    flags = ("--without", "controllers", "--kube-version", release(path))
    with command_line_daemon(tmp_path, *flags, nodes=2) as daemon:
        daemon.kubeconfig()
        with running(path, daemon, "--node-monitor-grace-period=15s"):
            command = ("get", "leases", "-n", "kube-node-lease", "--watch-only", "-o", "name")
            renewals = subprocess.Popen(
                daemon.command(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            assert renewals.stdout is not None
            end = threading.Timer(_LONGEST_S, renewals.kill)
            end.start()
            try:
                seen = [renewals.stdout.readline().strip() for _ in range(5)]
            finally:
                end.cancel()
                renewals.kill()
                renewals.communicate()
        names = {f"lease.coordination.k8s.io/n{number}" for number in (1, 2)}
        assert set(seen) == names
        reasons = {event["reason"] for event in items(daemon, "events", "-A")}
        assert "NodeNotReady" not in reasons
