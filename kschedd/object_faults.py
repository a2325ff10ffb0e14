"""FaultLedger: an exception raised while an object is handled is recorded for this object; others are still handled.

Each component that handles objects one by one (a controller, the scheduler cache, the queue) has a `FaultLedger`, which
runs the work on each object. An exception is recorded under the object's name, and logged once for each reason. The
work is retried with exponential backoff, and also whenever the object is handled for another reason. When the work
succeeds, the record is removed.

The work must therefore be idempotent: it looks up the object by name, and does nothing if the object was deleted.

Contains the faults of its component. Ends: never by itself. Source of the backoff: client-go v1.34, util/workqueue
(ItemExponentialFailureRateLimiter), with bounds suited to interactive use.
"""

import heapq
import traceback
from collections.abc import Callable, Generator, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import attrs

from kschedd.lazy_log import LazyLogger
from kschedd.values import in_parts, run_steps

_log: Final = LazyLogger("kschedd.objects")
R = TypeVar("R")
W = TypeVar("W")

FIRST_RETRY_S: Final = 1.0
LONGEST_RETRY_S: Final = 300.0
_LONGEST_TEXT: Final = 300
_PART: Final = 50  # number of objects that are handled between two pauses, in a few milliseconds
_OURS: Final = str(Path(__file__).parent)


