"""The schedule of the cyclic garbage collector. It runs seldom, since this program rarely forms reference cycles.

A collection of young objects takes about 0.3 us per object, but traverses everything that they refer to. A new copy of
a map of 50,000 pods costs 10 ms or more, twice, and stops all threads meanwhile. Such copies are therefore made while
collection is postponed. They are old objects afterwards, which only a full collection traverses.

A full collection takes 0.5 us per object, 100 ms and more in a large cluster. A program that ends soon rarely needs
one. A daemon (`FullCollections`) excludes objects from collection as soon as they have survived one. It traverses all
objects only if many were created since the last full collection, and if the collection takes less than a five-hundredth
of the elapsed time, or a fiftieth of the idle time. A full collection frees long-lived reference cycles. There are few:
requests and pods form none, and a discarded fork is taken apart. If a collection of young objects finds hardly any
garbage, the next young objects are excluded without being traversed.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import attrs

_lock = threading.Lock()
_postponing = 0  # number of threads and tasks that postpone collection now; guarded by `_lock`, like the next one
_was_on = True  # before the first of them
_passed_over = 0  # created objects that the collector no longer counts, because its lists were joined
_YOUNG, _MIDDLE, _OLD = 4_000, -1, 300
_DUE = _YOUNG * _OLD  # objects made beyond those freed, for a full collection
_UNLOOKED = 7  # portions after one with hardly any garbage
_HARDLY_ANY = 0.01  # of the objects of a portion
_ALL = 300_000  # objects made beyond those freed, after which it looks at everything
_SHARE = 0.002  # of its time that this may take while it is busy
_IDLE_SHARE = 0.02  # of the idle time, because a request may arrive
_OBJECT_S = 5e-7  # what it takes for each object, until it is known
LOOK_S = 1.0
_IDLE = 0.2  # of a core: it has little to do


def tune_gc() -> None:
    """Collect young objects in small portions, old ones rarely.

    Nearly all objects of a pod stay, so a portion takes the longer the larger it is, and everybody waits meanwhile: for
    10,000 objects 6 to 9 ms on a busy machine. What has stayed once stays, too, so there is no middle generation: -1
    makes every portion old at once, where others would be looked at a second time, three of them together. Old ones are
    looked at when some 1,200,000 objects more were made than freed, and Python sees to it that they are a quarter more
    than they were the last time.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)


def freeze_gc() -> None:
    """Tune the collector, and exclude all present objects from it."""
    tune_gc()
    freeze_present()


def freeze_present() -> None:
    """Exclude all present objects from garbage collection (`gc.freeze`): most of them are long-lived."""
    gc.collect()
    gc.freeze()
    gc.collect()  # of nothing: by how many are left the collector judges when the next one is worth its while


@contextmanager
def collection_paused() -> Iterator[None]:
    """Without garbage collection; what is there at the end is excluded from it.

    For reading a dump at the start: the collector would traverse everything that was read so far again and again.
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
    """Without garbage collection, in all threads; at the end all that is there are old objects.

    For making large copies while others go on. It may be entered by several at a time. In a daemon that has
    `FullCollections` they are excluded at once. Else what `freeze_gc` has excluded is included again: the next full
    collection, should there be one, takes that much longer.
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
    """Make all present objects old, and return whether that calls for a full collection."""
    global _passed_over
    young, _, old = gc.get_count()
    made = young + _YOUNG * old
    gc.freeze()  # this and `unfreeze` join lists of objects, which takes no time
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
    """Control of full garbage collections in a daemon; see the module.

    A daemon enters it after loading its initial objects, and then calls `look` now and then. If several daemons run in
    one process, as in tests, only the first one controls collection.
    """

    cpu_s: Callable[[], float] = time.process_time
    made: int = attrs.field(default=0, init=False)  # objects beyond those freed, since everything was looked at
    _unlooked: int = attrs.field(default=0, init=False)  # so many portions of young objects are not to be looked at
    _ended_s: float = attrs.field(default=0.0, init=False)  # by `cpu_s`
    _took_s: float = attrs.field(default=0.0, init=False)
    looked_at: int = attrs.field(default=0, init=False)  # number of objects at that time
    _used_s: float = attrs.field(default=0.0, init=False)  # by `cpu_s`, at the last look
    _idle_s: float = attrs.field(default=0.0, init=False)  # for so long there has been little to do
    _thresholds: tuple[int, int, int] = attrs.field(default=(0, 0, 0), init=False)

    def __enter__(self) -> "FullCollections":
        global _full
        if _full is not None:
            return self
        self._thresholds = gc.get_threshold()
        tune_gc()
        gc.freeze()  # what it begins with is in use, and to look at that would take as long as to read it has
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
        """Look at everything when that is due. To be called every LOOK_S."""
        used_s = self.cpu_s()
        self._idle_s = self._idle_s + LOOK_S if used_s - self._used_s < _IDLE * LOOK_S else 0.0
        if self.due(self._idle_s) and gc.isenabled():
            self.collect_all()
        self._used_s = self.cpu_s()

    def due(self, idle_s: float) -> bool:
        """Return whether a full collection is due after this long with little to do."""
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
            gc.freeze()  # nothing is left for this collection to look at


_full: FullCollections | None = None  # of this process
