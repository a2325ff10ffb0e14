"""The schedule of the cyclic garbage collector.

The collector runs rarely, because this program rarely creates reference cycles.

A collection of young objects takes about 0.3 us per object, but it also traverses everything to which they refer. A
collection after a new copy of a map of 50,000 pods takes 10 ms or more, twice, and stops all threads during this time.
Large copies are therefore made while collection is postponed. When collection is no longer postponed, these copies are
old objects, which only a full collection traverses.

A full collection takes 0.5 us per object: 100 ms or more in a large cluster. A program that ends soon rarely needs a
full collection. A daemon (`FullCollections`) excludes objects from collection as soon as they have survived one
collection. The daemon traverses all objects only if many were created since the last full collection, and if the
collection takes less than 0.2 % of the elapsed time, or 2 % of the idle time. A full collection frees long-lived
reference cycles. Long-lived reference cycles are rare: requests and pods create no cycles, and the cycles of a
discarded fork are broken. If a collection of young objects finds hardly any garbage, the next young objects are
excluded without being traversed.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import attrs

_lock = threading.Lock()
# number of threads and tasks that postpone collection at present; `_lock` guards it, and also `_passed_over`
_postponing = 0
_was_on = True  # before the first of them
_passed_over = 0  # number of created objects that the collector no longer counts, because its lists were joined
_YOUNG, _MIDDLE, _OLD = 4_000, -1, 300
_DUE = _YOUNG * _OLD  # number of created objects minus freed objects that starts a full collection
_UNLOOKED = 7  # number of portions that are skipped after a portion with hardly any garbage
_HARDLY_ANY = 0.01  # share of a portion's objects below which there is hardly any garbage
_ALL = 300_000  # number of created objects minus freed objects after which all objects are traversed
_SHARE = 0.002  # share of the elapsed time that full collections may take while the process is busy
_IDLE_SHARE = 0.02  # share of the idle time that full collections may take; small, because a request may arrive
_OBJECT_S = 5e-7  # seconds per object; the initial estimate, until it has been measured
LOOK_S = 1.0
_IDLE = 0.2  # share of a core; below it, the process counts as nearly idle


def tune_gc() -> None:
    """Collect young objects in small portions, and old objects rarely.

    Nearly all objects of a pod stay alive, so a larger portion takes longer, and all threads wait during this time:
    10,000 objects take 6 to 9 ms on a busy machine.

    Objects that survive one collection usually stay alive, so there is no middle generation: -1 makes every portion old
    immediately. With a middle generation, three portions together would be traversed a second time. Old objects are
    traversed if about 1,200,000 more objects were created than freed; Python also requires that their number has grown
    by a quarter since the last time.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)


def freeze_gc() -> None:
    """Tune the collector, and exclude all present objects from collection."""
    tune_gc()
    freeze_present()


def freeze_present() -> None:
    """Exclude all present objects from garbage collection (`gc.freeze`): most of them are long-lived."""
    gc.collect()
    gc.freeze()
    # nothing is collected; the collector uses the number of remaining objects to schedule the next collection
    gc.collect()


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause garbage collection; all objects that exist at the end of the pause are excluded from collection.

    Used while a dump is read at startup: the collector would repeatedly traverse everything that was already read.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


@contextmanager
def collection_postponed() -> Iterator[None]:
    """Postpone garbage collection in all threads; all objects that exist at the end of the context become old.

    Used to make large copies while other threads continue. Several threads and tasks may be in this context at the same
    time. In a daemon that has `FullCollections`, the old objects are excluded immediately. In other programs, the
    objects that `freeze_gc` has excluded are included again, so the next full collection takes longer.
    """
    global _postponing, _was_on
    due = False
    with _lock:
        if not _postponing:
            _was_on = gc.isenabled()
        _postponing += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _postponing -= 1
            if not _postponing:
                due = _all_made_old()
                if _was_on:
                    gc.enable()
        if due and gc.isenabled():
            gc.collect()


def _all_made_old() -> bool:
    """Make all existing objects old; return whether a full collection is then due."""
    global _passed_over
    young, _, old = gc.get_count()
    made = young + _YOUNG * old
    gc.freeze()  # `freeze` and `unfreeze` only join lists of objects, which takes no time
    if _full is not None:
        _full.made += made
        return False
    gc.unfreeze()
    _passed_over += made
    if _passed_over < _DUE:
        return False
    _passed_over = 0
    return True


@attrs.define(eq=False)
class FullCollections:
    """Control of full garbage collections in a daemon.

    A daemon enters this context after loading its initial objects, and then calls `look` regularly. If several daemons
    run in one process, as in tests, only the first one controls collection.
    """

    cpu_s: Callable[[], float] = time.process_time
    # number of created objects minus freed objects since the last full collection
    made: int = attrs.field(default=0, init=False)
    # number of portions of young objects that are still to be skipped
    _unlooked: int = attrs.field(default=0, init=False)
    _ended_s: float = attrs.field(default=0.0, init=False)  # by `cpu_s`
    _took_s: float = attrs.field(default=0.0, init=False)
    looked_at: int = attrs.field(default=0, init=False)  # number of objects at the last full collection
    _used_s: float = attrs.field(default=0.0, init=False)  # value of `cpu_s` at the last call of `look`
    _idle_s: float = attrs.field(default=0.0, init=False)  # seconds for which the process has been nearly idle
    _thresholds: tuple[int, int, int] = attrs.field(default=(0, 0, 0), init=False)

    def __enter__(self) -> "FullCollections":
        global _full
        if _full is not None:
            return self
        self._thresholds = gc.get_threshold()
        tune_gc()
        gc.freeze()  # the initial objects are in use, and traversing them would take as long as loading them
        self.looked_at = gc.get_freeze_count()
        self._ended_s, self._took_s = self.cpu_s(), self.looked_at * _OBJECT_S
        gc.callbacks.append(self._collected)
        _full = self
        return self

    def __exit__(self, *_: object) -> None:
        global _full
        if _full is not self:
            return
        _full = None
        gc.callbacks.remove(self._collected)
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()

    def look(self) -> None:
        """Run a full collection if it is due. Call this method every LOOK_S seconds."""
        used_s = self.cpu_s()
        self._idle_s = self._idle_s + LOOK_S if used_s - self._used_s < _IDLE * LOOK_S else 0.0
        if self.due(self._idle_s) and gc.isenabled():
            self.collect_all()
        self._used_s = self.cpu_s()

    def due(self, idle_s: float) -> bool:
        """Return whether a full collection is due if the process has been nearly idle for this time."""
        if self.made < max(_ALL, self.looked_at // 4):
            return False
        would_take_s = self._took_s * (1 + self.made / max(self.looked_at, 1))
        return would_take_s <= max(_SHARE * (self.cpu_s() - self._ended_s), _IDLE_SHARE * idle_s)

    def collect_all(self) -> None:
        before = self.cpu_s()
        gc.unfreeze()
        freeze_present()
        self._ended_s = self.cpu_s()
        self._took_s, self.looked_at, self.made = self._ended_s - before, gc.get_freeze_count(), 0

    def _collected(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        if info["generation"] != 1:
            return
        if phase == "stop":
            self.made += _YOUNG
            if self._unlooked:
                self._unlooked -= 1
            elif info["collected"] <= _HARDLY_ANY * _YOUNG:
                self._unlooked = _UNLOOKED
            gc.freeze()
        elif self._unlooked:
            gc.freeze()  # this collection has no objects left to traverse


_full: FullCollections | None = None  # of this process
