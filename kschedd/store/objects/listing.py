"""Sorted lists of objects, built in slices from the objects that exist at one point in time.

`Store.present` returns a copy of the references. Objects never change, so they can be sorted and selected later, while
the store serves other requests. Lists of up to `_RUN` names are sorted in one step; longer lists are merged from sorted
runs of that length.
"""

import heapq
from collections.abc import Generator, Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final

from kschedd.api.objects import Object
from kschedd.api.selecting.selector_text import FieldSelector
from kschedd.api.selecting.selectors import LabelSelector

_NAME: Final = attrgetter("name")
_RUN: Final = 5_000
_LOOKED_AT: Final = 250  # number of objects that are matched or merged before other tasks run
_TESTS: Final = 8_000  # maximum number of label and field tests per slice


def by_namespace(spaces: Iterable[Sequence[Object]]) -> list[Sequence[Object]]:
    """Return the objects by namespace, sorted by the namespaces' names."""
    found: dict[str, list[Object]] = {}
    for space in spaces:
        for obj in space:
            found.setdefault(obj.namespace, []).append(obj)
    return [found[name] for name in sorted(found)]


def in_order(
    spaces: Iterable[Sequence[Object]],
    label_selector: LabelSelector | None = None,
    field_selector: FieldSelector | None = None,
) -> Generator[None, None, list[Object]]:
    """Return the matching objects, sorted by name within each namespace; the namespaces keep their order.

    Yields between slices.
    """
    found: list[Object] = []
    for space in spaces:
        matching = yield from _matching(space, label_selector, field_selector)
        found += yield from _by_name(matching)
    return found


def _matching(
    objects: Sequence[Object], label_selector: LabelSelector | None, field_selector: FieldSelector | None
) -> Generator[None, None, Sequence[Object]]:
    labels = None if label_selector is None or label_selector.empty else label_selector
    fields = None if field_selector is None or not field_selector.requirements else field_selector
    if labels is None and fields is None:
        return objects
    found: list[Object] = []
    tests = (len(labels.requirements) if labels is not None else 0) + (fields.paths if fields is not None else 0)
    size = max(1, min(_LOOKED_AT, _TESTS // tests))
    for start in range(0, len(objects), size):
        found += (
            obj
            for obj in objects[start : start + size]
            if (labels is None or labels.matches(obj.labels)) and (fields is None or fields.matches(obj.raw))
        )
        yield
    return found


def _by_name(objects: Sequence[Object]) -> Generator[None, None, list[Object]]:
    runs: list[list[Object]] = []
    for start in range(0, len(objects), _RUN):
        run: list[Object] = []
        for each in range(start, min(start + _RUN, len(objects)), _LOOKED_AT):
            run += objects[each : each + _LOOKED_AT]
            yield
        run.sort(key=_NAME)
        runs.append(run)
        yield
    if len(runs) <= 1:
        return runs[0] if runs else []
    found: list[Object] = []
    merged = heapq.merge(*runs, key=_NAME)
    while part := list(islice(merged, 4 * _LOOKED_AT)):
        found += part
        yield
    return found
