"""Tests of the filters of a profile on rows: the verdicts, the calls that are saved, and the counted calls."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError
from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.filtering.filters import Filters, FiltersOfRows, PluginBatch, plain_shard
from kschedd.scheduling.profiles.plugin_metrics import PluginInstruments, PluginMetrics
from kschedd.scheduling.profiles.profile import build_profile, enabled_filter
from kschedd.scheduling.verdicts import EXPLICIT, PASSED
from tests.scheduling.test_scheduler import machine, node, plugin, pod

NAMES = "abcd"
ROWS = np.arange(len(NAMES))
NO = unschedulable("no")


class Steps:
    """A stepper that records its stops."""

    def __init__(self) -> None:
        self.stops: list[tuple[str, str, list[int]]] = []
        self.began: list[Any] = []

    def filtering(self, done: Any, explicit_status: Any, filters: Any) -> None:
        self.began.append((done, explicit_status, filters))

    def before(self, point: str, plugin: str, rows: Any) -> Iterator[Any]:
        self.stops.append((point, plugin, rows.tolist()))
        return iter(())

    def filtered(self, plugin: str, before: Any, after: Any) -> Iterator[Any]:
        self.stops.append(("filtered", plugin, after.tolist()))
        return iter(())


def filters(*plugins: type[Any], instruments: PluginInstruments | None = None) -> Filters:
    """Return the filters of a profile that has only these, in a cluster with the nodes a to d."""
    filtering = [{"name": each.name} for each in plugins if hasattr(each, "filter") or hasattr(each, "filter_rows")]
    only = {"disabled": [{"name": "*"}], "enabled": filtering}
    made = machine(*plugins, nodes=[node(name) for name in NAMES], filter=only)
    [profile] = made.config.profiles
    metrics = (instruments or PluginInstruments()).of("p")
    return Filters(build_profile(made.config, profile, made.registry, made.handle, metrics=metrics), made.cluster)


def rejecting(called: str, **status: Status) -> type[Any]:
    """Return a plugin that filters node by node, with the status of each rejected node."""
    return plugin(called, filter=lambda state, pod, node: status.get(node.name))


def rows_of(called: str, codes: Sequence[int] | None) -> type[Any]:
    """Return a plugin that filters rows, with the code of each row of the table."""

    def filter_rows(state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return None if codes is None else np.array(codes, dtype=np.int64)[np.asarray(rows)]

    return plugin(called, filter_rows=filter_rows, code_status=lambda state, pod, code: NO)


def others(made: Filters, failed: Sequence[int] = ()) -> tuple[list[int], list[int], dict[int, Status]]:
    """Run the filters on all rows; return the columns and the statuses."""
    columns = np.array(failed or [PASSED] * len(ROWS), dtype=np.int16), np.zeros(len(ROWS), dtype=np.int64)
    called = made.called(CycleState(), pod())
    statuses = drive(made.run_others(called, CycleState(), pod(), made.cluster.table, ROWS, *columns))
    return columns[0].tolist(), columns[1].tolist(), statuses


# -- searches ----------------------------------------------------------------------------------------------------------


def test_the_first_filter_that_rejects_a_row_counts() -> None:
    made = filters(rows_of("Coded", [0, 7, 0, 0]), rejecting("Spoken", b=NO, c=NO), rows_of("Silent", None))
    failed, codes, statuses = others(made)
    assert failed == [PASSED, 0, 1, PASSED]
    assert codes == [0, 7, EXPLICIT, 0]
    assert statuses == {2: NO.by("Spoken")}


def test_a_filter_is_not_called_on_rows_that_an_earlier_filter_has_rejected() -> None:
    called: list[str] = []

    def noting(state: Any, pod: Any, node: Any) -> None:
        called.append(node.name)

    made = filters(rows_of("Coded", None), plugin("Notes", filter=noting))
    assert others(made, [0, PASSED, 0, 1])[0] == [0, PASSED, 0, 1]
    assert called == ["b"]
    called.clear()
    others(made, [0, 0, 0, 0])
    assert called == []


def test_a_stepped_search_stops_before_each_filter_and_after_each_one_that_answers_until_no_row_is_left() -> None:
    steps: Any = Steps()
    made = filters(
        rows_of("Silent", None),
        rows_of("Skipped", [1, 1, 1, 1]),
        rejecting("Spoken", a=NO),
        rows_of("Coded", [0, 3, 3, 3]),
        rows_of("Never", None),
    )
    statuses: dict[int, Status] = {}
    done = drive(made.run(CycleState(skip_filter={"Skipped"}), pod(), ROWS, statuses, steps))
    assert steps.stops == [
        ("filter", "Silent", [0, 1, 2, 3]),
        ("filter", "Spoken", [0, 1, 2, 3]),
        ("filtered", "Spoken", [1, 2, 3]),
        ("filter", "Coded", [1, 2, 3]),
        ("filtered", "Coded", []),
    ]
    assert statuses == {0: NO.by("Spoken")}
    assert [columns.tolist() for columns in done.columns()] == [[2, 3, 3, 3], [EXPLICIT, 3, 3, 3]]
    assert steps.began == [(done, statuses, made.profile.filters)]


def test_filters_that_are_skipped_or_have_no_work_for_the_pod_are_not_called() -> None:
    idle = rows_of("Idle", None)
    idle.idle_for = staticmethod(lambda pod: ("filter",) if pod.name == "idle" else ("binding",))
    made = filters(idle, rows_of("Own", None))
    state = CycleState(skip_filter={"Own"})
    assert [one.name for one in made.called(CycleState(), pod())] == ["Idle", "Own"]
    assert [one.name for one in made.called(CycleState(), pod("idle"))] == ["Own"]
    assert [one.name for one in made.called(state, pod())] == ["Idle"]
    found = [made.row_by_row(state, pod(name)) for name in ("p", "idle")]
    assert found == [False, True]
    assert not made.row_by_row(CycleState(), pod("idle"))


# -- filters of single nodes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "label", "errors"),
    [
        pytest.param({}, "Success", 0, id="all-pass"),
        pytest.param({"a": NO}, "Success", 0, id="some-pass"),
        pytest.param(dict.fromkeys(NAMES, NO), "Unschedulable", 0, id="none-passes"),
        pytest.param({"a": error("broken")}, "Error", 1, id="one-fails"),
    ],
)
def test_the_calls_of_a_filter_are_counted_by_nodes_and_timed_together(
    status: dict[str, Status], label: str, errors: int
) -> None:
    instruments = PluginInstruments()
    made = filters(rejecting("Own", **status), instruments=instruments)
    for instruments.sampling.plugins in (False, True):
        others(made)
    calls = instruments.of("p").calls("Own", "Filter")
    assert (calls.evaluations, calls.errors) == (8, 2 * errors)
    timed = {labels: each.count for labels, each in instruments.durations.family().samples.items()}
    assert timed == {("Own", "Filter", label): 1}


def raising(*args: Any) -> Any:
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("method", "code", "message"),
    [
        pytest.param(lambda state, pod, node: NO, Code.UNSCHEDULABLE, "no", id="a-rejection"),
        pytest.param(lambda state, pod, node: Status(Code.SUCCESS), None, "", id="success"),
        pytest.param(
            lambda state, pod, node: error("broken"), Code.ERROR, 'running "Own" filter plugin: broken', id="an-error"
        ),
        pytest.param(raising, Code.ERROR, 'running "Own" filter plugin: ValueError: no idea', id="an-exception"),
    ],
)
def test_the_status_of_a_node_names_the_plugin(method: Callable[..., Any], code: Code | None, message: str) -> None:
    _, _, statuses = others(filters(plugin("Own", filter=method)))
    assert statuses.keys() == (set() if code is None else set(ROWS.tolist()))
    for status in statuses.values():
        assert (status.code, status.plugin) == (code, "Own")
        assert status.message.startswith(message)


class KnowsSome:
    """A plugin that need not be called on the nodes a and c."""

    name = "KnowsSome"

    def __init__(self) -> None:
        self.called: list[str] = []

    def known_to_pass(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return np.array([table.names[row] in "ac" for row in rows.tolist()])

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        self.called.append(node.name)
        return NO if node.name in "abd" else None


@pytest.mark.parametrize(("in_tree", "called", "rejected"), [(True, "bd", [1, 3]), (False, "abcd", [0, 1, 3])])
def test_only_plugins_of_the_tree_are_not_called_on_nodes_that_are_known_to_pass(
    in_tree: bool, called: str, rejected: list[int]
) -> None:
    made, own = filters(rows_of("Own", None)), KnowsSome()
    plugin_: Any = own
    knowing = enabled_filter(0, "KnowsSome", plugin_, in_tree, PluginMetrics())
    columns = np.full(len(ROWS), PASSED, dtype=np.int16), np.zeros(len(ROWS), dtype=np.int64)
    statuses = drive(made.run_others([knowing], CycleState(), pod(), made.cluster.table, ROWS, *columns))
    assert ("".join(own.called), list(statuses)) == (called, rejected)
    assert (columns[0] == 0).nonzero()[0].tolist() == rejected
    assert columns[1][rejected].tolist() == [EXPLICIT] * len(rejected)


def test_nodes_are_filtered_in_shards() -> None:
    made = machine(plugin("Own", filter=lambda state, pod, node: None), nodes=[node(f"n{n}") for n in range(130)])
    filtering, rows, sizes = Filters(made.schedulers["default-scheduler"].profile, made.cluster), np.arange(130), []
    columns = np.full(130, PASSED, dtype=np.int16), np.zeros(130, dtype=np.int64)
    [own] = [one for one in filtering.others if one.name == "Own"]

    def answered(shard: Callable[[], Any]) -> Any:
        answers = shard()
        sizes.append(len(answers))
        return answers

    drive(filtering.run_others([own], CycleState(), pod(), made.cluster.table, rows, *columns), answered)
    assert sizes == [64, 64, 2]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([None, NO], [None, NO.by("Own")], id="verdicts"),
        pytest.param([PluginError("Own", "filter", "killed"), None], ["killed", None], id="a-fault"),
    ],
)
def test_verdicts_from_worker_processes_are_those_of_the_plugin(answers: list[Any], expected: list[Any]) -> None:
    made = filters(plugin("Own", filter=raising))
    own: Any = made.profile.plugins["Own"]
    called: list[Any] = []

    def call_elsewhere(method: str, state: Any, pod: Any, table: Any, rows: list[int]) -> list[Any]:
        called.append((method, pod.name, rows))
        return answers

    batch = plain_shard(made.others[0], CycleState(), pod(), made.cluster.table, [0, 1])
    assert isinstance(batch, PluginBatch)
    own.guard.limits = {}
    assert (batch.at_once, batch.limit_s) == (None, own.guard.limit_of("filter"))
    own.elsewhere, own.call_elsewhere, own.worker_processes = object(), call_elsewhere, 3
    assert (batch.at_once, batch.limit_s) == (3, math.inf)
    verdicts = batch()
    assert called == [("filter", "p", [0, 1])]
    for verdict, wanted in zip(verdicts, expected, strict=True):
        if isinstance(wanted, str):
            assert isinstance(verdict, Status)
            assert (verdict.code, verdict.plugin) == (Code.ERROR, "Own")
            assert wanted in verdict.message
        else:
            assert verdict == wanted


# -- what-if copies ----------------------------------------------------------------------------------------------------


def test_each_row_of_a_copy_may_have_a_state_of_its_own() -> None:
    def by_state(state: Any, pod: Any, node: Any) -> Status | None:
        return NO if state.data["of"] == node.name else None

    made = filters(rows_of("Coded", [0, 4, 0, 0]), rejecting("Own"))
    own: Any = plugin("Own", filter=by_state)()
    coded, _ = made.others
    made.others = coded, enabled_filter(1, "Own", own, True, PluginMetrics())
    created: list[int] = []

    def state_of(row: int) -> CycleState:
        created.append(row)
        return CycleState({"of": "c"})

    table = made.cluster.table
    failed, codes, statuses = made.judge_rows(made.local, CycleState(), pod(), table, ROWS, state_of)
    assert (failed.tolist(), codes.tolist()) == ([PASSED, 0, 1, PASSED], [0, 4, EXPLICIT, 0])
    assert (statuses, created) == ({2: NO.by("Own")}, [0, 1, 2, 3])
    failed, codes, statuses = made.judge_rows(made.local, CycleState({"of": "a"}), pod(), table, ROWS)
    assert (failed.tolist(), list(statuses)) == ([1, 0, PASSED, PASSED], [0])


def test_a_row_with_a_state_of_its_own_is_rejected_by_the_first_of_all_filters() -> None:
    made = filters(
        rejecting("First", a=NO),
        plugin(
            "Local",
            filter_rows=lambda state, pod, table, rows: np.array([1, 1, 0, 0])[rows],
            code_status=lambda state, pod, code: NO,
            depends_on=frozenset({"node"}),  # type: ignore[arg-type]
        ),
        rejecting("Last", a=NO, b=NO, c=NO),
    )
    failed, codes, statuses = made.judge_rows(
        made.local, CycleState(), pod(), made.cluster.table, ROWS, lambda row: CycleState()
    )
    assert failed.tolist() == [0, 1, 2, PASSED]
    assert codes.tolist() == [EXPLICIT, 1, EXPLICIT, 0]
    assert statuses == {0: NO.by("First"), 2: NO.by("Last")}


def saying_nothing(*args: Any) -> None:
    return None


@pytest.mark.parametrize(
    ("plugins", "together"),
    [
        pytest.param([], True, id="in-tree-plugins"),
        pytest.param([rejecting("Own")], False, id="an-out-of-tree-filter"),
        pytest.param(
            [plugin("Own", pre_filter=saying_nothing, add_pod=saying_nothing, remove_pod=saying_nothing)],
            False,
            id="an-out-of-tree-plugin-that-follows-pods",
        ),
    ],
)
def test_rows_of_a_copy_are_filtered_together_by(plugins: list[type[Any]], together: bool) -> None:
    made = filters(*plugins)
    copy = made.cluster.table.copy_rows(ROWS.tolist())
    assert (made.together(CycleState(), pod(), copy) is not None) is together
    assert made.together(CycleState(skip_filter={"Own"}), pod(), copy) is not None


class Follows:
    """Columns that reject the row c, and record the pods that they follow."""

    def __init__(self) -> None:
        self.followed: list[Any] = []

    def follow(self, rows: Any, kinds: Any, of: Any, amount: int) -> None:
        self.followed.append((rows.tolist(), amount))

    def codes(self, rows: Any) -> Any:
        return np.where(rows == 2, 5, 0)

    def status(self, code: int) -> Status:
        return unschedulable(f"code {code}")


def of_rows(plugin_: Any, columns: dict[str, Any]) -> FiltersOfRows:
    made = filters()
    copy = made.cluster.table.copy_rows(ROWS.tolist())
    return FiltersOfRows(
        CycleState(), pod(), copy, [enabled_filter(1, plugin_.name, plugin_, True, PluginMetrics())], columns
    )


def judged(made: FiltersOfRows, failed: Sequence[int], since: Any = None) -> tuple[list[int], list[int], Any]:
    columns = np.array(failed, dtype=np.int16), np.zeros(len(ROWS), dtype=np.int64)
    statuses = made.judge(ROWS, *columns, since)
    return columns[0].tolist(), columns[1].tolist(), statuses


def test_a_row_that_the_columns_of_a_per_node_filter_reject_has_the_status_of_its_code() -> None:
    made = of_rows(rejecting("Own", a=NO), {"Own": Follows()})
    failed, codes, statuses = judged(made, [PASSED] * 4)
    assert (failed, codes) == ([PASSED, PASSED, 1, PASSED], [0, 0, EXPLICIT, 0])
    assert statuses == {2: unschedulable("code 5").by("Own")}


def test_a_filter_whose_columns_are_missing_passes_every_row() -> None:
    assert judged(of_rows(rejecting("Own", a=NO), {"Own": None}), [PASSED] * 4) == ([PASSED] * 4, [0] * 4, {})


def test_every_plugin_with_columns_follows_pods() -> None:
    own = Follows()
    made = of_rows(rejecting("Own"), {"Missing": None, "Own": own})
    assert made.follows
    made.follow(ROWS[:2], np.zeros(2, dtype=np.int64), [pod()], -1)
    assert own.followed == [([0, 1], -1)]
    assert not of_rows(rejecting("Own"), {"Missing": None}).follows


class Affected:
    """A filter that rejects all nodes, and that only pods with a priority affect."""

    name = "Affected"

    def affected_by(self, spec: Any) -> bool:
        return spec.priority > 0

    def filter(self, state: Any, pod: Any, node: Any) -> Status:
        return NO


@pytest.mark.parametrize(
    ("failed", "kinds", "rejected"),
    [
        pytest.param([PASSED] * 4, None, [0, 1, 2, 3], id="all-rows"),
        pytest.param([0, 1, 2, PASSED], None, [2, 3], id="not-those-rejected-by-it-or-before-it"),
        pytest.param([PASSED] * 4, [0, 1, 0, 1], [1, 3], id="those-with-pods-that-affect-it"),
    ],
)
def test_the_rows_of_a_copy_on_which_a_filter_is_called(
    failed: list[int], kinds: list[int] | None, rejected: list[int]
) -> None:
    since = None if kinds is None else (np.array(kinds), [pod(), pod(priority=7)])
    _, codes, statuses = judged(of_rows(Affected(), {}), failed, since)
    assert sorted(statuses) == rejected
    assert [row for row, code in enumerate(codes) if code == EXPLICIT] == rejected
