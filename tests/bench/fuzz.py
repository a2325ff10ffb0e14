"""Test with many random inputs: `python -m tests.bench.fuzz frames|socket|manifests|objects COUNT [--seed N]`.

    frames     MessagePack frames, right ones and damaged ones, through the protocol in this process: every frame is
               an event or ends the stream with a fault in words
    socket     the same to a daemon over its socket, for every method but those that wait or end it: it goes on to
               answer, nothing with `internal`, and is as well as before
    manifests  manifests changed at random, half of them as text: read, and created in a store, or refused in words
    objects    objects that were changed at random and accepted nevertheless: created in a daemon, scheduled, deleted;
               no part of it has trouble with any of them, and memory is back

Flags of `kschedd run` for the daemon may follow `--`; with smaller limits (`--limit`), memory stops growing sooner.

The test ends at the first error, and prints the seed and the error.
"""

import argparse
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import msgpack
import yaml

from kschedd.errors import KscheddError
from kschedd.methods import daemon_methods
from kschedd.rpc.blocking import BlockingClient
from kschedd.rpc.protocol import Connection, ProtocolFault
from kschedd.rpc.sessions.built_in import describe, method_table
from kschedd.service.errors import RpcError
from kschedd.service.objects.applying import FROM_FILES, Applier, parse
from kschedd.store.store import Store
from tests.bench import odd
from tests.bench.churn import node

_AT_ONCE = 200  # number of frames generated before they are sent
_IN_STORE = 300  # number of objects after which a new store is created


class Progress:
    def __init__(self, what: str, count: int) -> None:
        self._what, self._count, self._began, self._said = what, count, time.monotonic(), 0.0

    def reported(self, done: int, counts: Counter[str]) -> None:
        now = time.monotonic()
        if now - self._said > 20 or done >= self._count:
            self._said = now
            largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            shown = ", ".join(f"{name} {number:,}" for name, number in counts.most_common(12))
            print(f"{done:,} {self._what} in {now - self._began:.0f} s, {largest} MiB: {shown}", flush=True)


def frames(count: int, seed: int, flags: Sequence[str]) -> None:
    chance, manifests, counts, done = random.Random(seed), odd.corpus(), Counter[str](), 0
    progress = Progress("frames", count)
    methods = _methods()
    while done < count:
        pool = [odd.frame(chance, methods, manifests, n) for n in range(_AT_ONCE)]
        for _ in range(200):  # each frame with many neighbors, cut at random positions
            chosen = [chance.choice(pool) for _ in range(chance.randrange(1, 9))]
            if chance.random() < 0.5:
                chosen[-1] = odd.damaged(chosen[-1], chance)
            data = b"".join(chosen)
            done += len(chosen)
            cut = chance.randrange(len(data) + 1)
            connection = Connection()
            events = [*connection.receive(data[:cut]), *connection.receive(data[cut:]), *connection.receive_eof()]
            assert events or not data, f"seed {seed}: nothing came of {data!r}"
            for event in events:
                if isinstance(event, ProtocolFault):
                    assert event.why, f"seed {seed}: no words for {data!r}"
                counts[type(event).__name__] += 1
        progress.reported(done, counts)


def _methods() -> list[odd.Raw]:
    nobody: Any = None
    return [describe(method) for method in method_table(daemon_methods(nobody, nobody)).values()]


def manifests(count: int, seed: int, flags: Sequence[str]) -> None:
    chance, right, counts = random.Random(seed), odd.corpus(), Counter[str]()
    texts = [yaml.safe_dump(each) for each in right]
    progress, store = Progress("manifests", count), Store(now=lambda: 1e9)
    for done in range(1, count + 1):
        if chance.random() < 0.3:
            made: Any = odd.text(chance.choice(texts), chance)
        else:
            made = odd.mutated(chance.choice(right), chance, chance.randrange(1, 5))
        try:
            parsed = parse(made, "fuzz")
            validation = chance.choice(("Strict", "Warn", "Ignore"))
            options = attrs.evolve(FROM_FILES, validation=validation, manager=chance.choice(("", "fuzz")))
            outcome = Applier(options).each(parsed.wanted, store).tell()
        except KscheddError as refusal:
            counts[type(refusal).__name__] += 1
        except Exception:
            print(f"seed {seed}, manifest {done}: {made!r}")
            raise
        else:
            counts["accepted"] += len(outcome.results)
            errors = [*parsed.errors, *outcome.errors]
            counts["refused"] += len(errors)
            assert all(each["why"] for each in errors), f"seed {seed}: {made!r}: {errors}"
        if done % _IN_STORE == 0:
            store = Store(now=lambda: 1e9)
        progress.reported(done, counts)


