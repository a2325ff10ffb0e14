"""Test of faults between schedulers and an API server: `python -m tests.bench.live_faults --pods 10000 --faults 50`.

Two schedulers, a leader and a standby, bind the pods of 20 Deployments through a proxy. By a seed, faults of all kinds
occur one after the other: the server or the leader is killed, connections are dropped, requests or answers are lost,
requests are rejected, answers are late. At each fault, some bound pods are deleted, so that they are replaced. A third
client observes all pods without the proxy.

At the end, no pod has had two nodes, each Deployment has exactly its replicas, all of them are bound, no node is over
its capacity, and at no time a Deployment had more bound pods than replicas. The pause of a fault is the longest time
without a binding that begins within a second of the fault.

The server is a daemon with `--http` and a state directory, or with `--real` the kube-apiserver of KUBE_APISERVER with
etcd (ETCD) and the controllers for Deployments and ReplicaSets of KUBE_CONTROLLER_MANAGER.
"""

import argparse
import os
import random
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from kschedd.live.api_server import ApiServer, ServedResource
from kschedd.live.connection import ServerRequest
from kschedd.live.errors import HistoryLost, LiveError
from tests.bench.faulty_proxy import FaultyProxy, faulty_proxy
from tests.live.test_mirror import KUBECONFIG
from tests.real.test_api_server import TOKEN, free_port, real_commands

Raw = dict[str, Any]

