"""500 clients, half of which misbehave: `python -m tests.bench.clients [--clients 500] [--seconds 60] [--alone 30]`.

A daemon with 1,000 nodes schedules as many pods as possible, first alone and then with the clients. Each well-behaved
client makes 64 requests, spread over the time: pings, reads of one object, small lists, writes. The misbehaving clients
are divided into fifths, which

    floods   sends its 64 requests at once, lists of all nodes among them, and reads nothing
    drips    asks for long lists and reads a few bytes of the answers now and then
    halves   begins a large request and does not end it
    garbage  connects 64 times, each time to send bytes that mean nothing
    leaves   connects 64 times, and hangs up before there is an answer

The output contains the latencies of the well-behaved clients, and the pods scheduled per second of wall time and of the
daemon's CPU time, because the clients use the same machine.
"""

import argparse
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio

from kschedd.rpc.blocking import BlockingClient
from kschedd.rpc.client import Client
from kschedd.rpc.encoding import encode_request
from kschedd.rpc.errors import ConnectionLostError
from kschedd.service.errors import RpcError

NODES = 1_000
REQUESTS = 64
_PARTS = 4  # processes of clients
_TICKS = os.sysconf("SC_CLK_TCK")
_BATCH = 200  # number of pods in each of the feeder's requests


def pod(name: str) -> dict[str, Any]:
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "1m"}}}
    meta = {"name": name, "labels": {"app": f"a{len(name)}"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}


def node(number: int) -> dict[str, Any]:
    room = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    meta = {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"capacity": room, "allocatable": room}}


# --- the polite half ----------------------------------------------------------------------------------------------


async def polite(path: str, number: int, seconds: float, took_s: dict[str, list[float]], refused: list[str]) -> None:
    chance = random.Random(number)
    await trio.sleep(chance.random())
    name = f"polite-{number}"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": str(number)}}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("rpc.ping", {}),
        ("objects.get", {"kind": "Node", "name": f"n{number}"}),
        ("objects.list", {"kind": "Namespace"}),
        ("objects.apply", {"manifests": config_map}),
        ("scheduler.status", {}),
        ("objects.delete", {"kind": "ConfigMap", "name": name}),
    ]
    try:
        async with Client.connect(path) as client:
            for request in range(REQUESTS):
                await trio.sleep(2 * chance.random() * (seconds - 2) / REQUESTS)
                method, params = calls[request % len(calls)]
                began = time.perf_counter()
                await client.call(method, **params)
                took_s.setdefault(method, []).append(time.perf_counter() - began)
    except (RpcError, ConnectionLostError) as error:
        refused.append(str(error)[:200])


# --- the rude half ------------------------------------------------------------------------------------------------


async def opened(path: str) -> trio.SocketStream:
    sock = trio.socket.socket(socket.AF_UNIX)
    await sock.connect(path)
    return trio.SocketStream(sock)


def _list(msgid: int) -> bytes:
    return encode_request(msgid, "objects.list", [{"kind": "Node"}])


async def floods(path: str, chance: random.Random, seconds: float) -> None:
    async with await opened(path) as stream:
        requests = [_list(n) if n % 8 == 0 else encode_request(n, "daemon.info", []) for n in range(1, REQUESTS + 1)]
        await stream.send_all(b"".join(requests))
        await trio.sleep(seconds)


async def drips(path: str, chance: random.Random, seconds: float) -> None:
    async with await opened(path) as stream:
        await stream.send_all(_list(1) + _list(2))
        while await stream.receive_some(100):  # noqa: ASYNC110 - slow on purpose
            await trio.sleep(chance.random())


async def halves(path: str, chance: random.Random, seconds: float) -> None:
    async with await opened(path) as stream:
        whole = encode_request(1, "objects.apply", ["x" * 2_000_000])
        await stream.send_all(whole[: chance.randrange(1, len(whole))])
        await trio.sleep(seconds)


async def garbage(path: str, chance: random.Random, seconds: float) -> None:
    for _ in range(REQUESTS):
        await trio.sleep(2 * chance.random() * seconds / REQUESTS)
        with suppress(trio.BrokenResourceError, OSError):
            async with await opened(path) as stream:
                await stream.send_all(chance.randbytes(chance.randrange(1, 5_000)))
                with trio.move_on_after(1):
                    await stream.receive_some(1000)


async def leaves(path: str, chance: random.Random, seconds: float) -> None:
    for _ in range(REQUESTS):
        await trio.sleep(2 * chance.random() * seconds / REQUESTS)
        with suppress(trio.BrokenResourceError, OSError):
            async with await opened(path) as stream:
                await stream.send_all(_list(1) if chance.random() < 0.1 else encode_request(1, "scheduler.status", []))
                await trio.sleep(0.002)


RUDE: tuple[Callable[[str, random.Random, float], Awaitable[None]], ...] = (floods, drips, halves, garbage, leaves)


async def rude(path: str, number: int, seconds: float) -> None:
    chance = random.Random(number)
    await trio.sleep(chance.random() * seconds / 2)
    with suppress(trio.BrokenResourceError, OSError):
        await RUDE[number % len(RUDE)](path, chance, seconds)


# --- processes ----------------------------------------------------------------------------------------------------


