"""Ownership: the assignment of dependents (pods, ReplicaSets, ControllerRevisions) to the workloads that own them.

A workload adopts a dependent that its selector matches and that has no controller. A workload releases a dependent when
its selector no longer matches. Two indexes make adoption and release fast. Workloads are indexed by a label that their
selector requires, to find possible adopters of a dependent. Dependents without a controller are indexed by their
labels, to find candidates for a workload. All dependents with very many labels share one index entry. Source:
Kubernetes v1.34, controller/controller_ref_manager.go (ClaimObject).

Owns the two indexes. Adopting and releasing are patches that apply only to one version of the dependent. If two
workloads claim the same dependent, one of the patches is therefore rejected, and its workload reconciles again.
"""

from collections.abc import Callable, Collection, Generator, Iterable
from itertools import chain
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.selecting.selectors import IN, LabelSelector, SelectorError, from_map, parse_label_selector
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.derived import Derived
from kschedd.controllers.templates import controller_of, controller_reference, controller_uid
from kschedd.store.errors import ApiError, Conflict
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Patch, Write, patch_of
from kschedd.values import run_steps

Key = tuple[str, str, str]  # kind, namespace, name
_Label = tuple[str, str]
_ANY: Final[_Label] = ("", "")  # for selectors and objects without an indexed label
_MANY: Final[_Label] = ("", "many")  # for objects with more than `_FEW` labels
_FEW: Final = 64
_STEP: Final = 250  # number of dependents processed between two pauses, in about 1 ms


def selector_of(workload: Object) -> LabelSelector | None:
    """Return the workload's pod selector; None if it is empty or invalid."""
    raw = workload.spec.get("selector")
    try:
        selector = from_map(raw) if workload.kind == "ReplicationController" else parse_label_selector(raw)
    except (SelectorError, TypeError, AttributeError):
        return None
    return None if selector.empty or selector.nothing else selector


def required_pair(selector: LabelSelector) -> _Label:
    """Return a label that every object matched by the selector has, or ("", "") if there is none."""
    for requirement in selector.requirements:
        if requirement.operator == IN and len(requirement.values) == 1:
            return requirement.key, requirement.values[0]
    return _ANY


@attrs.frozen(eq=False)
class Claimed:
    """The dependents of a workload, including newly adopted ones, and the writes that adopt and release."""

    dependents: list[Object]
    writes: list[Write]


