"""PodDisruptionBudgets in preemption: finds evictions that would exceed the disruptions that a budget allows.

Budgets are parsed once for each version of their object, and are found by namespace.

Source: Kubernetes v1.34, plugins/defaultpreemption/default_preemption.go (filterPodsWithPDBViolation); v1.37,
scheduler/framework/preemption/util.go (FilterVictimsWithPDBViolation). A budget covers no pod if its selector is
unreadable, or selects everything or nothing, as in kube-scheduler. No error is raised.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import NOTHING, LabelSelector, SelectorError, parse_label_selector
from kschedd.cache.scheduler_cache import SchedulerCache

KIND: Final = "PodDisruptionBudget"


@attrs.frozen(eq=False)
class Budget:
    source: Object
    selector: LabelSelector
    allowed: int  # number of disruptions
    disrupted: Collection[str]  # names of pods whose eviction is already counted

    @property
    def key(self) -> str:
        return self.source.key

    @property
    def namespace(self) -> str:
        return self.source.namespace

    @classmethod
    def of(cls, source: Object) -> "Budget":
        try:
            selector = parse_label_selector(source.spec.get("selector"))
        except SelectorError:
            selector = NOTHING
        if selector.empty:
            selector = NOTHING
        status = source.status
        return cls(source, selector, status.get("disruptionsAllowed") or 0, status.get("disruptedPods") or ())

    def covers(self, pod: Pod) -> bool:
        """Return whether the budget selects the pod; both must be in the same namespace."""
        return bool(pod.labels) and self.selector.matches(pod.labels)


@attrs.frozen(eq=False)
class Split:
    """The pods whose eviction would violate a budget, the other pods, and the budgets that cover any of these pods.

    The lists of pods keep the given order.
    """

    violating: list[Pod]
    others: list[Pod]
    covering: frozenset[str]  # keys


_NONE: Final[frozenset[str]] = frozenset()


@attrs.define(eq=False)
class Budgets:
    """The budgets of a cluster.

    `refresh` replaces `all` if budgets changed, and never modifies it.
    """

    cluster: SchedulerCache
    first_violated_only: bool = False  # true if a violated budget ends the charging (rule of the Kubernetes version)
    all: Mapping[str, Budget] = attrs.field(factory=dict, init=False)
    _by_namespace: dict[str, list[Budget]] = attrs.field(factory=dict, init=False)
    _stamp: int = attrs.field(default=0, init=False)

    def refresh(self) -> None:
        """Read the budgets again if any has changed. Call this method before each use."""
        versions = self.cluster.versions
        if self._stamp >= versions.latest(KIND):
            return
        self._stamp = versions.now
        known = self.all
        found: dict[str, Budget] = {}
        for key, source in self.cluster.of_kind(KIND).items():
            before = known.get(key)
            found[key] = before if before is not None and before.source is source else Budget.of(source)
        self.all = found
        self._by_namespace = {}
        for budget in found.values():
            self._by_namespace.setdefault(budget.namespace, []).append(budget)

    def charges(self) -> "Charges":
        """Return an account of evictions against the budgets, with no evictions charged yet."""
        return Charges(self._by_namespace, self.first_violated_only)

    def split(self, pods: Iterable[Pod]) -> Split:
        """Count the pods, in the given order, against the budgets.

        A pod that exceeds an allowance violates the budget.
        """
        if not self._by_namespace:
            return Split([], list(pods), _NONE)
        violating: list[Pod] = []
        others: list[Pod] = []
        charges = self.charges()
        for pod in pods:
            (violating if charges.breaks(pod) else others).append(pod)
        return Split(violating, others, frozenset(charges.covering))


@attrs.define(eq=False)
class Charges:
    """The evictions charged to budgets so far, one after the other."""

    _by_namespace: Mapping[str, Sequence[Budget]]
    _first_violated_only: bool
    covering: set[str] = attrs.field(factory=set, init=False)  # keys of the budgets that cover any of the pods
    _left: dict[str, int] = attrs.field(factory=dict, init=False)

    def breaks(self, pod: Pod) -> bool:
        """Charge the pod's eviction to its budgets, and return whether it violates a budget."""
        broken = False
        for budget in self._by_namespace.get(pod.namespace, ()):
            if not budget.covers(pod):
                continue
            self.covering.add(budget.key)
            if pod.name in budget.disrupted:
                continue
            remaining = self._left[budget.key] = self._left.get(budget.key, budget.allowed) - 1
            broken = broken or remaining < 0
            if broken and self._first_violated_only:
                break
        return broken
