"""A controller's turn: what it wants done is done, and what goes wrong is the object's that it went wrong with.

The daemon's actors and simulations run controllers through this. In a turn the controller hears of some events (or
none: then a time it asked for has come), and its writes are carried out, with nothing in between. A write that is
refused is the controller's to handle, in a limited number of rounds; whatever else a write or the controller raises is
noted in the controller's ledger under the object's name, and tried again later (`kschedd.object_faults`).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.kinds import kind_of
from kschedd.controllers.controller import Controller
from kschedd.object_faults import ObjectRef
from kschedd.store.errors import ApiError
from kschedd.store.log import WatchEvent
from kschedd.store.store import Store
from kschedd.store.writes import Bind, Create, Delete, FinalizeNamespace, Patch, Update, Write, perform

_ROUNDS: Final = 20  # of answers to refusals


def wake_at(controller: Controller) -> float | None:
    """When the controller has something to do of itself."""
    times = (controller.wake_at, controller.faults.next_retry)
    return min((at for at in times if at is not None), default=None)


def take_turn(controller: Controller, events: Sequence[WatchEvent], store: Store) -> int:
    """Let the controller react, and carry out what it wants done; the number of writes that were."""
    now = store.now
    writes = [write for again in controller.faults.retry(now) for write in again]
    own = controller.wake_at
    if events or (own is not None and own <= now):
        writes += _reaction(controller, events, store, now)
    return _carry_out(controller, writes, store, now)


def _reaction(controller: Controller, events: Sequence[WatchEvent], store: Store, now: float) -> list[Write]:
    try:
        return controller.react(events, store, now)
    except Exception as fault:  # one event's: found by hearing each by itself, which is what it would do at a restart
        if not events:
            nothing = ObjectRef("Controller", "", controller.name)
            controller.faults.note(nothing, partial(controller.react, (), store), fault, now, "event")
    writes: list[Write] = []
    for event in events:
        ref = ObjectRef(event.new.kind, event.new.namespace, event.new.name)
        writes += controller.faults.run(ref, partial(controller.react, (event,), store), now, "event") or []
    return writes


def _carry_out(controller: Controller, writes: Sequence[Write], store: Store, now: float, rounds: int = _ROUNDS) -> int:
    done = 0
    for write in writes:
        try:
            perform(store, write)
            done += 1
        except ApiError as error:
            if not rounds:
                endless = RuntimeError(f"refused {_ROUNDS} times in a row: {error}")
                controller.faults.note(subject(write), partial(_again, write), endless, now, "write")
                continue
            refused = partial(controller.refused, write, error, store)
            answers = controller.faults.run(subject(write), refused, now, "refused") or ()
            done += _carry_out(controller, answers, store, now, rounds - 1)
        except Exception as fault:  # the object's
            controller.faults.note(subject(write), partial(_again, write), fault, now, "write")
    return done


def _again(write: Write, now: float) -> list[Write]:
    return [write]


def subject(write: Write) -> ObjectRef:
    """The object that a write is about."""
    match write:
        case Create(raw) | Update(raw):
            meta: Mapping[str, Any] = raw.get("metadata") or {}
            name = meta.get("name") or meta.get("generateName") or ""
            return ObjectRef(kind_of(raw).name, meta.get("namespace") or "", name)
        case Bind(namespace, name):
            return ObjectRef("Pod", namespace, name)
        case Patch(kind, namespace, name) | Delete(kind, namespace, name):
            return ObjectRef(kind, namespace, name)
        case FinalizeNamespace(name):
            return ObjectRef("Namespace", "", name)
