"""The tally of a StatefulSet: its pods by ordinal, and by the actions that they require.

If the pods have claims, an ordinal must be checked again after a change of its pod or of one of its claims.
"""

from collections.abc import Iterable, Sequence, Set
from typing import Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.controllers.workloads.pod_state import available_at, ready
from kschedd.controllers.workloads.revisions import REVISION_HASH
from kschedd.controllers.workloads.stateful_pods import claim_prefix, claim_templates, identity_labels, ordinal_in
from kschedd.controllers.workloads.tallies import PodsByState, Tallies, Terms
from kschedd.store.objects.log import WatchEvent
from kschedd.values import fast_frozen

CLAIM: Final = "PersistentVolumeClaim"


@attrs.frozen
class StatefulTerms(Terms):
    namespace: str
    name: str
    min_ready_s: int
    claims: frozenset[str]  # names of the pods' claims, without the ordinal
    claims_as: Raw | None  # fields of the spec that determine the owners of claims; None without claims

    @classmethod
    def of(cls, workload: Object, selector: LabelSelector | None) -> "StatefulTerms":
        templates = claim_templates(workload)
        return cls(
            selector,
            workload.namespace,
            workload.name,
            int(workload.spec.get("minReadySeconds") or 0),
            frozenset(claim_prefix(workload, template) for template in templates),
            workload.spec if templates else None,
        )


@fast_frozen
class _State:
    revision: str
    deleting: bool
    ready: bool  # running and ready
    available: bool  # ready for long enough
    intact: bool  # True if the pod has not ended and its labels are correct

    @property
    def healthy(self) -> bool:
        return self.ready and not self.deleting


class StatefulTally(PodsByState[_State]):
    def __init__(self, terms: StatefulTerms) -> None:
        super().__init__()
        self.terms = terms
        self._by_ordinal: dict[int, dict[str, None]] = {}  # uids by ordinal; web-1 and web-01 have the same ordinal
        self._ordinals: dict[str, int] = {}  # by uid
        self._wanted = range(0)  # ordinals that the StatefulSet required at the last query
        self._missing: set[int] = set()  # ordinals in `_wanted` without a pod
        self._outside: set[int] = set()  # ordinals of pods outside `_wanted`
        self.unsure: set[int] = set()  # ordinals of pods whose claims may be missing or have wrong owners

    def counts(self, dependent: Pod) -> bool:
        return ordinal_in(self.terms.name, dependent.name) >= 0

    def state_of(self, item: Pod, now: float) -> tuple[_State, float | None]:
        at = available_at(item, self.terms.min_ready_s)
        runs = item.phase == "Running" and ready(item)
        labels = item.labels
        named = identity_labels(item.name, self._ordinals[item.uid]).items() <= labels.items()
        revision = labels.get(REVISION_HASH) or ""
        available = runs and at is not None and at <= now
        state = _State(revision, bool(item.deletion_timestamp), runs, available, named and not item.finished)
        return state, at if at is not None and at > now else None

    def put(self, dependent: Pod, now: float) -> None:
        ordinal = self._ordinals[dependent.uid] = ordinal_in(self.terms.name, dependent.name)
        self._by_ordinal.setdefault(ordinal, {})[dependent.uid] = None
        if ordinal in self._wanted:
            self._missing.discard(ordinal)
        else:
            self._outside.add(ordinal)
        if self.terms.claims:
            self.unsure.add(ordinal)
        super().put(dependent, now)

    def drop(self, dependent: Pod, now: float) -> None:
        ordinal = self._ordinals.pop(dependent.uid, None)
        if ordinal is None:
            return
        super().drop(dependent, now)
        same = self._by_ordinal[ordinal]
        del same[dependent.uid]
        if not same:
            del self._by_ordinal[ordinal]
            self.unsure.discard(ordinal)
            if ordinal in self._wanted:
                self._missing.add(ordinal)
            self._outside.discard(ordinal)

    def claim_changed(self, namespace: str, name: str) -> None:
        prefix, _, number = name.rpartition("-")
        if prefix in self.terms.claims and namespace == self.terms.namespace and number.isdigit():
            self.unsure.update({int(number)} & self._by_ordinal.keys())

    def at(self, ordinal: int) -> Pod | None:
        """Return the pod with this ordinal; the later pod if there are two."""
        uids = self._by_ordinal.get(ordinal)
        return None if uids is None else self.items[next(reversed(uids))]

    def is_available(self, pod: Pod) -> bool:
        return self.of(pod.uid).available

    def outside(self, ordinals: range) -> list[Pod]:
        """Return the pods with unwanted ordinals, highest first."""
        self._want(ordinals)
        return [self.items[uid] for each in sorted(self._outside, reverse=True) for uid in self._by_ordinal[each]]

    def missing(self, ordinals: range) -> Set[int]:
        """Return the ordinals that have no pod."""
        self._want(ordinals)
        return self._missing

    def _want(self, ordinals: range) -> None:
        if ordinals != self._wanted:
            self._wanted = ordinals
            self._missing = set(ordinals) - self._by_ordinal.keys()
            self._outside = {each for each in self._by_ordinal if each not in ordinals}

    def unsettled(self) -> set[int]:
        """Return the ordinals of pods that have ended, have wrong labels, or may have wrong claims."""
        return self.unsure | self._of(self.names(lambda pod: not pod.intact))

    def unavailable(self) -> set[int]:
        """Return the ordinals of pods that are not available, or are being deleted."""
        return self._of(self.names(lambda pod: pod.deleting or not pod.available))

    def unhealthy(self) -> set[int]:
        """Return the ordinals of pods that are not ready, or are being deleted."""
        return self._of(self.names(lambda pod: not pod.healthy))

    def outdated(self, update_revision: str) -> set[int]:
        """Return the ordinals of pods that have another revision and are not being deleted."""
        return self._of(self.names(lambda pod: not pod.deleting and pod.revision != update_revision))

    def _of(self, uids: Sequence[str]) -> set[int]:
        found = set(map(self._ordinals.__getitem__, uids))
        if len(self._ordinals) > len(self._by_ordinal):  # if two pods have the same ordinal, the later pod is used
            later = {ordinal: next(reversed(same)) for ordinal, same in self._by_ordinal.items()}
            found = {ordinal for ordinal in found if later[ordinal] in uids}
        return found

    def revisions(self) -> Iterable[str]:
        """Return the revisions of the pods."""
        return {state.revision for state in self.groups}


class StatefulTallies(Tallies[StatefulTally]):
    def __init__(self) -> None:
        super().__init__(("StatefulSet",))

    def observe(self, event: WatchEvent, now: float) -> None:
        if event.new.kind == CLAIM:
            for tally in self.by_uid.values():
                tally.claim_changed(event.new.namespace, event.new.name)
        super().observe(event, now)
