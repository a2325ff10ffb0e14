"""Faults that no test needs to detect, with the reason. The command prints them apart from the undetected faults.

The keys are the module's path in kschedd/, the line without its comment, and the fault. A test checks that the module
still has each fault.
"""

from typing import Final

from tests.mutation.mutants import Mutant

_SPEED: Final = "This affects only the speed."
_MEMORY: Final = "This affects only the memory."
_NODE: Final = "A changed Node object invalidates its row for all plugins."
_BOUND: Final = "The bound may be one larger."
_LABEL: Final = "The numbers only distinguish cases."
_UNUSED: Final = "Every caller passes the value, or sets it before it is read."

ARGUED: Final[dict[str, dict[tuple[str, str], str]]] = {
    "scheduling/attempts": {
        ("self.seen = 0", "'0' becomes '1'"): _UNUSED,
        (
            "if not isinstance(result, ScheduleResult) or not self._machine.cluster.is_assumed(entry.pod):",
            "'not isinstance(result, ScheduleResult) or not self._machine.cluster.is_assumed(entry.pod)' becomes "
            "'(not self._machine.cluster.is_assumed(entry.pod))'",
        ): "The pod of a failed attempt is not assumed.",
    },
    "scheduling/machine": {
        (
            "scheduler = self.schedulers[entries[0].pod.scheduler_name]",
            "'0' becomes '1'",
        ): "All pods of a run have the same profile.",
    },
    "scheduling/popped": {
        ("if most < 2:", "'most < 2' becomes '(most <= 2)'"): _SPEED,
    },
    "queue/keyed_heap": {("self._next = 0", "'0' becomes '1'"): "The numbers only order items."},
    "queue/in_flight": {
        ("_BATCH = 256", "'256' becomes '257'"): _SPEED,
        ("_first: int = attrs.field(default=0, init=False)", "'0' becomes '1'"): "The numbers are only compared.",
    },
    "queue/groups": {("break", "'break' becomes 'pass'"): "A second event moves a group in activeQ to activeQ."},
    "queue/snapshot": {("self._held = states", "'self._held = states' becomes 'pass'"): "The caller holds the states."},
    "queue/entry": {
        ("group_priority: int = 0", "'0' becomes '1'"): _UNUSED,
        ("popped_early: int = 0", "'0' becomes '1'"): _UNUSED,
        ("stayed: int = attrs.field(default=0, eq=False)", "'0' becomes '1'"): _UNUSED,
    },
    "queue/evictions": {
        (
            "del self._preemptors[victim]",
            "'del self._preemptors[victim]' becomes 'pass'",
        ): "Without preemptors, only memory is freed earlier.",
    },
    "queue/hints": {
        ("began_s = 0.0 if times is None else times.start()", "'0.0' becomes '1.0'"): _UNUSED,
        ("self._of_interest[event] = known", "'self._of_interest[event] = known' becomes 'pass'"): _SPEED,
        (
            "self._registered_for[kind] = known",
            "'self._registered_for[kind] = known' becomes 'pass'",
        ): _SPEED,
    },
    "scheduling/attempt/one_node": {
        (
            "found = yield from self.search.run(known, state, pod, at, 0, 1, counted)",
            "'0' becomes '1'",
        ): "The search wraps around at the end of its only node.",
        (
            "found = yield from self.search.run(known, state, pod, at, 0, 1, counted)",
            "'1' becomes '2'",
        ): "The search ends with its only node.",
    },
    "scheduling/attempt/prepared": {
        (
            "if len(self._by_class) >= _MOST:",
            "'len(self._by_class) >= _MOST' becomes '(len(self._by_class) > _MOST)'",
        ): _BOUND,
        ("_MOST: Final = 4096", "'4096' becomes '4097'"): _BOUND,
        ("self._by_class.clear()", "'self._by_class.clear()' becomes 'pass'"): _MEMORY,
        (
            "state.skip_filter.copy() if self.pre_filters else state.skip_filter,",
            "'state.skip_filter.copy() if self.pre_filters else state.skip_filter' becomes "
            "'(state.skip_filter.copy())'",
        ): _SPEED,
        (
            "state.skip_score.copy() if self.pre_scores else state.skip_score,",
            "'state.skip_score.copy() if self.pre_scores else state.skip_score' becomes '(state.skip_score.copy())'",
        ): _SPEED,
        (
            "constant, scores = (0, []) if named else self._ranking.not_cached(state, pod)",
            "'0' becomes '1'",
        ): "The only node of a named attempt gets no score.",
    },
    "scheduling/filtering/evaluation": {
        ("found.by_state_at = parts_at", "'found.by_state_at = parts_at' becomes 'pass'"): _SPEED,
        (
            "if len(known) >= _MOST_STATES:",
            "'len(known) >= _MOST_STATES' becomes '(len(known) > _MOST_STATES)'",
        ): _BOUND,
        (
            "if versions.nodes.at > stamp:",
            "'versions.nodes.at > stamp' becomes '(versions.nodes.at >= stamp)'",
        ): _SPEED,
        (
            "earlier = failed < by_pods",
            "'failed < by_pods' becomes '(failed <= by_pods)'",
        ): "The places are equal only if both passed, and then both codes are 0.",
    },
    "scheduling/filtering/nominated_pods": {
        (
            "columns.judged_at[stale] = table.versions.now",
            "'columns.judged_at[stale] = table.versions.now' becomes 'pass'",
        ): _SPEED,
        ("_NEVER = -1", "'1' becomes '2'"): "Every stamp is greater than both.",
        (
            "nodes = versions.nodes.since(self.stamp) if versions.nodes.at > self.stamp else ()",
            "'versions.nodes.at > self.stamp' becomes '(versions.nodes.at >= self.stamp)'",
        ): _SPEED,
        (
            "stale = rows[columns.judged_at[rows] < table.versions.row_pods_at[rows]]",
            "'columns.judged_at[rows] < table.versions.row_pods_at[rows]' becomes "
            "'(columns.judged_at[rows] <= table.versions.row_pods_at[rows])'",
        ): _SPEED,
    },
    "scheduling/filtering/what_if_rows": {
        (
            "state_of = self.state_of if self._notified else None",
            "'self.state_of if self._notified else None' becomes '(self.state_of)'",
        ): _SPEED,
    },
    "scheduling/attempt/runs": {
        ("_MOST_IN_TURN: Final = 16", "'16' becomes '17'"): _BOUND,
        ("_MOST_NAMED: Final = 64", "'64' becomes '65'"): _BOUND,
        ("return 0", "'0' becomes '1'"): "The caller begins no run that is shorter than 2.",
    },
    "scheduling/attempt/ranking": {
        (
            "constant, scores_left = self.not_cached(state, pod) if prepared is None else prepared",
            "'self.not_cached(state, pod) if prepared is None else prepared' becomes '(self.not_cached(state, pod))'",
        ): _SPEED,
        (
            "if not score.in_tree and isinstance(at, slice):",
            "'not score.in_tree and isinstance(at, slice)' becomes '(isinstance(at, slice))'",
        ): _SPEED,
    },
    "scheduling/attempt/ties": {
        ("_DEPTH: Final = 24", "'24' becomes '25'"): _SPEED,
    },
    "scheduling/profiles/profile": {
        (
            "_classes_at: int = attrs.field(default=0, init=False)",
            "'0' becomes '1'",
        ): "The first difference clears an empty cache.",
    },
    "scheduling/binding/cycle": {
        ("place: int = 0", "'0' becomes '1'"): _UNUSED,
        **{
            (line, "'0.0' becomes '1.0'"): _UNUSED
            for line in (
                "began_s: float = 0.0",
                "def enter(self, stage: Stage, began_s: float = 0.0) -> None:",
                "attempt_s: float = 0.0",
                "bind_began_s: float = 0.0",
            )
        },
    },
    "scheduling/completion": {
        ("self.extender_binds = False", "'self.extender_binds = False' becomes 'pass'"): _UNUSED,
        (
            "counted_alike.setdefault(counted_as(first.signature), []).extend(numbers)",
            "'counted_alike.setdefault(counted_as(first.signature), []).extend(numbers)' becomes 'pass'",
        ): _SPEED,
        ("binders[number] = binder", "'binders[number] = binder' becomes 'pass'"): _SPEED,
        (
            "return answer if isinstance(answer, tuple) else (answer, 0.0)",
            "'0.0' becomes '1.0'",
        ): "Only the status WAIT has a time, and then the answer is a tuple.",
    },
    "scheduling/gangs/trial": {
        (line, "'0' becomes '1'"): "Read only together with `evicted`, and then both are passed."
        for line in ("disruptions: int = 0", "violations: int = 0")
    },
    "scheduling/group_cycles": {
        ("began_s = 0.0 if machine.metrics is None else machine.metrics.timer()", "'0.0' becomes '1.0'"): _UNUSED,
    },
    "scheduling/nominations/counted": {
        ("self._forgotten = 0", "'0' becomes '1'"): "The numbers are only compared.",
        ("self._stamp = 0", "'0' becomes '1'"): "The first call reads all nominations.",
        ("half = _LOG_LIMIT // 2", "'2' becomes '3'"): _SPEED,
        (
            "return self.everywhere if pods and any(map(self._counts, pods)) else NO_NOMINATED",
            "'self.everywhere if pods and any(map(self._counts, pods)) else NO_NOMINATED' becomes '(self.everywhere)'",
        ): _SPEED,
        ("apart: bool = False", "'False' becomes 'True'"): _SPEED,
        ("others = AddedPods(1)", "'1' becomes '2'"): _MEMORY,
        (
            "if (self._row, self._others) != (before._row, before._others):",
            "', before._others' becomes ''",
        ): _SPEED,
        (
            "return self.everywhere if self.nominated else NO_NOMINATED",
            "'self.everywhere if self.nominated else NO_NOMINATED' becomes '(self.everywhere)'",
        ): _SPEED,
    },
    "scheduling/profiles/metrics": {
        (
            "def skipped(self, points: tuple[str, ...], times: int = 1) -> None: ...",
            "'1' becomes '2'",
        ): "NoTimes records nothing.",
    },
    "scheduling/profiles/plugin_metrics": {
        (
            "self.plugins = drawn < plugins",
            "'drawn < plugins' becomes '(drawn <= plugins)'",
        ): "A draw equals the share in at most one case of 2**53.",
    },
    "scheduling/stops/interventions": {
        (
            "found = drive(scheduler.search.run(known, state, pod, known.place[[row]], 0, 1, counting.everywhere))",
            fault,
        ): reason
        for fault, reason in (
            ("'0' becomes '1'", "The search wraps around at the end of its only node."),
            ("'1' becomes '2'", "The search ends with its only node."),
        )
    },
    "scheduling/stops/view": {
        (
            "if stepper.scoring is None or not stepper.scores:",
            "'stepper.scoring is None or not stepper.scores' becomes '(not stepper.scores)'",
        ): "There are scores only of the rows that are scored.",
    },
    "scheduling/preemption/row_pods": {
        ("NOT_STARTED: Final = (1 << 63) - 1", "'1' becomes '2'"): "Every start time is less than both.",
        ("_NEVER: Final = -1", "'1' becomes '2'"): "Every stamp is greater than both.",
        (
            "if not priorities or priorities[0] < priority:",
            "'not priorities or priorities[0] < priority' becomes '(not priorities)'",
        ): _SPEED,
        ("self._at: Ints = np.zeros(0, dtype=np.int64)", "'0' becomes '1'"): _UNUSED,
        ("self._at[stale] = versions.now", "'self._at[stale] = versions.now' becomes 'pass'"): _SPEED,
    },
    "scheduling/preemption/candidates": {
        ("self._at[stale] = versions.now", "'self._at[stale] = versions.now' becomes 'pass'"): _SPEED,
        (
            "elif len(stale) * _MANY > len(window):",
            "'len(stale) * _MANY' becomes '(len(stale) + _MANY)'",
        ): _SPEED,
        ("further = _AHEAD * len(window)", "'_AHEAD * len(window)' becomes '(_AHEAD + len(window))'"): _SPEED,
        (
            "evictable = self._lowest.on(stale) < pod.priority",
            "'self._lowest.on(stale) < pod.priority' becomes '(self._lowest.on(stale) <= pod.priority)'",
        ): "A dry run finds the same: no pod to evict.",
        ("_MOST_AT_ONCE = 32", "'32' becomes '33'"): _SPEED,
        ("columns.in_use = True", "'True' becomes 'False'"): _SPEED,
        (
            "if len(stale) < _MOST_AT_ONCE:",
            "'len(stale) < _MOST_AT_ONCE' becomes '(len(stale) <= _MOST_AT_ONCE)'",
        ): _SPEED,
        (
            "elif len(stale) * _MANY > len(window):",
            "'len(stale) * _MANY > len(window)' becomes '(len(stale) * _MANY >= len(window))'",
        ): _SPEED,
        (
            "if not evictable.all():",
            "'not evictable.all()' becomes '(evictable.all())'",
        ): "A dry run finds the same: no pod to evict.",
        (
            "size = min(size, (wanted - found) * visited // found + _MOST_AT_ONCE)",
            "'(wanted - found) * visited // found' becomes '((wanted - found) * visited * found)'",
        ): _SPEED,
    },
    "store/journal/offline": {
        ("journal.close()", "'journal.close()' becomes 'pass'"): "The end of the function closes the journal as well.",
    },
    "store/journal/format": {
        ("RESERVED: Final = 10_000", "'10_000' becomes '10001'"): (
            "The number determines how often versions are reserved and how many are skipped after a restart."
        ),
    },
    "store/journal/state_dir": {
        (
            "if time.monotonic() > patience:",
            "'time.monotonic() > patience' becomes '(time.monotonic() >= patience)'",
        ): "The maximum wait ends at the same time.",
    },
    "store/journal/journal": {
        ("seed: int = 0,", "'0' becomes '1'"): "Every seed is valid; no test or caller depends on the default.",
        ("raise", "'raise' becomes 'pass'"): "The objects are then read again, which raises the same error.",
        ("history: int = 100_000,", "'100_000' becomes '100001'"): _BOUND,
    },
    "plugins/defaultpreemption": {
        (
            'offset = crc32(f"{self._seed}/{pod.uid}".encode()) % len(rows) if len(rows) else 0',
            "'0' becomes '1'",
        ): "Without rows, no dry run is made.",
        (
            "return (on(EventResource.ASSIGNED_POD, ActionType.DELETE, _after_pod_deleted, by_signature=True),)",
            "'True' becomes 'False'",
        ): _SPEED,
    },
    "plugins/devices/dynamicresources_args": {
        (
            'if given is not None and not gates.get("DRASchedulerFilterTimeout", True):',
            "'True' becomes 'False'",
        ): "The gates of each version with this argument have its gate.",
        (
            'if given is not None and not gates.get("DRADeviceBindingConditions", False):',
            "'False' becomes 'True'",
        ): "The gates of each version with this argument have its gate.",
    },
    "plugins/devices/dynamicresources_state": {
        (
            "for request in (read_claim(claim).requests if names else ())",
            "'read_claim(claim).requests if names else ()' becomes '(read_claim(claim).requests)'",
        ): _SPEED,
    },
    "plugins/older/nodepreferavoidpods": {
        ("self._avoided.clear()", "'self._avoided.clear()' becomes 'pass'"): _MEMORY,
        (
            "if len(self._avoided) >= 4096:",
            "'len(self._avoided) >= 4096' becomes '(len(self._avoided) > 4096)'",
        ): _BOUND,
        ("if len(self._avoided) >= 4096:", "'4096' becomes '4097'"): _BOUND,
    },
    "plugins/topology/interpodaffinity_state": {
        ("self.changed = True", "'self.changed = True' becomes 'pass'"): _SPEED
    },
    "plugins/topology/podtopologyspread_default_selector": {
        (
            "if len(self._known) >= _REMEMBERED:",
            "'len(self._known) >= _REMEMBERED' becomes '(len(self._known) > _REMEMBERED)'",
        ): _BOUND,
    },
    "plugins/topology/podtopologyspread_constraints": {
        (
            "if versions.at[LABELS] > self._stamp:",
            "'versions.at[LABELS] > self._stamp' becomes '(versions.at[LABELS] >= self._stamp)'",
        ): _SPEED,
        ("self._stamp = versions.now", "'self._stamp = versions.now' becomes 'pass'"): _SPEED,
        (
            "if len(self._ready) >= self._cluster.table.most_counters:",
            "'len(self._ready) >= self._cluster.table.most_counters' becomes "
            "'(len(self._ready) > self._cluster.table.most_counters)'",
        ): _BOUND,
        ("self._ready[key] = readies", "'self._ready[key] = readies' becomes 'pass'"): _SPEED,
        (
            "selector = self._selectors.of(pod) if self._defaults[HARD] else None",
            "'self._selectors.of(pod) if self._defaults[HARD] else None' becomes '(self._selectors.of(pod))'",
        ): _SPEED,
    },
    "plugins/volumes/volumebinding": {
        (
            'gates.get("VolumeAttributesClass", True),',
            "'True' becomes 'False'",
        ): "The gates of each version have this gate.",
    },
    "plugins/volumes/volumerestrictions": {
        ("self._effects_of = np.zeros((0, 2), dtype=np.int64)", "', 2' becomes ''"): _UNUSED,
    },
    "plugins/resources/noderesourcesbalancedallocation": {
        ("seen += counts", "'seen += counts' becomes 'seen -= counts'"): "Only zero differs from other numbers.",
        ("_as_in_1_18: bool = False", "'False' becomes 'True'"): _UNUSED,
    },
    "plugins/resources/noderesourcesfit": {
        (
            "if len(self._wants) >= _MOST_SHAPES:",
            "'len(self._wants) >= _MOST_SHAPES' becomes '(len(self._wants) > _MOST_SHAPES)'",
        ): _BOUND,
    },
    "framework/normalize": {
        ("most = highest(scores) if len(scores) else 0", "'0' becomes '1'"): "Without scores, both ways return none.",
    },
    "plugins/nodename": {
        ("wanted = table.row_of.get(pod.node_name, -1)", "'1' becomes '2'"): "No row has a negative number.",
    },
    "plugins/nodeaffinity": {
        (
            "elsewhere: Ints = (rows != table.row_of.get(spec.required_node, -1)).astype(np.int64)",
            "'1' becomes '2'",
        ): "No row has a negative number.",
        (
            "if spec.required_node is not None or self.added_required is not None or spec.node_selector:",
            "'spec.required_node is not None or self.added_required is not None or spec.node_selector' becomes "
            "'(self.added_required is not None or spec.node_selector)'",
        ): "A required node is part of the required affinity, which the next line reads; this one saves its parsing.",
    },
    "controllers/nodes/tolerance": {
        ("return NOT_TOLERATED", "'return NOT_TOLERATED' becomes 'return None'"): "NOT_TOLERATED is None.",
    },
    "cache/counts": {("_set_numbers = count(1)", "'1' becomes '2'"): "The numbers only distinguish sets."},
    "cache/nodematch": {
        (
            "_integers[column] = (column.renumbered, numbers, readable)",
            "'_integers[column] = (column.renumbered, numbers, readable)' becomes 'pass'",
        ): _SPEED,
    },
    "cache/scoring_columns": {
        (
            "by = np.where(divisor == 0, 1, divisor)",
            "'1' becomes '2'",
        ): "The last line replaces these quotients by 0.",
    },
    "cache/table": {
        (
            "if count < _FEWEST_IN_A_SLICE:",
            "'count < _FEWEST_IN_A_SLICE' becomes '(count <= _FEWEST_IN_A_SLICE)'",
        ): _SPEED,
        (
            "if len(of_row) > _LONG:",
            "'len(of_row) > _LONG' becomes '(len(of_row) >= _LONG)'",
        ): "A recorded index affects only the speed, and it is checked before use.",
    },
    "cache/versions": {
        ("if time > newest:", "'time > newest' becomes '(time >= newest)'"): "Equal times give the same result.",
    },
    "scheduling/preemption/budgets": {
        ("first_violated_only: bool = False", "'False' becomes 'True'"): _UNUSED,
    },
    "scheduling/preemption/dry_run": {
        (
            "for turn in range(int(lesser.many[open_].max(initial=0))):",
            "'0' becomes '1'",
        ): "A turn without rows does nothing.",
        ("earliest: int = 0", "'0' becomes '1'"): _UNUSED,
    },
    "plugins/deferredpodscheduling": {
        ("_FORBIDDEN: Final = 2", "'2' becomes '3'"): _LABEL,
    },
    "plugins/older/noderesourcesleastallocated": {
        ('depends_on: ClassVar = frozenset({"node", "requested"})', "'\"node\",' becomes ''"): _NODE,
    },
    "plugins/nodeports": {
        ('depends_on: ClassVar = frozenset({"node", "requested"})', "'\"node\",' becomes ''"): _NODE,
    },
    "plugins/older/noderesourcesmostallocated": {
        ('depends_on: ClassVar = frozenset({"node", "requested"})', "'\"node\",' becomes ''"): _NODE,
    },
    "cache/added_pods": {
        (
            "specs = [pod.signature.spec for pod in pods if pod.signature.spec.host_ports]",
            "'pod.signature.spec.host_ports' becomes 'True'",
        ): _SPEED,
        ("del self._requested[name]", "'del self._requested[name]' becomes 'pass'"): _SPEED,
    },
    "scheduling/attempt/node_search": {
        ("elif others and state.skip_filter:", "'others and state.skip_filter' becomes '(others)'"): _SPEED,
    },
    "queue/unschedulable": {
        (
            "if self.flushes_gated and unmoved is not None and unmoved[0] < time:",
            "'unmoved[0] < time' becomes '(unmoved[0] <= time)'",
        ): "Pods of exactly this time are not older and are not listed.",
    },
    "plugins/older/requestedtocapacityratio": {
        ('depends_on: ClassVar = frozenset({"node", "requested"})', "'\"node\",' becomes ''"): _NODE,
    },
    "plugins/older/requestedtocapacityratiopriority": {
        ('depends_on: ClassVar = frozenset({"node", "requested"})', "'\"node\",' becomes ''"): _NODE,
    },
    "cache/domain_counter": {
        ("_stamp: int = 0", "'0' becomes '1'"): _UNUSED,
        ("_having_least: int = 0", "'0' becomes '1'"): _UNUSED,
        ("_DENSE = 16", "'16' becomes '17'"): _SPEED,
    },
    "framework/costs": {
        ("_RECENT: Final = 1000", "'1000' becomes '1001'"): _BOUND,
    },
    "controllers/nodes/nodelifecycle": {
        (
            "for waiting in (self._concerned, self._passing, self._freed):",
            "', self._freed' becomes ''",
        ): "A node that no longer exists gets no write.",
    },
    "controllers/nodes/tainteviction": {
        (
            "return event.type == DELETED and (key in self._since or key in self._marked)",
            "'event.type == DELETED and (key in self._since or key in self._marked)' becomes "
            "'(key in self._since or key in self._marked)'",
        ): _SPEED,
    },
    "framework/registry": {
        (
            "validating: dict[str, type[Any]] = attrs.field(factory=dict, kw_only=True)",
            "'True' becomes 'False'",
        ): "Every caller passes the field by name.",
    },
    "framework/look_alikes": {
        ("if close := get_close_matches(bare, _KNOWN, 1, _ALIKE):", "'1' becomes '2'"): "Only the best match is read.",
    },
    "framework/guarding/worker_process": {
        ("self._made.clear()", "'self._made.clear()' becomes 'pass'"): _MEMORY,
    },
    "framework/writes": {
        ("timeout_s: float = 0.0", "'0.0' becomes '1.0'"): _UNUSED,
    },
    "plugins/topology/podtopologyspread": {
        (
            "if len(self.counts) > len(ids):",
            "'len(self.counts) > len(ids)' becomes '(len(self.counts) >= len(ids))'",
        ): "Both ways return the same codes; the sizes decide which is faster.",
        (
            "if lowest(ids) < 0:",
            "'lowest(ids) < 0' becomes '(lowest(ids) <= 0)'",
        ): "A mask of rows that lack a key may be empty; without a mask, the score is computed faster.",
    },
}


def why_argued(module: str, text: str, mutant: Mutant) -> str | None:
    """Return why no test needs to detect this fault of a module with this text; None if a test should."""
    of_module = ARGUED.get(module.removeprefix("kschedd/").removesuffix(".py"), {})
    if all(fault != str(mutant) for _, fault in of_module):
        return None
    line = text.splitlines()[mutant.line - 1].partition("  #")[0].strip()
    return of_module.get((line, str(mutant)))