PODS: Final = ServedResource("Pod", "v1", "pods")
DEPLOYMENTS: Final = 20
NODES: Final = 100
LASTING_S: Final = {
    "requests lost": 0.5,
    "answers lost": 0.5,
    "500": 2.0,
    "429": 2.0,
    "503": 2.0,
    "slow": 3.0,
    "hanging": 3.0,
}
FAULTS: Final = (
    "server killed",
    "leader killed",
    "standby killed",
    "leader and server killed",
    "connections dropped",
    *LASTING_S,
)
DELETED: Final = 20  # pods per fault
_PATIENCE_S: Final = 300.0
CONFIG: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 5s, renewDeadline: 3s, retryPeriod: 1s}
clientConnection: {kubeconfig: "", qps: -1}
"""


@attrs.define(eq=False)
class Program:
    """A process that can be killed and started again."""

    command: Sequence[str]
    log: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(self.command, stdout=output, stderr=output)

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def start_if_ended(self) -> bool:
        """Start the program again if it has ended by itself; return whether it had."""
        ended = self.process is not None and self.process.poll() is not None
        if ended:
            self.start()
        return ended


@attrs.define(eq=False)
class Server:
    """The API server: `killed` is the process that the test kills, `others` are further processes."""

    port: int
    kubeconfig: Path
    killed: Program
    others: Sequence[Program] = ()
    tls: ssl.SSLContext | None = None

    async def run(self) -> None:
        for program in (*self.others, self.killed):
            program.start()

    def end(self) -> None:
        for program in (self.killed, *self.others):
            if program.process is not None:
                program.kill()


def written_kubeconfig(folder: Path, name: str, url: str, token: str = "", authority: str = "") -> Path:
    path = folder / name
    user = f"{{token: {token}}}" if token else "{}"
    trusted = f', certificate-authority: "{authority}"' if authority else ""
    text = KUBECONFIG.format(url=url).replace("user: {}", f"user: {user}")
    path.write_text(text.replace(f'server: "{url}"', f'server: "{url}"{trusted}'))
    return path


def own_server(folder: Path, *flags: str) -> Server:
    port = free_port()
    state, socket = str(folder / "state"), str(folder / "server.sock")
    behavior = "start=0s,terminate=0s"
    command = (
        *(sys.executable, "-m", "kschedd", "run", "--socket", socket, "--state", state, "--without", "scheduler"),
        *("--http", f"127.0.0.1:{port}", "--pod-behavior", behavior, *flags),
    )
    kubeconfig = written_kubeconfig(folder, "direct", f"http://127.0.0.1:{port}")
    return Server(port, kubeconfig, Program(command, folder / "server.log"))


def real_server_alone(folder: Path, *flags: str) -> Server:
    """Return a kube-apiserver with etcd, without controllers."""
    commands = real_commands(folder)
    url, port = commands.server.url, int(commands.server.url.rpartition(":")[2])
    authority = folder / "ca.crt"
    assert commands.server.authority is not None
    authority.write_text(commands.server.authority)
    kubeconfig = written_kubeconfig(folder, "direct", url, TOKEN, str(authority))
    etcd = Program(commands.etcd, folder / "etcd.log")
    tls = ssl.create_default_context(cadata=commands.server.authority)
    tls.check_hostname = False
    return Server(port, kubeconfig, Program([*commands.apiserver, *flags], folder / "apiserver.log"), [etcd], tls)


def real_server(folder: Path) -> Server:
    alone = real_server_alone(folder)
    controllers = (
        *(os.environ["KUBE_CONTROLLER_MANAGER"], "--kubeconfig", str(alone.kubeconfig), "--leader-elect=false"),
        *("--secure-port=0", "--controllers=deployment-controller,replicaset-controller", "--kube-api-qps=500"),
        "--kube-api-burst=1000",
    )
    return attrs.evolve(alone, others=[*alone.others, Program(controllers, folder / "controllers.log")])


@attrs.define(eq=False)
class Observer:
    """The history of all pods, from a watch without the proxy."""

    server: ApiServer
    nodes: defaultdict[str, set[str]] = attrs.field(factory=lambda: defaultdict(set))  # by uid
    present: dict[str, Raw] = attrs.field(factory=dict)  # pods by uid
    bound: dict[str, str] = attrs.field(factory=dict)  # application by uid, of pods that are not being deleted
    count: Counter[str] = attrs.field(factory=Counter)  # of bound pods by application
    most: Counter[str] = attrs.field(factory=Counter)  # largest number of bound pods at the same time by application
    bindings_at: list[float] = attrs.field(factory=list)
    deleted: int = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        since, is_started = "", False
        while True:
            try:
                if not since:
                    since = await self._list()
                    if not is_started:
                        is_started = True
                        task_status.started()
                async with aclosing(self.server.watch(PODS, since)) as watch:
                    async for batch in watch:
                        for event in batch.events:
                            if event["type"] != "BOOKMARK":
                                self._observe(event["object"], event["type"] == "DELETED")
                            since = event["object"]["metadata"]["resourceVersion"]
            except HistoryLost:
                since = ""
            except LiveError:
                await trio.sleep(0.1)

    async def _list(self) -> str:
        more, found = "", []
        while True:
            page = await self.server.page(PODS, more)
            found += page.items
            if not (more := page.more):
                break
        listed = {pod["metadata"]["uid"] for pod in found}
        for uid in self.present.keys() - listed:
            self._observe(self.present[uid], True)
        for pod in found:
            self._observe(pod, False)
        return page.version

    def _observe(self, pod: Raw, gone: bool) -> None:
        meta, node = pod["metadata"], pod["spec"].get("nodeName")
        uid, app = meta["uid"], meta["labels"]["app"]
        if node:
            if uid not in self.nodes:
                self.bindings_at.append(trio.current_time())
            self.nodes[uid].add(node)
        if gone:
            self.present.pop(uid, None)
            self.deleted += 1
        else:
            self.present[uid] = pod
        if gone or meta.get("deletionTimestamp") or not node:
            self.count[app] -= self.bound.pop(uid, None) is not None
        elif uid not in self.bound:
            self.bound[uid] = app
            self.count[app] += 1
            self.most[app] = max(self.most[app], self.count[app])


@attrs.define(eq=False)
class Run:
    server: Server
    client: ApiServer
    proxy: FaultyProxy
    schedulers: list[Program]
    observer: Observer
    chance: random.Random
    pods: int
    holders: dict[str, int] = attrs.field(factory=dict)  # places of schedulers by identity in the Lease
    begun: float = 0.0  # time of the latest fault
    ended: int = 0  # number of schedulers that ended by themselves and were started again

    async def ask(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> Raw | None:
        """Send a request until the server answers; return None if the object exists, or no longer exists."""
        with trio.fail_after(_PATIENCE_S):
            while True:
                try:
                    return await self.client.ask(ServerRequest(method, path, None, body, media_type))
                except LiveError as failure:
                    if failure.code in (404, 409):
                        return None
                    if failure.code in (400, 401, 403, 422):
                        raise
                await trio.sleep(0.2)

    async def fill(self) -> None:
        per_node = 2 * self.pods // NODES
        capacity = {"cpu": str(per_node // 10 + 1), "memory": "64Gi", "pods": str(per_node)}
        for number in range(NODES):
            name = f"n{number}"
            meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
            status = {"capacity": capacity, "allocatable": capacity}
            await self.ask(
                "POST", "api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}
            )
            if self.server.tls is not None:  # without a node controller
                await self.ask(
                    "PATCH", f"api/v1/nodes/{name}", {"spec": {"taints": None}}, "application/merge-patch+json"
                )
        for number in range(DEPLOYMENTS):
            path = "apis/apps/v1/namespaces/default/deployments"
            await self.ask("POST", path, deployment(f"web{number}", self.pods // DEPLOYMENTS))

    async def bound_at_least(self, count: int) -> None:
        """Wait until this number of pods has ever been bound."""
        seen, at = len(self.observer.nodes), trio.current_time()
        while len(self.observer.nodes) < count:
            await trio.sleep(0.01)
            if len(self.observer.nodes) > seen:
                seen, at = len(self.observer.nodes), trio.current_time()
            assert trio.current_time() < at + _PATIENCE_S, f"no binding for {_PATIENCE_S:.0f} s: {seen} of {count} pods"

    async def all_bound(self) -> None:
        seen, at = 0, trio.current_time()
        while len(self.observer.bound) < self.pods or len(self.observer.present) > self.pods:
            await trio.sleep(0.05)
            if len(self.observer.nodes) > seen:
                seen, at = len(self.observer.nodes), trio.current_time()
            if trio.current_time() > at + _PATIENCE_S:
                return

    async def delete_some(self) -> None:
        bound = sorted(self.observer.bound)
        for uid in self.chance.sample(bound, min(DELETED, len(bound))):
            pod = self.observer.present.get(uid)
            if pod is not None:
                options = {
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "gracePeriodSeconds": 0,
                    "preconditions": {"uid": uid},
                }
                await self.ask("DELETE", f"api/v1/namespaces/default/pods/{pod['metadata']['name']}", options)

    async def leader(self) -> int:
        """Return the place of the leader in `schedulers`."""
        lease = await self.ask("GET", "apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
        holder = "" if lease is None else str(lease["spec"].get("holderIdentity"))
        found = self.holders.get(holder)
        if found is not None:
            return found
        for place, scheduler in enumerate(self.schedulers):
            socket = scheduler.command[scheduler.command.index("--socket") + 1]
            done = await trio.run_process(
                [sys.executable, "-m", "kschedd", "status", "-o", "json", "--socket", socket],
                capture_stdout=True,
                check=False,
            )
            if b'"leads": true' in done.stdout or b'"leads":true' in done.stdout:
                self.holders[holder] = place
                return place
        return 0

    def start_ended(self) -> None:
        """Start schedulers again that have ended by themselves, as a Deployment does."""
        self.ended += sum([scheduler.start_if_ended() for scheduler in self.schedulers])

    async def happen(self, fault: str) -> None:
        if "leader" in fault or "standby" in fault:
            leader = await self.leader()
            self.begun = trio.current_time()
            await trio.to_thread.run_sync(self.schedulers[leader if "leader" in fault else 1 - leader].restart)
        self.begun = trio.current_time()
        if "server" in fault:
            await trio.to_thread.run_sync(self.server.killed.restart)
        elif fault == "connections dropped":
            self.proxy.drop_connections()
        elif fault in LASTING_S:
            self.proxy.fault = fault
            await trio.sleep(LASTING_S[fault])
            self.proxy.fault = ""

    def pause(self) -> float:
        """Return the longest time without a binding that begins within a second of the latest fault."""
        begun, times = self.begun, pairwise(self.observer.bindings_at)
        around = [(max(at, begun), after) for at, after in times if at < begun + 1.0 and after > begun]
        return max((after - at for at, after in around), default=0.0)


def deployment(name: str, replicas: int) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


@asynccontextmanager
async def started(folder: Path, make: Callable[[Path], Server], seed: int, pods: int) -> AsyncIterator[Run]:
    server = make(folder)
    token = TOKEN if server.tls is not None else ""
    async with AsyncExitStack() as stack:
        stack.callback(server.end)
        await server.run()
        client = await stack.enter_async_context(await ApiServer.connect(str(server.kubeconfig)))
        proxy = await stack.enter_async_context(faulty_proxy(server.port, server.tls))
        nursery = await stack.enter_async_context(trio.open_nursery())
        observer = Observer(client)
        with trio.fail_after(120):
            await nursery.start(observer.run)
        for program in server.others:  # controllers end if the server is not ready within some seconds
            program.start_if_ended()
        proxied = written_kubeconfig(folder, "proxied", f"http://127.0.0.1:{proxy.port}", token)
        (folder / "config.yaml").write_text(CONFIG)
        schedulers = []
        for number in range(2):
            command = (
                *(sys.executable, "-m", "kschedd", "run", "--schedule", "--kubeconfig", str(proxied)),
                *("--config", str(folder / "config.yaml"), "--socket", str(folder / f"s{number}.sock")),
            )
            schedulers.append(Program(command, folder / f"s{number}.log"))
            stack.callback(schedulers[-1].kill)
        run = Run(server, client, proxy, schedulers, observer, random.Random(seed), pods)
        await run.fill()
        for scheduler in schedulers:
            scheduler.start()
        yield run
        nursery.cancel_scope.cancel()


async def main(folder: Path, make: Callable[[Path], Server], seed: int, pods: int, faults: int) -> bool:
    pauses: defaultdict[str, list[float]] = defaultdict(list)
    began = time.monotonic()
    async with started(folder, make, seed, pods) as run:
        for number in range(faults):
            await run.bound_at_least((number + 1) * pods // (faults + 1))
            fault = run.chance.choice(FAULTS)
            run.start_ended()
            await run.happen(fault)
            await run.delete_some()
            await run.bound_at_least(len(run.observer.nodes) + 1)
            pauses[fault].append(run.pause())
            print(f"  {number + 1}: {fault}: {pauses[fault][-1]:.2f} s; {len(run.observer.bound)} bound", flush=True)
        await run.all_bound()
        await trio.sleep(2)
        observer = run.observer
        twice = sum(len(nodes) > 1 for nodes in observer.nodes.values())
        lost = pods - len(observer.bound)
        apps = Counter(observer.bound.values())
        exact = set(apps.values()) == {pods // DEPLOYMENTS} and len(observer.present) == pods
        used = Counter(next(iter(observer.nodes[uid])) for uid in observer.bound)
        over = sum(count > 2 * pods // NODES for count in used.values())
        surplus = sum(max(0, most - pods // DEPLOYMENTS) for most in observer.most.values())
    for fault in FAULTS:
        if found := pauses[fault]:
            print(f"| {fault} | {len(found)} | {statistics.median(found):.1f} | {max(found):.1f} |")
    print(
        f"seed {seed}: {len(observer.nodes)} bindings of {pods} pods, {sum(map(len, pauses.values()))} faults, "
        f"{observer.deleted} pods deleted, {time.monotonic() - began:.0f} s: bound twice {twice}, lost {lost}, "
        f"nodes over capacity {over}, replicas exact {exact}, more placed than replicas {surplus}, "
        f"schedulers that ended by themselves {run.ended}",
        flush=True,
    )
    return not (twice or lost or over or surplus) and exact


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for logs and state, kept at the end")
    given = parser.parse_args()
    ok = True
    for seed in given.seeds:
        with tempfile.TemporaryDirectory(prefix="live-faults") as name:
            folder = Path(name) if given.keep is None else given.keep / str(seed)
            folder.mkdir(parents=True, exist_ok=True)
            ok &= trio.run(main, folder, real_server if given.real else own_server, seed, given.pods, given.faults)
    sys.exit(not ok)
