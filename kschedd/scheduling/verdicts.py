"""Verdicts: the filters' results for every visited node, stored as codes; statuses are formatted on demand.

Shapes: `rows`, `failed` and `codes` are parallel, in visiting order. `failed` is the index, in the profile's order of
filters, of the plugin that rejected the row, or PASSED. `codes` contains the rejecting plugin's code, or EXPLICIT if
the plugin returned a Status, which is stored in `explicit_status`.

Source: Kubernetes v1.34, scheduler/framework/types.go (Diagnosis, NodeToStatus, FitError).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt
from numpy import count_nonzero  # several times faster than `all` and `any` of a boolean array

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, unresolvable
from kschedd.scheduling.profiles.profile import EnabledFilter

Places = npt.NDArray[np.int16]
PASSED = 32767
# for comparing columns, because an int would be converted each time
PASSED_ALL: Final = np.array(PASSED, dtype=np.int16)
EXPLICIT = -1

_FEW_KEYS = 1 << 14  # up to this number of keys, counting every key is faster than sorting

ABSENT = unresolvable()  # status of a node for which no filter was called


@attrs.define(eq=False)
class Verdicts:
    """The verdicts of one search. `default_status` is the status of the nodes that are not among `rows`.

    If `failed` and `codes` are None, `compute` computes them on demand.
    """

    table: NodeTable
    filters: tuple[EnabledFilter, ...]
    state: CycleState
    pod: Pod
    rows: Rows
    _failed: Places | None
    _codes: Ints | None
    explicit_status: dict[int, Status] = attrs.field(factory=dict)  # row -> status
    default_status: Status = ABSENT
    elsewhere: tuple[Status, ...] = ()  # an extender's statuses for names without a node
    _compute: Callable[[], tuple[Places, Ints]] | None = None
    # Computed on demand, also for derived verdicts.
    _words: dict[tuple[int, int], Status] = attrs.field(factory=dict, init=False)
    _kinds: list[tuple[Status, int]] | None = attrs.field(default=None, init=False)
    _of_codes: list[tuple[Status, int, int]] | None = attrs.field(default=None, init=False)
    _rows_with: dict[Code, Rows] = attrs.field(factory=dict, init=False)
    _reasons: Counter[str] | None = attrs.field(default=None, init=False)

    @property
    def failed(self) -> Places:
        return self._columns()[0]

    @property
    def codes(self) -> Ints:
        return self._columns()[1]

    def _columns(self) -> tuple[Places, Ints]:
        if self._failed is None or self._codes is None:
            assert self._compute is not None, "verdicts are given, or can be worked out"
            self._failed, self._codes = self._compute()
        return self._failed, self._codes

    def status(self, place: int) -> Status | None:
        """Return the status at an index of `rows`, or None if the node passed."""
        failed = int(self.failed[place])
        if failed == PASSED:
            return None
        code = int(self.codes[place])
        if code == EXPLICIT:
            return self.explicit_status[int(self.rows[place])]
        return self._reason(failed, code)

    def _reason(self, failed: int, code: int) -> Status:
        words = self._words.get((failed, code))
        if words is None:
            plugin = self.filters[failed].vector
            words = plugin.code_status(self.state, self.pod, code).by(self.filters[failed].name)
            self._words[failed, code] = words
        return words

    def by_node(self) -> Iterator[tuple[str, Status | None]]:
        """Yield the name and the status (None: passed) of every visited node."""
        for place, row in enumerate(self.rows.tolist()):
            yield self.table.names[row], self.status(place)

    def distinct_statuses(self) -> list[tuple[Status, int]]:
        """Return each distinct rejecting status and the number of its nodes."""
        if self._kinds is None:
            self._kinds = [(status, count) for status, count, _ in self._coded()]
            if self.explicit_status:
                self._kinds += Counter(self.explicit_status.values()).items()
            if self.elsewhere:
                self._kinds += Counter(self.elsewhere).items()
        return self._kinds

    def _coded(self) -> list[tuple[Status, int, int]]:
        """Return status, number of nodes, and key of each distinct rejection with a code."""
        if self._of_codes is None:
            width = len(self.filters)
            self._of_codes = [
                (self._reason(key % width, key // width), count, key) for key, count in self._key_counts()
            ]
        return self._of_codes

    def _key_counts(self) -> list[tuple[int, int]]:
        """Return each key of a rejection with a code, in order, with its number of rows."""
        failed, codes = self.failed, self.codes
        if len(failed) and failed[0] != PASSED and codes[0] != EXPLICIT:
            if count_nonzero(failed == failed[0]) == count_nonzero(codes == codes[0]) == len(failed):
                return [(int(codes[0]) * len(self.filters) + int(failed[0]), len(failed))]  # the most frequent case
        keys = self._row_keys()
        few = len(keys) and 0 <= keys.min() and keys.max() < _FEW_KEYS
        if not few:  # the keys of passed nodes are large, and those of nodes with explicit statuses are negative
            keys = keys[(failed != PASSED) & (codes != EXPLICIT)]
            few = len(keys) and 0 <= keys.min() and keys.max() < _FEW_KEYS
        if few:
            counts = np.bincount(keys)
            distinct = counts.nonzero()[0]
            counts = counts[distinct]
        else:
            distinct, counts = np.unique(keys, return_counts=True)
        return list(zip(distinct.tolist(), counts.tolist(), strict=True))

    def _row_keys(self) -> Ints:
        """Return one number for each row, which encodes the plugin and its code."""
        return self.codes * len(self.filters) + self.failed

    def rows_with(self, code: Code) -> Rows:
        """Return the rows rejected with this status code, in visiting order; unvisited nodes come last."""
        found = self._rows_with.get(code)
        if found is None:
            found = self._rows_with[code] = self._find_rows(code)
        return found

    def _find_rows(self, code: Code) -> Rows:
        rejected = [key for status, _, key in self._coded() if status.code == code]
        explicit_status = [row for row, status in self.explicit_status.items() if status.code == code]
        if sum(count for _, count, key in self._coded() if key in rejected) == len(self.rows):
            found = self.rows
        elif rejected or explicit_status:
            chosen = (
                np.isin(self.rows, explicit_status) if explicit_status else np.zeros(len(self.rows), dtype=np.bool_)
            )
            if rejected:  # ascending keys allow a search that is several times faster than `np.isin`
                coded, keys, those = self.failed != PASSED, self._row_keys(), np.array(rejected)
                coded &= self.codes != EXPLICIT
                chosen |= coded & (those.take(those.searchsorted(keys), mode="clip") == keys)
            found = self.rows[chosen]
        else:
            found = self.rows[:0]
        if self.default_status.code != code:
            return found
        order = self.table.order
        return np.concatenate((found, order[~np.isin(order, self.rows)]))

    def code_on(self, row: int) -> Code:
        """Return the status code of one row."""
        place = np.flatnonzero(self.rows == row)
        if not len(place):
            return self.default_status.code
        status = self.status(int(place[0]))
        return Code.SUCCESS if status is None else status.code

    def reasons(self) -> Counter[str]:
        """Return the number of nodes for each reason, as a read-only mapping."""
        if self._reasons is None:
            self._reasons = Counter()
            for status, count in self.distinct_statuses():
                for reason in status.reasons:
                    self._reasons[reason] += count
        return self._reasons

    def joined(self, others: "Verdicts") -> "Verdicts":
        """Return these verdicts together with the verdicts on other rows of the same attempt."""
        return attrs.evolve(
            self,
            rows=np.concatenate((self.rows, others.rows)),
            failed=np.concatenate((self.failed, others.failed)),
            codes=np.concatenate((self.codes, others.codes)),
            explicit_status={**self.explicit_status, **others.explicit_status},
        )

    def overruled(self, statuses: Mapping[int, Status], elsewhere: Iterable[Status]) -> "Verdicts":
        """Return the verdicts with further statuses for some rows, and for node names without a row."""
        known = set(self.rows.tolist())
        more = np.array([row for row in statuses if row not in known], dtype=np.int64)
        rows = np.concatenate((self.rows, more))
        failed = np.concatenate((self.failed, np.full(len(more), PASSED, dtype=np.int16)))
        codes = np.concatenate((self.codes, np.zeros(len(more), dtype=np.int64)))
        is_explicit = np.isin(rows, list(statuses))
        failed[is_explicit], codes[is_explicit] = 0, EXPLICIT
        return attrs.evolve(
            self,
            rows=rows,
            failed=failed,
            codes=codes,
            explicit_status={**self.explicit_status, **statuses},
            elsewhere=(*self.elsewhere, *elsewhere),
        )

    def before_error(self) -> "Verdicts":
        """Return the verdicts up to the first error of a filter, which ends the search."""
        rows = self.rows.tolist()
        end = next(
            (n for n, row in enumerate(rows) if row in self.explicit_status and not self.explicit_status[row].rejected),
            len(rows),
        )
        kept = {row: self.explicit_status[row] for row in rows[:end] if row in self.explicit_status}
        return attrs.evolve(
            self, rows=self.rows[:end], failed=self.failed[:end], codes=self.codes[:end], explicit_status=kept
        )

    def __len__(self) -> int:
        """Return the number of rejected nodes."""
        return sum(count for _, count in self.distinct_statuses())


@attrs.define(eq=False)
class Diagnosis:
    """The reasons why a pod got no node, or the plugins that rejected some nodes although the pod got one."""

    node_count: int
    verdicts: Verdicts | None = None
    pre_filter: Status | None = None  # PreFilter's rejection of the pod, after which no filter ran
    unschedulable_plugins: set[str] = attrs.field(factory=set)
    pending_plugins: set[str] = attrs.field(factory=set)
    post_filter_message: str = ""

    def add_plugin(self, status: Status) -> None:
        if status.plugin and status.rejected:
            wanted = self.pending_plugins if status.code == Code.PENDING else self.unschedulable_plugins
            wanted.add(status.plugin)

    def add_verdicts(self, verdicts: Verdicts | None = None) -> None:
        """Add the plugins that rejected nodes in `verdicts` (None: in the diagnosis' own verdicts)."""
        verdicts = self.verdicts if verdicts is None else verdicts
        if verdicts is not None:
            for status, _ in verdicts.distinct_statuses():
                self.add_plugin(status)

    @property
    def message(self) -> str:
        """The fit error's text for the PodScheduled condition."""
        if self.pre_filter is not None:
            is_explicit = self.pre_filter.message
            text = f"{_none_of(self.node_count)} {is_explicit}." if is_explicit else _none_of(self.node_count)
        elif self.verdicts is not None:
            reasons = self.verdicts.reasons()
            others = self.node_count - len(self.verdicts)
            if others and self.verdicts.default_status.reasons:
                reasons = reasons + Counter(dict.fromkeys(self.verdicts.default_status.reasons, others))
            text = fit_error(self.node_count, reasons)
        else:
            text = _none_of(self.node_count)
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text


def _none_of(node_count: int) -> str:
    return f"0/{node_count} nodes are available:"


def fit_error(node_count: int, reasons: Mapping[str, int]) -> str:
    """Return kube-scheduler's "0/N nodes are available" message: each reason with its count, in upstream's order."""
    if not reasons:
        return _none_of(node_count)
    return f"{_none_of(node_count)} {', '.join(sorted(f'{count} {reason}' for reason, count in reasons.items()))}."
