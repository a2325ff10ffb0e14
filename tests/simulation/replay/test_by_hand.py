"""Tests that attempts which a user changed while they were stopped are replayed with identical results."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.api.pods import Pod
from kschedd.cli import main
from kschedd.config.model import Config
from kschedd.daemon import cluster_actors
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, Status
from kschedd.log.log import Log
from kschedd.recording.notes import NoteKind
from kschedd.recording.reading import RecordingFile
from kschedd.recording.wiring import RecordOptions
from kschedd.scheduling.debug.breakpoints import BreakpointSpec
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.stops import interventions
from kschedd.simulation.engine import EPOCH
from kschedd.simulation.replay.player import Player
from kschedd.simulation.replay.run import Replay, StopAt
from tests.actors.clusters import comes_to, node, placed, pod, rejected, until, with_plugins
from tests.simulation.replay.live import SPEED, decision_log
from tests.simulation.replay.test_replay import replayed


class Counting:
    """A plugin whose scores depend on its number of calls, which a replay does not know."""

    name: ClassVar = "Counting"
    requests: ClassVar[Iterator[int]] = itertools.count(3, 7)

    def filter(self, state: CycleState, pod: Pod, info: NodeInfo) -> None:
        next(self.requests)

    def score(self, state: CycleState, pod: Pod, info: NodeInfo) -> int:
        return next(self.requests) % 101

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        next(self.requests)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        next(self.requests)


class Brief:
    """A plugin that makes each pod wait at Permit until a short timeout."""

    name: ClassVar = "Brief"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return Status(Code.WAIT), 4.0


Change = Callable[[SchedulingDriver], object]
SCORERS = "NodeResourcesFit", "NodeResourcesBalancedAllocation", "TaintToleration"


@attrs.frozen
class Case:
    """Stops of an attempt, the change made at each stop, and the node that the pod gets."""

    stops: Sequence[tuple[dict[str, str], Change]]
    node: str = ""
    plugins: tuple[type, ...] = ()


def forces(name: str, *, unfit: bool = False) -> Change:
    return lambda driver: interventions.force(driver, name, even_if_unfit=unfit)


def vetoes(*names: str) -> Change:
    def change(driver: SchedulingDriver) -> None:
        for name in names:
            interventions.veto(driver, name)

    return change


def scores(name: str, value: int) -> Change:
    def change(driver: SchedulingDriver) -> None:
        for plugin in SCORERS:
            interventions.score(driver, name, plugin, value)

    return change


def nothing(driver: SchedulingDriver) -> None:
    """Change nothing: the stopped scheduler is only inspected."""


CASES = {
    "forced-at-filter": Case([({"point": "filter"}, forces("n3"))], "n3"),
    "forced-at-its-outcome": Case([({"outcome": "scheduled"}, forces("n3"))], "n3"),
    "forced-where-it-does-not-fit": Case([({"point": "score"}, forces("tiny", unfit=True))], "tiny"),
    "forced-and-then-vetoed": Case(
        [({"point": "filter"}, forces("n3")), ({"point": "score"}, vetoes("n3", "n1"))], "n2"
    ),
    "vetoed-at-its-outcome": Case([({"outcome": "scheduled"}, vetoes("n1", "n2"))], "n3"),
    "vetoed-where-a-filter-has-rejected": Case([({"outcome": "rejected"}, vetoes("n1", "n2"))], "n3"),
    "scored": Case([({"point": "score"}, scores("n2", 100)), ({"outcome": "scheduled"}, scores("n1", 0))]),
    "dropped-at-filter": Case([({"point": "filter"}, interventions.drop)]),
    "dropped-at-reserve": Case([({"point": "reserve"}, interventions.drop)], plugins=(Counting,)),
    "only-stopped-at-bind": Case([({"point": "bind"}, nothing)]),
    "stopped-before-it-waits-at-permit": Case([({"point": "permit"}, nothing)], plugins=(Brief,)),
    "forced-with-plugins-from-elsewhere": Case([({"outcome": "scheduled"}, forces("n3"))], "n3", (Counting,)),
}


async def _stopped(cluster: LiveCluster) -> None:
    await comes_to(cluster.scheduler, lambda driver: driver.debugger.stop is not None, True)


async def by_hand(file: Path, case: Case) -> str:
    config: Config | None = None
    registry: Registry | None = None
    if case.plugins:
        config, registry = with_plugins(*case.plugins)
        config = attrs.evolve(config, unschedulable_flush_s=1)
    async with cluster_actors(
        config, registry=registry, seed=3, clock=Clock.started(EPOCH, SPEED), record=RecordOptions(file)
    ) as cluster:
        nodes = [node("tiny", cpu="10m"), node("n1", cpu="8"), node("n2", cpu="6"), node("n3", cpu="4")]
        await cluster.store.create_many(nodes)
        for where, _ in case.stops:
            spec = BreakpointSpec(pod="default/web", **where)
            await cluster.scheduler.query(lambda driver, spec=spec: driver.debugger.add(spec, once=True))
        await cluster.store.create(pod("web"))
        for _, change in case.stops:
            await _stopped(cluster)
            await cluster.store.create(pod(f"meanwhile-{len(case.stops)}-{id(change)}"))
            await cluster.scheduler.query(change)
            await cluster.scheduler.query(lambda driver: driver.debugger.resume())
        await until(cluster, lambda store: store.get("Pod", "default", "web").status.get("conditions"))
        if Brief in case.plugins:
            assert "after waiting 4s at plugin Brief" in await rejected(cluster, "web")
        elif case.node:
            assert await placed(cluster, "web") == {"web": case.node}
        else:
            await placed(cluster, "web")
        records = await cluster.log.query(Log.attempts)
        return decision_log(records, cluster.started_s)


@pytest.mark.parametrize("name", CASES)
async def test_a_replay_makes_what_was_made_by_hand(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    live = await by_hand(tmp_path / "r", case)
    log, player = replayed(tmp_path / "r")
    assert log.startswith(live)
    assert player.ended
    with RecordingFile.open(tmp_path / "r") as recording:
        kinds = [note[0] for note in recording.notes()]
    assert NoteKind.STEPPED in kinds
    assert (NoteKind.INTERVENED in kinds) == any(change is not nothing for _, change in case.stops)


async def test_so_does_one_with_other_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await by_hand(tmp_path / "r", CASES["forced-and-then-vetoed"])
    assert main(["replay", str(tmp_path / "r"), "--redact-to", str(tmp_path / "public")]) == 0
    reported = capsys.readouterr()
    assert "same       as recorded" in reported.out
    assert reported.err == ""


async def test_a_replay_that_is_stopped_within_such_an_attempt_goes_on_to_the_same(tmp_path: Path) -> None:
    live = await by_hand(tmp_path / "r", CASES["forced-and-then-vetoed"])
    points = []
    with RecordingFile.open(tmp_path / "r") as recording:
        player = Player(recording)
        Replay(player).run(StopAt(pod="default/web"))
        player.driver.debugger.next()
        while player.step() or player.driver.debugger.stop is not None:
            stop = player.driver.debugger.stop
            if stop is not None:
                if stop.point is not None:
                    points.append(stop.point.point)
                player.driver.debugger.next()
    assert player.ended
    assert {"filter", "score", "bind"} <= set(points)
    assert '"node":"n2"' in live
    pods = [each for each in player.objects.values() if each.kind == "Pod" and each.name == "web"]
    assert [getattr(each, "node_name", "") for each in pods] == ["n2"]
