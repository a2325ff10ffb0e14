"""A cluster of kschedd served over HTTP for an external scheduler; its own scheduler schedules no pod."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.api.objects import Object
from kschedd.config.loading.load import default_config
from kschedd.config.model import ClientConnection, LeaderElection
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.live.api_server import ApiServer
from kschedd.live.mirror import MirrorActor, mirroring
from kschedd.live.remote import MirroredCluster, scheduling
from kschedd.startup.options import without_scheduler
from tests.live.test_mirror import KUBECONFIG, Origin, served, until

Raw = dict[str, Any]

ALONE = LeaderElection(leader_elect=False)
QUICK = LeaderElection(lease_duration_s=3600.0, renew_deadline_s=1800.0, retry_period_s=0.1)  # is never late
UNBOUNDED = ClientConnection(qps=-1)


@attrs.frozen(eq=False)
class Real(Origin):
    """A cluster whose controllers and kubelets run; `stop` ends it and its server."""

    async def is_bound(self, *names: str) -> bool:
        found = [await self.cluster.store.find("Pod", "default", name) for name in names]
        return all(pod is not None and pod.spec.get("nodeName") for pod in found)

    async def pod(self, name: str) -> Object:
        return await self.cluster.store.get("Pod", "default", name)

    async def events(self) -> list[Raw]:
        return [dict(event.raw) for event in await self.cluster.store.list("Event")]


def real_cluster(port: int = 0) -> AbstractAsyncContextManager[Real]:
    return served(Real, port, config=without_scheduler(default_config()), controllers=embedded_controllers())


@attrs.frozen(eq=False)
class Scheduler:
    """A scheduler connected to the real cluster."""

    cluster: LiveCluster
    mirror: MirrorActor
    remote: MirroredCluster

    async def leads(self) -> bool:
        return self.remote.leader.describe().leads is True


@asynccontextmanager
async def scheduler_of(
    folder: Path,
    port: int,
    election: LeaderElection = ALONE,
    pace: ClientConnection = UNBOUNDED,
    user: str = "{}",
) -> AsyncIterator[Scheduler]:
    file, config, clock = folder / "kubeconfig", default_config(), Clock.started()
    file.write_text(KUBECONFIG.format(url=f"http://127.0.0.1:{port}").replace("user: {}", f"user: {user}"))
    async with (
        await ApiServer.connect(str(file)) as server,
        scheduling(server, clock, election, pace) as remote,
        cluster_actors(config, clock=clock, remote=remote) as cluster,
        trio.open_nursery() as nursery,
    ):
        mirror = await mirroring(server, cluster, frozenset(config.scheduler_names))
        await nursery.start(mirror.run)
        nursery.start_soon(remote.leader.run, cluster.queue)
        yield Scheduler(cluster, mirror, remote)
        nursery.cancel_scope.cancel()


def is_bound(real: Real, *names: str) -> Callable[[], Awaitable[bool]]:
    return lambda: real.is_bound(*names)


async def bound(real: Real, *names: str) -> None:
    await until(is_bound(real, *names))
