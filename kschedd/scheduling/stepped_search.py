"""The search of an attempt that may be stopped at each plugin: one filter after the other, on all nodes at once.

It comes to what `NodeSearch.run` comes to: the nodes beyond the last one that is needed are looked at, too, and then
left out of the outcome. Nothing is cached or taken from a cache. Vetoed nodes are rejected after the last filter.
"""

import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Status
from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.node_search import Found, NodeSearch
from kschedd.scheduling.nominated_pods import NONE_REJECTED
from kschedd.scheduling.nominations import NominatedByRow
from kschedd.scheduling.stepper import Stepper
from kschedd.scheduling.verdicts import EXPLICIT, PASSED, Verdicts
from kschedd.scheduling.work import Work


def stepped_search(
    search: NodeSearch,
    state: CycleState,
    pod: Pod,
    order: Rows,
    start: int,
    wanted: int,
    nominated: NominatedByRow,
    stepper: Stepper,
) -> Work[Found]:
    """As `NodeSearch.run`."""
    filters = search.filters
    table = filters.cluster.table
    rows = np.roll(order, -start)
    explicit_status: dict[int, Status] = {}
    rejected = search.nominated_pods.rejected(state, pod, rows, nominated, None) if nominated else NONE_REJECTED
    # A row rejected with its nominated pods is not checked without them: no filter is called on it again.
    places = np.delete(np.arange(len(rows)), rejected.places)
    done = yield from filters.run(state, pod, rows[places], explicit_status, stepper)
    failed = np.full(len(rows), PASSED, dtype=np.int16)
    codes = np.zeros(len(rows), dtype=np.int64)
    failed[places], codes[places] = done.columns()
    failed[rejected.places], codes[rejected.places] = rejected.failed, rejected.codes
    explicit_status.update(rejected.explicit_status)
    vetoed = stepper.vetoes(rows[failed == PASSED])
    barred = np.isin(rows, list(vetoed))
    failed[barred], codes[barred] = 0, EXPLICIT
    explicit_status.update(vetoed)
    passed = FilterPass.of_columns(rows, failed, codes)
    passed.cut(wanted)
    failed, codes = passed.columns()
    visited = set(passed.rows.tolist())
    explicit_status = {row: status for row, status in explicit_status.items() if row in visited}
    verdicts = Verdicts(table, filters.profile.filters, state, pod, passed.rows, failed, codes, explicit_status)
    stepper.verdicts = verdicts
    broken = next((status for status in explicit_status.values() if not status.rejected), None)
    return Found(passed.passing, len(passed.rows), verdicts, broken)
