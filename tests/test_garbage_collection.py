import gc
import weakref
from collections import deque
from collections.abc import Iterator

import pytest

from kschedd import garbage_collection
from kschedd.garbage_collection import collection_postponed, tune_gc


class Cyclic:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Begin and end without garbage, whatever other tests have left."""
    gc.collect()
    yield
    gc.enable()
    gc.collect()


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
    """The collector as the daemon has it, but that it begins after 20 objects."""
    before = gc.get_threshold()
    gc.freeze()  # what other tests left would count as old
    gc.collect()
    tune_gc()
    gc.set_threshold(20, *gc.get_threshold()[1:])
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("in_small_portions")
def test_cycles_that_were_in_use_for_a_while_are_freed() -> None:
    in_use: deque[Cyclic] = deque(maxlen=1_000)
    for _ in range(100_000):
        in_use.append(Cyclic())
    assert sum(type(each) is Cyclic for each in gc.get_objects()) < 50_000


def test_they_are_freed_too_where_copies_are_made_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "_DUE", 20_000)
    in_use: deque[Cyclic] = deque(maxlen=1_000)
    for _ in range(100):
        with collection_postponed():
            for _ in range(1_000):
                in_use.append(Cyclic())
    assert sum(type(each) is Cyclic for each in gc.get_objects()) < 50_000
