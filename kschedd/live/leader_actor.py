"""LeaderActor: lets the queue pop pods only while this scheduler leads.

Receives: the Lease from the server. Sends: permission to pop pods to the queue; renewals of the Lease to the server.

Owns: the Election.
Ends: when it is cancelled; `release` is called after the pending bindings.

Fails: rejected and failed requests are retried; if the Lease cannot be renewed in time, the queue stops popping pods.
Pending bindings are still completed. No pod is bound twice, because the server binds each pod only once.
"""

import random
import socket
import uuid
from typing import Any, Final

import attrs
import structlog
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.mailbox import ActorRef
from kschedd.actors.queue import QueueActor
from kschedd.api.text.times import SECOND, micro_stamp
from kschedd.config.model import LeaderElection
from kschedd.live.answers import LeaderAnswer
from kschedd.live.api_server import ApiServer, ServedResource
from kschedd.live.connection import ServerRequest
from kschedd.live.errors import LiveError
from kschedd.live.leader import API_VERSION, Election

log = structlog.get_logger("kschedd.leader")

_LEASES: Final = ServedResource("Lease", API_VERSION, "leases")
# maximum factor by which a standby extends its wait, so that standbys do not send requests at the same time
_JITTER: Final = 1.2
_RELEASE_S: Final = 3.0
_NOT_FOUND: Final = 404

Raw = dict[str, Any]


@attrs.define(eq=False)
class LeaderActor:
    _server: ApiServer
    _clock: Clock
    election: Election
    _logged: str = attrs.field(default="", init=False)  # last logged reason why the Lease was not obtained

    @classmethod
    def of(cls, server: ApiServer, clock: Clock, settings: LeaderElection) -> "LeaderActor":
        return cls(server, clock, Election(settings, f"{socket.gethostname()}_{uuid.uuid4()}"))

    async def run(self, queue: ActorRef[QueueActor]) -> None:
        if not self.election.settings.leader_elect:
            log.info("leading", lease=None)
            await _hand_out(queue, True)
            await trio.sleep_forever()
        while True:
            await self._acquire()
            log.info("leading", lease=self._name, identity=self.election.identity)
            await _hand_out(queue, True)
            why = await self._renew_until_lost()
            self.election.stop()
            await _hand_out(queue, False)
            log.warning("no_longer_leading", lease=self._name, why=why)

    async def release(self) -> None:
        """Release the Lease, so that another scheduler can lead immediately."""
        if not self.election.leads:
            return
        try:
            with trio.move_on_after(_RELEASE_S):
                await self._put(self.election.released(self._at()))
                log.info("lease_released", lease=self._name)
        except LiveError as failure:
            log.warning("lease_not_released", lease=self._name, why=failure.why)

    def describe(self) -> LeaderAnswer:
        election = self.election
        if not election.settings.leader_elect:
            return LeaderAnswer(True, "", "")
        return LeaderAnswer(election.leads, self._name, election.holder)

    @property
    def _name(self) -> str:
        return f"{self.election.settings.resource_namespace}/{self.election.settings.resource_name}"

    async def _acquire(self) -> None:
        """Request the Lease until this scheduler holds it."""
        settings, leader = self.election.settings, None
        while not self.election.leads:
            with trio.move_on_after(settings.renew_deadline_s):
                await self._try()
            if self.election.leads:
                return
            if self.election.holder != leader:
                leader = self.election.holder
                log.info("standby", lease=self._name, leader=leader)
            await trio.sleep(settings.retry_period_s * (1 + _JITTER * random.random()))

    async def _renew_until_lost(self) -> str:
        settings = self.election.settings
        while not (why := self.election.has_lost(trio.current_time())):
            with trio.move_on_at(self.election.renewed_at + settings.renew_deadline_s):
                await trio.sleep(settings.retry_period_s)
                await self._try()
        return why

    async def _try(self) -> None:
        """Acquire or renew the Lease if this is allowed."""
        election, now = self.election, trio.current_time()
        try:
            if election.is_valid(now) and await self._renewed(now):
                return
            election.observe(await self._get(), now)
            if election.may_take(now):
                await self._take(now)
        except LiveError as failure:
            self._log_reason(failure.message or failure.why)
        else:
            self._logged = ""

    async def _renewed(self, now: float) -> bool:
        """Renew the Lease without reading it first; return whether the renewal succeeded."""
        try:
            await self._take(now)
        except LiveError:
            return False
        return True

    async def _take(self, now: float) -> None:
        wanted = self.election.wanted(self._at())
        taken = await self._put(wanted) if self.election.exists else await self._post(wanted)
        self.election.taken(taken, now)

    async def _get(self) -> Raw | None:
        try:
            return await self._server.ask(ServerRequest("GET", self._path))
        except LiveError as failure:
            if failure.code == _NOT_FOUND:
                return None
            raise

    async def _put(self, lease: Raw) -> Raw:
        return await self._server.ask(ServerRequest("PUT", self._path, body=lease))

    async def _post(self, lease: Raw) -> Raw:
        path = _LEASES.path_in(self.election.settings.resource_namespace)
        return await self._server.ask(ServerRequest("POST", path, body=lease))

    @property
    def _path(self) -> str:
        return _LEASES.path_of(self.election.settings.resource_namespace, self.election.settings.resource_name)

    def _at(self) -> str:
        return micro_stamp(round(self._clock.now() * SECOND))

    def _log_reason(self, why: str) -> None:
        if why != self._logged:
            self._logged = why
            log.warning("lease", lease=self._name, why=why)


async def _hand_out(queue: ActorRef[QueueActor], leads: bool) -> None:
    def set_idle(owner: QueueActor) -> None:
        owner.idle = not leads

    await queue.query(set_idle)