# --- a daemon ------------------------------------------------------------------------------------------------------


class Daemon:
    """A daemon in a separate process, with its memory and state as measured from outside."""

    def __init__(self, *flags: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz"))
        self.path = str(self.folder / "k.sock")
        command = [
            sys.executable,
            "-m",
            "kschedd",
            "run",
            "--socket",
            self.path,
            "--log-level",
            "warning",
            "--seed",
            "1",
        ]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen([*command, *flags], stderr=log)
        while not os.path.exists(self.path):
            assert self.process.poll() is None, self.log()
            time.sleep(0.1)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def rss_mib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) // 1024

    def check(self) -> None:
        """Raise AssertionError if the daemon has ended or has logged a bug."""
        assert self.process.poll() is None, f"it has ended: {self.log()[-3000:]}"
        answer = self.log()
        for bug in ("handler_bug", "critical", "Traceback"):
            assert bug not in answer, answer[max(0, answer.index(bug) - 300) :][:5000]

    def end(self) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log()[-3000:]


def over_socket(count: int, seed: int, flags: Sequence[str]) -> None:
    chance, corpus, counts, done = random.Random(seed), odd.corpus(), Counter[str](), 0
    waiting = {"daemon.stop", "debug.wait", "debug.next", "debug.until", "daemon.profile"}
    methods = [each for each in _methods() if each["name"] not in waiting]
    daemon, progress = Daemon("--without", "kubelets", *flags), Progress("frames", count)
    with BlockingClient(daemon.path) as client:
        client.call("objects.apply", manifests=[node(1), node(2)])
    before = daemon.rss_mib()
    while done < count:
        chosen = [odd.frame(chance, methods, corpus, n) for n in range(1, 40)]
        whole = chance.random() < 0.7
        if not whole:
            chosen[-1] = odd.damaged(chosen[-1], chance)
        done += len(chosen)
        _converse(daemon, chosen, whole, counts, seed)
        if chance.random() < 0.05:
            _tidy(daemon)
            daemon.check()
        progress.reported(done, counts)
    _tidy(daemon)
    daemon.check()
    print(f"memory {before} MiB before, {daemon.rss_mib()} MiB after")
    daemon.end()


def _converse(daemon: Daemon, chosen: list[bytes], whole: bool, counts: Counter[str], seed: int) -> None:
    """Send the frames and a ping; read until the ping is answered or the connection ends.

    If the last frame is incomplete, the ping may become part of it, and no answer arrives.
    """
    ping = 1 << 31
    unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, unicode_errors="surrogatepass")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(300 if whole else 1)
        connection.connect(daemon.path)
        sending = threading.Thread(target=_send, args=(connection, [*chosen, msgpack.packb([0, ping, "rpc.ping", []])]))
        sending.start()
        while True:
            try:
                data = connection.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            except TimeoutError:
                assert not whole, f"seed {seed}: no answer to a ping in 300 s"
                counts["(left)"] += 1
                break
            if not data:
                counts["(cut off)"] += 1
                break
            unpacker.feed(data)
            answers = [message for message in unpacker if message[0] == 1]
            for _, _, error, _ in answers:
                counts["answered" if error is None else error["code"]] += 1
                assert error is None or error["code"] != "internal", f"seed {seed}: {error}; {daemon.log()[-5000:]}"
            if any(message[1] == ping for message in answers):
                break
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        sending.join()


