"""A daemon that runs for a long time: `python -m tests.bench.soak --real 1h`, `--virtual 24h`, `--virtual 168h`.

The daemon has a journal and the REST API, and a cluster that is never idle (`churn.py`); watchers receive all changes,
and /metrics is scraped. In real time, the clients pause so that the daemon uses `--share` of a core; in virtual time,
each round advances it by `--step` seconds. The daemon's memory and the usage of its limits are printed regularly. At
the end, the test checks whether memory has grown between the second and the last quarter of the time in which all
histories and caches were full. (They are full sooner with smaller limits, --limit.) Status 1 if it did.

`--census DIR` writes a census of the daemon's objects by type into files at each sample; `growth.py` compares two of
them.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx
import trio

from kschedd.api.text.durations import parse_duration
from kschedd.rpc.client import Client
from tests.bench.churn import Churn

_GROWTH = 1.03  # maximum growth from the second to the last quarter
_GROWTH_MIB = 4.0
_FULL = 0.9  # of a bound
#: limits of stored data, until which memory grows
_KEPT = frozenset(
    (
        *("watch-history", "admitted-pods", "admitted-node-affinities", "log"),
        *("evaluation-cache", "preemption-cache", "pod-counters", "encoded-objects"),
    )
)
_TICKS = os.sysconf("SC_CLK_TCK")


@attrs.frozen
class Sample:
    at_s: float  # time to simulate, in seconds
    rss_mib: float
    cpu_s: float
    used: dict[str, float]  # by limit: highest used share so far


@attrs.define(eq=False)
class Soak:
    """Measurements of a daemon's process from outside."""

    pid: int
    state: Path
    churn: Churn
    census: Path | None
    samples: list[Sample] = attrs.field(factory=list)
    scrapes: int = 0
    watched: int = 0
    began: float = attrs.field(factory=time.monotonic)

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    async def sample(self, at_s: float) -> None:
        limits = await self.churn.client.call("daemon.limits")
        kept = {each["name"]: (each["most"] or 0) / each["limit"] for each in limits if each["name"] in _KEPT}
        taken = Sample(at_s, self.rss_mib(), self.cpu_s(), kept)
        self.samples.append(taken)
        used = " ".join(f"{each['name']}={each['used']}" for each in limits if each["used"])
        journal = sum(file.stat().st_size for file in self.state.iterdir()) / 2**20
        print(
            f"{at_s / 3600:8.2f} h  {taken.rss_mib:7.1f} MiB  {taken.cpu_s:8.1f} s CPU  journal {journal:.1f} MiB  "
            f"{self.churn.number:,} rounds, {self.churn.made:,} pods, {self.churn.answers:,} answers, "
            f"{sum(self.churn.refused.values()):,} refusals, {self.scrapes:,} scrapes, "
            f"{self.watched:,} events seen  {used}",
            flush=True,
        )
        if self.census is not None:
            await self.churn.client.call("daemon.info")  # the census is taken between two calls
            os.kill(self.pid, signal.SIGUSR1)

    def verdict(self) -> bool:
        """Return whether memory stops growing once all bounded structures are full."""
        end = self.samples[-1]
        full = {name for name, used in end.used.items() if used >= _FULL}
        first = next(each for each in self.samples if all(each.used[name] >= _FULL for name in full))
        rest = ", ".join(f"{name} {used:.0%}" for name, used in sorted(end.used.items()) if name not in full)
        print(f"full after {first.at_s / 3600:.2f} h, {first.rss_mib:.1f} MiB: {', '.join(sorted(full)) or 'nothing'}")
        print(f"not full in the end: {rest or 'nothing'}")
        time_s = end.at_s - first.at_s
        second = [each.rss_mib for each in self.samples if time_s / 4 <= each.at_s - first.at_s < time_s / 2]
        fourth = [each.rss_mib for each in self.samples if each.at_s - first.at_s >= time_s * 3 / 4]
        if not second or not fourth:
            print("too few samples to say anything")
            return True
        before, after = statistics.median(second), statistics.median(fourth)
        stays = after <= before * _GROWTH + _GROWTH_MIB
        later = [each for each in self.samples if each.at_s - first.at_s >= time_s / 4]
        slope = statistics.linear_regression(
            [each.at_s / 3600 for each in later], [each.rss_mib for each in later]
        ).slope
        print(
            f"{'flat' if stays else 'GROWS'}: {before:.1f} MiB in the second quarter of the time since, {after:.1f} in "
            f"the last, {slope:+.3f} MiB an hour over the last three; {time.monotonic() - self.began:.0f} s on the wall"
        )
        print(f"refusals: {json.dumps(self.churn.refused, sort_keys=True)}")
        return stays


