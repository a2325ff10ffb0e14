"""Benchmark of schedulers of an API server: `python -m tests.bench.live_bindings --pods 600 --before ../other`.

For each turn and each scheduler, a new server gets 50 nodes and pods that are pending, each with a volume for a service
account's token. The scheduler starts as a standby and has read all objects when it becomes the leader. The output
contains, for the time from there until no more requests arrive: bindings per second (between the first and the last
binding), CPU time of the scheduler and of the server, and requests by kind, without those for Leases.

The server is a daemon with `--http`, or with `--real` the kube-apiserver of KUBE_APISERVER with etcd (ETCD). The
schedulers are this tree, the tree of `--before` (a checkout with `.venv`), and with `--real` the program of
KUBE_SCHEDULER, with its default limit of requests and with the limit of the others. The CPU time of a server depends on
the rate at which requests arrive: `--rate` sets the same rate for all schedulers.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from kschedd.live.api_server import ApiServer
from kschedd.live.connection import ServerRequest
from tests.bench.live_faults import Observer, Program, Server, own_server, real_server_alone
from tests.real.test_api_server import TOKEN

Raw = dict[str, Any]

NODES: Final = 50
_AFTER_S: Final = 3.0
_STANDBY_S: Final = 3.0
_IDLE_SHARE: Final = 0.03  # of a core: a scheduler that uses less has read all objects
_PATIENCE_S: Final = 300.0
_LEASES: Final = "apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_CONFIG: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: "{kubeconfig}"{limit}}}
"""
_AUDIT: Final = "audit.log"
_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
"""
_UNLIMITED: Final = 100_000
_BURST: Final = 10


@attrs.frozen
class Contender:
    name: str
    command: Sequence[str]
    rate: int  # requests per second; 0: the default of the scheduler

    def program(self, folder: Path, kubeconfig: Path) -> Program:
        config = folder / "scheduler.yaml"
        limit = f", qps: {self.rate}, burst: {_BURST if self.rate < _UNLIMITED else self.rate}" if self.rate else ""
        config.write_text(_CONFIG.format(kubeconfig=kubeconfig, limit=limit))
        found = {"kubeconfig": str(kubeconfig), "config": str(config), "socket": str(folder / "scheduler.sock")}
        return Program([word.format(**found) for word in self.command], folder / "scheduler.log")


def kschedd(name: str, program: Path, rate: int) -> Contender:
    words = ("run", "--schedule", "--kubeconfig", "{kubeconfig}", "--config", "{config}", "--socket", "{socket}")
    return Contender(name, (str(program), *words), rate)


def server_with_audit(folder: Path, real: bool) -> Server:
    audit = str(folder / _AUDIT)
    if not real:
        return own_server(folder, "--audit-log", audit)
    policy = folder / "policy.yaml"
    policy.write_text(_POLICY)
    return real_server_alone(folder, "--audit-policy-file", str(policy), "--audit-log-path", audit)


def contenders(before: Path | None, with_real: bool, rate: int) -> list[Contender]:
    found = [kschedd("kschedd", Path(sys.executable).with_name("kschedd"), rate)]
    if before is not None:
        found.append(kschedd(f"kschedd of {before.name}", (before / ".venv/bin/kschedd").resolve(), rate))
    if with_real and (path := os.environ.get("KUBE_SCHEDULER")):
        command = (path, "--config", "{config}", "--secure-port=0")
        found.append(Contender("kube-scheduler by default", command, 0))
        found.append(Contender("kube-scheduler", command, rate))
    return found


def cpu_s(process: int) -> float:
    """Return the CPU time of a process with its ended children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def idle(program: Program) -> None:
    """Wait until the scheduler has started and read all objects."""
    assert program.process is not None
    used = 0.0
    with trio.fail_after(_PATIENCE_S):
        while True:
            await trio.sleep(_STANDBY_S)
            now = cpu_s(program.process.pid)
            if now > 0.1 and now - used < _IDLE_SHARE * _STANDBY_S:
                return
            used = now