@attrs.frozen
class ObjectRef:
    """A reference to an object; the namespace is "" for a cluster-scoped object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


@attrs.define(eq=False)
class ObjectFault:
    """The exception that handling an object raised, how often, and when the work is retried (None: never)."""

    ref: ObjectRef
    component: str
    why: str
    first_s: float
    last_s: float
    count: int = 1
    retry_s: float | None = None


@attrs.frozen(eq=False)
class _Retry(Generic[R]):
    work: Callable[[float], R]
    at: float


class FaultLedger(Generic[R]):
    """The faults of one component, with the component's name for users: "replicasets", "scheduler cache"."""

    def __init__(self, component: str) -> None:
        self.component = component
        # Public for reading: its truth value is tested for every event, and a `__len__` method would cost an additional
        # call each time.
        self.by_object: dict[tuple[ObjectRef, str], ObjectFault] = {}
        self._retries: dict[tuple[ObjectRef, str], _Retry[R]] = {}
        self._heap: list[tuple[float, int, tuple[ObjectRef, str]]] = []
        self._count = 0  # sorts equal retry times in order of insertion

    def __len__(self) -> int:
        return len(self.by_object)

    def run(self, ref: ObjectRef, work: Callable[[float], R], now: float, step: str = "") -> R | None:
        """Return the result of the work; None if it raised an exception.

        `step` distinguishes kinds of work on one object.

        The method catches only subclasses of `Exception`: KeyboardInterrupt and cancellations pass through.
        """
        try:
            result = work(now)
        except Exception as fault:  # an error that concerns only this object: it is recorded in the ledger
            self.note(ref, work, fault, now, step)
            return None
        if self.by_object:
            self.strike_off(ref, step)
        return result

    def each(
        self,
        kind: str,
        keys: Iterable[tuple[str, str]],
        work: Callable[[str, str, float], "list[W]"],
        now: float,
        step: str = "",
    ) -> "list[W]":
        """Return the joined results of the work for each (namespace, name), for ledgers whose results are lists."""
        results: list[W] = []
        for namespace, name in keys:
            one: Any = partial(work, namespace, name)
            found: Any = self.run(ObjectRef(kind, namespace, name), one, now, step)
            results += found or ()
        return results

    def each_in_parts(
        self,
        kind: str,
        keys: Iterable[tuple[str, str]],
        work: Callable[[str, str, float], "list[W]"],
        now: float,
        step: str = "",
    ) -> "Generator[None, None, list[W]]":
        """Process a long sequence of keys with the result of `each`, but yield between its parts."""
        results: list[W] = []
        for some in in_parts(keys, _PART):
            results += self.each(kind, some, work, now, step)
            yield
        return results

    def run_in_steps(
        self, ref: ObjectRef, work: Callable[[float], Generator[None, None, R]], now: float, step: str = ""
    ) -> Generator[None, None, R | None]:
        """Run work that is done in steps, with the rules of `run`."""
        try:
            result = yield from work(now)
        except Exception as fault:  # an error that concerns only this object: it is recorded in the ledger
            self.note(ref, partial(_at_once, work), fault, now, step)
            return None
        if self.by_object:
            self.strike_off(ref, step)
        return result

    def each_in_steps(
        self,
        kind: str,
        keys: Iterable[tuple[str, str]],
        work: Callable[[str, str, float], "Generator[None, None, list[W]]"],
        now: float,
        step: str = "",
    ) -> "Generator[None, None, list[W]]":
        """Run work that is done in steps for each object, with a pause after each object and the rules of `each`."""
        results: list[W] = []
        for namespace, name in keys:
            one: Any = partial(work, namespace, name)
            found: Any = yield from self.run_in_steps(ObjectRef(kind, namespace, name), one, now, step)
            results += found or ()
            yield
        return results

    def note(self, ref: ObjectRef, work: Callable[[float], R], raised: Exception, now: float, step: str = "") -> None:
        """Record an exception that the work on this object raised, and schedule a retry."""
        key = (ref, step)
        why = fault_text(raised)
        fault = self.by_object.get(key)
        known = fault is not None and fault.why == why
        if fault is None:
            fault = self.by_object[key] = ObjectFault(ref, self.component, why, now, now)
        else:
            fault.why, fault.last_s, fault.count = why, now, fault.count + 1
        wait = min(FIRST_RETRY_S * 2 ** min(fault.count - 1, 30), LONGEST_RETRY_S)
        fault.retry_s = now + wait
        self._retries[key] = _Retry(work, fault.retry_s)
        self._count += 1
        heapq.heappush(self._heap, (fault.retry_s, self._count, key))
        if not known:
            _log.error("object_fault", component=self.component, object=str(ref), why=why, retry_in_s=wait)

    def strike_off(self, ref: ObjectRef, step: str = "") -> None:
        """Remove the fault of an object that was handled successfully or no longer exists."""
        if self.by_object.pop((ref, step), None) is not None:
            self._retries.pop((ref, step), None)
            _log.info("object_recovered", component=self.component, object=str(ref))

    @property
    def next_retry(self) -> float | None:
        while self._heap:
            at, _, key = self._heap[0]
            if key in self._retries and self._retries[key].at == at:
                return at
            heapq.heappop(self._heap)
        return None

    def retry(self, now: float) -> list[R]:
        """Run the retries that are due; return the results of the successful retries."""
        results: list[R] = []
        while (at := self.next_retry) is not None and at <= now:
            ref, step = heapq.heappop(self._heap)[2]
            work = self._retries.pop((ref, step)).work
            result = self.run(ref, work, now, step)
            if result is not None:
                results.append(result)
        return results

    def faults(self) -> list[ObjectFault]:
        """All current faults, in the order in which they were recorded."""
        return [attrs.evolve(fault) for fault in self.by_object.values()]


def _at_once(work: Callable[[float], Generator[None, None, R]], now: float) -> R:
    return run_steps(work(now))


def fault_text(raised: BaseException) -> str:
    """Return the exception's text, with the line of this program that raised the exception."""
    text = str(raised)
    if len(text) > _LONGEST_TEXT:
        text = text[:_LONGEST_TEXT] + "..."
    where = next(
        (
            f" ({Path(frame.filename).relative_to(_OURS)}:{frame.lineno})"
            for frame in reversed(traceback.extract_tb(raised.__traceback__))
            if frame.filename.startswith(_OURS) and frame.filename != __file__
        ),
        "",
    )
    return f"{type(raised).__name__}: {text}{where}" if text else f"{type(raised).__name__}{where}"