def _send(connection: socket.socket, chosen: list[bytes]) -> None:
    with suppress(OSError):
        connection.sendall(b"".join(chosen))


def _tidy(daemon: Daemon) -> None:
    """Delete objects, so that their number stays small."""
    with BlockingClient(daemon.path, timeout=300) as client:
        client.call("debug.attach", take=True, keep=False)
        client.call("debug.resume")
        for each in client.call("debug.break_list"):
            client.call("debug.break_delete", id=each["id"])
        for fork in client.call("fork.list"):
            client.call("fork.discard", fork=fork["name"])
        _delete_all(client, keep={"n1", "n2"})


def _delete_all(client: BlockingClient, keep: set[str]) -> int:
    """Delete every object except those of a new cluster; return the number of remaining objects."""
    left = 0
    for kind in client.call("objects.kinds"):
        if not kind["count"] or kind["name"] in ("Lease", "PriorityClass", "Event"):
            continue
        for each in client.call("objects.list", kind=kind["name"], metadata_only=True)["items"]:
            meta = each["metadata"]
            name, namespace = meta["name"], meta.get("namespace")
            if name in keep or (kind["name"] == "Namespace" and (name == "default" or name.startswith("kube-"))):
                continue
            if meta.get("finalizers"):
                client.call(
                    "objects.patch",
                    kind=kind["name"],
                    name=name,
                    namespace=namespace,
                    patch={"metadata": {"finalizers": None}},
                )
            try:
                client.call("objects.delete", kind=kind["name"], name=name, namespace=namespace, grace_period_s=0)
                left += 1
            except RpcError as refusal:
                if refusal.code != "not_found":
                    left += 1
    return left


def objects(count: int, seed: int, flags: Sequence[str]) -> None:
    chance, corpus, counts, accepted = random.Random(seed), odd.corpus(), Counter[str](), 0
    daemon, progress = Daemon(*flags), Progress("accepted odd objects", count)
    with BlockingClient(daemon.path, timeout=300) as client:
        client.call("objects.apply", manifests=[node(1), node(2)])
        before = 0
        while accepted < count:
            batch = [
                _renamed(odd.mutated(chance.choice(corpus), chance, chance.randrange(1, 4)), n) for n in range(100)
            ]
            done = client.call("objects.apply", manifests=batch, field_validation="Ignore")
            accepted += len(done["results"])
            counts.update(each["kind"] for each in done["results"])
            for _ in range(3):
                client.call("scheduler.status")  # each call waits for the scheduler's turn
            for each in [each for each in done["results"] if each["kind"] == "Pod"][:5]:
                counts["explained"] += _explained(client, each)
            faults = client.call("daemon.info")["faults"]
            assert not faults, f"seed {seed}: {faults}"
            daemon.check()
            while _delete_all(client, keep={"n1", "n2"}):
                pass
            before = before or (daemon.rss_mib() if accepted >= count / 10 else 0)
            progress.reported(accepted, counts)
        status = client.call("scheduler.status")
        left = {name: status[name] for name in ("active", "backoff", "unschedulable", "gated", "in_flight", "pods")}
    print(f"memory {before} MiB after a tenth, {daemon.rss_mib()} MiB after all; left: {left}")
    daemon.end()


def _renamed(raw: odd.Raw, number: int) -> odd.Raw:
    if isinstance(raw.get("metadata"), dict) and isinstance(raw["metadata"].get("name"), str):
        if raw.get("kind") != "CustomResourceDefinition":
            raw["metadata"]["name"] = f"{raw['metadata']['name'][:100]}-{number}"
    return raw


def _explained(client: BlockingClient, pod: odd.Raw) -> int:
    try:
        client.call("scheduler.explain", pod=f"{pod['namespace']}/{pod['name']}")
    except RpcError as refusal:
        if refusal.code == "internal":
            raise
        return 0
    return 1


WHAT = {"frames": frames, "socket": over_socket, "manifests": manifests, "objects": objects}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("flags", nargs="*", help="of the daemon, after --")
    given = parser.parse_intermixed_args()
    WHAT[given.what](given.count, given.seed, given.flags)
