"""One golden case: a cluster, a pod, and the recorded outcome of one kube-scheduler scheduling cycle.

`run_case` runs the case with this scheduler and returns the outcome in the record's format, so that the two can be
compared as mappings. Every node is evaluated; ties are broken by node name.

Source of the format: the README beside the records.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.loading.load import config_from_raw
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import V1_34_1, KubernetesVersion
from kschedd.config.versions.rules import Rules
from kschedd.conformance.compare import differences
from kschedd.conformance.records import GoldenRecord
from kschedd.extenders.extender import extenders_of
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import EXTENDER_NAME
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PRE_ENQUEUE, RESERVE, PostFilterResult
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, Status
from kschedd.plugins.devices.dynamicresources import DynamicResources
from kschedd.plugins.devices.dynamicresources_state import DeviceAttempt
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ranking import Scores
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.binding.pre_bind import has_pre_bind_work
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.profiles.profile import build_profile
from kschedd.scheduling.verdicts import Verdicts

Raw = Mapping[str, Any]
Actual = dict[str, Any]


def run_case(record: GoldenRecord, version: KubernetesVersion = V1_34_1, *, remember: bool = False) -> Actual:
    """Return this scheduler's outcome of the case with the rules of `version`, in the format of the record's `want`.

    With `remember`, the pod is first evaluated twice, so that the outcome is computed from cached evaluations.
    """
    config = attrs.evolve(config_from_raw(record.config, version=version), percentage_of_nodes_to_score=100)
    pod = Pod.from_raw(record.raw["pod"])
    cluster = SchedulerCache()
    cluster.table.set_resize_rules(config.rules.resize_rules)
    cluster.load(map(parse, record.objects))
    scheduler, nominated = _scheduler(config, cluster, pod, record.objects, remember)
    outcome: Actual = {
        "gated": None,
        "prefilter": None,
        "filter": {},
        "feasible": [],
        "raw_scores": None,
        "scores": None,
        "total": None,
        "best": [],
        "message": "",
        "unschedulable_plugins": [],
        "pending_plugins": [],
        "postfilter": None,
    }
    gated = _gate(scheduler, pod)
    if gated is not None:
        outcome["gated"] = _status_raw(gated)
        return outcome
    if remember:
        for _ in range(2):
            drive(scheduler.attempt(pod, nominated))
        scheduler.start.index = 0  # an error ends a search before it has visited all nodes
    result = drive(scheduler.attempt(pod, nominated))
    if isinstance(result, ScheduleResult):
        _describe_placed(outcome, scheduler, result, nominated)
        if record.binding is not None:
            outcome["binding"] = _describe_binding(scheduler, result, config.rules, record.binding)
    else:
        _describe_failed(outcome, scheduler, result)
    return outcome


def stated_differences(record: GoldenRecord, version: KubernetesVersion, *, remember: bool) -> Iterator[str]:
    """Yield the differences between a case and its outcome. Parts that `want` lacks are not compared."""
    want = record.want
    binding: Raw | None = {"allocations": [{"config": []}]} if "allocations" in want else None
    found = run_case(attrs.evolve(record, raw={**record.raw, "binding": binding}), version, remember=remember)
    bound = found.get("binding") or {}
    allocations = [{**one, "node": bound["node"]} for one in bound.get("allocations") or ()]
    for name, wanted in want.items():
        if name == "message_contains":
            for part in [wanted] if isinstance(wanted, str) else wanted:
                if part not in found["message"]:
                    yield f"message: want {part!r} in it, got {found['message']!r}"
        elif name == "allocations":
            yield from differences(wanted, _restricted(allocations, wanted), name)
        else:
            yield from differences(wanted, _restricted(found[name], wanted), name)


def _restricted(found: Any, wanted: Any) -> Any:
    """Return only the parts of `found` that `wanted` contains."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return {name: _restricted(found[name], part) for name, part in wanted.items() if name in found}
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [_restricted(one, part) for one, part in zip(found, wanted, strict=True)]
    return found


def _scheduler(
    config: Config, cluster: SchedulerCache, pod: Pod, objects: Iterable[Raw], remember: bool
) -> tuple[Scheduler, dict[str, list[Pod]]]:
    profile = config.profile(pod.scheduler_name)
    assert profile is not None, f"a profile named {pod.scheduler_name} is expected"
    profile = attrs.evolve(profile, percentage_of_nodes_to_score=100)
    nominated: dict[str, list[Pod]] = {}
    for raw in objects:
        if raw["kind"] == "Pod" and not raw["spec"].get("nodeName"):
            pending = Pod.from_raw(raw)
            # Gated pods are in no queue, but with the rule gated_nominations_kept their nominations count.
            counts = config.rules.gated_nominations_kept or not raw["spec"].get("schedulingGates")
            if pending.nominated_node_name and counts:
                nominated.setdefault(pending.nominated_node_name, []).append(pending)
    handle = Handle(
        cluster,
        config.feature_gates,
        rules=config.rules,
        nominated_pods=lambda node: nominated.get(node, ()),
        now_s=time.time(),  # times in records are far from the present, in the past or the future
    )
    running = build_profile(config, profile, Registry(), handle)
    extenders = extenders_of(config.extenders)
    return Scheduler(running, cluster, by_name, StartNode(), remember, extenders), nominated


