"""Methods for the scheduling queue, and for the pods that wait at Permit."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from kschedd.answers import extended
from kschedd.api.conditions import condition
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.queue.entry import SECOND, Move, QueuedPod, SubQueue
from kschedd.queue.operations import Force, MoveToActive
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import Allow, Reject
from kschedd.service.cluster import ClusterBackend, Queue
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.scheduling.answers import (
    ActivatedAnswer,
    DecidedAnswer,
    MoveAnswer,
    PlacedAnswer,
    QueueAnswer,
    QueuedAnswer,
    WaitingAnswer,
    WayAnswer,
)
from kschedd.service.table import Call, Large, Methods, method

PLACES = tuple(place.value for place in SubQueue if place is not SubQueue.OUTSIDE)
MOVABLE = (SubQueue.ACTIVE.value, SubQueue.BACKOFF.value, SubQueue.UNSCHEDULABLE.value)

_ENTRY_BYTES = 1_500  # of memory, per entry
_SHOWN = 200  # maximum number of entries encoded before other tasks run
_POD = Param("pod", "string", doc="`namespace/name`")
_PLUGIN = Param("plugin", "string", False, doc="null: all plugins for which the pod waits")


@attrs.frozen(eq=False)
class QueueMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "queue.list",
        (
            Param("place", "string", False, doc="null: all sub-queues", choices=PLACES),
            Param("limit", "integer", False, doc="maximum number of pods", minimum=0),
        ),
        reads=True,
        doc="Lists the pods that have no node, each with its sub-queue, in the order of the queue.",
        large=True,
        answer=QueueAnswer,
    )
    async def list(self, call: Call) -> Any:
        place = None if call["place"] is None else SubQueue(call["place"])
        limit = call["limit"]
        now = self._cluster.clock.now_ns()

        def read(owner: Queue) -> tuple[dict[str, int], Sequence[QueuedPod]]:
            queue = owner.queue
            places = [place] if place is not None else [p for p in SubQueue if p is not SubQueue.OUTSIDE]
            entries: list[QueuedPod] = []
            for one in places:
                if limit is None or len(entries) < limit:
                    entries += queue.entries(one)
            return {one.value: count for one, count in queue.counts().items()}, entries[:limit]

        def shown(entries: Sequence[QueuedPod], owner: Queue) -> Sequence[QueuedAnswer]:
            # omit pods that have left the queue since they were listed
            return [
                queued(owner.queue, entry, now, nominated) for entry in entries if entry.place is not SubQueue.OUTSIDE
            ]

        nominated = await self._nominated()
        counts, entries = await self._cluster.queue.query(read)
        pods: list[QueuedAnswer] = []
        for start in range(0, len(entries), _SHOWN):
            pods += await self._cluster.queue.query(partial(shown, entries[start : start + _SHOWN]))
        return Large({"counts": counts}, "pods", pods, each=_ENTRY_BYTES)

    async def _nominated(self) -> Mapping[str, str]:
        """Return the nominated node of each nominated pod, by the pod's UID."""
        return await self._cluster.scheduler.query(lambda owner: owner.nominator.node_by_uid())

    @method(
        "queue.pod",
        (_POD,),
        reads=True,
        doc="Returns a pod of the queue with its recorded moves.",
        answer=WayAnswer,
    )
    async def pod(self, call: Call) -> Any:
        now, key = self._cluster.clock.now_ns(), call["pod"]

        def read(owner: Queue) -> QueuedAnswer | None:
            entry = owner.queue.entry(key)
            return None if entry is None else queued(owner.queue, entry, now, nominated)

        nominated = await self._nominated()
        found = await self._cluster.queue.query(read)
        moves = await self._cluster.log.query(lambda log: log.moves(key))
        if found is None and not moves:
            raise RpcError("not_found", f'pod "{key}" is not in the queue', {"pod": key})
        place = SubQueue.OUTSIDE.value if found is None else found.place
        ends = [number for number, move in enumerate(moves, 1) if move.target.value == place]
        moves = moves[: ends[-1]] if ends else moves  # the moves up to this point are also in the queue's answer
        first, held = _stays(moves, now)
        way: dict[str, Any] = {"first_attempt": first, "held_s": held, "history": [_move(move) for move in moves]}
        return WayAnswer(key=key, place=place, **way) if found is None else extended(WayAnswer, found, **way)

    @method(
        "queue.activate",
        (
            Param("pods", "string[]", False, doc="`namespace/name` of each"),
            Param("all", "boolean", False, False, "all waiting pods"),
        ),
        doc="Moves pods to the active queue, even if their backoff has not expired or they wait for an event; gated "
        "pods stay gated.",
        answer=ActivatedAnswer,
    )
    async def activate(self, call: Call) -> Any:
        keys: Sequence[str] = call["pods"] or ()
        everything = call["all"]
        if bool(keys) == everything:
            raise RpcError("bad_params", "queue.activate: give either pods or all")
        now = self._cluster.clock.now_ns()

        def move(owner: Queue) -> Any:
            queue = owner.queue
            entries = queue.entries() if everything else [queue.entry(key) for key in keys]
            for key, entry in zip(keys, entries, strict=False):
                if entry is None:
                    raise RpcError("not_found", f'there is no pod "{key}" in the queue', {"pod": key})
            pods = [entry.pod for entry in entries if entry is not None]
            return ActivatedAnswer([entry.key for entry in owner.operations.step(MoveToActive(pods), now)])

        return await self._cluster.queue.query(move)

    @method(
        "queue.move",
        (_POD, Param("place", "string", doc="target sub-queue", choices=MOVABLE)),
        doc="Moves a pod within the queue. A pod whose attempt is running or about to begin cannot be moved.",
        answer=PlacedAnswer,
    )
    async def move(self, call: Call) -> Any:
        key, place = call["pod"], SubQueue(call["place"])
        now = self._cluster.clock.now_ns()

        def move(owner: Queue) -> Any:
            entry = owner.queue.entry(key)
            if entry is None:
                raise RpcError("not_found", f'there is no pod "{key}" in the queue', {"pod": key})
            if not owner.operations.step(Force(key, place), now):
                raise RpcError("conflict", f"an attempt of pod {key} is under way, or about to begin", {"pod": key})
            return PlacedAnswer(key, entry.place.value)

        return await self._cluster.queue.query(move)

    @method(
        "waiting.list",
        reads=True,
        doc="Lists the pods that have a reserved node and wait at Permit.",
        answer=Sequence[WaitingAnswer],
    )
    async def waiting(self, call: Call) -> Any:
        now = self._cluster.clock.now()
        return await self._cluster.scheduler.query(lambda owner: waiting_pods(owner, now))

    @method(
        "waiting.allow", (_POD, _PLUGIN), doc="Allows a waiting pod, in the name of a plugin.", answer=DecidedAnswer
    )
    async def allow(self, call: Call) -> Any:
        def let_go(owner: SchedulingDriver) -> Any:
            waiting = _waiting_pod(owner, call["pod"])
            for plugin in _plugins(waiting, call["plugin"]):
                owner.step(Allow(waiting.pod.uid, plugin))
            return DecidedAnswer(call["pod"], waiting.decided)

        return await self._cluster.scheduler.query(let_go)

    @method(
        "waiting.reject",
        (_POD, _PLUGIN, Param("reason", "string", False, "rejected by hand", "reason in the pod's status")),
        doc="Rejects a waiting pod: its node is released, and it returns to the queue.",
        answer=DecidedAnswer,
    )
    async def reject(self, call: Call) -> Any:
        def turn_away(owner: SchedulingDriver) -> Any:
            waiting = _waiting_pod(owner, call["pod"])
            owner.step(Reject(waiting.pod.uid, _plugins(waiting, call["plugin"])[0], call["reason"]))
            return DecidedAnswer(call["pod"], waiting.decided)

        return await self._cluster.scheduler.query(turn_away)


