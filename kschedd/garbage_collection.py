"""When the cyclic garbage collector runs: seldom, since objects of this program rarely form reference cycles.

A collection of young objects takes about 0.3 us for each of them, but looks at all that they refer to: the copy of a
map of 50,000 pods costs 10 ms and more, twice, as a young object, and whoever allocates meanwhile holds all threads up.
So whoever makes such copies does it while collection is postponed; the copies are old objects then, which are
looked at in a full collection only. A full one takes 100 ms and more in a large cluster, and comes rarely: but it does
come, since nothing else frees what forms cycles and was in use for a while, such as a fork that was discarded.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_postponing = 0  # how many threads and tasks postpone at present; this and the next under `_lock`
_was_on = True  # before the first of them
_passed_over = 0  # objects made that the collector has forgotten to have counted, as joining its lists has it do
_YOUNG, _MIDDLE, _OLD = 4_000, -1, 300
_DUE = _YOUNG * _OLD  # objects made beyond those freed, for a full collection


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


@contextmanager
def collection_paused() -> Iterator[None]:
    """Without garbage collection; what is there at the end is excluded from it.

    For whoever starts with a dump and has nothing else to do meanwhile: the collector would look at all that was read
    so far again and again.
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

    For making large copies while others go on. It may be entered by several at a time. What `freeze_gc` has excluded
    is included again: the next full collection, should there be one, takes that much longer.
    """
    global _postponing, _was_on, _passed_over
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
                young, _, old = gc.get_count()
                _passed_over += young + _YOUNG * old
                if due := _passed_over >= _DUE:
                    _passed_over = 0
                gc.freeze()  # these two join lists of objects, which takes no time
                gc.unfreeze()
                if _was_on:
                    gc.enable()
        if due and gc.isenabled():
            gc.collect()
