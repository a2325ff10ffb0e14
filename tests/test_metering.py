"""Tests that the meter counts the items of every kind of iteration over a container, and restores the functions."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from tests.cost import cost_again
from tests.metering import metered

QUADRATIC = {
    "searched": "[each for each in items if each not in items[5:5] and 'x' in items]",
    "sliced": "[each for place, each in enumerate(items) if items[:place]]",
    "indexed": "[items.index(each) for each in items]",
    "counted": "{each: items.count(each) for each in items}",
    "compared": "[each for each in items if items == items]",
    "nested": "[one for one in items for other in items if one is other]",
    "copied": "[[*items, each] for each in items]",
    "mapped": "[{**dict.fromkeys(items), each: 1} for each in items]",
    "passed": "[f(*items) for each in items]",
    "joined": "[''.join(items) for each in items]",
    "sorted": "[sorted(items)[0] for each in items]",
    "added": "[items + [each] for each in items]",
    "asked_of_all": "[each for each in items if set(items).issuperset(each)]",
}
LINEAR = {
    "set": "[each for each in items if each not in there]",
    "looked_up": "[places[each] for each in items]",
    "first_found": "[next(each for each in items if each) for _ in range(9)]",
    "joined_once": "''.join(items) + ''.join(items[1:])",
    "popped_from_the_end": "[there.pop() for _ in items]",
}
MODULE = """
def f(*arguments):
    return len(arguments)

WORKS

def maker():
    return lambda items: [each for each in items if each in items]

def loops(items):
    found = 0
    for one in items:
        while found < 10:
            found += 1
        others = list(items)
        while others:
            others.remove(others[0])
            found += 1
    return found
"""


WORK = """
def NAME_of(items):
    there, places = set(items), {each: place for place, each in enumerate(items)}
    return VALUE
"""


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Mapping[str, str]], ModuleType]]:
    """Return a function that makes and imports a module with these functions: `NAME_of` for each name."""
    monkeypatch.syspath_prepend(tmp_path)

    def load(works: Mapping[str, str]) -> ModuleType:
        functions = (WORK.replace("NAME", name).replace("VALUE", value) for name, value in works.items())
        (tmp_path / "metered_sample.py").write_text(MODULE.replace("WORKS", "\n".join(functions)))
        importlib.invalidate_caches()
        return importlib.import_module("metered_sample")

    yield load
    sys.modules.pop("metered_sample", None)


def growth(work: Callable[[list[str]], object]) -> float:
    items = [[f"v{number}" for number in range(size)] for size in (200, 400)]
    small, large = (cost_again(lambda each=each: work(each)) for each in items)
    return large / small


def growths(loaded: Callable[[Mapping[str, str]], ModuleType], works: Mapping[str, str]) -> dict[str, float]:
    sample = loaded(works)
    with metered("metered_sample"):
        return {name: growth(getattr(sample, f"{name}_of")) for name in works}


def test_work_that_is_done_once_an_item_for_all_items_is_counted(
    loaded: Callable[[Mapping[str, str]], ModuleType],
) -> None:
    found = growths(loaded, QUADRATIC)
    assert {name: factor for name, factor in found.items() if factor <= 3} == {}


def test_work_in_proportion_to_the_items_is_counted_so(loaded: Callable[[Mapping[str, str]], ModuleType]) -> None:
    found = growths(loaded, LINEAR)
    assert {name: factor for name, factor in found.items() if not 1 <= factor < 2.3} == {}


def test_the_functions_return_the_same_and_are_the_same_afterwards(
    loaded: Callable[[Mapping[str, str]], ModuleType],
) -> None:
    sample = loaded({"work": "sorted({*items} - {'v1'})"})
    before = sample.work_of.__code__
    plain = sample.work_of(["v1", "v2"]), sample.loops(["v1", "v2"])
    unmetered = growth(sample.loops)
    with metered("metered_sample"):
        assert (sample.work_of(["v1", "v2"]), sample.loops(["v1", "v2"])) == plain
        assert growth(sample.loops) > 3
        made = sample.maker()
    assert sample.work_of.__code__ == before
    assert made.__code__ == sample.maker().__code__
    assert growth(sample.loops) == unmetered
