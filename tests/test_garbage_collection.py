import gc
import weakref
from collections import deque
from collections.abc import Iterator

import pytest

from kschedd import garbage_collection
from kschedd.garbage_collection import FullCollections, collection_postponed, tune_gc


class Cyclic:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Exclude the objects of other tests, of which a worker has millions, from the collections of the test."""
    gc.freeze()
    yield
    gc.enable()
    gc.unfreeze()


def is_old(made: object) -> bool:
    return any(each is made for each in gc.get_objects(generation=2))


def test_nothing_is_collected_while_collection_is_postponed() -> None:
    with collection_postponed():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_is_made_meanwhile_is_an_old_object() -> None:
    with collection_postponed():
        made = [object()]
        assert not is_old(made)
    assert is_old(made)


def test_garbage_made_meanwhile_is_given_back_by_a_full_collection() -> None:
    with collection_postponed():
        garbage = Cyclic()
        held = weakref.ref(garbage)
        del garbage
    assert held() is not None
    gc.collect()
    assert held() is None


def test_it_goes_on_when_the_last_of_several_is_done() -> None:
    first, second = collection_postponed(), collection_postponed()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_it_goes_on_after_a_fault() -> None:
    with pytest.raises(ZeroDivisionError), collection_postponed():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_who_has_no_collection_has_none_afterwards() -> None:
    gc.disable()
    with collection_postponed():
        pass
    assert not gc.isenabled()


@pytest.fixture
def in_small_portions() -> Iterator[None]:
    """Configure the garbage collector as the daemon does, but start a collection after 20 objects."""
    before = gc.get_threshold()
    gc.collect()  # so that the first collections are of the young objects
    tune_gc()
    gc.set_threshold(20, *gc.get_threshold()[1:])
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("in_small_portions")
def test_cycles_that_were_in_use_for_a_while_are_freed() -> None:
    in_use: deque[Cyclic] = deque(maxlen=1_000)
    for _ in range(100_000):
        in_use.append(Cyclic())
    assert sum(type(each) is Cyclic for each in gc.get_objects()) < 50_000


def test_they_are_freed_too_where_copies_are_made_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "_DUE", 40_000)
    in_use: deque[Cyclic] = deque(maxlen=1_000)
    for _ in range(60):
        with collection_postponed():
            for _ in range(1_000):
                in_use.append(Cyclic())
    assert sum(type(each) is Cyclic for each in gc.get_objects()) < 50_000


@pytest.fixture
def daemons(monkeypatch: pytest.MonkeyPatch) -> Iterator[FullCollections]:
    """Run a daemon's collections in steps of 200 objects, with a clock that does not advance."""
    monkeypatch.setattr(garbage_collection, "_YOUNG", 200)
    with FullCollections(cpu_s=lambda: 10.0) as collections:
        yield collections


def test_what_has_survived_a_collection_is_looked_at_no_more(daemons: FullCollections) -> None:
    kept = [Cyclic() for _ in range(5_000)]
    assert sum(type(each) is Cyclic for each in gc.get_objects()) < 1_000
    assert len(kept) == 5_000


def test_young_objects_are_not_all_looked_at_where_hardly_any_are_garbage(daemons: FullCollections) -> None:
    kept = [[number] for number in range(1_000)]
    held = []
    for number in range(1_000):
        garbage = Cyclic()
        held.append(weakref.ref(garbage))
        del garbage
        kept.extend([number] for _ in range(1_000))
    left = sum(ref() is not None for ref in held)
    assert 0 < left < len(held), "one portion in eight is looked at"


def test_young_objects_are_all_looked_at_where_many_are_garbage(daemons: FullCollections) -> None:
    kept = []
    held = []
    for number in range(5_000):
        garbage = Cyclic()
        held.append(weakref.ref(garbage))
        del garbage
        kept.append([number])
    left = sum(ref() is not None for ref in held)
    assert len(kept) == len(held)
    assert left < len(held) / 4, "but for the first portions, and one object in each that is in use just then"


def test_cycles_that_a_daemon_had_in_use_for_long_are_freed_when_everything_is_looked_at(
    daemons: FullCollections,
) -> None:
    kept = [weakref.ref(each) for each in [Cyclic() for _ in range(5_000)]]
    assert any(ref() is not None for ref in kept)
    daemons.collect_all()
    assert not any(ref() is not None for ref in kept)
    assert not daemons.due(1e9), "nothing was made since"


def test_copies_are_no_concern_of_the_next_collection(daemons: FullCollections) -> None:
    with collection_postponed():
        made = [[number] for number in range(2_000)]
    assert not any(each is made for each in gc.get_objects())
    assert daemons.made >= 2_000, "they count for when everything is looked at"


@pytest.mark.parametrize(
    ("idle_s", "since_s", "due"),
    [
        pytest.param(40.0, 0.0, False, id="not-when-it-would-take-more-than-a-fiftieth-of-the-time-with-little-to-do"),
        pytest.param(60.0, 0.0, True, id="when-it-takes-less-than-a-fiftieth-of-it"),
        pytest.param(0.0, 400.0, False, id="not-while-it-would-take-more-than-a-five-hundredth-of-all-time"),
        pytest.param(0.0, 600.0, True, id="when-it-takes-less-than-a-five-hundredth-of-it"),
    ],
)
def test_when_everything_is_looked_at(
    idle_s: float, since_s: float, due: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "unfreeze", lambda: None)  # the objects of other tests need not be traversed
    now = iter([0.0, 100.0, 100.5, 100.5 + since_s])
    with FullCollections(cpu_s=lambda: next(now)) as collections:
        collections.collect_all()  # which takes half a second
        collections.made = max(300_000, gc.get_freeze_count())
        collections.looked_at = collections.made  # the next collection of the same size will take a second
        assert collections.due(idle_s) is due


def test_the_collector_is_as_before_when_the_daemon_has_ended() -> None:
    at_first, before = gc.get_threshold(), ((700, 9, 8), len(gc.callbacks))
    gc.set_threshold(*before[0])
    try:
        with FullCollections() as first, FullCollections() as second:
            second.__exit__(None, None, None)
            assert gc.get_threshold() != before[0]
            assert first.made >= 0
        assert (gc.get_threshold(), len(gc.callbacks)) == before
    finally:
        gc.set_threshold(*at_first)
