"""What the filters said of every node they were asked about, kept as codes until somebody wants words.

Shapes: `rows`, `failed` and `codes` are parallel, in visiting order. `failed` is the place of the plugin that rejected the
row in the profile's order of filters, PASSED where none did; `codes` is that plugin's own number, SPOKEN where it gave a
Status, which is then in `spoken`.
Source: Kubernetes v1.34, scheduler/framework/types.go (Diagnosis, NodeToStatus, FitError).
"""

from collections import Counter
from collections.abc import Iterator

import attrs
import numpy as np
import numpy.typing as npt

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, unresolvable
from kschedd.scheduling.profile import FilterPlugin

Places = npt.NDArray[np.int16]
PASSED = 32767
SPOKEN = -1

ABSENT = unresolvable()  # what a node that nobody asked about counts as


@attrs.define(eq=False)
class Verdicts:
    """`absent` is the status of the nodes that are not among `rows`."""

    table: NodeTable
    filters: tuple[FilterPlugin, ...]
    state: CycleState
    pod: Pod
    rows: Rows
    failed: Places
    codes: Ints
    spoken: dict[int, Status] = attrs.field(factory=dict)  # row -> status
    absent: Status = ABSENT
    _words: dict[tuple[int, int], Status] = attrs.field(factory=dict)

    def status(self, place: int) -> Status | None:
        """The status at a place of `rows`; None if the node passed."""
        failed = int(self.failed[place])
        if failed == PASSED:
            return None
        code = int(self.codes[place])
        if code == SPOKEN:
            return self.spoken[int(self.rows[place])]
        return self._say(failed, code)

    def _say(self, failed: int, code: int) -> Status:
        words = self._words.get((failed, code))
        if words is None:
            plugin = self.filters[failed].plugin
            words = plugin.code_status(self.state, self.pod, code).by(self.filters[failed].name)
            self._words[failed, code] = words
        return words

    def by_node(self) -> Iterator[tuple[str, Status | None]]:
        """(node name, status or None) of every node asked about."""
        for place, row in enumerate(self.rows.tolist()):
            yield self.table.names[row], self.status(place)

    def kinds(self) -> list[tuple[Status, int]]:
        """Each distinct rejection and how many nodes got it."""
        found: list[tuple[Status, int]] = []
        for failed in np.unique(self.failed).tolist():
            if failed == PASSED:
                continue
            codes, counts = np.unique(self.codes[self.failed == failed], return_counts=True)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                if code != SPOKEN:
                    found.append((self._say(failed, code), count))
        counted = Counter(self.spoken.values())
        found.extend(counted.items())
        return found

    def rows_with(self, code: Code) -> Rows:
        """The rows rejected with this status code, in visiting order."""
        chosen = np.zeros(len(self.rows), dtype=np.bool_)
        for failed in np.unique(self.failed).tolist():
            if failed == PASSED:
                continue
            of_plugin = self.failed == failed
            for number in np.unique(self.codes[of_plugin]).tolist():
                if number != SPOKEN and self._say(failed, number).code == code:
                    chosen |= of_plugin & (self.codes == number)
        for place, row in enumerate(self.rows.tolist()) if self.spoken else ():
            if row in self.spoken and self.spoken[row].code == code:
                chosen[place] = True
        return self.rows[chosen]

    def __len__(self) -> int:
        """How many nodes were rejected."""
        return int((self.failed != PASSED).sum())


@attrs.define(eq=False)
class Diagnosis:
    """Why a pod did not get a node, or which plugins rejected some nodes when it did."""

    node_count: int
    verdicts: Verdicts | None = None
    pre_filter: Status | None = None  # PreFilter rejected the pod: no node was asked about
    unschedulable_plugins: set[str] = attrs.field(factory=set)
    pending_plugins: set[str] = attrs.field(factory=set)
    post_filter_message: str = ""

    def add_plugin(self, status: Status) -> None:
        if status.plugin and status.rejected:
            wanted = self.pending_plugins if status.code == Code.PENDING else self.unschedulable_plugins
            wanted.add(status.plugin)

    def add_verdicts(self) -> None:
        """Name the plugins that rejected nodes."""
        if self.verdicts is not None:
            for status, _ in self.verdicts.kinds():
                self.add_plugin(status)

    @property
    def message(self) -> str:
        """The text of the fit error, as it stands in the PodScheduled condition."""
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter is not None:
            if self.pre_filter.message:
                text += f" {self.pre_filter.message}."
        elif self.verdicts is not None:
            reasons: Counter[str] = Counter()
            for status, count in self.verdicts.kinds():
                for reason in status.reasons:
                    reasons[reason] += count
            rejected = len(self.verdicts)
            if rejected < self.node_count:
                for reason in self.verdicts.absent.reasons:
                    reasons[reason] += self.node_count - rejected
            if reasons:
                text += f" {', '.join(sorted(f'{count} {reason}' for reason, count in reasons.items()))}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text
