"""A real cluster whose pods this daemon schedules, with the parts for setting up the actors.

`scheduling` keeps the Lease and the connection until no bindings are pending.
"""

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.mailbox import Doorbell
from kschedd.actors.scheduler.binding import Answered, BindingBatch
from kschedd.config.model import ClientConnection, LeaderElection
from kschedd.config.versions.rules import Rules
from kschedd.live.api_server import ApiServer
from kschedd.live.binding import RemoteBindingActor
from kschedd.live.event_series import EventCorrelator
from kschedd.live.events import RemoteEventsActor
from kschedd.live.leader_actor import LeaderActor
from kschedd.live.rate_limit import RateLimit
from kschedd.live.writer import RemoteWriter
from kschedd.log.events import SchedulerEvent
from kschedd.store.cluster_api import ClusterApi

_QPS: Final = 50.0  # requests per second, the default of kube-scheduler
_BURST: Final = 100


@attrs.frozen(eq=False)
class MirroredCluster:
    server: ApiServer
    leader: LeaderActor
    _pace: ClientConnection

    def binding_actor(
        self,
        inbox: trio.MemoryReceiveChannel[BindingBatch],
        store: ClusterApi,
        answers: "trio.MemorySendChannel[Answered]",
        bell: Doorbell,
        limiter: trio.CapacityLimiter,
        rules: Rules,
    ) -> RemoteBindingActor:
        rate = self.rate_limit()
        writer, evictor = RemoteWriter(self.server, store, rate), RemoteWriter(self.server, store, rate)
        return RemoteBindingActor(inbox, store, answers, bell, limiter, writer, evictor, rules)

    def events_actor(
        self, inbox: trio.MemoryReceiveChannel[Sequence[SchedulerEvent]], clock: Clock
    ) -> RemoteEventsActor:
        return RemoteEventsActor(inbox, self.server, clock, self.rate_limit(), EventCorrelator(socket.gethostname()))

    def rate_limit(self) -> RateLimit:
        """Return a new rate limit; Events have their own limit, as in kube-scheduler."""
        qps, burst = self._pace.qps, self._pace.burst
        if qps is None:
            qps = -1.0 if self.server.is_local else _QPS
        return RateLimit(qps, _BURST if burst is None else burst)


@asynccontextmanager
async def scheduling(
    server: ApiServer, clock: Clock, election: LeaderElection, pace: ClientConnection
) -> AsyncIterator[MirroredCluster]:
    """Yield the cluster, and release the Lease at the end.

    The context must outlive the local cluster, so that the Lease is released after the last binding.
    """
    leader = LeaderActor.of(server, clock, election)
    yield MirroredCluster(server, leader, pace)
    await leader.release()
