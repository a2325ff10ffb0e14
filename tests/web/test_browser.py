"""Use the page in headless Chromium.

The programs also check accessibility with axe-core, that no text of the cluster becomes an element, that the page fits
into 400 px, and that it requests nothing from other hosts.
"""

import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from kschedd.api.amounts import amount
from kschedd.apiserver.access import Access
from kschedd.clusters.virtual import VirtualCluster
from kschedd.http.server import HttpServer
from kschedd.methods import daemon_methods
from kschedd.rpc.sessions.built_in import method_table
from kschedd.sdk.objects import node, pod
from kschedd.service.daemon.process import DaemonState
from kschedd.service.workers import FairShares
from kschedd.web.serving import PATH, WebPage
from tests.command_line_daemons import CommandLineDaemon, command_line_daemon
from tests.web.chromium import Chromium, chromium

__all__ = ["chromium"]

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
VIEWS = ("pending", "nodes", "decision", "queue", "what-if")
AMOUNTS = [
    *(("cpu", units) for units in (0, 250, 1500, 16_000, 1_234_567)),
    *(("memory", units) for units in (0, 1023, 64 << 20, 1500 << 20, 123_456_789, 16 << 30, 5 << 40)),
    ("ephemeral-storage", 10**11),
    ("hugepages-2Mi", 4 << 20),
    ("example.com/gpu", 12_345),
]
CLEAN = ["origins: 1", "axe: no violations", "faults: none"]


def tokens_file(folder: Path, *lines: str) -> str:
    path = folder / "tokens"
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(0o600)
    return str(path)


def address_of(daemon: CommandLineDaemon) -> str:
    """Return the address of the page without a code that logs in."""
    return daemon.kschedd("web").strip().partition("login?")[0]


def test_each_view_in_a_browser(tmp_path: Path, chromium: Chromium) -> None:
    with command_line_daemon(tmp_path, "--web", "--http-tokens", tokens_file(tmp_path, "t,ann,1"), nodes=0) as daemon:
        daemon.kschedd("apply", "-f", str(HERE / "cluster.yaml"))
        daemon.kschedd("wait", "--for=condition=Ready", "pod", "-l", "app=web")
        amounts = json.dumps([(*each, amount(*each)) for each in AMOUNTS])
        assert chromium.run("browser.mjs", daemon.kschedd("web").strip(), amounts) == [
            "amounts: []",
            "address after the login: contains no code",
            "causes: 2",
            "focus after the button: the remedies",
            "remedy: Remedy 1: request 7 cpu verified",
            "cause for one object: deployment/web in default: 4 of 4 pods scheduled.",
            "node by keyboard: n1",
            "cause for a node: nothing is wrong with n1",
            "nodes at the first time: 2 nodes in 2 zones",
            "decided again: yes",
            "scores at 1200 px: fits",
            "moves: several",
            "skip link: main of Queue",
            "fork: Pods: 2 moved",
            "invalid manifest: -:1: apiVersion: Required value",
            "discarded: yes",
            *(f"{view} at {size} px: fits" for size in (400, 1200, 2000) for view in VIEWS),
            "elements made by names: 0",
            *CLEAN,
        ]


def test_two_users_and_two_tabs(tmp_path: Path, chromium: Chromium) -> None:
    tokens = tokens_file(tmp_path, "a,ann,1", 'b,bob,2,"kschedd:read-only"')
    with command_line_daemon(tmp_path, "--web-controls", "--http-tokens", tokens, nodes=2) as daemon:
        daemon.kschedd("create", "deployment", "web", "--image", "web", "--replicas", "4")
        daemon.kschedd("wait", "--for=condition=Ready", "pod", "-l", "app=web")
        made = "of-ann by ann: Pods: 2 moved; of-bob by bob: Pods: 2 moved"
        assert chromium.run("users.mjs", address_of(daemon), "a", "b") == [
            f"cards of bob: {made}",
            'bob uses the name of ann\'s fork: there is a fork "of-ann" already: discard it, or take another name',
            "bob discards ann's fork: fork.discard: bob has read-only access, and did not create the fork "
            '"of-ann": create one',
            f"cards of ann's second tab: {made}",
            f"ann's second fork: more by ann: Pods: 2 moved; {made}",
            f"cards of ann's first tab: {made}",
            "controls of bob: 0",
            "bob pauses: forbidden",
            "bob deletes: forbidden",
            "ann pauses: bob sees it",
            *CLEAN,
        ]


