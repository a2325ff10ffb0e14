"""Trials of mutants: a module's tests run in a copy of the tree in which the module has a fault.

The working tree is only read. The copy includes compiled modules, so that each trial compiles one module only. A trial
writes only to the copy. The copy is deleted at the end of the block.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from kschedd.bench.shared import VARIABLE, shared_folder
from tests.mutation.mutants import Mutant

ROOT: Final = Path(__file__).parents[2]
_COPIED: Final = ("kschedd", "repl", "tests", "docs", "examples", "profiles")
_HALF_WRITTEN: Final = shutil.ignore_patterns("*.pyc.*")  # temporary files of other processes
_SLOWER: Final = 5  # a trial that takes this many times the CPU time without a fault counts as detected
_SHORTEST_S: Final = 8.0

#: The test files of modules whose tests are not, or not only, in the file of the module's name.
TESTED_BY: Final = {
    "cache/counts": "cache/test_counts cache/test_scheduler_cache",
    "cache/forked_counts": "cache/test_scheduler_cache explain/test_fork causes/test_neighbors",
    "cache/recently_used": "scheduling/test_recently_used",
    "cache/scoring_columns": "plugins/test_noderesources",
    "cache/table": "cache/test_table cache/test_scheduler_cache",
    "controllers/nodes/node_health": "controllers/test_node_health controllers/test_nodelifecycle",
    "framework/dry_run": "scheduling/test_candidates scheduling/test_preemption",
    "framework/fast_path": "framework/test_interface scheduling/test_scheduler scheduling/test_prepared",
    "framework/guarding/guarded": "framework/test_guarded framework/test_interface",
    "framework/guarding/worker_process": "framework/test_processes",
    "framework/placements": "scheduling/test_pod_group_domains",
    "framework/plugin_file": "framework/test_registry",
    "framework/postfilter": "scheduling/test_scheduler scheduling/test_preemption",
    "framework/writes": "scheduling/test_driver",
    "http/bounded_pool": "actors/test_webhooks",
    "plugins/defaultbinder": "plugins/test_defaultbinder scheduling/test_driver",
    "plugins/defaultpreemption": (
        "plugins/test_defaultpreemption config/test_plugin_args scheduling/test_preempted_in_memory"
    ),
    "plugins/deferredpodscheduling": "plugins/test_deferredpodscheduling scheduling/test_resizes",
    "plugins/devices/dynamicresources": (
        "plugins/test_dynamicresources plugins/test_dynamicresources_1_36 plugins/test_registered_events"
    ),
    "plugins/devices/dynamicresources_args": "config/test_plugin_args",
    "plugins/devices/dynamicresources_state": "plugins/test_dynamicresources_1_36 plugins/test_dynamicresources",
    "plugins/devices/dynamicresources_writes": "plugins/test_dynamicresources_1_36 plugins/test_dynamicresources",
    "plugins/nodeaffinity_args": "config/test_plugin_args plugins/test_node_filters",
    "plugins/nodeports": "plugins/test_node_filters testing/test_rules",
    "plugins/older/azuredisklimits": "plugins/test_older_plugins",
    "plugins/older/cinderlimits": "plugins/test_older_plugins",
    "plugins/older/ebslimits": "plugins/test_older_plugins",
    "plugins/older/gcepdlimits": "plugins/test_older_plugins",
    "plugins/older/noderesourcesleastallocated": "plugins/test_older_plugins testing/test_rules",
    "plugins/older/noderesourcesmostallocated": "plugins/test_older_plugins testing/test_rules",
    "plugins/older/requestedtocapacityratio": "plugins/test_older_plugins testing/test_rules",
    "plugins/older/requestedtocapacityratiopriority": "plugins/test_older_plugins testing/test_rules",
    "plugins/older/selectorspread": "plugins/test_older_plugins",
    "plugins/resources/noderesources_args": "config/test_plugin_args config/test_convert plugins/test_older_plugins",
    "plugins/resources/noderesources_older": "plugins/test_older_plugins plugins/test_noderesources_of_1_18",
    "plugins/resources/noderesourcesbalancedallocation": "plugins/test_noderesources testing/test_rules",
    "plugins/resources/noderesourcesfit": "plugins/test_noderesources plugins/test_registered_events",
    "plugins/topology/interpodaffinity": "plugins/test_interpodaffinity plugins/test_registered_events",
    "plugins/topology/podtopologyspread": "plugins/test_podtopologyspread plugins/test_registered_events",
    "plugins/topology/podtopologyspread_args": "config/test_plugin_args plugins/test_podtopologyspread",
    "plugins/topology/topologyplacementgenerator": "scheduling/test_pod_group_domains",
    "plugins/volumes/nodevolumelimits": "plugins/test_nodevolumelimits plugins/test_registered_events",
    "plugins/volumes/volumebinding": (
        "plugins/test_volumebinding plugins/test_registered_events config/test_plugin_args"
    ),
    "plugins/volumes/volumerestrictions": (
        "plugins/test_volumerestrictions plugins/test_registered_events scheduling/test_preemption"
    ),
    "plugins/volumes/volumezone": "plugins/test_volumezone plugins/test_registered_events",
    "queue/backoff": "queue/test_scheduling_queue queue/test_groups",
    "queue/entry": "queue/test_scheduling_queue queue/test_groups",
    "queue/gating": "queue/test_scheduling_queue queue/test_groups",
    "queue/hints": "queue/test_scheduling_queue queue/test_unschedulable",
    "queue/scheduling_queue": "queue/test_scheduling_queue queue/test_groups",
    "queue/snapshot": "queue/test_scheduling_queue queue/test_groups",
    "queue/unschedulable": "queue/test_scheduling_queue queue/test_groups queue/test_unschedulable",
    "scheduling/attempt/extended": "extenders/test_attempts scheduling/test_ties",
    "scheduling/attempt/node_search": (
        "scheduling/test_search scheduling/test_prepared scheduling/test_stepping "
        "scheduling/test_attempt_runs scheduling/test_nominated_node scheduling/test_filtering_nominated_pods"
    ),
    "scheduling/attempt/one_node": "scheduling/test_one_node",
    "scheduling/attempt/outcome": "scheduling/test_scheduler scheduling/test_stepping",
    "scheduling/attempt/post_filtering": (
        "scheduling/test_scheduler scheduling/test_resizes scheduling/test_metrics "
        "scheduling/test_pod_group_cycle extenders/test_attempts"
    ),
    "scheduling/attempt/pre_filtering": (
        "scheduling/test_pre_filtering scheduling/test_scheduler scheduling/test_metrics scheduling/test_resizes "
        "scheduling/test_batch"
    ),
    "scheduling/attempt/ranking": (
        "scheduling/test_ranking scheduling/test_scheduler scheduling/test_nominated_node scheduling/test_batch "
        "scheduling/test_faults"
    ),
    "scheduling/attempt/resizing": "scheduling/test_resizes",
    "scheduling/attempt/scheduler": (
        "scheduling/test_scheduler scheduling/test_batch scheduling/test_metrics extenders/test_attempts "
        "scheduling/test_search scheduling/test_stepping scheduling/test_nominated_node scheduling/test_attempt_runs"
    ),
    "scheduling/attempt/ties": "scheduling/test_ties scheduling/test_stepping",
    "scheduling/attempt_records": "scheduling/test_driver scheduling/test_metrics",
    "scheduling/attempts": (
        "scheduling/test_driver scheduling/test_metrics scheduling/test_forked_bindings "
        "scheduling/test_pod_group_stepping scheduling/test_stepping simulation/test_fork scheduling/test_runs"
    ),
    "scheduling/binding/cycle": (
        "scheduling/test_driver scheduling/test_forked_bindings scheduling/test_preempted_in_memory"
    ),
    "scheduling/binding/pre_bind": "scheduling/test_driver scheduling/test_preempted_in_memory",
    "scheduling/binding/steps": (
        "scheduling/test_driver scheduling/test_metrics scheduling/test_loop_effects scheduling/test_runs "
        "extenders/test_attempts"
    ),
    "scheduling/binding/waiting": "scheduling/test_waiting",
    "scheduling/binding_cycles": (
        "scheduling/test_driver scheduling/test_deleted_while_bound scheduling/test_forked_bindings "
        "scheduling/test_preempted_in_memory scheduling/test_stepping scheduling/test_runs"
    ),
    "scheduling/completion": (
        "scheduling/test_completion scheduling/test_driver scheduling/test_metrics scheduling/test_runs"
    ),
    "scheduling/config_changes": "scheduling/test_config_changes scheduling/test_reconfigure",
    "scheduling/debug/breakpoints": "scheduling/test_debugger scheduling/test_pod_group_stepping",
    "scheduling/debug/debugger": "scheduling/test_debugger scheduling/test_pod_group_stepping scheduling/test_stepping",
    "scheduling/driver": "scheduling/test_driver scheduling/test_loop_effects scheduling/test_stepping",
    "scheduling/failure_handler": (
        "scheduling/test_failure_handler scheduling/test_driver scheduling/test_preempted_in_memory"
    ),
    "scheduling/filtering/filters": "scheduling/test_filters scheduling/test_filtering_what_if_rows",
    "scheduling/filtering/what_if_rows": (
        "scheduling/test_filtering_what_if_rows scheduling/test_filtering_nominated_pods"
    ),
    "scheduling/gangs/counted": "scheduling/test_pod_groups_of_1_37 scheduling/test_pod_group_domains",
    "scheduling/gangs/cycle": "scheduling/test_pod_group_cycle scheduling/test_pod_group_stepping",
    "scheduling/gangs/outcome": "scheduling/test_gang_outcome scheduling/test_pod_group_cycle",
    "scheduling/gangs/placing": "scheduling/test_pod_group_domains",
    "scheduling/gangs/preemption": "scheduling/test_pod_groups_of_1_37 scheduling/test_pod_group_domains",
    "scheduling/gangs/trial": (
        "scheduling/test_member_trial scheduling/test_pod_group_cycle scheduling/test_pod_group_stepping"
    ),
    "scheduling/group_cycles": (
        "scheduling/test_pod_group_cycle scheduling/test_pod_group_stepping scheduling/test_pod_groups_of_1_37 "
        "scheduling/test_metrics"
    ),
    "scheduling/inputs": "scheduling/test_driver scheduling/test_runs",
    "scheduling/loop": "scheduling/test_loop scheduling/test_loop_effects",
    "scheduling/machine": (
        "scheduling/test_machine scheduling/test_scheduler scheduling/test_driver "
        "scheduling/test_pod_group_cycle scheduling/test_object_faults scheduling/test_runs"
    ),
    "scheduling/nominations/counted": "scheduling/test_nominations scheduling/test_candidates",
    "scheduling/nominations/pending": "scheduling/test_pending_pods",
    "scheduling/observer": (
        "scheduling/test_driver scheduling/test_deleted_while_bound scheduling/test_object_faults "
        "scheduling/test_resizes scheduling/test_observed_batches"
    ),
    "scheduling/popped": (
        "scheduling/test_popped scheduling/test_driver scheduling/test_pod_group_stepping scheduling/test_stepping"
    ),
    "scheduling/preemption/candidates": "scheduling/test_candidates scheduling/test_pod_groups_of_1_37",
    "scheduling/preemption/dry_run": ("scheduling/test_victims scheduling/test_candidates scheduling/test_preemption"),
    "scheduling/profiles/metrics": "scheduling/test_profiles_metrics scheduling/test_metrics",
    "scheduling/profiles/plugin_metrics": "scheduling/test_profiles_metrics scheduling/test_metrics",
    "scheduling/stops/interventions": "scheduling/test_interventions scheduling/test_stepping",
    "scheduling/stops/view": "scheduling/test_stops_view scheduling/test_pod_group_stepping",
    "scheduling/verdicts": "scheduling/test_verdicts scheduling/test_scheduler scheduling/test_nominated_node",
    "store/journal/compaction": "store/test_journal store/test_journal_writer",
    "store/journal/format": "store/test_journal_writer store/test_journal_damage",
    "store/journal/journal": "store/test_journal store/test_journal_damage",
    "store/journal/salvage": "store/test_journal store/test_journal_damage store/test_journal_offline",
    "store/keeping": (
        "store/test_store store/test_trial store/test_admission_cache controllers/kubelets/test_lease_renewals"
    ),
    "store/store": "store/test_store store/policies/test_validating store/webhooks/test_hooks",
}


class AlreadyFailing(Exception):
    """The module's tests fail although it has no fault."""