async def clients(path: str, numbers: range, seconds: float) -> None:
    """Run the clients, of which every second one is well-behaved.

    Ends with the well-behaved clients; returns their measurements.
    """
    took_s: dict[str, list[float]] = {}
    refused: list[str] = []
    async with trio.open_nursery() as everybody:
        async with trio.open_nursery() as well_behaved:
            for number in numbers:
                if number % 2:
                    well_behaved.start_soon(polite, path, number, seconds, took_s, refused)
                else:
                    everybody.start_soon(rude, path, number // 2, seconds)
        everybody.cancel_scope.cancel()
    print(json.dumps({"took_s": took_s, "refused": refused, "cpu_s": time.process_time()}))


class Feeder:
    """A thread that creates pods as fast as they are scheduled."""

    def __init__(self, path: str, pid: int) -> None:
        self._client, self._pid, self._made = BlockingClient(path), pid, 0

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def run(self, going_on: Callable[[], bool]) -> tuple[float, float]:
        """Return the number of pods scheduled per second of wall time and of CPU time."""
        client = self._client
        began, used = time.perf_counter(), self.cpu_s()
        first = int(client.call("scheduler.status")["scheduled"])
        while going_on():
            made = [pod(f"p{self._made + n}") for n in range(_BATCH)]
            self._made += _BATCH
            client.call("objects.apply", manifests=made)
            while self._made - int(client.call("scheduler.status")["scheduled"]) > 2 * _BATCH:
                time.sleep(0.005)
        count = int(client.call("scheduler.status")["scheduled"]) - first
        return count / (time.perf_counter() - began), count / (self.cpu_s() - used)


def percentiles(took: list[float]) -> str:
    return ", ".join(f"p{q * 100:g} {took[int(q * (len(took) - 1))]:.1f}" for q in (0.5, 0.9, 0.99, 0.999, 1))


def main(count: int, seconds: float, alone_s: float, flags: list[str]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="clients"))
    path = str(folder / "k.sock")
    command = [sys.executable, "-m", "kschedd", "run", "--socket", path, "--seed", "1", "--log-level", "error", *flags]
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(command, stderr=log)
    try:
        while not Path(path).exists():
            time.sleep(0.1)
        with BlockingClient(path) as client:
            client.call("objects.apply", manifests=[node(number) for number in range(NODES)])
        feeder = Feeder(path, daemon.pid)
        start = time.monotonic()
        feeder.run(lambda: time.monotonic() < start + 3)
        start = time.monotonic()
        alone = feeder.run(lambda: time.monotonic() < start + alone_s)
        share = count // _PARTS
        program = [sys.executable, "-m", "tests.bench.clients", "--seconds", str(seconds), "--part", path]
        parts = []
        for n in range(_PARTS):
            with (folder / f"part-{n}").open("wb") as out:
                parts.append(subprocess.Popen([*program, str(n * share), str((n + 1) * share)], stdout=out))
        time.sleep(2)  # until they are there
        began = time.monotonic()
        beside = feeder.run(lambda: any(part.poll() is None for part in parts))
        took_s = time.monotonic() - began
        seen = [json.loads((folder / f"part-{n}").read_text()) for n in range(_PARTS)]
        by_method: dict[str, list[float]] = {}
        for part in seen:
            for method, each in part["took_s"].items():
                by_method.setdefault(method, []).extend(1000 * took_s for took_s in each)
        took = sorted(itertools.chain.from_iterable(by_method.values()))
        used_by_clients = sum(part["cpu_s"] for part in seen)
        refused = [why for part in seen for why in part["refused"]]
        with BlockingClient(path) as client:
            used = {each["name"]: (each["most"], each["limit"]) for each in client.call("daemon.limits")}
        status = Path(f"/proc/{daemon.pid}/status").read_text()
        memory = [int(status.partition(f"{what}:")[2].split()[0]) // 1024 for what in ("VmHWM", "VmRSS")]
    finally:
        daemon.terminate()
        daemon.wait()
    print(f"{count} clients, {count // 2} of them rude; load {os.getloadavg()[0]:.1f}")
    print(f"{len(took):,} answers to the polite half, {len(refused)} of whom were refused {set(refused) or ''}")
    print(f"ms: {percentiles(took)}")
    for method, each in by_method.items():
        print(f"    {method:18} {percentiles(sorted(each))}")
    print(f"pods/s alone {alone[0]:.0f} ({alone[1]:.0f} a CPU second), beside them {beside[0]:.0f} ({beside[1]:.0f})")
    print(f"{beside[0] / alone[0]:.0%} of the speed on the wall, {beside[1] / alone[1]:.0%} by CPU")
    print(f"the clients themselves took {used_by_clients:.1f} s of CPU in {took_s:.0f} s")
    print(f"memory {memory[0]} MiB at most, {memory[1]} MiB in the end; {used}")
    print(f"log: {(folder / 'log').read_text()[-1500:] or 'empty'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--alone", type=float, help="seconds without clients; default: half of the others")
    parser.add_argument("--part", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("flags", nargs="*", help="flags of `kschedd run`, after --")
    given = parser.parse_args()
    if given.part:
        trio.run(clients, given.part[0], range(int(given.part[1]), int(given.part[2])), given.seconds)
    else:
        main(given.clients, given.seconds, given.alone or given.seconds / 2, given.flags)