def _gate(scheduler: Scheduler, pod: Pod) -> Status | None:
    for plugin in scheduler.profile.at(PRE_ENQUEUE):
        status = plugin.pre_enqueue(pod)
        if status is not None:
            found: Status = status.by(plugin.name)
            return found
    return None


def _status_raw(status: Status) -> Raw:
    return {"plugin": status.plugin, "code": status.code.label, "reasons": sorted(status.reasons)}


def _filter(verdicts: Verdicts) -> dict[str, Any]:
    """Return each node's Filter status in the record's format; None for a feasible node."""
    found = {name: None if status is None else _status_raw(status) for name, status in verdicts.by_node()}
    for name in verdicts.table.row_of:
        if name not in found:
            found[name] = _status_raw(verdicts.default_status)
    return found


def _all_verdicts(scheduler: Scheduler, pod: Pod, nominated: dict[str, list[Pod]]) -> Verdicts:
    """Return the verdicts on all nodes for an attempt that evaluated only some nodes."""
    again = drive(scheduler.attempt(attrs.evolve(pod, nominated_node_name=""), nominated, every_node=True))
    verdicts = again.verdicts if isinstance(again, ScheduleResult) else again.diagnosis.verdicts
    assert isinstance(verdicts, Verdicts), "a pod that got its nominated node is expected to have passed PreFilter"
    return verdicts


def _describe_placed(
    outcome: Actual, scheduler: Scheduler, placed: ScheduleResult, nominated: dict[str, list[Pod]]
) -> None:
    pod, state, rows = placed.pod, placed.state, placed.feasible
    names = scheduler.cluster.table.names
    verdicts = placed.verdicts
    assert verdicts is not None, "of a whole attempt"
    wished = pod.nominated_node_name
    rejected_by = verdicts
    if wished and [names[row] for row in rows.tolist()] == [wished]:
        outcome["nominated_shortcut"] = True
        verdicts = _all_verdicts(scheduler, pod, nominated)
    elif not scheduler.profile.scores:  # the search ended at the first feasible node
        verdicts = rejected_by = _all_verdicts(scheduler, pod, nominated)
    _describe_pre_filter_result(outcome, scheduler, pod)
    outcome["filter"] = _filter(verdicts)
    outcome["feasible"] = sorted(names[row] for row in rows.tolist())
    outcome["unschedulable_plugins"], outcome["pending_plugins"] = _plugins(scheduler, pod, rejected_by)
    if len(rows) == 1:
        outcome["best"] = [placed.node_name]
        return
    scores = drive(scheduler.ranking.details(state, pod, rows))
    assert isinstance(scores, Scores), "scores that could be summed are expected to be there one by one"
    assert placed.totals is not None, "several feasible nodes are expected to be scored"
    if not scheduler.extenders:
        assert (scores.total == placed.totals).all(), "details are expected to add up to the totals"
    ordered = [names[row] for row in rows.tolist()]
    outcome["raw_scores"] = {
        name: dict(zip(ordered, values.tolist(), strict=True)) for name, values in scores.raw.items()
    }
    outcome["scores"] = {
        name: dict(zip(ordered, values.tolist(), strict=True)) for name, values in scores.weighted.items()
    }
    outcome["total"] = dict(zip(ordered, placed.totals.tolist(), strict=True))
    best = max(outcome["total"].values())
    outcome["best"] = sorted(name for name, total in outcome["total"].items() if total == best)
    assert placed.node_name == outcome["best"][0], "the first of the best is expected to be taken"


def _describe_binding(scheduler: Scheduler, placed: ScheduleResult, rules: Rules, recorded: Raw) -> Raw:
    """Return the state of the pod on its node up to PreBind: the assigned node and the allocations."""
    framework, state, node_name = scheduler.profile, placed.state, placed.node_name
    binding: dict[str, Any] = {"node": node_name, "nominated_node": None}
    assumed = scheduler.cluster.assume(placed.pod, node_name)
    for plugin in framework.at(RESERVE):
        status = plugin.reserve(state, assumed, node_name)
        if status is not None and status.code != Code.SUCCESS:
            return {**binding, "error": status.message}
    if rules.nominated_before_binding:
        work = has_pre_bind_work(framework, state, assumed, node_name)
        if isinstance(work, Status):
            return {**binding, "error": work.message}
        binding["nominated_node"] = node_name if work else None
    with_config = any("config" in one for one in recorded.get("allocations") or ())
    allocated = list(_allocated(state, with_config))
    return {**binding, "allocations": allocated} if allocated else binding


