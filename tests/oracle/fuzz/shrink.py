"""A minimizer that removes objects, operations and fields of an input as long as its record still differs.

Each round tries many removals in one run of the oracle: first halves, then quarters, down to single parts. Of the
removals that each keep the difference, as many as possible are combined.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from tests.oracle.fuzz.draws import Raw

Path = tuple[str | int, ...]
StillDiffer = Callable[[Sequence[Raw]], list[bool]]
"""Which of these inputs differ in the way that the original did."""

_KEPT = frozenset(
    "apiVersion kind name namespace uid resourceVersion metadata spec status object op schedulerName containers "
    "priority image phase allocatable profiles pluginConfig args driver pool devices requests deviceClassName "
    "key operator effect topologyKey whenUnsatisfiable maxSkew labelSelector weight protocol containerPort "
    "labels resources".split()
)
"""Fields without which an object would be invalid, or that only hold others."""

_LISTS = ("objects", "ops")


def shrunk(record: Raw, still_differ: StillDiffer) -> Raw:
    """Return the smallest input found whose record has the same kind of difference as `record`."""
    found = copy.deepcopy({key: value for key, value in record.items() if key not in ("want", "binding")})
    for places in (_members, _fields):
        while (smaller := _without_most(found, list(places(found)), still_differ)) is not None:
            found = smaller
    return found


def _members(record: Raw) -> Iterator[Path]:
    for name in _LISTS:
        for place in range(len(record.get(name, ()))):
            yield name, place


def _fields(record: Raw) -> Iterator[Path]:
    for name in (*_LISTS, "pod", "config"):
        if record.get(name):
            yield from _below(record[name], (name,))
    if record.get("config") is not None:
        yield ("config",)


def _below(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in _KEPT:
                yield *path, key
            yield from _below(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            if len(path) > 1 and (len(value) > 1 or path[-1] != "containers"):
                yield *path, place
            yield from _below(inner, (*path, place))


def _without_most(record: Raw, paths: Sequence[Path], still_differ: StillDiffer) -> Raw | None:
    """Return the record without some of these paths; None if every path is needed."""
    size = max(1, len(paths) // 2)
    while paths:
        chunks = [paths[start : start + size] for start in range(0, len(paths), size)]
        alone = still_differ([without(record, chunk) for chunk in chunks])
        spared = [chunk for chunk, differs in zip(chunks, alone, strict=True) if differs]
        if spared:
            together = [without(record, list(chain(*spared[:count]))) for count in range(len(spared), 1, -1)]
            results = still_differ(together)
            return next(
                (one for one, differs in zip(together, results, strict=True) if differs), without(record, spared[0])
            )
        if size == 1:
            return None
        size = max(1, size // 2)
    return None


def without(record: Raw, paths: Sequence[Path]) -> Raw:
    """Return a copy without the fields and items at these paths."""
    smaller = copy.deepcopy(record)
    for path in sorted(paths, key=_last_first, reverse=True):
        holder: Any = smaller
        try:
            for step in path[:-1]:
                holder = holder[step]
            if path == ("config",):
                smaller["config"] = None
            else:
                del holder[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # a removed object or list contained it
    return smaller


def _last_first(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Order items of one list by descending number, so that removing one does not renumber the others."""
    return tuple((1, step, "") if isinstance(step, int) else (0, 0, step) for step in path)
