"""A turn of a controller: it reconciles, its writes are performed, and failures are recorded for each object.

The daemon's actors and simulations run controllers through this module. In a turn, the controller receives events (none
if only a deadline has passed), and its writes are performed. No other reads or writes take place meanwhile. If a write
is rejected, the controller is called with the rejection, for a limited number of rounds. Any other exception is
recorded for the object that caused it, and the object is retried later (`kschedd.object_faults`).
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.schemas.kinds import kind_of
from kschedd.controllers.object_events import again
from kschedd.controllers.running.controller import Controller, Reconciling, View
from kschedd.errors import without_traceback
from kschedd.object_faults import ObjectRef
from kschedd.store.awaited import WebhooksNeeded
from kschedd.store.cluster_api import ClusterWriter, perform
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Bind, Create, Delete, Evict, FinalizeNamespace, Patch, RenewLease, Update, Write
from kschedd.values import run_steps

_ROUNDS: Final = 20  # maximum number of consecutive rounds of writes in response to rejections


def concerned(controller: Controller) -> Callable[[WatchEvent], bool] | None:
    """Return the controller's `concerns` method, or None if it has none and every event is delivered to it."""
    found: Callable[[WatchEvent], bool] | None = getattr(controller, "concerns", None)
    return found


def concerning(controller: Controller, events: Sequence[WatchEvent]) -> Sequence[WatchEvent]:
    """Return the events to deliver: those for which `concerns` returns True, or all if there is no `concerns`."""
    concerns = concerned(controller)
    return events if concerns is None else list(filter(concerns, events))


def is_concerned(controller: Controller, event: WatchEvent) -> bool:
    concerns = concerned(controller)
    return concerns is None or concerns(event)


def next_deadline(controller: Controller) -> float | None:
    """Return the controller's next deadline, including retries of failed objects, or None."""
    times = (controller.next_deadline, controller.faults.next_retry)
    return min((at for at in times if at is not None), default=None)


def take_turn(controller: Controller, events: Sequence[WatchEvent], store: ClusterWriter, manager: str = "") -> int:
    """Let the controller reconcile, and perform its writes. Return the number of writes performed."""
    return run_steps(turn_in_steps(controller, events, store, manager))


def turn_in_steps(
    controller: Controller, events: Sequence[WatchEvent], store: ClusterWriter, manager: str = ""
) -> Generator[WebhooksNeeded | None, None, int]:
    """Take a turn with pauses within the reconcile and before each write. Return the number of writes performed.

    `manager` is the field manager of the writes ("": not recorded). No other task may read or write the cluster
    meanwhile.
    """
    now = store.now
    writes = [write for again in controller.faults.retry(now) for write in again]
    own = controller.next_deadline
    if events or (own is not None and own <= now):
        writes += yield from _reaction(controller, events, store, now)
    if not writes:
        return 0
    with store.one_request():
        return (yield from _perform_all(controller, writes, store, now, manager))


def _reaction(controller: Controller, events: Sequence[WatchEvent], store: ClusterWriter, now: float) -> Reconciling:
    reconciling: Callable[[Sequence[WatchEvent], View, float], Reconciling] | None
    reconciling = getattr(controller, "reconciling", None)
    try:
        if reconciling is None:
            return controller.reconcile(events, store, now)
        writes: list[Write] = yield from reconciling(events, store, now)
        return writes
    except Exception as fault:  # one event caused the exception, so each event is delivered separately
        if not events:
            nothing = ObjectRef("Controller", "", controller.name)
            controller.faults.note(nothing, partial(controller.reconcile, (), store), fault, now, "event")
    writes = []
    for event in events:
        ref = ObjectRef(event.new.kind, event.new.namespace, event.new.name)
        writes += controller.faults.run(ref, partial(controller.reconcile, (event,), store), now, "event") or []
    return writes


def _perform_all(
    controller: Controller,
    writes: Sequence[Write],
    store: ClusterWriter,
    now: float,
    manager: str,
    rounds: int = _ROUNDS,
) -> Generator[WebhooksNeeded | None, None, int]:
    done = 0
    on_performed: Callable[[Write, Object, View, float], Sequence[Write]] | None
    on_performed = getattr(controller, "on_performed", None)
    for write in writes:
        yield None
        try:
            made = yield from _performed(store, write, manager)
            done += 1
            if on_performed is not None and (events := on_performed(write, made, store, now)):
                done += yield from _perform_all(controller, events, store, now, manager, 0)
        except ApiError as error:
            if subject(write).kind == "Event":  # a rejected Event is dropped, as in client-go
                whole = again(write) if isinstance(error, NotFound) else None
                done += yield from _perform_all(controller, () if whole is None else (whole,), store, now, manager, 0)
                continue
            if not rounds:
                endless = RuntimeError(f"refused {_ROUNDS} times in a row: {error}")
                controller.faults.note(subject(write), partial(_again, write), endless, now, "write")
                continue
            refused = partial(controller.on_refused, write, without_traceback(error), store)
            answers = controller.faults.run(subject(write), refused, now, "refused") or ()
            done += yield from _perform_all(controller, answers, store, now, manager, rounds - 1)
        except Exception as fault:  # the exception is recorded as a fault of the object
            controller.faults.note(subject(write), partial(_again, write), fault, now, "write")
    return done


def _performed(store: ClusterWriter, write: Write, manager: str) -> Generator[WebhooksNeeded, None, Object]:
    """Perform a write, again after each pause for expensive expressions of policies."""
    while True:
        before = store.version
        try:
            return perform(store, write, manager)
        except WebhooksNeeded as missing:
            store.roll_back(before)
            needed = missing
        yield needed


def _again(write: Write, now: float) -> list[Write]:
    return [write]


def subject(write: Write) -> ObjectRef:
    """Return the object that a write creates, changes or deletes."""
    match write:
        case Create(raw) | Update(raw):
            meta: Mapping[str, Any] = raw.get("metadata") or {}
            name = meta.get("name") or meta.get("generateName") or ""
            return ObjectRef(kind_of(raw).name, meta.get("namespace") or "", name)
        case Bind(namespace, name) | Evict(namespace, name):
            return ObjectRef("Pod", namespace, name)
        case Patch(kind, namespace, name) | Delete(kind, namespace, name):
            return ObjectRef(kind, namespace, name)
        case FinalizeNamespace(name):
            return ObjectRef("Namespace", "", name)
        case RenewLease(namespace, name):
            return ObjectRef("Lease", namespace, name)