def test_the_page_continues_after_a_restart_of_the_daemon(tmp_path: Path, chromium: Chromium) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ("--web", "--state", str(tmp_path / "state"), "--http", f"127.0.0.1:{port}")
    with command_line_daemon(tmp_path, *flags, nodes=3) as daemon:
        stop, start = daemon.command("stop"), daemon.command("run", "--detach", *flags)
        assert chromium.run("reconnect.mjs", address_of(daemon), json.dumps(stop), json.dumps(start)) == [
            "stopped: the daemon cannot be reached; the page retries every 2 seconds",
            "started again: 3 nodes",
            "the view: is read again",
        ]


CRON_JOB = """apiVersion: batch/v1
kind: CronJob
metadata: {name: later}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
"""


def test_a_button_advances_virtual_time(tmp_path: Path, chromium: Chromium) -> None:
    start = "virtual@2025-01-01T00:00:00Z"
    with command_line_daemon(tmp_path, "--web-controls", "--time", start, nodes=1) as daemon:
        for name, cpu in (("small", "2"), ("large", "6")):
            daemon.kschedd("advance", "10s")
            daemon.kschedd("apply", "-f", "-", given=json.dumps(pod(name, cpu=cpu)))
        daemon.kschedd("apply", "-f", "-", given=CRON_JOB)
        assert chromium.run("time.mjs", address_of(daemon), "90") == [
            "seconds later: 90",
            "attempts: more",
            "first time: 00:00:10, 24 %",
            "last time: 100 %",
            *CLEAN,
        ]


def test_a_button_plays_a_recording(tmp_path: Path, chromium: Chromium) -> None:
    recording = HERE.parent / "simulation/replay/recordings/incident.rec"
    command = [sys.executable, "-m", "kschedd", "replay", str(recording), "--serve", "--socket", str(tmp_path / "s")]
    with subprocess.Popen(
        [*command, "--until", "1", "--web", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as replay:
        try:
            assert replay.stdout is not None
            assert chromium.run("time.mjs", replay.stdout.readline().strip(), "600") == [
                "seconds later: 2",
                "attempts: more",
                "first time: 00:00:02, 72 %",
                "last time: 76 %",
                *CLEAN,
            ]
        finally:
            replay.terminate()


@contextmanager
def served(cluster: VirtualCluster) -> Iterator[str]:
    """Serve the page of a cluster in virtual time in a thread; yield its address."""
    ready: queue.SimpleQueue[tuple[str, trio.lowlevel.TrioToken, trio.CancelScope]] = queue.SimpleQueue()

    async def serve() -> None:
        methods = method_table(daemon_methods(cluster, DaemonState("0", "-", cluster.engine.start_s)))
        page = WebPage(methods, {}, Access(), FairShares(), None, None, controls=False)
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with trio.open_nursery() as nursery:
            await nursery.start(HttpServer(page).serve, listeners)
            address = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}{PATH}"
            ready.put((address, trio.lowlevel.current_trio_token(), nursery.cancel_scope))

    thread = threading.Thread(target=trio.run, args=(serve,))
    thread.start()
    address, token, scope = ready.get(timeout=60)
    try:
        yield address
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join()


def test_5_000_nodes_and_50_000_pods(chromium: Chromium) -> None:
    cluster = VirtualCluster(seed=1, controlled=False)
    store = cluster.engine.store
    for number in range(5_000):
        raw = node(f"node-{number}", cpu="16", labels={"topology.kubernetes.io/zone": f"zone-{number % 3}"})
        ready = "False" if number < 7 else "True"
        raw["status"]["conditions"] = [{"type": "Ready", "status": ready}]
        store.create(raw)
    for number in range(50_000):
        raw = pod(f"pod-{number}", cpu=f"{number % 9 * 200}m")
        raw["spec"]["nodeName"] = f"node-{number % 4_000}"
        store.create(raw)
    store.create(pod("giant", cpu="64"))
    cluster.engine.run_until_idle()
    with served(cluster) as address:
        assert chromium.run("large.mjs", address) == [
            "nodes: nodes.usage, bytes within 250000",
            "facts: 5,000 nodes in 3 zones, 50,000 pods, 0 cordoned, 7 not ready.",
            "first nodes: node-4 NotReady; node-3 NotReady",
            "colors: several",
            "pods of a node: 13",
            "pending: causes.pending, bytes within 20000",
            "cause: causes.explain scheduler.explain, small",
            "funnel: all nodes 5,000; NodeResourcesFit -5,000, 0 left",
            "queue: queue.list queue.list waiting.list, bytes within 60000",
            *CLEAN,
        ]