_RESULT: Mapping[str, str] = {
    "adminAccess": "admin_access",
    "shareID": "shared",
    "consumedCapacity": "consumed_capacity",
    "bindingConditions": "binding_conditions",
}


def _allocated(state: CycleState, with_config: bool) -> Iterator[Raw]:
    """Yield the allocations that DynamicResources has reserved, with their configuration if the record contains it."""
    attempt = state.data.get(DynamicResources.name)
    if isinstance(attempt, DeviceAttempt):
        for place, allocation in sorted(attempt.reserved.items()):
            results = [_result(result) for result in allocation["devices"]["results"]]
            written = {"claim": attempt.claims[place].key, "results": results}
            yield {**written, "config": allocation["devices"].get("config") or []} if with_config else written


def _result(result: Raw) -> Raw:
    written = {field: result[field] for field in ("request", "driver", "pool", "device")}
    written |= {name: result[field] for field, name in _RESULT.items() if result.get(field)}
    return {**written, "shared": True} if "shared" in written else written


def _plugins(scheduler: Scheduler, pod: Pod, verdicts: Verdicts) -> tuple[list[str], list[str]]:
    rejecting = {Code.PENDING: set[str](), Code.UNSCHEDULABLE: set[str]()}
    for status, _ in verdicts.distinct_statuses():
        rejecting[Code.PENDING if status.code == Code.PENDING else Code.UNSCHEDULABLE].add(status.plugin)
    narrowed_by = scheduler.pre_filters.at_once(CycleState(), pod).narrowed_by
    if "" in rejecting[Code.UNSCHEDULABLE]:
        narrowed_by = narrowed_by | {EXTENDER_NAME}
    return sorted((rejecting[Code.UNSCHEDULABLE] | narrowed_by) - {""}), sorted(rejecting[Code.PENDING] - {""})


def _describe_pre_filter_result(outcome: Actual, scheduler: Scheduler, pod: Pod) -> None:
    found = scheduler.pre_filters.at_once(CycleState(), pod)
    if found.status is None and found.narrowed is not None:
        outcome["prefilter_nodes"] = sorted(found.narrowed.node_names)


def _describe_failed(outcome: Actual, scheduler: Scheduler, failed: FitError) -> None:
    diagnosis = failed.diagnosis
    outcome["message"] = failed.message
    outcome["unschedulable_plugins"] = sorted(diagnosis.unschedulable_plugins)
    outcome["pending_plugins"] = sorted(diagnosis.pending_plugins)
    if failed.status.code == Code.ERROR:
        outcome["error"] = failed.message
        if diagnosis.verdicts is None:
            outcome["prefilter"] = {
                "plugin": failed.status.plugin,
                "code": Code.ERROR.label,
                "reasons": sorted(failed.status.reasons),
            }
    if diagnosis.pre_filter is not None:
        outcome["prefilter"] = _status_raw(diagnosis.pre_filter)
    if diagnosis.verdicts is not None:
        _describe_pre_filter_result(outcome, scheduler, failed.pod)
        outcome["filter"] = _filter(diagnosis.verdicts)
        names = diagnosis.verdicts.table.names
        if failed.status.code == Code.ERROR and not any(
            status.code == Code.ERROR for status, _ in diagnosis.verdicts.distinct_statuses()
        ):
            passed = diagnosis.verdicts.rows[diagnosis.verdicts.failed == 32767]
            outcome["feasible"] = sorted(names[row] for row in passed.tolist())
    if failed.post_filter is not None:
        outcome["postfilter"] = _describe_post_filter(failed.post_filter)


def _describe_post_filter(result: PostFilterResult) -> Raw:
    details = result.details
    return {
        "code": result.status.code.label,
        "message": result.status.message,
        "nominated_node": result.nominated_node,
        "nominated_ties": None if details is None else list(details.ties),
        "victims": sorted(victim.key for victim in result.victims),
        "deleted": [] if details is None else sorted(victim.key for victim in details.deleted),
        "cleared_nominations": [] if details is None else sorted(pod.key for pod in details.cleared),
        "candidates": []
        if details is None
        else [
            {
                "node": candidate.node_name,
                "victims": sorted(victim.key for victim in candidate.victims),
                "num_pdb_violations": candidate.pdb_violations,
            }
            for candidate in sorted(details.candidates, key=lambda c: c.node_name)
        ],
    }