def pod(number: int) -> Raw:
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    mounted = [{"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    resources = {"requests": {"cpu": "100m", "memory": "100Mi"}}
    container = {"name": "c", "image": "i", "resources": resources, "volumeMounts": mounted}
    volumes = [{"name": "kube-api-access", "projected": {"sources": [token]}}]
    meta = {"name": f"p{number}", "namespace": "default", "labels": {"app": "web"}}
    spec = {"containers": [container], "serviceAccountName": "default", "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def lease(holder: str, version: str = "") -> Raw:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    meta = {"name": "kube-scheduler", "namespace": "kube-system"} | ({"resourceVersion": version} if version else {})
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 3600 if holder else 1,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": 0,
    }
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


async def fill(client: ApiServer, pods: int, real: bool) -> None:
    async def create(path: str, body: Raw) -> None:
        async with limiter:
            await client.ask(ServerRequest("POST", path, body=body))

    limiter = trio.CapacityLimiter(16)
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    for number in range(NODES):
        meta = {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": capacity}}
        node["status"] |= {"capacity": capacity}
        await create("api/v1/nodes", node)
        if real:  # without a node controller
            body, media_type = {"spec": {"taints": None}}, "application/merge-patch+json"
            await client.ask(ServerRequest("PATCH", f"api/v1/nodes/n{number}", body=body, media_type=media_type))
    await create(_LEASES, lease("benchmark"))
    async with trio.open_nursery() as nursery:
        for number in range(pods):
            nursery.start_soon(create, "api/v1/namespaces/default/pods", pod(number))


async def lead(client: ApiServer) -> None:
    """Release the Lease, so that the scheduler becomes the leader."""
    path = f"{_LEASES}/kube-scheduler"
    held = await client.ask(ServerRequest("GET", path))
    await client.ask(ServerRequest("PUT", path, body=lease("", held["metadata"]["resourceVersion"])))


def requests(log: Path, begun: int) -> Counter[str]:
    """Count the requests in an audit log after this offset, without lists, watches and Leases."""
    found: Counter[str] = Counter()
    with log.open("rb") as lines:
        lines.seek(begun)
        for line in lines:
            entry = json.loads(line)
            ref = entry.get("objectRef") or {}
            if entry["verb"] in ("list", "watch") or ref.get("resource") in (None, "leases"):
                continue
            what = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
            found[f"{entry['verb']} {what} {entry['responseStatus']['code']}"] += 1
    return found


async def all_requests(log: Path, begun: int) -> Counter[str]:
    """Count the requests when no more arrive: Events are sent after their bindings."""
    seen: Counter[str] = Counter()
    while True:
        await trio.sleep(_AFTER_S)
        found = requests(log, begun)
        if found == seen:
            return found
        seen = found


async def measure(contender: Contender, server: Server, folder: Path, pods: int) -> Mapping[str, Any]:
    audit = folder / _AUDIT
    token = TOKEN if server.tls is not None else ""
    await server.run()
    try:
        async with await ApiServer.connect(str(server.kubeconfig)) as client, trio.open_nursery() as nursery:
            observer = Observer(client)
            with trio.fail_after(120):
                await nursery.start(observer.run)
            await fill(client, pods, bool(token))
            program = contender.program(folder, server.kubeconfig)
            program.start()
            assert program.process is not None
            assert server.killed.process is not None
            processes = program.process.pid, server.killed.process.pid
            try:
                await idle(program)
                before = [cpu_s(each) for each in processes]
                begun = audit.stat().st_size if audit.exists() else 0
                await lead(client)
                with trio.fail_after(_PATIENCE_S):
                    while len(observer.nodes) < pods:
                        await trio.sleep(0.05)
                        assert program.process.poll() is None, program.log.read_text()[-2000:]
                counted = await all_requests(audit, begun)
                used = [cpu_s(each) - start for each, start in zip(processes, before, strict=True)]
            finally:
                program.kill()
            nursery.cancel_scope.cancel()
        times = observer.bindings_at
        return {
            "scheduler": contender.name,
            "per_s": round((pods - 1) / (times[-1] - times[0])),
            "cpu_ms": round(used[0] * 1000 / pods, 2),
            "server_cpu_s": round(used[1], 1),
            "requests": round(counted.total() / pods, 2),
            "by_kind": dict(counted),
        }
    finally:
        server.end()


async def main(options: argparse.Namespace) -> None:
    for turn in range(options.turns):
        found = contenders(options.before, options.real, options.rate)
        if options.only:
            found = [each for each in found if each.name in options.only]
        for contender in found if turn % 2 == 0 else reversed(found):
            with tempfile.TemporaryDirectory(prefix="live-bindings") as name:
                folder = Path(name)
                server = server_with_audit(folder, options.real)
                print(json.dumps(await measure(contender, server, folder, options.pods)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=600)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--before", type=Path, help="another checkout of this repository, with its .venv")
    parser.add_argument("--only", nargs="+", help="names of schedulers")
    parser.add_argument("--rate", type=int, default=_UNLIMITED, help="requests per second (default: no limit)")
    parser.add_argument("--real", action="store_true")
    trio.run(main, parser.parse_args())