@attrs.frozen
class Copy:
    """A copy of the tree, and a process that runs a module's tests in it."""

    root: Path
    module: str  # its path in the tree
    tests: Sequence[str]  # likewise
    server: subprocess.Popen[str]  # tests/mutation/server.py

    def seconds_without_fault(self, limit_s: float) -> float:
        """Run the tests without a fault; return the CPU time in seconds.

        Raises AlreadyFailing.
        """
        failure, cpu_s = self._run(limit_s)
        if failure:
            raise AlreadyFailing(f"{' '.join(self.tests)} fails without any fault: {failure}")
        return cpu_s

    def notices(self, mutant: Mutant, seconds_without: float) -> bool:
        """Return whether the tests fail, or time out, with this fault."""
        file = self.root / self.module
        original = file.read_text(encoding="utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            compiled.unlink()
        try:
            file.write_text(mutant.text(original), encoding="utf-8")
            return bool(self._run(max(_SLOWER * seconds_without, _SHORTEST_S))[0])
        finally:
            file.write_text(original, encoding="utf-8")

    def _run(self, limit_s: float) -> tuple[str, float]:
        """Run the tests; return the last line of their output if they fail, otherwise "", and the CPU time."""
        assert self.server.stdin is not None, "a pipe"
        assert self.server.stdout is not None, "a pipe"
        self.server.stdin.write(f"{limit_s}\n")
        self.server.stdin.flush()
        failure, cpu_s = json.loads(self.server.stdout.readline())
        return failure, cpu_s


def _variables(root: Path) -> dict[str, str]:
    shared = shared_folder()
    variables = {"PYTHONPATH": os.pathsep.join((str(root), str(root / "repl"))), "PYTHONDONTWRITEBYTECODE": "1"}
    return variables if shared is None else {**variables, VARIABLE: str(shared.resolve())}


@contextmanager
def copied(module: str, tests: Sequence[str], root: Path = ROOT) -> Iterator[Copy]:
    """Copy the tree; delete the copy at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="kschedd-mutants-") as folder:
        copy = Path(folder) / "tree"
        copy.mkdir()
        for each in root.iterdir():
            if each.name in _COPIED:
                shutil.copytree(each, copy / each.name, symlinks=True, ignore=_HALF_WRITTEN)
            elif each.is_file():
                shutil.copy2(each, copy / each.name)
        name = ".".join(Path(module).with_suffix("").parts)
        with subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py")), name, *tests],
            cwd=copy,
            env={**os.environ, **_variables(copy)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            yield Copy(copy, module, tests, server)


def files_testing(module: str, root: Path = ROOT) -> list[str]:
    """Return the test files of a module; none if its room has no tests.

    These are the files that TESTED_BY names; else the file named after the module, or after its folder and the module.
    If there is none, they are the room's test files that import the module, or all of the room's if none imports it.
    """
    path = Path(module)
    if names := TESTED_BY.get("/".join(path.with_suffix("").parts[1:])):
        return [f"tests/{name}.py" for name in names.split()]
    beside = Path("tests", *path.parts[1:-1], f"test_{path.name}")
    if (root / beside).is_file():
        return [str(beside)]
    if found := sorted((root / "tests").rglob(f"test_{path.parent.name}_{path.name}")):
        return [str(each.relative_to(root)) for each in found]
    if len(path.parts) < 3:
        return []
    there = sorted((root / "tests" / path.parts[1]).rglob("test_*.py"))
    named = [each for each in there if each.name == f"test_{path.name}"]
    name = ".".join(path.with_suffix("").parts)
    importing = [each for each in there if f"from {name} import" in each.read_text(encoding="utf-8")]
    return [str(each.relative_to(root)) for each in named or importing or there]