def waiting_pods(driver: SchedulingDriver, now_s: float) -> list[WaitingAnswer]:
    """Return the pods that wait at Permit, with the seconds that are left for each plugin."""
    return [
        WaitingAnswer(
            waiting.pod.key,
            waiting.node_name,
            {name: max(at - now_s, 0.0) for name, at in waiting.pending.items()},
        )
        for waiting in driver.machine.waiting.pods.values()
    ]


def _waiting_pod(owner: SchedulingDriver, key: str) -> Any:
    found = [waiting for waiting in owner.machine.waiting.pods.values() if waiting.pod.key == key]
    if not found or found[0].decided:
        raise RpcError("not_found", f'pod "{key}" does not wait at Permit', {"pod": key})
    return found[0]


def _plugins(waiting: Any, plugin: str | None) -> list[str]:
    names = list(waiting.pending)
    if plugin is None:
        return names
    if plugin not in names:
        why = f'pod "{waiting.pod.key}" does not wait for {plugin}, but for {", ".join(names)}'
        raise RpcError("not_found", why, {"plugin": plugin, "allowed": names})
    return [plugin]


def queued(queue: SchedulingQueue, entry: QueuedPod, now: int, nominated: Mapping[str, str]) -> QueuedAnswer:
    """Return a pod of the queue; `now` is in nanoseconds, and `nominated` has the nominated nodes by UID."""
    backoff = queue.backoff_until(entry) if entry.place in (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF) else 0
    status = entry.gating_status
    return QueuedAnswer(
        key=entry.key,
        place=entry.place.value,
        priority=entry.pod.priority,
        attempts=entry.attempts,
        since_s=(now - entry.timestamp) / SECOND,
        backoff_until_s=(backoff - now) / SECOND if backoff else None,
        unschedulable_plugins=sorted(entry.unschedulable_plugins),
        pending_plugins=sorted(entry.pending_plugins),
        gated_by=entry.gating_plugin,
        nominated_node=nominated.get(entry.uid, ""),
        message=_message(entry.pod) if status is None else status.message,
    )


def _stays(moves: Sequence[Move], now: int) -> tuple[str | None, dict[str, float]]:
    """Return the time of the pod's first attempt, and the seconds in each sub-queue, from its recorded moves."""
    first = next((move.when for move in moves if move.target is SubQueue.IN_FLIGHT), None)
    held: dict[str, float] = {}
    # the log may have dropped old moves of a pod that waits for a long time
    times = [*(move.when for move in moves), now]
    for move, end in zip(moves, times[1:], strict=True):
        if move.target is not SubQueue.OUTSIDE:
            place = move.target.value
            held[place] = held.get(place, 0.0) + (end - move.when) / SECOND
    return None if first is None else stamp(first / SECOND), held


def _message(pod: Pod) -> str:
    found = condition(pod.status, "PodScheduled")
    return "" if found is None else str(found.get("message") or "")


def _move(move: Move) -> MoveAnswer:
    time_s = move.when / SECOND
    return MoveAnswer(time_s, stamp(time_s), move.source.value, move.target.value, move.event, move.plugin, move.seen)