@asynccontextmanager
async def daemon(
    virtual: bool, folder: Path, census: Path | None, more: list[str]
) -> AsyncIterator[tuple[int, Path, str]]:
    """Yield the daemon's pid, its socket and the address of its REST API."""
    path = folder / "k.sock"
    program = ["-m", "kschedd"] if census is None else ["-m", "tests.bench.growth", "--daemon", str(census)]
    command = [sys.executable, *program, "run", "--socket", str(path), "--state", str(folder / "state"), "--seed", "1"]
    command += ["--http", "127.0.0.1:0", "--log-level", "error", "--time", "virtual" if virtual else "real", *more]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stderr=log)  # noqa: ASYNC220
    try:
        with trio.fail_after(60):
            while not path.exists():
                assert process.poll() is None, (folder / "log").read_text()
                await trio.sleep(0.1)
        async with Client.connect(path) as client:
            pong = await client.call("rpc.ping")
        yield process.pid, path, pong["http"]
        assert process.poll() is None, (folder / "log").read_text()
    finally:
        process.terminate()
        process.wait()
        print(f"log: {(folder / 'log').read_text()[-2000:] or 'empty'}")


async def follow(path: Path, soak: Soak, method: str, **params: Any) -> None:
    async with Client.connect(path) as client, client.subscribe(method, **params) as changes:
        async for _ in changes:
            soak.watched += 1


async def scrape(url: str, soak: Soak) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        for path in ("/metrics", "/api/v1/pods?limit=50", f"/api/v1/namespaces/none-{soak.scrapes}/pods", "/no/such"):
            await client.get(path)
        name = f"soak-{soak.scrapes}"
        made = {"metadata": {"name": name}, "data": {"n": "x" * 200}}
        await client.post("/api/v1/namespaces/default/configmaps", json=made)
        await client.delete(f"/api/v1/namespaces/default/configmaps/{name}")
    soak.scrapes += 1


async def in_real_time(soak: Soak, url: str, duration_s: float, share: float, every_s: float) -> None:
    began, sampled = time.monotonic(), 0.0
    while (now := time.monotonic() - began) < duration_s:
        used, start = soak.cpu_s(), time.monotonic()
        await soak.churn.round()
        if soak.churn.number % 4 == 0:
            await scrape(url, soak)
        await trio.sleep(max(0.01, (soak.cpu_s() - used) / share - (time.monotonic() - start)))
        if now >= sampled:
            await soak.sample(now)
            sampled = now + every_s
    await soak.sample(duration_s)


async def in_virtual_time(soak: Soak, url: str, duration_s: float, step_s: float, every_s: float) -> None:
    now = sampled = 0.0
    while now < duration_s:
        await soak.churn.round()
        if soak.churn.number % 20 == 0:
            await scrape(url, soak)
        async with soak.churn.client.subscribe("time.advance", seconds=step_s) as moved:
            async for _ in moved:
                pass
        now += step_s
        if now >= sampled:
            await soak.sample(now)
            sampled += every_s


async def main(given: argparse.Namespace) -> int:
    virtual = given.virtual is not None
    duration_s = parse_duration(given.virtual or given.real)
    every_s = duration_s / given.samples
    folder = Path(tempfile.mkdtemp(prefix="soak"))
    async with daemon(virtual, folder, given.census, given.more) as (pid, path, url), Client.connect(path) as client:
        churn = Churn(client, str(path), random.Random(given.seed), given.pods)
        soak = Soak(pid, folder / "state", churn, given.census)
        await churn.begin()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_follow_all, path, soak)
            if virtual:
                await in_virtual_time(soak, url, duration_s, given.step, every_s)
            else:
                await in_real_time(soak, url, duration_s, given.share, every_s)
            nursery.cancel_scope.cancel()
    shutil.rmtree(folder)
    return 0 if soak.verdict() else 1


async def _follow_all(path: Path, soak: Soak) -> None:
    async with trio.open_nursery() as nursery:
        run: Callable[..., Any] = nursery.start_soon
        for method in ("objects.watch", "events.watch", "scheduler.watch"):
            run(follow, path, soak, method)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--real", metavar="DURATION")
    how.add_argument("--virtual", metavar="DURATION")
    parser.add_argument("--share", type=float, default=0.1, help="share of a core that the daemon may use in real time")
    parser.add_argument("--step", type=float, default=60, help="seconds of virtual time after each round")
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--pods", type=int, help="number of objects created in a round (default: 6 to 17)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--census", type=Path)
    parser.add_argument("more", nargs="*", help="flags of `kschedd run`, after --")
    sys.exit(trio.run(main, parser.parse_args()))