class Ownership:
    """The ownership indexes of the workloads of `kinds`, which own objects of kind `dependent`."""

    def __init__(self, kinds: Collection[str], dependent: str) -> None:
        self._kinds = frozenset(kinds)
        self._dependent = dependent
        self._workloads: dict[tuple[str, _Label], dict[Key, LabelSelector]] = {}  # by namespace and required label
        self._filed: dict[Key, _Label] = {}
        self._selectors = Derived(selector_of)
        self._orphans: dict[tuple[str, _Label], dict[str, None]] = {}  # names by namespace and by each label

    def observe(self, event: WatchEvent) -> Iterable[Key]:
        """Process an event. Return the workloads to reconcile because of this event."""
        if event.new.kind in self._kinds:
            return self._observe_workload(event)
        return self._observe_dependent(event) if event.new.kind == self._dependent else ()

    def concerns(self, event: WatchEvent) -> bool:
        """Return whether `observe` must process the event.

        The event of a dependent can be skipped if its controller is and was of another kind, or if it has no controller
        and its labels are unchanged.
        """
        old, new = event.old, event.new
        if new.kind != self._dependent:
            return True
        after = controller_of(new)
        before = after if old is None else controller_of(old)
        if before is None or after is None:
            return before is not after or event.type == DELETED or _relabelled(event)
        return after["kind"] in self._kinds or before["kind"] in self._kinds

    def _observe_workload(self, event: WatchEvent) -> Iterable[Key]:
        new = event.new
        key = (new.kind, new.namespace, new.name)
        if event.type == DELETED:
            self._unfile(key)
            self._selectors.forget(new)
        elif event.old is None or event.old.spec.get("selector") != new.spec.get("selector"):
            self._unfile(key)
            selector = self._selectors.of(new)
            if selector is not None:
                label = self._filed[key] = required_pair(selector)
                self._workloads.setdefault((new.namespace, label), {})[key] = selector
        return (key,)

    def _unfile(self, key: Key) -> None:
        label = self._filed.pop(key, None)
        if label is not None:
            place = (key[1], label)
            del self._workloads[place][key]
            if not self._workloads[place]:
                del self._workloads[place]

    def _observe_dependent(self, event: WatchEvent) -> Iterable[Key]:
        old, new = event.old, event.new
        before, after = None if old is None else controller_of(old), controller_of(new)
        keys: dict[Key, None] = {}
        for reference in (before, after):
            if reference is not None and reference["kind"] in self._kinds:
                keys[reference["kind"], new.namespace, reference["name"]] = None
        was_orphan = old is not None and before is None
        is_orphan = event.type != DELETED and after is None
        relabelled = _relabelled(event)
        if old is not None and was_orphan and (not is_orphan or relabelled):
            self._forget_orphan(old)
        if is_orphan and (not was_orphan or relabelled):
            for label in _labels(new):
                self._orphans.setdefault((new.namespace, label), {})[new.name] = None
            keys.update(dict.fromkeys(self.candidates(new)))
        return keys

    def _forget_orphan(self, obj: Object) -> None:
        for label in _labels(obj):
            names = self._orphans.get((obj.namespace, label))
            if names is not None:
                names.pop(obj.name, None)
                if not names:
                    del self._orphans[obj.namespace, label]

    def candidates(self, obj: Object) -> list[Key]:
        """Return the workloads with selectors that match the object."""
        places: Iterable[tuple[str, _Label]]
        if len(obj.labels) > _FEW:
            places = [place for place in self._workloads if _may_select(place, obj)]
        else:
            places = [(obj.namespace, label) for label in _labels(obj)]
        return [
            key
            for place in places
            for key, selector in self._workloads.get(place, {}).items()
            if selector.matches(obj.labels)
        ]

    def claimants(self, write: Write, error: ApiError, view: View) -> list[Key]:
        """Return the workloads to reconcile after a rejected write, because they may claim the changed object."""
        if not isinstance(write, Patch) or not isinstance(error, Conflict):
            return []
        found = view.find(write.kind, write.namespace, write.name)
        return self.candidates(found) if found is not None else []

    def selector(self, workload: Object) -> LabelSelector | None:
        """Return the selector with which the workload adopts and releases dependents, or None."""
        return None if workload.deleting else self._selectors.of(workload)

    def claim(self, workload: Object, view: View, eligible: Callable[[Any], bool] = lambda obj: True) -> Claimed:
        """Return the workload's dependents; objects that are not `eligible` are ignored."""
        return run_steps(self.claiming(workload, view, eligible))

    def claiming(
        self, workload: Object, view: View, eligible: Callable[[Any], bool] = lambda obj: True
    ) -> Generator[None, None, Claimed]:
        """Compute the result of `claim` in steps."""
        selector = self.selector(workload)
        claimed = Claimed([], [])
        for number, obj in enumerate(view.owned_by(workload.uid), 1):
            if not number % _STEP:
                yield
            if obj.kind != self._dependent or controller_uid(obj) != workload.uid or not eligible(obj):
                continue
            if selector is None or selector.matches(obj.labels):
                claimed.dependents.append(obj)
                continue
            references = obj.metadata.get("ownerReferences") or ()
            left = [reference for reference in references if reference.get("uid") != workload.uid]
            claimed.writes.append(patch_of(obj, {"metadata": {"ownerReferences": left or None}}, exactly=True))
        if selector is not None:
            for obj in self._adoptable(workload, selector, view):
                if not eligible(obj):
                    continue
                owners = [*(obj.metadata.get("ownerReferences") or ()), controller_reference(workload)]
                claimed.dependents.append(obj)
                claimed.writes.append(patch_of(obj, {"metadata": {"ownerReferences": owners}}, exactly=True))
        return claimed

    def may_adopt(self, workload: Object, view: View, eligible: Callable[[Any], bool]) -> bool:
        """Return whether `claim` would adopt an object."""
        selector = self.selector(workload)
        return selector is not None and any(map(eligible, self._adoptable(workload, selector, view)))

    def _adoptable(self, workload: Object, selector: LabelSelector, view: View) -> Iterable[Object]:
        found = (self._orphans.get((workload.namespace, label), ()) for label in {required_pair(selector), _MANY})
        for name in sorted(set(chain.from_iterable(found))):
            obj = view.find(self._dependent, workload.namespace, name)
            # the indexes may be older than the stored objects
            if obj is not None and not obj.deleting and not controller_uid(obj) and selector.matches(obj.labels):
                yield obj


def _relabelled(event: WatchEvent) -> bool:
    """Return whether the object is new or its labels have changed."""
    old, new = event.old, event.new
    return old is None or (old.labels is not new.labels and old.labels != new.labels)


def _labels(obj: Object) -> list[_Label]:
    """Return the labels under which the object is indexed."""
    return [*obj.labels.items(), _ANY] if len(obj.labels) <= _FEW else [_MANY, _ANY]


def _may_select(place: tuple[str, _Label], obj: Object) -> bool:
    """Return whether the object has the label of this index entry."""
    namespace, (key, value) = place
    return namespace == obj.namespace and ((key, value) == _ANY or obj.labels.get(key) == value)
