"""Golden recordings of earlier versions, which kschedd must replay.

    python -m tests.simulation.replay.golden     # makes them all anew, into tests/simulation/replay/recordings

Each recording is stored with the decision log of its run. Renew them only if the format has changed and FORMAT
(`kschedd.recording.format`) with it, or if a decision was wrong; then rewrite docs/REPLAY.md, which shows one of them:
KSCHEDD_REWRITE_SCENARIOS=1 pytest tests/commands/test_replay_page.py.
"""

import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import KUBE_VERSIONS, V1_34, KubernetesVersion
from kschedd.daemon import cluster_actors
from kschedd.log.log import Log
from kschedd.recording.wiring import RecordOptions
from kschedd.simulation.engine import EPOCH
from kschedd.startup.state import StateOptions
from tests.actors.clusters import node, pod, until
from tests.simulation.replay.live import SPEED, busy_run, decision_log, moody
from tests.simulation.replay.test_by_hand import CASES, by_hand

RECORDINGS: Final = Path(__file__).with_name("recordings")
PODS: Final = 6


async def of_version(version: KubernetesVersion, file: Path, journal: Path) -> str:
    """Run and record a busy cluster of this version, with a journal and an unpredictable plugin."""
    config, registry = moody(version)
    return await busy_run(file, 1, config, registry, PODS, journal=journal)


async def begun_late(file: Path, journal: Path) -> str:
    return await busy_run(file, 2, None, None, 2 * PODS, True, journal)


async def changed_by_hand(file: Path, journal: Path) -> str:
    return await by_hand(file, CASES["forced-and-then-vetoed"])


async def incident(file: Path, journal: Path) -> str:
    """Record the incident in docs/REPLAY.md.

    A pod first fits on no node, then not on a new node because of its taint, and then on that node.
    """
    async with cluster_actors(
        default_config(version=V1_34),
        seed=7,
        clock=Clock.started(EPOCH, SPEED),
        state=StateOptions(journal=journal),
        record=RecordOptions(file, kschedd="0.1.0"),
    ) as cluster:
        await cluster.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        await cluster.store.create_many([node("small-1", cpu="2"), node("small-2", cpu="2")])
        for name in ("web-0", "web-2"):
            await cluster.store.create(pod(name, cpu="1500m", namespace="shop"))
        await _has(cluster, "web-2", lambda found: found.node_name)
        await cluster.store.create(pod("web-1", cpu="3", namespace="shop"))
        await _says(cluster, "2 Insufficient cpu")
        taint = {"key": "maintenance", "effect": "NoSchedule"}
        await cluster.store.create(node("large-1", cpu="8", taints=[taint]))
        await _says(cluster, "untolerated taint")
        await cluster.store.do(lambda store: store.merge_patch("Node", "", "large-1", {"spec": {"taints": None}}))
        await _has(cluster, "web-1", lambda found: found.node_name)
        records = await cluster.log.query(Log.attempts)
        return decision_log(records, cluster.started_s)


async def _has(cluster: LiveCluster, name: str, what: Callable[[Any], Any]) -> None:
    await until(cluster, lambda store: what(store.get("Pod", "shop", name)))


async def _says(cluster: LiveCluster, words: str) -> None:
    await _has(cluster, "web-1", lambda found: words in str(found.status.get("conditions")))


GOLDEN: Final[Mapping[str, Callable[[Path, Path], Awaitable[str]]]] = {
    **{name: partial(of_version, version) for name, version in KUBE_VERSIONS.items()},
    "begun-late": begun_late,
    "changed-by-hand": changed_by_hand,
    "incident": incident,
}


def main() -> None:
    RECORDINGS.mkdir(exist_ok=True)
    for name, record in GOLDEN.items():
        file = RECORDINGS / f"{name}.rec"
        file.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            log = trio.run(record, file, Path(folder) / "journal.db")
        file.with_suffix(".jsonl").write_text(log, encoding="utf-8")
        print(f"{file.name}: {file.stat().st_size:,} bytes, {log.count(chr(10))} decisions")


if __name__ == "__main__":
    main()
